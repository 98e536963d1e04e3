//! The member `schema` of a plan: tables that are checked in place of those that the method would find.

use std::collections::BTreeSet;

use serde_json::Value;

use super::attributes::DatasetColumns;
use super::reader::{FaultList, ObjectReader, child};
use super::rules::{NAMES, columns_named};
use crate::problem::{Fault, Kind};

/// The most tables of a schema.
const MAX_TABLES: usize = 128;

const SENSITIVE: &str = "the name of an attribute of the table, or null for whole tuples";

/// A proposed table over columns of the dataset.
#[derive(Clone, Debug)]
pub(in crate::spec) struct DraftProposedTable {
    pub(in crate::spec) attributes: BTreeSet<usize>,
    /// The column on which it would be bucketized.
    pub(in crate::spec) sensitive: Option<usize>,
}

/// The member `schema` has faults.
pub(in crate::spec) struct ProposedTablesError;

/// Reads `schema`; `None` when it is absent.
pub(in crate::spec) fn read(
    document: &mut ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    faults: &mut FaultList,
) -> Result<Option<Vec<DraftProposedTable>>, ProposedTablesError> {
    let before = faults.len();
    let pointer = document.at("schema");
    let Some(tables) = document.list("schema", "an array of tables", faults) else {
        return if faults.len() > before { Err(ProposedTablesError) } else { Ok(None) };
    };
    if !(1..=MAX_TABLES).contains(&tables.len()) {
        faults.range(pointer, "an array of 1 to 128 tables");
        return Err(ProposedTablesError);
    }
    let read = |(index, table): (usize, &Value)| one(table, child(&pointer, &index.to_string()), columns, faults);
    let tables: Vec<DraftProposedTable> = tables.iter().enumerate().filter_map(read).collect();
    if faults.len() > before { Err(ProposedTablesError) } else { Ok(Some(tables)) }
}

fn one(
    table: &Value,
    pointer: String,
    columns: &DatasetColumns<'_>,
    faults: &mut FaultList,
) -> Option<DraftProposedTable> {
    let mut members = ObjectReader::open(table, pointer, faults)?;
    let at = members.at("attributes");
    let before = faults.len();
    let names = members.list("attributes", NAMES, faults);
    if names.is_none_or(<[Value]>::is_empty) && faults.len() == before {
        faults.range(at.as_str(), "an array of at least one attribute");
    }
    let attributes = columns_named(names.unwrap_or_default(), &at, columns, faults);
    let at = members.at("sensitive");
    let named = match members.take("sensitive") {
        // as plans list it
        Some(Value::Array(names)) if names.len() == 1 => names.first(),
        other => other,
    };
    let name = named.map(|name| name.as_str().ok_or_else(|| faults.range(at.as_str(), SENSITIVE)));
    members.finish(faults);
    let name = name.transpose().ok()?;
    let sensitive = match name {
        Some(name) => Some(columns.resolve(name, &at, faults)?),
        None => None,
    };
    if let Some(column) = sensitive.filter(|column| !attributes.contains(column)) {
        let detail = format!("{} is not among the attributes of the table", columns.name(column));
        faults.push(Fault::new(at, Kind::BadColumns, detail));
    }
    Some(DraftProposedTable { attributes, sensitive })
}
