//! The two sides of a method that protects one attribute: what may be known, and what is sensitive.

use std::collections::BTreeSet;

use super::attributes::{AttributeOptions, DatasetColumns};
use super::reader::{FaultList, ObjectReader};
use super::rules::{NAMES, columns_named};
use crate::problem::{Fault, Kind};

/// The columns on both sides; what could not be read is `None`.
pub(in crate::spec) struct KnownAndSensitive {
    pub(in crate::spec) known: BTreeSet<usize>,
    /// Columns that may have been meant where a fault hides what was.
    pub(in crate::spec) guessed: BTreeSet<usize>,
    pub(in crate::spec) sensitive: Option<usize>,
}

impl KnownAndSensitive {
    /// Reads `sensitive` and `quasi_identifiers`; without the latter, all other attributes that are marked with `publish` are known.
    pub(in crate::spec) fn read(
        members: &mut ObjectReader<'_>,
        columns: &DatasetColumns<'_>,
        stated: &[AttributeOptions],
        faults: &mut FaultList,
    ) -> Self {
        let named = members.take("sensitive").and_then(|value| value.as_str());
        if named.is_none() {
            faults.range(members.at("sensitive"), "the name of the sensitive attribute");
        }
        let sensitive = named.and_then(|name| columns.resolve(name, &members.at("sensitive"), faults));
        let pointer = members.at("quasi_identifiers");
        let before = faults.len();
        let list = members.list("quasi_identifiers", NAMES, faults);
        let hidden = faults.len() > before || named.is_none();
        let guessed = if hidden { (0..columns.facts.len()).collect() } else { BTreeSet::new() };
        let known = match list {
            Some(names) => columns_named(names, &pointer, columns, faults),
            None => {
                let published = stated.iter().enumerate().filter(|(_, attribute)| attribute.publish && !attribute.drop);
                published.map(|(column, _)| column).filter(|column| sensitive != Some(*column)).collect()
            }
        };
        if known.is_empty() && faults.len() == before {
            let detail = "there is no quasi-identifier: name some, or mark attributes with publish";
            faults.push(Fault::new(pointer.as_str(), Kind::BadColumns, detail));
        }
        if let Some(column) = sensitive.filter(|column| known.contains(column)) {
            let detail =
                format!("{} is the sensitive attribute and cannot be a quasi-identifier", columns.name(column));
            faults.push(Fault::new(pointer, Kind::BadColumns, detail));
        }
        Self { known, guessed, sensitive }
    }
}
