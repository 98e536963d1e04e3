//! What is stated of a series by who answers for it: tables that were published before or elsewhere, other names of attributes, and
//! what is computed from what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use uuid::Uuid;

use super::desk::load_problem;
use super::load::ColumnSources;
use super::{AppService, AuditAction, StatementRecord, StoreError, entered, problem_of};
use crate::control::Control;
use crate::identity::Caller;
use crate::ledger::{
    AttributeIdentities, Disclosure, EarlierDisclosures, ExternalRowsRef, IdentityError, RecordedProtection,
};
use crate::problem::{Fault, Kind, Problem};
use crate::spec::reader::child;

/// A table that was published before or elsewhere.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalDisclosure {
    /// The id of the disclosure.
    #[serde(default)]
    pub id: Uuid,
    /// What it is called.
    pub name: String,
    /// Its attributes.
    pub attributes: Vec<String>,
    /// What it is worth beside other tables.
    pub standing: DeclaredProtection,
    /// The published cut of each generalized attribute; `None` is the missing value.
    #[serde(default)]
    pub cuts: BTreeMap<String, Vec<Option<String>>>,
    /// The dataset that holds its rows.
    #[serde(default)]
    pub dataset: Option<Uuid>,
}

/// The standing of a table that was published elsewhere: nobody here has seen that it guarantees anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeclaredProtection {
    /// Exact tuples.
    Plain,
    /// Anything else.
    Unsealed,
}

/// All that is stated at once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// Why.
    pub reason: String,
    /// Tables that were published before or elsewhere.
    #[serde(default)]
    pub tables: Vec<ExternalDisclosure>,
    /// Other names of attributes; a name for itself is a new attribute.
    #[serde(default)]
    pub aliases: BTreeMap<String, String>,
    /// What attributes are computed from.
    #[serde(default)]
    pub functions: BTreeMap<String, Vec<String>>,
}

impl Statement {
    /// As it was entered.
    pub(super) fn read(record: &StatementRecord) -> Result<Self, StoreError> {
        serde_json::from_value(record.body.clone()).map_err(StoreError::corrupt)
    }

    /// Adds it to what is known. Of two statements at once that contradict each other the first one counts, in what they contradict.
    pub(super) fn enter(&self, earlier: &mut EarlierDisclosures) {
        for table in &self.tables {
            earlier.disclosures.push((table.id, self.disclosure(table)));
            earlier.entered.insert(table.id, ExternalRowsRef { dataset: table.dataset, cuts: table.cuts.clone() });
        }
        for contradiction in self.identify(&mut earlier.identities) {
            tracing::warn!(%contradiction, "a statement contradicts an earlier one");
        }
    }

    /// Adds what it states of names, and gives what of it contradicts what is known; the rest counts all the same, as an attribute
    /// that nobody recognizes is protected by nothing.
    pub(super) fn identify(&self, identities: &mut AttributeIdentities) -> Vec<IdentityError> {
        let aliases = self.aliases.iter().filter_map(|(name, of)| identities.alias(name, of).err());
        let mut contradictions: Vec<IdentityError> = aliases.collect();
        contradictions.extend(self.functions.iter().filter_map(|(name, of)| identities.function(name, of).err()));
        contradictions
    }

    /// What the ledger holds of a table.
    pub(super) fn disclosure(&self, table: &ExternalDisclosure) -> Disclosure {
        Disclosure {
            table: table.name.clone(),
            attributes: table.attributes.clone(),
            standing: match table.standing {
                DeclaredProtection::Plain => RecordedProtection::Plain,
                DeclaredProtection::Unsealed => RecordedProtection::Unsealed,
            },
            partial: false,
            unproven: Some(self.reason.clone()),
        }
    }

    /// What is wrong with it by itself.
    fn faults(&self) -> Option<String> {
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

impl AppService {
    /// Enters a statement into a series of the caller's tenant, and gives the ids of its disclosures.
    ///
    /// # Errors
    /// `malformed-body`, `not-found` or `gone` for a dataset, `conflict` with all in which it contradicts earlier ones,
    /// `invalid-specification` with every fault of tables whose rows are not those that are stated, or the store's problem.
    pub async fn state(&self, caller: &Caller, series: &str, mut statement: Statement) -> Result<Vec<Uuid>, Problem> {
        if series.is_empty() || series.chars().count() > 500 || series.contains('\0') {
            return Err(Problem::new(Kind::NotFound, "a series has a name of 1 to 500 characters"));
        }
        if let Some(fault) = statement.faults() {
            return Err(Problem::new(Kind::MalformedBody, fault));
        }
        let failed = |error: StoreError| problem_of(&error);
        for dataset in statement.tables.iter().filter_map(|table| table.dataset) {
            self.dataset(caller, dataset).await?;
        }
        let record = self.store.series(&caller.tenant, series).await.map_err(failed)?;
        let mut identities = AttributeIdentities::default();
        for before in &record.statements {
            let before = Statement::read(before).map_err(failed)?;
            // two at once may contradict each other: then the first one counts, as when a job is judged
            let _ = before.identify(&mut identities);
        }
        let contradictions: Vec<String> = statement.identify(&mut identities).iter().map(ToString::to_string).collect();
        if !contradictions.is_empty() {
            return Err(Problem::new(Kind::Conflict, contradictions.join("; ")));
        }
        let faults = self.strange_tables(caller, &statement, &identities).await?;
        if !faults.is_empty() {
            return Err(Problem::of_faults(faults));
        }
        for table in &mut statement.tables {
            table.id = Uuid::now_v7();
        }
        let body = serde_json::to_value(&statement).map_err(|error| failed(StoreError::corrupt(error)))?;
        let entered = StatementRecord { id: Uuid::now_v7(), body, recorded_at: self.clock.now() };
        let deed = self.deed(caller, AuditAction::State, series);
        self.store.enter_statement(&caller.tenant, series, &entered, &deed).await.map_err(failed)?;
        Ok(statement.tables.iter().map(|table| table.id).collect())
    }
    /// What is not so of the tables and of the datasets that hold their rows. What is entered stays for ever, so that it is looked at
    /// before.
    async fn strange_tables(
        &self,
        caller: &Caller,
        statement: &Statement,
        identities: &AttributeIdentities,
    ) -> Result<Vec<Fault>, Problem> {
        let (mut faults, mut held) = (Vec::new(), Vec::new());
        for (at, table) in statement.tables.iter().enumerate() {
            let place = child("/tables", &at.to_string());
            if table.standing == DeclaredProtection::Plain && !table.cuts.is_empty() {
                let detail = "a plain table is one of exact tuples, and has no cuts: expected unsealed";
                let fault = Fault::new(child(&place, "standing"), Kind::ParameterRange, detail);
                faults.push(fault.with("allowed", "unsealed"));
            }
            let Some(id) = table.dataset else { continue };
            let dataset = self.dataset(caller, id).await?;
            let profiles = self.profiles(&dataset)?;
            let stated = ExternalRowsRef { dataset: Some(id), cuts: table.cuts.clone() };
            match entered::ExternalRows::of(id, (dataset, profiles), (&table.attributes, &stated), identities) {
                Ok(table) => held.push((place, table)),
                Err(strange) => faults.extend(strange.into_iter().map(|strange| {
                    let name = &table.attributes[strange];
                    let pointer = child(&child(&place, "attributes"), &strange.to_string());
                    let detail = format!("{name} {}", entered::NO_SINGLE_COLUMN_DETAIL);
                    Fault::new(pointer, Kind::UnknownAttribute, detail).with("attribute", name.as_str())
                })),
            }
        }
        held.retain(|(_, table)| table.has_cuts());
        if held.is_empty() {
            return Ok(faults);
        }
        let need = held.iter().map(|(_, table)| table.memory_of_rows()).max().unwrap_or(0);
        let room = self.budget.take_now(need)?;
        let (handle, store, vault) = (Handle::current(), Arc::clone(&self.store), Arc::clone(&self.vault));
        let (control, limits) = (Control::default(), self.limits.clone());
        // a caller that goes away stops the reading
        let stop_when_dropped = control.stop_when_dropped();
        let beyond = tokio::task::spawn_blocking(move || {
            let _room = room;
            let sources = ColumnSources { store: store.as_ref(), vault: &vault, limits: &limits };
            let mut found = Vec::new();
            for (place, table) in &held {
                let names = table.beyond_cuts(&handle, sources, &control).map_err(load_problem)?;
                found.extend(names.into_iter().map(|name| {
                    let detail = format!("the dataset has labels of {name} that are not of its cut");
                    let fault = Fault::new(child(&child(place, "cuts"), &name), Kind::BadColumns, detail);
                    fault.with("attribute", name)
                }));
            }
            Ok(found)
        });
        let beyond: Result<Vec<Fault>, Problem> =
            beyond.await.map_err(|_panicked| Problem::new(Kind::Internal, "the tables could not be looked at"))?;
        drop(stop_when_dropped);
        faults.extend(beyond?);
        Ok(faults)
    }
}
