use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttributeCounts, Table};
use crate::privacy::links::KnownDependencies;
use crate::privacy::{PrivacyRule, TableSchema};
use crate::publication::{EarlierReleases, Guarantee};
use crate::publish::assign::BucketAssignment;
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
    /// How the buckets of an attribute are made.
    pub buckets: BucketSource<'a>,
}

impl<'a> PlanRows<'a> {
    /// Rows whose buckets are drawn here.
    #[must_use]
    pub const fn new(table: &'a Table, strata: &'a Table, streams: &'a RandomStreams) -> Self {
        Self { table, strata, streams, buckets: BucketSource::Drawn }
    }
}

/// How the buckets of an attribute are made.
#[derive(Clone, Copy)]
pub enum BucketSource<'a> {
    /// They are drawn from the streams of the release.
    Drawn,
    /// Another engine makes them of the same rows.
    Elsewhere(&'a dyn AttributeBuckets),
}

/// The buckets that another engine makes for the rows of a plan.
pub trait AttributeBuckets: Sync {
    /// The bucket of each row for an attribute that keeps guarantees.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    fn of_attribute(
        &self,
        sensitive: Attr,
        guarantees: &[Guarantee],
        control: &Control,
    ) -> Result<BucketAssignment, Cancelled>;
}
