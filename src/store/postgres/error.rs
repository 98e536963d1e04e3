//! Postgres' errors as the store's.

use sqlx::error::{DatabaseError, ErrorKind};

use crate::ports::{ErrorSource, StoreError};
use crate::store::pulse::mapped;

/// SQLSTATEs: <https://www.postgresql.org/docs/15/errcodes-appendix.html>
const SERIALIZATION_FAILURE: &str = "40001";
const DEADLOCK_DETECTED: &str = "40P01";
const DISK_FULL: &str = "53100";
const LOCK_NOT_AVAILABLE: &str = "55P03";
const QUERY_CANCELED: &str = "57014";
const READ_ONLY_TRANSACTION: &str = "25006";
/// Classes, the first two characters.
const CONNECTION: &str = "08";
const RESOURCES: &str = "53";
const OPERATOR: &str = "57";
const DAMAGED: &str = "XX";
/// Within the last class: data corrupted, index corrupted. The others are bugs of the server.
const CORRUPTED: [&str; 2] = ["XX001", "XX002"];

/// Indexes that two transactions may meet at through no fault of their own: tried again, the second one sees the first.
const RETRYABLE_INDEXES: [&str; 2] = ["jobs_running_alike", "releases_standing"];

/// Why a transaction did not succeed.
pub(in crate::store) enum PostgresTransactionError {
    /// Another one was in its way; the same transaction may succeed when it is tried again.
    Again(sqlx::Error),
    /// It does not help to try again.
    Store(StoreError),
}

impl From<sqlx::Error> for PostgresTransactionError {
    fn from(error: sqlx::Error) -> Self {
        match error.as_database_error() {
            Some(database) if is_transient(database) => Self::Again(error),
            _ => Self::Store(failed(error)),
        }
    }
}

impl From<StoreError> for PostgresTransactionError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn is_transient(error: &dyn DatabaseError) -> bool {
    error.code().is_some_and(|code| matches!(&*code, SERIALIZATION_FAILURE | DEADLOCK_DETECTED))
        || (error.kind() == ErrorKind::UniqueViolation
            && error.constraint().is_some_and(|name| RETRYABLE_INDEXES.contains(&name)))
}

/// Whether a statement gave way to others that use what it asked for.
pub(super) fn is_in_use(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| matches!(&*code, DEADLOCK_DETECTED | LOCK_NOT_AVAILABLE))
}

/// Maps by kind where there is one, as for SQLite, else by SQLSTATE.
pub(in crate::store) fn failed(error: sqlx::Error) -> StoreError {
    mapped(error, |state, error| of_state(state)(error))
}

fn of_state(state: &str) -> fn(ErrorSource) -> StoreError {
    match state {
        DISK_FULL => |_| StoreError::Full,
        SERIALIZATION_FAILURE | DEADLOCK_DETECTED | LOCK_NOT_AVAILABLE | QUERY_CANCELED | READ_ONLY_TRANSACTION => {
            StoreError::Unavailable
        }
        _ => match state.get(..2) {
            Some(CONNECTION | RESOURCES | OPERATOR) => StoreError::Unavailable,
            Some(DAMAGED) if CORRUPTED.contains(&state) => StoreError::Corrupt,
            _ => StoreError::Backend,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_differs_from_transient_errors() {
        let of = |state: &str| of_state(state)("x".into());
        assert!(matches!(of(DISK_FULL), StoreError::Full));
        // out of memory, too many connections, shutting down
        for state in ["53200", "53300", "57P01"] {
            assert!(matches!(of(state), StoreError::Unavailable(_)), "{state}");
        }
        assert!(matches!(of("XX001"), StoreError::Corrupt(_)));
        assert!(matches!(of("42601"), StoreError::Backend(_)));
    }
}
