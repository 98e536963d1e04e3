//! What every store's pulse is made of.

use chrono::{DateTime, Utc};

use super::rows::number;
use crate::meter;
use crate::ports::{Backlog, StoreError};

/// Whether the version found is the one expected.
pub(super) fn check_version(found: Option<i64>, expected: i64) -> Result<(), StoreError> {
    let found = found.unwrap_or(0);
    if found == expected {
        return Ok(());
    }
    Err(StoreError::Schema(format!("its tables have version {found}, this guardian opened them with {expected}")))
}

#[derive(sqlx::FromRow)]
pub(super) struct BacklogRow {
    queued: i64,
    running: i64,
    oldest_queued: Option<DateTime<Utc>>,
}

pub(super) fn backlog(row: &BacklogRow) -> Result<Backlog, StoreError> {
    let (queued, running) = (number(row.queued)?, number(row.running)?);
    Ok(Backlog { queued, running, oldest_queued: row.oldest_queued })
}

/// Counts what failed; an answer is no failure.
pub(super) fn note(error: &StoreError) {
    match error {
        StoreError::NotFound
        | StoreError::Conflict
        | StoreError::InUse(_)
        | StoreError::Schema(_)
        | StoreError::Unread(_) => {}
        StoreError::Full => meter::store_error("full"),
        StoreError::Unavailable(_) => meter::store_error("unavailable"),
        StoreError::Corrupt(_) => meter::store_error("corrupt"),
        StoreError::Backend(_) => meter::store_error("backend"),
    }
}
