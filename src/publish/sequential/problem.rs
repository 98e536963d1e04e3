//! The problem of a sequential release: the new table, the earlier ones, and the requirements on their join.

use super::span::{ColumnScale, NodeRange, NodeSet};
use crate::microdata::Codes;
use crate::publication::Ratio;

/// No more links between blocks are held than so many, unless the caller says otherwise.
pub const MAX_LINKS: u64 = 50_000_000;

/// An attribute of a release. Attributes are numbered over all releases: a number that occurs in two is the same attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResolvedAttribute {
    /// The number of the release; 0 is the new one.
    pub release: usize,
    /// The attribute.
    pub attribute: u32,
}

/// What is told apart, or told, about groups: an element of Y.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResolvedYElement {
    /// An attribute of a release.
    Attribute(ResolvedAttribute),
    /// The rows of a release.
    Key(usize),
}

/// A measure of groups, and its bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupMeasure {
    /// Every group has so many different values on Y.
    Anonymity {
        /// The number.
        k: u64,
    },
    /// No value on Y takes more than a share of the tuples of any group.
    Linkability {
        /// The largest share.
        h: Ratio,
        /// The values that are held to it, by their labels on the attributes of Y in order; all where nothing is said. A published
        /// label that may stand for one of them counts as it.
        sensitive: Option<Vec<Vec<NodeRange>>>,
    },
}

/// (X,Y)-anonymity or (X,Y)-linkability.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedRequirement {
    /// What makes groups.
    pub x: Vec<ResolvedAttribute>,
    /// What is counted in them.
    pub y: Vec<ResolvedYElement>,
    /// How.
    pub measure: GroupMeasure,
}

/// Conditions on a release: attributes, and the labels they lie within.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedConditions {
    /// The release.
    pub release: usize,
    /// Each attribute with the label that covers what is published of it.
    pub within: Vec<(u32, NodeRange)>,
}

/// What nobody can be in two releases at once, such as male and pregnant. Never true of a row of the table behind them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedExclusion {
    /// Of one release.
    pub left: ResolvedConditions,
    /// Of another.
    pub right: ResolvedConditions,
}

/// A column as it was published.
#[derive(Clone)]
pub struct PublishedLabels<'a> {
    /// The attribute.
    pub attribute: u32,
    /// A code per row.
    pub codes: &'a Codes,
    /// What each code stands for.
    pub places: Vec<NodeSet>,
}

/// An earlier release.
#[derive(Clone)]
pub struct EarlierReleaseTable<'a> {
    /// How many rows it has.
    pub rows: usize,
    /// Its columns.
    pub columns: Vec<PublishedLabels<'a>>,
}

/// A column of the new release.
#[derive(Clone)]
pub struct NewTableColumn<'a> {
    /// The attribute.
    pub attribute: u32,
    /// A code per row, ungeneralized.
    pub codes: &'a Codes,
    /// How codes are placed, and generalized. What stands in no X is published as it is.
    pub scale: ColumnScale<'a>,
}

/// The new release, ungeneralized.
#[derive(Clone)]
pub struct NewTable<'a> {
    /// How many rows it has.
    pub rows: usize,
    /// Its columns.
    pub columns: Vec<NewTableColumn<'a>>,
    /// What it should stay good for telling.
    pub class: Option<&'a Codes>,
}

/// The joins on which requirements must hold. All have the new release and those that a requirement names: an adversary may
/// leave others out, and false matches of the full join blur.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum JoinScope {
    /// Of all releases, as in the literature.
    Whole,
    /// Of the named ones, of these with any single other, and of all.
    #[default]
    Extended,
    /// With any set of others.
    All,
}

/// What a step down is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpecializationGain {
    /// What it tells of the class. Intervals are cut where that is most.
    Information,
    /// The rows it makes more exact. Intervals are cut in the middle.
    Distortion,
}

/// How the worth of a step is weighed against the privacy it costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpecializationScore {
    /// `gain / (loss + 1)`.
    PlusOne,
    /// `gain / loss`; the gain where nothing is lost.
    Ratio,
}

/// A new release to be made beside earlier ones.
#[derive(Clone)]
pub struct SequentialProblem<'a> {
    /// The new one.
    pub new: NewTable<'a>,
    /// The earlier ones, numbered from 1.
    pub earlier: Vec<EarlierReleaseTable<'a>>,
    /// Whether all are projections of the same rows. Where not, rows that match nothing are in no join: what requirements
    /// say of the new release must then hold in it alone too. Of anonymity that has no Y there, it is that many rows.
    pub same_rows: bool,
    /// What must hold. There is at least one, and an attribute of the new release stands in the X of one.
    pub requirements: Vec<ResolvedRequirement>,
    /// What nobody can be.
    pub exclusions: Vec<ResolvedExclusion>,
    /// Where it must hold.
    pub joins: JoinScope,
    /// What steps are worth.
    pub gain: SpecializationGain,
    /// How that is weighed.
    pub score: SpecializationScore,
    /// Steps that are worth nothing are not taken.
    pub stop_at_zero_gain: bool,
    /// Steps through cuts that break a requirement are taken where none keeps all; what is made is the last cut that does.
    pub allow_violating_prefix: bool,
    /// No more links between blocks are held at once, in any join.
    pub most_links: u64,
}
