use std::sync::Arc;

use super::table::{CellText, ExternalPart, ExternalTable};
use crate::microdata::{Attr, AttrSet, AttributeType, Taxonomy};
use crate::publication::{DeclaredTaxonomy, DeclaredThresholds, NoticeKind, SubmittedRule};
use crate::verifier::contract::checks::Check;
use crate::verifier::definition::taxonomy::{DeclaredValues, TaxonomyPaths};
use crate::verifier::definition::thresholds::ThresholdBounds;

/// So many classes that break a guarantee are shown.
pub(in crate::verifier) const MAX_REPORTED_CLASSES: usize = 10;

/// What the worst class shows. Of values without multiplicities only their number can be read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ClassMeasures {
    /// How many classes there are.
    pub classes: u64,
    /// The size of the smallest class.
    pub k: Option<u64>,
    /// The largest share that a value takes of a class, as `(count, size)`; of equal ones that of the smallest class.
    pub worst: Option<(u64, u64)>,
    /// The fewest values of a class.
    pub distinct_l: u64,
    /// The least number of equally frequent values that have a class's entropy.
    pub entropy_l: Option<f64>,
    /// Per l from 2 on, as far as every class has so many values: the largest quotient of the most frequent value's count and that
    /// of all from the l-th on.
    pub recursive_c: Vec<(u64, f64)>,
    /// The largest distance of a class from the column, all values equally far.
    pub t_equal: Option<f64>,
    /// The same over the order of values.
    pub t_ordered: Option<f64>,
    /// The same along the taxonomy, where one is stated that has all values.
    pub t_hierarchical: Option<f64>,
}

/// A class that breaks a guarantee.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ViolatingClass {
    /// The table, by its index.
    pub table: usize,
    /// The label of its bucket, where there are buckets.
    pub bucket: Option<CellText>,
    /// What its rows have in common; nothing where a whole table breaks it.
    pub class: Vec<(Attr, CellText)>,
}

/// How many classes break a guarantee, and some of them, the worst first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ViolatingClasses {
    /// All of them.
    pub total: u64,
    /// At most ten.
    pub first: Vec<ViolatingClass>,
}

impl ViolatingClasses {
    /// Adds those of another table.
    pub(in crate::verifier) fn extend(&mut self, more: Self) {
        self.total += more.total;
        self.first.extend(more.first);
        self.first.truncate(MAX_REPORTED_CLASSES);
    }
}

/// The larger share; of equal ones that of the smaller class.
pub(in crate::verifier) fn worse(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    let (left, right) = (u128::from(a.0) * u128::from(b.1), u128::from(b.0) * u128::from(a.1));
    match left.cmp(&right) {
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Equal if b.1 < a.1 => b,
        _ => a,
    }
}

/// What is to be judged.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    /// The tables, as they were read.
    pub tables: &'a [ExternalTable],
    /// The names of the attributes, also of those that are in no table.
    pub names: &'a [String],
    /// What must hold.
    pub rules: &'a [SubmittedRule],
    /// What the adversary knows to determine something.
    pub dependencies: &'a [(AttrSet, AttrSet)],
    /// What the tables are said to have been made from.
    pub original: Option<&'a ExternalPart>,
    /// The taxonomies of attributes.
    pub taxonomies: &'a [DeclaredTaxonomy],
    /// The thresholds that rules put on values.
    pub thresholds: &'a [DeclaredThresholds],
    /// The attributes of which, where buckets list values without their numbers, each is some row's, as whoever made the tables states.
    pub exact: AttrSet,
}

impl Submission<'_> {
    /// What is stated of the values of an attribute, in the order of their codes.
    pub(in crate::verifier) fn stated<'v>(
        &self,
        attr: Attr,
        kind: Option<AttributeType>,
        values: impl Iterator<Item = Option<&'v [u8]>> + Clone,
    ) -> DeclaredValues {
        let ways = self.tree(attr).and_then(|tree| TaxonomyPaths::new(tree, kind, values.clone())).map(Arc::new);
        let thresholds = self.thresholds.iter().filter(|stated| stated.attribute == attr);
        let bound =
            |stated: &DeclaredThresholds| Arc::new(ThresholdBounds::new(&stated.thresholds, kind, values.clone()));
        DeclaredValues { excluded: Vec::new(), ways, bounds: thresholds.map(bound).collect() }
    }

    /// The taxonomy of an attribute, where one is stated.
    pub(in crate::verifier) fn tree(&self, attr: Attr) -> Option<&Taxonomy> {
        self.taxonomies.iter().find(|stated| stated.attribute == attr).map(|stated| stated.tree.as_ref())
    }

    /// The names of attributes.
    pub(in crate::verifier) fn list(&self, attrs: AttrSet) -> String {
        attrs.iter().map(|attr| format!("\"{}\"", self.names[attr.index()])).collect::<Vec<_>>().join(", ")
    }
}

/// What was found.
#[derive(Debug)]
pub struct EvaluationReport {
    /// Each rule, as they were given.
    pub rules: Vec<RuleOutcome>,
    /// Each table, as they were given.
    pub tables: Vec<ExternalTableFigures>,
    /// What was checked beside the rules.
    pub checks: Vec<Check>,
    /// What a reader should know: a stable name, and what it is.
    pub remarks: Vec<(NoticeKind, String)>,
}

impl EvaluationReport {
    /// Whether all rules hold and nothing else was found.
    #[must_use]
    pub fn verified(&self) -> bool {
        self.rules.iter().all(|rule| rule.held.is_some()) && self.checks.iter().all(|check| check.passed)
    }
}

/// Why a rule holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExternalEnforcement {
    /// Nothing known reaches what is sensitive.
    Unreachable,
    /// A table, by its index, stands between; these of its attributes the adversary may know.
    Guardian(usize, AttrSet),
}

/// A rule and how it stands.
#[derive(Debug, Default)]
pub struct RuleOutcome {
    /// Why it holds; `None` when it does not.
    pub held: Option<ExternalEnforcement>,
    /// The known attributes that reach what is sensitive, when it does not hold.
    pub violated_by: AttrSet,
    /// What the classes of the table that holds it, or comes nearest to it, show.
    pub achieved: Option<ClassMeasures>,
    /// The classes that break it.
    pub breaks: ViolatingClasses,
    /// Why it does not hold, in words.
    pub detail: Option<String>,
}

/// What a table shows.
#[derive(Debug, Default)]
pub struct ExternalTableFigures {
    /// How many rows it has.
    pub rows: u64,
    /// How many buckets; 0 without.
    pub buckets: u64,
    /// What its classes show: per protected attributes, and per attributes whose equal values make a class.
    pub measures: Vec<(AttrSet, AttrSet, ClassMeasures)>,
}
