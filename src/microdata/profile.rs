//! What is known of a dataset without its rows: counts of single columns.

use serde::{Deserialize, Serialize};

use super::chunk::ChunkColumn;
use super::interner::Interner;
use super::limits::Limits;
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
    /// Distinct values, a missing one not counted; `None` when there are more than can be kept.
    pub distinct: Option<u64>,
    /// Rows without a value.
    pub missing: u64,
    /// Rows of the most frequent value, a missing one counted as a value; a lower bound when `distinct` is `None`.
    pub top: u64,
    /// Whether the column looks like an identifier: text, integer, date or timestamp, at least 20 rows with a value, more than 90% of these
    /// rows distinct.
    pub identifier: bool,
    /// The same above 50%.
    pub mostly_distinct: bool,
}

impl ColumnProfile {
    /// The profile of a column that is at hand whole.
    #[must_use]
    pub fn of(name: &str, column: &Column) -> Self {
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
            identifier: distinct_above(90, kind, distinct, present),
            mostly_distinct: distinct_above(50, kind, distinct, present),
        }
    }

    /// Whether the column has more distinct values than can be kept; it can then only be dropped.
    #[must_use]
    pub const fn overflow(&self) -> bool {
        self.distinct.is_none()
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

/// Whether more than `percent` of the rows with a value are distinct, in a column that may identify.
fn distinct_above(percent: u64, kind: AttributeType, distinct: u64, present: u64) -> bool {
    let may_identify = match kind {
        AttributeType::Integer | AttributeType::Text | AttributeType::Date | AttributeType::Timestamp => true,
        AttributeType::Decimal | AttributeType::Boolean => false,
    };
    may_identify && present >= IDENTIFIER_ROWS && distinct * 100 > present * percent
}

/// Profiles one column, chunk by chunk. Memory is bounded by the dictionary of that column.
pub struct ProfileBuilder {
    interner: Interner,
    counts: Vec<u64>,
    missing: u64,
    rows: u64,
    kind: Option<AttributeType>,
    limits: Limits,
    overflow: bool,
}

impl ProfileBuilder {
    /// A column of which as many distinct values are kept as `limits` allow.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            interner: Interner::default(),
            counts: Vec::new(),
            missing: 0,
            rows: 0,
            kind: None,
            limits: limits.clone(),
            overflow: false,
        }
    }

    /// Counts the rows of a chunk.
    pub fn push(&mut self, chunk: &ChunkColumn) {
        self.rows += chunk.rows() as u64;
        self.missing += u64::from(chunk.missing());
        for (value, &count) in chunk.values().iter().zip(&chunk.counts()[1..]) {
            if let Some(code) = self.code(value) {
                self.counts[code] += u64::from(count);
            }
        }
    }

    /// The code of a value; none for a new one after an overflow.
    fn code(&mut self, value: &[u8]) -> Option<usize> {
        let known = self.counts.len();
        let code = if self.overflow { self.interner.get(value) } else { Some(self.interner.intern(value)) };
        let code = code.map(|code| code as usize);
        if code.is_none_or(|code| code == known) && self.kind != Some(AttributeType::Text) {
            self.kind = Some(AttributeType::widened(self.kind, value));
        }
        if code == Some(known) {
            self.counts.push(0);
            self.overflow = self.limits.check_dictionary(&self.interner).is_err();
        }
        code
    }

    /// The profile of the column, whose type is `kind` where it is given.
    #[must_use]
    pub fn finish(self, name: String, kind: Option<AttributeType>) -> ColumnProfile {
        let kind = kind.or(self.kind).unwrap_or(AttributeType::Text);
        let present = self.rows - self.missing;
        // after an overflow this is a lower bound
        let distinct = self.counts.len() as u64;
        ColumnProfile {
            name,
            kind,
            distinct: (!self.overflow).then_some(distinct),
            missing: self.missing,
            top: self.counts.iter().copied().max().unwrap_or(0).max(self.missing),
            identifier: distinct_above(90, kind, distinct, present),
            mostly_distinct: distinct_above(50, kind, distinct, present),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(rows: &[Option<&str>], max_distinct: u64, max_dictionary_bytes: u64) -> ColumnProfile {
        let limits = Limits { max_distinct, max_dictionary_bytes, ..Limits::default() };
        let mut builder = ProfileBuilder::new(&limits);
        for rows in rows.chunks(7) {
            let mut interner = Interner::default();
            let mut code = |value: &str| interner.intern(value.as_bytes()) as u16 + 1;
            let codes: Vec<u16> = rows.iter().map(|row| row.map_or(0, &mut code)).collect();
            builder.push(&ChunkColumn::new(interner.take(), &codes));
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
    }

    #[test]
    fn an_overflow_is_told() {
        let numbers = numbers(40, 40);
        let rows: Vec<_> = numbers.iter().map(|n| Some(n.as_str())).collect();
        let full = profile(&rows, 37, 1 << 20);
        assert_eq!((full.distinct, full.identifier, full.kind), (None, true, AttributeType::Integer));
        let early = profile(&rows, 10, 1 << 20);
        assert!(early.overflow() && !early.identifier);
        assert!(profile(&rows, 100, 200).overflow());
    }
}
