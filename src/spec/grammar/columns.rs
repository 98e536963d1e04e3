//! The columns that a document speaks of.

use std::collections::{BTreeSet, HashMap};

use super::reader::FaultList;
use super::schema::{ColumnFacts, DatasetSchema, DocumentSource};
use crate::problem::{Fault, Kind, nearest_names};

/// How many names are offered for an unknown one.
const NEAREST_NAMES: usize = 3;

/// How many columns an unknown name is compared with.
const MAX_COMPARED: usize = 512;

/// What has the columns.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(in crate::spec) enum ColumnOwner {
    #[default]
    Dataset,
    /// A release, in published names.
    Release,
    /// Tables that are verified.
    Tables,
}

/// The columns that a document can name; the default has none, for documents that name none.
#[derive(Default)]
pub(in crate::spec) struct DatasetColumns<'a> {
    pub(in crate::spec) facts: &'a [ColumnFacts],
    pub(in crate::spec) owner: ColumnOwner,
    pub(in crate::spec) by_name: HashMap<&'a str, usize>,
    /// The most rows of one unit of protection.
    pub(in crate::spec) per_unit: u64,
    /// Where the document comes from.
    pub(in crate::spec) origin: DocumentSource,
}

impl<'a> DatasetColumns<'a> {
    pub(in crate::spec) fn from_schema(schema: &DatasetSchema<'a>) -> Self {
        Self { per_unit: schema.unit.rows(), ..Self::new(schema.columns, ColumnOwner::Dataset) }
    }

    /// Columns of which each row is a unit of protection.
    pub(in crate::spec) fn new(facts: &'a [ColumnFacts], owner: ColumnOwner) -> Self {
        let by_name = facts.iter().enumerate().map(|(index, column)| (column.name.as_str(), index)).collect();
        Self { facts, owner, by_name, per_unit: 1, origin: DocumentSource::Http }
    }

    pub(in crate::spec) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(in crate::spec) fn name(&self, column: usize) -> &'a str {
        &self.facts[column].name
    }

    /// Every column.
    pub(in crate::spec) fn all(&self) -> BTreeSet<usize> {
        (0..self.facts.len()).collect()
    }

    /// The column called `name`; a fault when there is none.
    pub(in crate::spec) fn resolve(&self, name: &str, pointer: &str, faults: &mut FaultList) -> Option<usize> {
        let found = self.find(name);
        if found.is_none() {
            let detail = match self.owner {
                ColumnOwner::Dataset => format!("the dataset has no attribute {name}"),
                ColumnOwner::Release => "the release publishes no attribute of this name".to_owned(),
                ColumnOwner::Tables => format!("no table that is verified has an attribute {name}"),
            };
            let fault = Fault::new(pointer, Kind::UnknownAttribute, detail).with("attribute", name);
            let names = self.facts.iter().take(MAX_COMPARED).map(|column| column.name.as_str());
            let nearest = if faults.explains() { nearest_names(name, names, NEAREST_NAMES) } else { Vec::new() };
            faults.push(if nearest.is_empty() { fault } else { fault.with("nearest", nearest) });
        }
        found
    }
}
