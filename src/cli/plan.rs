//! `guardian plan`: what a publication would do, without publishing.

use std::fmt::Write as _;
use std::io::IsTerminal;

use clap::Args;
use serde_json::Value;

use super::engine_options::{EngineJob, EngineOptions};
use super::exit::CommandOutcome;
use super::job_files::JobFiles;
use super::population::OpenedPopulation;
use super::progress::ProgressBarGuard;
use super::words::{
    BAD, GOOD, guarantee_in_words, reason_in_words, rule_in_words, section, share_in_words, styled, value_in_words,
    wrapped,
};
use super::{input, interrupt, refusal, standard_output};
use crate::config::LogFormat;
use crate::control::Control;
use crate::engine::{self, ColumnSize, DryRunInput, Plan, PlanExposures, PlanRule, PlanTable, PlannedNight, TablePair};
use crate::ledger::EarlierDisclosures;
use crate::microdata::{ColumnProfile, Table};
use crate::problem::{self, Fault, Kind, Problem};
use crate::publication::PlanRuleStatus;
use crate::random::{RandomStreams, ReleaseKey};
use crate::report::{NightCounts, SpecificationNotice};
use crate::spec::{DocumentSource, ParsedDocument};
use crate::telemetry;

/// The files of the plan.
#[derive(Args)]
pub struct PlanArguments {
    #[command(flatten)]
    files: JobFiles,
    #[command(flatten)]
    engine: EngineOptions,
}

pub(super) fn run(arguments: &PlanArguments, json: bool) -> Result<CommandOutcome, CommandOutcome> {
    telemetry::start(LogFormat::Text);
    let control = Control::default();
    interrupt::cancel_on_signal(&control);
    let shown = ProgressBarGuard::begin(&control);
    let planned = match &arguments.engine.engine {
        Some(url) => {
            let (files, options) = (&arguments.files, &arguments.engine);
            let job = EngineJob { files, options, streams: drawn_streams()?, reproducible: false };
            PlannedJob { plan: job.plan(url, &control)?, memory: None }
        }
        None => planned(arguments, &input::document(arguments.files.specification()?)?, &control)?,
    };
    drop(shown);
    if json || !std::io::stdout().is_terminal() {
        let text = serde_json::to_string_pretty(&planned.plan);
        let text = text.map_err(|error| CommandOutcome::Internal(error.to_string()))?;
        return standard_output::print(&(text + "\n"));
    }
    standard_output::print_styled(&planned.in_words())
}

/// A plan with the memory that a publication would take on this machine, where it holds the rows.
struct PlannedJob {
    plan: Plan,
    memory: Option<u64>,
}

/// The streams of a key that no job uses.
fn drawn_streams() -> Result<RandomStreams, CommandOutcome> {
    let key = ReleaseKey::draw().map_err(|error| CommandOutcome::Internal(error.to_string()))?;
    Ok(RandomStreams::Keyed(key))
}

/// Plans as the service does, without a ledger.
fn planned(arguments: &PlanArguments, document: &Value, control: &Control) -> Result<PlannedJob, CommandOutcome> {
    let unit = arguments.files.unit();
    let streams = &drawn_streams()?;
    let (table, origin) = (arguments.files.table()?, DocumentSource::LocalPlan);
    let opened = arguments.files.population().open()?;
    let persons = opened.as_ref().map(OpenedPopulation::keys);
    let source = input::JobSource { table, document, unit: &unit, streams, persons, origin };
    let read = input::read(source, control)?;
    let undeclared = read.undeclared_subject();
    let input::ReadJob { context, rows, columns, dropped, profiles, reading, persons, republished, .. } = read;
    if let Some(problem) = persons {
        return Err(CommandOutcome::Refused(Box::new(problem)));
    }
    let ParsedDocument { specification, mut faults } = reading;
    let Some(specification) = specification.filter(|of| of.used.len() == columns.len()) else {
        return Err(context.refusal(faults, None));
    };
    let table = Table::new(specification.names.clone(), columns);
    let is_malformed =
        |fault: &Fault| matches!(fault.kind, Kind::UnknownField | Kind::ParameterRange | Kind::RuleMalformed);
    if faults.iter().any(is_malformed) {
        // no outcome can be planned
        faults.extend(engine::check_and_repair(&specification, &table));
        return Err(context.refusal(faults, Some(&table)));
    }
    let earlier = EarlierDisclosures::default();
    let republish = opened.as_ref().map(|population| population.input(&republished));
    let input = DryRunInput { specification: &specification, earlier: &earlier, faults, republish };
    let dropped: Vec<_> = dropped.uploaded().collect();
    let pair = TablePair { published: &table, extra: None, dropped: &dropped };
    let planned = engine::dry_run(input, pair, streams, control);
    let mut plan = planned.map_err(|stopped| match stopped {
        engine::EngineError::Refused(problem) if !problem.errors.is_empty() => {
            context.refusal(problem.errors, Some(&table))
        }
        other => other.into(),
    })?;
    plan.warnings.extend(undeclared);
    for listed in plan.problems.iter_mut().filter(|listed| listed["type"] == Kind::InvalidSpecification.uri()) {
        if let Some(faults) = problem::faults_of(listed) {
            *listed = context.problem(faults, Some(&table)).to_json("about:blank");
        }
    }
    Ok(PlannedJob { plan, memory: Some(memory(rows, &profiles)) })
}

fn memory(rows: u64, profiles: &[ColumnProfile]) -> u64 {
    let size = |profile: &ColumnProfile| ColumnSize {
        codes: profile.distinct.unwrap_or(rows) + u64::from(profile.missing > 0),
        bytes: profile.bytes.unwrap_or(0),
    };
    engine::release_memory(rows, &profiles.iter().map(size).collect::<Vec<_>>())
}

impl PlannedJob {
    /// The plan as text with styles.
    fn in_words(&self) -> String {
        let Self { plan, memory } = self;
        let (style, verdict) = if plan.feasible {
            (GOOD, "feasible: it would be published")
        } else {
            (BAD, "infeasible: nothing would be published")
        };
        let mut text = format!("{}\n", styled(style, verdict));
        let memory = memory.map(|bytes| wrapped(0, &format!("memory: about {} MiB", bytes.div_ceil(1 << 20))));
        text += &memory.unwrap_or_default();
        section(&mut text, "tables", plan.tables.iter().map(table_in_words));
        section(&mut text, "rules", plan.rules.iter().map(plan_rule_in_words));
        let night = plan.night.as_ref().map(night_in_words).unwrap_or_default();
        section(&mut text, "night", night);
        let exposures = plan.exposures.as_ref().map(exposures_in_words).unwrap_or_default();
        section(&mut text, "exposures", exposures);
        section(&mut text, "notices", plan.warnings.iter().map(notice_in_words));
        for listed in &plan.problems {
            // writing to a text cannot fail
            let _ = write!(text, "\n{}", listed_problem(listed));
        }
        text
    }
}

fn table_in_words(table: &PlanTable) -> String {
    let PlanTable { name, kind, protection, attributes, sensitive } = table;
    let apart = sensitive.as_ref().filter(|names| !names.is_empty());
    let apart = apart.map_or_else(String::new, |names| format!("; apart: {}", names.join(", ")));
    let (kind, protection) = (serialized(kind), serialized(protection));
    format!("{name} ({kind}, {protection}): {}{apart}", attributes.join(", "))
}

/// The name of a vocabulary's word.
fn serialized(word: &impl serde::Serialize) -> String {
    serde_json::to_value(word).map(|value| value_in_words(&value)).unwrap_or_default()
}

fn plan_rule_in_words(rule: &PlanRule) -> String {
    let written = rule_in_words(&rule.quasi_identifiers, &rule.sensitive, rule.combination);
    let guarantee = guarantee_in_words(&rule.guarantee);
    let reason = match (&rule.enforced_by, &rule.violated_by) {
        (Some(enforced_by), _) => reason_in_words(enforced_by),
        (None, Some(reaching)) => format!("broken: {} reaches it", reaching.join(", ")),
        (None, None) if !rule.eligible => format!("the data allows l of at most {}", rule.largest_l),
        (None, None) => "not decided".to_owned(),
    };
    let verdict = match rule.status {
        PlanRuleStatus::Kept => styled(GOOD, "kept"),
        PlanRuleStatus::Implied => styled(GOOD, "implied"),
        PlanRuleStatus::Refused => styled(BAD, "refused"),
    };
    format!("{verdict}: {written} [{guarantee}]: {reason}")
}

/// What tonight publishes, and what it costs.
fn night_in_words(planned: &PlannedNight) -> Vec<String> {
    let PlannedNight { night, min_newcomers, counts, rows, counterfeits, because, .. } = planned;
    let NightCounts { known, newcomers, returning, departed, changed, waiting, withheld, moved, .. } = counts;
    vec![
        format!("night {night}: {rows} rows would be published, with {counterfeits} counterfeits: {because}"),
        format!(
            "{known} persons are known, {returning} of them return; {departed} left; {newcomers} are new, {waiting} of them would \
             wait (fewer than {min_newcomers} always do)"
        ),
        format!(
            "{changed} known persons have another sensitive value: {moved} would move; {withheld} rows would be withheld"
        ),
    ]
}

fn exposures_in_words(exposures: &PlanExposures) -> Vec<String> {
    let unique = exposures.rows.iter().filter(|rows| rows.unique.count > 0).map(|rows| {
        format!("{}: {} are unique by {}", rows.table, share_in_words(rows.unique), rows.attributes.join(", "))
    });
    let practitioner = &exposures.practitioner;
    let followed =
        practitioner.values.iter().filter(|values| values.protected && values.fixed.count > 0).map(|values| {
            let share = share_in_words(values.fixed);
            format!("who knows all else of a person knows {} for {share}, if no rule is against it", values.attribute)
        });
    let unprotected =
        (!exposures.unprotected.is_empty()).then(|| format!("no rule protects {}", exposures.unprotected.join(", ")));
    unique.chain(followed).chain(unprotected).collect()
}

/// A notice with its type.
fn notice_in_words(notice: &SpecificationNotice) -> String {
    format!("{}: {}", notice.r#type, notice.detail)
}

/// A problem of a plan as the command line prints refusals.
fn listed_problem(listed: &Value) -> String {
    let kind = Kind::ALL.iter().copied().find(|kind| listed["type"] == kind.uri()).unwrap_or(Kind::Internal);
    let detail = listed["detail"].as_str().unwrap_or_default();
    let errors = problem::faults_of(listed).unwrap_or_default();
    refusal::in_words(&Problem { errors, ..Problem::new(kind, detail) })
}
