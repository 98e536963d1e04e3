//! Workers: they claim jobs, run them on blocking threads, keep their leases alive and record how they end.
//!
//! One dispatcher per process goes round these steps:
//! 1. wait for a permit, so that no job is claimed that cannot start;
//! 2. register for wake-ups, then look for a job: what is queued between the two is not missed;
//! 3. start it and go round at once, or, when there is none, wait for a wake-up or a jittered while (another process may have
//!    queued something).
//!
//! Beside it a reaper looks every tick for leases that expired and deadlines that passed. A permit is given back when its job
//! has ended or was put back, so that holding all permits means that nothing runs.

mod budget;
mod phases;
mod run;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::{ClaimTerms, ClaimedJob, JobRecord, LeaseToken, Notifier, ReapProblems, Store, StoreError};
use crate::clock::Clock;
use crate::control::Control;
use crate::meter;
use crate::problem::{Kind, Problem};
use crate::vault::{Secret, Vault};
pub use budget::{MemoryBudget, MemoryPermit};
use run::JobRun;

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
}

/// How a runner ends well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunCompletion {
    /// It committed this release.
    Committed(Uuid),
    /// A standing release has the reuse key; the worker ends the job with it.
    Reused(Uuid),
    /// It was told that the job is no longer its own.
    LeaseLost,
}

/// Why a runner stopped without a release.
#[derive(Clone, PartialEq, Debug)]
pub enum RunError {
    /// The control told it to.
    Cancelled,
    /// What was asked for cannot be done: the caller's answer.
    Refused(Problem),
    /// A bug or a limit.
    Failed(Problem),
}

impl From<crate::control::Cancelled> for RunError {
    fn from(_: crate::control::Cancelled) -> Self {
        Self::Cancelled
    }
}

/// Computes jobs, from the assignment to the commit.
#[async_trait]
pub trait JobRunner: Send + Sync {
    /// The memory that a job needs, held until it has ended; waits until it is free.
    ///
    /// # Errors
    /// Why the job cannot run.
    async fn room(&self, _job: &JobRecord, _store: &dyn Store) -> Result<MemoryPermit, RunError> {
        Ok(MemoryPermit::nothing())
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
            grace: Duration::from_secs(20),
            max_job: None,
        }
    }
}

/// How long a computation may take to notice that it was stopped before its lease is given back without it.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// What the dispatcher, the reaper and the runs share.
struct WorkerContext {
    store: Arc<dyn Store>,
    clock: Clock,
    runner: Arc<dyn JobRunner>,
    vault: Arc<Vault>,
    signals: Arc<Notifier>,
    config: WorkerConfig,
    permits: Arc<Semaphore>,
    /// Nothing more is claimed.
    stopping: CancellationToken,
    /// The grace is over: what runs is to stop.
    closing: CancellationToken,
    /// The leases held, for those that must be given back without their computation.
    running: Mutex<HashMap<LeaseToken, Uuid>>,
}

/// Starts workers.
pub struct Workers;

impl Workers {
    /// Starts workers on the runtime of the caller; they go on until [`WorkersHandle::shutdown`].
    #[must_use]
    pub fn start(
        store: Arc<dyn Store>,
        clock: Clock,
        runner: Arc<dyn JobRunner>,
        vault: Arc<Vault>,
        signals: Arc<Notifier>,
        config: WorkerConfig,
    ) -> WorkersHandle {
        let shared = Arc::new(WorkerContext {
            store,
            clock,
            runner,
            vault,
            signals,
            config,
            permits: Arc::new(Semaphore::new(config.workers as usize)),
            stopping: CancellationToken::new(),
            closing: CancellationToken::new(),
            running: Mutex::new(HashMap::new()),
        });
        let tasks = TaskTracker::new();
        tasks.spawn(dispatch(Arc::clone(&shared), tasks.clone()));
        tasks.spawn(reap(Arc::clone(&shared)));
        WorkersHandle { shared, tasks }
    }
}

/// Workers that run.
pub struct WorkersHandle {
    shared: Arc<WorkerContext>,
    tasks: TaskTracker,
}

impl WorkersHandle {
    /// Stops claiming, lets running jobs end within the grace, then stops them and puts them back into the queue.
    pub async fn shutdown(self) {
        self.shutdown_within(CANCEL_GRACE).await;
    }

    async fn shutdown_within(self, unwinding: Duration) {
        let Self { shared, tasks } = self;
        shared.stopping.cancel();
        tasks.close();
        if tokio::time::timeout(shared.config.grace, tasks.wait()).await.is_ok() {
            return;
        }
        shared.closing.cancel();
        if tokio::time::timeout(unwinding, tasks.wait()).await.is_ok() {
            return;
        }
        // a computation that does not look at its control goes on in vain: without the lease nothing it writes is accepted
        let stuck: Vec<_> = shared.lock_running().iter().map(|(&token, &job)| (token, job)).collect();
        for (token, job) in stuck {
            tracing::warn!(job.id = %job, "a job did not stop in time; its lease is given back without it");
            if let Err(error) = shared.store.release_lease(job, token, shared.clock.now()).await {
                log_store_error(&error, "a lease could not be given back");
            }
        }
    }
}

impl WorkerContext {
    fn lock_running(&self) -> std::sync::MutexGuard<'_, HashMap<LeaseToken, Uuid>> {
        // the map stays whole wherever a holder might panic
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn claim(&self) -> Result<Option<(ClaimedJob, LeaseToken)>, StoreError> {
        let token = LeaseToken::draw()?;
        let WorkerConfig { lease, max_running_per_tenant, .. } = self.config;
        let claimed = self.store.claim(token, ClaimTerms { lease, max_running_per_tenant }, self.clock.now()).await?;
        Ok(claimed.map(|claimed| (claimed, token)))
    }
}

async fn dispatch(shared: Arc<WorkerContext>, tasks: TaskTracker) {
    loop {
        let permit = tokio::select! {
            biased;
            () = shared.stopping.cancelled() => return,
            permit = Arc::clone(&shared.permits).acquire_owned() => match permit {
                Ok(permit) => permit,
                Err(_closed) => return,
            },
        };
        let mut woken = std::pin::pin!(shared.signals.work().notified());
        woken.as_mut().enable();
        match shared.claim().await {
            Ok(Some((claimed, token))) => {
                let run = JobRun::new(Arc::clone(&shared), claimed, token);
                tasks.spawn(async move {
                    run.go().await;
                    drop(permit);
                });
                continue;
            }
            Ok(None) => {}
            Err(error) => log_store_error(&error, "no job could be claimed"),
        }
        tokio::select! {
            () = shared.stopping.cancelled() => return,
            () = woken => {}
            () = tokio::time::sleep(jittered(shared.config.poll)) => {}
        }
    }
}

async fn reap(shared: Arc<WorkerContext>) {
    let problems = ReapProblems {
        exhausted: Problem::new(
            Kind::AttemptsExhausted,
            "the job was started several times and each time its worker vanished before the end",
        ),
        deadline: Problem::new(Kind::Deadline, "the deadline passed before a worker was free"),
    };
    loop {
        match shared.store.reap(shared.clock.now(), shared.config.max_attempts, &problems).await {
            Ok(reaped) if reaped.is_empty() => {}
            Ok(reaped) => {
                meter::reaped("requeued", reaped.requeued.len());
                meter::reaped("exhausted", reaped.exhausted.len());
                meter::reaped("cancelled", reaped.cancelled.len());
                meter::reaped("overdue", reaped.overdue.len());
                tracing::info!(
                    jobs.requeued = reaped.requeued.len(),
                    jobs.exhausted = reaped.exhausted.len(),
                    jobs.cancelled = reaped.cancelled.len(),
                    jobs.overdue = reaped.overdue.len(),
                    "jobs without a worker were moved"
                );
                shared.signals.job_queued();
                for (job, attempt) in reaped.lapsed {
                    if let Err(error) = shared.store.drop_attempt(job, attempt).await {
                        log_store_error(&error, "the parts of a lost attempt are left to the sweep");
                    }
                }
            }
            Err(error) => log_store_error(&error, "expired leases could not be looked for"),
        }
        tokio::select! {
            () = shared.stopping.cancelled() => return,
            () = tokio::time::sleep(shared.config.tick) => {}
        }
    }
}

fn log_store_error(error: &StoreError, message: &'static str) {
    let source = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(error = %error, error.source = source, message);
}

/// Between three and five quarters, so that the processes on one store do not look all at once.
fn jittered(interval: Duration) -> Duration {
    let mut random = [0; 1];
    // without randomness there is no jitter, and no harm
    let _ = getrandom::fill(&mut random);
    interval * (192 + u32::from(random[0]) / 2) / 256
}
