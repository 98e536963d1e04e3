//! Functional dependencies as documents declare them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::attributes::DatasetColumns;
use super::document::{Array, Document, Given, Member, MemberContext, Names, Reason, SchemaMap, document};
use super::reader::FaultList;
use crate::problem::{Fault, Kind};

/// The most dependencies of a document.
const MAX_DEPENDENCIES: usize = 1_000;

document! {
    /// Attributes that determine others.
    DependencyMembers as "StatedDependency" {
        needed determinant: Names<1>,
        needed dependent: Names<1>,
    }
}

document! {
    /// A dependency that the adversary is assumed not to know, and why. With two empty lists: why the data is not searched.
    AssumedUnknownMembers as "AssumedUnknown" {
        needed determinant: Names,
        needed dependent: Names,
        required reason: Reason,
    }
}

/// A dependency over columns of the dataset.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::spec) struct DraftDependency {
    pub(in crate::spec) determinant: BTreeSet<usize>,
    pub(in crate::spec) dependent: BTreeSet<usize>,
    /// Why it is assumed unknown, where it is.
    pub(in crate::spec) reason: Option<String>,
    /// Where it stands.
    pub(in crate::spec) pointer: String,
}

/// A list of dependencies, each with a reason where `REASONED`. Sorted, each once.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct DependencyList<const REASONED: bool>(pub(in crate::spec) Vec<DraftDependency>);

impl<const REASONED: bool> Member for DependencyList<REASONED> {
    fn allowed() -> String {
        format!("an array of at most {MAX_DEPENDENCIES} dependencies")
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let mut read = match REASONED {
            true => read_list::<AssumedUnknownMembers>(value, context)?,
            false => read_list::<DependencyMembers>(value, context)?,
        };
        read.sort();
        read.dedup_by(|a, b| a.determinant == b.determinant && a.dependent == b.dependent);
        Some(Self(read))
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        self.0.iter().map(|dependency| dependency.write(columns)).collect()
    }

    fn schema() -> Value {
        match REASONED {
            true => Array::<AssumedUnknownMembers, 0, MAX_DEPENDENCIES>::schema(),
            false => Array::<DependencyMembers, 0, MAX_DEPENDENCIES>::schema(),
        }
    }

    fn define(schemas: &mut SchemaMap) {
        match REASONED {
            true => AssumedUnknownMembers::define(schemas),
            false => DependencyMembers::define(schemas),
        }
    }
}

/// A document with two sides.
trait DependencyDocument: Document {
    /// Whether both sides may be empty.
    const MAY_BE_EMPTY: bool;

    fn sides(&self) -> [NamedSide<'_>; 2];

    fn reason(&self) -> Option<String>;
}

/// The names on one side of a dependency.
struct NamedSide<'a> {
    columns: &'a BTreeSet<usize>,
    /// Whether there is no name, and no fault that says so already.
    is_empty: bool,
}

impl<'a, const MIN: usize> From<&'a Given<Names<MIN>>> for NamedSide<'a> {
    fn from(side: &'a Given<Names<MIN>>) -> Self {
        let is_empty = side.value.as_ref().is_none_or(|names| names.is_empty) && !side.is_faulty;
        Self { columns: side.columns(), is_empty }
    }
}

impl DependencyDocument for DependencyMembers {
    const MAY_BE_EMPTY: bool = false;

    fn sides(&self) -> [NamedSide<'_>; 2] {
        [NamedSide::from(&self.determinant), NamedSide::from(&self.dependent)]
    }

    fn reason(&self) -> Option<String> {
        None
    }
}

impl DependencyDocument for AssumedUnknownMembers {
    const MAY_BE_EMPTY: bool = true;

    fn sides(&self) -> [NamedSide<'_>; 2] {
        [NamedSide::from(&self.determinant), NamedSide::from(&self.dependent)]
    }

    fn reason(&self) -> Option<String> {
        self.reason.value.clone().map(|reason| reason.0)
    }
}

fn read_list<D: DependencyDocument>(
    value: &Value,
    context: &mut MemberContext<'_, '_>,
) -> Option<Vec<DraftDependency>> {
    let list = Array::<D, 0, MAX_DEPENDENCIES>::read(value, context)?;
    Some(list.items.iter().filter_map(|item| checked(item, context.faults)).collect())
}

/// A dependency without faults: both sides have attributes, and none in common; or neither has any, where that means all.
fn checked<D: DependencyDocument>(item: &Given<D>, faults: &mut FaultList) -> Option<DraftDependency> {
    let document = item.value.as_ref()?;
    let before = faults.len();
    let sides = document.sides();
    let means_all = D::MAY_BE_EMPTY && sides.iter().all(|side| side.is_empty);
    for (name, side) in ["determinant", "dependent"].into_iter().zip(&sides) {
        if side.is_empty && !means_all {
            faults.range(document.at(name), "an array of at least one name");
        }
    }
    let [determinant, dependent] = sides.map(|side| side.columns.clone());
    if !determinant.is_disjoint(&dependent) {
        let detail = "an attribute stands on both sides of the dependency";
        faults.push(Fault::new(document.at("dependent"), Kind::BadColumns, detail));
    }
    let is_sound = !item.is_faulty && faults.len() == before;
    let pointer = document.pointer().to_owned();
    is_sound.then(|| DraftDependency { determinant, dependent, reason: document.reason(), pointer })
}

impl DraftDependency {
    /// Whether it names no attribute, and so stands for all dependencies of the data.
    pub(in crate::spec) fn means_all(&self) -> bool {
        self.determinant.is_empty() && self.dependent.is_empty()
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        let names = |side: &BTreeSet<usize>| Names::<1>::from(side.clone()).write(columns);
        let mut written = json!({"determinant": names(&self.determinant), "dependent": names(&self.dependent)});
        if let Some(reason) = &self.reason {
            written["reason"] = reason.as_str().into();
        }
        written
    }
}
