//! Dry runs.

use axum::Json;
use axum::extract::State;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::JsonDocument;
use crate::engine::Plan;
use crate::problem::Problem;

/// The specification of a job, and tables that are proposed for it; read by hand, its schema is made from that of a job's.
#[derive(ToSchema)]
#[expect(dead_code, reason = "gives the schema its name")]
pub(in crate::api) struct PlanDocument {
    dataset: Uuid,
}

/// What a job with this document would do
///
/// With a `schema` the tables that it proposes are judged, in place of those that a job would make: a rule that they break says
/// which known attributes reach the sensitive one, and through which tables.
///
/// Answers 200 also when the job would be refused: `feasible` is then false and `problems` holds the refusal.
#[utoipa::path(post, path = "/v1/plans", tag = "plans", request_body = PlanDocument,
    responses((status = 200, body = Plan)))]
pub(in crate::api) async fn create(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    JsonDocument(document): JsonDocument,
) -> Result<Json<Plan>, Problem> {
    let _place = app.plans.try_acquire()?;
    app.service.plan(&caller, &document).await.map(Json)
}
