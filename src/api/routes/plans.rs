//! Dry runs of jobs.

use axum::Json;
use axum::extract::State;

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::JsonDocument;
use crate::engine::Plan;
use crate::problem::Problem;

/// Plans a job without running it
///
/// With `schema`, the plan checks the proposed tables instead of designing tables. For each broken rule it names the known
/// attributes that reach the sensitive one, and the tables on the path.
///
/// The answer is 200 also for an infeasible job: `feasible` is false and `problems` contains the reasons.
#[utoipa::path(post, path = "/v1/plans", tag = "plans", 
    request_body = ref("#/components/schemas/PlanDocument"), responses((status = 200, body = Plan)))]
pub(in crate::api) async fn create(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    JsonDocument(document): JsonDocument,
) -> Result<Json<Plan>, Problem> {
    let _permit = app.plans.try_acquire(&caller.tenant)?;
    app.service.plan(&caller, &document).await.map(Json)
}
