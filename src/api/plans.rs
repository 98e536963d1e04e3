//! Dry runs.

use axum::Json;
use axum::extract::State;

use super::App;
use super::access::Who;
use super::extract::Document;
use super::jobs::JobDocument;
use crate::engine::Plan;
use crate::problem::Problem;

/// What a job with this document would do
///
/// Answers 200 also when the job would be refused: `feasible` is then false and `problems` holds the refusal.
#[utoipa::path(post, path = "/v1/plans", tag = "plans", request_body = JobDocument,
    responses((status = 200, body = Plan)))]
pub(super) async fn create(
    State(app): State<App>,
    Who(caller): Who,
    Document(document): Document,
) -> Result<Json<Plan>, Problem> {
    let _place = app.plans.take()?;
    app.desk.plan(&caller, &document).await.map(Json)
}
