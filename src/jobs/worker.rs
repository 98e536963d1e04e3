//! Workers: they claim jobs, run them on blocking threads, keep their leases alive and record how they end.
//!
//! One dispatcher per process goes round these steps:
//! 1. wait for a permit, so that no job is claimed that cannot start;
//! 2. register for wake-ups, then look for a job: what is queued between the two is not missed;
//! 3. start it and go round at once, or, when there is none, wait for a wake-up or a jittered while (another process may have
//!    queued something).
//!
//! A reaper looks every tick for leases that expired and deadlines that passed. A permit is given back when its job
//! has ended or was put back, so that holding all permits means that nothing runs.

mod phases;
mod run;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use run::JobRun;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::runner::{JobRunner, WorkerConfig, WorkerContext, log_store_error};
use crate::clock::Clock;
use crate::meter;
use crate::ports::{Notifier, ReapProblems, Store};
use crate::problem::{Kind, Problem};
use crate::vault::Vault;

/// How long a computation may take to notice that it was stopped before its lease is given back without it.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// Workers before they start.
pub struct Workers {
    /// Has the queue.
    pub store: Arc<dyn Store>,
    /// The time of leases and deadlines.
    pub clock: Clock,
    /// Runs a claimed job.
    pub runner: Arc<dyn JobRunner>,
    /// Unwraps the keys of jobs.
    pub vault: Arc<Vault>,
    /// Wakes workers, and those who wait for jobs.
    pub signals: Arc<Notifier>,
    /// How many there are, and their intervals.
    pub config: WorkerConfig,
}

impl Workers {
    /// Starts the workers on the runtime of the caller; they go on until [`WorkersHandle::shutdown`].
    #[must_use]
    pub fn start(self) -> WorkersHandle {
        let Self { store, clock, runner, vault, signals, config } = self;
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

/// Between three and five quarters, so that the processes on one store do not look all at once.
fn jittered(interval: Duration) -> Duration {
    let mut random = [0; 1];
    // without randomness there is no jitter, and no harm
    let _ = getrandom::fill(&mut random);
    interval * (192 + u32::from(random[0]) / 2) / 256
}
