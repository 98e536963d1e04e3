//! Significance of a dependency: the evidence that it is no accident.
//!
//! # Citations
//! [Rissanen 1978], description length

use super::logarithm::{BIT, FactorialLogarithms, log2_up};

/// Minimal evidence for each search as a whole, in bits: an accident has a probability below 2^-20.
const MIN_EVIDENCE_BITS: u32 = 20;

/// How many values of a column occur `rows` times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CountFrequency {
    /// The number of rows of each value.
    pub(super) rows: usize,
    /// The number of values.
    pub(super) values: usize,
}

impl CountFrequency {
    /// The counts of all values, the largest first; values that do not occur are left out.
    pub(super) fn collect(counts: impl Iterator<Item = u64>) -> Vec<Self> {
        let mut counts: Vec<u64> = counts.filter(|&rows| rows > 0).collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        counts
            .chunk_by(|one, other| one == other)
            .map(|alike| Self { rows: alike[0] as usize, values: alike.len() })
            .collect()
    }
}

/// Minimal number of saved bits of a known dependency among `columns` columns, in units of 2^-20 bit.
///
/// Candidates are all single and all pairs of columns as determinants of each column.
pub(super) const fn threshold(columns: u64) -> i64 {
    let candidates = (columns + columns * columns.saturating_sub(1) / 2) * columns;
    (MIN_EVIDENCE_BITS + u64::BITS - candidates.leading_zeros()) as i64 * BIT
}

/// What a dependency saves of the description of a column with given counts of values.
pub(super) struct Savings<'a> {
    factorials: &'a FactorialLogarithms,
    counts: &'a [CountFrequency],
    rows: usize,
    values: u64,
    top: usize,
    /// The logarithm of the number of arrangements of the cells.
    arrangements: i64,
}

impl<'a> Savings<'a> {
    pub(super) fn new(factorials: &'a FactorialLogarithms, counts: &'a [CountFrequency]) -> Self {
        let rows = counts.iter().map(|count| count.rows * count.values).sum();
        let alike: i64 = counts.iter().map(|count| count.values as i64 * factorials.up(count.rows)).sum();
        Self {
            factorials,
            counts,
            rows,
            values: counts.iter().map(|count| count.values as u64).sum(),
            top: counts.iter().map(|count| count.rows).max().unwrap_or(0),
            arrangements: factorials.down(rows) - alike,
        }
    }

    /// A lower bound of the bits that `groups` groups of rows with `errors` errors save, in units of 2^-20 bit.
    ///
    /// A random arrangement of the cells has so few errors with probability at most 2^-bits. It falls as groups and
    /// errors grow.
    pub(super) fn saved(&self, groups: usize, errors: usize) -> i64 {
        let subsets = |rows: usize| i128::from(self.factorials.subsets(groups, rows + errors));
        let by_value: i128 = self.counts.iter().map(|count| count.values as i128 * subsets(count.rows)).sum();
        let by_group = groups as i64 * log2_up(self.values.max(1));
        let maps = i128::from(by_group).min(by_value - subsets(self.top));
        let exceptions = match errors {
            0 => 0,
            errors => {
                let other_values = log2_up(self.values.saturating_sub(1).max(1));
                self.factorials.subsets(self.rows, errors) + errors as i64 * other_values
            }
        };
        // the map is at most `by_group`, which fits
        self.arrangements - maps as i64 - exceptions
    }

    /// The largest number of groups of an exact dependency that saves at least `least`; 0 when none does.
    pub(super) fn most_groups(&self, least: i64) -> usize {
        let (mut enough, mut too_many) = (0, self.rows + 1);
        while too_many - enough > 1 {
            let middle = enough + (too_many - enough) / 2;
            if self.saved(middle, 0) >= least {
                enough = middle;
            } else {
                too_many = middle;
            }
        }
        enough
    }
}
