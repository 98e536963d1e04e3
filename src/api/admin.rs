//! The operators' address: metrics and health, without data and without keys.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router, middleware};
use tokio::sync::Mutex;

use super::http::app::Readiness;
use super::http::error::no_such_path;
use super::http::headers;
use super::routes::health::{Health, healthz};
use super::routes::table::ROUTES;
use crate::clock::Clock;
use crate::meter;
use crate::microdata::formats::InputFormat;
use crate::problem::Problem;
use crate::spec::METHOD_NAMES;
use crate::telemetry::Recorder;

/// The longest wait for the store; the other metrics are served without it.
const STORE_TIMEOUT: Duration = Duration::from_secs(3);

/// The shortest time between two queries of the store.
const STORE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// State of the handlers.
#[derive(Clone)]
struct AdminState {
    readiness: Readiness,
    clock: Clock,
    recorder: Recorder,
    last_poll: Arc<Mutex<Option<Instant>>>,
}

/// The router of `/metrics`, `/healthz` and `/readyz`.
pub fn admin_router(readiness: Readiness, clock: Clock, recorder: Recorder) -> Router {
    let routes: Vec<_> = ROUTES.iter().map(|route| (route.method, route.path)).collect();
    meter::begin(&routes, METHOD_NAMES, &InputFormat::ALL.map(InputFormat::media_type));
    let state = AdminState { readiness, clock, recorder, last_poll: Arc::default() };
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .fallback(|| async { no_such_path() })
        .with_state(state)
        .layer(middleware::from_fn(headers::security_headers))
}

async fn readyz(State(state): State<AdminState>) -> Result<Json<Health>, Problem> {
    state.readiness.check().await.map(|()| Json(Health::OK))
}

async fn metrics(State(state): State<AdminState>) -> impl IntoResponse {
    state.poll_store().await;
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], state.recorder.render())
}

impl AdminState {
    /// Updates the metrics of the store, at most once per interval.
    async fn poll_store(&self) {
        let mut last_poll = self.last_poll.lock().await;
        if last_poll.is_some_and(|last| last.elapsed() < STORE_POLL_INTERVAL) {
            return;
        }
        let found = match tokio::time::timeout(STORE_TIMEOUT, self.readiness.store.backlog()).await {
            Ok(Ok(backlog)) => {
                let waited = backlog.oldest_queued.map(|oldest| self.clock.now() - oldest);
                let waited = waited.and_then(|waited| waited.to_std().ok()).unwrap_or_default();
                Some((backlog.queued, backlog.running, waited))
            }
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "store metrics are unavailable");
                None
            }
            Err(_elapsed) => None,
        };
        meter::backlog(found);
        *last_poll = Some(Instant::now());
    }
}
