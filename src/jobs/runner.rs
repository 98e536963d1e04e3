use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::clock::Clock;
use crate::control::{Cancelled, Control};
use crate::engine::EngineError;
use crate::inputs::{CompositionContext, InputError, MemoryPermit, dictionary_problem};
use crate::ports::{ClaimTerms, ClaimedJob, JobRecord, LeaseToken, Notifier, Store, StoreError};
use crate::problem::{Kind, Problem};
use crate::vault::{Secret, Vault};

/// What a runner gets: a job that is its alone as long as the lease lasts. No `Debug`: it carries the release key.
pub struct JobAssignment {
    /// The job.
    pub job: JobRecord,
    /// The attempt, under which parts are written.
    pub attempt: u32,
    /// For the commit.
    pub lease_token: LeaseToken,
    /// The release key; the same for every attempt of the job.
    pub release_key: Secret,
    /// The store.
    pub store: Arc<dyn Store>,
    /// To wait for the store with [`Handle::block_on`].
    pub handle: Handle,
    /// The ledger as it was seen when the memory was reserved.
    pub(crate) seen: Option<Box<CompositionContext>>,
}

/// What a job gets before it runs.
pub struct JobReservation {
    /// Its memory, held until it has ended.
    pub memory: MemoryPermit,
    /// The ledger as it was seen on the way: good for a first design, which the ledger at the ticket decides about.
    pub(crate) seen: Option<Box<CompositionContext>>,
}

impl JobReservation {
    /// The memory alone.
    #[must_use]
    pub const fn new(memory: MemoryPermit) -> Self {
        Self { memory, seen: None }
    }
}

/// How a runner ends well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunCompletion {
    /// It committed this release.
    Committed(Uuid),
    /// An earlier release has the reuse key; the worker ends the job with it.
    Reused(Uuid),
    /// The job belongs to another worker now.
    LeaseLost,
}

/// Why a runner stopped without a release.
#[derive(Clone, PartialEq, Debug)]
pub enum RunError {
    /// The control was cancelled.
    Cancelled,
    /// The specification cannot be satisfied; the problem is for the caller.
    Refused(Problem),
    /// A bug or a limit.
    Failed(Problem),
    /// This worker cannot make the release, as another one may.
    LeftToOthers(Problem),
}

impl From<Cancelled> for RunError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<InputError> for RunError {
    fn from(error: InputError) -> Self {
        match error {
            InputError::Cancelled => Self::Cancelled,
            InputError::Purged => Self::Refused(Problem::new(Kind::Gone, "the dataset was purged before the job ran")),
            InputError::Dictionary(error) => Self::Failed(dictionary_problem(error)),
            InputError::Refused(problem) => EngineError::Refused(problem).into(),
            InputError::Store(error) => error.into(),
        }
    }
}

impl From<EngineError> for RunError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Cancelled => Self::Cancelled,
            // a failure of the store is no verdict on the job
            EngineError::Refused(problem) if problem.kind.status() >= 500 => Self::Failed(problem),
            EngineError::Refused(problem) => Self::Refused(problem),
            EngineError::Failed { problem, cause } => {
                tracing::error!(cause, "a release failed");
                Self::Failed(problem)
            }
        }
    }
}

/// Computes jobs, from the assignment to the commit.
#[async_trait]
pub trait JobRunner: Send + Sync {
    /// The memory that a job needs; waits until it is free.
    ///
    /// # Errors
    /// Why the job cannot run.
    async fn reserve(&self, _job: &JobRecord, _store: &Arc<dyn Store>) -> Result<JobReservation, RunError> {
        Ok(JobReservation::new(MemoryPermit::nothing()))
    }

    /// Called on a blocking thread; checks the control as it goes.
    ///
    /// Runs a job.
    ///
    /// # Errors
    /// Why there is no release.
    fn run(&self, assignment: JobAssignment, control: &Control) -> Result<RunCompletion, RunError>;
}

/// How workers behave.
#[derive(Clone, Copy, Debug)]
pub struct WorkerConfig {
    /// Jobs at a time.
    pub workers: u32,
    /// How long a job stays with a worker that says nothing.
    pub lease: Duration,
    /// How often progress and requests are looked at, and leases reaped. Well below a third of the lease.
    pub tick: Duration,
    /// How long an idle worker waits before it looks again, give or take a quarter.
    pub poll: Duration,
    /// Leases of one job that may expire before it fails.
    pub max_attempts: u32,
    /// Jobs of one tenant at a time, among all workers on the store; without it as many as there are workers.
    pub max_running_per_tenant: Option<u32>,
    /// Jobs on tables of one engine at a time, among all workers on the store.
    pub max_running_per_engine: Option<u32>,
    /// How long running jobs may go on after a shutdown was asked for.
    pub grace: Duration,
    /// How long one attempt may run, the wait for its memory not counted.
    pub max_job: Option<Duration>,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            workers: 1,
            lease: Duration::from_secs(30),
            tick: Duration::from_secs(1),
            poll: Duration::from_secs(2),
            max_attempts: 3,
            max_running_per_tenant: None,
            max_running_per_engine: None,
            grace: Duration::from_secs(20),
            max_job: None,
        }
    }
}

/// What the dispatcher, the reaper and the runs share.
pub(crate) struct WorkerContext {
    pub(in crate::jobs) store: Arc<dyn Store>,
    pub(in crate::jobs) clock: Clock,
    pub(in crate::jobs) runner: Arc<dyn JobRunner>,
    pub(in crate::jobs) vault: Arc<Vault>,
    pub(in crate::jobs) signals: Arc<Notifier>,
    pub(in crate::jobs) config: WorkerConfig,
    pub(super) permits: Arc<Semaphore>,
    /// Nothing more is claimed.
    pub(in crate::jobs) stopping: CancellationToken,
    /// The grace is over: what runs is to stop.
    pub(in crate::jobs) closing: CancellationToken,
    /// The leases held, for those that must be given back without their computation.
    pub(crate) running: Mutex<HashMap<LeaseToken, Uuid>>,
}

impl WorkerContext {
    pub(in crate::jobs) fn lock_running(&self) -> std::sync::MutexGuard<'_, HashMap<LeaseToken, Uuid>> {
        // the map stays whole wherever a holder might panic
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn claim(&self) -> Result<Option<(ClaimedJob, LeaseToken)>, StoreError> {
        let token = LeaseToken::draw()?;
        let WorkerConfig { lease, max_running_per_tenant, max_running_per_engine, .. } = self.config;
        let terms = ClaimTerms { lease, max_running_per_tenant, max_running_per_engine };
        let claimed = self.store.claim(token, terms, self.clock.now()).await?;
        Ok(claimed.map(|claimed| (claimed, token)))
    }
}

pub(crate) fn log_store_error(error: &StoreError, message: &'static str) {
    let source = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(error = %error, error.source = source, message);
}
