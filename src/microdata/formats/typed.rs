//! Rows of CSV as typed columns: what Parquet and Arrow outputs have in common.

use std::io;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int32Builder, Int64Builder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};

use super::csv::{Record, Scanner};
use crate::microdata::{
    AttributeType, CellInterval, CellShape, Domain, IngestLimits, Interner, parse_date, parse_integer,
    parse_local_timestamp, parse_set, parse_timestamp,
};

/// The most digits of a decimal that typed formats hold.
const MAX_DIGITS: u8 = 38;

/// A column of the output.
#[derive(Clone, Debug)]
pub struct TypedColumn {
    /// The name.
    pub name: String,
    /// How its values are held.
    pub kind: TypedKind,
    /// Whether a cell holds one of them, the ends of an interval, a set, the label of a node, or nothing.
    pub shape: CellShape,
}

impl TypedColumn {
    fn field(&self) -> Field {
        let nested = |name: &str| self.kind.nested().field(name);
        let kind = match self.shape {
            CellShape::Exact => return self.kind.field(&self.name),
            CellShape::Node | CellShape::Suppressed => return TypedKind::Text.field(&self.name),
            CellShape::Interval => DataType::Struct(Fields::from(vec![nested("from"), nested("to")])),
            CellShape::Set => DataType::List(Arc::new(nested("element"))),
        };
        Field::new(&self.name, kind, true)
    }
}

/// How values are held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypedKind {
    /// 32 bits, never missing.
    Bucket,
    /// 64 bits, never missing.
    Count,
    /// 64 bits.
    Integer,
    /// A decimal with its numbers of digits, and of those behind the point.
    Decimal(u8, u8),
    /// Binary, 64 bits.
    Float,
    /// A bit.
    Boolean,
    /// Days.
    Date,
    /// Microseconds in UTC.
    Timestamp,
    /// Microseconds without a time zone.
    LocalTimestamp,
    /// UTF-8 under a dictionary of its own for every batch.
    Text,
    /// UTF-8 as it is, inside of other cells.
    PlainText,
}

impl TypedKind {
    /// How values of a type are held; `scale` is that of a decimal column, `None` when it is too wide.
    #[must_use]
    pub fn new(kind: AttributeType, scale: Option<(u8, u8)>) -> Self {
        match kind {
            AttributeType::Integer => Self::Integer,
            AttributeType::Decimal => scale.map_or(Self::Text, |(digits, scale)| Self::Decimal(digits, scale)),
            AttributeType::Float => Self::Float,
            AttributeType::Text => Self::Text,
            AttributeType::Boolean => Self::Boolean,
            AttributeType::Date => Self::Date,
            AttributeType::Timestamp => Self::Timestamp,
            AttributeType::LocalTimestamp => Self::LocalTimestamp,
        }
    }

    /// How the same values are held inside of a cell.
    const fn nested(self) -> Self {
        match self {
            Self::Text => Self::PlainText,
            other => other,
        }
    }

    fn field(self, name: &str) -> Field {
        let kind = match self {
            Self::Bucket => DataType::Int32,
            Self::Count | Self::Integer => DataType::Int64,
            Self::Decimal(digits, scale) => DataType::Decimal128(digits, scale as i8),
            Self::Float => DataType::Float64,
            Self::Boolean => DataType::Boolean,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::LocalTimestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::PlainText => DataType::Utf8,
            Self::Text => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        };
        Field::new(name, kind, !matches!(self, Self::Bucket | Self::Count))
    }
}

/// Reads CSV as batches of typed columns.
pub struct TypedRows {
    columns: Vec<TypedColumn>,
    null: String,
    schema: SchemaRef,
}

impl TypedRows {
    /// Rows of these columns; `null` is the text of a missing value, unquoted, where that is not nothing.
    #[must_use]
    pub fn new(columns: Vec<TypedColumn>, null: Option<&str>) -> Self {
        let fields: Vec<Field> = columns.iter().map(TypedColumn::field).collect();
        Self { columns, null: null.unwrap_or_default().to_owned(), schema: Arc::new(Schema::new(fields)) }
    }

    /// What the batches look like.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Some lines of CSV as a batch; `header` when they begin with one.
    ///
    /// # Errors
    /// When they are not rows of these columns.
    pub fn batch(&self, csv: &[u8], header: bool) -> io::Result<RecordBatch> {
        let mut growing: Vec<TypedBuilder> = self.columns.iter().map(TypedBuilder::from_column).collect();
        each_record(csv, header, self.columns.len(), |record| {
            for ((field, quoted), column) in record.iter().zip(&mut growing) {
                let value = (quoted || field != self.null.as_bytes()).then_some(field);
                column.push(value).ok_or_else(|| corrupt("a value is not of its column's type"))?;
            }
            Ok(())
        })?;
        let arrays = growing.into_iter().map(TypedBuilder::finish).collect::<io::Result<Vec<ArrayRef>>>()?;
        RecordBatch::try_new(Arc::clone(&self.schema), arrays).map_err(corrupt)
    }
}

/// Finds how many digits decimal columns need.
pub struct DecimalScales {
    /// Per column, for decimal ones: digits before the point and behind it.
    columns: Vec<Option<(usize, usize)>>,
    shapes: Vec<CellShape>,
    null: String,
}

impl DecimalScales {
    /// Of columns of these types and shapes.
    #[must_use]
    pub fn new(columns: &[(AttributeType, CellShape)], null: Option<&str>) -> Self {
        let decimal = |&(kind, shape): &(AttributeType, CellShape)| {
            let has_digits = !matches!(shape, CellShape::Node | CellShape::Suppressed);
            (kind == AttributeType::Decimal && has_digits).then_some((0, 0))
        };
        Self {
            columns: columns.iter().map(decimal).collect(),
            shapes: columns.iter().map(|(_, shape)| *shape).collect(),
            null: null.unwrap_or_default().to_owned(),
        }
    }

    /// Whether there is a decimal column.
    #[must_use]
    pub fn needed(&self) -> bool {
        self.columns.iter().any(Option::is_some)
    }

    /// Looks at some lines of CSV; `header` when they begin with one.
    ///
    /// # Errors
    /// When they are not rows of these columns.
    pub fn look(&mut self, csv: &[u8], header: bool) -> io::Result<()> {
        let Self { columns, shapes, null } = self;
        each_record(csv, header, columns.len(), |record| {
            for ((field, quoted), (column, shape)) in record.iter().zip(columns.iter_mut().zip(shapes.iter())) {
                let Some((whole, fraction)) = column else { continue };
                if !quoted && field == null.as_bytes() {
                    continue;
                }
                let mut look = |value: &[u8]| {
                    let digits = value.strip_prefix(b"-").unwrap_or(value);
                    let point = digits.iter().position(|&byte| byte == b'.').unwrap_or(digits.len());
                    *whole = (*whole).max(point);
                    *fraction = (*fraction).max(digits.len().saturating_sub(point + 1));
                };
                match shape {
                    CellShape::Exact => look(field),
                    // labels have no digits to be held
                    CellShape::Node | CellShape::Suppressed => {}
                    CellShape::Interval => {
                        let span = CellInterval::parse(field).ok_or_else(|| corrupt("a cell is no interval"))?;
                        span.from.iter().chain([&span.to]).for_each(|end| look(end));
                    }
                    CellShape::Set => {
                        let values = parse_set(field).ok_or_else(|| corrupt("a cell is no set"))?;
                        values.iter().flatten().for_each(|value| look(value));
                    }
                }
            }
            Ok(())
        })
    }

    /// Per column: all digits and those behind the point, of a decimal column that is not too wide.
    #[must_use]
    pub fn found(&self) -> Vec<Option<(u8, u8)>> {
        let fits = |&(whole, fraction): &(usize, usize)| {
            let digits = u8::try_from((whole + fraction).max(1)).ok().filter(|&digits| digits <= MAX_DIGITS)?;
            Some((digits, fraction as u8))
        };
        self.columns.iter().map(|column| column.as_ref().and_then(fits)).collect()
    }
}

fn corrupt(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, cause)
}

fn each_record(
    csv: &[u8],
    header: bool,
    width: usize,
    mut take: impl FnMut(&Record<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut scanner = Scanner::new(csv, (width > 1).then_some(b','), &IngestLimits::of_own_parts());
    if header {
        scanner.next_record().map_err(corrupt)?;
    }
    while let Some(record) = scanner.next_record().map_err(corrupt)? {
        if record.len() != width {
            return Err(corrupt("a row has other columns than its part"));
        }
        take(&record)?;
    }
    Ok(())
}

/// A column under construction.
enum TypedBuilder {
    Bucket(Int32Builder),
    Integer(Int64Builder),
    Decimal(Decimal128Builder, u8, u8),
    Float(Float64Builder),
    Boolean(BooleanBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    LocalTimestamp(TimestampMicrosecondBuilder),
    Text(Box<Interner>, Vec<Option<u32>>),
    PlainText(StringBuilder),
    /// Both ends, and whether there is an interval.
    Interval(Box<[TypedBuilder; 2]>, Vec<bool>, Fields),
    /// The values of all sets, how many each has, and whether there is one.
    Set(Box<TypedBuilder>, Vec<usize>, Vec<bool>, FieldRef),
}

impl TypedBuilder {
    fn from_column(column: &TypedColumn) -> Self {
        let nested = || Self::new(column.kind.nested());
        match column.field().data_type() {
            DataType::Struct(fields) if column.shape == CellShape::Interval => {
                Self::Interval(Box::new([nested(), nested()]), Vec::new(), fields.clone())
            }
            DataType::List(field) => Self::Set(Box::new(nested()), Vec::new(), Vec::new(), Arc::clone(field)),
            _ if matches!(column.shape, CellShape::Node | CellShape::Suppressed) => Self::new(TypedKind::Text),
            _ => Self::new(column.kind),
        }
    }

    fn new(kind: TypedKind) -> Self {
        match kind {
            TypedKind::Bucket => Self::Bucket(Int32Builder::new()),
            TypedKind::Count | TypedKind::Integer => Self::Integer(Int64Builder::new()),
            TypedKind::Decimal(digits, scale) => Self::Decimal(Decimal128Builder::new(), digits, scale),
            TypedKind::Float => Self::Float(Float64Builder::new()),
            TypedKind::Boolean => Self::Boolean(BooleanBuilder::new()),
            TypedKind::Date => Self::Date(Date32Builder::new()),
            TypedKind::Timestamp => Self::Timestamp(TimestampMicrosecondBuilder::new()),
            TypedKind::LocalTimestamp => Self::LocalTimestamp(TimestampMicrosecondBuilder::new()),
            TypedKind::Text => Self::Text(Box::default(), Vec::new()),
            TypedKind::PlainText => Self::PlainText(StringBuilder::new()),
        }
    }

    /// Appends a cell; `None` when it is not of the type.
    fn push(&mut self, value: Option<&[u8]>) -> Option<()> {
        /// The value parsed, if there is one.
        fn parsed<'v, T>(value: Option<&'v [u8]>, parse: impl Fn(&'v [u8]) -> Option<T>) -> Option<Option<T>> {
            value.map_or(Some(None), |value| parse(value).map(Some))
        }
        match self {
            Self::Bucket(builder) => {
                builder.append_option(parsed(value, |text| parse_integer(text)?.try_into().ok())?);
            }
            Self::Integer(builder) => builder.append_option(parsed(value, parse_integer)?),
            Self::Decimal(builder, _, scale) => builder.append_option(parsed(value, |text| parse_units(text, *scale))?),
            Self::Float(builder) => builder.append_option(parsed(value, float)?),
            Self::Boolean(builder) => builder.append_option(parsed(value, |text| match text {
                b"true" => Some(true),
                b"false" => Some(false),
                _ => None,
            })?),
            Self::Date(builder) => builder.append_option(parsed(value, parse_date)?),
            Self::Timestamp(builder) => builder.append_option(parsed(value, parse_timestamp)?),
            Self::LocalTimestamp(builder) => builder.append_option(parsed(value, parse_local_timestamp)?),
            Self::Text(interner, codes) => codes.push(value.map(|value| interner.intern(value))),
            Self::PlainText(builder) => {
                builder.append_option(parsed(value, |text| Some(std::str::from_utf8(text).ok()?.to_owned()))?);
            }
            Self::Interval(ends, valid, _) => {
                let span = parsed(value, CellInterval::parse)?;
                let (from, to) = match &span {
                    Some(span) => (span.from.as_deref(), Some(&*span.to)),
                    None => (None, None),
                };
                ends[0].push(from)?;
                ends[1].push(to)?;
                valid.push(span.is_some());
            }
            Self::Set(values, lengths, valid, _) => {
                let set = parsed(value, parse_set)?;
                valid.push(set.is_some());
                let set = set.unwrap_or_default();
                lengths.push(set.len());
                for value in &set {
                    values.push(value.as_deref())?;
                }
            }
        }
        Some(())
    }

    fn finish(self) -> io::Result<ArrayRef> {
        Ok(match self {
            Self::Bucket(mut builder) => Arc::new(builder.finish()),
            Self::Integer(mut builder) => Arc::new(builder.finish()),
            Self::Decimal(mut builder, digits, scale) => {
                let array = builder.finish().with_precision_and_scale(digits, scale as i8);
                Arc::new(array.map_err(corrupt)?)
            }
            Self::Float(mut builder) => Arc::new(builder.finish()),
            Self::Boolean(mut builder) => Arc::new(builder.finish()),
            Self::Date(mut builder) => Arc::new(builder.finish()),
            Self::Timestamp(mut builder) => Arc::new(builder.finish().with_timezone("UTC")),
            Self::LocalTimestamp(mut builder) => Arc::new(builder.finish()),
            Self::PlainText(mut builder) => Arc::new(builder.finish()),
            Self::Interval(ends, valid, fields) => {
                let ends = ends.into_iter().map(Self::finish).collect::<io::Result<Vec<ArrayRef>>>()?;
                let nulls = Some(NullBuffer::from(valid));
                Arc::new(StructArray::try_new(fields, ends, nulls).map_err(corrupt)?)
            }
            Self::Set(values, lengths, valid, field) => {
                let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
                let nulls = Some(NullBuffer::from(valid));
                Arc::new(ListArray::try_new(field, offsets, values.finish()?, nulls).map_err(corrupt)?)
            }
            Self::Text(mut interner, codes) => {
                let (domain, ranks) = Domain::sort(AttributeType::Text, false, &interner.take());
                let mut values = StringBuilder::new();
                for value in domain.iter() {
                    values.append_value(std::str::from_utf8(value.unwrap_or_default()).map_err(corrupt)?);
                }
                let values: StringArray = values.finish();
                let keys: Int32Array = codes.iter().map(|code| code.map(|code| ranks[code as usize] as i32)).collect();
                Arc::new(DictionaryArray::try_new(keys, Arc::new(values)).map_err(corrupt)?)
            }
        })
    }
}

/// The number that a decimal stands for.
fn float(text: &[u8]) -> Option<f64> {
    AttributeType::Float.admits(text).then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

/// The value of a decimal text in units of its last digit but `scale`.
#[must_use]
pub fn parse_units(text: &[u8], scale: u8) -> Option<i128> {
    let (negative, digits) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
    let mut value: i128 = 0;
    let mut behind: Option<u8> = None;
    for &byte in digits {
        match byte {
            b'.' if behind.is_none() => behind = Some(0),
            b'0'..=b'9' => {
                value = value.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                behind = behind.map(|digits| digits + 1);
            }
            _ => return None,
        }
    }
    let value = value.checked_mul(10_i128.checked_pow(u32::from(scale.checked_sub(behind.unwrap_or(0))?))?)?;
    Some(if negative { -value } else { value })
}
