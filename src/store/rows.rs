//! Rows as they are read, and the records they become. A row that does not fit its record is corrupt.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::FromRow;
use sqlx::types::Json;
use uuid::Uuid;

use crate::control::Progress;
use crate::identity::{Actor, ApiKey, TokenHash};
use crate::ports::{
    ActiveRuleRecord, AuditEntry, BoundedContributions, Cursor, DatasetRecord, DisclosureRecord, DocumentVersion,
    EngineTable, Heartbeat, IdempotencyRecord, JobRecord, NamedDocument, PortableDisclosure, ReleaseEvent,
    ReleaseRecord, RotationCounts, SeriesDataset, SeriesEntry, SeriesRecord, StatementRecord, StoreError,
    TenantSettings,
};
use crate::publication::ReleaseStatus;
use crate::vault::{Ciphertext, CiphertextContext, Purpose};

mod chains;
mod lists;
mod marks;
mod numbers;
mod parts;
mod people;
mod portable;
mod series;

pub(super) use chains::{ChainRow, ChainStateRow, chain_states};
pub(super) use lists::{ListedDatasetRow, ListedJobRow, ListedReleaseRow};
pub(super) use marks::{CommonMarkRow, IndexedMarkRow, KeptSamples, LIVE_HOLDERS, MarkHolder, SampleRow, common_marks};
use numbers::hash;
pub(super) use numbers::{number, stored};
pub(super) use parts::{NewPartChunk, PartChunkRow, PartObjectRow};
pub(super) use people::{
    CoverageRow, CutsRow, EvidenceRow, KeySystemRow, PersonRange, PopulationRow, SeparationRow, joined, parted,
    registry,
};
pub(super) use portable::{
    PortableCoverageRow, PortableKeySystemRow, PortablePopulationRow, PortableReleaseRow, PortableRuleRow,
    PortableSeparationRow, PortableStatementRow, PortableVersionRow,
};
pub(super) use series::StatementRow;

#[derive(FromRow)]
pub(super) struct DatasetRow {
    id: Uuid,
    tenant: String,
    name: Option<String>,
    series: String,
    same_people: Option<bool>,
    same_people_reason: Option<String>,
    #[sqlx(json(nullable))]
    record_key: Option<Vec<String>>,
    subject: Option<String>,
    max_rows_per_subject: Option<i64>,
    population: Option<String>,
    #[sqlx(json(nullable))]
    person: Option<BTreeMap<String, Vec<String>>>,
    uploaded_by: Option<String>,
    #[sqlx(json(nullable))]
    contributions: Option<BoundedContributions>,
    #[sqlx(json(nullable))]
    place: Option<EngineTable>,
    created_at: DateTime<Utc>,
    row_count: i64,
    byte_count: i64,
    format: String,
    content_hash: Vec<u8>,
    chunk_count: i64,
    profiles: Option<Vec<u8>>,
    purged_at: Option<DateTime<Utc>>,
    wrapped_key: Option<Vec<u8>>,
}

impl TryFrom<DatasetRow> for DatasetRecord {
    type Error = StoreError;

    fn try_from(row: DatasetRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            tenant: row.tenant,
            name: row.name,
            series: row.series,
            same_people: row.same_people,
            same_people_reason: row.same_people_reason,
            population: row.population,
            person: row.person.unwrap_or_default(),
            record_key: row.record_key,
            subject: row.subject,
            max_rows_per_subject: row.max_rows_per_subject.map(number).transpose()?,
            uploaded_by: row.uploaded_by,
            contributions: row.contributions,
            created_at: row.created_at,
            rows: number(row.row_count)?,
            bytes: number(row.byte_count)?,
            format: row.format,
            content_hash: hash(&row.content_hash)?,
            chunks: number(row.chunk_count)?,
            profiles: ciphertext(row.profiles),
            wrapped_key: row.wrapped_key,
            purged_at: row.purged_at,
            place: row.place,
        })
    }
}

#[derive(FromRow)]
pub(super) struct SeriesDatasetRow {
    id: Uuid,
    tenant: String,
    series: String,
    #[sqlx(json(nullable))]
    record_key: Option<Vec<String>>,
    subject: Option<String>,
    max_rows_per_subject: Option<i64>,
    purged_at: Option<DateTime<Utc>>,
}

impl TryFrom<SeriesDatasetRow> for SeriesDataset {
    type Error = StoreError;

    fn try_from(row: SeriesDatasetRow) -> Result<Self, StoreError> {
        let SeriesDatasetRow { id: dataset, tenant, series, record_key, subject, max_rows_per_subject, purged_at } =
            row;
        let max_rows_per_subject = max_rows_per_subject.map(number).transpose()?;
        let is_purged = purged_at.is_some();
        Ok(Self { tenant, series, dataset, record_key, subject, max_rows_per_subject, is_purged })
    }
}

#[derive(FromRow)]
pub(super) struct JobRow {
    id: Uuid,
    tenant: String,
    dataset_id: Uuid,
    series: String,
    method: String,
    #[sqlx(json)]
    specification: Value,
    reuse_key: Vec<u8>,
    priority: i64,
    reason: Option<String>,
    status: String,
    submitted_at: DateTime<Utc>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
    deadline_at: Option<DateTime<Utc>>,
    attempt: i64,
    #[sqlx(json(nullable))]
    progress: Option<Progress>,
    cancel_requested: bool,
    release_id: Option<Uuid>,
    reused: bool,
    #[sqlx(json(nullable))]
    problem: Option<Value>,
}

impl TryFrom<JobRow> for JobRecord {
    type Error = StoreError;

    fn try_from(row: JobRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            tenant: row.tenant,
            dataset: row.dataset_id,
            series: row.series,
            method: row.method,
            specification: row.specification,
            reuse_key: hash(&row.reuse_key)?,
            priority: number(row.priority)?,
            reason: row.reason,
            status: row.status.parse().map_err(StoreError::corrupt)?,
            submitted_at: row.submitted_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            deadline_at: row.deadline_at,
            attempt: number(row.attempt)?,
            progress: row.progress,
            cancel_requested: row.cancel_requested,
            release: row.release_id,
            reused: row.reused,
            problem: row.problem,
        })
    }
}

#[derive(FromRow)]
pub(super) struct ReleaseRow {
    id: Uuid,
    job_id: Uuid,
    attempt: i64,
    tenant: String,
    series: String,
    dataset_id: Uuid,
    content_hash: Vec<u8>,
    reuse_key: Vec<u8>,
    method: String,
    created_at: DateTime<Utc>,
    status: String,
    #[sqlx(json)]
    manifest: Value,
    #[sqlx(json)]
    report: Value,
}

impl TryFrom<ReleaseRow> for ReleaseRecord {
    type Error = StoreError;

    fn try_from(row: ReleaseRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            job: row.job_id,
            attempt: number(row.attempt)?,
            tenant: row.tenant,
            series: row.series,
            dataset: row.dataset_id,
            content_hash: hash(&row.content_hash)?,
            reuse_key: hash(&row.reuse_key)?,
            method: row.method,
            created_at: row.created_at,
            manifest: row.manifest,
            report: row.report,
            status: release_status(&row.status)?,
        })
    }
}

#[derive(FromRow)]
pub(super) struct DisclosureRow {
    id: Uuid,
    release_id: Uuid,
    table_name: String,
    #[sqlx(json)]
    body: Value,
    recorded_at: DateTime<Utc>,
}

impl From<DisclosureRow> for DisclosureRecord {
    fn from(row: DisclosureRow) -> Self {
        Self {
            id: row.id,
            release: row.release_id,
            table: row.table_name,
            body: row.body,
            recorded_at: row.recorded_at,
        }
    }
}

impl From<DisclosureRow> for PortableDisclosure {
    fn from(row: DisclosureRow) -> Self {
        let DisclosureRecord { id, release, table, body, recorded_at } = row.into();
        Self { id, release, table, body, recorded_at }
    }
}

#[derive(FromRow)]
pub(super) struct SeriesDisclosureRow {
    #[sqlx(flatten)]
    entry: DisclosureRow,
    content_hash: Vec<u8>,
    status: String,
}

#[derive(FromRow)]
pub(super) struct SeriesRuleRow {
    #[sqlx(flatten)]
    rule: ActiveRuleRow,
    content_hash: Vec<u8>,
}

/// The rows of a series as one.
pub(super) fn series(
    version: Option<i64>,
    datasets: Vec<(Uuid, DateTime<Utc>)>,
    entries: Vec<SeriesDisclosureRow>,
    rules: Vec<SeriesRuleRow>,
    statements: Vec<StatementRow>,
) -> Result<SeriesRecord, StoreError> {
    let entry = |SeriesDisclosureRow { entry, content_hash, status }| {
        Ok(SeriesEntry { content_hash: hash(&content_hash)?, status: release_status(&status)?, entry: entry.into() })
    };
    let rule = |SeriesRuleRow { rule, content_hash }| Ok((hash(&content_hash)?, rule.into()));
    Ok(SeriesRecord {
        version: version.unwrap_or(0),
        datasets,
        entries: entries.into_iter().map(entry).collect::<Result<_, StoreError>>()?,
        rules: rules.into_iter().map(rule).collect::<Result<_, StoreError>>()?,
        statements: statements.into_iter().map(StatementRecord::from).collect(),
    })
}

#[derive(FromRow)]
pub(super) struct ActiveRuleRow {
    release_id: Uuid,
    #[sqlx(json)]
    body: Value,
}

impl From<ActiveRuleRow> for ActiveRuleRecord {
    fn from(row: ActiveRuleRow) -> Self {
        Self { release: row.release_id, body: row.body }
    }
}

#[derive(FromRow)]
pub(super) struct RepeatRow {
    resource_id: Uuid,
    content_hash: Option<Vec<u8>>,
    lease_until: DateTime<Utc>,
}

impl TryFrom<RepeatRow> for IdempotencyRecord {
    type Error = StoreError;

    fn try_from(row: RepeatRow) -> Result<Self, StoreError> {
        let content_hash = row.content_hash.as_deref().map(hash).transpose()?;
        Ok(Self { resource: row.resource_id, content_hash, lease_until: row.lease_until })
    }
}

#[derive(FromRow)]
pub(super) struct KeyRow {
    id: Uuid,
    tenant: String,
    name: String,
    scopes: String,
    hash: Vec<u8>,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    #[sqlx(json)]
    populations: Vec<String>,
}

impl TryFrom<KeyRow> for ApiKey {
    type Error = StoreError;

    fn try_from(row: KeyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            tenant: row.tenant,
            name: row.name,
            scopes: row.scopes.parse().map_err(StoreError::corrupt)?,
            hash: TokenHash::from_bytes(hash(&row.hash)?),
            created_at: row.created_at,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            populations: row.populations,
        })
    }
}

#[derive(FromRow)]
pub(super) struct AuditRow {
    id: Uuid,
    recorded_at: DateTime<Utc>,
    tenant: String,
    key_id: Option<Uuid>,
    actor: Option<String>,
    action: String,
    object: String,
    detail: Option<String>,
}

impl From<AuditRow> for AuditEntry {
    fn from(row: AuditRow) -> Self {
        Self {
            id: row.id,
            at: row.recorded_at,
            tenant: row.tenant,
            key: row.key_id,
            // entries older than the column have a key, or no actor
            actor: row.actor.or_else(|| row.key_id.and_then(|id| Actor::Key(id).name())),
            action: row.action,
            object: row.object,
            detail: row.detail,
        }
    }
}

#[derive(FromRow)]
pub(super) struct ReleaseEventRow {
    status: String,
    reason: String,
    happened_at: DateTime<Utc>,
    done_by: Option<String>,
}

impl TryFrom<ReleaseEventRow> for ReleaseEvent {
    type Error = StoreError;

    fn try_from(row: ReleaseEventRow) -> Result<Self, StoreError> {
        let status = release_status(&row.status)?;
        Ok(Self { status, reason: row.reason, happened_at: row.happened_at, actor: row.done_by })
    }
}

/// The status of a release from its stored text.
pub(super) fn release_status(text: &str) -> Result<ReleaseStatus, StoreError> {
    ReleaseStatus::try_from(text).map_err(StoreError::corrupt)
}

#[derive(FromRow)]
pub(super) struct TenantRow {
    tenant: String,
    settings: Option<Json<TenantSettings>>,
}

impl From<TenantRow> for (String, TenantSettings) {
    fn from(row: TenantRow) -> Self {
        (row.tenant, settings(row.settings))
    }
}

/// The settings of a tenant whose row was looked for.
pub(super) fn settings(found: Option<Json<TenantSettings>>) -> TenantSettings {
    found.map(|Json(settings)| settings).unwrap_or_default()
}

#[derive(FromRow)]
pub(super) struct DocumentVersionRow {
    id: Uuid,
    name: String,
    version: i64,
    created_at: DateTime<Utc>,
}

#[derive(FromRow)]
pub(super) struct DocumentRow {
    #[sqlx(flatten)]
    version: DocumentVersionRow,
    #[sqlx(json)]
    content: Value,
}

impl TryFrom<DocumentVersionRow> for DocumentVersion {
    type Error = StoreError;

    fn try_from(row: DocumentVersionRow) -> Result<Self, StoreError> {
        Ok(Self { id: row.id, name: row.name, version: number(row.version)?, created_at: row.created_at })
    }
}

impl TryFrom<DocumentRow> for NamedDocument {
    type Error = StoreError;

    fn try_from(row: DocumentRow) -> Result<Self, StoreError> {
        Ok(Self { version: row.version.try_into()?, content: row.content })
    }
}

#[derive(FromRow)]
pub(super) struct ExpiredRow {
    pub(super) id: Uuid,
    pub(super) attempt: i64,
    pub(super) lapses: i64,
    pub(super) cancel_requested: bool,
}

/// Rows as records; any row that does not fit its record is corrupt.
pub(super) fn records<R, T: TryFrom<R, Error = StoreError>>(rows: Vec<R>) -> Result<Vec<T>, StoreError> {
    rows.into_iter().map(T::try_from).collect()
}

/// Stored bytes as ciphertext.
pub(super) fn ciphertext(bytes: Option<Vec<u8>>) -> Option<Ciphertext> {
    bytes.map(Ciphertext::from_stored)
}

/// The id that every item of a page is below.
pub(super) fn before(cursor: Option<Cursor>) -> Uuid {
    cursor.map_or(Uuid::max(), |cursor| cursor.0)
}

/// The lowest UUIDv7 of a millisecond: ids below it were drawn before.
pub(super) fn first_id_at(time: DateTime<Utc>) -> Uuid {
    let millis = u128::try_from(time.timestamp_millis()).unwrap_or(0);
    Uuid::from_u128(millis << 80)
}

/// What a heartbeat learns from the row that it found, if any.
pub(super) const fn alive(cancel_requested: Option<bool>) -> Heartbeat {
    match cancel_requested {
        Some(cancel_requested) => Heartbeat::Alive { cancel_requested },
        None => Heartbeat::Lost,
    }
}

/// Where a column of a chunk is encrypted for.
pub(super) fn place(column_no: i64, chunk_no: i64) -> Result<CiphertextContext, StoreError> {
    Ok(CiphertextContext::Chunk { chunk: number(chunk_no)?, column: number(column_no)? })
}

/// Counts a key that was wrapped anew.
pub(super) const fn count_key(rotated: &mut RotationCounts, purpose: Purpose) {
    match purpose {
        Purpose::Dataset => rotated.datasets += 1,
        Purpose::Release => rotated.jobs += 1,
        Purpose::Chain => rotated.chains += 1,
        Purpose::Hashing => {}
    }
}
