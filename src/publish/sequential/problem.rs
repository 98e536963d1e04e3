//! The problem of a sequential release: the new table, the earlier ones, and the requirements on their join.

use super::span::{ColumnScale, NodeRange, NodeSet};
use crate::microdata::Codes;
use crate::publication::Ratio;

/// Default of the largest number of links between blocks.
pub const MAX_LINKS: u64 = 50_000_000;

/// An attribute of a release. Equal numbers in two releases are the same attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResolvedAttribute {
    /// Number of the release; 0 is the new one.
    pub release: usize,
    /// Number of the attribute.
    pub attribute: u32,
}

/// An element of Y.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResolvedYElement {
    /// An attribute of a release.
    Attribute(ResolvedAttribute),
    /// The key of a release: its rows count as distinct.
    Key(usize),
}

/// A measure of groups, with its bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupMeasure {
    /// Every group has at least k distinct Y values.
    Anonymity {
        /// Smallest number of Y values.
        k: u64,
    },
    /// No Y value takes more than a share h of the tuples of a group.
    Linkability {
        /// Largest share of a Y value.
        h: Ratio,
        /// Bounded Y values, as node ranges of the attributes of Y in order; all values by default. A published label that may
        /// stand for one of them counts as it.
        sensitive: Option<Vec<Vec<NodeRange>>>,
    },
}

/// A requirement: (X,Y)-anonymity or (X,Y)-linkability.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedRequirement {
    /// Attributes that define the groups.
    pub x: Vec<ResolvedAttribute>,
    /// Elements that are counted in the groups.
    pub y: Vec<ResolvedYElement>,
    /// Attributes of the new release whose exact values stand in place of their labels, in matches and in X.
    pub exact: Vec<u32>,
    /// Attributes that also define the groups, on joins with their releases.
    pub also: Vec<ResolvedAttribute>,
    /// The measure and its bound.
    pub measure: GroupMeasure,
}

/// Conditions on the attributes of one release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedConditions {
    /// Number of the release.
    pub release: usize,
    /// Each attribute with the node range that covers its published label.
    pub within: Vec<(u32, NodeRange)>,
}

/// Conditions on two releases that no record satisfies together, such as male and pregnant. No row of the original satisfies
/// both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedExclusion {
    /// Conditions on one release.
    pub left: ResolvedConditions,
    /// Conditions on the other release.
    pub right: ResolvedConditions,
}

/// A published column of an earlier release.
#[derive(Clone)]
pub struct PublishedLabels<'a> {
    /// Number of the attribute.
    pub attribute: u32,
    /// Code of each row.
    pub codes: &'a Codes,
    /// Node set of each code.
    pub places: Vec<NodeSet>,
}

/// A table of an earlier release.
#[derive(Clone)]
pub struct EarlierReleaseTable<'a> {
    /// Number of rows of the release.
    pub rows: usize,
    /// The published columns.
    pub columns: Vec<PublishedLabels<'a>>,
}

/// A column of the new release.
#[derive(Clone)]
pub struct NewTableColumn<'a> {
    /// Number of the attribute.
    pub attribute: u32,
    /// Code of each row, ungeneralized.
    pub codes: &'a Codes,
    /// Leaves of the codes, and how they are generalized. Columns outside X are published exactly.
    pub scale: ColumnScale<'a>,
}

/// The new release, ungeneralized.
#[derive(Clone)]
pub struct NewTable<'a> {
    /// Number of rows of the table.
    pub rows: usize,
    /// Columns of the table, in their order.
    pub columns: Vec<NewTableColumn<'a>>,
    /// Class that the release should predict.
    pub class: Option<&'a Codes>,
}

/// Joins on which requirements must hold. Each has the new release and those that a requirement names.
///
/// An adversary may leave out other releases, as false matches blur the full join.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum JoinScope {
    /// The join of all releases, as in [Wang and Fung 2006].
    Whole,
    /// The join of named releases, its joins with any single other one, and the join of all.
    #[default]
    Extended,
    /// The joins of named releases with any set of others.
    All,
}

/// Gain of a specialization step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpecializationGain {
    /// Information on the class. Intervals are cut where it is largest.
    Information,
    /// Rows that become more exact. Intervals are cut in the middle.
    Distortion,
}

/// Score of a step: its gain against its loss of privacy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpecializationScore {
    /// `gain / (loss + 1)`, in the units of the measure.
    PlusOne,
    /// `gain / loss`; the gain without a loss.
    Ratio,
}

/// A new release to be made, and the earlier ones it is joined with.
#[derive(Clone)]
pub struct SequentialProblem<'a> {
    /// The new release.
    pub new: NewTable<'a>,
    /// The earlier releases, numbered from 1.
    pub earlier: Vec<EarlierReleaseTable<'a>>,
    /// Whether all releases are projections of the same rows.
    ///
    /// Otherwise rows without a match are in no join, and requirements must also hold in the new release alone. Anonymity without
    /// a Y there bounds the number of rows.
    pub same_rows: bool,
    /// Requirements: at least one, and an attribute of the new release is in the X of one.
    pub requirements: Vec<ResolvedRequirement>,
    /// Exclusions between releases.
    pub exclusions: Vec<ResolvedExclusion>,
    /// Joins on which the requirements must hold.
    pub joins: JoinScope,
    /// Gain of the steps.
    pub gain: SpecializationGain,
    /// Score of the steps.
    pub score: SpecializationScore,
    /// Whether steps without a gain are not taken.
    pub stop_at_zero_gain: bool,
    /// Whether steps may pass cuts that break a requirement if no other step remains. The result is the last cut that keeps all.
    pub allow_violating_prefix: bool,
    /// Largest number of links between blocks in any join.
    pub most_links: u64,
}
