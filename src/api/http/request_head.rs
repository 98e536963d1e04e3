//! Bounds of the head of a request, below those of the HTTP parser, which answers without a problem document.

use axum::extract::Request;
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::problem::{Kind, Problem};

/// Room for the names of a hundred columns in a query.
const MAX_URI_BYTES: usize = 16 << 10;
/// Names and values together; a token of an issuer is the longest of them.
const MAX_HEADER_BYTES: usize = 32 << 10;

/// Answers a request whose address or headers are too long with a problem.
pub(in crate::api) async fn check_size(request: Request, next: Next) -> Response {
    match check(request.uri(), request.headers()) {
        Err(problem) => problem.into_response(),
        Ok(()) => next.run(request).await,
    }
}

fn check(uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let bounded = |kind, what: &str, limit: usize, found: usize| match found <= limit {
        true => Ok(()),
        false => {
            let detail = format!("{what} at most {limit} bytes");
            Err(Problem::new(kind, detail).with("limit", limit).with("found", found))
        }
    };
    let address = uri.path_and_query().map_or(0, |address| address.as_str().len());
    bounded(Kind::UriTooLong, "path and query have", MAX_URI_BYTES, address)?;
    let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    bounded(Kind::HeadersTooLarge, "names and values of headers have", MAX_HEADER_BYTES, bytes)
}
