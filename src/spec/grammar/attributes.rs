//! The member `attributes`: options of single attributes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::reader::{FaultList, ObjectReader, child, integer};
use super::schema::{ColumnFacts, DatasetSchema, DocumentSource};
use super::taxonomy;
use super::taxonomy::TaxonomyName;
use crate::microdata::Taxonomy;
use crate::problem::{Fault, Kind};

/// The most excludable values of an attribute.
const MAX_VALUES: usize = 1_000;

/// The columns of the dataset, by name; the default has none, for documents without a dataset.
#[derive(Default)]
pub(in crate::spec) struct DatasetColumns<'a> {
    pub(in crate::spec) facts: &'a [ColumnFacts],
    by_name: HashMap<&'a str, usize>,
    /// The most rows of one unit of protection.
    pub(in crate::spec) per_unit: u64,
}

impl<'a> DatasetColumns<'a> {
    pub(in crate::spec) fn from_schema(schema: &DatasetSchema<'a>) -> Self {
        let by_name = schema.columns.iter().enumerate().map(|(index, column)| (column.name.as_str(), index)).collect();
        Self { facts: schema.columns, by_name, per_unit: schema.unit.rows() }
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

/// The options of one attribute.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct AttributeOptions {
    pub(in crate::spec) drop: bool,
    pub(in crate::spec) publish: bool,
    pub(in crate::spec) identifier: Option<bool>,
    pub(in crate::spec) rename: Option<String>,
    pub(in crate::spec) equal_width: Option<i128>,
    /// Values that an insider can rule out, `None` being the missing one; each once.
    pub(in crate::spec) excludable: Vec<Option<String>>,
    pub(in crate::spec) taxonomy: Option<TaxonomyChoice>,
    /// Whether there is a taxonomy that cannot be read.
    pub(in crate::spec) is_misread: bool,
}

/// The taxonomy of an attribute.
#[derive(Clone, Debug)]
pub(in crate::spec) enum TaxonomyChoice {
    /// The tree itself.
    Tree(Arc<Taxonomy>),
    /// One that is stored, which a policy names.
    Named,
}

impl AttributeOptions {
    /// Whether the caller takes responsibility for publishing an identifier.
    pub(in crate::spec) fn overrides_identifier(&self) -> bool {
        self.publish && self.identifier == Some(false)
    }
}

/// The columns that are marked with `publish`.
pub(in crate::spec) fn published_columns(attributes: &[AttributeOptions]) -> impl Iterator<Item = usize> {
    attributes.iter().enumerate().filter(|(_, options)| options.publish && !options.drop).map(|(column, _)| column)
}

/// Reads `attributes`: the options of each column.
pub(in crate::spec) fn read(
    document: &mut ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    origin: DocumentSource,
    faults: &mut FaultList,
) -> Vec<AttributeOptions> {
    let mut options = vec![AttributeOptions::default(); columns.facts.len()];
    let Some(attributes) = document.object("attributes", faults) else { return options };
    for (name, pointer, value) in attributes.entries() {
        let column = columns.resolve(name, &pointer, faults);
        if value.is_null() {
            continue;
        }
        let Some(members) = ObjectReader::open(value, pointer, faults) else { continue };
        let read = read_one(members, name, origin, faults);
        if let Some(column) = column {
            options[column] = read;
        }
    }
    options
}

fn read_one(
    mut members: ObjectReader<'_>,
    name: &str,
    origin: DocumentSource,
    faults: &mut FaultList,
) -> AttributeOptions {
    let drop = members.flag("drop", faults).unwrap_or(false);
    let publish = members.flag("publish", faults).unwrap_or(false);
    let identifier = members.flag("identifier", faults);
    if drop && publish {
        faults.range(members.at("drop"), "either publish or drop, not both");
    }
    let rename = members.text("rename", "a name that is not empty", faults, |name| !name.is_empty());
    let equal_width = members.object("discretize", faults).and_then(|mut discretize| {
        let allowed = "an integer of at least 1";
        let width = discretize.take("equal_width").and_then(integer).filter(|width| *width >= 1);
        if width.is_none() {
            faults.range(discretize.at("equal_width"), allowed);
        }
        discretize.finish(faults);
        width
    });
    let tree = members.take("taxonomy");
    let taxonomy = tree.and_then(|tree| read_taxonomy(tree, &members.at("taxonomy"), name, origin, faults));
    let is_misread = tree.is_some() && taxonomy.is_none();
    let excludable = read_values(&mut members, faults);
    members.finish(faults);
    let rename = rename.map(str::to_owned);
    AttributeOptions { drop, publish, identifier, rename, equal_width, excludable, taxonomy, is_misread }
}

/// Reads a tree, or in a policy the name of a stored one.
fn read_taxonomy(
    tree: &Value,
    pointer: &str,
    name: &str,
    origin: DocumentSource,
    faults: &mut FaultList,
) -> Option<TaxonomyChoice> {
    match tree {
        Value::String(_) if matches!(origin, DocumentSource::CommandLine | DocumentSource::Reproduction) => {
            faults.unsupported(pointer, "stored taxonomies are those of a service; state the tree itself");
            None
        }
        Value::String(text) if origin == DocumentSource::Policy && TaxonomyName::parse(text).is_some() => {
            Some(TaxonomyChoice::Named)
        }
        Value::String(_) => {
            faults.range(pointer, "a tree, or the name of a stored taxonomy, such as \"job\" or \"job-v3\"");
            None
        }
        tree => {
            let mut of_tree = FaultList::new();
            let read = taxonomy::taxonomy(tree, pointer, &mut of_tree);
            for fault in of_tree.into_sorted() {
                let conflicts = fault.kind == Kind::TaxonomyConflict;
                faults.push(if conflicts { fault.with("attribute", name) } else { fault });
            }
            read.map(TaxonomyChoice::Tree)
        }
    }
}

/// The values of `excludable`.
fn read_values(members: &mut ObjectReader<'_>, faults: &mut FaultList) -> Vec<Option<String>> {
    let values = members.list("excludable", "an array of values", faults).unwrap_or_default();
    let pointer = members.at("excludable");
    if values.len() > MAX_VALUES {
        faults.range(pointer, "an array of at most 1000 values");
        return Vec::new();
    }
    let mut read: Vec<Option<String>> = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let text = match value {
            Value::Null => Some(None),
            Value::String(text) => Some(Some(text.clone())),
            Value::Bool(truth) => Some(Some(truth.to_string())),
            _ => integer(value).map(|number| Some(number.to_string())),
        };
        match text {
            Some(text) if !read.contains(&text) => read.push(text),
            Some(_) => faults.range(child(&pointer, &index.to_string()), "a value that is not in the array already"),
            None => {
                faults.range(child(&pointer, &index.to_string()), "a value as text, an integer, true, false or null")
            }
        }
    }
    read
}
