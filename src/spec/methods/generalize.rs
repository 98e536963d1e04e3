//! The method `generalize`.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

use super::types::{CellKind, ClassSplit, GeneralizeSpec};
use crate::microdata::{Attr, AttrSet, AttributeType};
use crate::problem::{Fault, Kind};
use crate::publication::{Guarantee, Protected, SubmittedRule};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns};
use crate::spec::grammar::general::GeneralMembers;
use crate::spec::grammar::guarantee::guarantee_among;
use crate::spec::grammar::reader::{FaultList, ObjectReader, child};
use crate::spec::grammar::rules::{NAMES, columns_named};

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

/// What was read; what could not be is left out.
pub(in crate::spec) struct DraftGeneralize {
    pub(in crate::spec) known: BTreeSet<usize>,
    /// Columns that may have been meant where a fault hides what was.
    pub(in crate::spec) guessed: BTreeSet<usize>,
    pub(in crate::spec) sensitive: BTreeSet<usize>,
    pub(in crate::spec) guarantees: Vec<Guarantee>,
    pub(in crate::spec) split: ClassSplit,
    pub(in crate::spec) cells: CellKind,
}

pub(in crate::spec) fn read(
    mut members: ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    stated: &[AttributeOptions],
    faults: &mut FaultList,
) -> DraftGeneralize {
    let before = faults.len();
    let sensitive = members.list("sensitive", NAMES, faults).unwrap_or_default();
    let sensitive = columns_named(sensitive, &members.at("sensitive"), columns, faults);
    let named = members.list("quasi_identifiers", NAMES, faults).unwrap_or_default();
    let pointer = members.at("quasi_identifiers");
    let known = match named {
        [] => {
            let published = stated.iter().enumerate().filter(|(_, attribute)| attribute.publish && !attribute.drop);
            published.map(|(column, _)| column).filter(|column| !sensitive.contains(column)).collect()
        }
        names => columns_named(names, &pointer, columns, faults),
    };
    let guessed = if faults.len() > before { (0..columns.facts.len()).collect() } else { BTreeSet::new() };
    if known.is_empty() && faults.len() == before {
        let detail = "there is no quasi-identifier: name some, or mark attributes with publish";
        faults.push(Fault::new(pointer.as_str(), Kind::BadColumns, detail));
    }
    for column in known.intersection(&sensitive) {
        let detail = format!("{} is sensitive and cannot be a quasi-identifier", columns.name(*column));
        faults.push(Fault::new(pointer.as_str(), Kind::BadColumns, detail));
    }
    let guarantees = guarantees(&mut members, faults);
    let protecting = guarantees.iter().find(|guarantee| !matches!(guarantee, Guarantee::KAnonymity { .. }));
    if let Some(guarantee) = protecting.filter(|_| sensitive.is_empty() && guessed.is_empty()) {
        let allowed = format!("the names of the attributes whose values {} protects", guarantee.as_str());
        faults.range(members.at("sensitive"), &allowed);
    }
    let split = match members.choice("split", &["strict", "relaxed"], faults) {
        Some("relaxed") => ClassSplit::Relaxed,
        _ => ClassSplit::Strict,
    };
    let cells = match members.choice("cells", &["interval", "node", "set"], faults) {
        Some("set") => CellKind::Set,
        Some("node") => CellKind::Node,
        _ => CellKind::Interval,
    };
    members.finish(faults);
    DraftGeneralize { known, guessed, sensitive, guarantees, split, cells }
}

fn guarantees(members: &mut ObjectReader<'_>, faults: &mut FaultList) -> Vec<Guarantee> {
    let pointer = members.at("guarantees");
    let before = faults.len();
    let list = members.list("guarantees", "an array of guarantees", faults).unwrap_or_default();
    if list.is_empty() && faults.len() == before {
        let detail = "classes that keep nothing protect nobody: ask for a guarantee, such as k_anonymity";
        faults.push(Fault::new(pointer.as_str(), Kind::VacuousGuarantee, detail));
    }
    let mut read: Vec<Guarantee> = Vec::new();
    for (at, value) in list.iter().enumerate() {
        let pointer = child(&pointer, &at.to_string());
        let Some(guarantee) = guarantee_among(CLASS_GUARANTEES, value, &pointer, faults) else { continue };
        let again = |other: &Guarantee| match (other, guarantee) {
            (Guarantee::KAnonymity { .. }, Guarantee::KAnonymity { .. }) => true,
            _ => *other == guarantee,
        };
        if read.iter().any(again) {
            faults.range(pointer, "a guarantee that is not asked for already");
        } else {
            read.push(guarantee);
        }
    }
    read
}

impl DraftGeneralize {
    pub(in crate::spec) fn mentioned(&self) -> BTreeSet<usize> {
        self.known.union(&self.sensitive).copied().collect()
    }

    /// What this method does not do with the attributes that are published or with what is asked beside it.
    pub(in crate::spec) fn check(
        &self,
        columns: &DatasetColumns<'_>,
        stated: &[AttributeOptions],
        used: &[usize],
        general: &GeneralMembers,
        faults: &mut FaultList,
    ) {
        self.check_nodes(columns, stated, faults);
        let neither = |column: &&usize| !self.known.contains(column) && !self.sensitive.contains(column);
        let raw: Vec<&str> = used.iter().filter(neither).map(|column| columns.name(*column)).collect();
        if !raw.is_empty() && self.guessed.is_empty() {
            let detail = format!(
                "{} would stand beside the classes as exact values, which tell their rows from each other; make them quasi-identifiers, or drop them",
                raw.join(", ")
            );
            let fault = Fault::new("/method/quasi_identifiers", Kind::BadColumns, detail);
            faults.push(fault.with("attributes", raw));
        }
        if general.entropy == Some(true) {
            faults.unsupported("/utility", "the entropy of the model is not stated of generalized tables");
        }
        if general.internal.kl {
            self.check_kl(columns, stated, faults);
        }
    }

    /// Cells that are nodes need taxonomies: of every quasi-identifier whose values are no numbers, and of one at least. Numbers without
    /// one are published as intervals.
    fn check_nodes(&self, columns: &DatasetColumns<'_>, stated: &[AttributeOptions], faults: &mut FaultList) {
        if self.cells != CellKind::Node || self.known.is_empty() || !self.guessed.is_empty() {
            return;
        }
        let bare = |column: &&usize| stated[**column].taxonomy.is_none() && !stated[**column].is_misread;
        if self.known.iter().all(|column| bare(&column)) {
            let detail = "cells that are nodes go by taxonomies, and no quasi-identifier has one; state one, or use interval or set";
            faults.push(Fault::new("/method/cells", Kind::BadColumns, detail));
            return;
        }
        // of a column that was not seen the type is not known
        let seen = |column: &&usize| columns.facts[**column].distinct.is_some();
        for column in self.known.difference(&self.sensitive).filter(bare).filter(seen) {
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
    fn check_kl(&self, columns: &DatasetColumns<'_>, stated: &[AttributeOptions], faults: &mut FaultList) {
        use AttributeType::{Date, Integer, Timestamp};
        let as_interval = |column: &&usize| match self.cells {
            CellKind::Set => false,
            CellKind::Node => stated[**column].taxonomy.is_none(),
            CellKind::Interval => true,
        };
        let open = |column: &&usize| {
            let facts = &columns.facts[**column];
            facts.distinct.is_some() && !matches!(facts.kind, Integer | Date | Timestamp)
        };
        let known = self.known.difference(&self.sensitive).filter(as_interval).filter(open);
        let names: Vec<&str> = known.map(|column| columns.name(*column)).collect();
        if !names.is_empty() {
            let detail = format!(
                "kl is not defined where {} stand in intervals: which values lie in between is not known; publish sets, or ask for count_queries",
                names.join(", ")
            );
            faults.unsupported("/internal/utility", detail);
        }
    }

    pub(in crate::spec) fn resolved(
        &self,
        columns: &DatasetColumns<'_>,
        attrs: &HashMap<usize, Attr>,
    ) -> GeneralizeSpec {
        let quasi_identifiers: AttrSet = self.known.difference(&self.sensitive).map(|column| attrs[column]).collect();
        // the counts of a column that overflows are not there to be judged
        let counted = self.sensitive.iter().filter(|column| !columns.facts[**column].overflow);
        let counted: Vec<Attr> = counted.map(|column| attrs[column]).collect();
        let rule = |protects: Protected, guarantee: Guarantee| SubmittedRule {
            pointer: "/method".to_owned(),
            known: quasi_identifiers,
            protects,
            guarantee,
        };
        let rules = self.guarantees.iter().flat_map(|&guarantee| match guarantee {
            Guarantee::KAnonymity { .. } => vec![rule(Protected::Rows, guarantee)],
            _ => counted.iter().map(|&attr| rule(Protected::Attribute(attr), guarantee)).collect(),
        });
        GeneralizeSpec {
            rules: rules.collect(),
            quasi_identifiers,
            sensitive: self.sensitive.iter().map(|column| attrs[column]).collect(),
            split: self.split,
            cells: self.cells,
        }
    }

    pub(in crate::spec) fn normal(&self, columns: &DatasetColumns<'_>) -> Value {
        let names = |set: &BTreeSet<usize>| -> Vec<&str> { set.iter().map(|column| columns.name(*column)).collect() };
        json!({
            "type": "generalize",
            "quasi_identifiers": names(&self.known),
            "sensitive": names(&self.sensitive),
            "guarantees": self.guarantees,
            "split": self.split,
            "cells": self.cells,
        })
    }
}
