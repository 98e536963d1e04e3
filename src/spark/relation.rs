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
use arrow_array::{ArrayRef, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::microdata::AttributeType;

/// A value of a relation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SqlValue {
    /// No value.
    Null,
    /// A whole number of 64 bits.
    Integer(i64),
    /// A text, also that of a date or truth value.
    Text(String),
}

/// The type of a column of a relation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SqlKind {
    Integer,
    Text,
    Date,
    Boolean,
}

impl From<AttributeType> for SqlKind {
    fn from(kind: AttributeType) -> Self {
        match kind {
            AttributeType::Integer => Self::Integer,
            AttributeType::Date => Self::Date,
            AttributeType::Boolean => Self::Boolean,
            _ => Self::Text,
        }
    }
}

/// The days of a date since 1970-01-01.
fn days(text: &str) -> Option<i32> {
    text.parse().ok().map(|date: chrono::NaiveDate| date.to_epoch_days())
}

fn text(value: &SqlValue) -> Option<String> {
    match value {
        SqlValue::Null => None,
        SqlValue::Integer(number) => Some(number.to_string()),
        SqlValue::Text(text) => Some(text.clone()),
    }
}

/// The cells of a column; a text that is none of its type becomes a missing value, which the audit finds.
fn cells(rows: &[Vec<SqlValue>], at: usize, kind: SqlKind) -> (DataType, ArrayRef) {
    let texts = || rows.iter().map(|row| row.get(at).and_then(text));
    match kind {
        SqlKind::Integer => {
            let numbers = texts().map(|text| text?.parse().ok()).collect::<Int64Array>();
            (DataType::Int64, Arc::new(numbers))
        }
        SqlKind::Text => (DataType::Utf8, Arc::new(texts().collect::<StringArray>())),
        SqlKind::Date => (DataType::Date32, Arc::new(texts().map(|text| days(&text?)).collect::<Date32Array>())),
        SqlKind::Boolean => {
            let flags = texts().map(|text| text?.parse().ok()).collect::<BooleanArray>();
            (DataType::Boolean, Arc::new(flags))
        }
    }
}

/// Writes rows to a new folder.
///
/// # Errors
/// When the folder or its file cannot be written.
pub(super) fn write(folder: &Path, columns: &[(&str, SqlKind)], rows: &[Vec<SqlValue>]) -> io::Result<()> {
    fs::create_dir(folder)?;
    let made = columns.iter().enumerate().map(|(at, (name, kind))| {
        let (kind, cells) = cells(rows, at, *kind);
        (Field::new(*name, kind, true), cells)
    });
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = made.unzip();
    let schema = Arc::new(Schema::new(fields));
    let file = File::create_new(folder.join("rows.parquet"))?;
    let mut writer = ArrowWriter::try_new(file, schema.clone(), None).map_err(io::Error::other)?;
    writer.write(&RecordBatch::try_new(schema, arrays).map_err(io::Error::other)?).map_err(io::Error::other)?;
    writer.close().map_err(io::Error::other)?;
    Ok(())
}
