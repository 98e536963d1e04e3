//! Plan of the method `slicing`.
//!
//! The data may decide the columns, and always decides the buckets: splits are refused by sensitive values. The guarantees assume
//! an adversary without minimality.

use std::sync::Arc;

use super::columns::by_association;
use super::{ColumnChoice, SlicedDesign, SlicingDiversity, SlicingError, SlicingPlan, WholeTableViolation, is_cover};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::privacy::RuleStatus;
use crate::privacy::links::Strata;
use crate::problem::{Fault, Kind};
use crate::publication::{MethodDetails, TableProtection};
use crate::publish::anatomy;
use crate::publish::design::{Decision, Design, DesignRemark};
use crate::publish::designed_rule::{DesignedRule, LinkedReason, RuleRejection};
use crate::publish::designed_table::{DesignedTable, TableDesign};
use crate::publish::error::{PlanError, PlanRefusal};
use crate::publish::input::PlanInput;
use crate::publish::linked::{ConstantAttributes, LinkedSides, demands, link_across, linked_with, reject_all};
use crate::spec::SlicingSpec;

const ACROSS_COLUMNS_DETAIL: &str = "this diversity is not proved where a dependency ties attributes of different columns; put them into one \
     column, or use the diversity \"bucket\" with columns that share no attribute";
const GENERALIZED_COLUMNS_DETAIL: &str = "generalized columns are not proved where a dependency ties the sensitive attribute to another; leave \
     column_k out";

/// Plans a slicing. The columns are left undecided if they need rows that are unknown.
///
/// # Errors
/// [`PlanError`] with every fault that can be shown, or on cancellation.
pub fn plan(spec: &SlicingSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
    let mut rule = anatomy::designed_rule(&spec.rule, input);
    let mut plan = SlicingPlan::from_spec(spec, AttrSet::first(input.counts.attributes()));
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
    let wide = sensitive_column(&columns, plan.sensitive);
    let columns = if rule.is_refused() { columns } else { narrowed(&plan, columns, input, control)? };
    let left = wide.minus(sensitive_column(&columns, plan.sensitive));
    let mut decision = Decision::ByData(None);
    let constant = constant_attributes(&plan, &columns, &mut rule, input, control)?;
    let is_linked = !constant.attributes.is_empty();
    plan.strata = input.rows.filter(|_| is_linked).map(|rows| Arc::new(Strata::new(rows.strata, constant.attributes)));
    if let Some(rows) = input.rows
        && !rule.is_refused()
        && let Err(error) = plan.check_whole(rows.table, &columns, rows.table, control)
    {
        let mut violation = WholeTableViolation::from_error(error, &columns, plan.sensitive)?;
        violation.known = violation.known.union(constant.attributes);
        rule.largest_l = rule.largest_l.min(violation.largest_l());
        decision = Decision::NotDiverse(violation);
    }
    let mut design = design(plan, columns, rule, decision);
    design.used_dependencies = constant.because;
    if !left.is_empty() {
        design.remarks.push(DesignRemark::SensitiveColumnNarrowed(left));
    }
    if let Some(TableDesign::Sliced(sliced)) = design.tables.first_mut().map(|table| &mut table.design) {
        let constant = constant.attributes.union(constant.passed);
        sliced.guards.iter_mut().for_each(|guard| guard.constant = constant);
    }
    Ok(design)
}

/// The attributes in which every bucket has to be constant; the rule is rejected where no strata keep it.
///
/// Given its bucket and the rest of the sensitive column, a row has each sensitive value there with equal chance. Mixtures
/// over buckets, and columns that share attributes, are not proved under dependencies between columns.
fn constant_attributes(
    plan: &SlicingPlan,
    columns: &[AttrSet],
    rule: &mut DesignedRule,
    input: &PlanInput<'_>,
    control: &Control,
) -> Result<ConstantAttributes, Cancelled> {
    let none = ConstantAttributes::default();
    if is_cover(columns) || !matches!(plan.diversity, SlicingDiversity::Bucket(_)) {
        if let Some(link) = link_across(columns, input) {
            rule.reject(RuleRejection::Unproved(link.because, ACROSS_COLUMNS_DETAIL));
        }
        return Ok(none);
    }
    let protected = AttrSet::one(plan.sensitive);
    // every value of the rest of the sensitive column keeps the guarantee in its bucket; strata as references are of buckets
    let of_column = rule.rule.guarantee.reference().is_table();
    let sides = LinkedSides {
        protected,
        row_side: plan.attributes.minus(protected),
        constant: if of_column { sensitive_column(columns, plan.sensitive).minus(protected) } else { AttrSet::EMPTY },
        demands: demands([&*rule]),
    };
    match sides.constant(std::slice::from_ref(rule), input, control)? {
        Ok(constant) => {
            let least = plan.limits().min_bucket;
            let is_small =
                |table: &_| Strata::new(table, constant.attributes).sizes().iter().any(|size| (*size as usize) < least);
            if !constant.attributes.is_empty() && input.rows.is_some_and(|rows| is_small(rows.strata)) {
                let dependency = constant.because.first().copied();
                let strata = constant.attributes;
                let reason = LinkedReason { dependency, strata, is_fixed: true, ..LinkedReason::default() };
                rule.reject(RuleRejection::Linked(reason));
            }
            if let Some(&dependency) = constant.because.first().filter(|_| plan.column_k.is_some()) {
                rule.reject(RuleRejection::Unproved(dependency, GENERALIZED_COLUMNS_DETAIL));
            }
            Ok(constant)
        }
        Err(reason) => {
            reject_all(std::slice::from_mut(rule), reason);
            Ok(none)
        }
    }
}

/// The columns, those with the sensitive attribute last; `None` if they depend on unknown rows.
fn decided_columns(
    plan: &SlicingPlan,
    input: &PlanInput<'_>,
    control: &Control,
) -> Result<Option<Vec<AttrSet>>, PlanError> {
    let mut columns = match (&plan.columns, input.rows) {
        (ColumnChoice::Explicit(columns), None) => columns.clone(),
        (_, None) => return Ok(None),
        (choice, Some(rows)) => {
            let linked = linked_with(plan.sensitive, plan.attributes, input);
            let moved = match choice {
                ColumnChoice::Count(count) if !linked.is_empty() && *count > 1 => {
                    Some(ColumnChoice::Linked { count: *count, linked })
                }
                _ => None,
            };
            let choice = moved.as_ref().unwrap_or(choice);
            let columns = choice.divide(rows.table, plan.attributes, plan.sensitive, &plan.bins, control);
            columns.map_err(SlicingError::from)?
        }
    };
    columns.sort_by_key(|column| column.contains(plan.sensitive));
    Ok(Some(columns))
}

/// The first column with the sensitive attribute.
fn sensitive_column(columns: &[AttrSet], sensitive: Attr) -> AttrSet {
    columns.iter().copied().find(|column| column.contains(sensitive)).unwrap_or_default()
}

/// A number of columns, of which the sensitive one is as wide as the whole table allows: of its attributes, the closest correlates
/// first, those stay with which the whole table keeps the guarantee. Other columns are returned as they are.
fn narrowed(
    plan: &SlicingPlan,
    columns: Vec<AttrSet>,
    input: &PlanInput<'_>,
    control: &Control,
) -> Result<Vec<AttrSet>, PlanError> {
    let (ColumnChoice::Count(count @ 2..), Some(rows)) = (&plan.columns, input.rows) else { return Ok(columns) };
    let keeps =
        |plan: &SlicingPlan, columns: &[AttrSet]| match plan.check_whole(rows.table, columns, rows.table, control) {
            Ok(()) => Ok(true),
            Err(SlicingError::NotDiverse { .. }) => Ok(false),
            Err(error) => Err(PlanError::from(error)),
        };
    // what dependencies tie to the sensitive attribute stays with it
    if !linked_with(plan.sensitive, plan.attributes, input).is_empty() || keeps(plan, &columns)? {
        return Ok(columns);
    }
    let wide = sensitive_column(&columns, plan.sensitive);
    // boxes of other columns have no part in it
    let exact = SlicingPlan { column_k: None, ..plan.clone() };
    let ranked = by_association(rows.table, wide, plan.sensitive, &plan.bins, control);
    let mut linked = AttrSet::EMPTY;
    for attr in ranked.map_err(SlicingError::from)? {
        let with = linked.with(attr).with(plan.sensitive);
        if keeps(&exact, &[plan.attributes.minus(with), with])? {
            linked = linked.with(attr);
        }
    }
    let choice = ColumnChoice::Linked { count: *count, linked };
    let columns = choice.divide(rows.table, plan.attributes, plan.sensitive, &plan.bins, control);
    Ok(columns.map_err(SlicingError::from)?)
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
