//! The runner of real jobs: load, release, commit.

use std::io;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::publish_run::{MadeCommit, PublishRun};
use super::runner::{JobAssignment, JobReservation, JobRunner, RunCompletion, RunError};
use super::turn::Turn;
use crate::clock::Clock;
use crate::control::{Control, Phase};
use crate::engine;
use crate::engine::{
    AuditedRelease, CopiedTable, PartStore, ReleaseInput, RemoteOrder, RemoteOutput, RemoteParts, RemoteTable,
    RepublishInput, VerifiedRelease,
};
use crate::inputs::{
    ChainAttempt, ChainPlace, CompositionContext, Engines, InputEnv, InputError, JobContext, JudgedPeople,
    KeptReadings, LoadedChain, MemoryBudget, OtherSelections, OtherTables, PartStorage, RepublishedPopulation,
};
use crate::ledger::EarlierDisclosures;
use crate::microdata::Table;
use crate::microdata::formats::IngestLimits;
use crate::ports::{ChainStep, CommitOutcome, DatasetRecord, JobRecord, ReleaseCommit, Store, StoreError};
use crate::problem::{Kind, Problem};
use crate::publication::PublishedBytes;
use crate::random::{RandomStreams, ReleaseKey};
use crate::report::{InternalReport, LeftOutContributions, WritingEngine};
use crate::spec::PeopleChoice;
use crate::vault::{Ciphertext, CiphertextContext, Vault};

/// How often a release is made again because the ledger changed.
const MAX_LEDGER_RETRIES: u32 = 5;

/// Publishes a dataset as a job specifies.
pub struct Publisher {
    /// Opens originals.
    pub vault: Arc<Vault>,
    /// Dates releases.
    pub clock: Clock,
    /// What jobs may take together.
    pub budget: MemoryBudget,
    /// What columns may hold.
    pub limits: IngestLimits,
    /// What was read of the people of the ledger.
    pub readings: KeptReadings,
    /// The folder of files without names for what memory cannot hold.
    pub spool: PathBuf,
    /// The engines that have the rows of some datasets.
    pub engines: Engines,
}

#[async_trait]
impl JobRunner for Publisher {
    async fn reserve(&self, job: &JobRecord, store: &Arc<dyn Store>) -> Result<JobReservation, RunError> {
        let env = self.env(&Handle::current(), store);
        let context = JobContext::for_job(job, &env).await?;
        let found = context.composition(&env).await?;
        let need = context.inputs(&env, &found.earlier).await?.bytes(&self.budget);
        let memory = self.budget.acquire(need).await.map_err(RunError::Failed)?;
        // which rows are unpublished is decided when the job runs
        let is_of_all = context.specification.people == PeopleChoice::All;
        Ok(JobReservation { memory, seen: is_of_all.then(|| Box::new(found)) })
    }

    fn run(&self, mut assignment: JobAssignment, control: &Control) -> Result<RunCompletion, RunError> {
        for _ in 0..MAX_LEDGER_RETRIES {
            let seen = assignment.seen.take();
            if let Some(completion) = self.run_once(&assignment, seen, control)? {
                return Ok(completion);
            }
            // other rows are left: none of the parts that were made may stand among theirs
            let (store, job) = (&assignment.store, assignment.job.id);
            assignment.handle.block_on(store.drop_attempt(job, assignment.attempt))?;
        }
        let problem = Problem::new(Kind::Unavailable, "other releases about the same people kept coming first");
        Err(RunError::Failed(problem))
    }
}

impl Publisher {
    /// Makes and commits a release; `None` if others came first, with persons that it would publish again.
    fn run_once(
        &self,
        assignment: &JobAssignment,
        seen: Option<Box<CompositionContext>>,
        control: &Control,
    ) -> Result<Option<RunCompletion>, RunError> {
        let JobAssignment { job, handle, store, .. } = assignment;
        let env = self.env(handle, store);
        let mut context = handle.block_on(JobContext::for_job(job, &env))?;
        let copy = self.copy(&mut context, &env, control)?;
        let evidence = context.choose_rows(&env, control)?;
        let JobContext { dataset, specification, .. } = &context;
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes(*assignment.release_key));
        let work = PublishRun { assignment, dataset, specification, streams: &streams, clock: &self.clock };
        let mut turn = Turn::new(assignment, &env, &context, &evidence).seeing(seen);
        let rows = MadeFrom::new(copy, &env, &context, control)?;
        let mut maker = ReleaseMaker { publisher: self, work: &work, env: &env, context: &context, rows };
        let (mut made, mut tries) = (None::<MadeRelease>, 0);
        while tries < MAX_LEDGER_RETRIES {
            control.check()?;
            let Some(found) = turn.admitted(control)? else { return Ok(None) };
            let CompositionContext { earlier, versions, people, .. } = found;
            let release = match made.take() {
                // what moved was other people's
                Some(release) if release.is_up_to_date(&earlier, &people) && maker.goes_on_from(&release)? => {
                    MadeRelease { basis: ReleaseBasis { earlier, people }, ..release }
                }
                outdated => {
                    tries += 1;
                    if outdated.is_some() {
                        handle.block_on(store.drop_attempt(job.id, assignment.attempt))?;
                    }
                    maker.make(ReleaseBasis { earlier, people }, control)?
                }
            };
            // who comes later sees the announcement
            let is_announced = turn.announce(&release.made.columns, &release.basis.people, control)?;
            let MadeRelease { basis, made: MadeCommit { commit, .. } } = &release;
            if is_announced || !turn.audit(maker.rows(), &basis.people, &commit.release.manifest)? {
                made = Some(release);
                continue;
            }
            let commit = ReleaseCommit {
                series_versions: versions,
                announcement: turn.end(&release.basis.people),
                now: self.clock.now(),
                ..release.made.commit.clone()
            };
            let id = commit.release.id;
            match handle.block_on(store.commit(commit))? {
                CommitOutcome::Committed => return Ok(Some(turn.committed(id))),
                CommitOutcome::LeaseLost => return Ok(Some(RunCompletion::LeaseLost)),
                CommitOutcome::AlreadyReleased(other) => return Ok(Some(RunCompletion::Reused(other))),
                // something was declared of the same people, or a release of them has ended: check, and if needed design, again
                CommitOutcome::LedgerMoved => made = Some(release),
                CommitOutcome::ChainMoved => handle.block_on(store.drop_attempt(job.id, assignment.attempt))?,
            }
        }
        Ok(None)
    }

    /// Has the table of the dataset copied, if another engine has it.
    fn copy(
        &self,
        context: &mut JobContext,
        env: &InputEnv,
        control: &Control,
    ) -> Result<Option<Box<dyn CopiedTable>>, RunError> {
        if context.dataset.place.as_ref().is_some_and(|place| !self.engines.has(place)) {
            let detail = "this worker is not set up for the engine of the dataset, as another one may be";
            return Err(RunError::LeftToOthers(Problem::new(Kind::Unavailable, detail)));
        }
        Ok(context.copy_rows(env, control)?)
    }

    fn env(&self, handle: &Handle, store: &Arc<dyn Store>) -> InputEnv {
        InputEnv {
            handle: handle.clone(),
            store: Arc::clone(store),
            vault: Arc::clone(&self.vault),
            limits: self.limits.clone(),
            readings: self.readings.clone(),
            spool: self.spool.clone(),
            engines: self.engines.clone(),
        }
    }

    /// Makes the release, given the earlier disclosures, ready to be committed; with the columns that it publishes.
    fn make(
        &self,
        work: &PublishRun<'_>,
        source: ReleaseSource<'_>,
        basis: &ReleaseBasis,
        control: &Control,
    ) -> Result<MadeCommit, RunError> {
        let ReleaseBasis { earlier, people } = basis;
        let ReleaseSource { table, others, night } = source;
        let id = Uuid::now_v7();
        let provenance = work.provenance(id, people);
        let PublishRun { specification, streams, .. } = *work;
        let contributions = work
            .dataset
            .contributions
            .as_ref()
            .map(|of| LeftOutContributions { left_out_rows: of.left_out_rows, cut_persons: of.cut_persons });
        let (provenance, republish) = (&provenance, night.map(ChainedNight::input));
        let order = ReleaseInput {
            specification,
            table,
            extra: others.extra.as_ref(),
            dropped: &others.dropped(),
            streams,
            earlier,
            provenance,
            contributions,
            republish,
        };
        let mut storage = EnginePartStore(work.storage());
        let mut released = engine::release(&order, &mut storage, control)?;
        control.begin(Phase::Commit, 1)?;
        let chain = night.map(|night| night.keep(work, released.state.take())).transpose()?;
        let ciphertext = self.ciphertext(work.dataset, id, &released.internal)?;
        let VerifiedRelease { manifest, disclosures, rules, .. } = released;
        let mut made = work.made(id, AuditedRelease { manifest, disclosures, rules })?;
        made.commit = ReleaseCommit { internal_report: Some(ciphertext), chain, ..made.commit };
        Ok(made)
    }

    /// Has the engine that has the rows make the release, given the earlier disclosures, and carries its parts here.
    fn make_in_engine(
        &self,
        work: &PublishRun<'_>,
        table: &mut dyn RemoteTable,
        made_by: WritingEngine,
        basis: &ReleaseBasis,
        control: &Control,
    ) -> Result<MadeCommit, RunError> {
        let (id, ReleaseBasis { earlier, people }) = (Uuid::now_v7(), basis);
        let RandomStreams::Keyed(key) = work.streams else {
            return Err(StoreError::corrupt("a job has no key").into());
        };
        let order = RemoteOrder { specification: work.specification, key, earlier };
        let mut storage = EnginePartStore(work.storage());
        let parts = RemoteParts::Carried(&mut storage);
        let output = RemoteOutput { provenance: &work.provenance(id, people), made_by, parts };
        let released = engine::release_remotely(&order, table, output, control)?;
        control.begin(Phase::Commit, 1)?;
        work.made(id, released)
    }

    /// What the original says of a release, encrypted like the original.
    fn ciphertext(
        &self,
        dataset: &DatasetRecord,
        release: Uuid,
        report: &InternalReport,
    ) -> Result<Ciphertext, InputError> {
        let plain = serde_json::to_vec(report).map_err(StoreError::corrupt)?;
        let ciphertext = dataset.data_key(&self.vault)?.encrypt(CiphertextContext::InternalReport { release }, &plain);
        Ok(ciphertext.map_err(StoreError::from)?)
    }
}

/// What a release was judged with.
struct ReleaseBasis {
    earlier: EarlierDisclosures,
    people: JudgedPeople,
}

struct MadeRelease {
    basis: ReleaseBasis,
    made: MadeCommit,
}

impl MadeRelease {
    /// Whether it would be made again as it is.
    fn is_up_to_date(&self, earlier: &EarlierDisclosures, people: &JudgedPeople) -> bool {
        let ReleaseBasis { earlier: before, people: judged } = &self.basis;
        let (then, now) = (&judged.admission, &people.admission);
        let claims_the_same = then.claim == now.claim && then.unrelated == now.unrelated;
        before == earlier && claims_the_same && then.same == now.same && judged.statements == people.statements
    }
}

/// Makes the release of a job, as often as what it is judged with changes.
struct ReleaseMaker<'a> {
    publisher: &'a Publisher,
    work: &'a PublishRun<'a>,
    env: &'a InputEnv,
    context: &'a JobContext,
    rows: MadeFrom,
}

/// What a release is made from.
enum MadeFrom {
    /// Rows in memory.
    Rows(Box<LoadedRows>),
    /// A copy in the engine that has the rows; `None` once a release was made from it.
    Engine(Option<Box<dyn CopiedTable>>),
}

impl MadeFrom {
    /// The copy, or else rows that are loaded.
    fn new(
        copy: Option<Box<dyn CopiedTable>>,
        env: &InputEnv,
        context: &JobContext,
        control: &Control,
    ) -> Result<Self, RunError> {
        Ok(match copy {
            Some(copy) => Self::Engine(Some(copy)),
            None => Self::Rows(Box::new(LoadedRows::load(env, context, control)?)),
        })
    }
}

/// The rows of a job in memory.
struct LoadedRows {
    table: Table,
    /// The other columns that were loaded.
    selected: OtherSelections,
    others: OtherTables,
    /// The persons of a night.
    night: Option<NightPersons>,
}

impl LoadedRows {
    /// The rows that are published.
    fn load(env: &InputEnv, context: &JobContext, control: &Control) -> Result<Self, RunError> {
        let (night, table) = (NightPersons::read(context, env, control)?, context.load(env, control)?);
        Ok(Self { table, selected: OtherSelections::default(), others: OtherTables::default(), night })
    }
}

impl ReleaseMaker<'_> {
    /// How many rows the release is made of.
    fn rows(&self) -> u64 {
        match &self.rows {
            MadeFrom::Rows(rows) => rows.table.rows() as u64,
            MadeFrom::Engine(_) => self.context.dataset.rows,
        }
    }

    fn make(&mut self, basis: ReleaseBasis, control: &Control) -> Result<MadeRelease, RunError> {
        if let Some(made) = self.make_in_engine(&basis, control)? {
            return Ok(MadeRelease { basis, made });
        }
        let chain = self.chain(&basis.people)?;
        let Self { publisher, work, env, context, rows } = self;
        let MadeFrom::Rows(rows) = rows else {
            return Err(StoreError::corrupt("a release is made from no rows").into());
        };
        let columns = context.other_columns(env, &basis.earlier);
        if columns != rows.selected {
            rows.others = context.load_others(env, &columns, control)?;
            rows.selected = columns;
        }
        let night = rows.night.as_ref().zip(chain.as_ref()).map(|(rows, chain)| ChainedNight { rows, chain });
        let source = ReleaseSource { table: &rows.table, others: &rows.others, night };
        let made = publisher.make(work, source, &basis, control);
        let made = made.map_err(|error| match error {
            RunError::Refused(problem) => {
                let (job, limits) = (&work.assignment.job, &publisher.limits);
                RunError::Refused(context.with_remedies(problem, job, &rows.table, limits, control))
            }
            other => other,
        })?;
        Ok(MadeRelease { basis, made })
    }

    /// Has the engine that has the rows make the release. `None` where it does not: the rows are read here then.
    fn make_in_engine(&mut self, basis: &ReleaseBasis, control: &Control) -> Result<Option<MadeCommit>, RunError> {
        let Self { publisher, work, env, context, rows } = self;
        let MadeFrom::Engine(copy) = rows else { return Ok(None) };
        let inputs = env.handle.block_on(context.inputs(env, &basis.earlier))?;
        if !context.is_made_here(&basis.earlier) {
            let copy = match copy.take() {
                Some(copy) => Some(copy),
                None => context.copy_again(env, control)?,
            };
            let mut copy = copy.ok_or_else(|| StoreError::corrupt("a release is made from no rows"))?;
            let made_by = copy.engine().clone();
            let table = context.counted(copy.as_mut())?;
            match publisher.make_in_engine(work, table, made_by, basis, control) {
                Err(RunError::Refused(problem))
                    if engine::are_limits_there(&problem.errors) && inputs.may_be_made_here(&publisher.budget) => {}
                made => return made.map(Some),
            }
        }
        publisher.budget.check(inputs.bytes(&publisher.budget)).map_err(RunError::Refused)?;
        *rows = MadeFrom::Rows(Box::new(LoadedRows::load(env, context, control)?));
        Ok(None)
    }

    /// The population that the release is a night of.
    fn population(&self) -> Option<&RepublishedPopulation> {
        match &self.rows {
            MadeFrom::Rows(rows) => rows.night.as_ref().map(|night| &night.population),
            MadeFrom::Engine(_) => None,
        }
    }

    /// The chain that the release continues, or begins.
    fn chain(&self, people: &JudgedPeople) -> Result<Option<LoadedChain>, RunError> {
        let Some(population) = self.population() else { return Ok(None) };
        let InputEnv { handle, store, vault, .. } = self.env;
        let (tenant, is_begun) = (&self.work.assignment.job.tenant, people.admission.chain.is_some());
        let place = ChainPlace { tenant, population: &population.name, is_begun };
        let loaded = handle.block_on(LoadedChain::load(store.as_ref(), vault, place));
        Ok(Some(loaded.map_err(InputError::from)?))
    }

    /// Whether no other release of the population came after the one that a release continues.
    fn goes_on_from(&self, release: &MadeRelease) -> Result<bool, RunError> {
        let Some(population) = self.population() else { return Ok(true) };
        let InputEnv { handle, store, .. } = self.env;
        let chain = handle.block_on(store.chain(&self.work.assignment.job.tenant, &population.name))?;
        let version = chain.filter(|chain| chain.pending.is_none()).map(|chain| chain.version());
        Ok(version.is_some() && version == release.made.commit.chain.map(|step| step.from))
    }
}

/// What a release is made of.
#[derive(Clone, Copy)]
struct ReleaseSource<'a> {
    table: &'a Table,
    others: &'a OtherTables,
    night: Option<ChainedNight<'a>>,
}

/// The persons of a table that is published night after night.
struct NightPersons {
    population: RepublishedPopulation,
    /// The hash of the person of each row.
    persons: Vec<[u8; 16]>,
}

impl NightPersons {
    fn read(context: &JobContext, env: &InputEnv, control: &Control) -> Result<Option<Self>, RunError> {
        let Some(population) = env.handle.block_on(context.republished(env))? else { return Ok(None) };
        let persons = context.persons_of_rows(env, &population.key_system, control)?;
        Ok(Some(Self { population, persons }))
    }
}

/// A night, with the chain that it continues.
#[derive(Clone, Copy)]
struct ChainedNight<'a> {
    rows: &'a NightPersons,
    chain: &'a LoadedChain,
}

impl<'a> ChainedNight<'a> {
    fn input(self) -> RepublishInput<'a> {
        let NightPersons { population, persons } = self.rows;
        let (state, previous) = (self.chain.state(), self.chain.release());
        RepublishInput { state, previous, persons, key: &population.key }
    }

    /// Keeps the state that the night leaves behind; the commit makes it current.
    fn keep(self, work: &PublishRun<'_>, state: Option<Vec<u8>>) -> Result<ChainStep, RunError> {
        let state = state.ok_or_else(|| StoreError::corrupt("a night has left no state behind"))?;
        let JobAssignment { handle, store, job, attempt, .. } = work.assignment;
        let attempt = ChainAttempt { job: job.id, attempt: *attempt };
        Ok(handle.block_on(self.chain.keep(store.as_ref(), attempt, &state))?)
    }
}

/// The parts of an attempt, as the engine wants them.
struct EnginePartStore(PartStorage);

impl PublishedBytes for EnginePartStore {
    fn open(&self, file: &str) -> io::Result<Box<dyn Read + '_>> {
        self.0.open(file)
    }
}

impl PartStore for EnginePartStore {
    fn put(&mut self, file: &str, number: u32, first_row: u64, rows: u32, csv: &[u8]) -> io::Result<()> {
        self.0.put(file, number, first_row, rows, csv)
    }
}
