use crate::microdata::{AttributeCounts, Table};
use crate::privacy::links::KnownDependencies;
use crate::privacy::{PrivacyRule, TableSchema};
use crate::publication::EarlierReleases;
use crate::random::RandomStreams;

/// Input of a plan.
pub struct PlanInput<'a> {
    /// Counts of single attributes.
    pub counts: &'a dyn AttributeCounts,
    /// Published name of each attribute.
    pub published_names: &'a [String],
    /// Dataset name of each attribute of `known`: those of the job, then others.
    pub names: &'a [String],
    /// Tables that the ledger records of the same data subjects.
    pub earlier: &'a [TableSchema],
    /// Rules that earlier releases promised.
    pub active_rules: &'a [PrivacyRule],
    /// Dependencies that the adversary knows. Attributes behind the published ones are not published.
    pub known: &'a KnownDependencies,
    /// Earlier releases that a sequential release is joined with.
    pub earlier_releases: Option<&'a EarlierReleases>,
    /// The rows; `None` while only counts are known. A choice that needs rows is then left undecided.
    pub rows: Option<PlanRows<'a>>,
}

/// Rows to plan with.
#[derive(Clone, Copy)]
pub struct PlanRows<'a> {
    /// The table, its rows already permuted secretly.
    pub table: &'a Table,
    /// The same rows, with columns behind the published ones that are not published and may make strata.
    pub strata: &'a Table,
    /// Randomness of the release: a plan sees the buckets that are published.
    pub streams: &'a RandomStreams,
}
