//! The trial of a suggested specification: the engine plans it, and what the plan refuses is mended until a job would publish.

use std::borrow::ToOwned;

use serde_json::Value;

use super::draft::SpecificationDraft;
use super::place::SuggestionInput;
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::engine::plan::dry_run::{DryRunInput, TablePair, check, dry_run};
use crate::engine::plan::types::Plan;
use crate::ledger::EarlierDisclosures;
use crate::microdata::{ColumnProfile, Table, UploadedColumn};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{NoticeKind, Unit};
use crate::random::RandomStreams;
use crate::spec;
use crate::spec::{Algorithm, ColumnFacts, ColumnRole, DatasetSchema, DocumentSource, Specification};

/// After as many plans, a column with a fault is dropped at once, so that an end is near.
const MAX_PATIENT_PLANS: usize = 40;

/// Tries drafts of a table.
pub(super) struct Trial<'a> {
    pub(super) input: &'a SuggestionInput<'a>,
    /// Whom the guarantees protect.
    pub(super) unit: &'a Unit,
}

impl Trial<'_> {
    /// The draft with the fewest changes that a job would publish.
    ///
    /// # Errors
    /// Refused where nothing is left to publish, or cancelled.
    pub(super) fn settle(
        &self,
        mut draft: SpecificationDraft,
        control: &Control,
    ) -> Result<SpecificationDraft, EngineError> {
        let mut plans = 0;
        while draft.columns.iter().any(|column| column.role.is_published()) {
            let faults = match self.planned(&draft.document(), control)? {
                Ok(plan) => return self.related(draft, &plan, control),
                Err(faults) => faults,
            };
            plans += 1;
            // pointers count the rules of this plan, before anything changes
            let of_rule = |fault: &Value| draft.of_rule(fault["pointer"].as_str()?);
            let protected: Vec<Option<String>> = faults.iter().map(of_rule).collect();
            for (fault, protected) in faults.iter().zip(protected) {
                let known = draft.names(ColumnRole::QuasiIdentifier).len();
                mend(&mut draft, fault, protected, plans <= MAX_PATIENT_PLANS);
                if draft.names(ColumnRole::QuasiIdentifier).len() < known {
                    // the other faults may have gone with it
                    break;
                }
            }
        }
        Err(nothing_left(self.input.rows))
    }

    /// The draft, with tables that keep associations where those of the rules alone would separate columns.
    fn related(
        &self,
        draft: SpecificationDraft,
        plan: &Plan,
        control: &Control,
    ) -> Result<SpecificationDraft, EngineError> {
        let is_unrelated = |of: &Plan| of.warnings.iter().any(|of| of.r#type == NoticeKind::AttributesUnrelated);
        if !is_unrelated(plan) {
            return Ok(draft);
        }
        let by_data = SpecificationDraft { algorithm: Algorithm::Auto, ..draft.clone() };
        let other = self.planned(&by_data.document(), control)?;
        Ok(if other.is_ok_and(|other| !is_unrelated(&other)) { by_data } else { draft })
    }

    /// The plan of a document that a job would publish, or every fault, as problems list them.
    fn planned(&self, document: &Value, control: &Control) -> Result<Result<Plan, Vec<Value>>, EngineError> {
        let SuggestionInput { profiles, rows, keys, limits, .. } = *self.input;
        let facts = |profile: &ColumnProfile| ColumnFacts {
            overflow: profile.exceeds(limits),
            ..ColumnFacts::new(profile, rows)
        };
        let facts: Vec<ColumnFacts> = profiles.iter().map(facts).collect();
        let schema = DatasetSchema { columns: &facts, keys, unit: self.unit };
        let reading = spec::read(document, &schema, DocumentSource::CommandLine);
        let Some(specification) = reading.specification.filter(|_| reading.faults.is_empty()) else {
            return Ok(Err(errors(&Problem::of_faults(reading.faults).to_json("about:blank"))));
        };
        let table = self.table(&specification);
        let counted = check(&specification, &table);
        if !counted.is_empty() {
            return Ok(Err(errors(&Problem::of_faults(counted).to_json("about:blank"))));
        }
        let earlier = EarlierDisclosures::default();
        let input =
            DryRunInput { specification: &specification, earlier: &earlier, faults: Vec::new(), republish: None };
        let dropped = self.input.table.uploaded().filter(|column| table.names().iter().all(|name| name != column.name));
        let dropped: Vec<UploadedColumn<'_>> = dropped.collect();
        let columns = TablePair { published: &table, extra: None, dropped: &dropped };
        match dry_run(input, columns, &RandomStreams::Identity, control) {
            Ok(plan) if plan.problems.is_empty() => Ok(Ok(plan)),
            Ok(plan) => Ok(Err(plan.problems.iter().flat_map(errors).collect())),
            Err(EngineError::Refused(problem)) => Ok(Err(errors(&problem.to_json("about:blank")))),
            Err(other) => Err(other),
        }
    }

    /// The columns that a specification uses.
    fn table(&self, specification: &Specification) -> Table {
        let used = specification.used.iter().filter_map(|&column| self.input.attr(column));
        let columns = used.map(|attr| self.input.table.column(attr).clone()).collect();
        Table::new(specification.names.clone(), columns)
    }
}

/// The refusal of a table of which nothing can be published.
fn nothing_left(rows: u64) -> EngineError {
    let detail = match rows {
        ..2 => "a table of one row cannot be published: no other row could be the person's",
        _ => "no column of this table can be published; declare the roles of columns",
    };
    EngineError::Refused(Problem::of_faults(vec![Fault::new("/roles", Kind::BadColumns, detail)]))
}

/// The faults of a problem; a problem without a list of them is one itself.
fn errors(problem: &Value) -> Vec<Value> {
    match problem["errors"].as_array() {
        Some(errors) if !errors.is_empty() => errors.clone(),
        _ => vec![problem.clone()],
    }
}

/// Changes the draft so that this fault is gone, or nearer to its end: a plan that is refused never meets the same draft again.
fn mend(draft: &mut SpecificationDraft, fault: &Value, protected: Option<String>, is_patient: bool) {
    let pointer = fault["pointer"].as_str().unwrap_or_default();
    if let Some(name) = pointer.strip_prefix("/attributes/") {
        let name = name.split('/').next().unwrap_or_default().replace("~1", "/").replace("~0", "~");
        if let Some(column) = draft.column(&name).filter(|column| column.role.is_published()) {
            return column.drop("the engine does not publish it");
        }
    }
    let sensitive: Vec<String> = draft.names(ColumnRole::Sensitive).into_iter().map(ToOwned::to_owned).collect();
    let Some(protected) = protected else { return give_way(draft, &sensitive) };
    let Some(column) = draft.column(&protected).filter(|column| column.role == ColumnRole::Sensitive) else { return };
    if !is_patient {
        return column.drop("no guarantee of it holds together with the other columns");
    }
    let tied = tied(fault);
    let is_other = |name: &&String| sensitive.contains(name) && **name != protected && !column.unknown.contains(name);
    let others: Vec<String> = tied.iter().filter(is_other).cloned().collect();
    if !others.is_empty() {
        return column.unknown.extend(others);
    }
    if let Some(l) = repairs(fault).find_map(|repair| repair["lower_l"].as_u64()) {
        return column.weaken(Some(l));
    }
    // what is known fixes the secret: it cannot be published with it
    let names = |repair: &Value| ["leave_out_of_known", "drop"].iter().find_map(|name| list(&repair[*name]));
    let known: Vec<String> = draft.names(ColumnRole::QuasiIdentifier).into_iter().map(ToOwned::to_owned).collect();
    let fewest = repairs(fault)
        .filter_map(names)
        .chain([tied])
        .map(|names| names.into_iter().filter(|name| known.contains(name)).collect::<Vec<_>>())
        .filter(|names| !names.is_empty())
        .min_by_key(Vec::len);
    for name in fewest.iter().flatten() {
        if let Some(column) = draft.column(name) {
            column.drop(&format!("it gives away {protected}"));
        }
    }
    if let Some(column) = draft.column(&protected).filter(|_| fewest.is_none()) {
        column.weaken(fault["largest_l"].as_u64());
    }
}

/// Where a fault is of no column, the anonymity is lowered first; then the last column gives way.
fn give_way(draft: &mut SpecificationDraft, sensitive: &[String]) {
    if sensitive.is_empty() && draft.k > 2 {
        draft.k -= 1;
        return;
    }
    let last = sensitive
        .last()
        .cloned()
        .or_else(|| draft.names(ColumnRole::QuasiIdentifier).last().map(|name| (*name).to_owned()));
    if let Some(column) = last.and_then(|name| draft.column(&name)) {
        column.drop("the tables cannot be published with it");
    }
}

fn repairs(fault: &Value) -> impl Iterator<Item = &Value> {
    fault["repairs"].as_array().into_iter().flatten()
}

/// The names of a list.
fn list(names: &Value) -> Option<Vec<String>> {
    let names = names.as_array()?;
    Some(names.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect())
}

/// The columns of the dependency of a fault.
fn tied(fault: &Value) -> Vec<String> {
    let side = |name: &str| list(&fault["dependency"][name]).unwrap_or_default();
    [side("determinant"), side("dependent")].concat()
}
