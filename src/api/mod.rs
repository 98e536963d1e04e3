//! The HTTP surface: routes, wire types, extractors and the OpenAPI document. Handlers translate; what is decided is decided
//! in `jobs`.

mod access;
mod archive;
mod datasets;
mod events;
mod extract;
mod guard;
mod health;
mod intake;
mod jobs;
mod life;
mod listing;
mod openapi;
mod parts;
mod places;
mod plans;
mod releases;
mod respond;
mod stream;
mod upload;

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderName, Request, header};
use axum::middleware;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::sensitive_headers::SetSensitiveRequestHeadersLayer;
use tower_http::trace::TraceLayer;
use utoipa_swagger_ui::SwaggerUi;

use crate::jobs::Desk;
use crate::microdata::formats::Limits;
use crate::problem::{Kind, Problem};

pub use access::Accepts;
pub use openapi::document as openapi_document;
pub use places::Places;

/// The largest JSON document that is read.
const MAX_DOCUMENT_BYTES: usize = 16 << 20;
/// After a refusal so much of the body is still read, so that the client gets to see the answer.
const DRAINED_BYTES: usize = 64 << 20;

/// What handlers share.
#[derive(Clone)]
pub struct App {
    /// Where callers are served.
    pub desk: Desk,
    /// What uploads may hold.
    pub limits: Limits,
    /// The folder for uploads that are read from their end; what is put there has no name.
    pub spool: Arc<Path>,
    /// The most bytes of an upload's body.
    pub max_upload_bytes: u64,
    /// Bounds uploads under way.
    pub uploads: Places,
    /// Bounds plans under way.
    pub plans: Places,
    /// What callers prove themselves with.
    pub accepts: Accepts,
}

/// The service.
pub fn router(app: App) -> Router {
    let request_id = HeaderName::from_static("x-request-id");
    let (routes, document) = openapi::routes().split_for_parts();
    // a document that cannot be written is served as null; the committed copy shows that this one can
    let document = openapi::completed(&document).unwrap_or_default();
    let guarded = guard::Served { any_host: app.accepts.something() };
    routes
        .layer(middleware::from_fn_with_state(app.clone(), access::authorized))
        .with_state(app)
        .merge(SwaggerUi::new("/docs").external_url_unchecked("/openapi.json", document))
        .fallback(|| async { Problem::new(Kind::NotFound, "there is no such path") })
        .method_not_allowed_fallback(|| async {
            Problem::new(Kind::MethodNotAllowed, "the path exists, but not with this method")
        })
        .layer(middleware::from_fn_with_state(guarded, guard::from_where))
        .layer(CatchPanicLayer::custom(respond::panicked))
        .layer(TraceLayer::new_for_http().make_span_with(|request: &Request<_>| {
            // the query may hold what a caller calls things; the path holds ids only
            tracing::info_span!("request", method = %request.method(), path = request.uri().path())
        }))
        .layer(PropagateRequestIdLayer::new(request_id.clone()))
        // whatever shows headers shows no token
        .layer(SetSensitiveRequestHeadersLayer::new([header::AUTHORIZATION]))
        .layer(SetRequestIdLayer::new(request_id, MakeRequestUuid))
}
