//! What is known of a dataset without its rows: counts of single columns.

use serde::{Deserialize, Serialize};

use super::chunk::ChunkColumn;
use super::distinct::DistinctCounter;
use super::interner::VALUE_OVERHEAD;
use super::limits::IngestLimits;
use super::table::Column;
use super::value::AttributeType;

/// A column with fewer non-missing rows is not taken for an identifier.
const IDENTIFIER_ROWS: u64 = 20;

/// Counts of one column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ColumnProfile {
    /// The name.
    pub name: String,
    /// The type, given or inferred from all values.
    pub kind: AttributeType,
    /// Distinct values, a missing one not counted; `None` when there are more than are accepted.
    pub distinct: Option<u64>,
    /// Rows without a value.
    pub missing: u64,
    /// Rows of the most frequent value, a missing one counted as a value; a lower bound when `distinct` is `None`.
    pub top: u64,
    /// Whether the column looks like an identifier: text, integer, date or timestamp, at least 20 rows with a value, more than 90% of these
    /// rows distinct.
    pub identifier: bool,
    /// Whether more than 50% of at least 20 rows with a value are distinct, whatever their type.
    pub mostly_distinct: bool,
    /// The bytes of the distinct values together, where they are counted.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Whether the rows of persons were chosen by this column, by one that determines it or is determined by it, or by one of which its
    /// values are ranges.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub chose_rows: bool,
}

impl ColumnProfile {
    /// The profile of a column that is at hand whole.
    #[must_use]
    pub fn new(name: &str, column: &Column) -> Self {
        let counts = column.counts();
        let missing = if column.domain.has_missing() { counts.first().copied().unwrap_or(0) } else { 0 };
        let distinct = (column.domain.len() - usize::from(column.domain.has_missing())) as u64;
        let (kind, present) = (column.domain.kind(), column.codes.len() as u64 - missing);
        Self {
            name: name.to_owned(),
            kind,
            distinct: Some(distinct),
            missing,
            top: counts.into_iter().max().unwrap_or(0),
            identifier: is_identifier(kind, distinct, present),
            mostly_distinct: is_distinct(50, distinct, present),
            bytes: Some(column.domain.iter().flatten().map(|value| value.len() as u64).sum()),
            chose_rows: false,
        }
    }

    /// The profile of a column of which only counts are known: `distinct` values; all rows, those without a value, and those of the
    /// most frequent value.
    #[must_use]
    pub fn of_counts(name: &str, kind: AttributeType, distinct: u64, [rows, missing, top]: [u64; 3]) -> Self {
        let present = rows - missing;
        Self {
            name: name.to_owned(),
            kind,
            distinct: Some(distinct),
            missing,
            top,
            identifier: is_identifier(kind, distinct, present),
            mostly_distinct: is_distinct(50, distinct, present),
            bytes: None,
            chose_rows: false,
        }
    }

    /// Whether the column had more distinct values than were accepted when it was uploaded; it can then only be dropped.
    #[must_use]
    pub const fn overflow(&self) -> bool {
        self.distinct.is_none()
    }

    /// Whether the column has more distinct values than `limits` accept now.
    #[must_use]
    pub fn exceeds(&self, limits: &IngestLimits) -> bool {
        self.distinct.is_none_or(|distinct| !fits(limits, distinct, self.bytes.unwrap_or(0)))
    }

    /// How many codes a domain of the column has: distinct values, a missing one counted as one.
    #[must_use]
    pub fn codes(&self) -> Option<u64> {
        self.distinct.map(|distinct| distinct + u64::from(self.missing > 0))
    }
}

/// Counts of all columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DatasetProfile {
    /// How many rows there are.
    pub rows: u64,
    /// The columns, in their order.
    pub columns: Vec<ColumnProfile>,
}

/// Whether a column looks like an identifier. Measures with decimals are often distinct, and name no one.
const fn is_identifier(kind: AttributeType, distinct: u64, present: u64) -> bool {
    let may_identify = match kind {
        AttributeType::Integer
        | AttributeType::Text
        | AttributeType::Date
        | AttributeType::Timestamp
        | AttributeType::LocalTimestamp => true,
        AttributeType::Decimal | AttributeType::Float | AttributeType::Boolean => false,
    };
    may_identify && is_distinct(90, distinct, present)
}

/// Whether more than `percent` of the rows with a value are distinct.
const fn is_distinct(percent: u64, distinct: u64, present: u64) -> bool {
    present >= IDENTIFIER_ROWS && distinct * 100 > present * percent
}

/// Profiles one column, in as many passes over its chunks as [`ProfileBuilder::next_pass`] says. Memory is bounded, whatever the
/// column holds.
pub struct ProfileBuilder {
    distinct: DistinctCounter,
    passes: u32,
    missing: u64,
    rows: u64,
    kind: Option<AttributeType>,
    limits: IngestLimits,
}

impl ProfileBuilder {
    /// A column of which as many distinct values are accepted as `limits` allow.
    #[must_use]
    pub fn new(limits: &IngestLimits) -> Self {
        let distinct = DistinctCounter::default();
        Self { distinct, passes: 0, missing: 0, rows: 0, kind: None, limits: limits.clone() }
    }

    /// Whether all chunks have to be pushed once more: at first always.
    pub fn next_pass(&mut self) -> bool {
        let limits = &self.limits;
        let more = self.passes == 0 || self.distinct.wants_another(|distinct, bytes| fits(limits, distinct, bytes));
        self.passes += u32::from(more);
        more
    }

    /// Counts the rows of a chunk.
    pub fn push(&mut self, chunk: &ChunkColumn) {
        if self.passes <= 1 {
            self.rows += chunk.rows() as u64;
            self.missing += u64::from(chunk.missing());
            for value in chunk.values().iter() {
                if self.kind == Some(AttributeType::Text) {
                    break;
                }
                self.kind = Some(AttributeType::widened(self.kind, value));
            }
        }
        for (value, &count) in chunk.values().iter().zip(&chunk.counts()[1..]) {
            self.distinct.push(value, count);
        }
    }

    /// The profile of the column, whose type is `kind` where it is given.
    #[must_use]
    pub fn finish(self, name: String, kind: Option<AttributeType>) -> ColumnProfile {
        let kind = kind.or(self.kind).unwrap_or(AttributeType::Text);
        let present = self.rows - self.missing;
        let found = self.distinct.found();
        let counted = found.exact && fits(&self.limits, found.distinct, found.bytes);
        // there are not more distinct values than values
        let distinct = found.distinct.min(present);
        ColumnProfile {
            name,
            kind,
            distinct: counted.then_some(distinct),
            missing: self.missing,
            top: found.top.max(self.missing),
            identifier: is_identifier(kind, distinct, present),
            mostly_distinct: is_distinct(50, distinct, present),
            bytes: counted.then_some(found.bytes),
            chose_rows: false,
        }
    }
}

fn fits(limits: &IngestLimits, distinct: u64, bytes: u64) -> bool {
    limits.check_counts(distinct, bytes + distinct * VALUE_OVERHEAD as u64).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::Interner;

    fn profile(rows: &[Option<&str>], max_distinct: u64, max_dictionary_bytes: u64) -> ColumnProfile {
        let limits = IngestLimits { max_distinct, max_dictionary_bytes, ..IngestLimits::default() };
        profile_within(rows, &limits, 1 << 10)
    }

    /// With room for this number of values at once.
    fn profile_within(rows: &[Option<&str>], limits: &IngestLimits, room: usize) -> ColumnProfile {
        let mut builder = ProfileBuilder { distinct: DistinctCounter::with_room(room), ..ProfileBuilder::new(limits) };
        while builder.next_pass() {
            for rows in rows.chunks(7) {
                let mut interner = Interner::default();
                let mut code = |value: &str| interner.intern(value.as_bytes()) as u16 + 1;
                let codes: Vec<u16> = rows.iter().map(|row| row.map_or(0, &mut code)).collect();
                builder.push(&ChunkColumn::new(interner.take(), &codes));
            }
        }
        builder.finish("x".to_owned(), None)
    }

    fn numbers(rows: u32, distinct: u32) -> Vec<String> {
        (0..rows).map(|row| (row % distinct).to_string()).collect()
    }

    fn of(numbers: &[String], missing: usize) -> ColumnProfile {
        let rows: Vec<_> = numbers.iter().map(|n| Some(n.as_str())).chain(std::iter::repeat_n(None, missing)).collect();
        profile(&rows, 1000, 1 << 20)
    }

    #[test]
    fn counts_are_of_all_chunks() {
        let rows = [Some("a"), None, Some("b"), Some("a"), None, Some(""), None, Some("b"), Some("b"), None, Some("a")];
        let profile = profile(&rows, 10, 1 << 20);
        assert_eq!((profile.distinct, profile.missing, profile.top), (Some(3), 4, 4));
        assert_eq!((profile.codes(), profile.kind, profile.overflow()), (Some(4), AttributeType::Text, false));
    }

    #[test]
    fn identifiers_are_text_or_integer_and_mostly_distinct() {
        assert!(of(&numbers(20, 19), 100).identifier);
        assert!(!of(&numbers(20, 18), 0).identifier);
        assert!(of(&numbers(20, 18), 0).mostly_distinct);
        assert!(!of(&numbers(20, 10), 0).mostly_distinct);
        assert!(!of(&numbers(19, 19), 5).identifier, "too few rows");
        let decimals: Vec<_> = numbers(40, 40).iter().map(|n| format!("{n}.5")).collect();
        assert_eq!((of(&decimals, 0).kind, of(&decimals, 0).identifier), (AttributeType::Decimal, false));
        assert!(of(&decimals, 0).mostly_distinct, "a number of an account may be written with decimals");
    }

    #[test]
    fn profile_reports_an_overflow() {
        let numbers = numbers(40, 40);
        let rows: Vec<_> = numbers.iter().map(|n| Some(n.as_str())).collect();
        let full = profile(&rows, 37, 1 << 20);
        assert_eq!((full.distinct, full.identifier, full.kind), (None, true, AttributeType::Integer));
        let far = profile(&rows, 10, 1 << 20);
        assert!(far.overflow() && far.identifier);
        assert!(profile(&rows, 100, 200).overflow());
    }

    #[test]
    fn little_memory_changes_nothing() {
        let numbers = numbers(600, 300);
        let rows: Vec<_> = numbers.iter().map(|n| Some(n.as_str())).chain([None; 3]).collect();
        let whole = profile_within(&rows, &IngestLimits::default(), 1000);
        assert_eq!((whole.distinct, whole.top, whole.missing, whole.bytes), (Some(300), 3, 3, Some(790)));
        for room in [1, 7, 100, 299] {
            assert_eq!(profile_within(&rows, &IngestLimits::default(), room), whole, "{room}");
        }
        // the first pass gave up, and still separates identifiers from other columns
        let limits = IngestLimits { max_distinct: 50, ..IngestLimits::default() };
        let given_up = profile_within(&rows, &limits, 64);
        assert_eq!((given_up.distinct, given_up.missing, given_up.identifier), (None, 3, false));
        let (numbers, limits) = (self::numbers(600, 600), IngestLimits { max_distinct: 50, ..IngestLimits::default() });
        let rows: Vec<_> = numbers.iter().map(|n| Some(n.as_str())).collect();
        assert!(profile_within(&rows, &limits, 300).mostly_distinct);
    }

    #[test]
    fn limits_that_were_lowered_hold_for_old_profiles() {
        let numbers = numbers(40, 40);
        let rows: Vec<_> = numbers.iter().map(|n| Some(n.as_str())).collect();
        let profile = profile(&rows, 100, 1 << 20);
        assert!(!profile.exceeds(&IngestLimits::default()));
        assert!(profile.exceeds(&IngestLimits { max_distinct: 39, ..IngestLimits::default() }));
        assert!(profile.exceeds(&IngestLimits { max_dictionary_bytes: 200, ..IngestLimits::default() }));
    }
}
