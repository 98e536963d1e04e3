//! Chunks of parts and their objects.

use sha2::{Digest, Sha256};
use sqlx::FromRow;
use uuid::Uuid;

use super::numbers::{hash, number, stored};
use crate::ports::{PartChunkRecord, PartObjectRecord, StoreError};

#[derive(FromRow)]
pub(in crate::store) struct PartChunkRow {
    file: String,
    chunk_no: i64,
    first_row: i64,
    row_count: i64,
    payload: Vec<u8>,
    object: Option<String>,
    object_sha256: Option<Vec<u8>>,
    object_bytes: Option<i64>,
}

impl PartChunkRow {
    /// The chunk, and the object that its payload is in unless the row has it.
    pub(in crate::store) fn located(self) -> Result<(PartChunkRecord, Option<PartObjectRecord>), StoreError> {
        let Self { file, chunk_no, first_row, row_count, payload, object, object_sha256, object_bytes } = self;
        let object = match (object, object_sha256, object_bytes) {
            (None, None, None) => None,
            (Some(object), Some(object_sha256), Some(object_bytes)) => {
                let row = PartObjectRow { chunk_no, row_count, object, object_sha256, object_bytes };
                Some(row.try_into()?)
            }
            _ => return Err(StoreError::corrupt("a chunk has half an object")),
        };
        let (number, first_row, rows) = (number(chunk_no)?, number(first_row)?, number(row_count)?);
        Ok((PartChunkRecord { file, number, first_row, rows, payload }, object))
    }
}

#[derive(FromRow)]
pub(in crate::store) struct PartObjectRow {
    chunk_no: i64,
    row_count: i64,
    object: String,
    object_sha256: Vec<u8>,
    object_bytes: i64,
}

impl TryFrom<PartObjectRow> for PartObjectRecord {
    type Error = StoreError;

    fn try_from(row: PartObjectRow) -> Result<Self, StoreError> {
        Ok(Self {
            number: number(row.chunk_no)?,
            rows: number(row.row_count)?,
            key: row.object,
            sha256: hash(&row.object_sha256)?,
            bytes: number(row.object_bytes)?,
        })
    }
}

/// A chunk to be kept: with its payload, or with what says which object has it.
pub(in crate::store) struct NewPartChunk<'a> {
    pub(in crate::store) chunk: &'a PartChunkRecord,
    pub(in crate::store) payload: &'a [u8],
    /// The key of its object after the tenant.
    pub(in crate::store) object: Option<String>,
    pub(in crate::store) object_sha256: Option<Vec<u8>>,
    pub(in crate::store) object_bytes: Option<i64>,
}

impl<'a> NewPartChunk<'a> {
    pub(in crate::store) fn with_payload(chunk: &'a PartChunkRecord) -> Self {
        Self { chunk, payload: &chunk.payload, object: None, object_sha256: None, object_bytes: None }
    }

    pub(in crate::store) fn in_object(job: Uuid, attempt: u32, chunk: &'a PartChunkRecord) -> Result<Self, StoreError> {
        let PartChunkRecord { file, number, payload, .. } = chunk;
        let part = file.strip_suffix(".csv").unwrap_or(file);
        Ok(Self {
            chunk,
            payload: &[],
            // an attempt may write a part again: no key is ever used twice, so that what deletes the first spares the second
            object: Some(format!("/{job}-{attempt}/{part}/{number:05}-{}.csv.zst", Uuid::now_v7().simple())),
            object_sha256: Some(Sha256::digest(payload).to_vec()),
            object_bytes: Some(stored(payload.len() as u64)?),
        })
    }
}
