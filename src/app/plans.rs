//! Dry runs of documents.

use serde_json::Value;
use uuid::Uuid;

use super::blocking::run_engine;
use super::people::{identity_warning, unrelated_warning};
use super::remedies::{FaultyDocument, remedied};
use super::service::{AppService, ResolvedDocument, add_composition, check_inspection};
use crate::control::Control;
use crate::engine::{EngineError, Plan};
use crate::identity::{Caller, Scope};
use crate::inputs::{
    ChainPlace, CompositionConflict, CompositionContext, InputEnv, InputError, JobContext, LoadedChain,
    OtherSelections, ProfileCounts, RepublishedPopulation,
};
use crate::ledger::EarlierDisclosures;
use crate::microdata::Table;
use crate::ports::{AuditAction, StoreError};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{NoticeKind, Unit};
use crate::random::{RandomStreams, ReleaseKey};
use crate::report::SpecificationNotice;
use crate::spec::DocumentSource;
use crate::{engine, inputs, problem};

impl AppService {
    /// The dry run of a document. Loads the columns it uses.
    ///
    /// # Errors
    /// `invalid-specification` when nothing can be planned, `not-found`, `gone`, or the store's problem.
    pub async fn plan(&self, caller: &Caller, document: &Value) -> Result<Plan, Problem> {
        let resolved = self.resolve(caller, document, DocumentSource::Plan).await?;
        let faulty = resolved.faulty(document, DocumentSource::Plan, &self.limits);
        let ResolvedDocument { dataset, profiles, reading, .. } = resolved;
        check_inspection(caller, &dataset)?;
        let mut faults = reading.faults;
        let Some(specification) = reading.specification else {
            return Err(remedied(faulty, Problem::of_faults(faults)).await);
        };
        let is_malformed =
            |fault: &Fault| matches!(fault.kind, Kind::UnknownField | Kind::ParameterRange | Kind::RuleMalformed);
        // the engine is asked for what could be released alone
        let is_vain = dataset.place.is_some() && !faults.is_empty();
        if is_vain || faults.iter().any(is_malformed) {
            // no outcome can be planned
            let counts = ProfileCounts { rows: dataset.rows, profiles: &profiles, used: &specification.used };
            faults.extend(engine::check_and_repair(&specification, &counts));
            return Err(remedied(faulty, Problem::of_faults(faults)).await);
        }
        let (context, env) = (JobContext::new(dataset, profiles, specification), self.env());
        let PlanLedger { earlier, clash, reused, unrelated, is_begun } = self.plan_ledger(&context, &env).await?;
        self.record(caller, AuditAction::Plan, context.dataset.id).await?;
        let identity_warning = identity_warning(&context.dataset);
        let undeclared = undeclared_subject(&context);
        let inputs = context.inputs(&env, &earlier).await?;
        let is_unproven = context.specification.unproven.is_some();
        let need = inputs.bytes(&self.budget);
        let may_be_made_here = inputs.may_be_made_here(&self.budget);
        let is_new = clash.is_none() && reused.is_none();
        let night = if is_new { self.planned_chain(caller, &context, &env, is_begun).await } else { Ok(None) };
        let no_rows = clash.as_ref().filter(|clash| clash.has_no_rows()).map(CompositionConflict::problem);
        let is_readable_here = context.dataset.is_readable_here();
        let second = || engine::remote_conflict(&context.specification, &earlier).filter(|_| !is_readable_here);
        let rows = no_rows.or_else(second).map_or_else(|| self.budget.check(need), Err);
        let (rows, night) = night.map_or_else(|problem| (Err(problem), None), |night| (rows, night));
        let work = DryRun { env, context, others: inputs.others, earlier, faults, faulty, night, may_be_made_here };
        let planned = match rows {
            Ok(()) => {
                let room = self.budget.try_acquire(need)?;
                let planned = run_engine("the plan", move |control| {
                    let _room = room;
                    work.run(control)
                });
                planned.await
            }
            // no table is loaded for what no job could do; the counts of single columns say the rest
            Err(problem) => run_engine("the plan", move |_| work.run_on_counts(&problem)).await,
        };
        let mut plan = planned?;
        // that there are no rows is said already
        let clash = clash.filter(|clash| !clash.has_no_rows());
        add_composition(&mut plan, clash.as_ref(), is_unproven);
        plan.warnings.extend(undeclared);
        plan.warnings.extend(identity_warning);
        plan.warnings.extend(unrelated.filter(|_| !is_unproven && reused.is_none()));
        plan.warnings.extend(reused.map(reuse_notice));
        Ok(plan)
    }

    /// The problem of a document with the remedies that a plan gives of bounds: it tries them on the rows, and counts of single columns
    /// say only what no rows allow. Where nothing can be planned, and for who sees no counts of the dataset, they stay as they are.
    pub(super) async fn tried_on_rows(
        &self,
        caller: &Caller,
        dataset: Uuid,
        document: &Value,
        mut problem: Problem,
    ) -> Problem {
        let is_bound = |fault: &Fault| matches!(fault.kind, Kind::RuleIneligible | Kind::InfeasibleRoot);
        if !problem.errors.iter().any(is_bound) || !self.sees_counts(caller, dataset).await {
            return problem;
        }
        let tried: Vec<Fault> = match self.plan(caller, document).await {
            Ok(plan) => plan.problems.iter().filter_map(problem::faults_of).flatten().collect(),
            Err(refused) => refused.errors,
        };
        for fault in problem.errors.iter_mut().filter(|fault| is_bound(fault)) {
            if let Some(same) = tried.iter().find(|of| (&of.pointer, of.kind) == (&fault.pointer, fault.kind)) {
                fault.remedies.clone_from(&same.remedies);
            }
        }
        problem
    }

    /// What a plan is checked against: the ledger without the release that an equal job would give back.
    async fn plan_ledger(&self, context: &JobContext, env: &InputEnv) -> Result<PlanLedger, Problem> {
        let JobContext { specification, .. } = context;
        let composition = context.composition(env).await?;
        // tables that are only proposed are no job's
        let reused = match specification.schema {
            Some(_) => None,
            None => {
                let key = self.reuse_key(context, &composition).await?;
                self.reused_release(context, &composition, key.releases.standing).await?
            }
        };
        let admission = &composition.people.admission;
        let (unrelated, is_begun) = (unrelated_warning(&admission.unrelated), admission.chain.is_some());
        let CompositionContext { mut earlier, clash, .. } = composition;
        if let Some(release) = reused {
            earlier.disclosures.retain(|(of, _)| *of != release);
            earlier.rules.retain(|(of, _)| *of != release);
        }
        Ok(PlanLedger { earlier, clash: clash.filter(|_| reused.is_none()), reused, unrelated, is_begun })
    }

    /// The chain that a night would continue; none of a job that publishes once, and none for callers who may not see counts of all
    /// data.
    async fn planned_chain(
        &self,
        caller: &Caller,
        context: &JobContext,
        env: &InputEnv,
        is_begun: bool,
    ) -> Result<Option<PlannedChain>, Problem> {
        let Some(population) = context.republished(env).await? else { return Ok(None) };
        let place = ChainPlace { tenant: &context.dataset.tenant, population: &population.name, is_begun };
        LoadedChain::check(env.store.as_ref(), &env.vault, place).await.map_err(InputError::from)?;
        // what becomes of rows says which values their persons were published with, and an upload may guess these
        if !caller.has_scope(Scope::DatasetsInspect) {
            return Ok(None);
        }
        // a plan begins none
        let chain = match is_begun {
            true => Some(LoadedChain::load(env.store.as_ref(), &env.vault, place).await.map_err(InputError::from)?),
            false => None,
        };
        Ok(Some(PlannedChain { population, chain }))
    }
}

/// The warning that persons seem to have several rows, where nothing is said of persons.
fn undeclared_subject(context: &JobContext) -> Option<SpecificationNotice> {
    let JobContext { dataset, profiles, .. } = context;
    let says_nothing = dataset.unit() == Unit::Row && dataset.person.is_empty();
    says_nothing.then(|| engine::undeclared_subject(profiles, dataset.rows)).flatten()
}

fn reuse_notice(release: Uuid) -> SpecificationNotice {
    SpecificationNotice {
        r#type: NoticeKind::ReleaseReused,
        pointer: None,
        detail: format!("an equal job has a release already; a job would give it back: {release}"),
    }
}

struct PlanLedger {
    earlier: EarlierDisclosures,
    clash: Option<CompositionConflict>,
    /// The release that an equal job would give back.
    reused: Option<Uuid>,
    /// That populations may have persons of the release, if there are such.
    unrelated: Option<SpecificationNotice>,
    /// Whether a night of the population is published.
    is_begun: bool,
}

/// The population that a plan republishes, and its chain if there is one.
struct PlannedChain {
    population: RepublishedPopulation,
    chain: Option<LoadedChain>,
}

/// The plan, or its refusal, with remedies of the faults that it lists.
fn mended(
    faulty: &FaultyDocument,
    planned: Result<Plan, EngineError>,
    table: Option<(&Table, &Control)>,
) -> Result<Plan, EngineError> {
    match planned {
        Ok(mut plan) => {
            plan.problems = faulty.mended(plan.problems, table);
            Ok(plan)
        }
        Err(EngineError::Refused(problem)) => Err(EngineError::Refused(faulty.with_remedies(problem, table))),
        Err(other) => Err(other),
    }
}

/// The plan of a document that could be read.
struct DryRun {
    env: InputEnv,
    context: JobContext,
    others: OtherSelections,
    earlier: EarlierDisclosures,
    faults: Vec<Fault>,
    faulty: FaultyDocument,
    night: Option<PlannedChain>,
    /// Whether the release is made here if the engine that has the rows does not make it.
    may_be_made_here: bool,
}

fn drawn_key() -> Result<ReleaseKey, EngineError> {
    ReleaseKey::draw().map_err(|error| EngineError::Failed {
        problem: Problem::new(Kind::Internal, "the operating system has no randomness to give"),
        cause: error.to_string(),
    })
}

impl DryRun {
    /// Plans where the release would be made; on a blocking thread.
    fn run(mut self, control: &Control) -> Result<Plan, EngineError> {
        let Some(place) = self.context.dataset.place.clone() else { return self.run_here(control) };
        if let Some(planned) = self.run_in_engine(control)? {
            return Ok(planned);
        }
        let mut plan = self.run_here(control)?;
        plan.warnings.push(SpecificationNotice {
            r#type: NoticeKind::RowsReadHere,
            pointer: None,
            detail: format!(
                "the engine {:?} does not make this release: its rows are read into the memory of this service, which makes it",
                place.engine
            ),
        });
        Ok(plan)
    }

    /// Loads the columns and earlier releases, and plans.
    fn run_here(mut self, control: &Control) -> Result<Plan, EngineError> {
        self.context.choose_rows(&self.env, control)?;
        let table = self.context.load(&self.env, control)?;
        let others = self.context.load_others(&self.env, &self.others, control)?;
        self.earlier.releases = inputs::read_earlier_releases(&self.env, &self.context, &self.earlier, control)?;
        let key = drawn_key()?;
        let (extra, dropped) = (others.extra.as_ref(), others.dropped());
        let columns = engine::TablePair { published: &table, extra, dropped: &dropped };
        let Self { env, context, earlier, faults, faulty, night, .. } = self;
        let mut persons = Vec::new();
        if let Some(night) = &night {
            persons = context.persons_of_rows(&env, &night.population.key_system, control)?;
        }
        let republish = night.as_ref().map(|night| engine::RepublishInput {
            state: night.chain.as_ref().and_then(LoadedChain::state),
            previous: night.chain.as_ref().and_then(LoadedChain::release),
            persons: &persons,
            key: &night.population.key,
        });
        let input = engine::DryRunInput { specification: &context.specification, earlier: &earlier, faults, republish };
        mended(&faulty, engine::dry_run(input, columns, &RandomStreams::Keyed(key), control), Some((&table, control)))
    }

    /// Copies the table and plans in the engine that has it. `None` where that engine would not make the release.
    fn run_in_engine(&mut self, control: &Control) -> Result<Option<Plan>, EngineError> {
        let copy = self.context.copy_rows(&self.env, control)?;
        let mut copy = copy.ok_or_else(|| InputError::from(StoreError::corrupt("a plan is made from no rows")))?;
        let Self { context, earlier, faulty, may_be_made_here, .. } = self;
        if context.is_made_here(earlier) {
            return Ok(None);
        }
        let order = engine::RemoteOrder { specification: &context.specification, key: &drawn_key()?, earlier };
        let planned = engine::plan_remotely(&order, context.counted(copy.as_mut())?, control);
        let is_refused = match &planned {
            Ok(plan) => plan.problems.iter().filter_map(problem::faults_of).any(|of| engine::are_limits_there(&of)),
            Err(EngineError::Refused(problem)) => engine::are_limits_there(&problem.errors),
            Err(_) => false,
        };
        if is_refused && *may_be_made_here {
            return Ok(None);
        }
        mended(faulty, planned, None).map(Some)
    }

    /// Plans from the counts of single columns.
    fn run_on_counts(self, problem: &Problem) -> Result<Plan, EngineError> {
        let Self { context: JobContext { dataset, profiles, specification, .. }, earlier, faults, faulty, .. } = self;
        let counts = ProfileCounts { rows: dataset.rows, profiles: &profiles, used: &specification.used };
        let input = engine::DryRunInput { specification: &specification, earlier: &earlier, faults, republish: None };
        mended(&faulty, engine::dry_run_from_counts(input, &counts, problem), None)
    }
}
