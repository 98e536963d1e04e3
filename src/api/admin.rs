//! What an operator's tools ask on an address of its own: metrics and health. It holds no data, and asks for no key.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router, middleware};
use tokio::sync::Mutex;

use super::http::access::ACCESS;
use super::http::app::Readiness;
use super::http::error::no_such_path;
use super::http::headers;
use super::routes::health::{Health, healthz};
use crate::clock::Clock;
use crate::meter;
use crate::microdata::formats::InputFormat;
use crate::problem::Problem;
use crate::spec::METHODS;
use crate::telemetry::Recorder;

/// A store that takes longer is not waited for: the other metrics are told all the same.
const STORE_TIMEOUT: Duration = Duration::from_secs(3);

/// However often it is asked, the store is asked no more often.
const STORE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// What the routes share.
#[derive(Clone)]
struct AdminState {
    readiness: Readiness,
    clock: Clock,
    recorder: Recorder,
    asked: Arc<Mutex<Option<Instant>>>,
}

/// `/metrics`, `/healthz` and `/readyz`.
pub fn admin_router(readiness: Readiness, clock: Clock, recorder: Recorder) -> Router {
    let routes: Vec<_> = ACCESS.iter().map(|&(method, route, _)| (method, route)).collect();
    meter::begin(&routes, METHODS, &InputFormat::ALL.map(InputFormat::media_type));
    let aside = AdminState { readiness, clock, recorder, asked: Arc::default() };
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .fallback(|| async { no_such_path() })
        .with_state(aside)
        .layer(middleware::from_fn(headers::security_headers))
}

async fn readyz(State(aside): State<AdminState>) -> Result<Json<Health>, Problem> {
    aside.readiness.check().await.map(|()| Json(Health::OK))
}

async fn metrics(State(aside): State<AdminState>) -> impl IntoResponse {
    aside.look().await;
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], aside.recorder.render())
}

impl AdminState {
    /// Reads from the store what is told of it.
    async fn look(&self) {
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|asked| asked.elapsed() < STORE_POLL_INTERVAL) {
            return;
        }
        let found = match tokio::time::timeout(STORE_TIMEOUT, self.readiness.store.backlog()).await {
            Ok(Ok(backlog)) => {
                let waited = backlog.oldest_queued.map(|oldest| self.clock.now() - oldest);
                let waited = waited.and_then(|waited| waited.to_std().ok()).unwrap_or_default();
                Some((backlog.queued, backlog.running, waited))
            }
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "the store tells no metrics");
                None
            }
            Err(_elapsed) => None,
        };
        meter::backlog(found);
        *asked = Some(Instant::now());
    }
}
