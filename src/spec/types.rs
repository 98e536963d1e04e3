//! What a checked specification is made of.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bucketize::BucketizeSpec;
use super::decompose::DecomposeSpec;
use super::generalize::ClassSplit;
use super::sequential::SequentialSpec;
use super::slicing::SlicingSpec;
use super::utility::InternalUtility;
use crate::microdata::{Attr, AttrSet, AttributeType, ColumnProfile};
use crate::problem::Fault;
use crate::publication::{DeclaredTaxonomy, DeclaredThresholds, ExcludedValues, SubmittedRule, Unit, XyRequirement};

/// Where a document comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DocumentSource {
    /// A request: the document names its dataset.
    Http,
    /// A dry run: as a request, and tables may be proposed.
    Plan,
    /// A file beside a table: `dataset` may stand in it and has no effect.
    CommandLine,
    /// The same, for a release whose key the caller has chosen.
    Reproduction,
    /// A policy: its tables are not known yet.
    Policy,
}

/// What the check needs to know of a dataset.
#[derive(Clone, Copy, Debug)]
pub struct DatasetSchema<'a> {
    /// The columns, in the dataset's order.
    pub columns: &'a [ColumnFacts],
    /// The names of the record key's columns.
    pub record_key: &'a [String],
    /// What one unit of protection is. The column that tells persons apart is an identifier.
    pub unit: &'a Unit,
}

/// What the check needs to know of a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnFacts {
    /// The name, unique in the dataset.
    pub name: String,
    /// The type of its values.
    pub kind: AttributeType,
    /// Whether it was detected as an identifier.
    pub identifier: bool,
    /// Whether more than half of its values are distinct.
    pub mostly_distinct: bool,
    /// Whether it has more distinct values than a job can load.
    pub overflow: bool,
    /// How many distinct values it has, a missing one counted as one, where that is known.
    pub distinct: Option<u64>,
    /// The largest diversity that its most frequent value allows, where that is known: rows by those that have it, rounded down.
    pub largest_l: Option<u64>,
}

impl ColumnFacts {
    /// A column of which only the name is known.
    #[must_use]
    pub fn unseen(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: AttributeType::Text,
            identifier: false,
            mostly_distinct: false,
            overflow: false,
            distinct: None,
            largest_l: None,
        }
    }

    /// What the profile of a column in a table of so many rows shows.
    #[must_use]
    pub fn of(profile: &ColumnProfile, rows: u64) -> Self {
        Self { largest_l: rows.checked_div(profile.top), ..profile.into() }
    }
}

impl From<&ColumnProfile> for ColumnFacts {
    fn from(profile: &ColumnProfile) -> Self {
        Self {
            name: profile.name.clone(),
            kind: profile.kind,
            identifier: profile.identifier,
            mostly_distinct: profile.mostly_distinct,
            overflow: profile.overflow(),
            distinct: profile.codes(),
            largest_l: None,
        }
    }
}

/// A document as it was understood, and everything that is wrong with it.
#[derive(Clone, PartialEq, Debug)]
pub struct ParsedDocument {
    /// The specification: also beside faults, when the rules that are well formed can still be judged for eligibility.
    /// It may start a job only when there are no faults.
    pub specification: Option<Specification>,
    /// Every fault, ordered by pointer.
    pub faults: Vec<Fault>,
}

/// A specification, resolved against the columns of its dataset.
#[derive(Clone, PartialEq, Debug)]
pub struct Specification {
    /// The positions of the columns that are published, in column order; attribute `i` is column `used[i]`.
    pub used: Vec<usize>,
    /// The dataset's names of the attributes.
    pub names: Vec<String>,
    /// The published names of the attributes.
    pub published_names: Vec<String>,
    /// The names of columns that are dropped and that stated dependencies name: as attributes they come behind all others.
    pub dropped_names: Vec<String>,
    /// All attributes.
    pub attributes: AttrSet,
    /// How the release is made.
    pub method: MethodSpec,
    /// The tables to be judged in place of those that the method would find.
    pub schema: Option<Vec<ProposedTable>>,
    /// The job's place in the queue, -100 to 100.
    pub priority: i32,
    /// How long the job may take.
    pub deadline: Option<Duration>,
    /// Why the job was submitted.
    pub reason: Option<String>,
    /// Why the release may stand beside earlier ones without proof, where it may.
    pub unproven: Option<String>,
    /// Whether the manifest states the entropy of the model.
    pub entropy: bool,
    /// What the internal report is to measure. It has no effect on the release.
    pub internal: InternalUtility,
    /// Attributes for which `"publish": true, "identifier": false` is stated. All that are stated, not only those that were
    /// detected: which ones were would say something of the data.
    pub overridden_identifiers: Vec<Attr>,
    /// Values that an insider can rule out, per attribute that has some.
    pub uninformative: Vec<ExcludedValues>,
    /// The taxonomies of attributes that have one, in the order of attributes.
    pub taxonomies: Vec<DeclaredTaxonomy>,
    /// The thresholds that rules put on values of attributes, where their guarantees name some.
    pub thresholds: Vec<DeclaredThresholds>,
    /// What one unit of protection is; the rules are those that rows keep.
    pub unit: Unit,
    /// What the plan should point out.
    pub warnings: Vec<SpecWarning>,
    /// The document with defaults filled in and rules in object form.
    pub normalized: Value,
    /// What enters the reuse key: `normalized` without what has no effect on the release. Columns that are not published
    /// are not named in it, however they were dropped. Serialize it with sorted members.
    pub reuse_form: Value,
}

/// A table that a plan is asked to judge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProposedTable {
    /// All its attributes.
    pub attributes: AttrSet,
    /// The one of them on which it would be bucketized; `None`: whole tuples.
    pub sensitive: Option<Attr>,
}

/// How a release is made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MethodSpec {
    /// Many rules, several tables.
    Versatile(VersatileSpec),
    /// One sensitive attribute, one table in two parts.
    Anatomy(AnatomySpec),
    /// One sensitive attribute with a threshold for each of its values, one table in two parts.
    Bucketize(BucketizeSpec),
    /// Several sensitive attributes, buckets by one of them, and a table of their joint values.
    Decompose(DecomposeSpec),
    /// Classes of rows whose quasi-identifiers are published alike.
    Generalize(GeneralizeSpec),
    /// A table beside earlier releases, with what must hold on their join.
    Sequential(SequentialSpec),
    /// One sensitive attribute, one table in columns that are tied by bucket.
    Slicing(SlicingSpec),
}

impl MethodSpec {
    /// The method's name in the contract.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Versatile(_) => "versatile",
            Self::Anatomy(_) => "anatomy",
            Self::Bucketize(_) => "bucketize",
            Self::Decompose(_) => "decompose",
            Self::Generalize(_) => "generalize",
            Self::Sequential(_) => "sequential",
            Self::Slicing(_) => "slicing",
        }
    }

    /// The dependencies that the adversary is stated to know.
    #[must_use]
    pub fn declared(&self) -> &[DeclaredDependency] {
        match self {
            Self::Versatile(spec) => &spec.declared,
            Self::Anatomy(_)
            | Self::Bucketize(_)
            | Self::Decompose(_)
            | Self::Generalize(_)
            | Self::Sequential(_)
            | Self::Slicing(_) => &[],
        }
    }

    /// The dependencies that the adversary is stated not to know.
    #[must_use]
    pub fn assumed_unknown(&self) -> &[(DeclaredDependency, String)] {
        match self {
            Self::Versatile(spec) => &spec.assumed_unknown,
            Self::Anatomy(_)
            | Self::Bucketize(_)
            | Self::Decompose(_)
            | Self::Generalize(_)
            | Self::Sequential(_)
            | Self::Slicing(_) => &[],
        }
    }

    /// What must hold on the join with earlier releases.
    #[must_use]
    pub fn requirements(&self) -> &[XyRequirement] {
        match self {
            Self::Sequential(spec) => &spec.requirements,
            _ => &[],
        }
    }

    /// The rules, in the order of the document; one that protects several attributes each gives one for each.
    #[must_use]
    pub fn rules(&self) -> &[SubmittedRule] {
        match self {
            Self::Versatile(spec) => &spec.rules,
            Self::Anatomy(spec) => std::slice::from_ref(&spec.rule),
            Self::Bucketize(spec) => std::slice::from_ref(&spec.rule),
            Self::Decompose(spec) => &spec.rules,
            Self::Generalize(spec) => &spec.rules,
            // what it keeps are requirements over joins
            Self::Sequential(_) => &[],
            Self::Slicing(spec) => std::slice::from_ref(&spec.rule),
        }
    }
}

/// Versatile publishing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersatileSpec {
    /// The rules.
    pub rules: Vec<SubmittedRule>,
    /// Dependencies that the adversary knows.
    pub declared: Vec<DeclaredDependency>,
    /// Dependencies that the adversary is taken not to know though the data has them, each with the reason.
    pub assumed_unknown: Vec<(DeclaredDependency, String)>,
    /// How the tables are found.
    pub algorithm: Algorithm,
    /// Whether tables of UAD are begun with maximal independent sets of attributes.
    pub saturate: bool,
    /// Whether attributes are added to the tables of UAD where that breaks no rule.
    pub addback: bool,
    /// Whether GD begins once with each rule.
    pub try_all: bool,
    /// Whether GD goes on adding attributes that gain nothing.
    pub fill: bool,
    /// What estimates of the original are compared by.
    pub score: DecompositionScore,
    /// Whether sensitive attributes that tell each other share their buckets.
    pub correlated: CorrelatedPolicy,
    /// Why there are no rules, when there are none.
    pub no_rules: Option<String>,
}

impl VersatileSpec {
    /// Whether the tables are chosen by what the data makes of them.
    #[must_use]
    pub const fn looks_at_data(&self) -> bool {
        match self.algorithm {
            Algorithm::SingleAttribute => false,
            Algorithm::Uad => self.addback,
            Algorithm::Gd | Algorithm::MultiSa | Algorithm::Auto => true,
        }
    }
}

/// How versatile publishing finds its tables.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Utility-aware decomposition: from the rules alone (Algorithm 2).
    Uad,
    /// Guardian decomposition: greedy, by what the tables tell of the original (Algorithm 1, corrected).
    Gd,
    /// One table per attribute.
    SingleAttribute,
    /// One table, bucketized on all sensitive attributes together (Algorithm 3).
    MultiSa,
    /// The best of UAD and GD within a budget of work.
    Auto,
}

impl Algorithm {
    /// The name used in the contract.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Uad => "uad",
            Self::Gd => "gd",
            Self::SingleAttribute => "single_attribute",
            Self::MultiSa => "multi_sa",
            Self::Auto => "auto",
        }
    }
}

/// What estimates of the original are compared by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecompositionScore {
    /// The estimate's own entropy: the same for all originals that a reader cannot tell apart.
    #[default]
    Entropy,
    /// Kullback and Leibler's divergence of the original from the estimate: tells of the original, so for reproductions only.
    Kl,
}

/// What becomes of sensitive attributes that tell each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CorrelatedPolicy {
    /// They share one table and its buckets.
    #[default]
    Together,
    /// They are protected in tables of their own.
    Separate,
}

/// A functional dependency as it is stated. Its attributes may be dropped ones, see [`Specification::dropped_names`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeclaredDependency {
    /// What is known.
    pub determinant: AttrSet,
    /// What it determines.
    pub dependent: AttrSet,
}

/// Anatomy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnatomySpec {
    /// The quasi-identifiers and the sensitive attribute, at pointer `/method`.
    pub rule: SubmittedRule,
}

/// Generalization.
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
}

/// What stands in the cells of a generalized attribute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellKind {
    /// The first and the last value of a class, in their order.
    #[default]
    Interval,
    /// The lowest node of a taxonomy above all values of a class.
    Node,
    /// All values of a class.
    Set,
}

/// Something that is allowed and deserves a second look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpecWarning {
    /// What it is about, as a JSON pointer.
    pub pointer: Option<String>,
    /// A stable name.
    pub type_: &'static str,
    /// For people. No value of the data.
    pub detail: String,
}
