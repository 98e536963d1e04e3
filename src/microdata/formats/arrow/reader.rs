//! Reads an Arrow IPC stream into chunks, a record batch at a time.
//!
//! Messages are framed here, so that no length is believed before the bytes are there and none may exceed a bound; what is in
//! them is decoded by `arrow-ipc`, which validates it. Compressed buffers state their sizes, which are held to the limits
//! before anything is decompressed.

use std::collections::VecDeque;
use std::io::Read;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::SchemaRef;

use super::super::arrays::{BatchSource, Batches, damaged, guarded};
use super::super::error::IngestError;
use super::super::input::TableReader;
use super::sizes::MessageSizes;
use crate::microdata::AttributeType;
use crate::microdata::limits::IngestLimits;

/// The most bytes of the description of a message.
pub(super) const MAX_DESCRIPTION: u64 = 16 << 20;
const CONTINUATION: [u8; 4] = [0xFF; 4];
const END: [u8; 8] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0];

/// Reads the schema of an Arrow IPC stream, whose rows follow.
///
/// # Errors
/// [`IngestError`]
pub(in crate::microdata::formats) fn open_stream<R: Read + Send>(
    reader: R,
    types: Vec<(String, AttributeType)>,
    limits: &IngestLimits,
) -> Result<impl TableReader + use<R>, IngestError> {
    let mut messages = Messages {
        reader,
        max_body: limits.max_batch_bytes,
        sizes: MessageSizes::new(limits),
        decoder: StreamDecoder::new(),
        batches: VecDeque::new(),
        begun: false,
        ended: false,
    };
    let schema = guarded(|| messages.schema())?;
    Batches::new(&schema, messages, types, limits)
}

struct Messages<R> {
    reader: R,
    max_body: u64,
    sizes: MessageSizes,
    decoder: StreamDecoder,
    batches: VecDeque<RecordBatch>,
    begun: bool,
    ended: bool,
}

impl<R: Read> Messages<R> {
    fn schema(&mut self) -> Result<SchemaRef, IngestError> {
        loop {
            if let Some(schema) = self.decoder.schema() {
                return Ok(schema);
            }
            if self.ended {
                return Err(damaged());
            }
            self.advance()?;
        }
    }

    /// Reads one message, or the end.
    fn advance(&mut self) -> Result<(), IngestError> {
        let mut prefix = self.exactly(4)?;
        if !self.begun {
            self.begun = true;
            if prefix.is_empty() {
                return Err(IngestError::Empty);
            }
        }
        if prefix.is_empty() {
            // the marker at the end may be missing, the end of a message may not
            return self.end(&END);
        }
        let continued = prefix == CONTINUATION;
        if continued {
            prefix = self.exactly(4)?;
        }
        let length: [u8; 4] = prefix.as_slice().try_into().map_err(|_| damaged())?;
        let length = u64::from(u32::from_le_bytes(length));
        if length == 0 {
            return self.end(if continued { &END } else { &END[4..] });
        }
        let description = self.bounded("bytes of the description of a record batch", length, MAX_DESCRIPTION)?;
        let message = arrow_ipc::root_as_message(&description).map_err(|_| damaged())?;
        message.header_as_schema().map_or(Ok(()), check_byte_order)?;
        let body = u64::try_from(message.bodyLength()).map_err(|_| damaged())?;
        let body = self.bounded("bytes of a record batch", body, self.max_body)?;
        self.sizes.add(&message, &body)?;
        let mut prefix = if continued { CONTINUATION.to_vec() } else { Vec::new() };
        prefix.extend_from_slice(&length.to_le_bytes()[..4]);
        self.decode(prefix)?;
        self.decode(description)?;
        self.decode(body)
    }

    /// As many bytes, or fewer when the input ends.
    fn exactly(&mut self, length: u64) -> Result<Vec<u8>, IngestError> {
        let mut bytes = Vec::new();
        self.reader.by_ref().take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn bounded(&mut self, what: &'static str, length: u64, limit: u64) -> Result<Vec<u8>, IngestError> {
        if length > limit {
            return Err(IngestError::TooLarge { what, limit, found: length, row: None });
        }
        let bytes = self.exactly(length)?;
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(damaged()) }
    }

    fn decode(&mut self, bytes: Vec<u8>) -> Result<(), IngestError> {
        let mut bytes = Buffer::from_vec(bytes);
        while !bytes.is_empty() {
            let batch = self.decoder.decode(&mut bytes).map_err(|_| damaged())?;
            self.batches.extend(batch);
        }
        Ok(())
    }

    fn end(&mut self, marker: &[u8]) -> Result<(), IngestError> {
        self.decode(marker.to_vec())?;
        self.decoder.finish().map_err(|_| damaged())?;
        self.ended = true;
        // the body is read to its end in any case
        std::io::copy(&mut self.reader, &mut std::io::sink())?;
        Ok(())
    }
}

impl<R: Read + Send> BatchSource for Messages<R> {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, IngestError> {
        loop {
            if let Some(batch) = self.batches.pop_front() {
                return Ok(Some(batch));
            }
            if self.ended {
                return Ok(None);
            }
            self.advance()?;
        }
    }
}

/// Refuses numbers in another byte order than the decoder reads.
pub(super) fn check_byte_order(schema: arrow_ipc::Schema<'_>) -> Result<(), IngestError> {
    if schema.endianness().equals_to_target_endianness() { Ok(()) } else { Err(damaged()) }
}
