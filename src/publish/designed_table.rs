//! A table of a design: its attributes, and how they are published.

use std::sync::Arc;

use super::assign::{
    AttributeDiversity, AttributeGuarantees, BucketAssignment, ComparedRows, SensitiveCodes, assign, assign_tied,
    several,
};
use super::bucketize::{PlannedBuckets, capped};
use super::decompose::{DecomposedTable, DecompositionRole};
use super::partition::MedianSplit;
use super::persistent::PersistentBuckets;
use super::sequential::SequentialDesign;
use super::slicing::SlicedDesign;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Table};
use crate::privacy::links::Strata;
use crate::privacy::{Guard, TableSchema};
use crate::problem::{Fault, Kind};
use crate::publication::{
    EnforcedBy, EnforcedRule, Guarantee, Protected, RuleOrigin, TableGuard, TableKind, TableName, kind_of_guarding,
};
use crate::random::{RandomStream, RandomStreams};
use crate::spec::CellKind;

/// A table to publish.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesignedTable {
    /// Attributes of all parts.
    pub attributes: AttrSet,
    /// How the attributes are published.
    pub design: TableDesign,
}

/// How the attributes of a table are published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TableDesign {
    /// Exact tuples in one part, without a guard.
    Plain,
    /// Sensitive parts, linked to the other attributes by bucket.
    Bucketized(Bucketized),
    /// Columns of attributes, permuted within buckets.
    Sliced(SlicedDesign),
    /// Classes of rows with equal quasi-identifier cells.
    Generalized(Generalized),
    /// One part, checked on its join with earlier releases.
    Sequential(Arc<SequentialDesign>),
    /// One of the two tables of a decomposition.
    Decomposed(DecomposedTable),
}

/// When the buckets of a bucketized table are decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BucketPlan {
    /// By the draw of the release alone.
    Drawn,
    /// Sizes and values of the buckets are decided by the plan; only rows are drawn.
    Sized(Arc<PlannedBuckets>),
    /// By the nights before and the draw of this one.
    Persistent(Arc<PersistentBuckets>),
}

/// A bucketized table: sensitive parts, linked to each other and to the other attributes by the same buckets.
///
/// Each guard bounds every bucket: for every combination of known values in the part that holds the protected attributes, the
/// distribution of the protected values keeps the guarantees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bucketized {
    /// Attributes of each sensitive part; disjoint.
    pub parts: Vec<AttrSet>,
    /// Guards that every bucket keeps.
    pub guards: Vec<TableGuard>,
    /// When the buckets are decided.
    pub buckets: BucketPlan,
    /// The sets of rows in which buckets are made; `None` for the whole table.
    pub strata: Option<Arc<Strata>>,
    /// The sets, rising, that are one bucket each: they break a guarantee whatever their buckets are.
    pub closed: Vec<u32>,
}

impl Bucketized {
    /// A table of `attributes` with one sensitive part, whose adversary knows all other attributes.
    #[must_use]
    pub fn new(attributes: AttrSet, protects: Protected, guarantees: Vec<Guarantee>) -> Self {
        let part = protects.attributes();
        let guard = TableGuard::new(attributes.minus(part), protects, guarantees);
        Self { parts: vec![part], guards: vec![guard], buckets: BucketPlan::Drawn, strata: None, closed: Vec::new() }
    }

    /// A table of `attributes` with one sensitive attribute.
    #[must_use]
    pub fn on(attributes: AttrSet, sensitive: Attr, guarantees: Vec<Guarantee>) -> Self {
        Self::new(attributes, Protected::Attribute(sensitive), guarantees)
    }

    /// A table with one part of several sensitive attributes, each with its diversity.
    ///
    /// The adversary of each attribute knows all other attributes of the table. Rows that fit in no bucket are suppressed.
    #[must_use]
    pub fn each_of(attributes: AttrSet, sensitive: &[AttributeDiversity]) -> Self {
        let guard = |&AttributeDiversity { attr, l }: &AttributeDiversity| {
            TableGuard::new(attributes.without(attr), Protected::Attribute(attr), vec![Guarantee::LDiversity { l }])
        };
        Self {
            parts: vec![sensitive.iter().map(|diversity| diversity.attr).collect()],
            guards: sensitive.iter().map(guard).collect(),
            buckets: BucketPlan::Drawn,
            strata: None,
            closed: Vec::new(),
        }
    }

    /// A table with a part for each of several correlated sensitive attributes.
    ///
    /// The adversary of each attribute knows the attributes of no sensitive part.
    #[must_use]
    pub fn together(attributes: AttrSet, sensitive: &[AttributeGuarantees<'_>]) -> Self {
        let all: AttrSet = sensitive.iter().map(|asked| asked.attr).collect();
        let guard = |asked: &AttributeGuarantees<'_>| {
            TableGuard::new(attributes.minus(all), Protected::Attribute(asked.attr), asked.guarantees.to_vec())
        };
        Self {
            parts: all.iter().map(AttrSet::one).collect(),
            guards: sensitive.iter().map(guard).collect(),
            buckets: BucketPlan::Drawn,
            strata: None,
            closed: Vec::new(),
        }
    }

    /// Whether rows may be suppressed: a guard protects an attribute from an adversary who knows another sensitive one.
    #[must_use]
    pub fn leaves_out(&self) -> bool {
        self.guards.iter().any(|guard| guard.known.meets(self.sensitive()))
    }

    /// Attributes of all sensitive parts.
    #[must_use]
    pub fn sensitive(&self) -> AttrSet {
        self.parts.iter().fold(AttrSet::EMPTY, |all, part| all.union(*part))
    }

    /// The attributes that the guards protect; others of the sensitive parts stand beside them.
    #[must_use]
    pub fn protects(&self) -> AttrSet {
        self.guards.iter().fold(AttrSet::EMPTY, |all, guard| all.union(guard.protects.attributes()))
    }

    /// The sensitive attribute and its guarantees, if one guard protects one attribute.
    #[must_use]
    pub fn single(&self) -> Option<(Attr, &[Guarantee])> {
        match &self.guards[..] {
            [TableGuard { protects: Protected::Attribute(attr), guarantees, .. }] => Some((*attr, guarantees)),
            _ => None,
        }
    }

    /// The attribute that the first guard protects by itself.
    pub(super) fn protected(&self) -> Option<Attr> {
        match self.guards.first()?.protects {
            Protected::Attribute(attr) => Some(attr),
            Protected::Joint(_) | Protected::Rows => None,
        }
    }

    /// The buckets, if the plan decides their sizes.
    #[must_use]
    pub fn planned(&self) -> Option<&PlannedBuckets> {
        match &self.buckets {
            BucketPlan::Sized(planned) => Some(planned),
            BucketPlan::Drawn | BucketPlan::Persistent(_) => None,
        }
    }

    /// Name of the random stream that deals rows to buckets.
    pub(super) fn label(&self) -> String {
        let numbers: Vec<String> = self.protects().iter().map(|attr| attr.0.to_string()).collect();
        format!("assign/{}", numbers.join("+"))
    }

    /// Protected attributes with their diversity.
    fn diversities(&self) -> Vec<AttributeDiversity> {
        let diversity = |guarantee: &Guarantee| match guarantee {
            Guarantee::LDiversity { l } => Some(*l),
            _ => None,
        };
        let of_guard = |guard: &TableGuard| {
            let attr = guard.protects.attributes().iter().next()?;
            Some(AttributeDiversity { attr, l: guard.guarantees.iter().filter_map(diversity).max()? })
        };
        self.guards.iter().filter_map(of_guard).collect()
    }

    /// Draws the bucket of each row.
    ///
    /// Streams are named by attributes, not by tables: a plan draws buckets before tables have names.
    pub(super) fn draw(
        &self,
        table: &Table,
        streams: &RandomStreams,
        control: &Control,
    ) -> Result<BucketAssignment, Cancelled> {
        debug_assert!(!matches!(self.buckets, BucketPlan::Persistent(_)), "those of a night are not drawn here");
        let mut stream = streams.stream(&self.label());
        let rows = DrawnRows { table, whole: table, values: SensitiveCodes::new(table, self.protects(), control)? };
        if let Some(planned) = self.planned() {
            return planned.draw(&rows.values, self.strata.as_deref(), &mut stream, control);
        }
        let Some(strata) = &self.strata else { return self.draw_from(rows, &mut stream, control) };
        let guarantees = || self.guards.iter().flat_map(|guard| &guard.guarantees);
        let compares = guarantees().any(|guarantee| guarantee.compares());
        // pools may be parts of the strata that distances compare with
        let constant = self.guards.first().map(|guard| guard.constant).unwrap_or_default();
        let references = guarantees()
            .any(|guarantee| !guarantee.reference().is_table())
            .then(|| Strata::new(table, constant))
            .map(|strata| (strata.split(), strata));
        let mut all = BucketAssignment { bucket_of: vec![BucketAssignment::NOWHERE; table.rows()], buckets: 0 };
        for (at, stratum) in (0..).zip(strata.split().iter()) {
            control.check()?;
            if self.closed.binary_search(&at).is_ok() {
                stratum.iter().for_each(|&row| all.bucket_of[row as usize] = all.buckets);
                all.buckets += 1;
                continue;
            }
            let compared = match (&references, stratum.first()) {
                (Some((groups, strata)), Some(&row)) => {
                    ComparedRows::Stratum(groups.group(strata.of_row()[row as usize] as usize))
                }
                _ if compares => ComparedRows::All,
                _ => ComparedRows::None,
            };
            let part = match self.guards.len() {
                1 => None,
                _ => Some(table.restricted(self.protects(), stratum)),
            };
            let of_stratum = DrawnRows {
                table: part.as_ref().unwrap_or(table),
                whole: table,
                values: rows.values.of_rows(stratum, compared),
            };
            let drawn = self.draw_from(of_stratum, &mut stream, control)?;
            for (&row, bucket) in stratum.iter().zip(drawn.bucket_of) {
                if bucket != BucketAssignment::NOWHERE {
                    all.bucket_of[row as usize] = all.buckets + bucket;
                }
            }
            all.buckets += drawn.buckets;
        }
        Ok(all)
    }

    /// Draws the bucket of each row of a table, or of one of its strata.
    fn draw_from(
        &self,
        rows: DrawnRows<'_>,
        stream: &mut RandomStream,
        control: &Control,
    ) -> Result<BucketAssignment, Cancelled> {
        let DrawnRows { table, whole, values } = rows;
        if self.leaves_out() {
            return several(table, &self.diversities(), stream, control);
        }
        if self.parts.len() > 1 {
            // each of several sensitive parts protects one attribute, by construction
            let guarantees: Vec<AttributeGuarantees<'_>> = self
                .guards
                .iter()
                .filter_map(|guard| {
                    let attr = guard.protects.attributes().iter().next()?;
                    Some(AttributeGuarantees { attr, guarantees: &guard.guarantees })
                })
                .collect();
            return assign_tied(table, whole, &guarantees, stream, control);
        }
        let guarantees: Vec<Guarantee> = self.guards.iter().flat_map(|guard| guard.guarantees.clone()).collect();
        match capped(&values, &guarantees, stream, control)? {
            Some(assigned) => Ok(assigned),
            None => assign(values, &guarantees, stream, control),
        }
    }
}

/// The rows from which buckets are drawn.
struct DrawnRows<'a> {
    /// The protected columns, where several attributes are protected.
    table: &'a Table,
    /// The whole table, with which distances compare.
    whole: &'a Table,
    /// The protected values.
    values: SensitiveCodes<'a>,
}

/// A generalized table: classes of rows with equal quasi-identifier cells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Generalized {
    /// Attributes whose cells the rows of a class share.
    pub quasi_identifiers: AttrSet,
    /// Form of the shared cells, other than those of `sets`.
    pub cells: CellKind,
    /// Attributes whose cells are sets of values.
    pub sets: AttrSet,
    /// How the partition halves a class.
    pub split: MedianSplit,
    /// Smallest number of rows of a class; `None` without k-anonymity.
    pub k: Option<u64>,
    /// Number of rows of the table.
    pub rows: u64,
    /// Guards that every class keeps.
    pub keeps: Vec<TableGuard>,
    /// Whether the guards hold next to any other table: one attribute alone is exact.
    pub guarding: bool,
    /// The sets of rows in which classes are made; `None` for the whole table.
    pub strata: Option<Arc<Strata>>,
}

impl Generalized {
    /// The rule of k-anonymity, enforced by the table at `index` (from 0).
    pub(super) fn anonymity(&self, index: usize) -> Option<EnforcedRule> {
        Some(EnforcedRule {
            pointer: Some("/method".to_owned()),
            origin: RuleOrigin::Submitted,
            because: None,
            known: self.quasi_identifiers,
            protects: Protected::Rows,
            guarantee: Guarantee::KAnonymity { k: self.k? },
            enforced_by: EnforcedBy::Table(TableName::at(index)),
        })
    }

    /// Fault of a table with fewer rows than one class needs.
    fn too_few_rows(&self) -> Option<Fault> {
        let k = self.k.filter(|k| self.rows < *k)?;
        let detail = format!("the table has {} rows, fewer than a class of {k}", self.rows);
        let fault = Fault::new("/method", Kind::RuleIneligible, detail);
        Some(fault.with("requested", k.to_string()).with("largest_l", self.rows))
    }
}

impl From<Option<Bucketized>> for TableDesign {
    fn from(bucketized: Option<Bucketized>) -> Self {
        bucketized.map_or(Self::Plain, Self::Bucketized)
    }
}

impl DesignedTable {
    /// A table of `attributes`, published as `design` says.
    pub fn new(attributes: AttrSet, design: impl Into<TableDesign>) -> Self {
        Self { attributes, design: design.into() }
    }

    /// A table of exact tuples.
    #[must_use]
    pub const fn plain(attributes: AttrSet) -> Self {
        Self { attributes, design: TableDesign::Plain }
    }

    /// Whether the table holds exact tuples without a guard.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        matches!(self.design, TableDesign::Plain)
    }

    /// The bucketized design; `None` for any other, sliced tables included.
    #[must_use]
    pub const fn bucketized(&self) -> Option<&Bucketized> {
        let TableDesign::Bucketized(bucketized) = &self.design else { return None };
        Some(bucketized)
    }

    /// The generalized design; `None` for any other.
    #[must_use]
    pub const fn generalized(&self) -> Option<&Generalized> {
        let TableDesign::Generalized(generalized) = &self.design else { return None };
        Some(generalized)
    }

    /// The design of a sequential release; `None` for any other.
    #[must_use]
    pub fn sequential(&self) -> Option<&SequentialDesign> {
        let TableDesign::Sequential(sequential) = &self.design else { return None };
        Some(sequential)
    }

    /// The design of a table of a decomposition; `None` for any other.
    #[must_use]
    pub const fn decomposed(&self) -> Option<&DecomposedTable> {
        let TableDesign::Decomposed(decomposed) = &self.design else { return None };
        Some(decomposed)
    }

    /// Whether the table keeps its guarantees only while no other table shares an attribute.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        match &self.design {
            TableDesign::Plain | TableDesign::Bucketized(_) => false,
            TableDesign::Sliced(sliced) => sliced.guards.is_empty(),
            TableDesign::Generalized(generalized) => !generalized.guarding,
            TableDesign::Sequential(_) | TableDesign::Decomposed(_) => true,
        }
    }

    /// Guards that the table keeps in every bucket or class.
    #[must_use]
    pub fn guards(&self) -> &[TableGuard] {
        match &self.design {
            TableDesign::Plain | TableDesign::Sequential(_) | TableDesign::Decomposed(_) => &[],
            TableDesign::Bucketized(bucketized) => &bucketized.guards,
            TableDesign::Sliced(sliced) => &sliced.guards,
            TableDesign::Generalized(generalized) => &generalized.keeps,
        }
    }

    /// The table as the check of Guardian Normal Form sees it.
    #[must_use]
    pub fn schema(&self) -> TableSchema {
        let guards =
            self.guards().iter().flat_map(|&TableGuard { known, protects, ref guarantees, constant, closes }| {
                guarantees.iter().map(move |&guarantee| Guard { known, protects, guarantee, constant, closes })
            });
        TableSchema { attributes: self.attributes, guards: guards.collect() }
    }

    /// Kind of the published table.
    #[must_use]
    pub fn kind(&self) -> TableKind {
        match &self.design {
            TableDesign::Plain => TableKind::Marginal,
            TableDesign::Bucketized(_) => TableKind::Bucketized,
            TableDesign::Sliced(sliced) if sliced.guards.is_empty() => TableKind::Sliced,
            TableDesign::Sliced(sliced) => kind_of_guarding(sliced.columns.iter().copied(), &sliced.guards),
            TableDesign::Generalized(_) => TableKind::Generalized,
            TableDesign::Sequential(sequential) if sequential.is_generalized() => TableKind::Generalized,
            TableDesign::Sequential(_) => TableKind::Marginal,
            TableDesign::Decomposed(decomposed) => match decomposed.role {
                DecompositionRole::Buckets => TableKind::Decomposed,
                DecompositionRole::Joint => TableKind::Sensitive,
            },
        }
    }

    /// Sensitive attributes of the table; `None` if it separates none from the others.
    #[must_use]
    pub fn sensitive(&self) -> Option<AttrSet> {
        match &self.design {
            TableDesign::Plain | TableDesign::Sequential(_) => None,
            TableDesign::Bucketized(bucketized) => Some(bucketized.sensitive()),
            TableDesign::Sliced(sliced) => Some(AttrSet::one(sliced.plan.sensitive)),
            TableDesign::Generalized(generalized) => Some(self.attributes.minus(generalized.quasi_identifiers)),
            TableDesign::Decomposed(decomposed) => {
                (decomposed.role == DecompositionRole::Buckets).then(|| decomposed.sensitive())
            }
        }
    }

    /// Number of passes over the rows when the table is made, for the progress of a job.
    #[must_use]
    pub fn passes(&self) -> u64 {
        match &self.design {
            TableDesign::Plain | TableDesign::Sequential(_) => 1,
            // rows are assigned, and then each part is made
            TableDesign::Bucketized(bucketized) => 2 + bucketized.parts.len() as u64,
            TableDesign::Sliced(sliced) => 1 + sliced.columns.len() as u64,
            TableDesign::Generalized(_) => 2,
            TableDesign::Decomposed(decomposed) => match decomposed.role {
                DecompositionRole::Buckets => 1 + decomposed.l.len() as u64,
                DecompositionRole::Joint => 1,
            },
        }
    }

    /// Faults of the table, then those of buckets that could not be drawn.
    pub(super) fn faults(&self) -> Vec<Fault> {
        match &self.design {
            TableDesign::Plain | TableDesign::Sliced(_) | TableDesign::Sequential(_) => Vec::new(),
            TableDesign::Bucketized(bucketized) => {
                bucketized.planned().map_or_else(Vec::new, |planned| planned.faults.clone())
            }
            TableDesign::Generalized(generalized) => generalized.too_few_rows().into_iter().collect(),
            TableDesign::Decomposed(decomposed) => decomposed.faults.clone(),
        }
    }
}
