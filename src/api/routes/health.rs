//! Liveness and readiness.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::http::app::App;
use crate::problem::Problem;

/// The state of the service.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct Health {
    /// `ok`
    status: &'static str,
}

impl Health {
    pub(in crate::api) const OK: Self = Self { status: "ok" };
}

/// Checks liveness
///
/// Succeeds whenever the process can answer. A supervisor restarts the process otherwise.
#[utoipa::path(get, path = "/healthz", tag = "operation", responses((status = 200, body = Health)))]
pub(in crate::api) async fn healthz() -> Json<Health> {
    Json(Health::OK)
}

/// Checks readiness
///
/// Succeeds if the store answers with the schema that this process opened and the process is not stopping.
#[utoipa::path(get, path = "/readyz", tag = "operation",
    responses((status = 200, body = Health)))]
pub(in crate::api) async fn readyz(State(app): State<App>) -> Result<Json<Health>, Problem> {
    app.readiness.check().await.map(|()| Json(Health::OK))
}
