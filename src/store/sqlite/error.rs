//! SQLite's errors as the store's.

use crate::ports::StoreError;
use crate::store::pulse::mapped;

/// Primary result codes, the low byte of the extended ones: <https://sqlite.org/rescode.html>
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const NOT_A_DATABASE: u32 = 26;

/// The error of a transaction.
pub(in crate::store) struct SqliteTransactionError(pub(in crate::store) StoreError);

impl From<sqlx::Error> for SqliteTransactionError {
    fn from(error: sqlx::Error) -> Self {
        Self(failed(error))
    }
}

impl From<StoreError> for SqliteTransactionError {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

/// Maps by kind, not by a constraint's name, which SQLite does not report.
pub(in crate::store) fn failed(error: sqlx::Error) -> StoreError {
    mapped(error, |code, error| match code.parse::<u32>().map(|code| code & 0xff) {
        Ok(FULL) => StoreError::Full,
        Ok(BUSY | LOCKED) => StoreError::Unavailable(error),
        Ok(CORRUPT | NOT_A_DATABASE) => StoreError::Corrupt(error),
        _ => StoreError::Backend(error),
    })
}
