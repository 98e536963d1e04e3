//! The types of columns, as the engine, files and releases have them.

use std::borrow::Cow;

use arrow_schema::{DataType, TimeUnit};

use crate::microdata::AttributeType;

/// The type of a column of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SqlKind {
    /// A whole number of 64 bits.
    Integer,
    /// A decimal with its numbers of digits, and of those behind the point.
    Decimal {
        /// All digits, at most 38.
        digits: u8,
        /// Those behind the point.
        scale: u8,
    },
    /// UTF-8.
    Text,
    /// A truth value.
    Boolean,
    /// A day.
    Date,
    /// A moment, in microseconds.
    Timestamp,
    /// Date and time of day where no time zone is known, in microseconds.
    LocalTimestamp,
}

impl SqlKind {
    /// The type of the attribute that a column of this type is.
    #[must_use]
    pub const fn attribute_type(self) -> AttributeType {
        match self {
            Self::Integer => AttributeType::Integer,
            Self::Decimal { .. } => AttributeType::Decimal,
            Self::Text => AttributeType::Text,
            Self::Boolean => AttributeType::Boolean,
            Self::Date => AttributeType::Date,
            Self::Timestamp => AttributeType::Timestamp,
            Self::LocalTimestamp => AttributeType::LocalTimestamp,
        }
    }

    /// The name in statements.
    pub(super) fn sql(self) -> Cow<'static, str> {
        match self {
            Self::Integer => "bigint".into(),
            Self::Decimal { digits, scale } => format!("decimal({digits}, {scale})").into(),
            Self::Text => "string".into(),
            Self::Boolean => "boolean".into(),
            Self::Date => "date".into(),
            Self::Timestamp => "timestamp".into(),
            Self::LocalTimestamp => "timestamp_ntz".into(),
        }
    }

    /// How Parquet files hold the values.
    pub(super) fn stored(self) -> DataType {
        match self {
            Self::Integer => DataType::Int64,
            Self::Decimal { digits, scale } => DataType::Decimal128(digits, scale.cast_signed()),
            Self::Text => DataType::Utf8,
            Self::Boolean => DataType::Boolean,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::LocalTimestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        }
    }

    /// The condition under which a value of a column has no canonical text; `None` if each has one.
    pub(super) fn malformed(self, column: &str) -> Option<String> {
        match self {
            Self::Text => Some(format!("not is_valid_utf8({column})")),
            Self::Date | Self::Timestamp | Self::LocalTimestamp => {
                Some(format!("year({column}) not between 0 and 9999"))
            }
            Self::Integer | Self::Decimal { .. } | Self::Boolean => None,
        }
    }

    /// The canonical text of what the engine casts to a text.
    pub(super) fn canonical(self, text: String) -> String {
        match self {
            Self::Timestamp => text.replacen(' ', "T", 1) + "Z",
            Self::LocalTimestamp => text.replacen(' ', "T", 1),
            _ => text,
        }
    }

    /// The text that the engine casts a value to, from its canonical one.
    pub(super) fn of_engine(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Timestamp | Self::LocalTimestamp => text.trim_end_matches('Z').replacen('T', " ", 1).into(),
            _ => text.into(),
        }
    }
}
