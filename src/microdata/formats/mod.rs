//! How tables are read and written: formats, compression, and the limits of what is accepted.

use std::io;

pub mod compression;
pub mod csv;

pub use compression::{Encoding, LimitExceeded};

/// What is accepted at most. Every reader keeps to it while it reads, not afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Columns of a table; 1024.
    pub max_columns: u64,
    /// Bytes of a field, doubled quotes counted twice; 64 KiB.
    pub max_field_bytes: u64,
    /// Bytes of a record; 1 MiB. More than 1 GiB counts as 1 GiB.
    pub max_record_bytes: u64,
    /// Rows of a table; 2^32 - 2, so that row numbers fit 32 bits.
    pub max_rows: u64,
    /// Bytes of a compressed file once decompressed; 64 GiB.
    pub max_decompressed: u64,
    /// Decompressed bytes for each compressed one, held after the first 64 MiB; 200.
    pub max_ratio: u64,
    /// Distinct values of a column that a job uses; 2^22.
    pub max_distinct: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_columns: 1024,
            max_field_bytes: 64 << 10,
            max_record_bytes: 1 << 20,
            max_rows: u32::MAX as u64 - 1,
            max_decompressed: 64 << 30,
            max_ratio: 200,
            max_distinct: 1 << 22,
        }
    }
}

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
}

impl From<io::Error> for IngestError {
    /// Limits and damage that a decompressor found become what they are; everything else is an input error.
    fn from(error: io::Error) -> Self {
        let inner = error.get_ref();
        if let Some(&LimitExceeded { what, limit, found }) = inner.and_then(|inner| inner.downcast_ref()) {
            return Self::TooLarge { what, limit, found };
        }
        if let Some(damaged) = inner.and_then(|inner| inner.downcast_ref::<compression::Damaged>()) {
            return Self::Malformed { row: None, column: None, byte: None, detail: damaged.to_string() };
        }
        Self::Io(error)
    }
}
