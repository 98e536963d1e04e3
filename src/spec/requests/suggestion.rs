//! What people know of the columns of a dataset: the body of a request for a suggestion.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::problem::Fault;
use crate::spec::grammar::columns::ColumnOwner;
use crate::spec::grammar::document::{ColumnName, DatasetColumns, Document, Entries, EntryValue, choice, document};
use crate::spec::grammar::schema::ColumnFacts;

/// What becomes of a column in a suggested specification.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ColumnRole {
    /// It names a person or a record, and is dropped.
    Identifier,
    /// It identifies persons with several rows, and is dropped; guarantees hold for persons.
    Subject,
    /// It is published, and counts as known to the adversary.
    QuasiIdentifier,
    /// It is published under a guarantee.
    Sensitive,
    /// It is dropped for another reason.
    Dropped,
}

impl ColumnRole {
    /// Every role.
    pub const ALL: [Self; 5] = [Self::Identifier, Self::Subject, Self::QuasiIdentifier, Self::Sensitive, Self::Dropped];

    /// The name used in the contract.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identifier => "identifier",
            Self::Subject => "subject",
            Self::QuasiIdentifier => "quasi_identifier",
            Self::Sensitive => "sensitive",
            Self::Dropped => "dropped",
        }
    }

    /// Whether the column is published.
    #[must_use]
    pub const fn is_published(self) -> bool {
        matches!(self, Self::QuasiIdentifier | Self::Sensitive)
    }
}

choice! {
    /// What becomes of a column. `identifier` and `dropped`: it is not published. `subject`: the same, and it identifies persons with
    /// several rows, for whom guarantees then hold. `quasi_identifier`: it is published, and counts as known. `sensitive`: it is
    /// published under a guarantee.
    existing ColumnRole as "DeclaredColumnRole" {
        Identifier = "identifier",
        Subject = "subject",
        QuasiIdentifier = "quasi_identifier",
        Sensitive = "sensitive",
        Dropped = "dropped",
    }
}

impl EntryValue for ColumnRole {
    const OBJECT: &'static str = "DeclaredColumnRoles";

    const ABOUT: &'static str = "What people know of columns: the role of each, by name.";
}

document! {
    /// What people know of the columns; everything else is suggested.
    SuggestionMembers as "SuggestionRequest" {
        /// The roles of columns, by name.
        optional roles: Entries<ColumnRole>,
        /// The column that identifies persons with several rows: short for its role `subject`.
        optional subject: ColumnName => "the name of an attribute, or null",
    }
}

/// The roles that people declare, by the names of columns.
pub type DeclaredRoles = BTreeMap<String, ColumnRole>;

/// Reads a request for a suggestion against the columns of its dataset.
///
/// # Errors
/// Every fault, with its pointer; of an unknown column with the nearest names.
pub fn read_suggestion_request(document: &Value, facts: &[ColumnFacts]) -> Result<DeclaredRoles, Vec<Fault>> {
    let columns = DatasetColumns::new(facts, ColumnOwner::Dataset);
    SuggestionMembers::read_document(document, &columns, |members, faults| {
        let mut roles = DeclaredRoles::new();
        for entry in members.roles.value.iter().flat_map(|roles| &roles.0) {
            if columns.resolve(&entry.name, &entry.pointer, faults).is_some() {
                roles.extend(entry.value.value.map(|role| (entry.name.clone(), role)));
            }
        }
        if let Some(subject) = members.subject.column() {
            let name = columns.name(subject);
            let declared = roles.insert(name.to_owned(), ColumnRole::Subject);
            if declared.is_some_and(|role| role != ColumnRole::Subject) {
                faults.range(members.at("subject"), "a column that roles gives no other role");
            }
        }
        if roles.values().filter(|role| **role == ColumnRole::Subject).count() > 1 {
            faults.range("/roles", "roles of which at most one is subject");
        }
        Some(roles)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn roles_are_read_and_every_fault_is_named() {
        let facts: Vec<ColumnFacts> = ["age", "patient", "salary"].map(ColumnFacts::unseen).into();
        let read = |document| read_suggestion_request(&document, &facts);
        assert_eq!(read(json!({})), Ok(DeclaredRoles::new()));
        let roles = read(json!({"roles": {"salary": "sensitive"}, "subject": "patient"})).unwrap();
        assert_eq!((roles["salary"], roles["patient"]), (ColumnRole::Sensitive, ColumnRole::Subject));
        let faults = read(json!({"roles": {"agee": "sensitive", "age": "secret"}, "subject": "person", "x": 1}));
        let faults = faults.unwrap_err();
        let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(pointers, ["/roles/age", "/roles/agee", "/subject", "/x"]);
        assert_eq!(faults[1].members["nearest"][0], "age");
        for twice in [
            json!({"roles": {"age": "subject"}, "subject": "patient"}),
            json!({"roles": {"age": "sensitive"}, "subject": "age"}),
            json!({"roles": []}),
        ] {
            assert_eq!(read(twice).unwrap_err().len(), 1);
        }
    }
}
