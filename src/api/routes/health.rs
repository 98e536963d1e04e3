//! Whether the service lives and can serve.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::http::app::App;
use crate::problem::Problem;

/// How the service is.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct Health {
    /// `ok`
    status: &'static str,
}

impl Health {
    pub(in crate::api) const OK: Self = Self { status: "ok" };
}

/// Whether the process lives
///
/// Answers as long as the process can answer at all: for a supervisor that restarts it otherwise.
#[utoipa::path(get, path = "/healthz", tag = "operation", responses((status = 200, body = Health)))]
pub(in crate::api) async fn healthz() -> Json<Health> {
    Json(Health::OK)
}

/// Whether requests can be served
///
/// The store answers, its tables are of the version that this process opened, and the process was not told to stop.
#[utoipa::path(get, path = "/readyz", tag = "operation",
    responses((status = 200, body = Health)))]
pub(in crate::api) async fn readyz(State(app): State<App>) -> Result<Json<Health>, Problem> {
    app.readiness.check().await.map(|()| Json(Health::OK))
}
