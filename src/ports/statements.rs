//! Statements of an operator about a series: external tables, aliases of attributes, and
//! what is computed from what.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::disclosures::StatementRecord;
use super::error::StoreError;
use crate::ledger::{
    AttributeIdentities, Disclosure, EarlierDisclosures, ExternalRowsRef, IdentityError, RecordedProtection,
};

/// A table published elsewhere.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TableDocument)]
pub struct ExternalDisclosure {
    /// The id of the disclosure.
    #[serde(default)]
    #[schema(ignore)]
    pub id: Uuid,
    /// The name of the table.
    pub name: String,
    /// The attributes, by their names in the series.
    #[schema(min_items = 1, max_items = 128)]
    pub attributes: Vec<String>,
    /// The protection of the table in compositions.
    pub protection: DeclaredProtection,
    /// The labels of each generalized attribute: taxonomy nodes, intervals such as `17..24`, or null for the missing value. A plain table
    /// has none.
    #[serde(default)]
    pub cuts: BTreeMap<String, Vec<Option<String>>>,
    /// The dataset of the published rows, with the attributes as columns or their aliases. `sequential` requires it to check against the
    /// table.
    #[serde(default)]
    pub dataset: Option<Uuid>,
}

/// The protection of an external table: exact tuples, or a table that tolerates no shared attributes. It is not verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ExternalProtection)]
pub enum DeclaredProtection {
    /// Exact tuples.
    Plain,
    /// Anything else.
    Exclusive,
}

/// A statement about a series.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = StatementDocument)]
pub struct Statement {
    /// The reason, 1 to 500 characters.
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
    /// External tables.
    #[serde(default)]
    pub tables: Vec<ExternalDisclosure>,
    /// Aliases of attributes; an alias of itself declares a new attribute.
    #[serde(default)]
    pub aliases: BTreeMap<String, String>,
    /// Computed attributes, each with the attributes that determine it.
    #[serde(default)]
    pub functions: BTreeMap<String, Vec<String>>,
}

impl Statement {
    /// Reads a recorded statement.
    pub(crate) fn read(record: &StatementRecord) -> Result<Self, StoreError> {
        serde_json::from_value(record.body.clone()).map_err(StoreError::corrupt)
    }

    /// Adds it to what is known. Of two statements at once that contradict each other the first one counts, in what they contradict.
    pub(crate) fn enter(&self, earlier: &mut EarlierDisclosures) {
        for table in &self.tables {
            earlier.disclosures.push((table.id, self.disclosure(table)));
            earlier.external.insert(table.id, ExternalRowsRef { dataset: table.dataset, cuts: table.cuts.clone() });
        }
        for contradiction in self.identify(&mut earlier.identities) {
            tracing::warn!(%contradiction, "a statement contradicts an earlier one");
        }
    }

    /// Adds what it states of names, and gives what of it contradicts what is known; the rest counts all the same, as an attribute
    /// that is not recognized is protected by nothing.
    pub(crate) fn identify(&self, identities: &mut AttributeIdentities) -> Vec<IdentityError> {
        let aliases = self.aliases.iter().filter_map(|(name, of)| identities.alias(name, of).err());
        let mut contradictions: Vec<IdentityError> = aliases.collect();
        contradictions.extend(self.functions.iter().filter_map(|(name, of)| identities.function(name, of).err()));
        contradictions
    }

    /// What the ledger holds of a table.
    pub(crate) fn disclosure(&self, table: &ExternalDisclosure) -> Disclosure {
        Disclosure {
            table: table.name.clone(),
            attributes: table.attributes.clone(),
            protection: match table.protection {
                DeclaredProtection::Plain => RecordedProtection::Plain,
                DeclaredProtection::Exclusive => RecordedProtection::Exclusive,
            },
            partial: false,
            unproven: Some(self.reason.clone()),
            dependencies: Vec::new(),
            withdrawn: Vec::new(),
        }
    }

    /// What is wrong with it by itself.
    pub(crate) fn faults(&self) -> Option<String> {
        let text = |text: &str| !text.trim().is_empty() && text.chars().count() <= 500 && !text.contains('\0');
        let names =
            self.tables.iter().flat_map(|table| table.attributes.iter().chain([&table.name]).chain(table.cuts.keys()));
        let names = names.chain(self.aliases.iter().flat_map(|(name, of)| [name, of]));
        let mut names = names.chain(self.functions.iter().flat_map(|(name, of)| of.iter().chain([name])));
        let mut labels = self.tables.iter().flat_map(|table| table.cuts.values()).flatten().flatten();
        let few = self.tables.len() + self.aliases.len() + self.functions.len();
        match () {
            () if !text(&self.reason) => Some("reason must have 1 to 500 characters".to_owned()),
            () if !names.all(|name| text(name)) => Some("names must have 1 to 500 characters".to_owned()),
            () if !labels.all(|label| label.chars().count() <= 500 && !label.contains('\0')) => {
                Some("labels of cuts must have at most 500 characters".to_owned())
            }
            () if few == 0 => Some("state at least one table, alias or function".to_owned()),
            () if few > 1000 => Some("state at most 1000 tables, aliases and functions at once".to_owned()),
            () if self.tables.iter().any(|table| table.attributes.is_empty() || table.attributes.len() > 128) => {
                Some("a table has 1 to 128 attributes".to_owned())
            }
            () if self.tables.iter().any(|table| has_twice(&table.attributes)) => {
                Some("a table has each of its attributes once".to_owned())
            }
            () if self.tables.iter().any(|table| table.cuts.keys().any(|name| !table.attributes.contains(name))) => {
                Some("a cut is of an attribute of its table".to_owned())
            }
            () if self
                .tables
                .iter()
                .flat_map(|table| table.cuts.values())
                .any(|cut| cut.is_empty() || has_twice(cut)) =>
            {
                Some("a cut has at least one label, and each of its labels once".to_owned())
            }
            () if self.functions.values().any(|of| of.is_empty() || of.len() > 128) => {
                Some("a function is of 1 to 128 attributes".to_owned())
            }
            () => None,
        }
    }
}

fn has_twice<T: Ord>(list: &[T]) -> bool {
    let mut seen = BTreeSet::new();
    !list.iter().all(|item| seen.insert(item))
}
