use std::sync::Arc;

use super::table::{CellText, ExternalPart, ExternalTable};
use crate::microdata::{Attr, AttrSet, AttributeType, Taxonomy};
use crate::publication::{DeclaredTaxonomy, DeclaredThresholds, NoticeKind, SubmittedRule};
use crate::verifier::contract::checks::Check;
use crate::verifier::definition::share::ShareOfRows;
use crate::verifier::definition::taxonomy::{DeclaredValues, TaxonomyPaths};
use crate::verifier::definition::thresholds::ThresholdBounds;

/// Maximal number of reported classes that violate a guarantee.
pub(in crate::verifier) const MAX_REPORTED_CLASSES: usize = 10;

/// Measures of the worst class.
///
/// Values without counts have the number of values alone.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ClassMeasures {
    /// Number of classes.
    pub classes: u64,
    /// Number of rows of the smallest class.
    pub k: Option<u64>,
    /// The largest share of a value in a class.
    ///
    /// Of equal shares that of the smallest class.
    pub worst: Option<ShareOfRows>,
    /// The smallest number of distinct values of a class.
    pub distinct_l: u64,
    /// The smallest number of equally frequent values with the entropy of a class.
    pub entropy_l: Option<f64>,
    /// Largest ratio of recursive diversity, for each l from 2 on that all classes reach.
    ///
    /// It divides the count of the most frequent value by the sum of the counts from the l-th on.
    pub recursive_c: Vec<(u64, f64)>,
    /// The largest distance of a class from the column, with all values equally distant.
    pub t_equal: Option<f64>,
    /// The largest distance over the order of the values.
    pub t_ordered: Option<f64>,
    /// The largest distance over the taxonomy, where a declared one has all values.
    pub t_hierarchical: Option<f64>,
}

/// A class that violates a guarantee.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ViolatingClass {
    /// The index of the table.
    pub table: usize,
    /// The label of its bucket, in a table with buckets.
    pub bucket: Option<CellText>,
    /// The common values of its rows; empty where a whole table violates the guarantee.
    pub class: Vec<(Attr, CellText)>,
}

/// The classes that violate a guarantee.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ViolatingClasses {
    /// Number of violating classes.
    pub total: u64,
    /// At most ten classes, the worst first.
    pub first: Vec<ViolatingClass>,
}

impl ViolatingClasses {
    /// Adds the classes of another table.
    pub(in crate::verifier) fn extend(&mut self, more: Self) {
        self.total += more.total;
        self.first.extend(more.first);
        self.first.truncate(MAX_REPORTED_CLASSES);
    }
}

/// External tables and the rules that they must satisfy.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    /// The tables, as they were read.
    pub tables: &'a [ExternalTable],
    /// The names of the attributes, also of attributes without a table.
    pub names: &'a [String],
    /// The rules to evaluate.
    pub rules: &'a [SubmittedRule],
    /// The dependencies that the adversary knows, as determinants and dependents.
    pub dependencies: &'a [(AttrSet, AttrSet)],
    /// The table from which the tables were made, if it is submitted.
    pub original: Option<&'a ExternalPart>,
    /// The taxonomies of attributes.
    pub taxonomies: &'a [DeclaredTaxonomy],
    /// The thresholds that rules put on values.
    pub thresholds: &'a [DeclaredThresholds],
    /// The attributes whose listed values each belong to a row of their bucket, as the submission declares.
    pub exact: AttrSet,
}

impl Submission<'_> {
    /// What the submission declares about an attribute, for `values` in the order of their codes.
    pub(in crate::verifier) fn declared<'v>(
        &self,
        attr: Attr,
        kind: Option<AttributeType>,
        values: impl Iterator<Item = Option<&'v [u8]>> + Clone,
    ) -> DeclaredValues {
        let paths = self.tree(attr).and_then(|tree| TaxonomyPaths::new(tree, kind, values.clone())).map(Arc::new);
        let thresholds = self.thresholds.iter().filter(|declared| declared.attribute == attr);
        let bound =
            |declared: &DeclaredThresholds| Arc::new(ThresholdBounds::new(&declared.thresholds, kind, values.clone()));
        DeclaredValues { excluded: Vec::new(), paths, bounds: thresholds.map(bound).collect() }
    }

    /// The declared taxonomy of an attribute.
    pub(in crate::verifier) fn tree(&self, attr: Attr) -> Option<&Taxonomy> {
        self.taxonomies.iter().find(|declared| declared.attribute == attr).map(|declared| declared.tree.as_ref())
    }

    /// The quoted names of attributes, for details.
    pub(in crate::verifier) fn list(&self, attrs: AttrSet) -> String {
        attrs.iter().map(|attr| format!("\"{}\"", self.names[attr.index()])).collect::<Vec<_>>().join(", ")
    }
}

/// Results of an evaluation.
#[derive(Debug)]
pub struct EvaluationReport {
    /// The outcome of each rule, in their order.
    pub rules: Vec<RuleOutcome>,
    /// The figures of each table, in their order.
    pub tables: Vec<ExternalTableFigures>,
    /// The checks other than the rules.
    pub checks: Vec<Check>,
    /// Remarks for the reader, as a stable name and a text.
    pub remarks: Vec<(NoticeKind, String)>,
}

impl EvaluationReport {
    /// Whether all rules hold and all checks passed.
    #[must_use]
    pub fn verified(&self) -> bool {
        self.rules.iter().all(|rule| rule.held.is_some()) && self.checks.iter().all(|check| check.passed)
    }
}

/// Reason why a rule holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExternalEnforcement {
    /// No path leads from a known to a sensitive attribute.
    Unreachable,
    /// The table with this index is the guardian, with these entry attributes.
    Guardian(usize, AttrSet),
}

/// Outcome of one rule.
#[derive(Debug, Default)]
pub struct RuleOutcome {
    /// The reason why the rule holds; `None` when it does not.
    pub held: Option<ExternalEnforcement>,
    /// The known attributes with a path to a sensitive one, when the rule does not hold.
    pub violated_by: AttrSet,
    /// The measures of the guardian, or of the table nearest to one.
    pub achieved: Option<ClassMeasures>,
    /// The classes that violate the rule.
    pub breaks: ViolatingClasses,
    /// The reason why the rule does not hold, in words.
    pub detail: Option<String>,
}

/// Figures of one table.
#[derive(Debug, Default)]
pub struct ExternalTableFigures {
    /// Number of rows of the table.
    pub rows: u64,
    /// Number of buckets; 0 without buckets.
    pub buckets: u64,
    /// Measures of the classes, by protected attributes and by the attributes of the classes.
    pub measures: Vec<(AttrSet, AttrSet, ClassMeasures)>,
}
