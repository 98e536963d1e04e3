//! Bounds of the head of a request, and the answers to heads that the HTTP parser refuses.

use std::net::SocketAddr;

use axum::Router;
use axum::body::{self, Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower::ServiceExt;

use crate::problem::{Kind, Problem};

/// Room for the names of a hundred columns in a query.
const MAX_URI_BYTES: usize = 16 << 10;
/// Names and values together; a token of an issuer is the longest of them.
const MAX_HEADER_BYTES: usize = 32 << 10;
/// The most headers that the HTTP parser reads.
const MAX_HEADERS: usize = 100;
/// More than the longest of these answers.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// Stands for a request that the HTTP parser refused with this status.
#[derive(Clone, Copy)]
struct UnreadHead(StatusCode);

/// The bytes of the answer to a request that the HTTP parser refused with `status`: what the router says of it, with all that
/// its answers have. `None` if the parser does not refuse with this status.
pub async fn refuse_unread(router: Router, from: SocketAddr, status: u16) -> Option<Bytes> {
    let unread = UnreadHead(StatusCode::from_u16(status).ok()?);
    unread.problem()?;
    let mut request = Request::new(Body::empty());
    // which one it was is not known
    *request.method_mut() = Method::from_bytes(b"UNREAD").ok()?;
    request.extensions_mut().insert(ConnectInfo(from));
    request.extensions_mut().insert(unread);
    let Ok(response) = router.oneshot(request).await;
    let (head, body) = response.into_parts();
    let body = body::to_bytes(body, MAX_REFUSAL_BYTES).await.ok()?;
    let mut bytes =
        format!("HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: {}\r\n", head.status, body.len()).into_bytes();
    for (name, value) in head.headers.iter().filter(|(name, _)| *name != header::CONTENT_LENGTH) {
        for piece in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            bytes.extend_from_slice(piece);
        }
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(&body);
    Some(bytes.into())
}

impl UnreadHead {
    fn problem(self) -> Option<Problem> {
        match self.0 {
            StatusCode::BAD_REQUEST => {
                let detail = "the first line or a header of the request is malformed";
                Some(Problem::new(Kind::MalformedRequest, detail))
            }
            StatusCode::URI_TOO_LONG => {
                let detail = format!("path and query have at most {MAX_URI_BYTES} bytes");
                Some(Problem::new(Kind::UriTooLong, detail).with("limit", MAX_URI_BYTES))
            }
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
                let detail = format!(
                    "a request has at most {MAX_HEADERS} headers, and their names and values at most {MAX_HEADER_BYTES} bytes"
                );
                Some(Problem::new(Kind::HeadersTooLarge, detail).with("limit", MAX_HEADERS))
            }
            _ => None,
        }
    }
}

/// Answers a request whose head is too long, or was refused by the HTTP parser, with a problem.
pub(in crate::api) async fn check_size(request: Request, next: Next) -> Response {
    if let Some(problem) = request.extensions().get::<UnreadHead>().and_then(|unread| unread.problem()) {
        return problem.into_response();
    }
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
