//! Loading the columns of a dataset that a job uses, on a blocking thread.

use tokio::runtime::Handle;

use super::{DatasetRecord, Store, StoreError};
use crate::control::{Cancelled, Control, Phase};
use crate::microdata::formats::Limits;
use crate::microdata::{Attr, ChunkColumn, Column, ColumnBuilder, ColumnProfile, Counts, Table};
use crate::spec::{ColumnFacts, Specification};

/// Why a dataset could not be loaded.
#[derive(Debug)]
pub(super) enum LoadError {
    /// The computation was told to stop.
    Cancelled,
    /// The rows were removed.
    Purged,
    /// The store failed.
    Store(StoreError),
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
pub(super) fn facts_of(profiles: &[ColumnProfile]) -> Vec<ColumnFacts> {
    profiles.iter().map(ColumnFacts::from).collect()
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

    fn of_values(&self, _: Attr) -> Option<Vec<u64>> {
        None
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
        let mut builder = ColumnBuilder::new(&Limits::default());
        for chunk in 0..dataset.chunks {
            control.advance(1)?;
            let payload = handle.block_on(store.get_column_chunk(dataset.id, chunk, used as u32))?;
            let payload = payload.ok_or_else(|| missing(dataset, handle, store))?;
            let decoded = ChunkColumn::decode(&payload).map_err(StoreError::corrupt)?;
            builder.push(&decoded).map_err(StoreError::corrupt)?;
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
