//! Arrow arrays to chunks: what Parquet and Arrow inputs have in common.

use std::fmt::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch};
use arrow_schema::{DataType, Schema, TimeUnit};

use super::collect::{Collector, malformed};
use super::error::IngestError;
use super::input::TableReader;
use crate::microdata::limits::IngestLimits;
use crate::microdata::{
    AttributeType, Chunk, format_date, format_local_timestamp, format_time_of_day, format_timestamp,
};

/// Between two looks at how much memory a chunk takes.
const MEMORY_CHECK_ROWS: usize = 1024;

/// Where batches come from.
pub(super) trait BatchSource: Send {
    /// The next batch; `None` at the end.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, IngestError>;
}

/// A batch under reading.
struct PendingBatch {
    batch: RecordBatch,
    /// Number of rows that were taken.
    taken: usize,
}

/// Record batches as chunks.
pub(super) struct Batches<S> {
    source: S,
    collector: Collector,
    kinds: Vec<Option<AttributeType>>,
    /// A batch of which some rows are left.
    pending: Option<PendingBatch>,
}

impl<S: BatchSource> Batches<S> {
    pub(super) fn new(
        schema: &Schema,
        source: S,
        types: Vec<(String, AttributeType)>,
        limits: &IngestLimits,
    ) -> Result<Self, IngestError> {
        let mut collector = Collector::new(types, limits);
        let mut kinds = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let column = collector.add_column(field.name(), 0)?;
            let Some(kind) = kind_of(field.data_type()) else {
                let detail = "the column is nested or of a type that has no text; send numbers, text, booleans, dates, times or timestamps";
                return Err(malformed(None, Some(field.name().clone()), detail));
            };
            kinds.push(collector.given(column).or(kind));
        }
        if kinds.is_empty() {
            return Err(IngestError::Empty);
        }
        collector.columns_are_complete()?;
        Ok(Self { source, collector, kinds, pending: None })
    }
}

impl<S: BatchSource> TableReader for Batches<S> {
    fn names(&self) -> &[String] {
        self.collector.names()
    }

    fn kinds(&self) -> Vec<Option<AttributeType>> {
        self.kinds.clone()
    }

    fn next_chunk(&mut self) -> Result<Option<Chunk>, IngestError> {
        loop {
            let room = self.collector.room();
            if room == 0 {
                return self.collector.finish();
            }
            let PendingBatch { batch, taken: from } = match self.pending.take() {
                Some(pending) => pending,
                None => {
                    let source = &mut self.source;
                    match guarded(|| source.next_batch())? {
                        Some(batch) => PendingBatch { batch, taken: 0 },
                        None => return self.collector.finish(),
                    }
                }
            };
            if batch.num_columns() != self.kinds.len() {
                return Err(malformed(None, None, "a batch has other columns than the schema"));
            }
            let to = batch.num_rows().min(from + room.min(MEMORY_CHECK_ROWS));
            for (column, array) in batch.columns().iter().enumerate() {
                push(array.as_ref(), from, to, &mut self.collector, column)?;
            }
            if to < batch.num_rows() {
                self.pending = Some(PendingBatch { batch, taken: to });
            }
        }
    }
}

/// Runs a reader that others wrote over bytes that anyone may send: a panic in it is a damaged file.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T, IngestError>) -> Result<T, IngestError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(damaged()))
}

/// The error for an error of a reader, whose text may reveal values.
pub(super) fn damaged() -> IngestError {
    malformed(None, None, "the file is damaged, truncated or uses a feature that is not supported")
}

/// The type of a column, `Some(None)` when its values decide; `None` when it has no place in a table.
fn kind_of(kind: &DataType) -> Option<Option<AttributeType>> {
    Some(match kind {
        // above 2^63 - 1 an integer is a decimal
        DataType::Null | DataType::UInt64 => None,
        DataType::Boolean => Some(AttributeType::Boolean),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Some(AttributeType::Integer),
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => Some(AttributeType::Integer),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => Some(AttributeType::Float),
        DataType::Decimal32(..) | DataType::Decimal64(..) => Some(AttributeType::Decimal),
        DataType::Decimal128(..) | DataType::Decimal256(..) => Some(AttributeType::Decimal),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(AttributeType::Text),
        DataType::Date32 | DataType::Date64 => Some(AttributeType::Date),
        // a time of day has no type of its own: it is the text of a clock
        DataType::Time32(_) | DataType::Time64(_) => Some(AttributeType::Text),
        DataType::Timestamp(_, None) => Some(AttributeType::LocalTimestamp),
        DataType::Timestamp(_, Some(_)) => Some(AttributeType::Timestamp),
        DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(..)) => return kind_of(values),
        _ => return None,
    })
}

/// Appends rows of an array.
fn push(
    array: &dyn Array,
    from: usize,
    to: usize,
    collector: &mut Collector,
    column: usize,
) -> Result<(), IngestError> {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let slice = array.slice(from, to - from);
        let slice = slice.as_any_dictionary();
        let (keys, values) = (slice.keys(), dictionary.values());
        let places = if values.is_empty() { vec![0; keys.len()] } else { slice.normalized_keys() };
        let unfit = values.is_empty() || *values.data_type() == DataType::Null;
        let missing = |row: usize| unfit || keys.is_null(row) || values.is_null(places[row]);
        let mut rows = (0..keys.len()).map(|row| (!missing(row)).then(|| places[row]));
        return push_values(values.as_ref(), &mut rows, collector, column);
    }
    // a null array has no bit map of what is missing
    let none = *array.data_type() == DataType::Null;
    let mut rows = (from..to).map(|row| (!none && array.is_valid(row)).then_some(row));
    push_values(array, &mut rows, collector, column)
}

/// Appends the values at `rows` of an array.
fn push_values(
    array: &dyn Array,
    rows: &mut dyn Iterator<Item = Option<usize>>,
    collector: &mut Collector,
    column: usize,
) -> Result<(), IngestError> {
    let to = TextSink { rows, collector, column, text: String::new() };
    match array.data_type() {
        DataType::Boolean => {
            let array = array.as_boolean();
            to.texts(|row, text| {
                text.push_str(if array.value(row) { "true" } else { "false" });
                Ok(())
            })
        }
        DataType::Int8 => to.integers::<Int8Type>(array),
        DataType::Int16 => to.integers::<Int16Type>(array),
        DataType::Int32 => to.integers::<Int32Type>(array),
        DataType::Int64 => to.integers::<Int64Type>(array),
        DataType::UInt8 => to.integers::<UInt8Type>(array),
        DataType::UInt16 => to.integers::<UInt16Type>(array),
        DataType::UInt32 => to.integers::<UInt32Type>(array),
        DataType::UInt64 => to.integers::<UInt64Type>(array),
        DataType::Float16 => to.floats::<Float16Type, f32>(array, f32::is_finite),
        DataType::Float32 => to.floats::<Float32Type, f32>(array, f32::is_finite),
        DataType::Float64 => to.floats::<Float64Type, f64>(array, f64::is_finite),
        DataType::Decimal32(..) => to.decimals::<Decimal32Type>(array),
        DataType::Decimal64(..) => to.decimals::<Decimal64Type>(array),
        DataType::Decimal128(..) => to.decimals::<Decimal128Type>(array),
        DataType::Decimal256(..) => to.decimals::<Decimal256Type>(array),
        DataType::Utf8 => to.strings(|row| array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => to.strings(|row| array.as_string::<i64>().value(row)),
        DataType::Utf8View => to.strings(|row| array.as_string_view().value(row)),
        DataType::Date32 => {
            let array = array.as_primitive::<Date32Type>();
            to.texts(|row, text| written(format_date(array.value(row)), text))
        }
        DataType::Date64 => {
            let array = array.as_primitive::<Date64Type>();
            let day = |row| i32::try_from(array.value(row).div_euclid(86_400_000)).ok();
            to.texts(|row, text| written(day(row).and_then(format_date), text))
        }
        DataType::Time32(unit) | DataType::Time64(unit) => to.times_of_day(array, *unit),
        DataType::Timestamp(unit, None) => to.timestamps(array, *unit, format_local_timestamp),
        DataType::Timestamp(unit, Some(_)) => to.timestamps(array, *unit, format_timestamp),
        // kind_of lets nothing else pass; in null columns every row is missing
        _ => to.texts(|_, _| Err("the value has no text")),
    }
}

/// Where the texts of values go.
struct TextSink<'a> {
    rows: &'a mut dyn Iterator<Item = Option<usize>>,
    collector: &'a mut Collector,
    column: usize,
    text: String,
}

impl TextSink<'_> {
    fn texts(self, mut write: impl FnMut(usize, &mut String) -> Result<(), &'static str>) -> Result<(), IngestError> {
        let Self { rows, collector, column, mut text } = self;
        for row in rows {
            let Some(row) = row else {
                collector.missing(column);
                continue;
            };
            text.clear();
            write(row, &mut text).map_err(|detail| collector.refuse(column, detail))?;
            collector.value(column, text.as_bytes())?;
        }
        Ok(())
    }

    fn strings<'s>(self, value: impl Fn(usize) -> &'s str) -> Result<(), IngestError> {
        for row in self.rows {
            match row {
                Some(row) => self.collector.value(self.column, value(row).as_bytes())?,
                None => self.collector.missing(self.column),
            }
        }
        Ok(())
    }

    fn integers<T: ArrowPrimitiveType>(self, array: &dyn Array) -> Result<(), IngestError>
    where
        T::Native: itoa::Integer,
    {
        let array = array.as_primitive::<T>();
        let mut digits = itoa::Buffer::new();
        self.texts(|row, text| {
            text.push_str(digits.format(array.value(row)));
            Ok(())
        })
    }

    fn floats<T: ArrowPrimitiveType, F: fmt::Display + Copy + From<T::Native>>(
        self,
        array: &dyn Array,
        is_finite: impl Fn(F) -> bool,
    ) -> Result<(), IngestError> {
        let array = array.as_primitive::<T>();
        self.texts(|row, text| float(F::from(array.value(row)), &is_finite, text))
    }

    fn timestamps(
        self,
        array: &dyn Array,
        unit: TimeUnit,
        format: fn(i64) -> Option<String>,
    ) -> Result<(), IngestError> {
        let micros = |row: usize| match unit {
            TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(row).checked_mul(1_000_000),
            TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(row).checked_mul(1000),
            TimeUnit::Microsecond => Some(array.as_primitive::<TimestampMicrosecondType>().value(row)),
            TimeUnit::Nanosecond => {
                let nanos = array.as_primitive::<TimestampNanosecondType>().value(row);
                (nanos % 1000 == 0).then_some(nanos / 1000)
            }
        };
        self.texts(|row, text| match micros(row) {
            Some(micros) => written(format(micros), text),
            None => Err("the moment is finer than a microsecond, or too far away"),
        })
    }

    fn times_of_day(self, array: &dyn Array, unit: TimeUnit) -> Result<(), IngestError> {
        let micros = |row: usize| match unit {
            TimeUnit::Second => Some(i64::from(array.as_primitive::<Time32SecondType>().value(row)) * 1_000_000),
            TimeUnit::Millisecond => Some(i64::from(array.as_primitive::<Time32MillisecondType>().value(row)) * 1000),
            TimeUnit::Microsecond => Some(array.as_primitive::<Time64MicrosecondType>().value(row)),
            TimeUnit::Nanosecond => {
                let nanos = array.as_primitive::<Time64NanosecondType>().value(row);
                (nanos % 1000 == 0).then_some(nanos / 1000)
            }
        };
        self.texts(|row, text| {
            let micros = micros(row).ok_or("the time of day is finer than a microsecond")?;
            text.push_str(&format_time_of_day(micros).ok_or("the time of day is not within a day")?);
            Ok(())
        })
    }

    fn decimals<T: DecimalType>(self, array: &dyn Array) -> Result<(), IngestError> {
        let array = array.as_primitive::<T>();
        self.texts(|row, text| {
            text.push_str(&array.value_as_string(row));
            if AttributeType::Decimal.admits(text.as_bytes()) { Ok(()) } else { Err("the decimal has no plain text") }
        })
    }
}

/// The shortest decimal text that reads as the same number.
fn float<F: fmt::Display + Copy>(
    value: F,
    is_finite: impl Fn(F) -> bool,
    text: &mut String,
) -> Result<(), &'static str> {
    if !is_finite(value) {
        return Err("the number is not finite: write a missing value as null, in Polars by fill_nan(None)");
    }
    // writing to a string cannot fail
    let _ = write!(text, "{value}");
    if text == "-0" {
        "0".clone_into(text);
    }
    Ok(())
}

fn written(formatted: Option<String>, text: &mut String) -> Result<(), &'static str> {
    text.push_str(&formatted.ok_or("the date is outside the years 0000 to 9999")?);
    Ok(())
}
