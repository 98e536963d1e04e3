//! Rows of what is known of people and of series.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use super::hash;
use crate::jobs::{People, PeopleRecord, StatementRecord, StoreError};

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
    people: Option<People>,
}

impl TryFrom<PeopleRow> for PeopleRecord {
    type Error = StoreError;

    fn try_from(row: PeopleRow) -> Result<Self, StoreError> {
        let content_hash = hash(&row.content_hash)?;
        Ok(Self { dataset: row.id, series: row.series, content_hash, people: row.people })
    }
}
