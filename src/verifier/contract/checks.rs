use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::microdata::{Attr, AttrSet};
use crate::verifier::definition::measure::BucketMeasure;

/// The names of the checks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckName {
    /// Each part is the projection of the original that the witness states. Only with an original.
    Content,
    /// The parts of a table agree on their buckets, which together hold all rows; labels tell nothing.
    Buckets,
    /// Every bucket keeps the guarantees of its table's guards; what a sliced table claims over all buckets together holds of the rows of
    /// the original. Without the original, the latter is left out.
    Guarantee,
    /// The tables are in Guardian Normal Form for all submitted rules, and the rules stand as claimed.
    Gnf,
    /// Rows and labels are in canonical order.
    Order,
    /// Parts hold exactly the values that the original holds.
    Dictionary,
    /// Parts have exactly the claimed columns and rows, and nothing else is published.
    Columns,
    /// Tables have the shape that their protection claims.
    Guards,
    /// What a sequential release is to keep on its join with earlier ones holds, and its cuts are such. Of such releases alone, where
    /// the earlier ones are at hand.
    Requirements,
}

impl CheckName {
    /// All checks, in the order of an answer.
    pub const ALL: [Self; 9] = [
        Self::Content,
        Self::Buckets,
        Self::Guarantee,
        Self::Gnf,
        Self::Order,
        Self::Dictionary,
        Self::Columns,
        Self::Guards,
        Self::Requirements,
    ];
}

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

/// Whether the parts were held against the assignment of rows to buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Linkage {
    /// Original and witness were there.
    Checked,
    /// One of them was not.
    NotChecked,
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
