//! Datasets: lists, descriptions, purge.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{IdPath, QueryParameters};
use crate::api::http::page;
use crate::api::http::page::{ListPage, PageQuery};
use crate::app::AppService;
use crate::microdata::ColumnProfile;
use crate::ports::{DatasetRecord, OverlapShare, ReleaseFilter, SubjectOverlap, problem_of};
use crate::problem::Problem;
use crate::report::{ManifestRatio, SpecificationNotice};

/// An uploaded table.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct Dataset {
    id: Uuid,
    name: Option<String>,
    /// All that speaks of the same people; the dataset's own id unless named.
    series: String,
    same_people: Option<bool>,
    record_key: Option<Vec<String>>,
    subject: Option<String>,
    max_rows_per_subject: Option<u64>,
    created_at: DateTime<Utc>,
    rows: u64,
    /// Bytes of the uploaded body.
    bytes: u64,
    /// The media type of the upload.
    format: String,
    purged_at: Option<DateTime<Utc>>,
    /// None once the dataset is purged.
    columns: Vec<DatasetColumn>,
    /// Earlier uploads of other series that share people with it, by series. Where they share more than one in a hundred, jobs need
    /// the dataset in that series, or `same_people=false` with a reason.
    overlaps: Vec<SeriesOverlap>,
    /// What cannot be told of its people; in the answer to the upload alone, where there is something. Plans repeat it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<SpecificationNotice>,
}

/// People that another series speaks of too. Of several of its datasets the figures are those of the one that shares most.
#[derive(Serialize, ToSchema)]
struct SeriesOverlap {
    series: String,
    /// Its datasets that share some.
    datasets: Vec<Uuid>,
    /// Rows of this dataset that the other has too, of those that were compared: of long tables a sample, of rows that differ from
    /// every other one in two attributes. Null where there are fewer than 1,000 such rows and the tables are not equal.
    rows: Option<ManifestRatio>,
    /// Record keys of this dataset that the other has too, of those that were compared: of long tables the lowest hashes. Null unless
    /// both have record keys.
    record_keys: Option<ManifestRatio>,
}

/// A column of an uploaded table.
#[derive(Serialize, ToSchema)]
struct DatasetColumn {
    name: String,
    /// `integer`, `decimal` or `text`, and from typed formats `boolean`, `date` or `timestamp`
    r#type: crate::microdata::AttributeType,
    /// Distinct values, a missing one not counted; null above the limit, and the column can then only be dropped.
    distinct: Option<u64>,
    missing: u64,
    /// The share of the most frequent value.
    top_share: ManifestRatio,
    /// Whether nearly every row has a value of its own.
    identifier: bool,
}

impl Dataset {
    pub(in crate::api) fn new(service: &AppService, record: DatasetRecord) -> Result<Self, Problem> {
        let profiles = service.profiles(&record)?;
        let column = |profile: ColumnProfile| DatasetColumn {
            name: profile.name,
            r#type: profile.kind,
            distinct: profile.distinct,
            missing: profile.missing,
            top_share: ManifestRatio { count: profile.top, of: record.rows },
            identifier: profile.identifier,
        };
        let ratio = |share: OverlapShare| ManifestRatio { count: share.count, of: share.of };
        let overlap = |overlap: SubjectOverlap| SeriesOverlap {
            series: overlap.series,
            datasets: overlap.datasets,
            rows: overlap.rows.map(ratio),
            record_keys: overlap.record_keys.map(ratio),
        };
        Ok(Self {
            id: record.id,
            name: record.name,
            series: record.series,
            same_people: record.same_people,
            record_key: record.record_key,
            subject: record.subject,
            max_rows_per_subject: record.max_rows_per_subject,
            created_at: record.created_at,
            rows: record.rows,
            bytes: record.bytes,
            format: record.format,
            purged_at: record.purged_at,
            columns: profiles.into_iter().map(column).collect(),
            overlaps: record.overlaps.into_iter().map(overlap).collect(),
            warnings: Vec::new(),
        })
    }

    /// A new one, with what cannot be told of its people.
    pub(in crate::api) fn warned(
        service: &AppService,
        record: DatasetRecord,
        warnings: Vec<SpecificationNotice>,
    ) -> Result<Self, Problem> {
        Ok(Self { warnings, ..Self::new(service, record)? })
    }
}

/// The datasets
///
/// Newest first, in pages. Purged ones are listed too, with the time when they were purged.
#[utoipa::path(get, path = "/v1/datasets", tag = "datasets", params(PageQuery),
    responses((status = 200, body = ListPage<Dataset>)))]
pub(in crate::api) async fn list(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    QueryParameters(paging): QueryParameters<PageQuery>,
) -> Result<Json<ListPage<Dataset>>, Problem> {
    let cursor = page::cursor(paging.cursor.as_deref())?;
    let page = app.service.store.datasets(&caller.tenant, cursor, page::limit(paging.limit)?).await;
    Ok(Json(ListPage::new(page.map_err(|error| problem_of(&error))?, |record| Dataset::new(&app.service, record))?))
}

/// One dataset, with the counts of its columns
///
/// The counts are of single columns: they are kept when the table is uploaded. A purged dataset is answered 410.
#[utoipa::path(get, path = "/v1/datasets/{id}", tag = "datasets", params(("id" = Uuid, Path)),
    responses((status = 200, body = Dataset)))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
) -> Result<Json<Dataset>, Problem> {
    Ok(Json(Dataset::new(&app.service, app.service.dataset(&caller, id).await?)?))
}

/// The receipt of a purge.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct PurgeReceipt {
    dataset: Uuid,
    purged_at: Option<DateTime<Utc>>,
    /// The rows that were destroyed.
    rows: u64,
    /// That the key under which the dataset was encrypted is destroyed: whatever is left of its bytes anywhere in the store cannot
    /// be read.
    key_destroyed: bool,
    /// Releases of the dataset that stay, with their place in the ledger.
    releases_kept: Vec<Uuid>,
}

/// Destroys the rows of a dataset; its releases and the ledger stay
///
/// Nothing more can be published from it. What was published stays, and keeps counting in the ledger.
#[utoipa::path(delete, path = "/v1/datasets/{id}", tag = "datasets", params(("id" = Uuid, Path)),
    responses((status = 200, body = PurgeReceipt)))]
pub(in crate::api) async fn purge(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
) -> Result<Json<PurgeReceipt>, Problem> {
    let store = &app.service.store;
    let purged = app.service.purge(&caller, id).await?;
    let key_destroyed = purged.wrapped_key.is_none();
    let filter = ReleaseFilter { dataset: Some(id), ..ReleaseFilter::default() };
    let (mut releases_kept, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.releases(&caller.tenant, &filter, cursor, 1000).await.map_err(|error| problem_of(&error))?;
        releases_kept.extend(page.items.iter().map(|release| release.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(Json(PurgeReceipt { dataset: id, purged_at: purged.purged_at, rows: purged.rows, key_destroyed, releases_kept }))
}
