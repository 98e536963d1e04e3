//! Writes an Arrow IPC stream without metadata of any kind. Equal batches give equal bytes.

use std::io;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};

/// Writes one stream, piece by piece.
pub struct ArrowStreamWriter(StreamWriter<Vec<u8>>);

impl ArrowStreamWriter {
    /// A stream of batches of this schema.
    ///
    /// # Errors
    /// When IPC has no such columns.
    pub fn new(schema: &SchemaRef) -> io::Result<Self> {
        StreamWriter::try_new(Vec::new(), schema).map(Self).map_err(failed)
    }

    /// Writes a batch; its dictionaries replace those before.
    ///
    /// # Errors
    /// When the batch has another schema.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.0.write(batch).map_err(failed)
    }

    /// Writes the end; nothing can be written afterwards.
    ///
    /// # Errors
    /// Never in practice.
    pub fn finish(&mut self) -> io::Result<()> {
        self.0.finish().map_err(failed)
    }

    /// The bytes written since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.0.get_mut())
    }
}

fn failed(error: ArrowError) -> io::Error {
    io::Error::other(error)
}
