//! The headers that every answer has.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

/// What a page may do that is none of ours: nothing.
const CSP_NONE: &str = "default-src 'none'; frame-ancestors 'none'";

/// Swagger UI runs its own scripts, styles its elements in place, draws icons that it holds as data, and calls this service.
const CSP_SWAGGER_UI: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                          font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                          frame-ancestors 'none'";

/// Says what browsers and caches may do with an answer. Data are stored by nobody; what has an `ETag` may be kept by its
/// caller, who asks each time whether it still is served: a release can be withdrawn.
pub(in crate::api) async fn security_headers(request: Request, next: Next) -> Response {
    let documentation = request.uri().path().starts_with("/docs");
    let mut response = next.run(request).await;
    let kept = response.headers().contains_key(header::ETAG) && !response.status().is_client_error();
    let stream = response.headers().get(header::CONTENT_TYPE).is_some_and(|it| it == "text/event-stream");
    let headers = response.headers_mut();
    let mut say = |name: HeaderName, value: &'static str| headers.insert(name, HeaderValue::from_static(value));
    say(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    say(header::CONTENT_SECURITY_POLICY, if documentation { CSP_SWAGGER_UI } else { CSP_NONE });
    say(header::REFERRER_POLICY, "no-referrer");
    say(
        header::CACHE_CONTROL,
        match (documentation, kept) {
            // the pages of one version
            (true, _) => "private, max-age=3600",
            (_, true) => "private, no-cache",
            _ => "no-store",
        },
    );
    if kept {
        say(header::VARY, "Accept, Authorization");
    }
    if stream {
        // a gateway that collects events before it passes them on makes them late
        say(HeaderName::from_static("x-accel-buffering"), "no");
    }
    response
}
