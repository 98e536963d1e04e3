//! Privacy rules as submitted, and as a publication enforces them.

use std::sync::Arc;

use super::guarantee::Guarantee;
use super::table::{Protected, TableName};
use super::thresholds::DigestedThresholds;
use super::unit::Unit;
use super::vocabulary::RuleOrigin;
use crate::microdata::{Attr, AttrSet, Taxonomy};

/// A submitted rule: an adversary who knows `known` must not infer `protects` in excess of `guarantee`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubmittedRule {
    /// Its JSON pointer in the specification.
    pub pointer: String,
    /// The quasi-identifiers.
    pub known: AttrSet,
    /// The sensitive side.
    pub protects: Protected,
    /// The bound on the inference.
    pub guarantee: Guarantee,
}

/// Values of an attribute that an insider can exclude, as the caller declares them; guarantees hold against insiders too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExcludedValues {
    /// The attribute.
    pub attribute: Attr,
    /// The values, in the order of the document; `None` is the missing value.
    pub values: Vec<Option<String>>,
}

/// The taxonomy of an attribute, as the caller declares it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclaredTaxonomy {
    /// The attribute.
    pub attribute: Attr,
    /// The tree.
    pub tree: Arc<Taxonomy>,
}

/// The thresholds that a rule puts on the values of an attribute; the guarantee of the rule names their digest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclaredThresholds {
    /// The attribute.
    pub attribute: Attr,
    /// The largest share of a bucket for each value.
    pub thresholds: DigestedThresholds,
}

/// What the caller declares of the values of attributes and of the unit of protection.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredInputs<'a> {
    /// Values that an insider can exclude.
    pub excluded: &'a [ExcludedValues],
    /// Taxonomies of attributes.
    pub taxonomies: &'a [DeclaredTaxonomy],
    /// Thresholds that rules name.
    pub thresholds: &'a [DeclaredThresholds],
    /// The unit of protection.
    pub unit: &'a Unit,
}

/// The rule or dependency that implies or adds a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RuleDerivation {
    /// The pointer of the rule that implies it.
    Rule(String),
    /// The dependency from which it follows.
    Dependency {
        /// The determining attributes.
        determinant: AttrSet,
        /// The attributes they determine.
        dependent: AttrSet,
    },
}

/// The reason a rule holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EnforcedBy {
    /// No path of tables leads from known attributes to the sensitive one [Jin et al. 2010, Lemma 1].
    Unreachable,
    /// Every path passes a guarding table [Jin et al. 2010, Definition 4].
    Guardian {
        /// The guarding table.
        table: TableName,
        /// The attributes of that table that the adversary may know or reach: `W` of the definition.
        known: AttrSet,
    },
    /// The only table of the method enforces it.
    Table(TableName),
}

/// A rule, with the reason it holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnforcedRule {
    /// Its JSON pointer in the specification; `None` for rules that follow from a dependency.
    pub pointer: Option<String>,
    /// The reason it is listed.
    pub origin: RuleOrigin,
    /// The rule or dependency that implies or adds it.
    pub because: Option<RuleDerivation>,
    /// The quasi-identifiers.
    pub known: AttrSet,
    /// The sensitive side.
    pub protects: Protected,
    /// The guarantee for rows.
    pub guarantee: Guarantee,
    /// The reason it holds.
    pub enforced_by: EnforcedBy,
}
