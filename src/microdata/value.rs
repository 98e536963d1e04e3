//! Values of attributes: their types and their one canonical order.
//!
//! A value is kept as the bytes it was uploaded with; a type says how these bytes are compared and how they are
//! written in typed formats. `None` stands for a missing value everywhere.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::calendar::{parse_date, parse_local_timestamp, parse_timestamp};

/// The type of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttributeType {
    /// Whole numbers that fit 64 bits, in canonical decimal form: no leading zero, no plus sign.
    Integer,
    /// Decimal numbers without exponent, at most one leading zero, compared by their exact value.
    Decimal,
    /// Binary floating-point numbers of 64 bits, as the shortest decimals that read as the same number; from typed formats, or
    /// declared.
    Float,
    /// UTF-8 text, compared by bytes.
    Text,
    /// `false` or `true`.
    Boolean,
    /// `YYYY-MM-DD`, of the years 0000 to 9999.
    Date,
    /// RFC 3339 in UTC with as many fractional digits as needed, at most six.
    Timestamp,
    /// The same without `Z`: date and time of day where no time zone is known.
    LocalTimestamp,
}

impl AttributeType {
    /// Every type.
    pub const ALL: [Self; 8] = [
        Self::Integer,
        Self::Decimal,
        Self::Float,
        Self::Text,
        Self::Boolean,
        Self::Date,
        Self::Timestamp,
        Self::LocalTimestamp,
    ];

    /// The types of one text, from the narrowest; no value is of two but an integer.
    const NARROWEST: [Self; 6] =
        [Self::Integer, Self::Decimal, Self::Boolean, Self::Date, Self::Timestamp, Self::LocalTimestamp];

    /// The name used in the contract.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Decimal => "decimal",
            Self::Float => "float",
            Self::Text => "text",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::LocalTimestamp => "local_timestamp",
        }
    }

    /// Whether `value` is a value of this type.
    #[must_use]
    pub fn admits(self, value: &[u8]) -> bool {
        match self {
            Self::Integer => parse_integer(value).is_some(),
            Self::Decimal | Self::Float => Decimal::parse(value).is_some(),
            Self::Text => std::str::from_utf8(value).is_ok(),
            Self::Boolean => matches!(value, b"false" | b"true"),
            Self::Date => parse_date(value).is_some(),
            Self::Timestamp => parse_timestamp(value).is_some(),
            Self::LocalTimestamp => parse_local_timestamp(value).is_some(),
        }
    }

    /// The narrowest type but float that admits all of `values`; text when there are none.
    pub fn infer<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut inferred = None;
        for value in values {
            inferred = Some(Self::widened(inferred, value));
            if inferred == Some(Self::Text) {
                break;
            }
        }
        inferred.unwrap_or(Self::Text)
    }

    /// One step of [`AttributeType::infer`]: the narrowest type that admits what `inferred` admits, and `value` too.
    #[must_use]
    pub fn widened(inferred: Option<Self>, value: &[u8]) -> Self {
        match inferred {
            Some(known) if known.admits(value) => known,
            Some(Self::Integer) if Self::Decimal.admits(value) => Self::Decimal,
            Some(_) => Self::Text,
            None => Self::NARROWEST.into_iter().find(|kind| kind.admits(value)).unwrap_or(Self::Text),
        }
    }

    /// A number that never falls as values of this type rise, so that most comparisons need no more than it.
    pub(super) fn sort_key(self, value: &[u8]) -> u64 {
        match self {
            Self::Integer => parse_integer(value).map_or(0, |number| number as u64 ^ 1 << 63),
            Self::Decimal | Self::Float => Decimal::parse(value).map_or(0, |decimal| decimal.sort_key()),
            Self::Text => {
                let mut key = [0; 8];
                let length = value.len().min(8);
                key[..length].copy_from_slice(&value[..length]);
                u64::from_be_bytes(key)
            }
            Self::Boolean => u64::from(value == b"true"),
            Self::Date => parse_date(value).map_or(0, |days| i64::from(days) as u64 ^ 1 << 63),
            Self::Timestamp => parse_timestamp(value).map_or(0, |micros| micros as u64 ^ 1 << 63),
            Self::LocalTimestamp => parse_local_timestamp(value).map_or(0, |micros| micros as u64 ^ 1 << 63),
        }
    }

    /// The canonical order of two values of this type: missing first, numbers by value, text by bytes, false before true, the
    /// earlier before the later. Decimals of equal
    /// value but different spelling are ordered by bytes, so that the order is total.
    #[must_use]
    pub fn compare(self, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
        let (Some(a), Some(b)) = (a, b) else { return a.is_some().cmp(&b.is_some()) };
        match self {
            Self::Integer => parse_integer(a).cmp(&parse_integer(b)),
            Self::Decimal | Self::Float => Decimal::parse(a).cmp(&Decimal::parse(b)).then_with(|| a.cmp(b)),
            // of a boolean or a date the bytes are in the order of the values
            Self::Text | Self::Boolean | Self::Date => a.cmp(b),
            Self::Timestamp => parse_timestamp(a).cmp(&parse_timestamp(b)),
            Self::LocalTimestamp => parse_local_timestamp(a).cmp(&parse_local_timestamp(b)),
        }
    }

    /// Whether values of this type are numbers.
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Decimal | Self::Float)
    }

    /// Whether equal values of this type may have different texts: `1.5` and `1.50`.
    #[must_use]
    pub const fn has_spellings(self) -> bool {
        matches!(self, Self::Decimal | Self::Float)
    }

    /// The order of two values of this type, where a decimal may have several spellings. An integer may be compared with a
    /// decimal.
    #[must_use]
    pub fn compare_by_value(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Integer | Self::Decimal | Self::Float => Decimal::parse(a).cmp(&Decimal::parse(b)),
            Self::Text | Self::Boolean | Self::Date | Self::Timestamp | Self::LocalTimestamp => {
                self.compare(Some(a), Some(b))
            }
        }
    }
}

/// The integer that `value` spells canonically, if it does.
#[must_use]
pub fn parse_integer(value: &[u8]) -> Option<i64> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let canonical = match digits {
        [] => false,
        [b'0'] => digits.len() == value.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if canonical { std::str::from_utf8(value).ok()?.parse().ok() } else { None }
}

/// The exact value of a decimal, as its sign and its digits.
#[derive(PartialEq, Eq)]
struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
}

impl<'a> Decimal<'a> {
    fn parse(value: &'a [u8]) -> Option<Self> {
        let digits = value.strip_prefix(b"-").unwrap_or(value);
        let (whole, fraction) = match digits.iter().position(|&b| b == b'.') {
            Some(point) if point + 1 < digits.len() => (&digits[..point], &digits[point + 1..]),
            Some(_) => return None,
            None => (digits, &[][..]),
        };
        let whole_is_canonical = matches!(whole, [b'0'] | [b'1'..=b'9', ..]);
        if !whole_is_canonical || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
            return None;
        }
        let significant = fraction.iter().rposition(|&b| b != b'0').map_or(0, |last| last + 1);
        let fraction = &fraction[..significant];
        let zero = whole == b"0" && fraction.is_empty();
        Some(Self { negative: digits.len() < value.len() && !zero, whole, fraction })
    }

    /// One bit of sign, seven of how many digits stand before the point, and the first fourteen digits.
    fn sort_key(&self) -> u64 {
        let magnitude = match self.whole.len() {
            length @ ..0x7F => {
                let digits = self.whole.iter().chain(self.fraction).chain(std::iter::repeat(&b'0')).take(14);
                digits.fold(length as u64, |key, &digit| key << 4 | u64::from(digit - b'0'))
            }
            _ => u64::MAX >> 1,
        };
        if self.negative { !(magnitude | 1 << 63) } else { magnitude | 1 << 63 }
    }

    fn magnitude(&self, other: &Self) -> Ordering {
        (self.whole.len().cmp(&other.whole.len()))
            .then_with(|| self.whole.cmp(other.whole))
            .then_with(|| self.fraction.cmp(other.fraction))
    }
}

impl Ord for Decimal<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
            (negative, _) => {
                if negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
        }
    }
}

impl PartialOrd for Decimal<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sort_keys_never_contradict_the_order(
            texts in prop::collection::vec(".{0,12}", 2), numbers in prop::collection::vec("-?[1-9][0-9]{0,17}", 2),
            decimals in prop::collection::vec("-?(0|[1-9][0-9]{0,3}|[1-9][0-9]{120,135})(\\.[0-9]{1,16})?", 2),
        ) {
            let cases = [(AttributeType::Text, texts), (AttributeType::Integer, numbers), (AttributeType::Decimal, decimals)];
            for (kind, pair) in cases {
                let (a, b) = (pair[0].as_bytes(), pair[1].as_bytes());
                prop_assert!(kind.admits(a) && kind.admits(b));
                match kind.compare(Some(a), Some(b)) {
                    Ordering::Less => prop_assert!(kind.sort_key(a) <= kind.sort_key(b)),
                    Ordering::Equal => prop_assert_eq!(kind.sort_key(a), kind.sort_key(b)),
                    Ordering::Greater => prop_assert!(kind.sort_key(a) >= kind.sort_key(b)),
                }
            }
        }
    }

    #[test]
    fn typed_values_are_ordered_by_value() {
        let rising = |kind: AttributeType, values: &[&str]| {
            for pair in values.windows(2) {
                let (a, b) = (pair[0].as_bytes(), pair[1].as_bytes());
                assert!(kind.admits(a) && kind.admits(b), "{pair:?}");
                assert_eq!(kind.compare(Some(a), Some(b)), Ordering::Less, "{pair:?}");
                assert!(kind.sort_key(a) <= kind.sort_key(b), "{pair:?}");
            }
        };
        rising(AttributeType::Boolean, &["false", "true"]);
        rising(AttributeType::Date, &["0000-01-01", "1969-12-31", "1970-01-01", "2024-02-29", "9999-12-31"]);
        let stamps =
            ["1969-12-31T23:59:59.9Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000001Z", "1970-01-01T00:00:01Z"];
        rising(AttributeType::Timestamp, &stamps);
        for kind in [AttributeType::Boolean, AttributeType::Date, AttributeType::Timestamp] {
            assert!(!kind.admits(b"") && !kind.admits(b"True") && !kind.admits(b"1"));
        }
    }

    #[test]
    fn only_canonical_integers_are_integers() {
        for value in ["0", "7", "-7", "9223372036854775807", "-9223372036854775808"] {
            assert!(AttributeType::Integer.admits(value.as_bytes()), "{value}");
        }
        for value in ["", "-", "-0", "007", "+7", "7.0", " 7", "9223372036854775808", "1e3"] {
            assert!(!AttributeType::Integer.admits(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn types_are_inferred_from_all_values() {
        let infer = |values: &[&str]| AttributeType::infer(values.iter().map(|v| v.as_bytes()));
        assert_eq!(infer(&["1", "-3"]), AttributeType::Integer);
        assert_eq!(infer(&["1", "2.50"]), AttributeType::Decimal);
        assert_eq!(infer(&["1", "02139"]), AttributeType::Text);
        assert_eq!(infer(&["9223372036854775808"]), AttributeType::Decimal);
        assert_eq!(infer(&[]), AttributeType::Text);
        for (kind, values) in [
            (AttributeType::Boolean, ["true", "false"]),
            (AttributeType::Date, ["2026-03-01", "0000-02-29"]),
            (AttributeType::Timestamp, ["2026-03-01T02:30:00Z", "2026-03-01T02:30:00.5Z"]),
            (AttributeType::LocalTimestamp, ["2026-03-01T02:30:00", "2026-03-01T02:30:00.123456"]),
        ] {
            assert_eq!(infer(&values), kind);
            // other spellings, and other types, would not come back as they were
            for other in ["True", "2026-02-30", "2026-03-01T02:30:00.50Z", "2026-03-01 02:30:00", "1", ""] {
                assert_eq!(infer(&[values[0], other]), AttributeType::Text, "{other}");
                assert_eq!(infer(&[other, values[0]]), AttributeType::Text, "{other}");
            }
        }
    }

    #[test]
    fn decimals_are_compared_exactly() {
        let sorted = ["-10.5", "-10.25", "-0.5", "-0", "0", "0.0", "0.10", "0.5", "2", "2.0", "10"];
        for pair in sorted.windows(2) {
            let order = AttributeType::Decimal.compare(Some(pair[0].as_bytes()), Some(pair[1].as_bytes()));
            assert_eq!(order, Ordering::Less, "{pair:?}");
            let key = |value: &str| AttributeType::Decimal.sort_key(value.as_bytes());
            assert!(key(pair[0]) <= key(pair[1]), "{pair:?}");
        }
        assert_eq!(AttributeType::Text.compare(None, Some(b"")), Ordering::Less);
    }
}
