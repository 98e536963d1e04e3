//! SQLite's errors as the store's.

use sqlx::error::ErrorKind;

use crate::ports::StoreError;
use crate::store::pulse::note;

/// Primary result codes, the low byte of the extended ones: <https://sqlite.org/rescode.html>
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const NOT_A_DATABASE: u32 = 26;

/// The error of a transaction.
pub(in crate::store) struct TransactionError(pub(in crate::store) StoreError);

impl From<sqlx::Error> for TransactionError {
    fn from(error: sqlx::Error) -> Self {
        Self(failed(error))
    }
}

impl From<StoreError> for TransactionError {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

/// Maps by kind, not by a constraint's name, which SQLite does not report.
pub(in crate::store) fn failed(error: sqlx::Error) -> StoreError {
    let error = kind_of(error);
    note(&error);
    error
}

fn kind_of(error: sqlx::Error) -> StoreError {
    use sqlx::Error;
    match &error {
        Error::RowNotFound => StoreError::NotFound,
        Error::Database(database) => match database.kind() {
            ErrorKind::UniqueViolation => StoreError::Conflict,
            ErrorKind::ForeignKeyViolation => StoreError::NotFound,
            _ => match database.code().and_then(|code| code.parse::<u32>().ok()).map(|code| code & 0xff) {
                Some(FULL) => StoreError::Full,
                Some(BUSY | LOCKED) => StoreError::Unavailable(Box::new(error)),
                Some(CORRUPT | NOT_A_DATABASE) => StoreError::Corrupt(Box::new(error)),
                _ => StoreError::Backend(Box::new(error)),
            },
        },
        // the decoder's own text may quote what is stored
        Error::ColumnDecode { index, .. } => StoreError::corrupt(format!("column {index} cannot be decoded")),
        Error::Decode(_) => StoreError::corrupt("a value cannot be decoded"),
        Error::PoolTimedOut | Error::PoolClosed | Error::WorkerCrashed | Error::Io(_) => {
            StoreError::Unavailable(Box::new(error))
        }
        _ => StoreError::Backend(Box::new(error)),
    }
}
