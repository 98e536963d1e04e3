//! Whether the service lives and can serve.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use super::App;
use crate::jobs::{Store, StoreError};
use crate::problem::{Kind, Problem};

/// A store that takes longer cannot serve.
const READINESS_TIMEOUT: Duration = Duration::from_secs(3);

/// What it takes to serve.
#[derive(Clone)]
pub struct Readiness {
    /// Must answer, with the tables that this process knows.
    pub store: Arc<dyn Store>,
    /// Set as soon as the process was told to stop.
    pub draining: CancellationToken,
}

impl Readiness {
    /// Whether requests can be served.
    ///
    /// # Errors
    /// `unavailable`, with the reason.
    pub async fn check(&self) -> Result<(), Problem> {
        let unavailable = |detail: &str| Problem::new(Kind::Unavailable, detail).retry_after(5);
        if self.draining.is_cancelled() {
            return Err(unavailable("the process is stopping"));
        }
        match tokio::time::timeout(READINESS_TIMEOUT, self.store.check()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(StoreError::Schema(said))) => {
                tracing::warn!(said, "the store has other tables than this process opened");
                Err(unavailable("the tables of the store are of another version"))
            }
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "the store does not answer");
                Err(unavailable("the store does not answer"))
            }
            Err(_elapsed) => Err(unavailable("the store does not answer in time")),
        }
    }
}

/// How the service is.
#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`
    status: &'static str,
}

impl Health {
    pub(super) const OK: Self = Self { status: "ok" };
}

/// Whether the process lives
///
/// Answers as long as the process can answer at all: for a supervisor that restarts it otherwise.
#[utoipa::path(get, path = "/healthz", tag = "operation", responses((status = 200, body = Health)))]
pub(super) async fn healthz() -> Json<Health> {
    Json(Health::OK)
}

/// Whether requests can be served
///
/// The store answers, its tables are of the version that this process opened, and the process was not told to stop.
#[utoipa::path(get, path = "/readyz", tag = "operation",
    responses((status = 200, body = Health)))]
pub(super) async fn readyz(State(app): State<App>) -> Result<Json<Health>, Problem> {
    app.readiness.check().await.map(|()| Json(Health::OK))
}
