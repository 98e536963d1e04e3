//! Loading the columns of a dataset that a job uses, on a blocking thread.

use tokio::runtime::Handle;
use uuid::Uuid;

use super::sequence::EarlierReleaseRef;
use super::{DatasetRecord, Store, StoreError};
use crate::control::{Cancelled, Control, Phase};
use crate::engine::{self, ColumnSize};
use crate::ledger::EarlierDisclosures;
use crate::microdata::formats::IngestLimits;
use crate::microdata::{
    Attr, AttributeCounts, ChunkColumn, Column, ColumnBuilder, ColumnProfile, DictionaryError, Table,
};
use crate::problem::{Kind, Problem};
use crate::publication::Unit;
use crate::spec::{ColumnFacts, MethodSpec, Specification};
use crate::vault::{Ciphertext, CiphertextContext, DataKey, Vault};

/// Why a dataset could not be loaded.
#[derive(Debug)]
pub(super) enum LoadError {
    /// The computation was told to stop.
    Cancelled,
    /// The rows were removed.
    Purged,
    /// A column exceeds a limit that held less when it was judged.
    Full(DictionaryError),
    /// The store failed.
    Store(StoreError),
}

/// What the caller of a job or plan is told of a column that exceeds a limit.
pub(super) fn too_full(full: DictionaryError) -> Problem {
    Problem::new(Kind::WorkLimit, full.to_string()).with("limit", full.limit).with("found", full.found)
}

/// Where columns are loaded from, and how much of each.
#[derive(Clone, Copy)]
pub(super) struct ColumnSources<'a> {
    /// Has what is sealed.
    pub(super) store: &'a dyn Store,
    /// Opens it.
    pub(super) vault: &'a Vault,
    /// What columns may hold.
    pub(super) limits: &'a IngestLimits,
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
    /// What one unit of protection is.
    #[must_use]
    pub fn unit(&self) -> Unit {
        match (&self.subject, self.max_rows_per_subject) {
            (Some(attribute), Some(max_rows)) => Unit::Subject { attribute: attribute.clone(), max_rows },
            _ => Unit::Row,
        }
    }

    /// The key of the dataset.
    ///
    /// # Errors
    /// [`LoadError::Purged`], or [`StoreError::Corrupt`] when there is none or it cannot be opened: what should be sealed is never
    /// taken as it stands.
    pub(super) fn data_key(&self, vault: &Vault) -> Result<DataKey, LoadError> {
        match &self.wrapped_key {
            _ if self.purged_at.is_some() => Err(LoadError::Purged),
            Some(wrapped_key) => Ok(vault.data_key(self.id, wrapped_key).map_err(StoreError::from)?),
            None => Err(StoreError::corrupt("a dataset has no key").into()),
        }
    }

    /// What is known of the columns.
    ///
    /// # Errors
    /// As [`DatasetRecord::data_key`], or [`StoreError::Corrupt`] when the stored profiles cannot be read.
    pub(super) fn profiles(&self, vault: &Vault) -> Result<Vec<ColumnProfile>, LoadError> {
        let key = self.data_key(vault)?;
        let sealed = self.profiles.as_ref().ok_or_else(|| StoreError::corrupt("a dataset has no profiles"))?;
        let profiles = key.open(CiphertextContext::Profiles, sealed).map_err(StoreError::from)?;
        Ok(serde_json::from_slice(&profiles).map_err(StoreError::corrupt)?)
    }
}

/// The profiles as [`DatasetRecord::profiles`] reads them.
pub(super) fn seal_profiles(key: &DataKey, profiles: &[ColumnProfile]) -> Result<Ciphertext, StoreError> {
    let plain = serde_json::to_vec(profiles).map_err(StoreError::corrupt)?;
    Ok(key.seal(CiphertextContext::Profiles, &plain)?)
}

/// A column of a chunk, from what is stored.
pub(super) fn column_of(
    key: &DataKey,
    chunk: u32,
    column: u32,
    sealed: &Ciphertext,
) -> Result<ChunkColumn, StoreError> {
    let encoded = key.open(CiphertextContext::Chunk { chunk, column }, sealed)?;
    ChunkColumn::decode(&encoded).map_err(StoreError::corrupt)
}

/// What the check of a specification needs to know of the columns.
#[must_use]
pub(super) fn column_facts(rows: u64, profiles: &[ColumnProfile], limits: &IngestLimits) -> Vec<ColumnFacts> {
    let facts =
        |profile: &ColumnProfile| ColumnFacts { overflow: profile.exceeds(limits), ..ColumnFacts::of(profile, rows) };
    profiles.iter().map(facts).collect()
}

/// The bytes of memory that a release of a dataset takes.
#[must_use]
pub(super) fn job_memory(dataset: &DatasetRecord, profiles: &[ColumnProfile], specification: &Specification) -> u64 {
    let columns = sizes_of(dataset, profiles, &specification.used);
    engine::release_memory(dataset.rows, &columns)
        .saturating_add(engine::choice_memory(dataset.rows, &specification.method))
        .saturating_add(engine::measurement_memory(dataset.rows, &columns, specification))
}

/// The bytes of memory that work on columns of a dataset takes, estimated as for a release of them.
#[must_use]
pub(super) fn columns_memory(dataset: &DatasetRecord, profiles: &[ColumnProfile], used: &[usize]) -> u64 {
    engine::release_memory(dataset.rows, &sizes_of(dataset, profiles, used))
}

/// The bytes of memory that looking at further columns takes, with those of the release: nothing where there are none.
#[must_use]
pub(super) fn extra_columns_memory(
    dataset: &DatasetRecord,
    profiles: &[ColumnProfile],
    specification: &Specification,
    further: &[usize],
) -> u64 {
    if further.is_empty() {
        return 0;
    }
    engine::profile_memory(dataset.rows, &sizes_of(dataset, profiles, &[further, &specification.used].concat()))
}

/// The bytes of memory that joining a release with what it is made against takes, and what its exclusions are held against.
#[must_use]
pub(super) fn earlier_releases_memory(
    dataset: &DatasetRecord,
    profiles: &[ColumnProfile],
    specification: &Specification,
    (earlier, named): (&EarlierDisclosures, &[EarlierReleaseRef]),
) -> u64 {
    let MethodSpec::Sequential(spec) = &specification.method else { return 0 };
    // a column that the dataset has not may be anything
    let unknown = ColumnSize { codes: dataset.rows, bytes: dataset.rows.saturating_mul(ASSUMED_VALUE_BYTES) };
    let of = |names: &[String]| {
        let places: Vec<usize> =
            names.iter().filter_map(|name| profiles.iter().position(|profile| profile.name == *name)).collect();
        let mut sizes = sizes_of(dataset, profiles, &places);
        sizes.resize(names.len(), unknown);
        engine::join_memory(dataset.rows, &sizes)
    };
    let attributes = |id: &Uuid| earlier.disclosures.iter().find(|(release, _)| release == id);
    let releases = named.iter().map(|named| match named {
        EarlierReleaseRef::Published(release) => {
            attributes(&release.id).map_or(0, |(_, disclosure)| of(&disclosure.attributes))
        }
        EarlierReleaseRef::Entered(table) => table.memory(dataset.rows),
    });
    let releases = releases.fold(0, u64::saturating_add);
    releases.saturating_add(of(&specification.names)).saturating_add(of(&super::sequence::excluded(spec)))
}

/// For a value of a dataset that was uploaded before bytes were counted.
const ASSUMED_VALUE_BYTES: u64 = 32;

pub(super) fn sizes_of(dataset: &DatasetRecord, profiles: &[ColumnProfile], used: &[usize]) -> Vec<ColumnSize> {
    let size = |column: &usize| {
        let profile = &profiles[*column];
        let codes = profile.codes().unwrap_or(dataset.rows);
        ColumnSize { codes, bytes: profile.bytes.unwrap_or(codes.saturating_mul(ASSUMED_VALUE_BYTES)) }
    };
    used.iter().map(size).collect()
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

impl AttributeCounts for ProfileCounts<'_> {
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

/// Loads the columns `used`, under `names`, one at a time.
///
/// # Errors
/// [`LoadError`]
pub(super) fn load(
    handle: &Handle,
    sources: ColumnSources<'_>,
    dataset: &DatasetRecord,
    (names, used): (&[String], &[usize]),
    control: &Control,
) -> Result<Table, LoadError> {
    let ColumnSources { store, vault, limits } = sources;
    let key = dataset.data_key(vault)?;
    let profiles = dataset.profiles(vault)?;
    control.begin(Phase::Load, used.len() as u64 * u64::from(dataset.chunks))?;
    let mut columns = Vec::with_capacity(used.len());
    for &used in used {
        let kind = profiles.get(used).map(|profile| profile.kind);
        let mut builder = ColumnBuilder::new(limits);
        for chunk in 0..dataset.chunks {
            control.advance(1)?;
            let payload = handle.block_on(store.get_column_chunk(dataset.id, chunk, used as u32))?;
            let payload = payload.ok_or_else(|| missing(dataset, handle, store))?;
            let decoded = column_of(&key, chunk, used as u32, &payload)?;
            builder.push(&decoded).map_err(LoadError::Full)?;
        }
        let column: Column = builder.finish(kind);
        if column.codes.len() as u64 != dataset.rows {
            return Err(StoreError::corrupt("a column has not the rows of its dataset").into());
        }
        columns.push(column);
    }
    Ok(Table::new(names.to_vec(), columns))
}

/// Why a chunk is missing: the dataset was purged meanwhile, or the store lost it.
pub(super) fn missing(dataset: &DatasetRecord, handle: &Handle, store: &dyn Store) -> LoadError {
    match handle.block_on(store.dataset(&dataset.tenant, dataset.id)) {
        Ok(Some(now)) if now.purged_at.is_some() => LoadError::Purged,
        Ok(_) => StoreError::corrupt("a chunk of a column is missing").into(),
        Err(error) => error.into(),
    }
}
