//! Listing releases, manifests and public reports.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::served::read;
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{IdPath, QueryParameters};
use crate::api::http::negotiation::{MediaOffer, negotiate};
use crate::api::http::page;
use crate::api::http::page::ListPage;
use crate::identity::Scope;
use crate::ports::{ListedRelease, ReleaseFilter, StoreError};
use crate::problem::{Kind, Problem};
use crate::publication::ReleaseStatus;
use crate::report::{Manifest, PAGE_POLICY, PublicReport, report_page};

/// A release as an item of a list.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct ReleaseItem {
    /// The release.
    id: Uuid,
    /// The series of all datasets and releases of the same people.
    series: String,
    /// Its dataset.
    dataset: Uuid,
    /// Its method.
    method: String,
    /// Its status.
    status: ReleaseStatus,
    /// The time of its publication.
    created_at: DateTime<Utc>,
}

/// Filters of the list of releases.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct ReleaseQuery {
    /// Only releases of this series.
    series: Option<String>,
    /// Only releases of this dataset.
    dataset: Option<Uuid>,
    /// Only releases of this method.
    method: Option<String>,
    /// Only releases with this status.
    status: Option<String>,
    /// The maximum number of items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// Lists the releases, newest first
///
/// Held releases appear only for keys with the scope `releases:approve`, so that a page can be shorter than its limit.
#[utoipa::path(get, path = "/v1/releases", tag = "releases", params(ReleaseQuery),
    responses((status = 200, body = ListPage<ReleaseItem>)))]
pub(in crate::api) async fn list(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    QueryParameters(query): QueryParameters<ReleaseQuery>,
) -> Result<Json<ListPage<ReleaseItem>>, Problem> {
    let filter =
        ReleaseFilter { series: query.series, dataset: query.dataset, method: query.method, status: query.status };
    let cursor = page::cursor(query.cursor.as_deref())?;
    let page = app.service.store.releases(&caller.tenant, &filter, cursor, page::limit(query.limit)?).await;
    let mut page = page?;
    page.items.retain(|release| release.status != ReleaseStatus::Held || caller.has_scope(Scope::ReleasesApprove));
    let item = |release: ListedRelease| {
        Ok(ReleaseItem {
            id: release.id,
            series: release.series,
            dataset: release.dataset,
            method: release.method,
            status: release.status,
            created_at: release.created_at,
        })
    };
    Ok(Json(ListPage::new(page, item)?))
}

/// Returns the manifest of a release
///
/// The manifest describes the parts, the reason why each rule holds, and figures that a reader can recompute from the parts. A
/// rejected or withdrawn release is answered 410.
#[utoipa::path(get, path = "/v1/releases/{id}", tag = "releases", params(("id" = Uuid, Path)),
    responses((status = 200, body = Manifest)))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
) -> Result<Json<Manifest>, Problem> {
    Ok(Json(read(&app, &caller, id).await?.1))
}

/// The requested format of a report.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct ReportQuery {
    /// `json` or `html`; precedes the Accept header.
    format: Option<String>,
}

/// The formats of reports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum ReportFormat {
    /// For programs.
    Json,
    /// For persons.
    Html,
}

impl ReportQuery {
    /// The format that a caller wants.
    pub(in crate::api) fn format(&self, headers: &HeaderMap) -> Result<ReportFormat, Problem> {
        const FORMATS: [MediaOffer<ReportFormat>; 2] =
            [("json", "application/json", ReportFormat::Json), ("html", "text/html", ReportFormat::Html)];
        let unacceptable = || Problem::new(Kind::NotAcceptable, "the formats of reports are json and html");
        negotiate(&FORMATS, self.format.as_deref(), headers).map(|(.., format)| format).ok_or_else(unacceptable)
    }
}

/// A page under the policy of pages.
pub(in crate::api) fn html_page(page: String) -> Response {
    ([(header::CONTENT_SECURITY_POLICY, PAGE_POLICY.as_str())], Html(page)).into_response()
}

/// Returns the public report of a release
///
/// The report says what is promised and what is not: every rule with what is known before, what it allows and its worst bucket; the
/// rows that are unique, and the values that other columns reveal. The format is JSON by default, or a page of HTML with drawings, to
/// be read or printed. The page is one file without scripts.
#[utoipa::path(get, path = "/v1/releases/{id}/report", tag = "releases", params(("id" = Uuid, Path), ReportQuery),
    responses((status = 200, content((PublicReport = "application/json"), (String = "text/html")))))]
pub(in crate::api) async fn report(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    QueryParameters(query): QueryParameters<ReportQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let format = query.format(&headers)?;
    let (release, manifest) = read(&app, &caller, id).await?;
    let report: Result<PublicReport, _> = serde_json::from_value(release.report);
    let report = report.map_err(StoreError::corrupt)?;
    Ok(match format {
        ReportFormat::Json => Json(report).into_response(),
        ReportFormat::Html => {
            let page = report_page(&report, &manifest);
            html_page(page.map_err(|error| Problem::new(Kind::Internal, error.to_string()))?)
        }
    })
}
