//! Writes Parquet: a row group for each batch, each with dictionaries of its own values alone.
//!
//! A file says nothing that its rows do not: no key-value metadata, no Arrow schema, the same `created_by` always,
//! statistics of each row group in full length. Equal batches give equal bytes.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::basic::Compression;
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

/// Writes one file, piece by piece.
pub struct ParquetWriter {
    writer: ArrowWriter<PendingOutput>,
    pieces: PendingOutput,
}

impl ParquetWriter {
    /// A file of batches of this schema.
    ///
    /// # Errors
    /// When Parquet has no such columns.
    pub fn new(schema: SchemaRef) -> io::Result<Self> {
        let properties = WriterProperties::builder()
            .set_created_by("guardian".to_owned())
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            // a shortened statistic is a value that does not occur
            .set_statistics_truncate_length(None)
            .set_column_index_truncate_length(None)
            .set_offset_index_disabled(true)
            .set_key_value_metadata(None)
            .build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(true)
            .with_schema_root("schema".to_owned());
        let pieces = PendingOutput::default();
        let writer = ArrowWriter::try_new_with_options(pieces.clone(), schema, options).map_err(failed)?;
        Ok(Self { writer, pieces })
    }

    /// Writes a batch as a row group.
    ///
    /// # Errors
    /// When the batch has another schema.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.writer.write(batch).and_then(|()| self.writer.flush()).map_err(failed)
    }

    /// Writes the footer; nothing can be written afterwards.
    ///
    /// # Errors
    /// Never in practice.
    pub fn finish(&mut self) -> io::Result<()> {
        self.writer.finish().map(drop).map_err(failed)
    }

    /// The bytes written since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut *self.pieces.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn failed(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

/// What was written and not yet taken.
#[derive(Clone, Default)]
struct PendingOutput(Arc<Mutex<Vec<u8>>>);

impl Write for PendingOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
