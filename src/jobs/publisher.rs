//! The runner of real jobs: load, release, commit.

use std::io;
use std::io::Read;
use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use super::runner::{JobAssignment, JobRunner, RunCompletion, RunError};
use crate::clock::Clock;
use crate::control::{Control, Phase};
use crate::engine::{EngineError, PartStore, ReleaseInput, VerifiedRelease};
use crate::inputs::{
    ColumnSources, CompositionCheck, CompositionContext, LoadError, MemoryBudget, MemoryPermit, PartStorage,
    earlier_releases_memory, extra_columns, extra_columns_memory, job_memory, load, specification_of, too_full,
};
use crate::ledger::EarlierDisclosures;
use crate::microdata::Table;
use crate::microdata::formats::IngestLimits;
use crate::ports::{
    CommitOutcome, DatasetRecord, JobRecord, NewDisclosure, NewRelease, ReleaseCommit, Store, StoreError, problem_of,
    release_ended_problem as ended_problem,
};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{CompositionMode, PublishedBytes, ReleaseStatus};
use crate::random::{RandomStreams, ReleaseKey};
use crate::report::{InternalReport, Provenance, public_report};
use crate::spec::Specification;
use crate::vault::{Ciphertext, CiphertextContext, Vault};
use crate::{engine, inputs};

/// How often a release is made anew because the ledger moved meanwhile.
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
}

fn refused(faults: Vec<Fault>) -> RunError {
    RunError::Refused(Problem::of_faults(faults))
}

#[async_trait]
impl JobRunner for Publisher {
    async fn reserve_memory(&self, job: &JobRecord, store: &dyn Store) -> Result<MemoryPermit, RunError> {
        let dataset = store.dataset(&job.tenant, job.dataset).await.map_err(store_failure)?;
        let dataset = dataset.ok_or_else(unknown_dataset)?;
        let profiles = dataset.profiles(&self.vault).map_err(load_error)?;
        let specification = specification_of(job, &dataset, &profiles, &self.limits).map_err(refused)?;
        let columns: Vec<String> = profiles.iter().map(|profile| profile.name.clone()).collect();
        let judged = CompositionCheck {
            store,
            vault: &self.vault,
            dataset: &dataset,
            columns: &columns,
            used: &specification.names,
        };
        let beside = async { judged.beside(&store.series(&job.tenant, &job.series).await?).await };
        let earlier = beside.await.map_err(store_failure)?.earlier;
        let further = extra_columns(&columns, &profiles, &specification, &earlier, &self.limits);
        let named = inputs::find_earlier_releases((store, &self.vault), &dataset, &earlier, &specification);
        let named = named.await.map_err(|problem| run_error(EngineError::Refused(problem)))?;
        let need = job_memory(&dataset, &profiles, &specification)
            .saturating_add(extra_columns_memory(&dataset, &profiles, &specification, &further))
            .saturating_add(earlier_releases_memory(&dataset, &profiles, &specification, (&earlier, &named)));
        self.budget.acquire(need).await.map_err(RunError::Failed)
    }

    fn run(&self, assignment: JobAssignment, control: &Control) -> Result<RunCompletion, RunError> {
        let store = assignment.store.as_ref();
        let job = &assignment.job;
        let dataset = assignment.handle.block_on(store.dataset(&job.tenant, job.dataset)).map_err(store_failure)?;
        let dataset = dataset.ok_or_else(unknown_dataset)?;
        let profiles = dataset.profiles(&self.vault).map_err(load_error)?;
        let specification = specification_of(job, &dataset, &profiles, &self.limits).map_err(refused)?;
        let columns: Vec<String> = profiles.iter().map(|profile| profile.name.clone()).collect();
        let judged = CompositionCheck {
            store,
            vault: &self.vault,
            dataset: &dataset,
            columns: &columns,
            used: &specification.names,
        };
        let sources = ColumnSources { store, vault: &self.vault, limits: &self.limits };
        let loaded = |names: &[String], used: &[usize]| {
            load(&assignment.handle, sources, &dataset, (names, used), control).map_err(load_error)
        };
        let table = loaded(&specification.names, &specification.used)?;
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes(*assignment.release_key));
        let work = PublishRun {
            assignment: &assignment,
            dataset: &dataset,
            specification: &specification,
            clock: &self.clock,
        };
        let mut made: Option<(EarlierDisclosures, ReleaseCommit)> = None;
        let mut further: (Vec<usize>, Option<Table>) = (Vec::new(), None);
        let mut tries = 0;
        while tries < MAX_LEDGER_RETRIES {
            control.check()?;
            let beside = assignment
                .handle
                .block_on(async { judged.beside(&store.series(&job.tenant, &job.series).await?).await });
            let CompositionContext { mut earlier, version, clash } = beside.map_err(store_failure)?;
            if let Some(clash) = clash.filter(|_| specification.unproven.is_none()) {
                return Err(RunError::Refused(clash.problem()));
            }
            // looked at after the ledger, whose version rises with every end: one that comes later is seen by the commit
            let ended = assignment.handle.block_on(store.ended_release(&job.tenant, &job.reuse_key));
            if let Some((release, status)) = ended.map_err(store_failure)? {
                return Err(RunError::Refused(ended_problem(&status, release)));
            }
            let place = (&assignment.handle, &assignment.store);
            let of = (&dataset, &profiles[..]);
            earlier.releases = inputs::read_earlier_releases(place, sources, of, &earlier, &specification, control)
                .map_err(run_error)?;
            let commit = match made.take() {
                // what moved was another content's
                Some((before, commit)) if before == earlier => {
                    ReleaseCommit { series_version: Some(version), now: self.clock.now(), ..commit }
                }
                outdated => {
                    tries += 1;
                    if outdated.is_some() {
                        let dropped = store.drop_attempt(job.id, assignment.attempt);
                        assignment.handle.block_on(dropped).map_err(store_failure)?;
                    }
                    let places = extra_columns(&columns, &profiles, &specification, &earlier, &self.limits);
                    if places != further.0 {
                        let names: Vec<String> = places.iter().map(|&at| columns[at].clone()).collect();
                        further = (places.clone(), Some(loaded(&names, &places)?));
                    }
                    self.make(&work, (&table, further.1.as_ref()), &streams, &earlier, version, control)?
                }
            };
            let id = commit.release.id;
            match assignment.handle.block_on(store.commit(commit.clone())).map_err(store_failure)? {
                CommitOutcome::Committed => return Ok(RunCompletion::Committed(id)),
                CommitOutcome::LeaseLost => return Ok(RunCompletion::LeaseLost),
                CommitOutcome::AlreadyReleased(release) => return Ok(RunCompletion::Reused(release)),
                // another release of the same people may have come first: judge, and if need be design, beside it
                CommitOutcome::LedgerMoved => made = Some((earlier, commit)),
            }
        }
        let problem = Problem::new(Kind::Unavailable, "other releases of the same series kept coming first");
        Err(RunError::Failed(problem))
    }
}

impl Publisher {
    /// Makes the release beside what the ledger holds, ready to be committed.
    fn make(
        &self,
        work: &PublishRun<'_>,
        (table, further): (&Table, Option<&Table>),
        streams: &RandomStreams,
        earlier: &EarlierDisclosures,
        version: i64,
        control: &Control,
    ) -> Result<ReleaseCommit, RunError> {
        let id = Uuid::now_v7();
        let provenance = Provenance {
            id: Some(id),
            series: Some(work.assignment.job.series.clone()),
            created_at: self.clock.now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
            composition: if work.specification.unproven.is_some() {
                CompositionMode::Unproven
            } else {
                CompositionMode::Enforced
            },
            reproducible: false,
        };
        let order = ReleaseInput {
            specification: work.specification,
            table,
            further,
            streams,
            earlier,
            provenance: &provenance,
        };
        let mut storage = EnginePartStore(work.storage());
        let released = engine::release(&order, &mut storage, control).map_err(run_error)?;
        control.begin(Phase::Commit, 1)?;
        let ciphertext = self.ciphertext(work.dataset, id, &released.internal).map_err(load_error)?;
        Ok(ReleaseCommit { internal_report: Some(ciphertext), ..work.commit(id, released, version)? })
    }

    /// What the original says of a release, encrypted like the original.
    fn ciphertext(
        &self,
        dataset: &DatasetRecord,
        release: Uuid,
        report: &InternalReport,
    ) -> Result<Ciphertext, LoadError> {
        let plain = serde_json::to_vec(report).map_err(StoreError::corrupt)?;
        let ciphertext = dataset.data_key(&self.vault)?.encrypt(CiphertextContext::InternalReport { release }, &plain);
        Ok(ciphertext.map_err(StoreError::from)?)
    }
}

/// What a job is about.
struct PublishRun<'a> {
    assignment: &'a JobAssignment,
    dataset: &'a DatasetRecord,
    specification: &'a Specification,
    clock: &'a Clock,
}

impl PublishRun<'_> {
    fn storage(&self) -> PartStorage {
        let JobAssignment { handle, store, job, attempt, .. } = self.assignment;
        PartStorage::new(handle.clone(), store.clone(), job.tenant.clone(), job.id, *attempt)
    }

    fn commit(&self, id: Uuid, released: VerifiedRelease, version: i64) -> Result<ReleaseCommit, RunError> {
        let job = &self.assignment.job;
        let json = |value: Result<serde_json::Value, serde_json::Error>| {
            value.map_err(|error| store_failure(StoreError::corrupt(error)))
        };
        let now = self.clock.now();
        let disclosure = |disclosure: &crate::ledger::Disclosure| {
            Ok(NewDisclosure {
                id: Uuid::now_v7(),
                table: disclosure.table.clone(),
                body: json(serde_json::to_value(disclosure))?,
            })
        };
        Ok(ReleaseCommit {
            job: job.id,
            token: self.assignment.lease_token,
            disclosures: released.disclosures.iter().map(disclosure).collect::<Result<_, RunError>>()?,
            rules: released.rules.iter().map(|rule| json(serde_json::to_value(rule))).collect::<Result<_, _>>()?,
            release: NewRelease {
                id,
                job: job.id,
                attempt: self.assignment.attempt,
                tenant: job.tenant.clone(),
                series: job.series.clone(),
                dataset: self.dataset.id,
                content_hash: self.dataset.content_hash,
                reuse_key: job.reuse_key,
                method: self.specification.method.name().to_owned(),
                created_at: now,
                report: json(serde_json::to_value(public_report(&released.manifest)))?,
                manifest: json(serde_json::to_value(&released.manifest))?,
                status: if is_held(job) { ReleaseStatus::Held } else { ReleaseStatus::Published },
            },
            internal_report: None,
            ledger_version: 0,
            series_version: Some(version),
            now,
        })
    }
}

/// Whether the release is to wait for an approval.
fn is_held(job: &JobRecord) -> bool {
    job.specification["hold"] == true
}

fn unknown_dataset() -> RunError {
    store_failure(StoreError::corrupt("a job speaks of an unknown dataset"))
}

fn load_error(error: LoadError) -> RunError {
    match error {
        LoadError::Cancelled => RunError::Cancelled,
        LoadError::Purged => RunError::Refused(Problem::new(Kind::Gone, "the dataset was purged before the job ran")),
        LoadError::Full(full) => RunError::Failed(too_full(full)),
        LoadError::Store(error) => store_failure(error),
    }
}

fn store_failure(error: StoreError) -> RunError {
    RunError::Failed(problem_of(&error))
}

fn run_error(stopped: EngineError) -> RunError {
    match stopped {
        EngineError::Cancelled => RunError::Cancelled,
        // what the store could not tell of earlier releases is no verdict on the job
        EngineError::Refused(problem) if problem.kind.status() >= 500 => RunError::Failed(problem),
        EngineError::Refused(problem) => RunError::Refused(problem),
        EngineError::Failed { problem, cause } => {
            tracing::error!(cause, "a release failed");
            RunError::Failed(problem)
        }
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
