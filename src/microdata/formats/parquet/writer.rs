//! Writes Parquet: a row group for each batch, each with dictionaries of its own values alone.
//!
//! A file says nothing that its rows do not: no key-value metadata, no Arrow schema, the same `created_by` always,
//! statistics of each row group in full length. Equal batches give equal bytes.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::basic::{Compression, Encoding};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::schema::types::ColumnPath;
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, SchemaRef};

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
        let mut properties = WriterProperties::builder()
            .set_created_by("guardian".to_owned())
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            // a shortened statistic is a value that does not occur
            .set_statistics_truncate_length(None)
            .set_column_index_truncate_length(None)
            .set_offset_index_disabled(true)
            .set_key_value_metadata(None);
        if let Some(labels) = schema.fields().first().filter(|field| is_bucket(field)) {
            // labels rise row by row, so that a difference takes about a bit
            let labels = ColumnPath::from(labels.name().as_str());
            properties = properties
                .set_column_dictionary_enabled(labels.clone(), false)
                .set_column_encoding(labels, Encoding::DELTA_BINARY_PACKED);
        }
        let properties = properties.build();
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

/// Whether a field is that of bucket labels, which no attribute looks like.
fn is_bucket(field: &Field) -> bool {
    field.data_type() == &DataType::Int32 && !field.is_nullable()
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

#[cfg(test)]
mod tests {
    use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, Int32Array};
    use arrow_schema::Schema;
    use bytes::Bytes;

    use super::*;

    #[test]
    fn labels_that_rise_take_about_a_bit_a_row() {
        let labels: Vec<i32> = (0..65_536).map(|row| row / 10 + 1).collect();
        let schema = Arc::new(Schema::new(vec![Field::new("bucket", DataType::Int32, false)]));
        let mut writer = ParquetWriter::new(Arc::clone(&schema)).unwrap();
        let array: ArrayRef = Arc::new(Int32Array::from(labels.clone()));
        writer.write(&RecordBatch::try_new(schema, vec![array]).unwrap()).unwrap();
        writer.finish().unwrap();
        let file = writer.take();
        assert!(file.len() < 65_536 / 8 * 3 / 2, "{}", file.len());
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).unwrap().build().unwrap();
        let read = reader.flat_map(|batch| batch.unwrap().column(0).as_primitive::<Int32Type>().values().to_vec());
        assert_eq!(read.collect::<Vec<_>>(), labels);
    }
}
