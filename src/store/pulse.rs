//! What every store's pulse is made of.

use chrono::{DateTime, Utc};
use sqlx::error::ErrorKind;

use super::rows::number;
use crate::meter;
use crate::ports::{Backlog, ErrorSource, StoreError};

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

/// An error of a database as the store's, which is counted; `of_code` decides by the database's own code.
pub(super) fn mapped(error: sqlx::Error, of_code: impl FnOnce(&str, ErrorSource) -> StoreError) -> StoreError {
    let error = kind_of(error, of_code);
    note(&error);
    error
}

fn kind_of(error: sqlx::Error, of_code: impl FnOnce(&str, ErrorSource) -> StoreError) -> StoreError {
    use sqlx::Error;
    match &error {
        Error::RowNotFound => StoreError::NotFound,
        Error::Database(database) => match database.kind() {
            ErrorKind::UniqueViolation => StoreError::Conflict,
            ErrorKind::ForeignKeyViolation => StoreError::NotFound,
            _ => {
                let code = database.code().unwrap_or_default().into_owned();
                of_code(&code, Box::new(error))
            }
        },
        // the decoder's own text may quote what is stored
        Error::ColumnDecode { index, .. } => StoreError::corrupt(format!("column {index} cannot be decoded")),
        Error::Decode(_) => StoreError::corrupt("a value cannot be decoded"),
        Error::PoolTimedOut | Error::PoolClosed | Error::WorkerCrashed | Error::Io(_) | Error::Tls(_) => {
            StoreError::Unavailable(Box::new(error))
        }
        _ => StoreError::Backend(Box::new(error)),
    }
}

/// Counts what failed; an answer is no failure.
fn note(error: &StoreError) {
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
