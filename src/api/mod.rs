//! The HTTP surface: routes, wire types, extractors and the OpenAPI document. Handlers translate; what is decided is decided
//! in `jobs`.

mod accept;
mod access;
mod analyses;
mod archive;
mod aside;
mod audit_log;
mod audits;
mod datasets;
mod docs;
mod events;
mod extract;
mod gateway;
mod guard;
mod headers;
mod health;
mod inspect;
mod intake;
mod internal;
mod jobs;
mod life;
mod linked;
mod listing;
mod openapi;
mod originals;
mod parts;
mod places;
mod plans;
mod policies;
mod queries;
mod releases;
mod respond;
mod series;
mod stream;
mod taxonomies;
mod upload;
mod verifications;
mod watch;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header;
use axum::middleware;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::sensitive_headers::SetSensitiveRequestHeadersLayer;

use crate::jobs::AppService;
use crate::microdata::formats::IngestLimits;
use crate::problem::{Kind, Problem};

pub use access::AuthMethods;
pub use aside::admin_router;
pub use gateway::{Gateway, Prefix};
pub use health::Readiness;
pub use openapi::document as openapi_document;
pub use places::{ConcurrencyLimit, ConcurrencyLimits};

/// After a refusal so much of the body is still read, and for so long, so that the client gets to see the answer.
const MAX_DRAINED_BYTES: usize = 64 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// What handlers share.
#[derive(Clone)]
pub struct App {
    /// Where callers are served.
    pub desk: AppService,
    /// What uploads may hold.
    pub limits: IngestLimits,
    /// The folder for uploads that are read from their end; what is put there has no name.
    pub spool: Arc<Path>,
    /// The most bytes of an upload's body.
    pub max_upload_bytes: u64,
    /// Bounds uploads under way.
    pub uploads: ConcurrencyLimit,
    /// Bounds plans, and documents of queries, under way.
    pub plans: ConcurrencyLimit,
    /// Bounds requests of every kind.
    pub bounds: ConcurrencyLimits,
    /// What callers prove themselves with.
    pub accepts: AuthMethods,
    /// Whether requests can be served.
    pub readiness: Readiness,
    /// What stands before the service.
    pub gateway: Gateway,
}

/// The service.
pub fn router(app: App) -> Router {
    let (routes, document) = openapi::routes().split_for_parts();
    let requests = app.bounds.requests.clone();
    // a document that cannot be written is served as null; the committed copy shows that this one can
    let document = openapi::completed(&document).unwrap_or_default();
    let gateway = app.gateway.clone();
    let guarded = guard::OriginPolicy { any_host: app.accepts.something(), gateway: gateway.clone() };
    let routes = routes
        .layer(middleware::from_fn_with_state(app.clone(), access::authorize))
        .with_state(app)
        .merge(docs::routes(document))
        .fallback(|| async { no_such_path() })
        .method_not_allowed_fallback(|| async {
            Problem::new(Kind::MethodNotAllowed, "the path exists, but not with this method")
        })
        .layer(middleware::from_fn_with_state(guarded, guard::check_origin))
        .layer(middleware::from_fn(gateway::strip_path_prefix))
        .layer(CatchPanicLayer::custom(respond::panic_response))
        .layer(middleware::from_fn_with_state(requests, places::limit_concurrency))
        .layer(middleware::from_fn(headers::security_headers))
        .layer(middleware::from_fn(watch::trace_request))
        // whatever shows headers shows no token
        .layer(SetSensitiveRequestHeadersLayer::new([header::AUTHORIZATION]));
    gateway.before(routes)
}

fn no_such_path() -> Problem {
    Problem::new(Kind::NotFound, "there is no such path")
}
