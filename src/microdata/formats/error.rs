//! Errors of reading a table.

use std::io;

use super::compression::{DamagedStreamError, LimitExceededError};
use crate::microdata::limits::DictionaryError;

/// Why a table cannot be read. Names columns and positions, never what a cell holds.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The input is not a table in the format.
    #[error("{detail}")]
    Malformed {
        /// The first record under the header is row 1; `None` in the header and where no row is to blame.
        row: Option<u64>,
        /// The name of the column.
        column: Option<String>,
        /// Where in the (decompressed) input, in bytes from its beginning.
        byte: Option<u64>,
        /// What is wrong. No values.
        detail: String,
    },
    /// The header has more columns than are accepted.
    #[error("{found} columns, more than {limit}")]
    TooManyColumns {
        /// The most that are accepted.
        limit: u64,
        /// How many there are.
        found: u64,
    },
    /// Something exceeds its limit.
    #[error("{what}: {found}, more than {limit}")]
    TooLarge {
        /// What is too large, with its unit.
        what: &'static str,
        /// The most that is accepted.
        limit: u64,
        /// What was found; at least this, when reading stopped there.
        found: u64,
        /// The record to blame, if one is: the first one under the header is row 1, the header row 0.
        row: Option<u64>,
    },
    /// A type is given for a column that the table does not have.
    #[error("a type is given for column {0:?}, which the table does not have")]
    UnknownTypeColumn(String),
    /// There is not even a header.
    #[error("the input is empty")]
    Empty,
    /// The input cannot be read.
    #[error("the input cannot be read: {0}")]
    Io(io::Error),
    /// The input cannot be kept while it is read.
    #[error("the input cannot be kept while it is read: {0}")]
    Spool(io::Error),
}

impl From<io::Error> for IngestError {
    /// Limits and damage that a decompressor found become what they are; everything else is an input error.
    fn from(error: io::Error) -> Self {
        let inner = error.get_ref();
        if let Some(&LimitExceededError { what, limit, found }) = inner.and_then(|inner| inner.downcast_ref()) {
            return Self::TooLarge { what, limit, found, row: None };
        }
        if let Some(damaged) = inner.and_then(|inner| inner.downcast_ref::<DamagedStreamError>()) {
            return Self::Malformed { row: None, column: None, byte: None, detail: damaged.to_string() };
        }
        Self::Io(error)
    }
}

impl From<DictionaryError> for IngestError {
    fn from(DictionaryError { what, limit, found }: DictionaryError) -> Self {
        Self::TooLarge { what, limit, found, row: None }
    }
}
