//! Listing, describing and purging datasets.

use std::collections::{BTreeMap, BTreeSet};

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
use crate::app::{AppService, CommonPersonCount};
use crate::microdata::ColumnProfile;
use crate::ports::{BoundedContributions, DatasetRecord, EngineTable, ListedDataset, ReleaseFilter};
use crate::problem::Problem;
use crate::publication::ContributionChoice;
use crate::report::{ManifestRatio, SpecificationNotice};

/// An uploaded microdata table.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct Dataset {
    id: Uuid,
    name: Option<String>,
    /// The ledger's name for the people of the dataset: the population, or the dataset's own id.
    series: String,
    /// The population whose persons the rows are about; null for an undeclared dataset.
    population: Option<String>,
    /// Per key system that identifies persons, the columns of the key.
    person: BTreeMap<String, Vec<String>>,
    /// Whether persons are identified, or only equal tables are recognized.
    identity: PersonIdentity,
    /// What an upload of an earlier version declared of overlaps with other series; it has no effect any more.
    same_people: Option<bool>,
    record_key: Option<Vec<String>>,
    subject: Option<String>,
    max_rows_per_subject: Option<u64>,
    /// What was left out of the upload, where `keep` bounded the rows of a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    contributions: Option<Contributions>,
    created_at: DateTime<Utc>,
    rows: u64,
    /// Size of the uploaded body in bytes.
    bytes: u64,
    /// The media type of the upload.
    format: String,
    /// Where the rows are, if they stay in another engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    place: Option<TablePlace>,
    purged_at: Option<DateTime<Utc>>,
    /// Empty after a purge.
    columns: Vec<DatasetColumn>,
    /// What was published before of these persons; computed for each answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    published_before: Option<PublishedBefore>,
    /// What is not known of the persons; only in the answer to the upload, and in plans.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<SpecificationNotice>,
}

/// A table of another engine.
#[derive(Serialize, ToSchema)]
struct TablePlace {
    /// The name of the engine.
    engine: String,
    /// The name of the table in the engine, or its path.
    table: String,
}

impl From<EngineTable> for TablePlace {
    fn from(EngineTable { engine, table }: EngineTable) -> Self {
        Self { engine, table }
    }
}

/// What was left out of an upload that keeps a bounded number of rows of each person.
#[derive(Serialize, ToSchema)]
struct Contributions {
    /// How the kept rows of a person were chosen.
    choice: ContributionChoice,
    /// Rows that were left out.
    left_out_rows: u64,
    /// Persons of whom rows were left out.
    cut_persons: u64,
}

impl From<BoundedContributions> for Contributions {
    fn from(BoundedContributions { choice, left_out_rows, cut_persons }: BoundedContributions) -> Self {
        Self { choice, left_out_rows, cut_persons }
    }
}

/// A dataset as an item of a list, without its columns.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct DatasetItem {
    id: Uuid,
    name: Option<String>,
    /// The ledger's name for the people of the dataset: the population, or the dataset's own id.
    series: String,
    /// The population whose persons the rows are about; null for an undeclared dataset.
    population: Option<String>,
    /// Per key system that identifies persons, the columns of the key.
    person: BTreeMap<String, Vec<String>>,
    /// Whether persons are identified, or only equal tables are recognized.
    identity: PersonIdentity,
    record_key: Option<Vec<String>>,
    subject: Option<String>,
    max_rows_per_subject: Option<u64>,
    created_at: DateTime<Utc>,
    rows: u64,
    /// Size of the uploaded body in bytes.
    bytes: u64,
    /// The media type of the upload.
    format: String,
    purged_at: Option<DateTime<Utc>>,
}

impl From<ListedDataset> for DatasetItem {
    fn from(dataset: ListedDataset) -> Self {
        Self {
            id: dataset.id,
            name: dataset.name,
            series: dataset.series,
            population: dataset.population,
            identity: PersonIdentity::from_keys(&dataset.person),
            person: dataset.person,
            record_key: dataset.record_key,
            subject: dataset.subject,
            max_rows_per_subject: dataset.max_rows_per_subject,
            created_at: dataset.created_at,
            rows: dataset.rows,
            bytes: dataset.bytes,
            format: dataset.format,
            purged_at: dataset.purged_at,
        }
    }
}

/// How the persons of a dataset are known.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum PersonIdentity {
    /// By keys: common persons of two datasets are found.
    Identified,
    /// Not at all: only an equal table is recognized.
    ContentOnly,
}

impl PersonIdentity {
    fn from_keys(keys: &BTreeMap<String, Vec<String>>) -> Self {
        if keys.is_empty() { Self::ContentOnly } else { Self::Identified }
    }
}

/// What was published before of the persons of a dataset.
#[derive(Serialize, ToSchema)]
struct PublishedBefore {
    /// The persons that stand in a release, by the key system that finds most of them; of more than 131,072 persons, those with the
    /// lowest hashes are counted. Null where persons are not identified.
    persons: Option<ManifestRatio>,
    /// Whether an equal table was published.
    same_table: bool,
    /// Up to 100 populations and undeclared datasets with releases of which it is unknown whether they share persons with this one.
    /// A job is refused until that is known.
    #[serde(rename = "unknown_beside")]
    unknown_places: BTreeSet<String>,
}

/// A column of a dataset with its counts.
#[derive(Serialize, ToSchema)]
struct DatasetColumn {
    name: String,
    /// `integer`, `decimal` or `text`; from typed formats also `boolean`, `date` or `timestamp`
    r#type: crate::microdata::AttributeType,
    /// The number of distinct values without missing ones; null above the limit, where the column can only be dropped.
    distinct: Option<u64>,
    missing: u64,
    /// The share of the most frequent value.
    top_share: ManifestRatio,
    /// Whether nearly every row has a distinct value.
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
        Ok(Self {
            id: record.id,
            name: record.name,
            series: record.series,
            identity: PersonIdentity::from_keys(&record.person),
            population: record.population,
            person: record.person,
            same_people: record.same_people,
            record_key: record.record_key,
            subject: record.subject,
            max_rows_per_subject: record.max_rows_per_subject,
            contributions: record.contributions.map(Contributions::from),
            created_at: record.created_at,
            rows: record.rows,
            bytes: record.bytes,
            format: record.format,
            place: record.place.map(TablePlace::from),
            purged_at: record.purged_at,
            columns: profiles.into_iter().map(column).collect(),
            published_before: None,
            warnings: Vec::new(),
        })
    }

    /// A dataset with what was published before of its persons.
    pub(in crate::api) async fn looked_up(service: &AppService, record: DatasetRecord) -> Result<Self, Problem> {
        let found = service.published_before(&record).await?;
        let persons = |of: CommonPersonCount| ManifestRatio { count: of.count, of: of.of };
        let published_before = found.map(|found| PublishedBefore {
            persons: found.persons.map(persons),
            same_table: found.has_same_table,
            unknown_places: found.unknown_places,
        });
        Ok(Self { published_before, ..Self::new(service, record)? })
    }

    /// A new dataset with its warnings.
    pub(in crate::api) async fn warned(
        service: &AppService,
        record: DatasetRecord,
        warnings: Vec<SpecificationNotice>,
    ) -> Result<Self, Problem> {
        Ok(Self { warnings, ..Self::looked_up(service, record).await? })
    }
}

/// Lists the datasets, newest first
///
/// The list includes purged datasets, with the time of the purge. An item has no columns.
#[utoipa::path(get, path = "/v1/datasets", tag = "datasets", params(PageQuery),
    responses((status = 200, body = ListPage<DatasetItem>)))]
pub(in crate::api) async fn list(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    QueryParameters(paging): QueryParameters<PageQuery>,
) -> Result<Json<ListPage<DatasetItem>>, Problem> {
    let cursor = page::cursor(paging.cursor.as_deref())?;
    let page = app.service.store.datasets(&caller.tenant, cursor, page::limit(paging.limit)?).await;
    Ok(Json(ListPage::new(page?, |dataset| Ok(dataset.into()))?))
}

/// Describes a dataset with the counts of its columns
///
/// The upload computes the counts of single columns. A purged dataset is answered 410.
#[utoipa::path(get, path = "/v1/datasets/{id}", tag = "datasets", params(("id" = Uuid, Path)),
    responses((status = 200, body = Dataset)))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
) -> Result<Json<Dataset>, Problem> {
    let dataset = app.service.dataset(&caller, id).await?;
    Ok(Json(Dataset::looked_up(&app.service, dataset).await?))
}

/// The receipt of a purge.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct PurgeReceipt {
    dataset: Uuid,
    purged_at: Option<DateTime<Utc>>,
    /// The number of destroyed rows; 0 of a table whose rows were never kept here.
    rows: u64,
    /// Whether the data key of the dataset is destroyed, so that no copy of its bytes in the store is readable.
    key_destroyed: bool,
    /// The number of releases that remain, with their disclosures in the ledger.
    releases_kept: Vec<Uuid>,
}

/// Destroys the rows of a dataset
///
/// A purged dataset cannot be published again. Its releases remain, and their disclosures still count in the ledger.
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
        let page = store.releases(&caller.tenant, &filter, cursor, 1000).await?;
        releases_kept.extend(page.items.iter().map(|release| release.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let rows = if purged.place.is_some() { 0 } else { purged.rows };
    Ok(Json(PurgeReceipt { dataset: id, purged_at: purged.purged_at, rows, key_destroyed, releases_kept }))
}
