//! The internal report of a release, for callers with the scope `releases:internal`.

use axum::Json;
use axum::extract::State;

use super::served;
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::IdPath;
use crate::problem::Problem;
use crate::report::InternalReport;

/// Returns the internal report of a release
///
/// The report measures the error of the readers' model and of their counts, as `internal` of the specification requests. Its figures
/// depend on the original, so the manifest, the public report and the archive omit them. A purge of the dataset or a withdrawal of
/// the release removes the report. The audit log records every access.
#[utoipa::path(get, path = "/v1/releases/{id}/internal-report", tag = "releases", params(("id" = Uuid, Path)),
    responses((status = 200, body = InternalReport)))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
) -> Result<Json<InternalReport>, Problem> {
    let (release, _) = served::read(&app, &caller, id).await?;
    app.service.internal_report(&caller, &release).await.map(Json)
}
