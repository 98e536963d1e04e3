//! Loading the columns of a dataset that a job uses, on a blocking thread.

use super::env::InputEnv;
use super::error::InputError;
use super::kept_rows::KeptRows;
use crate::control::{Control, Phase};
use crate::microdata::{ChunkColumn, Column, ColumnBuilder, Table};
use crate::ports::{DatasetRecord, StoreError};
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

/// Loads the columns `used`, under `names`, one at a time.
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
    let InputEnv { handle, store, vault, limits, .. } = env;
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
            let payload = payload.ok_or_else(|| missing(env, dataset))?;
            let decoded = column_of(&key, chunk, used as u32, &payload)?;
            match kept {
                None => builder.push(&decoded)?,
                Some(kept) => builder.push(&kept.of_column(chunk, &decoded)?)?,
            }
        }
        let column: Column = builder.finish(kind);
        if column.codes.len() as u64 != kept.map_or(dataset.rows, KeptRows::rows) {
            return Err(StoreError::corrupt("a column has not the rows of its dataset").into());
        }
        columns.push(column);
    }
    Ok(Table::new(names.to_vec(), columns))
}

/// Why a chunk is missing: the dataset was purged meanwhile, or the store lost it.
pub(super) fn missing(env: &InputEnv, dataset: &DatasetRecord) -> InputError {
    match env.handle.block_on(env.store.dataset(&dataset.tenant, dataset.id)) {
        Ok(Some(now)) if now.purged_at.is_some() => InputError::Purged,
        Ok(_) => StoreError::corrupt("a chunk of a column is missing").into(),
        Err(error) => error.into(),
    }
}
