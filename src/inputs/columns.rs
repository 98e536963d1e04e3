//! Loading the columns of a dataset that a job uses, on a blocking thread.

use std::sync::Arc;

use super::env::InputEnv;
use super::error::InputError;
use super::kept_rows::KeptRows;
use super::stored_rows::StoredRows;
use crate::control::{Control, Phase};
use crate::microdata::{ChunkFile, Column, ColumnBuilder, Table};
use crate::ports::{DatasetRecord, StoreError};

/// Rows of a dataset.
#[derive(Clone, Copy)]
pub(crate) struct DatasetRows<'a> {
    /// The dataset.
    pub(crate) dataset: &'a DatasetRecord,
    /// Some of its rows; `None` is all.
    pub(crate) kept: Option<&'a KeptRows>,
    /// The copy of its table, if its rows are in another engine and were copied.
    pub(crate) copied: Option<&'a Arc<ChunkFile>>,
}

impl<'a> From<&'a DatasetRecord> for DatasetRows<'a> {
    fn from(dataset: &'a DatasetRecord) -> Self {
        Self { dataset, kept: None, copied: None }
    }
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
    let DatasetRows { dataset, kept, copied } = rows;
    let stored = StoredRows::open(env, dataset, copied)?;
    let chunks = stored.chunks();
    control.begin(Phase::Load, used.len() as u64 * u64::from(chunks))?;
    let mut columns = Vec::with_capacity(used.len());
    let at_once = if chunks == 1 { used.len().max(1) } else { 1 };
    for together in used.chunks(at_once) {
        let mut builders: Vec<_> = together.iter().map(|_| ColumnBuilder::new(&env.limits)).collect();
        for chunk in 0..chunks {
            control.advance(together.len() as u64)?;
            let read = stored.columns(chunk, together)?;
            for (builder, decoded) in builders.iter_mut().zip(read.columns) {
                match kept {
                    None => builder.push(&decoded)?,
                    Some(kept) => builder.push(&kept.of_column(chunk, &decoded)?)?,
                }
            }
        }
        for (builder, &used) in builders.into_iter().zip(together) {
            let column: Column = builder.finish(stored.profiles().get(used).map(|profile| profile.kind));
            if column.codes.len() as u64 != kept.map_or(dataset.rows, KeptRows::rows) {
                return Err(StoreError::corrupt("a column has not the rows of its dataset").into());
            }
            columns.push(column);
        }
    }
    Ok(Table::new(names.to_vec(), columns))
}
