//! The runner of real jobs: load, release, commit.

use std::io;
use std::io::Read;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::runner::{JobAssignment, JobRunner, RunCompletion, RunError};
use crate::clock::Clock;
use crate::control::{Control, Phase};
use crate::engine::{PartStore, ReleaseInput, VerifiedRelease};
use crate::inputs::{
    ColumnSelection, CompositionContext, InputEnv, InputError, JobContext, MemoryBudget, MemoryPermit, PartStorage,
};
use crate::ledger::EarlierDisclosures;
use crate::microdata::Table;
use crate::microdata::formats::IngestLimits;
use crate::ports::{
    CommitOutcome, DatasetRecord, JobRecord, NewDisclosure, NewRelease, ReleaseCommit, Store, StoreError,
    release_ended_problem as ended_problem,
};
use crate::problem::{Kind, Problem};
use crate::publication::{CompositionMode, PublishedBytes, ReleaseStatus};
use crate::random::{RandomStreams, ReleaseKey};
use crate::report::{InternalReport, Provenance, public_report};
use crate::spec::Specification;
use crate::vault::{Ciphertext, CiphertextContext, Vault};
use crate::{engine, inputs};

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
}

#[async_trait]
impl JobRunner for Publisher {
    async fn reserve_memory(&self, job: &JobRecord, store: &Arc<dyn Store>) -> Result<MemoryPermit, RunError> {
        let env = self.env(&Handle::current(), store);
        let context = JobContext::for_job(job, &env).await?;
        let earlier = context.composition(&env).await?.earlier;
        let need = context.inputs(&env, &earlier).await?.bytes();
        self.budget.acquire(need).await.map_err(RunError::Failed)
    }

    fn run(&self, assignment: JobAssignment, control: &Control) -> Result<RunCompletion, RunError> {
        let store = assignment.store.as_ref();
        let job = &assignment.job;
        let handle = &assignment.handle;
        let env = self.env(handle, &assignment.store);
        let context = handle.block_on(JobContext::for_job(job, &env))?;
        let JobContext { dataset, specification, .. } = &context;
        let table = context.load(&env, control)?;
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes(*assignment.release_key));
        let work =
            PublishRun { assignment: &assignment, dataset, specification, streams: &streams, clock: &self.clock };
        let mut made: Option<(EarlierDisclosures, ReleaseCommit)> = None;
        let (mut extra_columns, mut extra) = (ColumnSelection::default(), None);
        let mut tries = 0;
        while tries < MAX_LEDGER_RETRIES {
            control.check()?;
            let CompositionContext { mut earlier, version, clash } = handle.block_on(context.composition(&env))?;
            if let Some(clash) = clash.filter(|_| specification.unproven.is_none()) {
                return Err(RunError::Refused(clash.problem()));
            }
            // looked at after the ledger, whose version rises with every end: one that comes later is seen by the commit
            let ended = handle.block_on(store.ended_release(&job.tenant, &job.reuse_key))?;
            if let Some((release, status)) = ended {
                return Err(RunError::Refused(ended_problem(&status, release)));
            }
            earlier.releases = inputs::read_earlier_releases(&env, &context, &earlier, control)?;
            let commit = match made.take() {
                // what moved was another content's
                Some((before, commit)) if before == earlier => {
                    ReleaseCommit { series_version: Some(version), now: self.clock.now(), ..commit }
                }
                outdated => {
                    tries += 1;
                    if outdated.is_some() {
                        handle.block_on(store.drop_attempt(job.id, assignment.attempt))?;
                    }
                    let columns = context.extra_columns(&env, &earlier);
                    if columns != extra_columns {
                        extra = context.load_extra(&env, &columns, control)?;
                        extra_columns = columns;
                    }
                    let commit = self.make(&work, &table, extra.as_ref(), &earlier, control)?;
                    ReleaseCommit { series_version: Some(version), ..commit }
                }
            };
            let id = commit.release.id;
            match handle.block_on(store.commit(commit.clone()))? {
                CommitOutcome::Committed => return Ok(RunCompletion::Committed(id)),
                CommitOutcome::LeaseLost => return Ok(RunCompletion::LeaseLost),
                CommitOutcome::AlreadyReleased(release) => return Ok(RunCompletion::Reused(release)),
                // another release about the same data subjects may have come first: check, and if needed design, again
                CommitOutcome::LedgerMoved => made = Some((earlier, commit)),
            }
        }
        let problem = Problem::new(Kind::Unavailable, "other releases of the same series kept coming first");
        Err(RunError::Failed(problem))
    }
}

impl Publisher {
    fn env(&self, handle: &Handle, store: &Arc<dyn Store>) -> InputEnv {
        InputEnv {
            handle: handle.clone(),
            store: Arc::clone(store),
            vault: Arc::clone(&self.vault),
            limits: self.limits.clone(),
        }
    }

    /// Makes the release, given the earlier disclosures, ready to be committed against a version of its series.
    fn make(
        &self,
        work: &PublishRun<'_>,
        table: &Table,
        extra: Option<&Table>,
        earlier: &EarlierDisclosures,
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
        let PublishRun { specification, streams, .. } = *work;
        let order = ReleaseInput { specification, table, extra, streams, earlier, provenance: &provenance };
        let mut storage = EnginePartStore(work.storage());
        let released = engine::release(&order, &mut storage, control)?;
        control.begin(Phase::Commit, 1)?;
        let ciphertext = self.ciphertext(work.dataset, id, &released.internal)?;
        Ok(ReleaseCommit { internal_report: Some(ciphertext), ..work.commit(id, released)? })
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

/// What a job is about.
struct PublishRun<'a> {
    assignment: &'a JobAssignment,
    dataset: &'a DatasetRecord,
    specification: &'a Specification,
    streams: &'a RandomStreams,
    clock: &'a Clock,
}

impl PublishRun<'_> {
    fn storage(&self) -> PartStorage {
        let JobAssignment { handle, store, job, attempt, .. } = self.assignment;
        PartStorage::new(handle.clone(), store.clone(), job.tenant.clone(), job.id, *attempt)
    }

    fn commit(&self, id: Uuid, released: VerifiedRelease) -> Result<ReleaseCommit, RunError> {
        let job = &self.assignment.job;
        let json = |value: Result<serde_json::Value, serde_json::Error>| {
            value.map_err(|error| RunError::from(StoreError::corrupt(error)))
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
            series_version: None,
            now,
        })
    }
}

/// Whether the release is to wait for an approval.
fn is_held(job: &JobRecord) -> bool {
    job.specification["hold"] == true
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
