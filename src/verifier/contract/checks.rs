use std::collections::BTreeMap;

use crate::microdata::{Attr, AttrSet};
pub use crate::publication::{CheckName, Linkage};
use crate::verifier::definition::measure::BucketMeasure;

/// A check and how it went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// Which one.
    pub check: CheckName,
    /// Whether nothing was found.
    pub passed: bool,
    /// The first thing found; no values of the data.
    pub detail: Option<String>,
}

/// What an audit found.
#[derive(Clone, PartialEq, Debug)]
pub struct VerifierReport {
    /// The checks that were made.
    pub checks: Vec<Check>,
    /// Whether the assignment was checked.
    pub linkage: Linkage,
    /// Figures of each published table, from the parts alone.
    pub tables: Vec<TableFigures>,
}

impl VerifierReport {
    /// Whether every check passed.
    #[must_use]
    pub fn verified(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }
}

/// What the parts of a table show.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TableFigures {
    /// How many rows it has.
    pub rows: u64,
    /// How many buckets; 0 in a table without.
    pub buckets: u64,
    /// Per size of a bucket, how many have it.
    pub sizes: BTreeMap<u64, u64>,
    /// Per attribute that a guard protects: the posteriors of its buckets.
    pub posteriors: BTreeMap<Attr, PosteriorSummary>,
    /// The same per combination.
    pub combined: BTreeMap<AttrSet, PosteriorSummary>,
    /// Per rule (by its index in the publication) that leans on this table and asks for more than l-diversity: what its worst
    /// bucket shows.
    pub measures: BTreeMap<usize, BucketMeasure>,
}

/// The largest share that a value takes of a bucket, over the buckets of a table; where something is known beside it in the
/// same part, of the rows of a bucket that agree in that. Where an insider can rule values out, such a value is counted of all these
/// rows, and any other of those that are left. Shares are `(count, of)`, not reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PosteriorSummary {
    /// Of the worst bucket; of equal ones the smallest.
    pub worst: (u64, u64),
    /// Of the middle bucket in rising order, the stricter of two.
    pub median: (u64, u64),
    /// The size of the smallest bucket.
    pub smallest_bucket: u64,
}

/// The first fault of each check.
#[derive(Default)]
pub(in crate::verifier) struct CheckLog(pub(in crate::verifier) BTreeMap<CheckName, String>);

impl CheckLog {
    /// Notes that a check failed.
    pub(in crate::verifier) fn fail(&mut self, check: CheckName, detail: impl Into<String>) {
        self.0.entry(check).or_insert_with(|| detail.into());
    }

    pub(in crate::verifier) fn report(&self, check: CheckName) -> Check {
        let detail = self.0.get(&check).cloned();
        Check { check, passed: detail.is_none(), detail }
    }
}
