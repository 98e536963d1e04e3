use crate::microdata::{AttributeCounts, Table};
use crate::privacy::{Dependency, PrivacyRule, TableSchema};
use crate::publication::EarlierReleases;
use crate::random::RandomStreams;

/// What a method plans with.
pub struct PlanInput<'a> {
    /// Counts of single attributes.
    pub counts: &'a dyn AttributeCounts,
    /// The name each attribute is published under.
    pub published_names: &'a [String],
    /// The tables that the ledger holds of the same people.
    pub earlier: &'a [TableSchema],
    /// The rules that stand since earlier releases.
    pub active_rules: &'a [PrivacyRule],
    /// The dependencies that the adversary is taken to know. Attributes behind the published ones are not published.
    pub dependencies: &'a [Dependency],
    /// What is read back of earlier releases, for what is made beside them.
    pub beside: Option<&'a EarlierReleases>,
    /// The rows; `None` while only counts are known. What looks at the data then decides nothing.
    pub rows: Option<PlanRows<'a>>,
}

/// Rows to plan with.
#[derive(Clone, Copy)]
pub struct PlanRows<'a> {
    /// The table, its rows already permuted secretly.
    pub table: &'a Table,
    /// The randomness that the release will be drawn from, so that a plan sees the very buckets that come out.
    pub streams: &'a RandomStreams,
}
