//! Releases: lists, manifests, public reports.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Html, IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::App;
use super::accept::{MediaOffer, negotiate};
use super::access::Authenticated;
use super::extract::{IdPath, QueryParameters};
use super::listing::{self, ListPage};
use crate::identity::{Caller, Scope};
use crate::jobs::{ReleaseFilter, ReleaseRecord, StoreError, problem_of};
use crate::problem::{Kind, Problem};
use crate::report::{Manifest, PublicReport, report_page};

/// A release in a list.
#[derive(Serialize, ToSchema)]
pub(super) struct ReleaseItem {
    id: Uuid,
    series: String,
    dataset: Uuid,
    method: String,
    status: String,
    created_at: DateTime<Utc>,
}

/// Which releases to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ReleaseQuery {
    /// Only releases of this series.
    series: Option<String>,
    /// Only releases of this dataset.
    dataset: Option<Uuid>,
    /// Only releases of this method.
    method: Option<String>,
    /// Only releases of this status.
    status: Option<String>,
    /// The most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// The releases
///
/// Held ones are listed for those alone who may approve them; a page may be shorter for it.
#[utoipa::path(get, path = "/v1/releases", tag = "releases", params(ReleaseQuery),
    responses((status = 200, body = ListPage<ReleaseItem>)))]
pub(super) async fn list(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    QueryParameters(query): QueryParameters<ReleaseQuery>,
) -> Result<Json<ListPage<ReleaseItem>>, Problem> {
    let filter =
        ReleaseFilter { series: query.series, dataset: query.dataset, method: query.method, status: query.status };
    let cursor = listing::cursor(query.cursor.as_deref())?;
    let page = app.desk.store.releases(&caller.tenant, &filter, cursor, listing::limit(query.limit)?).await;
    let mut page = page.map_err(|error| problem_of(&error))?;
    page.items.retain(|release| release.status != "held" || caller.may(Scope::ReleasesApprove));
    let item = |release: ReleaseRecord| {
        Ok(ReleaseItem {
            id: release.id,
            series: release.series,
            dataset: release.dataset,
            method: release.method,
            status: release.status,
            created_at: release.created_at,
        })
    };
    Ok(Json(ListPage::of(page, item)?))
}

/// A release that is served to a caller, and its manifest. Held ones are there for those alone who may approve them.
pub(super) async fn read(app: &App, caller: &Caller, id: Uuid) -> Result<(ReleaseRecord, Manifest), Problem> {
    let release = app.desk.store.release(&caller.tenant, id).await.map_err(|error| problem_of(&error))?;
    let Some(release) = release else { return Err(app.desk.no_such_release(caller, id).await) };
    if release.status == "held" && !caller.may(Scope::ReleasesApprove) {
        return Err(Problem::new(Kind::NotFound, "there is no such release"));
    }
    if !release.is_served() {
        return Err(gone());
    }
    let manifest = manifest(&release)?;
    Ok((release, manifest))
}

/// Notes that rows of a release are about to be given, before the first byte: what was read cannot be taken back by a rejection.
///
/// # Errors
/// `gone` when it was rejected or withdrawn meanwhile, or the store's problem.
pub(super) async fn open(app: &App, caller: &Caller, release: &ReleaseRecord) -> Result<(), Problem> {
    if release.status != "held" {
        return Ok(());
    }
    if app.desk.read_held(caller, release.id).await? { Ok(()) } else { Err(gone()) }
}

/// What to answer when parts that were there are no more.
///
/// # Errors
/// `gone` when the release was rejected or withdrawn meanwhile, or the store's problem.
pub(super) async fn still_served(app: &App, release: &ReleaseRecord) -> Result<(), Problem> {
    let now = app.desk.store.release(&release.tenant, release.id).await.map_err(|error| problem_of(&error))?;
    if now.is_some_and(|now| now.is_served()) { Ok(()) } else { Err(gone()) }
}

fn gone() -> Problem {
    Problem::new(Kind::Gone, "the release was rejected or withdrawn")
}

/// The manifest, with the status that the release has now.
pub(super) fn manifest(release: &ReleaseRecord) -> Result<Manifest, Problem> {
    let manifest: Result<Manifest, _> = serde_json::from_value(release.manifest.clone());
    let mut manifest = manifest.map_err(|error| problem_of(&StoreError::corrupt(error)))?;
    manifest.status.clone_from(&release.status);
    Ok(manifest)
}

/// The manifest of a release
///
/// What was published, why every rule holds, and figures that anyone can recompute from the parts. A rejected or withdrawn
/// release is answered 410.
#[utoipa::path(get, path = "/v1/releases/{id}", tag = "releases", params(("id" = Uuid, Path)),
    responses((status = 200, body = Manifest)))]
pub(super) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
) -> Result<Json<Manifest>, Problem> {
    Ok(Json(read(&app, &caller, id).await?.1))
}

/// How to give a report.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportQuery {
    /// `json` or `html`; goes before the Accept header.
    format: Option<String>,
}

/// What a release promises and why, in words
///
/// A function of the manifest alone, for whoever files or reads the release: as JSON, which is what is served when nothing else is asked
/// for, or as a page of HTML with pictures of the sizes of buckets.
#[utoipa::path(get, path = "/v1/releases/{id}/report", tag = "releases", params(("id" = Uuid, Path), ReportQuery),
    responses((status = 200, content((PublicReport = "application/json"), (String = "text/html")))))]
pub(super) async fn report(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    QueryParameters(query): QueryParameters<ReportQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    const FORMATS: [MediaOffer<bool>; 2] = [("json", "application/json", false), ("html", "text/html", true)];
    let unacceptable = || Problem::new(Kind::NotAcceptable, "reports are served as json and html");
    let (.., as_page) = negotiate(&FORMATS, query.format.as_deref(), &headers).ok_or_else(unacceptable)?;
    let (release, manifest) = read(&app, &caller, id).await?;
    let report: Result<PublicReport, _> = serde_json::from_value(release.report);
    let report = report.map_err(|error| problem_of(&StoreError::corrupt(error)))?;
    Ok(if as_page { Html(report_page(&report, &manifest)).into_response() } else { Json(report).into_response() })
}
