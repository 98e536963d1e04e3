//! Reads a Parquet file into chunks, a few thousand rows at a time.
//!
//! Of the file's metadata only the schema and the places of the rows are used. Text is decoded as views into its pages, so that
//! a small dictionary does not unfold into a large batch.

use std::io::{BufReader, Read};
use std::sync::Arc;

use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{ChunkReader, Length};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;

use super::super::arrays::{BatchSource, Batches, damaged, guarded};
use super::super::error::IngestError;
use super::super::input::TableReader;
use super::pages::{check_footer, check_pages};
use crate::microdata::limits::IngestLimits;
use crate::microdata::{AttributeType, SpoolReader};

const BATCH_ROWS: usize = 8192;

/// Bytes that are decrypted at once where headers are read.
const READ_BYTES: usize = 1 << 10;

impl Length for SpoolReader {
    fn len(&self) -> u64 {
        Self::len(self)
    }
}

impl ChunkReader for SpoolReader {
    type T = BufReader<Self>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::with_capacity(READ_BYTES, self.at(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut bytes = Vec::with_capacity(length.min(self.len() as usize));
        self.at(start).take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() != length {
            return Err(ParquetError::EOF(format!("{} of {length} bytes", bytes.len())));
        }
        Ok(bytes.into())
    }
}

struct RowGroupBatches(ParquetRecordBatchReader);

impl BatchSource for RowGroupBatches {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, IngestError> {
        self.0.next().transpose().map_err(|_| damaged())
    }
}

/// Reads the schema of a Parquet file, whose rows follow.
///
/// # Errors
/// [`IngestError`]
pub(in crate::microdata::formats) fn open<F: ChunkReader + 'static>(
    file: F,
    types: Vec<(String, AttributeType)>,
    limits: &IngestLimits,
) -> Result<impl TableReader + use<F>, IngestError> {
    if file.len() == 0 {
        return Err(IngestError::Empty);
    }
    let (schema, rows) = guarded(|| rows(file, limits))?;
    Batches::new(&schema, rows, types, limits)
}

fn rows(file: impl ChunkReader + 'static, limits: &IngestLimits) -> Result<(Schema, RowGroupBatches), IngestError> {
    let damaged = |_: ParquetError| damaged();
    let options = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    check_footer(&file, limits)?;
    let metadata = ArrowReaderMetadata::load(&file, options()).map_err(damaged)?;
    check_pages(&file, metadata.metadata(), limits)?;
    let as_view = |field: &Arc<Field>| match field.data_type() {
        // without an annotation text is binary; what is not UTF-8 is refused when it is read
        DataType::Utf8 | DataType::Binary => Field::new(field.name(), DataType::Utf8View, field.is_nullable()),
        other => Field::new(field.name(), other.clone(), field.is_nullable()),
    };
    let schema = Schema::new(metadata.schema().fields().iter().map(as_view).collect::<Vec<_>>());
    let options = options().with_schema(Arc::new(schema.clone()));
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options).map_err(damaged)?;
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata).with_batch_size(BATCH_ROWS);
    Ok((schema, RowGroupBatches(builder.build().map_err(damaged)?)))
}
