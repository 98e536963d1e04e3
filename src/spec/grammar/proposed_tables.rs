//! The member `schema` of a plan: tables that are checked in place of those that the method would find.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::attributes::DatasetColumns;
use super::document::{Array, Document, Member, MemberContext, Names, SchemaMap, document};
use crate::problem::{Fault, Kind};

/// The most tables of a schema.
const MAX_TABLES: usize = 128;

document! {
    /// A table to be judged.
    ProposedTableMembers as "ProposedTable" {
        /// All its attributes, by their names in the dataset.
        needed attributes: Names<1>,
        /// The one of them on which it is bucketized, under the strongest guarantees of the rules into it. Null: whole tuples.
        optional sensitive: ProposedSensitive,
    }
}

/// The column on which a table would be bucketized: its name, or an array of it as plans list it.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) struct ProposedSensitive(usize);

impl Member for ProposedSensitive {
    fn allowed() -> String {
        "the name of an attribute of the table, or null for whole tuples".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let name = match value {
            Value::Array(names) if names.len() == 1 => names[0].as_str(),
            other => other.as_str(),
        };
        let Some(name) = name else { return context.refuse() };
        context.columns.resolve(name, &context.pointer, context.faults).map(Self)
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        columns.name(self.0).into()
    }

    fn schema() -> Value {
        json!({"oneOf": [{"type": "string"}, Array::<String, 1, 1>::schema()]})
    }
}

/// A proposed table over columns of the dataset.
#[derive(Clone, Debug)]
pub(in crate::spec) struct DraftProposedTable {
    pub(in crate::spec) attributes: BTreeSet<usize>,
    /// The column on which it would be bucketized, one of its attributes.
    pub(in crate::spec) sensitive: Option<usize>,
}

/// The member `schema`, which plans have alone.
#[derive(Clone, Debug)]
pub(in crate::spec) struct ProposedTables {
    tables: Array<ProposedTableMembers, 1, MAX_TABLES>,
    pub(in crate::spec) drafts: Vec<DraftProposedTable>,
}

impl Member for ProposedTables {
    fn allowed() -> String {
        format!("an array of 1 to {MAX_TABLES} tables")
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        if !context.columns.origin.is_plan() {
            let detail = "a proposed schema is judged by a plan, and nothing else; leave it out";
            context.faults.unsupported(context.pointer.as_str(), detail);
            return None;
        }
        let tables = Array::<ProposedTableMembers, 1, MAX_TABLES>::read(value, context)?;
        if tables.is_empty() {
            return context.refuse();
        }
        let drafts = tables.values().map(|table| table.checked(context)).collect();
        Some(Self { tables, drafts })
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        self.tables.write(columns)
    }

    fn schema() -> Value {
        Array::<ProposedTableMembers, 1, MAX_TABLES>::schema()
    }

    fn define(schemas: &mut SchemaMap) {
        ProposedTableMembers::define(schemas);
    }
}

impl ProposedTableMembers {
    /// The table; it has attributes, and the sensitive one is among them.
    fn checked(&self, context: &mut MemberContext<'_, '_>) -> DraftProposedTable {
        let is_empty = self.attributes.value.as_ref().is_none_or(|names| names.is_empty);
        if is_empty && !self.attributes.is_faulty {
            context.faults.range(self.at("attributes"), "an array of at least one attribute");
        }
        let attributes = self.attributes.columns().clone();
        let named = self.sensitive.value.map(|sensitive| sensitive.0);
        let sensitive = named.filter(|column| attributes.contains(column));
        if let Some(column) = named.filter(|_| sensitive.is_none()) {
            let detail = format!("{} is not among the attributes of the table", context.columns.name(column));
            context.faults.push(Fault::new(self.at("sensitive"), Kind::BadColumns, detail));
        }
        DraftProposedTable { attributes, sensitive }
    }
}
