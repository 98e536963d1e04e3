//! Rows of what is known of people and of series.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use super::{DatasetRow, hash, number};
use crate::ports::{
    DatasetRecord, FingerprintRecord, PortableDataset, PortableStatement, StatementRecord, StoreError,
    SubjectFingerprint,
};

#[derive(FromRow)]
pub(in crate::store) struct StatementRow {
    id: Uuid,
    #[sqlx(json)]
    body: Value,
    recorded_at: DateTime<Utc>,
}

impl From<StatementRow> for StatementRecord {
    fn from(row: StatementRow) -> Self {
        Self { id: row.id, body: row.body, recorded_at: row.recorded_at }
    }
}

#[derive(FromRow)]
pub(in crate::store) struct PeopleRow {
    id: Uuid,
    series: String,
    content_hash: Vec<u8>,
    #[sqlx(json(nullable))]
    people: Option<SubjectFingerprint>,
}

impl TryFrom<PeopleRow> for FingerprintRecord {
    type Error = StoreError;

    fn try_from(row: PeopleRow) -> Result<Self, StoreError> {
        let content_hash = hash(&row.content_hash)?;
        Ok(Self { dataset: row.id, series: row.series, content_hash, people: row.people })
    }
}

#[derive(FromRow)]
pub(in crate::store) struct PortableDatasetRow {
    #[sqlx(flatten)]
    dataset: DatasetRow,
    #[sqlx(json(nullable))]
    people: Option<SubjectFingerprint>,
}

impl TryFrom<PortableDatasetRow> for PortableDataset {
    type Error = StoreError;

    fn try_from(row: PortableDatasetRow) -> Result<Self, StoreError> {
        let dataset = DatasetRecord::try_from(row.dataset)?;
        Ok(Self {
            id: dataset.id,
            tenant: dataset.tenant,
            name: dataset.name,
            series: dataset.series,
            same_people: dataset.same_people,
            same_people_reason: dataset.same_people_reason,
            record_key: dataset.record_key,
            subject: dataset.subject,
            max_rows_per_subject: dataset.max_rows_per_subject,
            created_at: dataset.created_at,
            rows: dataset.rows,
            bytes: dataset.bytes,
            format: dataset.format,
            content_hash: dataset.content_hash,
            overlaps: dataset.overlaps,
            people: row.people,
        })
    }
}

#[derive(FromRow)]
pub(in crate::store) struct PortableStatementRow {
    id: Uuid,
    tenant: String,
    series: String,
    #[sqlx(json)]
    body: Value,
    recorded_at: DateTime<Utc>,
}

impl From<PortableStatementRow> for PortableStatement {
    fn from(row: PortableStatementRow) -> Self {
        let PortableStatementRow { id, tenant, series, body, recorded_at } = row;
        Self { id, tenant, series, body, recorded_at }
    }
}

/// What was found, each at the place that it bears.
pub(in crate::store) fn in_places<T: Clone>(places: usize, found: Vec<(i64, T)>) -> Result<Vec<Option<T>>, StoreError> {
    let mut all = vec![None; places];
    for (at, piece) in found {
        let at: usize = number(at)?;
        *all.get_mut(at).ok_or_else(|| StoreError::corrupt("more was found than was looked for"))? = Some(piece);
    }
    Ok(all)
}
