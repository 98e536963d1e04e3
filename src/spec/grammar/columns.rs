//! The columns of the dataset that a document speaks of.

use std::collections::{BTreeSet, HashMap};

use super::reader::FaultList;
use super::schema::{ColumnFacts, DatasetSchema, DocumentSource};
use crate::problem::{Fault, Kind};

/// The columns of the dataset, by name; the default has none, for documents without a dataset.
#[derive(Default)]
pub(in crate::spec) struct DatasetColumns<'a> {
    pub(in crate::spec) facts: &'a [ColumnFacts],
    pub(in crate::spec) by_name: HashMap<&'a str, usize>,
    /// The most rows of one unit of protection.
    pub(in crate::spec) per_unit: u64,
    /// Where the document comes from.
    pub(in crate::spec) origin: DocumentSource,
}

impl<'a> DatasetColumns<'a> {
    pub(in crate::spec) fn from_schema(schema: &DatasetSchema<'a>) -> Self {
        let by_name = schema.columns.iter().enumerate().map(|(index, column)| (column.name.as_str(), index)).collect();
        Self { facts: schema.columns, by_name, per_unit: schema.unit.rows(), origin: DocumentSource::Http }
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
            let detail = format!("the dataset has no attribute {name}");
            faults.push(Fault::new(pointer, Kind::UnknownAttribute, detail).with("attribute", name));
        }
        found
    }
}
