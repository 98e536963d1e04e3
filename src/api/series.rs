//! What the ledger holds of a series.

use axum::Json;
use axum::extract::State;

use super::App;
use super::access::Who;
use super::extract::Name;
use crate::problem::Problem;
use crate::report::Series;

/// What was published of a series
///
/// Disclosures, the rules that stand, which disclosures can be joined, and which pairs of attributes cannot be published side by side
/// any more. Held against each other are disclosures of the same content; the lists show those of all contents.
#[utoipa::path(get, path = "/v1/series/{name}", tag = "ledger", params(("name" = String, Path)),
    responses((status = 200, body = Series)))]
pub(super) async fn get(State(app): State<App>, Who(caller): Who, Name(name): Name) -> Result<Json<Series>, Problem> {
    let _place = app.plans.take()?;
    app.desk.series(&caller, name).await.map(Json)
}
