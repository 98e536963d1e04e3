//! Relations that are sent to the engine: Parquet files in the scratch folder.
//!
//! A server of Spark Connect writes requests to its log with the rows in them, and logs are read by others than the engine. So keys and
//! plans travel through the scratch folder, which holds the assignment of rows anyway.

use std::fs;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{Field, Schema};

use super::kinds::SqlKind;
use crate::microdata::formats::parse_units;
use crate::microdata::{parse_date, parse_local_timestamp, parse_timestamp};

/// Rows that are in memory at once.
const BATCH_ROWS: usize = 1 << 14;

/// A value of a relation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SqlValue {
    /// No value.
    Null,
    /// A whole number of 64 bits.
    Integer(i64),
    /// A text, also that of a decimal, a date, a moment or a truth value.
    Text(String),
}

fn text(value: &SqlValue) -> Option<String> {
    match value {
        SqlValue::Null => None,
        SqlValue::Integer(number) => Some(number.to_string()),
        SqlValue::Text(text) => Some(text.clone()),
    }
}

/// The cells of a column; a text that is none of its type becomes a missing value, which the audit finds.
fn cells(rows: &[Vec<SqlValue>], at: usize, kind: SqlKind) -> ArrayRef {
    let texts = || rows.iter().map(|row| row.get(at).and_then(text));
    let micros = |parse: fn(&[u8]) -> Option<i64>| {
        texts().map(|text| parse(text?.as_bytes())).collect::<TimestampMicrosecondArray>()
    };
    match kind {
        SqlKind::Integer => Arc::new(texts().map(|text| text?.parse().ok()).collect::<Int64Array>()),
        SqlKind::Decimal { scale, .. } => {
            let units = texts().map(|text| parse_units(text?.as_bytes(), scale)).collect::<Decimal128Array>();
            Arc::new(units.with_data_type(kind.stored()))
        }
        SqlKind::Text => Arc::new(texts().collect::<StringArray>()),
        SqlKind::Boolean => Arc::new(texts().map(|text| text?.parse().ok()).collect::<BooleanArray>()),
        SqlKind::Date => Arc::new(texts().map(|text| parse_date(text?.as_bytes())).collect::<Date32Array>()),
        SqlKind::Timestamp => Arc::new(micros(parse_timestamp).with_data_type(kind.stored())),
        SqlKind::LocalTimestamp => Arc::new(micros(parse_local_timestamp)),
    }
}

/// Writes rows to a new folder.
///
/// # Errors
/// When the folder or its file cannot be written.
pub(super) fn write(
    folder: &Path,
    columns: &[(&str, SqlKind)],
    rows: impl IntoIterator<Item = Vec<SqlValue>>,
) -> io::Result<()> {
    fs::create_dir(folder)?;
    let fields = columns.iter().map(|(name, kind)| Field::new(*name, kind.stored(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
    let file = File::create_new(folder.join("rows.parquet"))?;
    let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(file, schema.clone(), options).map_err(io::Error::other)?;
    let mut rows = rows.into_iter();
    loop {
        let batch: Vec<Vec<SqlValue>> = rows.by_ref().take(BATCH_ROWS).collect();
        if batch.is_empty() {
            break;
        }
        let arrays = columns.iter().enumerate().map(|(at, (_, kind))| cells(&batch, at, *kind)).collect();
        let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(io::Error::other)?;
        writer.write(&batch).map_err(io::Error::other)?;
    }
    writer.close().map_err(io::Error::other)?;
    Ok(())
}
