//! What the buffers of a message take once they are decompressed, before anything is decompressed.

use std::collections::BTreeMap;

use arrow_ipc::{Message, RecordBatch};

use super::super::arrays::damaged;
use super::super::error::IngestError;
use crate::microdata::limits::IngestLimits;

/// Holds messages to limits by the sizes that they declare; the decoder allocates what is declared and refuses what differs.
pub(super) struct MessageSizes {
    max_batch: u64,
    max_decompressed: u64,
    /// Bytes of all decompressed buffers so far.
    decompressed: u64,
    /// Bytes of each dictionary that the decoder keeps.
    dictionaries: BTreeMap<i64, u64>,
}

impl MessageSizes {
    pub(super) fn new(limits: &IngestLimits) -> Self {
        Self {
            max_batch: limits.max_batch_bytes,
            max_decompressed: limits.max_decompressed,
            decompressed: 0,
            dictionaries: BTreeMap::new(),
        }
    }

    /// Takes a message with its body, or refuses what would take too much.
    pub(super) fn add(&mut self, message: &Message<'_>, body: &[u8]) -> Result<(), IngestError> {
        let dictionary = message.header_as_dictionary_batch();
        let batch = dictionary.map_or_else(|| message.header_as_record_batch(), |dictionary| dictionary.data());
        let decompressed = batch.map_or(Ok(0), |batch| decompressed_bytes(&batch, body))?;
        within("bytes of a record batch", decompressed, self.max_batch)?;
        self.decompressed = self.decompressed.saturating_add(decompressed);
        within("decompressed bytes", self.decompressed, self.max_decompressed)?;
        if let Some(dictionary) = dictionary {
            let kept = self.dictionaries.entry(dictionary.id()).or_default();
            let before = if dictionary.isDelta() { *kept } else { 0 };
            *kept = before.saturating_add(decompressed).saturating_add(body.len() as u64);
            let all = self.dictionaries.values().fold(0, |all: u64, one| all.saturating_add(*one));
            within("bytes of the dictionaries of record batches", all, self.max_batch)?;
        }
        Ok(())
    }
}

/// The sum of the sizes that the compressed buffers of a batch state in their first eight bytes.
fn decompressed_bytes(batch: &RecordBatch<'_>, body: &[u8]) -> Result<u64, IngestError> {
    if batch.compression().is_none() {
        return Ok(0);
    }
    let mut sum = 0_u64;
    for buffer in batch.buffers().iter().flatten().filter(|buffer| buffer.length() != 0) {
        let from = usize::try_from(buffer.offset()).map_err(|_| damaged())?;
        let declared = body.get(from..).and_then(<[u8]>::first_chunk).ok_or_else(damaged)?;
        // -1 marks a buffer that is not compressed; the decoder refuses other negative sizes
        sum = sum.saturating_add(u64::try_from(i64::from_le_bytes(*declared)).unwrap_or(0));
    }
    Ok(sum)
}

/// Refuses what exceeds its limit.
pub(super) fn within(what: &'static str, found: u64, limit: u64) -> Result<(), IngestError> {
    if found > limit { Err(IngestError::TooLarge { what, limit, found, row: None }) } else { Ok(()) }
}
