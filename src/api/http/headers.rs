//! Security and cache headers of all answers.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

/// The policy of answers other than the documentation pages.
const CSP_NONE: &str = "default-src 'none'; frame-ancestors 'none'";

/// Swagger UI needs its own scripts, inline styles, data icons and requests to this service.
const CSP_SWAGGER_UI: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                          font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                          frame-ancestors 'none'";

/// Adds the headers for browsers and caches.
///
/// Answers are not stored, except those with an `ETag`: clients must revalidate these, because a release can be withdrawn.
pub(in crate::api) async fn security_headers(request: Request, next: Next) -> Response {
    let documentation = request.uri().path().starts_with("/docs");
    let mut response = next.run(request).await;
    let cacheable = response.headers().contains_key(header::ETAG) && !response.status().is_client_error();
    let stream = response.headers().get(header::CONTENT_TYPE).is_some_and(|it| it == "text/event-stream");
    let headers = response.headers_mut();
    // reports as pages have a policy of their own
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        let policy = HeaderValue::from_static(if documentation { CSP_SWAGGER_UI } else { CSP_NONE });
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    let mut set = |name: HeaderName, value: &'static str| headers.insert(name, HeaderValue::from_static(value));
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(header::REFERRER_POLICY, "no-referrer");
    set(
        header::CACHE_CONTROL,
        match (documentation, cacheable) {
            (true, _) => "private, max-age=3600",
            (_, true) => "private, no-cache",
            _ => "no-store",
        },
    );
    if cacheable {
        set(header::VARY, "Accept, Authorization");
    }
    if stream {
        // a buffering gateway delays events
        set(HeaderName::from_static("x-accel-buffering"), "no");
    }
    response
}
