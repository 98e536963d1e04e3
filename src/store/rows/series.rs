//! Rows of what was declared of series.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::ports::StatementRecord;

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
