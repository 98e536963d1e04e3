//! Loading the columns of a dataset that a job uses, on a blocking thread.

use tokio::runtime::Handle;

use super::{DatasetRecord, Store, StoreError, problem_of};
use crate::control::{Cancelled, Control, Phase};
use crate::engine::{self, ColumnSize};
use crate::microdata::formats::Limits;
use crate::microdata::{Attr, ChunkColumn, Column, ColumnBuilder, ColumnProfile, Counts, DictionaryFull, Table};
use crate::problem::{Kind, Problem};
use crate::spec::{ColumnFacts, Specification};

/// Why a dataset could not be loaded.
#[derive(Debug)]
pub(super) enum LoadError {
    /// The computation was told to stop.
    Cancelled,
    /// The rows were removed.
    Purged,
    /// A column exceeds a limit that held less when it was judged.
    Full(DictionaryFull),
    /// The store failed.
    Store(StoreError),
}

impl LoadError {
    /// What the caller of a job or plan is told; `None` when it was stopped.
    pub(super) fn problem(&self) -> Option<Problem> {
        Some(match self {
            Self::Cancelled => return None,
            Self::Purged => Problem::new(Kind::Gone, "the dataset was purged meanwhile"),
            Self::Full(full) => {
                Problem::new(Kind::WorkLimit, full.to_string()).with("limit", full.limit).with("found", full.found)
            }
            Self::Store(error) => problem_of(error),
        })
    }
}

impl From<Cancelled> for LoadError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<StoreError> for LoadError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl DatasetRecord {
    /// What is known of the columns.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the stored profiles cannot be read.
    pub fn profiles(&self) -> Result<Vec<ColumnProfile>, StoreError> {
        serde_json::from_value(self.columns.clone()).map_err(StoreError::corrupt)
    }
}

/// What the check of a specification needs to know of the columns.
#[must_use]
pub(super) fn facts_of(profiles: &[ColumnProfile], limits: &Limits) -> Vec<ColumnFacts> {
    let facts = |profile: &ColumnProfile| ColumnFacts { overflow: profile.exceeds(limits), ..profile.into() };
    profiles.iter().map(facts).collect()
}

/// The bytes of memory that a release of these columns of a dataset takes.
#[must_use]
pub(super) fn memory_of(dataset: &DatasetRecord, profiles: &[ColumnProfile], used: &[usize]) -> u64 {
    /// For a value of a dataset that was uploaded before bytes were counted.
    const UNKNOWN_BYTES: u64 = 32;
    let size = |column: &usize| {
        let profile = &profiles[*column];
        let codes = profile.codes().unwrap_or(dataset.rows);
        ColumnSize { codes, bytes: profile.bytes.unwrap_or(codes.saturating_mul(UNKNOWN_BYTES)) }
    };
    engine::memory(dataset.rows, &used.iter().map(size).collect::<Vec<_>>())
}

/// The stored profile of a dataset as the counts of a job's attributes.
pub(super) struct ProfileCounts<'a> {
    /// The rows of the dataset.
    pub(super) rows: u64,
    /// The profiles of all columns.
    pub(super) profiles: &'a [ColumnProfile],
    /// The columns that the job uses.
    pub(super) used: &'a [usize],
}

impl ProfileCounts<'_> {
    fn profile(&self, attr: Attr) -> &ColumnProfile {
        &self.profiles[self.used[attr.index()]]
    }
}

impl Counts for ProfileCounts<'_> {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn attributes(&self) -> usize {
        self.used.len()
    }

    fn largest(&self, attr: Attr) -> u64 {
        self.profile(attr).top
    }

    fn distinct(&self, attr: Attr) -> u64 {
        // a column beyond counting is refused before it is planned with
        self.profile(attr).codes().unwrap_or(u64::MAX)
    }
}

/// Loads the columns that a specification uses, one at a time.
///
/// # Errors
/// [`LoadError`]
pub(super) fn load(
    handle: &Handle,
    store: &dyn Store,
    dataset: &DatasetRecord,
    specification: &Specification,
    limits: &Limits,
    control: &Control,
) -> Result<Table, LoadError> {
    if dataset.purged_at.is_some() {
        return Err(LoadError::Purged);
    }
    let profiles = dataset.profiles()?;
    control.begin(Phase::Load, specification.used.len() as u64 * u64::from(dataset.chunks))?;
    let mut columns = Vec::with_capacity(specification.used.len());
    for &used in &specification.used {
        let kind = profiles.get(used).map(|profile| profile.kind);
        let mut builder = ColumnBuilder::new(limits);
        for chunk in 0..dataset.chunks {
            control.advance(1)?;
            let payload = handle.block_on(store.get_column_chunk(dataset.id, chunk, used as u32))?;
            let payload = payload.ok_or_else(|| missing(dataset, handle, store))?;
            let decoded = ChunkColumn::decode(&payload).map_err(StoreError::corrupt)?;
            builder.push(&decoded).map_err(LoadError::Full)?;
        }
        let column: Column = builder.finish(kind);
        if column.codes.len() as u64 != dataset.rows {
            return Err(StoreError::corrupt("a column has not the rows of its dataset").into());
        }
        columns.push(column);
    }
    Ok(Table::new(specification.names.clone(), columns))
}

/// Why a chunk is missing: the dataset was purged meanwhile, or the store lost it.
fn missing(dataset: &DatasetRecord, handle: &Handle, store: &dyn Store) -> LoadError {
    match handle.block_on(store.dataset(&dataset.tenant, dataset.id)) {
        Ok(Some(now)) if now.purged_at.is_some() => LoadError::Purged,
        Ok(_) => StoreError::corrupt("a chunk of a column is missing").into(),
        Err(error) => error.into(),
    }
}
