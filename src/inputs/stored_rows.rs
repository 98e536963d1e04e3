//! The rows of a dataset, chunk by chunk: those that are stored here, or those of a copy of the table in another engine.

use std::sync::Arc;

use super::env::InputEnv;
use super::error::InputError;
use crate::microdata::{Chunk, ChunkColumn, ChunkFile, ColumnProfile};
use crate::people::{KeyLayout, PopulationRegistry, SystemColumns};
use crate::ports::{DatasetRecord, EngineTable, StoreError};
use crate::problem::{Kind, Problem};
use crate::vault::{Ciphertext, CiphertextContext, DataKey};

/// The rows of a dataset.
pub(crate) struct StoredRows<'a> {
    env: &'a InputEnv,
    dataset: &'a DatasetRecord,
    chunks: ChunkSource,
    profiles: Vec<ColumnProfile>,
}

/// Where chunks are read from.
enum ChunkSource {
    /// The store, whose chunks are encrypted under this key.
    Store(DataKey),
    /// The copy of a table of another engine.
    Copy(Arc<ChunkFile>),
}

impl<'a> StoredRows<'a> {
    /// Of a dataset that is not purged; of one in another engine those of its copy.
    ///
    /// # Errors
    /// `rows-elsewhere` without a copy, and others of [`InputError`].
    pub(crate) fn open(
        env: &'a InputEnv,
        dataset: &'a DatasetRecord,
        copied: Option<&Arc<ChunkFile>>,
    ) -> Result<Self, InputError> {
        let chunks = match (copied, &dataset.place) {
            (Some(copied), _) => {
                must_stand(env, dataset)?;
                ChunkSource::Copy(Arc::clone(copied))
            }
            (None, None) => ChunkSource::Store(dataset.data_key(&env.vault)?),
            (None, Some(place)) => return Err(InputError::Refused(elsewhere(place))),
        };
        Ok(Self { env, dataset, chunks, profiles: dataset.profiles(&env.vault)? })
    }

    /// The number of chunks.
    pub(super) fn chunks(&self) -> u32 {
        match &self.chunks {
            ChunkSource::Store(_) => self.dataset.chunks,
            ChunkSource::Copy(copied) => copied.chunks(),
        }
    }

    /// What is known of its columns.
    pub(super) fn profiles(&self) -> &[ColumnProfile] {
        &self.profiles
    }

    /// The columns that identify its persons and records, as it was uploaded.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when a column or a key system is missing.
    pub(crate) fn key_layout(&self, registry: &PopulationRegistry) -> Result<KeyLayout, StoreError> {
        let place = |name: &String| {
            let found = self.profiles.iter().position(|column| column.name == *name);
            found.ok_or_else(|| StoreError::corrupt("a key of a dataset has an unknown column"))
        };
        let places = |names: &[String]| names.iter().map(place).collect::<Result<Vec<usize>, StoreError>>();
        let system = |(name, columns): (&String, &Vec<String>)| {
            let system = registry.systems.get(name);
            let system = system.ok_or_else(|| StoreError::corrupt("a dataset has an unknown key system"))?;
            Ok(SystemColumns { system: name.clone(), fold: system.fold, columns: places(columns)? })
        };
        Ok(KeyLayout {
            names: self.profiles.iter().map(|profile| profile.name.clone()).collect(),
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
        self.columns(number, &(0..self.profiles.len()).collect::<Vec<_>>())
    }

    /// Some columns of a chunk, in this order; of a store in one statement.
    ///
    /// # Errors
    /// [`InputError`]
    pub(crate) fn columns(&self, number: u32, places: &[usize]) -> Result<Chunk, InputError> {
        let key = match &self.chunks {
            ChunkSource::Store(key) => key,
            ChunkSource::Copy(copied) => {
                let read = copied.columns(number, places.iter().copied());
                return Ok(read.map_err(|error| StoreError::Unavailable(Box::new(error)))?);
            }
        };
        let columns: Vec<u32> = places.iter().map(|&place| place as u32).collect();
        let stored = self.env.handle.block_on(self.env.store.get_columns(self.dataset.id, number, &columns))?;
        let decode = |(&column, stored): (&u32, Option<Ciphertext>)| {
            let stored = stored.ok_or_else(|| self.missing())?;
            Ok(column_of(key, number, column, &stored)?)
        };
        // a store that answers less than it was asked lacks the rest
        let stored = stored.into_iter().chain(std::iter::repeat_with(|| None));
        let columns = columns.iter().zip(stored).map(decode).collect::<Result<Vec<ChunkColumn>, InputError>>()?;
        Ok(Chunk { rows: columns.first().map_or(0, |column| column.rows() as u32), columns })
    }

    /// Why a chunk is missing: the dataset was purged meanwhile, or the store lost it.
    fn missing(&self) -> InputError {
        match self.env.handle.block_on(self.env.store.dataset(&self.dataset.tenant, self.dataset.id)) {
            Ok(Some(now)) if now.purged_at.is_some() => InputError::Purged,
            Ok(_) => StoreError::corrupt("a chunk of a column is missing").into(),
            Err(error) => error.into(),
        }
    }
}

/// A column of a chunk, from what is stored.
pub(crate) fn column_of(
    key: &DataKey,
    chunk: u32,
    column: u32,
    ciphertext: &Ciphertext,
) -> Result<ChunkColumn, StoreError> {
    let encoded = key.decrypt(CiphertextContext::Chunk { chunk, column }, ciphertext)?;
    ChunkColumn::decode(&encoded).map_err(StoreError::corrupt)
}

/// The refusal to read rows that are in another engine.
fn elsewhere(EngineTable { engine, .. }: &EngineTable) -> Problem {
    let detail =
        format!("the rows of the dataset are in the engine {engine:?}, and this needs them here: upload the table");
    Problem::new(Kind::RowsElsewhere, detail)
}

/// Refuses a dataset that was purged meanwhile, where no row of it is missed.
fn must_stand(env: &InputEnv, dataset: &DatasetRecord) -> Result<(), InputError> {
    match env.handle.block_on(env.store.dataset(&dataset.tenant, dataset.id))? {
        Some(now) if now.purged_at.is_none() => Ok(()),
        _ => Err(InputError::Purged),
    }
}
