//! The limits of what is accepted.

use super::interner::Interner;

/// What is accepted at most. Every reader keeps to it while it reads, not afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestLimits {
    /// Columns of a table; 1024.
    pub max_columns: u64,
    /// Bytes of a field, doubled quotes counted twice; 64 KiB.
    pub max_field_bytes: u64,
    /// Bytes of a record; 1 MiB. More than 1 GiB counts as 1 GiB.
    pub max_record_bytes: u64,
    /// Bytes of a record batch of Arrow or of a page of a Parquet file, which are read as a whole; 512 MiB.
    pub max_batch_bytes: u64,
    /// Rows of a table; 2^32 - 2, so that row numbers fit 32 bits.
    pub max_rows: u64,
    /// Bytes of a compressed file once decompressed; 64 GiB.
    pub max_decompressed: u64,
    /// Decompressed bytes for each compressed one, held after the first 64 MiB; 200.
    pub max_ratio: u64,
    /// Distinct values of a column that a job uses; 2^22. More than 2^32 - 2 counts as that.
    pub max_distinct: u64,
    /// Memory for the distinct values of such a column, in bytes; 512 MiB.
    pub max_dictionary_bytes: u64,
}

impl Default for IngestLimits {
    fn default() -> Self {
        Self {
            max_columns: 1024,
            max_field_bytes: 64 << 10,
            max_record_bytes: 1 << 20,
            max_batch_bytes: 512 << 20,
            max_rows: u32::MAX as u64 - 1,
            max_decompressed: 64 << 30,
            max_ratio: 200,
            max_distinct: 1 << 22,
            max_dictionary_bytes: 512 << 20,
        }
    }
}

impl IngestLimits {
    /// For reading what this program wrote: what was accepted then is accepted now, under whatever limits it came in.
    #[must_use]
    pub fn of_own_parts() -> Self {
        Self { max_columns: u64::MAX, max_field_bytes: u64::MAX, max_record_bytes: u64::MAX, ..Self::default() }
    }

    /// Fails when a dictionary exceeds these limits.
    ///
    /// # Errors
    /// [`DictionaryError`].
    pub(crate) fn check_dictionary(&self, dictionary: &Interner) -> Result<(), DictionaryError> {
        self.check_counts(dictionary.len() as u64, dictionary.memory())
    }

    /// Fails when the distinct values, or the memory they take, exceed these limits.
    ///
    /// # Errors
    /// [`DictionaryError`].
    pub(super) fn check_counts(&self, distinct: u64, memory: u64) -> Result<(), DictionaryError> {
        let max_distinct = self.max_distinct.min(u64::from(u32::MAX) - 1);
        if distinct > max_distinct {
            return Err(DictionaryError { what: "distinct values of a column", limit: max_distinct, found: distinct });
        }
        let limit = self.max_dictionary_bytes;
        if memory > limit {
            let what = "bytes for the distinct values of a column";
            return Err(DictionaryError { what, limit, found: memory });
        }
        Ok(())
    }
}

/// A column has more distinct values than are accepted, or they take too much memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {found}, more than {limit}")]
pub struct DictionaryError {
    /// What is too large, with its unit.
    pub what: &'static str,
    /// The most that is accepted.
    pub limit: u64,
    /// What was found when counting stopped.
    pub found: u64,
}
