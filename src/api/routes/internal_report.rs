//! The internal report of a release, for callers with the scope `releases:internal`.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};

use super::releases::{ReportFormat, ReportQuery, html_page};
use super::served;
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{IdPath, QueryParameters};
use crate::problem::Problem;
use crate::report::{InternalReport, internal_report_page};

/// Returns the internal report of a release
///
/// The report measures the error of the readers' model and of their counts, as `internal` of the specification requests. Its figures
/// depend on the original, so the manifest, the public report and the archive omit them. A purge of the dataset or a withdrawal of
/// the release removes the report. The audit log records every access.
#[utoipa::path(get, path = "/v1/releases/{id}/internal-report", tag = "releases", params(("id" = Uuid, Path), ReportQuery),
    responses((status = 200, content((InternalReport = "application/json"), (String = "text/html")))))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    QueryParameters(query): QueryParameters<ReportQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let format = query.format(&headers)?;
    let (release, manifest) = served::read(&app, &caller, id).await?;
    let report = app.service.internal_report(&caller, &release).await?;
    Ok(match format {
        ReportFormat::Json => Json(report).into_response(),
        ReportFormat::Html => html_page(internal_report_page(&report, &manifest)),
    })
}
