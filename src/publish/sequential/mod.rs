//! Sequential releases: (X,Y)-privacy on the lossy join of a new release with earlier ones (Wang and Fung; sequential).
//!
//! Earlier releases stay as they are. The attributes of the new one that stand in X are published as far up their taxonomies, in
//! intervals as wide, or not at all, as the requirements ask: all begin at their roots, and whatever step down is worth most is taken, as long
//! as every requirement holds on every join that is looked at. Each state is checked exactly, though the join is never made:
//! rows that are alike are one signature, earlier releases are joined once into blocks, and a step changes only what it
//! touches. What may be taken depends on sensitive values, so that the guarantees are those of an adversary without minimality.
//!
//! Where releases are projections of the same rows, Y lies in one release, and X has all by which that one is matched, the
//! join says just what that release says alone (the reduction lemma), and is not looked at. Otherwise a step down may even repair
//! a requirement, because it takes false matches away.

mod atlas;
mod fixed;
mod gain;
mod groups;
mod growth;
mod joined;
mod method;
mod planned;
mod search;
mod share;
mod signatures;
mod span;
mod tables;
mod weighing;
mod world;

pub use method::{Sequential, SequentialDesign};
pub use share::MeasureValue;
pub use span::{ColumnScale, Hierarchy, NodeRange, NodeSet};

use crate::control::{Cancelled, Control};
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

/// Why a release cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SequentialError {
    /// The new release has no rows.
    #[error("the table has no rows")]
    EmptyTable,
    /// A requirement names what is not there, or tells nothing.
    #[error("requirement {requirement} refers to an attribute or release that is not there")]
    UnknownReference {
        /// Its index.
        requirement: usize,
    },
    /// An exclusion names what is not there, one release only, or nothing.
    #[error("exclusion {exclusion} is not between attributes of two releases")]
    UnknownExclusion {
        /// Its index.
        exclusion: usize,
    },
    /// An attribute stands on both sides.
    #[error("X and Y of requirement {requirement} have an attribute in common")]
    Overlap {
        /// Its index.
        requirement: usize,
    },
    /// k below 1, h not in (0, 1], or sensitive values of another length than Y.
    #[error("the bound of requirement {requirement} means nothing")]
    Threshold {
        /// Its index.
        requirement: usize,
    },
    /// No X has an attribute of the new release.
    #[error("no requirement has an attribute of the new release in X")]
    NothingToGeneralize,
    /// An attribute of the new release stands in X, but cannot be generalized.
    #[error("attribute {attribute} stands in X and is to be published as it is")]
    NoScale {
        /// The attribute.
        attribute: u32,
    },
    /// Gain is information, but there is no class.
    #[error("there is no class to gain information on")]
    ClassMissing,
    /// Not even the root of every attribute keeps a requirement.
    #[error("requirement {requirement} is broken even where everything is generalized")]
    InfeasibleRoot {
        /// Its index.
        requirement: usize,
        /// Whether this proves that no cut keeps it.
        proof: bool,
    },
    /// The earlier releases break a requirement, whatever is published now.
    #[error("earlier releases break requirement {requirement}")]
    PriorReleaseViolates {
        /// Its index.
        requirement: usize,
    },
    /// No row of one release matches any of the others. Cannot be where all have the same rows.
    #[error("the join of requirement {requirement} has no tuples")]
    EmptyJoin {
        /// Its index.
        requirement: usize,
    },
    /// There is too much to be told apart on X and Y of a requirement.
    #[error("the join of requirement {requirement} is too dense; fewer attributes on X and Y would help")]
    TooDense {
        /// Its index.
        requirement: usize,
    },
    /// There are too many releases that a join may or may not have.
    #[error("requirement {requirement} would have to be looked at in too many joins")]
    TooManyJoins {
        /// Its index.
        requirement: usize,
    },
    /// It was told to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Why a join is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SequentialJoinError {
    TooDense,
    Cancelled(Cancelled),
}

impl From<Cancelled> for SequentialJoinError {
    fn from(cancelled: Cancelled) -> Self {
        Self::Cancelled(cancelled)
    }
}

impl SequentialJoinError {
    const fn at_requirement(self, requirement: usize) -> SequentialError {
        match self {
            Self::TooDense => SequentialError::TooDense { requirement },
            Self::Cancelled(cancelled) => SequentialError::Cancelled(cancelled),
        }
    }
}

/// A label of a generalized column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CutLabel {
    /// What it covers.
    pub span: NodeRange,
    /// Its node of the taxonomy; none of an interval.
    pub node: Option<u32>,
}

/// How a column of the new release is published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnCut {
    /// The column, of those given.
    pub column: usize,
    /// The labels, those of no row among them: exactly one is above every value.
    pub labels: Vec<CutLabel>,
    /// The label of each code.
    pub of_code: Vec<u32>,
}

/// A step down that was taken.
#[derive(Clone, PartialEq, Debug)]
pub struct TakenStep {
    /// The column, of those given.
    pub column: usize,
    /// The label that was replaced.
    pub label: CutLabel,
    /// The measures afterwards, by requirement, each the worst of its joins.
    pub measures: Vec<MeasureValue>,
    /// What the step was worth.
    pub score: f64,
}

/// What a requirement comes to on joins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AchievedMeasure {
    /// The requirement.
    pub requirement: usize,
    /// The joins, each by its releases.
    pub joins: Vec<Vec<usize>>,
    /// The measure.
    pub measure: MeasureValue,
}

/// The new release.
#[derive(Clone, PartialEq, Debug)]
pub struct SequentialSolution {
    /// Its generalized columns, in the order in which they stand in X.
    pub cuts: Vec<ColumnCut>,
    /// The measures of the roots, by requirement, each the worst of its joins.
    pub root: Vec<MeasureValue>,
    /// The steps taken, as many as lead to the cut. They look at the class and at sensitive values: for the owner alone.
    pub steps: Vec<TakenStep>,
    /// What holds.
    pub achieved: Vec<AchievedMeasure>,
    /// Steps of generalization over all cells of the generalized columns, to be divided by the rows.
    pub distortion: u64,
    /// Cells that are not published as they are.
    pub changed: u64,
}

impl SequentialProblem<'_> {
    /// Makes the new release.
    ///
    /// # Errors
    /// [`SequentialError`] when a requirement makes no sense, cannot be kept or cannot be checked, or when told to stop.
    pub fn release(&self, control: &Control) -> Result<SequentialSolution, SequentialError> {
        search::CutSearch::begin(self, true, control)?.run(control)
    }
}

#[cfg(test)]
mod tests;
