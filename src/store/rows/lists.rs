//! Rows of lists: columns without documents.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::numbers::number;
use super::release_status;
use crate::control::Progress;
use crate::ports::{ListedDataset, ListedJob, ListedRelease, StoreError};

#[derive(FromRow)]
pub(in crate::store) struct ListedDatasetRow {
    id: Uuid,
    name: Option<String>,
    series: String,
    population: Option<String>,
    #[sqlx(json(nullable))]
    person: Option<BTreeMap<String, Vec<String>>>,
    #[sqlx(json(nullable))]
    record_key: Option<Vec<String>>,
    subject: Option<String>,
    max_rows_per_subject: Option<i64>,
    created_at: DateTime<Utc>,
    row_count: i64,
    byte_count: i64,
    format: String,
    purged_at: Option<DateTime<Utc>>,
}

impl TryFrom<ListedDatasetRow> for ListedDataset {
    type Error = StoreError;

    fn try_from(row: ListedDatasetRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            name: row.name,
            series: row.series,
            population: row.population,
            person: row.person.unwrap_or_default(),
            record_key: row.record_key,
            subject: row.subject,
            max_rows_per_subject: row.max_rows_per_subject.map(number).transpose()?,
            created_at: row.created_at,
            rows: number(row.row_count)?,
            bytes: number(row.byte_count)?,
            format: row.format,
            purged_at: row.purged_at,
        })
    }
}

#[derive(FromRow)]
pub(in crate::store) struct ListedJobRow {
    id: Uuid,
    dataset_id: Uuid,
    method: String,
    priority: i64,
    status: String,
    submitted_at: DateTime<Utc>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
    attempt: i64,
    #[sqlx(json(nullable))]
    progress: Option<Progress>,
    release_id: Option<Uuid>,
    reused: bool,
    problem_type: Option<String>,
}

impl TryFrom<ListedJobRow> for ListedJob {
    type Error = StoreError;

    fn try_from(row: ListedJobRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            dataset: row.dataset_id,
            method: row.method,
            priority: number(row.priority)?,
            status: row.status.parse().map_err(StoreError::corrupt)?,
            submitted_at: row.submitted_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            attempt: number(row.attempt)?,
            progress: row.progress,
            release: row.release_id,
            reused: row.reused,
            problem_type: row.problem_type,
        })
    }
}

#[derive(FromRow)]
pub(in crate::store) struct ListedReleaseRow {
    id: Uuid,
    series: String,
    dataset_id: Uuid,
    method: String,
    created_at: DateTime<Utc>,
    status: String,
}

impl TryFrom<ListedReleaseRow> for ListedRelease {
    type Error = StoreError;

    fn try_from(row: ListedReleaseRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            series: row.series,
            dataset: row.dataset_id,
            method: row.method,
            created_at: row.created_at,
            status: release_status(&row.status)?,
        })
    }
}
