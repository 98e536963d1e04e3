//! What the Parquet files of a part say by themselves: their columns, what else stands in them, and the order of their rows.

use std::cmp::Ordering;
use std::fs::File;
use std::io;
use std::path::Path;

use ::parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use ::parquet::file::metadata::KeyValue;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use serde_json::Value;

use super::kinds::SqlKind;

/// The column of bucket labels.
const BUCKET: &str = "bucket";
/// What the engine says of itself in a footer.
const VERSION: &str = "org.apache.spark.version";
/// The schema of the engine in a footer.
const ROW_METADATA: &str = "org.apache.spark.sql.parquet.row.metadata";
/// Rows of one batch.
const BATCH_ROWS: usize = 1 << 13;

/// What a file says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WrittenFile {
    /// Whether it has the columns of its part and nothing else.
    pub(super) has_columns: bool,
    /// Whether its rows stand in canonical order.
    pub(super) is_ordered: bool,
}

fn builder(path: &Path) -> io::Result<ParquetRecordBatchReaderBuilder<File>> {
    // the types of the columns decide, not what a writer says of them
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    ParquetRecordBatchReaderBuilder::try_new_with_options(File::open(path)?, options).map_err(io::Error::other)
}

/// The number of rows of a file.
///
/// # Errors
/// When it is no Parquet file.
pub(super) fn rows(path: &Path) -> io::Result<u64> {
    u64::try_from(builder(path)?.metadata().file_metadata().num_rows()).map_err(io::Error::other)
}

/// Reads a file whole.
///
/// # Errors
/// When it cannot be read.
pub(super) fn check(path: &Path, attributes: &[(String, SqlKind)], bucketed: bool) -> io::Result<WrittenFile> {
    let builder = builder(path)?;
    let bucket = bucketed.then(|| (BUCKET.to_owned(), DataType::Int32));
    let expected = bucket.into_iter().chain(attributes.iter().map(|(name, kind)| (name.clone(), kind.stored())));
    let expected: Vec<(String, DataType)> = expected.collect();
    let fields = builder.schema().fields();
    let same = fields.len() == expected.len()
        && fields
            .iter()
            .zip(&expected)
            .all(|(field, (name, kind))| field.name() == name && field.data_type() == kind && field.is_nullable());
    let metadata = builder.metadata().file_metadata().key_value_metadata();
    let has_columns = same && metadata.into_iter().flatten().all(is_plain);
    if !has_columns {
        return Ok(WrittenFile { has_columns, is_ordered: false });
    }
    let mut previous: Option<RecordBatch> = None;
    for batch in builder.with_batch_size(BATCH_ROWS).build().map_err(io::Error::other)? {
        let batch = batch.map_err(io::Error::other)?;
        if batch.num_rows() == 0 {
            continue;
        }
        let from_last = previous.as_ref().map(|last| compared(last, last.num_rows() - 1, &batch, 0));
        let inside = (1..batch.num_rows()).map(|row| compared(&batch, row - 1, &batch, row));
        if from_last.into_iter().chain(inside).any(|order| order == Ordering::Greater) {
            return Ok(WrittenFile { has_columns, is_ordered: false });
        }
        previous = Some(batch);
    }
    Ok(WrittenFile { has_columns, is_ordered: true })
}

/// Whether an entry of a footer says nothing of the source: no comment of a column, no column that is never missing.
fn is_plain(entry: &KeyValue) -> bool {
    let is_plain_field = |field: &Value| {
        field["nullable"] == Value::Bool(true) && field["metadata"].as_object().is_some_and(serde_json::Map::is_empty)
    };
    match (entry.key.as_str(), &entry.value) {
        (VERSION, _) => true,
        (ROW_METADATA, Some(text)) => serde_json::from_str::<Value>(text)
            .is_ok_and(|schema| schema["fields"].as_array().is_some_and(|fields| fields.iter().all(is_plain_field))),
        _ => false,
    }
}

/// The canonical order of two rows: by their cells from left to right, missing ones first.
fn compared(one: &RecordBatch, row: usize, other: &RecordBatch, at: usize) -> Ordering {
    let cells = one.columns().iter().zip(other.columns());
    let orders = cells.map(|(a, b)| match (a.is_null(row), b.is_null(at)) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => compared_values(a, row, b, at),
    });
    orders.fold(Ordering::Equal, Ordering::then)
}

fn compared_values(a: &dyn Array, row: usize, b: &dyn Array, at: usize) -> Ordering {
    fn numbers<T: ArrowPrimitiveType<Native: Ord>>(a: &dyn Array, row: usize, b: &dyn Array, at: usize) -> Ordering {
        a.as_primitive::<T>().value(row).cmp(&b.as_primitive::<T>().value(at))
    }
    match a.data_type() {
        DataType::Int32 => numbers::<Int32Type>(a, row, b, at),
        DataType::Int64 => numbers::<Int64Type>(a, row, b, at),
        // of one column all have one scale
        DataType::Decimal128(..) => numbers::<Decimal128Type>(a, row, b, at),
        DataType::Date32 => numbers::<Date32Type>(a, row, b, at),
        DataType::Timestamp(..) => numbers::<TimestampMicrosecondType>(a, row, b, at),
        DataType::Boolean => a.as_boolean().value(row).cmp(&b.as_boolean().value(at)),
        _ => a.as_string::<i32>().value(row).as_bytes().cmp(b.as_string::<i32>().value(at).as_bytes()),
    }
}
