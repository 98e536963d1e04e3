//! The method `generalize`.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

use super::common::CommonMembers;
use super::types::{CellKind, ClassSplit, GeneralizeSpec, MAX_SET_VALUES};
use crate::microdata::{Attr, AttrSet, AttributeType};
use crate::problem::{Fault, Kind};
use crate::publication::{Guarantee, Protected, SubmittedRule};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns, published_columns};
use crate::spec::grammar::document::{Array, Document, Member, MemberContext, Names, SchemaMap, document, reference};
use crate::spec::grammar::general::GeneralMembers;
use crate::spec::grammar::guarantee::{GuaranteeMembers, ThresholdsByDigest};
use crate::spec::grammar::reader::{FaultList, child};
use crate::spec::grammar::utility::InternalUtility;

/// The guarantees that classes can keep.
const CLASS_GUARANTEES: &[&str] = &[
    "k_anonymity",
    "l_diversity",
    "distinct_l_diversity",
    "entropy_l_diversity",
    "recursive_l_diversity",
    "alpha_k",
    "t_closeness",
];

document! {
    /// One table of one part: rows in classes that share the cells of their quasi-identifiers, each class satisfying every guarantee.
    /// Sensitive attributes stay exact. With one of them the table is guarding; with several, or with k-anonymity alone, it is
    /// exclusive, and no other table of the same people may share an attribute with it.
    GeneralizeMembers as "GeneralizeMethod" tagged "generalize" {
        /// What stays exact, and is protected by every guarantee but k-anonymity. May be empty where k-anonymity is all that is asked.
        optional sensitive: Names,
        /// What may be known, and is generalized. When empty or not given, every attribute that is marked with `publish`. No other
        /// attribute than these and the sensitive ones is published.
        optional quasi_identifiers: Names,
        /// What every class satisfies: `k_anonymity`, `l_diversity`, `distinct_l_diversity`, `entropy_l_diversity`,
        /// `recursive_l_diversity`, `alpha_k` and `t_closeness`, each of them once, k-anonymity with one k.
        needed guarantees: Array<ClassGuarantee, 1> => "an array of guarantees",
        optional split: ClassSplit = ClassSplit::Strict,
        optional cells: CellKind = CellKind::ByType,
        include common: CommonMembers,
    }
}

/// A guarantee that classes can satisfy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::spec) struct ClassGuarantee(Guarantee);

impl Member for ClassGuarantee {
    fn allowed() -> String {
        "a guarantee".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        GuaranteeMembers::read_among(CLASS_GUARANTEES, value, &mut ThresholdsByDigest::new(), context).map(Self)
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        json!(self.0)
    }

    fn schema() -> Value {
        reference("ClassGuarantee")
    }

    fn define(schemas: &mut SchemaMap) {
        let about = "What every class satisfies.";
        GuaranteeMembers::define_among("ClassGuarantee", about, CLASS_GUARANTEES, schemas);
    }
}

impl ClassGuarantee {
    /// Whether a class cannot be asked for both guarantees.
    fn repeats(self, other: Self) -> bool {
        match (self.0, other.0) {
            (Guarantee::KAnonymity { .. }, Guarantee::KAnonymity { .. }) => true,
            _ => self == other,
        }
    }
}

/// Generalization over columns of the dataset.
pub(in crate::spec) struct DraftGeneralize {
    /// The document, with its quasi-identifiers filled in and each guarantee once.
    pub(in crate::spec) members: GeneralizeMembers,
    /// Columns that may have been meant where a fault hides which.
    pub(in crate::spec) guessed: BTreeSet<usize>,
}

pub(in crate::spec) fn read(
    mut members: GeneralizeMembers,
    columns: &DatasetColumns<'_>,
    attributes: &[AttributeOptions],
    faults: &mut FaultList,
) -> DraftGeneralize {
    let is_hidden = members.sensitive.is_faulty || members.quasi_identifiers.is_faulty;
    let guessed = if is_hidden { columns.all() } else { BTreeSet::new() };
    check_quasi_identifiers(&mut members, columns, attributes, faults);
    check_guarantees(&mut members, &guessed, faults);
    DraftGeneralize { members, guessed }
}

/// Fills in the quasi-identifiers that the document does not name.
fn check_quasi_identifiers(
    members: &mut GeneralizeMembers,
    columns: &DatasetColumns<'_>,
    attributes: &[AttributeOptions],
    faults: &mut FaultList,
) {
    let pointer = members.at("quasi_identifiers");
    let is_faulty = members.sensitive.is_faulty || members.quasi_identifiers.is_faulty;
    let sensitive = members.sensitive.columns();
    let known: BTreeSet<usize> = match members.quasi_identifiers.value.take() {
        Some(names) if !names.is_empty => names.columns,
        _ => published_columns(attributes).filter(|column| !sensitive.contains(column)).collect(),
    };
    if known.is_empty() && !is_faulty {
        let detail = "there is no quasi-identifier: name some, or mark attributes with publish";
        faults.push(Fault::new(pointer.as_str(), Kind::BadColumns, detail));
    }
    for column in known.intersection(sensitive) {
        let detail = format!("{} is sensitive and cannot be a quasi-identifier", columns.name(*column));
        faults.push(Fault::new(pointer.as_str(), Kind::BadColumns, detail));
    }
    members.quasi_identifiers = Names::from(known).into();
    members.sensitive = Names::from(members.sensitive.columns().clone()).into();
}

/// There is a guarantee, each is asked for once, and attributes are named for those that protect attributes.
fn check_guarantees(members: &mut GeneralizeMembers, guessed: &BTreeSet<usize>, faults: &mut FaultList) {
    let pointer = members.at("guarantees");
    let items = members.guarantees.value.take().map(|list| list.items).unwrap_or_default();
    if items.is_empty() && !members.guarantees.is_faulty {
        let detail = "classes that keep nothing protect nobody: ask for a guarantee, such as k_anonymity";
        faults.push(Fault::new(pointer.as_str(), Kind::VacuousGuarantee, detail));
    }
    let mut guarantees: Vec<ClassGuarantee> = Vec::new();
    for (index, guarantee) in items.into_iter().enumerate().filter_map(|(index, item)| Some((index, item.value?))) {
        if guarantees.iter().any(|other| other.repeats(guarantee)) {
            faults.range(child(&pointer, &index.to_string()), "a guarantee that is not asked for already");
        } else {
            guarantees.push(guarantee);
        }
    }
    let protecting = guarantees.iter().find(|guarantee| !matches!(guarantee.0, Guarantee::KAnonymity { .. }));
    if let Some(guarantee) = protecting.filter(|_| members.sensitive.columns().is_empty() && guessed.is_empty()) {
        let allowed = format!("the names of the attributes whose values {} protects", guarantee.0.as_str());
        faults.range(members.at("sensitive"), &allowed);
    }
    members.guarantees = Array::from(guarantees).into();
}

impl DraftGeneralize {
    fn known(&self) -> &BTreeSet<usize> {
        self.members.quasi_identifiers.columns()
    }

    fn sensitive(&self) -> &BTreeSet<usize> {
        self.members.sensitive.columns()
    }

    pub(in crate::spec) fn mentioned(&self) -> BTreeSet<usize> {
        self.known().union(self.sensitive()).copied().collect()
    }

    /// Reports published attributes, and measures, that this method does not support.
    pub(in crate::spec) fn check(
        &self,
        columns: &DatasetColumns<'_>,
        attributes: &[AttributeOptions],
        used: &[usize],
        general: &GeneralMembers,
        faults: &mut FaultList,
    ) {
        self.check_nodes(columns, attributes, faults);
        let neither = |column: &&usize| !self.known().contains(column) && !self.sensitive().contains(column);
        let raw: Vec<&str> = used.iter().filter(neither).map(|column| columns.name(*column)).collect();
        if !raw.is_empty() && self.guessed.is_empty() {
            let detail = format!(
                "{} would stand beside the classes as exact values, which tell their rows from each other; make them quasi-identifiers, or drop them",
                raw.join(", ")
            );
            let fault = Fault::new("/method/quasi_identifiers", Kind::BadColumns, detail);
            faults.push(fault.with("attributes", raw));
        }
        if general.entropy() == Some(true) {
            faults.unsupported("/utility", "the entropy of the model is not stated of generalized tables");
        }
        if InternalUtility::from(&general.internal).kl {
            self.check_kl(columns, attributes, faults);
        }
    }

    /// Cells that are nodes need taxonomies: of every quasi-identifier whose values are no numbers, and of one at least. Numbers without
    /// one are published as intervals.
    fn check_nodes(&self, columns: &DatasetColumns<'_>, attributes: &[AttributeOptions], faults: &mut FaultList) {
        if self.members.cells != CellKind::Node || self.known().is_empty() || !self.guessed.is_empty() {
            return;
        }
        let bare =
            |column: &&usize| attributes[**column].taxonomy.value.is_none() && !attributes[**column].taxonomy.is_faulty;
        if self.known().iter().all(|column| bare(&column)) {
            let detail = "cells that are nodes go by taxonomies, and no quasi-identifier has one; state one, or use interval or set";
            faults.push(Fault::new("/method/cells", Kind::BadColumns, detail));
            return;
        }
        // of a column that was not seen the type is not known
        let seen = |column: &&usize| columns.facts[**column].distinct.is_some();
        for column in self.known().difference(self.sensitive()).filter(bare).filter(seen) {
            let facts = &columns.facts[*column];
            if matches!(facts.kind, AttributeType::Text | AttributeType::Boolean) {
                let pointer = child(&child("/attributes", &facts.name), "taxonomy");
                let name = &facts.name;
                let detail = format!("cells that are nodes need a taxonomy of {name}, whose values are no numbers");
                let fault = Fault::new(pointer, Kind::ParameterRange, detail).with("attribute", name.as_str());
                faults.push(
                    fault.with("allowed", "a tree whose leaves are the values, or the name of a stored taxonomy"),
                );
            }
        }
    }

    /// What lies between the ends of an interval is known of whole numbers, dates and moments alone: of others a value that no cell names
    /// could not occur, and the divergence would be infinite.
    fn check_kl(&self, columns: &DatasetColumns<'_>, attributes: &[AttributeOptions], faults: &mut FaultList) {
        use AttributeType::{Date, Integer, Timestamp};
        let as_interval = |column: &&usize| match self.members.cells {
            CellKind::Set | CellKind::ByType => !self.is_set(**column, columns),
            CellKind::Node => attributes[**column].taxonomy.value.is_none(),
            CellKind::Interval => true,
        };
        let open = |column: &&usize| {
            let facts = &columns.facts[**column];
            facts.distinct.is_some() && !matches!(facts.kind, Integer | Date | Timestamp)
        };
        let known = self.known().difference(self.sensitive()).filter(as_interval).filter(open);
        let names: Vec<&str> = known.map(|column| columns.name(*column)).collect();
        if !names.is_empty() {
            let detail = format!(
                "kl is not defined where {} stand in intervals: which values lie in between is not known; publish sets, or ask for count_queries",
                names.join(", ")
            );
            faults.unsupported("/internal/utility", detail);
        }
    }

    /// Whether the cells of a column are sets of values.
    fn is_set(&self, column: usize, columns: &DatasetColumns<'_>) -> bool {
        let few = columns.facts[column].distinct.is_some_and(|values| values <= MAX_SET_VALUES);
        match self.members.cells {
            CellKind::Set => true,
            CellKind::ByType => is_text(column, columns) && few,
            CellKind::Interval | CellKind::Node => false,
        }
    }

    pub(in crate::spec) fn resolved(
        &self,
        columns: &DatasetColumns<'_>,
        attrs: &HashMap<usize, Attr>,
    ) -> GeneralizeSpec {
        let known = || self.known().difference(self.sensitive()).copied();
        let quasi_identifiers: AttrSet = known().map(|column| attrs[&column]).collect();
        let sets: AttrSet =
            known().filter(|&column| self.is_set(column, columns)).map(|column| attrs[&column]).collect();
        let texts = known().filter(|&column| self.members.cells == CellKind::ByType && is_text(column, columns));
        let texts: AttrSet = texts.map(|column| attrs[&column]).collect();
        // the counts of a column that overflows are not there to be judged
        let counted = self.sensitive().iter().filter(|column| !columns.facts[**column].overflow);
        let counted: Vec<Attr> = counted.map(|column| attrs[column]).collect();
        let rule = |protects: Protected, guarantee: Guarantee| SubmittedRule {
            pointer: "/method".to_owned(),
            known: quasi_identifiers,
            protects,
            guarantee,
        };
        let guarantees = self.members.guarantees.value.iter().flat_map(Array::values);
        let rules = guarantees.flat_map(|&ClassGuarantee(guarantee)| match guarantee {
            Guarantee::KAnonymity { .. } => vec![rule(Protected::Rows, guarantee)],
            _ => counted.iter().map(|&attr| rule(Protected::Attribute(attr), guarantee)).collect(),
        });
        GeneralizeSpec {
            rules: rules.collect(),
            quasi_identifiers,
            sensitive: self.sensitive().iter().map(|column| attrs[column]).collect(),
            split: self.members.split,
            cells: self.members.cells,
            sets,
            crowded: texts.minus(sets),
        }
    }
}

/// Whether the values of a column have no order that readers know.
fn is_text(column: usize, columns: &DatasetColumns<'_>) -> bool {
    matches!(columns.facts[column].kind, AttributeType::Text | AttributeType::Boolean)
}
