//! The evidence of the rows of a dataset: collected from chunks, kept with its persons.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::runtime::Handle;
use uuid::Uuid;

use super::columns::{ChunkColumns, must_be_here, read_columns};
use super::env::InputEnv;
use super::error::InputError;
use crate::control::Control;
use crate::microdata::formats::IngestError;
use crate::microdata::{Chunk, ChunkFile};
use crate::people::{
    ContributionError, Evidence, EvidenceCollector, EvidenceError, KeyLayout, KeyedHash, PopulationRegistry,
    SystemColumns,
};
use crate::ports::{DatasetRecord, Store, StoreError};
use crate::problem::{Kind, Problem};
use crate::vault::{ContentHasher, DataKey};

/// The rows of a dataset, chunk by chunk with all columns.
pub(crate) struct StoredRows<'a> {
    env: &'a InputEnv,
    dataset: &'a DatasetRecord,
    chunks: ChunkSource,
    names: Vec<String>,
}

/// Where chunks are read from.
enum ChunkSource {
    /// The store, whose chunks are encrypted under this key.
    Store(DataKey),
    /// The copy of a table of another engine.
    Copy(Arc<ChunkFile>),
}

impl<'a> StoredRows<'a> {
    /// Of a dataset that is not purged.
    ///
    /// # Errors
    /// [`InputError`]
    pub(crate) fn open(env: &'a InputEnv, dataset: &'a DatasetRecord) -> Result<Self, InputError> {
        must_be_here(dataset)?;
        let names = dataset.profiles(&env.vault)?.into_iter().map(|profile| profile.name).collect();
        Ok(Self { env, dataset, chunks: ChunkSource::Store(dataset.data_key(&env.vault)?), names })
    }

    /// Those of a copy, whose columns have these names.
    pub(super) const fn of_copy(
        env: &'a InputEnv,
        dataset: &'a DatasetRecord,
        copied: Arc<ChunkFile>,
        names: Vec<String>,
    ) -> Self {
        Self { env, dataset, chunks: ChunkSource::Copy(copied), names }
    }

    /// The number of chunks.
    pub(super) fn chunks(&self) -> u32 {
        match &self.chunks {
            ChunkSource::Store(_) => self.dataset.chunks,
            ChunkSource::Copy(copied) => copied.chunks(),
        }
    }

    /// The columns that identify its persons and records, as it was uploaded.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when a column or a key system is missing.
    pub(crate) fn key_layout(&self, registry: &PopulationRegistry) -> Result<KeyLayout, StoreError> {
        let place = |name: &String| {
            let found = self.names.iter().position(|column| column == name);
            found.ok_or_else(|| StoreError::corrupt("a key of a dataset has an unknown column"))
        };
        let places = |names: &[String]| names.iter().map(place).collect::<Result<Vec<usize>, StoreError>>();
        let system = |(name, columns): (&String, &Vec<String>)| {
            let system = registry.systems.get(name);
            let system = system.ok_or_else(|| StoreError::corrupt("a dataset has an unknown key system"))?;
            Ok(SystemColumns { system: name.clone(), fold: system.fold, columns: places(columns)? })
        };
        Ok(KeyLayout {
            names: self.names.clone(),
            systems: self.dataset.person.iter().map(system).collect::<Result<_, StoreError>>()?,
            record_key: places(self.dataset.record_key.as_deref().unwrap_or_default())?,
            max_rows_per_person: self.dataset.max_rows_per_subject.unwrap_or(1),
        })
    }

    /// Every column of a chunk.
    ///
    /// # Errors
    /// [`InputError`]
    pub(crate) fn chunk(&self, number: u32) -> Result<Chunk, InputError> {
        self.read(number, &(0..self.names.len()).collect::<Vec<_>>())
    }

    /// Some columns of a chunk, in this order.
    ///
    /// # Errors
    /// [`InputError`]
    pub(crate) fn columns(&self, number: u32, places: &[usize]) -> Result<Chunk, InputError> {
        self.read(number, places)
    }

    fn read(&self, number: u32, places: &[usize]) -> Result<Chunk, InputError> {
        let key = match &self.chunks {
            ChunkSource::Store(key) => key,
            ChunkSource::Copy(copied) => {
                let read = copied.columns(number, places.iter().copied());
                return Ok(read.map_err(|error| StoreError::Unavailable(Box::new(error)))?);
            }
        };
        let columns: Vec<u32> = places.iter().map(|&place| place as u32).collect();
        let of_chunk = ChunkColumns { chunk: number, columns: &columns };
        let columns = read_columns(self.env, self.dataset, key, of_chunk)?;
        Ok(Chunk { rows: columns.first().map_or(0, |column| column.rows() as u32), columns })
    }
}

/// Ends a collection: keeps the persons in pieces, and then the evidence.
///
/// # Errors
/// Those of the collector. A failure of the store is [`EvidenceError::Put`].
pub(crate) fn keep_evidence(
    handle: &Handle,
    store: &dyn Store,
    dataset: Uuid,
    collector: EvidenceCollector<ContentHasher>,
    control: &Control,
) -> Result<Evidence, EvidenceError> {
    let failed = |error: StoreError| EvidenceError::Put(Box::new(error));
    let mut pieces: BTreeMap<String, u32> = BTreeMap::new();
    let put = |system: &str, persons: &[KeyedHash]| {
        let piece = pieces.entry(system.to_owned()).or_default();
        handle.block_on(store.put_person_piece(dataset, system, *piece, persons)).map_err(failed)?;
        *piece += 1;
        Ok(())
    };
    let evidence = collector.finish(control, put)?;
    handle.block_on(store.put_evidence(dataset, &evidence)).map_err(failed)?;
    Ok(evidence)
}

/// The problem of a table of which rows cannot be chosen.
pub(crate) fn contribution_problem(error: ContributionError) -> Problem {
    let detail = error.to_string();
    match error {
        ContributionError::Ingest(error) => error.into(),
        ContributionError::Keyless { row, column } => {
            Problem::new(Kind::UploadMalformed, detail).with("row", row).with("column", column)
        }
        ContributionError::UnknownOrder(column) => Problem::new(Kind::MalformedRequest, detail).with("column", column),
        ContributionError::Cancelled(_) => Problem::new(Kind::Unavailable, "the choice of rows was stopped"),
    }
}

/// The answer where the evidence of a table cannot be collected.
pub(crate) fn evidence_problem(error: EvidenceError) -> Problem {
    let detail = error.to_string();
    match error {
        EvidenceError::MissingKey { row, column, rows } => {
            Problem::new(Kind::UploadMalformed, detail).with("row", row).with("column", column).with("missing", rows)
        }
        EvidenceError::TooManyRows { row, limit, found } => {
            Problem::new(Kind::UploadMalformed, detail).with("row", row).with("limit", limit).with("found", found)
        }
        EvidenceError::Spool(error) => IngestError::Spool(error).into(),
        EvidenceError::Cancelled(_) => Problem::new(Kind::Unavailable, "the collection of evidence was stopped"),
        EvidenceError::Put(error) => match error.downcast::<StoreError>() {
            Ok(error) => Problem::from(*error),
            Err(_) => Problem::new(Kind::Internal, "the evidence cannot be kept"),
        },
    }
}
