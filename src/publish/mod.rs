//! How it is made to hold: one module per method, all returning the shape of `publication`.

pub mod anatomy;
mod arrange;
pub mod assign;
pub mod bucketize;
pub mod decompose;
mod design;
pub mod generalize;
mod make;
pub mod partition;
mod proposed;
pub mod sequential;
mod single;
pub mod slicing;
pub mod versatile;

pub use design::{Bucketized, CandidateScores, Decision, Design, DesignedRule, DesignedTable, Generalized};
pub use proposed::{check_proposed as judge_proposed, redundant};

use crate::control::{Cancelled, Control};
use crate::microdata::{AttributeCounts, Table};
use crate::privacy::{Dependency, PrivacyRule, TableSchema};
use crate::problem::Fault;
use crate::publication::{EarlierReleases, Publication, PublicationCells, Witness};
use crate::random::RandomStreams;
use crate::spec::MethodSpec;

/// What a method plans with.
pub struct PlanInput<'a> {
    /// Counts of single attributes.
    pub counts: &'a dyn AttributeCounts,
    /// The name each attribute is published under.
    pub published_names: &'a [String],
    /// The tables that the ledger holds of the same people.
    pub earlier: &'a [TableSchema],
    /// The rules that stand since earlier releases.
    pub standing_rules: &'a [PrivacyRule],
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

/// Why nothing was planned.
#[derive(Debug)]
pub enum PlanError {
    /// The caller's answer.
    Refused(PlanRefusal),
    /// It was told to stop.
    Cancelled(Cancelled),
}

impl From<PlanRefusal> for PlanError {
    fn from(refusal: PlanRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Cancelled> for PlanError {
    fn from(cancelled: Cancelled) -> Self {
        Self::Cancelled(cancelled)
    }
}

/// The caller's answer: why nothing can be published.
#[derive(Debug)]
pub struct PlanRefusal(pub Vec<Fault>);

/// What a method returns: the description, the cells and the secret assignment.
pub struct Published {
    /// The tables and how the rules stand.
    pub publication: Publication,
    /// The cells, in canonical order.
    pub contents: PublicationCells,
    /// Which row of the table went where.
    pub witness: Witness,
}

/// A way to publish. Implemented by one type a method, dispatched once, by [`plan`] and [`publish`].
pub trait Method {
    /// What the caller may choose.
    type Spec;
    /// What is decided before rows are touched.
    type Plan;

    /// Decides the tables and judges the rules. Only what looks at the data reads rows.
    ///
    /// # Errors
    /// [`PlanError`] with every fault that can be shown, or when told to stop.
    fn plan(spec: &Self::Spec, input: &PlanInput<'_>, control: &Control) -> Result<Self::Plan, PlanError>;

    /// Makes the tables. `table` has its rows already permuted secretly.
    ///
    /// # Errors
    /// [`Cancelled`] when told to stop.
    fn publish(
        plan: &Self::Plan,
        input: &PlanInput<'_>,
        table: &Table,
        streams: &RandomStreams,
        control: &Control,
    ) -> Result<Published, Cancelled>;
}

/// Plans with the method of the specification.
///
/// # Errors
/// [`PlanError`] with every fault that can be shown, or when told to stop.
pub fn plan(method: &MethodSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
    match method {
        MethodSpec::Versatile(spec) => versatile::Versatile::plan(spec, input, control),
        MethodSpec::Anatomy(spec) => anatomy::Anatomy::plan(spec, input, control),
        MethodSpec::Bucketize(spec) => bucketize::Bucketize::plan(spec, input, control),
        MethodSpec::Decompose(spec) => decompose::Decompose::plan(spec, input, control),
        MethodSpec::Generalize(spec) => generalize::Generalize::plan(spec, input, control),
        MethodSpec::Sequential(spec) => sequential::Sequential::plan(spec, input, control),
        MethodSpec::Slicing(spec) => slicing::SlicingMethod::plan(spec, input, control),
    }
}

/// Publishes with the method of the specification.
///
/// # Errors
/// [`Cancelled`] when told to stop.
pub fn publish(
    method: &MethodSpec,
    plan: &Design,
    input: &PlanInput<'_>,
    table: &Table,
    streams: &RandomStreams,
    control: &Control,
) -> Result<Published, Cancelled> {
    match method {
        MethodSpec::Versatile(_) => versatile::Versatile::publish(plan, input, table, streams, control),
        MethodSpec::Anatomy(_) => anatomy::Anatomy::publish(plan, input, table, streams, control),
        MethodSpec::Bucketize(_) => bucketize::Bucketize::publish(plan, input, table, streams, control),
        MethodSpec::Decompose(_) => decompose::Decompose::publish(plan, input, table, streams, control),
        MethodSpec::Generalize(_) => generalize::Generalize::publish(plan, input, table, streams, control),
        MethodSpec::Sequential(_) => sequential::Sequential::publish(plan, input, table, streams, control),
        MethodSpec::Slicing(_) => slicing::SlicingMethod::publish(plan, input, table, streams, control),
    }
}
