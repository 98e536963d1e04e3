//! Cells that stand for several values, as text: what generalization publishes.
//!
//! An interval is `from..to`, both ends included, also of a single value: `17..17`. The missing value comes before all others, and
//! an interval that begins with it has no first end: `..24` is a missing value or any one up to 24. An end that could be taken for
//! something else (empty, with `..` in it, with a point or a quotation mark at its edge) is written as a JSON string. A set is a
//! JSON array of its values in their order, null for the missing one, numbers as they are spelled. A node of a taxonomy is its label as it
//! stands, and an empty cell the leaf that is the missing value. All cells of a suppressed column are `*`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::value::AttributeType;

/// The kind of values that the cells of a column hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellShape {
    /// One value.
    #[default]
    Exact,
    /// An interval.
    Interval,
    /// A set.
    Set,
    /// The label of a node of a taxonomy, which stands for the values below it; of a leaf, the value itself.
    Node,
    /// [`SUPPRESSED_CELL`], which stands for any value, also the missing one.
    Suppressed,
}

/// What stands in every cell of a suppressed column.
pub const SUPPRESSED_CELL: &str = "*";

/// The ends of an interval.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellInterval<'a> {
    /// The first value; `None` when the missing one is among its values, and with it all up to the last.
    pub from: Option<Cow<'a, [u8]>>,
    /// The last value.
    pub to: Cow<'a, [u8]>,
}

const INTERVAL_SEPARATOR: &[u8] = b"..";

impl<'a> CellInterval<'a> {
    /// The interval that a cell spells; only the one spelling that is written is read.
    #[must_use]
    pub fn parse(cell: &'a [u8]) -> Option<Self> {
        let (from, rest) = end(cell)?;
        let (to, rest) = end(rest.strip_prefix(INTERVAL_SEPARATOR)?)?;
        let span = Self { from, to: to? };
        let mut again = Vec::with_capacity(cell.len());
        write_span(span.from.as_deref(), &span.to, &mut again);
        (rest.is_empty() && again == cell).then_some(span)
    }
}

/// Appends the interval of these ends.
pub fn write_span(from: Option<&[u8]>, to: &[u8], out: &mut Vec<u8>) {
    if let Some(from) = from {
        write_end(from, out);
    }
    out.extend_from_slice(INTERVAL_SEPARATOR);
    write_end(to, out);
}

fn write_end(value: &[u8], out: &mut Vec<u8>) {
    let edge = |byte: Option<&u8>| byte.is_none_or(|byte| matches!(byte, b'.' | b'"'));
    if edge(value.first()) || edge(value.last()) || value.windows(2).any(|pair| pair == INTERVAL_SEPARATOR) {
        write_text(value, out);
    } else {
        out.extend_from_slice(value);
    }
}

/// The end of an interval; `None` where it is open.
type IntervalEnd<'t> = Option<Cow<'t, [u8]>>;

/// What stands before the next `..`, and what is left.
fn end(text: &[u8]) -> Option<(IntervalEnd<'_>, &[u8])> {
    if text.first() != Some(&b'"') {
        let length = text.windows(2).position(|pair| pair == INTERVAL_SEPARATOR).unwrap_or(text.len());
        let (value, rest) = text.split_at(length);
        return Some(((!value.is_empty()).then_some(Cow::Borrowed(value)), rest));
    }
    let mut escaped = false;
    let closing = text.iter().skip(1).position(|&byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })?;
    let (quoted, rest) = text.split_at(closing + 2);
    let value: String = serde_json::from_slice(quoted).ok()?;
    Some((Some(Cow::Owned(value.into_bytes())), rest))
}

/// Appends the set of these values, `None` being the missing one.
pub fn write_set<'v>(kind: AttributeType, values: impl Iterator<Item = Option<&'v [u8]>>, out: &mut Vec<u8>) {
    out.push(b'[');
    for (at, value) in values.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_json(kind, value, out);
    }
    out.push(b']');
}

/// Whether a spreadsheet that opens a file with this cell takes it for a formula. Numbers are none.
#[must_use]
pub fn is_formula(cell: &[u8]) -> bool {
    let begins = matches!(cell, [b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r', _, ..]);
    begins && !AttributeType::Decimal.admits(cell.strip_prefix(b"+").unwrap_or(cell))
}

/// Appends a value as JSON: canonical numbers and booleans as they stand.
pub fn write_json(kind: AttributeType, value: Option<&[u8]>, out: &mut Vec<u8>) {
    let literal = kind.is_number() || kind == AttributeType::Boolean;
    match value {
        None => out.extend_from_slice(b"null"),
        Some(value) if literal && kind.admits(value) => out.extend_from_slice(value),
        Some(value) => write_text(value, out),
    }
}

fn write_text(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(serde_json::Value::from(String::from_utf8_lossy(value)).to_string().as_bytes());
}

/// The values of the set that a cell spells, in their order there.
#[must_use]
pub fn parse_set(cell: &[u8]) -> Option<Vec<Option<Vec<u8>>>> {
    let values: Vec<&RawValue> = serde_json::from_slice(cell).ok()?;
    let value = |raw: &&RawValue| match raw.get() {
        "null" => Some(None),
        text if text.starts_with('"') => Some(Some(serde_json::from_str::<String>(text).ok()?.into_bytes())),
        nested if nested.starts_with(['[', '{']) => None,
        literal => Some(Some(literal.as_bytes().to_vec())),
    };
    values.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(from in prop::option::of("[a\".\\\\,é]{0,5}"), to in "[a\".\\\\,é]{0,5}", more in prop::collection::vec(prop::option::of("[\"a,.]{0,3}"), 0..4)) {
            let mut cell = Vec::new();
            write_span(from.as_deref().map(str::as_bytes), to.as_bytes(), &mut cell);
            let span = CellInterval::parse(&cell).expect("an interval");
            prop_assert_eq!(span.from.as_deref(), from.as_deref().map(str::as_bytes));
            prop_assert_eq!(&*span.to, to.as_bytes());
            let mut cell = Vec::new();
            write_set(AttributeType::Text, more.iter().map(|value| value.as_deref().map(str::as_bytes)), &mut cell);
            let read = parse_set(&cell).expect("a set");
            prop_assert_eq!(read, more.into_iter().map(|value| value.map(String::into_bytes)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn intervals_are_read_in_one_spelling() {
        let span = |text: &'static str| {
            let span = CellInterval::parse(text.as_bytes())?;
            let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
            Some((span.from.as_deref().map(text), text(&span.to)))
        };
        let pair = |from: &str, to: &str| Some((Some(from.to_owned()), to.to_owned()));
        assert_eq!(span("17..24"), pair("17", "24"));
        assert_eq!(span("-5..-1.5"), pair("-5", "-1.5"));
        assert_eq!(span("..24"), Some((None, "24".to_owned())));
        assert_eq!(span("\"\"..\"a..b\""), pair("", "a..b"));
        for not in ["", "17", "17..", "..", "17..24..", "\"17\"..24", "1...5", "\"a", "[1]"] {
            assert_eq!(span(not), None, "{not}");
        }
        let mut cell = Vec::new();
        write_set(AttributeType::Decimal, [None, Some(&b"-0"[..]), Some(b"1.50")].into_iter(), &mut cell);
        assert_eq!(cell, b"[null,-0,1.50]");
        assert_eq!(parse_set(b"[1.50,[2]]"), None);
        assert_eq!(parse_set(&cell).map(|values| values.len()), Some(3));
    }

    #[test]
    fn formulas_are_what_a_spreadsheet_executes() {
        for formula in ["=1+1", "+49 30", "-x", "@SUM(A1)", "=..b", "\t=1", "\r=1", "--1", "-1+1"] {
            assert!(is_formula(formula.as_bytes()), "{formula}");
        }
        for text in ["", "-", "=", "-1", "+1.50", "-0.5", "a=1", "'=1", "[\"=1\"]", "*"] {
            assert!(!is_formula(text.as_bytes()), "{text}");
        }
    }
}
