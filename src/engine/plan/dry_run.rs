use serde_json::Value;

use super::exposure::RowsAtHand;
use super::night::PlannedNight;
use super::types::to_report;
use super::types::{Plan, PlanComposition, PlanDependencies};
use super::{exposure, proposal};
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::engine::prepare::annotations::{annotate, annotate_with_unknown};
use crate::engine::prepare::cross_dependencies::{EarlierColumns, ExtendedTable};
use crate::engine::prepare::known::JobDependencies;
use crate::engine::prepare::known_forms::DescribedDependencies;
use crate::engine::prepare::losses;
use crate::engine::prepare::repairs::{PrepareAgain, RepairTrials};
use crate::engine::prepare::unpublished::{OtherColumns, UnpublishedLinks};
use crate::engine::prepare::unused_thresholds::Inspection;
use crate::engine::prepare::wording::{composition_problem, notices_of};
use crate::engine::prepare::{PrepareInput, PreparedRelease, feasible, ledger_union, prepare, secret_order, wording};
use crate::engine::release::input::RepublishInput;
use crate::engine::release::night::NightOrder;
use crate::ledger::EarlierDisclosures;
use crate::microdata::{AttrSet, AttributeCounts, Table, UploadedColumn};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::CompositionVerdict;
use crate::publish;
use crate::publish::{Decision, PlanError, PlanRefusal, PlanRows, SecretRows};
use crate::random::RandomStreams;
use crate::report::SpecificationNotice;
use crate::spec::Specification;

/// The faults that the counts of columns show: rules that the data cannot satisfy.
#[must_use]
pub fn check(specification: &Specification, counts: &dyn AttributeCounts) -> Vec<Fault> {
    let nothing = EarlierDisclosures::default();
    checked(specification, JobDependencies::declared(specification), &of_counts(counts, &nothing))
}

/// The faults of [`check`], with remedies.
#[must_use]
pub fn check_and_repair(specification: &Specification, counts: &dyn AttributeCounts) -> Vec<Fault> {
    let (nothing, dependencies) = (EarlierDisclosures::default(), JobDependencies::declared(specification));
    let prepare = of_counts(counts, &nothing);
    let faults = checked(specification, dependencies.clone(), &prepare);
    let trials = RepairTrials { specification, dependencies: &dependencies, prepare: &prepare };
    // nothing cancels it
    trials.tried(faults.clone()).unwrap_or(faults)
}

/// Prepares specifications from the counts of single columns.
fn of_counts<'a>(
    counts: &'a dyn AttributeCounts,
    earlier: &'a EarlierDisclosures,
) -> impl Fn(&Specification, JobDependencies, AttrSet) -> Result<PreparedRelease, PlanError> + 'a {
    move |specification, dependencies, dropped| {
        let (union, joined) = (ledger_union(specification, earlier)?, &earlier.releases);
        let input = PrepareInput { counts, rows: None, union, joined, dependencies, extended: None, dropped };
        prepare(specification, input, &Control::default())
    }
}

fn checked(specification: &Specification, dependencies: JobDependencies, prepare: PrepareAgain<'_>) -> Vec<Fault> {
    match prepare(specification, dependencies, AttrSet::EMPTY) {
        Err(PlanError::Refused(PlanRefusal(faults))) => faults,
        Err(PlanError::Cancelled(_)) => Vec::new(),
        Ok(prepared) => {
            let feasible = feasible(&prepared, specification);
            feasible.err().map_or_else(Vec::new, |PlanRefusal(faults)| faults)
        }
    }
}

/// The columns of a job, and the other columns that earlier releases disclose, rows in the same order.
#[derive(Clone, Copy)]
pub struct TablePair<'a> {
    /// The columns that the specification uses.
    pub published: &'a Table,
    /// The columns of earlier releases that the specification does not use.
    pub extra: Option<&'a Table>,
    /// The columns that no release publishes.
    pub dropped: &'a [UploadedColumn<'a>],
}

/// A specification to plan.
pub struct DryRunInput<'a> {
    /// The specification.
    pub specification: &'a Specification,
    /// The disclosures about the same data subjects.
    pub earlier: &'a EarlierDisclosures,
    /// Faults of the specification itself; with any of them the job is refused.
    pub faults: Vec<Fault>,
    /// The population, where the specification republishes it and it can be read.
    pub republish: Option<RepublishInput<'a>>,
}

/// The dry run of a job. Buckets are drawn from `streams`, which no job uses.
///
/// # Errors
/// [`EngineError::Refused`] when the specification cannot be planned at all.
pub fn dry_run(
    DryRunInput { specification, earlier, faults, republish }: DryRunInput<'_>,
    TablePair { published: table, extra, dropped }: TablePair<'_>,
    streams: &RandomStreams,
    control: &Control,
) -> Result<Plan, EngineError> {
    let union = ledger_union(specification, earlier).map_err(EngineError::from)?;
    let others = OtherColumns::new(specification, dropped, extra);
    let unpublished = UnpublishedLinks::find(specification, table, &others, &union, control)?;
    let specification = &*unpublished.specification;
    let union = ledger_union(specification, earlier).map_err(EngineError::from)?;
    let mut dependencies = JobDependencies::new(specification, table, control)?;
    unpublished.add_to(&mut dependencies, &union);
    let order_of_rows = secret_order(table, streams);
    let (permuted, unknown) = annotate(specification, table.permuted(&order_of_rows), Inspection::Allowed);
    let mut faults = annotate_with_unknown(faults, unknown);
    let strata = unpublished.strata(&others, &permuted, &order_of_rows);
    let rows = PlanRows::new(&permuted, &strata, streams);
    let secret = SecretRows { upload: table, permuted: &permuted, order: &order_of_rows };
    let extended =
        ExtendedTable::new(specification, table, EarlierColumns { extra, union: &union }, &dependencies, control)?;
    let joined = &earlier.releases;
    let prepare_again = |specification: &Specification, dependencies: JobDependencies, dropped: AttrSet| {
        let union = ledger_union(specification, earlier)?;
        let (rows, extended) = (Some(rows), Some(&extended));
        let input = PrepareInput { counts: &permuted, rows, union, joined, dependencies, extended, dropped };
        prepare(specification, input, control)
    };
    let trials = RepairTrials { specification, dependencies: &dependencies, prepare: &prepare_again };
    let prepared = match prepare_again(specification, dependencies.clone(), AttrSet::EMPTY) {
        Err(PlanError::Refused(PlanRefusal(more))) => Err(PlanRefusal(trials.tried(more)?).into()),
        prepared => prepared,
    };
    let mut prepared = plan_or_refuse(prepared, &mut faults)?;
    if let Err(PlanRefusal(infeasible)) = feasible(&prepared, specification) {
        faults.extend(trials.tried(infeasible)?);
    }
    let (mut problems, mut night) = (Vec::new(), None);
    if let (Some(terms), Some(population), true) = (specification.republish, &republish, faults.is_empty()) {
        let order = NightOrder { specification, population, terms, streams };
        let planned = planned_night(&order, &mut prepared, secret, control)?;
        night = planned.map_err(|problem| problems.push(problem)).ok();
    }
    let mut plan = Plan { night, ..assess(specification, earlier, &prepared, faults, problems) };
    plan.warnings.extend(losses::describe_values(specification, &permuted));
    let (design, dependencies) = (&prepared.design, &prepared.dependencies);
    plan.warnings.extend(DescribedDependencies { dependencies, design, specification }.failing(table.rows()));
    let names = &specification.published_names;
    exposure::add_exposure(&mut plan, design, &permuted, names, control)?;
    if plan.feasible {
        let mut rows = RowsAtHand { table: &permuted, control };
        plan.exposures = Some(exposure::exposures(design, names, &mut rows)?);
    }
    if plan.feasible || !losses::need_made_tables(specification) {
        plan.warnings.extend(losses_of(specification, &prepared, secret, streams, control)?);
    }
    Ok(plan)
}

/// What the tables of a design lose; where that depends on the cells, they are made.
fn losses_of(
    specification: &Specification,
    prepared: &PreparedRelease,
    rows: SecretRows<'_>,
    streams: &RandomStreams,
    control: &Control,
) -> Result<Vec<SpecificationNotice>, EngineError> {
    if losses::need_made_tables(specification) {
        let made = publish::execute(&prepared.design, &specification.published_names, rows, streams, control)?;
        let mut notices = losses::describe_made(specification, &made, rows.upload);
        notices.extend(losses::describe_formulas(specification, losses::written_columns(&made)));
        return Ok(notices);
    }
    // cells are values
    let written = prepared.design.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.attributes));
    let columns = written.iter().map(|attr| (attr, rows.upload.column(attr)));
    Ok(losses::describe_formulas(specification, columns).into_iter().collect())
}

/// What a night would publish, or the problem that a job would answer with.
fn planned_night(
    order: &NightOrder<'_>,
    prepared: &mut PreparedRelease,
    rows: SecretRows<'_>,
    control: &Control,
) -> Result<Result<PlannedNight, Value>, EngineError> {
    match order.draw(&mut prepared.design, rows, control) {
        Ok(drawn) => Ok(Ok(PlannedNight::new(&drawn.details, &drawn.counts))),
        Err(EngineError::Refused(problem)) => Ok(Err(problem.to_json("about:blank"))),
        Err(other) => Err(other),
    }
}

/// The dry run from the counts of single columns, for a job that is refused with `problem` before its table is read.
///
/// # Errors
/// As [`dry_run`].
pub fn dry_run_from_counts(
    DryRunInput { specification, earlier, mut faults, .. }: DryRunInput<'_>,
    counts: &dyn AttributeCounts,
    problem: &Problem,
) -> Result<Plan, EngineError> {
    let (dependencies, control) = (JobDependencies::declared(specification), Control::default());
    let union = ledger_union(specification, earlier).map_err(EngineError::from)?;
    let joined = &earlier.releases;
    let input =
        PrepareInput { counts, rows: None, union, joined, dependencies, extended: None, dropped: AttrSet::EMPTY };
    let prepared = prepare(specification, input, &control);
    let prepared = plan_or_refuse(prepared, &mut faults)?;
    if let Err(PlanRefusal(infeasible)) = feasible(&prepared, specification) {
        faults.extend(infeasible);
    }
    Ok(assess(specification, earlier, &prepared, faults, vec![problem.to_json("about:blank")]))
}

fn plan_or_refuse(
    prepared: Result<PreparedRelease, PlanError>,
    faults: &mut Vec<Fault>,
) -> Result<PreparedRelease, EngineError> {
    prepared.map_err(|unplanned| match unplanned {
        PlanError::Refused(PlanRefusal(more)) => {
            // a document with faults was read in part: a missing column may be an unreadable one
            let is_read = faults.is_empty();
            let missing = |fault: &Fault| matches!(fault.kind, Kind::BadColumns | Kind::EmptyTable);
            faults.extend(more.into_iter().filter(|fault| is_read || !missing(fault)));
            PlanRefusal(std::mem::take(faults)).into()
        }
        PlanError::Cancelled(cancelled) => cancelled.into(),
    })
}

/// The plan of a design with all problems of its job.
pub(in crate::engine) fn assess(
    specification: &Specification,
    earlier: &EarlierDisclosures,
    prepared: &PreparedRelease,
    mut faults: Vec<Fault>,
    mut problems: Vec<Value>,
) -> Plan {
    faults.extend(proposal::violations(&prepared.design, &prepared.dependencies.names(specification)));
    if !faults.is_empty() {
        problems.push(Problem::of_faults(faults).to_json("about:blank"));
    }
    let mut against: Vec<uuid::Uuid> = earlier.disclosures.iter().map(|(release, _)| *release).collect();
    against.dedup();
    let mut composition =
        PlanComposition { verdict: CompositionVerdict::Safe, against, violations: Vec::new(), counts: None };
    if prepared.design.tables.is_empty() && prepared.design.decision != Decision::ByRules {
        composition.verdict = CompositionVerdict::Undecidable;
    } else if let Err(violations) = prepared.compose() {
        composition.verdict = CompositionVerdict::Violated;
        if specification.unproven.is_none() {
            problems.push(composition_problem(&violations).to_json("about:blank"));
        }
        composition.violations = violations;
    }
    let described =
        DescribedDependencies { dependencies: &prepared.dependencies, design: &prepared.design, specification };
    let mut warnings = notices_of(specification);
    warnings.extend(described.notices());
    warnings.extend(proposal::redundant_tables(specification, &prepared.design, &prepared.union));
    warnings.extend(wording::describe_unbounded(&prepared.design, &specification.published_names));
    warnings.extend(wording::describe_exactness(specification, &prepared.design));
    warnings.extend(losses::describe_remarks(specification, &prepared.design));
    warnings.extend(losses::describe_losses(specification, &prepared.design));
    warnings.extend(wording::describe_choice(&specification.method, &prepared.design.decision));
    warnings.extend(prepared.design.planned().filter_map(wording::describe_inference));
    warnings.extend(prepared.weakened().iter().map(wording::describe_weakened));
    Plan {
        dependencies: PlanDependencies::new(&described),
        ..to_report(prepared, specification, composition, problems, warnings)
    }
}
