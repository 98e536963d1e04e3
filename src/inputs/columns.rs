//! Loading the columns of a dataset that a job uses, on a blocking thread.

use super::env::InputEnv;
use super::error::InputError;
use super::kept_rows::KeptRows;
use crate::control::{Control, Phase};
use crate::microdata::{ChunkColumn, Column, ColumnBuilder, Table};
use crate::ports::{DatasetRecord, EngineTable, StoreError};
use crate::problem::{Kind, Problem};
use crate::vault::{Ciphertext, CiphertextContext, DataKey};

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

/// Rows of a dataset.
#[derive(Clone, Copy)]
pub(crate) struct DatasetRows<'a> {
    /// The dataset.
    pub(crate) dataset: &'a DatasetRecord,
    /// Some of its rows; `None` is all.
    pub(crate) kept: Option<&'a KeptRows>,
}

impl<'a> From<&'a DatasetRecord> for DatasetRows<'a> {
    fn from(dataset: &'a DatasetRecord) -> Self {
        Self { dataset, kept: None }
    }
}

/// Some columns of a chunk.
#[derive(Clone, Copy)]
pub(super) struct ChunkColumns<'a> {
    pub(super) chunk: u32,
    pub(super) columns: &'a [u32],
}

/// Reads columns of a chunk, in the order they are given, in one statement.
///
/// # Errors
/// [`InputError`]
pub(super) fn read_columns(
    env: &InputEnv,
    dataset: &DatasetRecord,
    key: &DataKey,
    ChunkColumns { chunk, columns }: ChunkColumns<'_>,
) -> Result<Vec<ChunkColumn>, InputError> {
    let stored = env.handle.block_on(env.store.get_columns(dataset.id, chunk, columns))?;
    let decode = |(&column, stored): (&u32, Option<Ciphertext>)| {
        let stored = stored.ok_or_else(|| missing(env, dataset))?;
        Ok(column_of(key, chunk, column, &stored)?)
    };
    // a store that answers less than it was asked lacks the rest
    let stored = stored.into_iter().chain(std::iter::repeat_with(|| None));
    columns.iter().zip(stored).map(decode).collect()
}

/// Loads the columns `used`, under `names`: one at a time, which takes the least memory, but those of a single chunk together,
/// which takes one statement.
///
/// # Errors
/// [`InputError`]
pub(crate) fn load(
    env: &InputEnv,
    rows: DatasetRows<'_>,
    names: &[String],
    used: &[usize],
    control: &Control,
) -> Result<Table, InputError> {
    let DatasetRows { dataset, kept } = rows;
    let InputEnv { vault, limits, .. } = env;
    must_be_here(dataset)?;
    let key = dataset.data_key(vault)?;
    let profiles = dataset.profiles(vault)?;
    control.begin(Phase::Load, used.len() as u64 * u64::from(dataset.chunks))?;
    let mut columns = Vec::with_capacity(used.len());
    let used: Vec<u32> = used.iter().map(|&used| used as u32).collect();
    let at_once = if dataset.chunks == 1 { used.len().max(1) } else { 1 };
    for together in used.chunks(at_once) {
        let mut builders: Vec<_> = together.iter().map(|_| ColumnBuilder::new(limits)).collect();
        for chunk in 0..dataset.chunks {
            control.advance(together.len() as u64)?;
            let read = read_columns(env, dataset, &key, ChunkColumns { chunk, columns: together })?;
            for (builder, decoded) in builders.iter_mut().zip(read) {
                match kept {
                    None => builder.push(&decoded)?,
                    Some(kept) => builder.push(&kept.of_column(chunk, &decoded)?)?,
                }
            }
        }
        for (builder, &used) in builders.into_iter().zip(together) {
            let column: Column = builder.finish(profiles.get(used as usize).map(|profile| profile.kind));
            if column.codes.len() as u64 != kept.map_or(dataset.rows, KeptRows::rows) {
                return Err(StoreError::corrupt("a column has not the rows of its dataset").into());
            }
            columns.push(column);
        }
    }
    Ok(Table::new(names.to_vec(), columns))
}

/// Refuses to read rows that are in another engine.
///
/// # Errors
/// [`InputError::Refused`]
pub(super) fn must_be_here(dataset: &DatasetRecord) -> Result<(), InputError> {
    let Some(EngineTable { engine, .. }) = &dataset.place else { return Ok(()) };
    let detail =
        format!("the rows of the dataset are in the engine {engine:?}, and this needs them here: upload the table");
    Err(InputError::Refused(Problem::new(Kind::RowsElsewhere, detail)))
}

/// Refuses a dataset that was purged meanwhile, where no row of it is missed.
///
/// # Errors
/// [`InputError::Purged`], or the store's.
pub(super) fn must_stand(env: &InputEnv, dataset: &DatasetRecord) -> Result<(), InputError> {
    match env.handle.block_on(env.store.dataset(&dataset.tenant, dataset.id))? {
        Some(now) if now.purged_at.is_none() => Ok(()),
        _ => Err(InputError::Purged),
    }
}

/// Why a chunk is missing: the dataset was purged meanwhile, or the store lost it.
pub(super) fn missing(env: &InputEnv, dataset: &DatasetRecord) -> InputError {
    match env.handle.block_on(env.store.dataset(&dataset.tenant, dataset.id)) {
        Ok(Some(now)) if now.purged_at.is_some() => InputError::Purged,
        Ok(_) => StoreError::corrupt("a chunk of a column is missing").into(),
        Err(error) => error.into(),
    }
}
