//! Rows of what is known of data subjects and of series.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use super::{hash, number};
use crate::ports::{FingerprintRecord, StatementRecord, StoreError, SubjectFingerprint};

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
pub(in crate::store) struct FingerprintRow {
    id: Uuid,
    series: String,
    content_hash: Vec<u8>,
    #[sqlx(json(nullable))]
    fingerprint: Option<SubjectFingerprint>,
}

impl TryFrom<FingerprintRow> for FingerprintRecord {
    type Error = StoreError;

    fn try_from(row: FingerprintRow) -> Result<Self, StoreError> {
        let content_hash = hash(&row.content_hash)?;
        Ok(Self { dataset: row.id, series: row.series, content_hash, fingerprint: row.fingerprint })
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
