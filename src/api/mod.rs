//! The HTTP interface: routes, wire types, extractors and the OpenAPI document.
//!
//! Handlers translate requests and answers; `app` decides.

mod admin;
mod http;
mod openapi;
mod routes;

use axum::http::header;
use axum::{Router, middleware};
use http::error::no_such_path;
use http::{access, compression, error, gateway, headers, limits, origin, request_head, tracing};
use openapi::ui;
use routes::table;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::sensitive_headers::SetSensitiveRequestHeadersLayer;

use crate::problem::{Kind, Problem};

pub use admin::admin_router;
pub use http::app::{App, LinkSource, Readiness, TableSources};
pub use http::credentials::AuthMethods;
pub use http::gateway::{Gateway, Prefix};
pub use http::limits::{ConcurrencyLimit, ConcurrencyLimits, hold_until_sent};
pub use http::renderings::RenderingCache;
pub use http::request_head::refuse_unread;
pub use openapi::{document as openapi_document, document_text as openapi_text};

/// The router of the service with all its layers.
pub fn router(app: App) -> Router {
    let (routes, _) = openapi::routes().split_for_parts();
    let requests = app.bounds.requests.clone();
    let gateway = app.gateway.clone();
    let control = access::AccessControl { app: app.clone(), required: table::access };
    let guarded = origin::OriginPolicy { any_host: app.accepts.is_required(), gateway: gateway.clone() };
    let routes = routes
        .layer(middleware::from_fn_with_state(control, access::authorize))
        .with_state(app)
        .merge(ui::routes())
        .fallback(|| async { no_such_path() })
        .method_not_allowed_fallback(|| async {
            Problem::new(Kind::MethodNotAllowed, "the path does not support this method")
        })
        .layer(middleware::from_fn_with_state(guarded, origin::check_origin))
        .layer(middleware::from_fn(gateway::strip_path_prefix))
        .layer(middleware::from_fn(request_head::check_size))
        .layer(CatchPanicLayer::custom(error::panic_response))
        .layer(middleware::from_fn_with_state(requests, limits::limit_concurrency))
        .layer(middleware::from_fn(headers::security_headers))
        .layer(compression::layer())
        .layer(middleware::from_fn(compression::choose_coding))
        .layer(middleware::from_fn(tracing::trace_request))
        // no log shows the token
        .layer(SetSensitiveRequestHeadersLayer::new([header::AUTHORIZATION]));
    gateway.before(routes)
}
