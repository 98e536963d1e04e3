//! Plan of the method `slicing`.
//!
//! The data may decide the columns, and always decides the buckets: splits are refused by sensitive values. The guarantees assume
//! an adversary without minimality.

use super::{ColumnChoice, SlicedDesign, SlicingError, SlicingPlan, WholeTableViolation};
use crate::control::Control;
use crate::microdata::{Attr, AttrSet};
use crate::privacy::RuleStatus;
use crate::problem::{Fault, Kind};
use crate::publication::{MethodDetails, TableProtection};
use crate::publish::anatomy;
use crate::publish::design::{Decision, Design};
use crate::publish::designed_rule::DesignedRule;
use crate::publish::designed_table::{DesignedTable, TableDesign};
use crate::publish::error::{PlanError, PlanRefusal};
use crate::publish::input::PlanInput;
use crate::spec::SlicingSpec;

/// Plans a slicing. The columns are left undecided if they need rows that are unknown.
///
/// # Errors
/// [`PlanError`] with every fault that can be shown, or on cancellation.
pub fn plan(spec: &SlicingSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
    let mut rule = anatomy::designed_rule(&spec.rule, input);
    let plan = SlicingPlan::from_spec(spec, AttrSet::first(input.counts.attributes()));
    check_floor(spec, input)?;
    if rule.take_ineligibility().is_some() {
        // wider columns cannot keep what the sensitive attribute by itself does not
        let (most, of) = (input.counts.largest(plan.sensitive), input.counts.rows());
        let violation =
            WholeTableViolation { known: AttrSet::EMPTY, sensitive: plan.sensitive, most, of, joined: false };
        return Ok(Design { decision: Decision::NotDiverse(violation), ..Design::new(Vec::new(), vec![rule]) });
    }
    let Some(columns) = decided_columns(&plan, input, control)? else {
        return Ok(Design { decision: Decision::Undecided, ..Design::new(Vec::new(), vec![rule]) });
    };
    let mut decision = Decision::ByData(None);
    if let Some(rows) = input.rows
        && let Err(error) = plan.check_whole(rows.table, &columns, rows.table, control)
    {
        let violation = violation(error, &columns, plan.sensitive)?;
        rule.largest_l = rule.largest_l.min(violation.of / violation.most.max(1));
        decision = Decision::NotDiverse(violation);
    }
    Ok(design(plan, columns, rule, decision))
}

/// The columns, those with the sensitive attribute last; `None` if they depend on unknown rows.
fn decided_columns(
    plan: &SlicingPlan,
    input: &PlanInput<'_>,
    control: &Control,
) -> Result<Option<Vec<AttrSet>>, PlanError> {
    let mut columns = match (&plan.columns, input.rows) {
        (ColumnChoice::Explicit(columns), None) => columns.clone(),
        (ColumnChoice::Count(_) | ColumnChoice::SensitiveWidth { .. }, None) => return Ok(None),
        (choice, Some(rows)) => {
            let columns = choice.divide(rows.table, plan.attributes, plan.sensitive, &plan.bins, control);
            columns.map_err(|error| refused(error.into()))?
        }
    };
    columns.sort_by_key(|column| column.contains(plan.sensitive));
    Ok(Some(columns))
}

/// The proof that the whole table violates the diversity in these columns.
fn violation(error: SlicingError, columns: &[AttrSet], sensitive: Attr) -> Result<WholeTableViolation, PlanError> {
    match error {
        SlicingError::NotDiverse { most, of } => {
            let known = columns.last().copied().unwrap_or_default().without(sensitive);
            Ok(WholeTableViolation { known, sensitive, most, of, joined: false })
        }
        SlicingError::NotDiverseTogether { known, most, of } => {
            Ok(WholeTableViolation { known, sensitive, most, of, joined: true })
        }
        other => Err(refused(other)),
    }
}

/// The design of one sliced table.
fn design(plan: SlicingPlan, columns: Vec<AttrSet>, rule: DesignedRule, decision: Decision) -> Design {
    let guards = match plan.diversity.protection(&columns, plan.sensitive) {
        TableProtection::Guarding(guards) => guards,
        TableProtection::Plain | TableProtection::Exclusive => Vec::new(),
    };
    let (attributes, guarding) = (plan.attributes, !guards.is_empty());
    let known = attributes.without(plan.sensitive);
    let details = MethodDetails::Slicing {
        columns: columns.clone(),
        diversity: plan.published_diversity(),
        column_k: plan.column_k,
    };
    let table = DesignedTable::new(attributes, TableDesign::Sliced(SlicedDesign { plan, columns, guards }));
    let mut design = Design { decision, details, ..Design::new(vec![table], vec![rule]) };
    design.judge();
    if !guarding {
        // the exclusive table keeps the rule: no other table may share an attribute
        design.rules[0].status = RuleStatus::Guardian { table: 0, known };
    }
    design
}

/// Refuses a smallest bucket or box that is larger than the table.
fn check_floor(spec: &SlicingSpec, input: &PlanInput<'_>) -> Result<(), PlanRefusal> {
    let rows = input.counts.rows();
    let members = [
        ("/method/min_bucket", spec.min_bucket, "an integer from 1 to the number of rows"),
        ("/method/column_k", spec.column_k, "an integer from 2 to the number of rows"),
    ];
    let above = members.into_iter().filter(|(_, declared, _)| declared.is_some_and(|declared| declared > rows));
    let faults: Vec<Fault> = above
        .map(|(pointer, _, allowed)| {
            Fault::new(pointer, Kind::ParameterRange, format!("expected {allowed}")).with("allowed", allowed)
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(PlanRefusal(faults)) }
}

/// The refusal of columns that the data does not allow.
fn refused(error: SlicingError) -> PlanError {
    let kind = match error {
        SlicingError::Cancelled(cancelled) => return PlanError::Cancelled(cancelled),
        SlicingError::TooDense => Kind::JoinTooDense,
        _ => Kind::BadColumns,
    };
    PlanError::Refused(PlanRefusal(vec![Fault::new("/method/columns", kind, error.to_string())]))
}
