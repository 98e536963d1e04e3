//! Functional dependencies as documents state them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::attributes::DatasetColumns;
use super::reader::{FaultList, ObjectReader, child};
use super::rules::{NAMES, columns_named};
use crate::problem::{Fault, Kind};

/// How many dependencies a document may state.
const MAX_DEPENDENCIES: usize = 1_000;

/// A dependency over columns of the dataset.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::spec) struct DraftDependency {
    pub(in crate::spec) determinant: BTreeSet<usize>,
    pub(in crate::spec) dependent: BTreeSet<usize>,
    /// Why it is assumed unknown, where it is.
    pub(in crate::spec) reason: Option<String>,
}

/// Reads a list of dependencies, each with a reason where `reasoned`. Sorted, each once.
pub(in crate::spec) fn read(
    members: &mut ObjectReader<'_>,
    name: &'static str,
    reasoned: bool,
    columns: &DatasetColumns<'_>,
    faults: &mut FaultList,
) -> Vec<DraftDependency> {
    let list = members.list(name, "an array of dependencies", faults).unwrap_or_default();
    if list.len() > MAX_DEPENDENCIES {
        faults.range(members.at(name), "an array of at most 1000 dependencies");
        return Vec::new();
    }
    let pointer = members.at(name);
    let mut read: Vec<DraftDependency> = list
        .iter()
        .enumerate()
        .filter_map(|(index, value)| one(value, child(&pointer, &index.to_string()), reasoned, columns, faults))
        .collect();
    read.sort();
    read.dedup_by(|a, b| a.determinant == b.determinant && a.dependent == b.dependent);
    read
}

fn one(
    value: &Value,
    pointer: String,
    reasoned: bool,
    columns: &DatasetColumns<'_>,
    faults: &mut FaultList,
) -> Option<DraftDependency> {
    let mut members = ObjectReader::open(value, pointer, faults)?;
    let before = faults.len();
    let mut side = |name: &'static str, faults: &mut FaultList| {
        let (pointer, before) = (members.at(name), faults.len());
        let names = members.list(name, NAMES, faults);
        if names.is_some_and(<[Value]>::is_empty) || names.is_none() && faults.len() == before {
            faults.range(pointer.as_str(), "an array of at least one name");
        }
        columns_named(names.unwrap_or_default(), &pointer, columns, faults)
    };
    let (determinant, dependent) = (side("determinant", faults), side("dependent", faults));
    let reason = if reasoned {
        let reason = members.text("reason", REASON, faults, super::reader::is_reason);
        if reason.is_none() && members.take("reason").is_none() {
            faults.range(members.at("reason"), REASON);
        }
        reason.map(str::to_owned)
    } else {
        None
    };
    if !determinant.is_disjoint(&dependent) {
        let detail = "an attribute stands on both sides of the dependency";
        faults.push(Fault::new(members.at("dependent"), Kind::BadColumns, detail));
    }
    members.finish(faults);
    (faults.len() == before).then_some(DraftDependency { determinant, dependent, reason })
}

const REASON: &str = "a reason of 1 to 500 characters";
