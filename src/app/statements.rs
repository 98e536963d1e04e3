use uuid::Uuid;

use super::blocking::run_blocking;
use super::people::unknown_population;
use super::service::AppService;
use crate::identity::Caller;
use crate::inputs;
use crate::ledger::AttributeIdentities;
use crate::ports::{AuditAction, DeclaredProtection, Statement, StatementRecord, StoreError};
use crate::problem::{Fault, Kind, Problem};
use crate::spec::child;

impl AppService {
    /// Records a statement about a population of the caller's tenant, or about a dataset without one by its id, and returns
    /// the ids of its disclosures.
    ///
    /// # Errors
    /// `unknown-population`, `malformed-body`, `not-found` or `gone` for a dataset, `conflict` with all in which it contradicts earlier ones,
    /// `invalid-specification` with every fault of tables whose rows contradict the statement, or the store's problem.
    pub async fn state(&self, caller: &Caller, series: &str, statement: Statement) -> Result<Vec<Uuid>, Problem> {
        self.must_have_ledger(caller, series).await?;
        let statement = self.checked_statement(caller, series, statement).await?;
        let record = self.statement_record(&statement)?;
        let audit_entry = self.audit_entry(caller, AuditAction::State, series);
        self.store.enter_statement(&caller.tenant, series, &record, &audit_entry).await?;
        Ok(statement.tables.iter().map(|table| table.id).collect())
    }

    /// Refuses a name of neither a population nor a dataset without one: what is declared there would bind no job.
    async fn must_have_ledger(&self, caller: &Caller, name: &str) -> Result<(), Problem> {
        let registry = self.store.people_registry(&caller.tenant).await?;
        if registry.populations.contains_key(name) {
            return Ok(());
        }
        let Ok(id) = name.parse::<Uuid>() else { return Err(unknown_population(name, &registry)) };
        let dataset =
            self.store.dataset(&caller.tenant, id).await?.ok_or_else(|| unknown_population(name, &registry))?;
        match dataset.population {
            _ if dataset.series == name => Ok(()),
            Some(population) => {
                let detail = format!("the dataset is of the population {population:?}: make the statement about that");
                Err(Problem::new(Kind::UnknownPopulation, detail).with("nearest", vec![population]))
            }
            None => Err(unknown_population(name, &registry)),
        }
    }

    /// The record of a statement that was checked.
    pub(super) fn statement_record(&self, statement: &Statement) -> Result<StatementRecord, Problem> {
        let body = serde_json::to_value(statement).map_err(StoreError::corrupt)?;
        Ok(StatementRecord { id: Uuid::now_v7(), body, recorded_at: self.clock.now() })
    }

    /// A statement about a known series that can be recorded, with ids of its tables.
    ///
    /// # Errors
    /// As of [`AppService::state`].
    pub(super) async fn checked_statement(
        &self,
        caller: &Caller,
        series: &str,
        mut statement: Statement,
    ) -> Result<Statement, Problem> {
        if let Some(fault) = statement.faults() {
            return Err(Problem::new(Kind::MalformedBody, fault));
        }
        for dataset in statement.tables.iter().filter_map(|table| table.dataset) {
            self.dataset(caller, dataset).await?;
        }
        let record = self.store.series(&caller.tenant, series).await?;
        let mut identities = AttributeIdentities::default();
        for before in &record.statements {
            let before = Statement::read(before)?;
            // two concurrent statements may contradict each other: then the first one counts, as for jobs
            let _ = before.identify(&mut identities);
        }
        let contradictions: Vec<String> = statement.identify(&mut identities).iter().map(ToString::to_string).collect();
        if !contradictions.is_empty() {
            return Err(Problem::new(Kind::Conflict, contradictions.join("; ")));
        }
        let faults = self.table_faults(caller, &statement, &identities).await?;
        if !faults.is_empty() {
            return Err(Problem::of_faults(faults));
        }
        for table in &mut statement.tables {
            table.id = Uuid::now_v7();
        }
        Ok(statement)
    }

    /// Faults of the declared tables and of the datasets with their rows. A statement stays for ever, so it is checked before.
    async fn table_faults(
        &self,
        caller: &Caller,
        statement: &Statement,
        identities: &AttributeIdentities,
    ) -> Result<Vec<Fault>, Problem> {
        let (mut faults, mut held) = (Vec::new(), Vec::new());
        for (at, table) in statement.tables.iter().enumerate() {
            let place = child("/tables", &at.to_string());
            if table.protection == DeclaredProtection::Plain && !table.cuts.is_empty() {
                let detail = "a plain table is one of exact tuples, and has no cuts: expected exclusive";
                let fault = Fault::new(child(&place, "protection"), Kind::ParameterRange, detail);
                faults.push(fault.with("allowed", "exclusive"));
            }
            let Some(id) = table.dataset else { continue };
            let dataset = self.dataset(caller, id).await?;
            let profiles = self.profiles(&dataset)?;
            let attributes = inputs::ExternalAttributes { names: &table.attributes, cuts: &table.cuts };
            match inputs::ExternalRows::new(id, dataset, profiles, attributes, identities) {
                Ok(table) => held.push((place, table)),
                Err(unknown) => faults.extend(unknown.into_iter().map(|unknown| {
                    let name = &table.attributes[unknown];
                    let pointer = child(&child(&place, "attributes"), &unknown.to_string());
                    let detail = format!("{name} {}", inputs::NO_SINGLE_COLUMN_DETAIL);
                    Fault::new(pointer, Kind::UnknownAttribute, detail).with("attribute", name.as_str())
                })),
            }
        }
        held.retain(|(_, table)| table.has_cuts());
        if held.is_empty() {
            return Ok(faults);
        }
        let need = held.iter().map(|(_, table)| table.memory_of_rows()).max().unwrap_or(0);
        let room = self.budget.try_acquire(need)?;
        let env = self.env();
        let uncovered = run_blocking("the check of the tables", move |control| {
            let _room = room;
            let mut found = Vec::new();
            for (place, table) in &held {
                let names = table.attributes_outside_cuts(&env, control)?;
                found.extend(names.into_iter().map(|name| {
                    let detail = format!("the dataset has labels of {name} that are not of its cut");
                    let fault = Fault::new(child(&child(place, "cuts"), &name), Kind::BadColumns, detail);
                    fault.with("attribute", name)
                }));
            }
            Ok::<Vec<Fault>, Problem>(found)
        });
        faults.extend(uncovered.await??);
        Ok(faults)
    }
}
