//! What the original says of a release, for those alone who may know it.

use axum::Json;
use axum::extract::State;

use super::served;
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::IdPath;
use crate::problem::Problem;
use crate::report::InternalReport;

/// What the original says of a release
///
/// How far the readers' model is from the original and how wrong their counts are, as the specification's `internal` asks for it.
/// Each figure tells of the original: none of it stands in the manifest, the report or the archive. It is gone with the original, and
/// with the release. Every reading is in the audit log.
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
