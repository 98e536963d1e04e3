//! Whether the service lives and can serve.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use crate::identity::DEFAULT_TENANT;
use crate::jobs::problem_of;
use crate::problem::Problem;

/// How the service is.
#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`
    status: &'static str,
}

/// Whether the process lives
///
/// Answers as long as the process can answer at all: for a supervisor that restarts it otherwise.
#[utoipa::path(get, path = "/healthz", tag = "operation", responses((status = 200, body = Health)))]
pub(super) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether the store can be reached
///
/// For a load balancer that sends requests elsewhere otherwise.
#[utoipa::path(get, path = "/readyz", tag = "operation",
    responses((status = 200, body = Health)))]
pub(super) async fn readyz(State(app): State<App>) -> Result<Json<Health>, Problem> {
    app.desk.store.datasets(DEFAULT_TENANT, None, 1).await.map_err(|error| problem_of(&error))?;
    Ok(Json(Health { status: "ok" }))
}
