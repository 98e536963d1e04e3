//! How privacy rules stand in a publication.

use std::sync::Arc;

use super::guarantee::Guarantee;
use super::table::{Protected, TableName};
use super::thresholds::DigestedThresholds;
use super::unit::Unit;
use super::vocabulary::RuleOrigin;
use crate::microdata::{Attr, AttrSet, Taxonomy};

/// A rule as it was submitted: whoever knows `known` must not learn `protects` beyond `guarantee`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubmittedRule {
    /// Where the specification states it, as a JSON pointer.
    pub pointer: String,
    /// The quasi-identifiers.
    pub known: AttrSet,
    /// The sensitive side.
    pub protects: Protected,
    /// The bound.
    pub guarantee: Guarantee,
}

/// Values of an attribute that an insider can rule out, as the caller states them: what is protected is protected from whoever does
/// so, too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExcludedValues {
    /// The attribute.
    pub attribute: Attr,
    /// The values, in the order of the document; `None` is the missing one.
    pub values: Vec<Option<String>>,
}

/// The taxonomy of an attribute, as the caller states it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclaredTaxonomy {
    /// The attribute.
    pub attribute: Attr,
    /// The tree.
    pub tree: Arc<Taxonomy>,
}

/// The thresholds that a rule puts on the values of an attribute, as the caller states them: its guarantee names them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclaredThresholds {
    /// The attribute.
    pub attribute: Attr,
    /// How much of a bucket each of its values may take.
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

/// What made a rule implied or added.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RuleDerivation {
    /// The rule, by its pointer, that implies it.
    Rule(String),
    /// The dependency it follows from.
    Dependency {
        /// The determining attributes.
        determinant: AttrSet,
        /// The attributes they determine.
        dependent: AttrSet,
    },
}

/// Why a rule holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EnforcedBy {
    /// No known attribute reaches the sensitive one (versatile publishing, Lemma 1).
    Unreachable,
    /// A guardian table stands between (Definition 4).
    Guardian {
        /// The guardian.
        table: TableName,
        /// The attributes of the guardian that the adversary may know or reach (`W` of the definition).
        known: AttrSet,
    },
    /// The one table of a single-table method holds it.
    Table(TableName),
}

/// A rule and how it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnforcedRule {
    /// Where the specification states it; `None` for rules that follow from a dependency.
    pub pointer: Option<String>,
    /// Why it is listed.
    pub origin: RuleOrigin,
    /// What made it implied or added.
    pub because: Option<RuleDerivation>,
    /// The quasi-identifiers.
    pub known: AttrSet,
    /// The sensitive side.
    pub protects: Protected,
    /// The bound that was asked for.
    pub guarantee: Guarantee,
    /// Why it holds.
    pub enforced_by: EnforcedBy,
}
