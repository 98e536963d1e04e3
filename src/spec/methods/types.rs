use crate::microdata::AttrSet;
pub use crate::publication::Algorithm;
use crate::publication::{Ratio, SubmittedRule};
use crate::spec::grammar::document::choice;

choice! {
    /// How classes are halved at a median: `strict` leaves rows of equal value together, `relaxed` makes halves of equal size, whose
    /// cells may overlap. `strict` when not given.
    pub enum ClassSplit as "ClassSplit" {
        /// Rows with equal values stay together.
        Strict = "strict",
        /// Both halves have equally many rows, but for one.
        Relaxed = "relaxed",
    }
}

/// Versatile publishing [Jin et al. 2010]; `docs/spec/guardian-normal-form.md`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersatileSpec {
    /// The rules over attributes.
    pub rules: Vec<SubmittedRule>,
    /// How the tables are found.
    pub algorithm: Algorithm,
    /// How UAD makes its tables.
    pub uad: UadSettings,
    /// Whether attributes are added to the tables of UAD where that breaks no rule.
    pub addback: bool,
    /// Whether GD begins once with each rule.
    pub try_all: bool,
    /// Whether GD goes on adding attributes that gain nothing.
    pub fill: bool,
    /// What estimates of the original are compared by.
    pub score: DecompositionScore,
    /// What a release of `auto` is for.
    pub goal: AutoGoal,
    /// Whether sensitive attributes that predict each other share their buckets.
    pub correlated: CorrelatedPolicy,
    /// Why strata that break a guarantee are published without a bound; `None`: they are refused.
    pub closed: Option<String>,
    /// Why there are no rules, when there are none.
    pub no_rules_reason: Option<String>,
}

/// How UAD makes its tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UadSettings {
    /// Whether tables are begun with maximal independent sets of attributes.
    pub saturate: bool,
    /// When attributes of no rule are coloured.
    pub coloring: UadColoring,
}

choice! {
    /// How `uad` colors attributes that stand in no rule among those that remain. `free_last` (when not given): last, into the class of
    /// the next table, which is one that guards an attribute where there is such a class. `paper`: with all others; they mostly share
    /// the class of a sensitive attribute, which then guards nothing and is cut off from what is known.
    pub enum UadColoring as "UadColoring" {
        /// After all others, into a class that guards an attribute.
        FreeLast = "free_last",
        /// Together with all others.
        Paper = "paper",
    }
}

impl VersatileSpec {
    /// Whether the choice of the tables depends on the data.
    #[must_use]
    pub const fn looks_at_data(&self) -> bool {
        match self.algorithm {
            Algorithm::SingleAttribute => false,
            Algorithm::Uad => self.addback,
            Algorithm::Gd | Algorithm::MultiSa | Algorithm::Auto => true,
        }
    }
}

choice! {
    /// How the tables are found. `uad` (when not given) and `single_attribute`, one table an attribute, look at the rules alone. `gd`,
    /// `uad` with `addback`, and `auto`, the better of the two within a budget of work, look at the data: they score by the entropy of
    /// the reader's estimate, in which no row of a bucket is tied to a sensitive value. `multi_sa`, one table bucketized on all
    /// sensitive attributes together, looks at them too. What they choose may yet reveal something of the data to an adversary who knows
    /// the code: the manifest calls an adversary who does not use that `without minimality`.
    existing Algorithm as "VersatileAlgorithm" {
        Uad = "uad",
        Gd = "gd",
        SingleAttribute = "single_attribute",
        MultiSa = "multi_sa",
        Auto = "auto",
    }
}

choice! {
    /// What a release of the algorithm `auto` is for. `entropy` (when not given): the candidate that leaves readers the least
    /// uncertainty. `count`: the same among the forms of `uad` alone where four or more attributes are protected; among all
    /// candidates where fewer are. `classification`: the candidate that keeps the most information between protected attributes
    /// and those that stand next to their buckets, so that these predict them.
    pub enum AutoGoal as "AutoGoal" {
        /// The least entropy of the reader's estimate.
        Entropy = "entropy",
        /// Small errors of COUNT queries.
        Count = "count",
        /// Predictions of protected attributes.
        Classification = "classification",
    }
}

choice! {
    /// What decides between decompositions: the entropy of the reader's estimate.
    pub enum DecompositionScore as "DecompositionScore" {
        /// The estimate's own entropy: the same for all originals that a reader cannot distinguish.
        Entropy = "entropy",
        /// Kullback-Leibler divergence of the original from the estimate: reveals the original, so for reproductions only.
        Kl = "kl",
    }
}

choice! {
    /// What becomes of sensitive attributes that predict each other, by a dependency or mostly (lambda of at least 1/2). `together` (when
    /// not given): where an algorithm that looks at the data protects them in tables that share an attribute, these become one table,
    /// with a sensitive part for each behind the same buckets; a rule that knows one and protects another is then impossible.
    /// `separate`: tables of their own; what a dependency links is then impossible.
    pub enum CorrelatedPolicy as "CorrelatedRules" {
        /// They share one table and its buckets.
        Together = "together",
        /// They are protected in tables of their own.
        Separate = "separate",
    }
}

choice! {
    /// Which dependencies the data is searched for: on one attribute and on two (when not given), on one alone, or none, which needs
    /// a reason under `assume_unknown`.
    pub enum DependencySearch as "DependencySearch" {
        /// With one or two determinants.
        SinglesAndPairs = "singles_and_pairs",
        /// With one determinant.
        Singles = "singles",
        /// The data is not searched.
        None = "none",
    }
}

/// What the adversary is assumed to know of the data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssumedKnowledge {
    /// Dependencies that the adversary knows.
    pub declared: Vec<DeclaredDependency>,
    /// Dependencies of the data that the adversary is assumed not to know.
    pub assumed_unknown: Vec<AssumedUnknown>,
    /// Which dependencies the data is searched for.
    pub search: DependencySearch,
    /// The share of rows for which an approximate dependency may not hold.
    pub tolerance: Ratio,
}

/// A dependency that the adversary is assumed not to know; without attributes, all of the data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssumedUnknown {
    /// Where the document states it.
    pub pointer: String,
    /// The dependency.
    pub dependency: DeclaredDependency,
    /// The reason the caller gives.
    pub reason: String,
}

/// A functional dependency that the document declares. Dropped attributes may occur in it, see `Specification::dropped_names`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeclaredDependency {
    /// The attributes that determine others.
    pub determinant: AttrSet,
    /// The attributes that are determined.
    pub dependent: AttrSet,
}

/// The method `anatomy` [Xiao and Tao 2006]; `docs/spec/anatomy.md`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnatomySpec {
    /// The quasi-identifiers and the sensitive attribute, at pointer `/method`.
    pub rule: SubmittedRule,
    /// Why strata that break the guarantee are published without a bound; `None`: they are refused.
    pub closed: Option<String>,
}

/// The method `generalize` [LeFevre et al. 2006]; `docs/spec/generalize.md`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GeneralizeSpec {
    /// A rule for each guarantee and each sensitive attribute, and one for k-anonymity, all at pointer `/method`.
    pub rules: Vec<SubmittedRule>,
    /// The attributes that are generalized.
    pub quasi_identifiers: AttrSet,
    /// The attributes that stay exact.
    pub sensitive: AttrSet,
    /// How classes are halved.
    pub split: ClassSplit,
    /// What stands in generalized cells.
    pub cells: CellKind,
    /// The attributes whose cells are sets of values.
    pub sets: AttrSet,
    /// Texts of too many values for sets: `by_type` publishes them as intervals.
    pub crowded: AttrSet,
}

/// The most values of a text whose cells are sets by its type.
pub(in crate::spec) const MAX_SET_VALUES: u64 = 256;

choice! {
    /// What the rows of a class share: the first and the last of their values, all of them, or the lowest node of the attribute's
    /// taxonomy above them. `by_type` (when not given): all of them for texts and booleans of at most 256 values, the first and the
    /// last for all others. With `node`, numbers, dates and times without a taxonomy are published as intervals, and any other
    /// quasi-identifier needs one.
    pub enum CellKind as "ClassCells" {
        /// All values of a class for texts and booleans of few values, the first and the last value for others.
        ByType = "by_type",
        /// The first and the last value of a class, in their order.
        Interval = "interval",
        /// The lowest node of a taxonomy above all values of a class.
        Node = "node",
        /// All values of a class.
        Set = "set",
    }
}
