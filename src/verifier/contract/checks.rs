use std::collections::BTreeMap;

use crate::microdata::{Attr, AttrSet};
pub use crate::publication::{CheckName, Linkage};
use crate::verifier::definition::measure::BucketMeasure;
use crate::verifier::definition::share::ShareOfRows;

/// Result of one check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// The check that was run.
    pub check: CheckName,
    /// Whether the check found no fault.
    pub passed: bool,
    /// The first fault; holds no values of the data.
    pub detail: Option<String>,
}

/// Results of a verification.
#[derive(Clone, PartialEq, Debug)]
pub struct VerifierReport {
    /// The checks that were run, in their order.
    pub checks: Vec<Check>,
    /// Whether the assignment of rows to buckets was checked.
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

/// Figures of one table, from its parts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TableFigures {
    /// Number of rows of the table.
    pub rows: u64,
    /// Number of buckets; 0 in a table without buckets.
    pub buckets: u64,
    /// Number of buckets of each size.
    pub sizes: BTreeMap<u64, u64>,
    /// Posteriors over the buckets, for each attribute that a guard protects.
    pub posteriors: BTreeMap<Attr, PosteriorSummary>,
    /// Posteriors over the buckets, for each protected combination.
    pub combined: BTreeMap<AttrSet, PosteriorSummary>,
    /// Measure of the worst bucket, by the index of the rule in the publication.
    ///
    /// Only for rules that this table enforces with a guarantee other than l-diversity.
    pub measures: BTreeMap<usize, BucketMeasure>,
    /// The buckets that break a guarantee as their strata do, for each protected side whose guard closes strata.
    pub closed: BTreeMap<AttrSet, ClosedBuckets>,
}

/// Buckets that break a guarantee, each of which is a whole stratum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClosedBuckets {
    /// Number of buckets.
    pub buckets: u64,
    /// Number of their rows.
    pub rows: u64,
    /// The largest share of a value; `None` without such a bucket.
    pub worst: Option<ShareOfRows>,
}

/// The largest share of one value in a bucket, over the buckets of a table.
///
/// Where the part of the value shows known attributes, a bucket is divided into the rows that agree on them. An
/// excluded value is compared with all rows, and any other value with the rows that the insider cannot exclude.
/// Shares are not reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PosteriorSummary {
    /// Share in the worst bucket; of equal shares that of the smallest bucket.
    pub worst: ShareOfRows,
    /// Share in the middle bucket in rising order; of two middle buckets the stricter.
    pub median: ShareOfRows,
    /// Number of rows of the smallest bucket.
    pub smallest_bucket: u64,
    /// The share if all rows were one bucket; `None` where rows of the part may be noise.
    pub prior: Option<ShareOfRows>,
}

/// First fault of each check.
#[derive(Default)]
pub(in crate::verifier) struct CheckLog(pub(in crate::verifier) BTreeMap<CheckName, String>);

impl CheckLog {
    /// Records that a check failed.
    pub(in crate::verifier) fn fail(&mut self, check: CheckName, detail: impl Into<String>) {
        self.0.entry(check).or_insert_with(|| detail.into());
    }

    pub(in crate::verifier) fn report(&self, check: CheckName) -> Check {
        let detail = self.0.get(&check).cloned();
        Check { check, passed: detail.is_none(), detail }
    }
}
