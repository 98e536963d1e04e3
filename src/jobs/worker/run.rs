//! One job on one worker, from the claim to its end.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::phases::Phases;
use crate::control::{Control, Progress, with_own_threads};
use crate::jobs::runner::{JobAssignment, JobReservation, RunCompletion, RunError, WorkerContext, log_store_error};
use crate::meter;
use crate::ports::{ClaimedJob, Heartbeat, JobEnd, JobRecord, LeaseToken, StoreError, WriteOutcome, instance};
use crate::problem::{Kind, Problem};
use crate::vault::{Purpose, Secret};

/// How often an end is tried to be recorded, a tick apart, before it is left to the reaper.
const MAX_OUTCOME_WRITES: u32 = 5;

/// Most attempts of a job whose store cannot answer, for which there is no room, or which is left to others; each is followed by a
/// pause one tick longer than the last.
pub(super) const MAX_STORE_FAILURES: u32 = 20;

/// Why a computation was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StopCause {
    Cancel = 1,
    Deadline = 2,
    LeaseLost = 3,
    Shutdown = 4,
    TooLong = 5,
}

/// Whether and why a computation was stopped: the first reason counts, except that a lost lease overrides all, because after it
/// nothing may be written.
#[derive(Default)]
struct StopSignal {
    why: AtomicU8,
    control: Control,
    /// For what waits before the computation begins.
    stopped: CancellationToken,
    /// When the computation began.
    begun: OnceLock<DateTime<Utc>>,
}

impl StopSignal {
    fn stop(&self, why: StopCause) {
        if why == StopCause::LeaseLost {
            self.why.store(why as u8, Ordering::SeqCst);
        } else {
            let _ = self.why.compare_exchange(0, why as u8, Ordering::SeqCst, Ordering::SeqCst);
        }
        self.control.cancel();
        self.stopped.cancel();
    }

    fn why(&self) -> Option<StopCause> {
        [StopCause::Cancel, StopCause::Deadline, StopCause::LeaseLost, StopCause::Shutdown, StopCause::TooLong]
            .into_iter()
            .find(|&why| why as u8 == self.why.load(Ordering::SeqCst))
    }
}

/// What is to be recorded of a run.
enum RunOutcome {
    /// The commit has recorded it.
    Committed,
    Reused(Uuid),
    End(JobEnd),
    BackToQueue,
    /// There is no room or no engine here: it goes back into the queue, and this worker lets others take it.
    LeftToOthers,
    /// Somebody else has the job; nothing is recorded.
    Lost,
}

pub(super) struct JobRun {
    shared: Arc<WorkerContext>,
    claimed: ClaimedJob,
    token: LeaseToken,
    verdict: Arc<StopSignal>,
    since: Instant,
    _working: meter::RunningJob,
}

impl JobRun {
    pub(super) fn new(shared: Arc<WorkerContext>, claimed: ClaimedJob, token: LeaseToken) -> Self {
        shared.lock_running().insert(token, claimed.job.id);
        let (since, working) = (Instant::now(), meter::RunningJob::begin());
        Self { shared, claimed, token, verdict: Arc::default(), since, _working: working }
    }

    /// Runs the job, with a heartbeat until the end is recorded.
    pub(super) async fn go(self) {
        let JobRecord { id: job, deadline_at, started_at, .. } = self.claimed.job;
        self.shared.signals.job_changed();
        tracing::info!(job.id = %job, job.attempt = self.claimed.job.attempt, "job started");
        let heart = HeartbeatTask {
            shared: Arc::clone(&self.shared),
            job,
            // the claim has the time of the store, from which this machine's may differ
            deadline_at: deadline_at.zip(started_at).map(|(end, begun)| self.shared.clock.now() + (end - begun)),
            token: self.token,
            verdict: Arc::clone(&self.verdict),
        };
        let run = async {
            let outcome = self.compute().await;
            let is_left = matches!(outcome, RunOutcome::LeftToOthers);
            self.record(outcome).await;
            if is_left {
                self.pause().await;
            }
        };
        tokio::select! {
            () = run => {}
            // never ends by itself
            () = heart.beat() => {}
        }
        self.shared.lock_running().remove(&self.token);
        // a job like this one may wait for its end
        self.shared.signals.job_queued();
    }

    async fn compute(&self) -> RunOutcome {
        let job = &self.claimed.job;
        let release_key = match self.shared.vault.unwrap_secret(Purpose::Release, job.id, &self.claimed.wrapped_key) {
            Ok(release_key) => release_key,
            Err(error) => {
                tracing::error!(job.id = %job.id, error = %error, "the release key cannot be opened");
                return failed(job.id, &Problem::new(Kind::Internal, "the release key of the job cannot be opened"));
            }
        };
        let reserved = tokio::select! {
            reserved = self.shared.runner.reserve(job, &self.shared.store) => reserved,
            () = self.verdict.stopped.cancelled() => Err(RunError::Cancelled),
        };
        let JobReservation { memory, seen } = match reserved {
            Ok(reserved) => reserved,
            Err(stop) => return self.without_release(stop).await,
        };
        // set once: the run is only gone through once
        let _ = self.verdict.begun.set(self.shared.clock.now());
        let assignment = JobAssignment { seen, ..self.assignment(release_key) };
        let runner = Arc::clone(&self.shared.runner);
        let control = self.verdict.control.clone();
        // of the highest level, so that no filter of the log takes the job's id from its errors
        let span = tracing::error_span!("job", job.id = %job.id, job.attempt = job.attempt, job.method = job.method);
        let phases = Phases::watch(&job.method, &control);
        let computation = move || {
            // kept by the thread, which may run on after its waiter has gone
            let _memory = memory;
            let _inside = span.entered();
            let ended = runner.run(assignment, &control);
            phases.finish();
            ended
        };
        let computed = tokio::task::spawn_blocking(|| with_own_threads(computation)).await;
        let why = self.verdict.why();
        match computed {
            Ok(Ok(RunCompletion::Committed(release))) => {
                tracing::info!(job.id = %job.id, release.id = %release, "job succeeded");
                RunOutcome::Committed
            }
            Ok(Ok(RunCompletion::LeaseLost)) => RunOutcome::Lost,
            _ if why == Some(StopCause::LeaseLost) => RunOutcome::Lost,
            Ok(Ok(RunCompletion::Reused(release))) => RunOutcome::Reused(release),
            Ok(Err(stop)) => self.without_release(stop).await,
            // a panic's payload may quote the data: it is dropped unread
            Err(_panicked) => {
                tracing::error!(job.id = %job.id, "the computation of a job panicked");
                failed(job.id, &Problem::new(Kind::Internal, "the computation stopped unexpectedly"))
            }
        }
    }

    async fn without_release(&self, stop: RunError) -> RunOutcome {
        let job = self.claimed.job.id;
        match stop {
            _ if self.verdict.why() == Some(StopCause::LeaseLost) => RunOutcome::Lost,
            // no fault of the job, which can be made from the beginning at any time
            RunError::Failed(problem)
                if matches!(problem.kind, Kind::Unavailable | Kind::StorageFull)
                    && self.claimed.job.attempt < MAX_STORE_FAILURES =>
            {
                tracing::warn!(job.id = %job, cause = problem.kind.name(), "a job goes back into the queue");
                if problem.kind == Kind::StorageFull {
                    return RunOutcome::LeftToOthers;
                }
                self.pause().await;
                RunOutcome::BackToQueue
            }
            RunError::LeftToOthers(problem) if self.claimed.job.attempt < MAX_STORE_FAILURES => {
                tracing::warn!(job.id = %job, cause = problem.kind.name(), "a job is left to other workers");
                RunOutcome::LeftToOthers
            }
            RunError::Refused(problem) => RunOutcome::End(JobEnd::Refused(problem.to_json(&instance(job)))),
            RunError::Failed(problem) | RunError::LeftToOthers(problem) => failed(job, &problem),
            RunError::Cancelled => self.stopped(),
        }
    }

    fn stopped(&self) -> RunOutcome {
        let job = self.claimed.job.id;
        match self.verdict.why() {
            Some(StopCause::Cancel) => RunOutcome::End(JobEnd::Cancelled),
            Some(StopCause::Deadline) => {
                failed(job, &Problem::new(Kind::Deadline, "the deadline passed before the job ended"))
            }
            Some(StopCause::TooLong) => {
                let limit = self.shared.config.max_job.unwrap_or_default().as_secs();
                let detail = format!("the job ran longer than {limit} seconds, as long as a job may");
                failed(job, &Problem::new(Kind::Deadline, detail).with("limit", limit))
            }
            Some(StopCause::LeaseLost) => RunOutcome::Lost,
            Some(StopCause::Shutdown) => RunOutcome::BackToQueue,
            None => failed(job, &Problem::new(Kind::Internal, "the computation stopped without a reason")),
        }
    }

    /// Gives a store time that could not answer; less when there is none left.
    async fn pause(&self) {
        tokio::select! {
            () = tokio::time::sleep(self.shared.config.tick * self.claimed.job.attempt) => {}
            () = self.shared.stopping.cancelled() => {}
        }
    }

    fn assignment(&self, release_key: Secret) -> JobAssignment {
        JobAssignment {
            job: self.claimed.job.clone(),
            attempt: self.claimed.job.attempt,
            lease_token: self.token,
            release_key,
            store: Arc::clone(&self.shared.store),
            handle: Handle::current(),
            seen: None,
        }
    }

    /// Removes the parts of an attempt without a commit, then records the end. The store keeps the parts of a release, even if
    /// this worker did not learn that its commit went through.
    async fn record(&self, outcome: RunOutcome) {
        let JobRecord { id, attempt, .. } = self.claimed.job;
        if matches!(outcome, RunOutcome::Committed) {
            return self.ended("succeeded");
        }
        if let Err(error) = self.shared.store.drop_attempt(id, attempt).await {
            log_store_error(&error, "the parts of an attempt are left to the sweep");
        }
        for _ in 0..MAX_OUTCOME_WRITES {
            match self.try_record(&outcome).await {
                Ok(WriteOutcome::Done) => {
                    return match &outcome {
                        RunOutcome::Committed | RunOutcome::Lost => {}
                        RunOutcome::Reused(_) => self.ended("reused"),
                        RunOutcome::End(end) => self.ended(end.status().name()),
                        RunOutcome::BackToQueue | RunOutcome::LeftToOthers => meter::put_back(),
                    };
                }
                Ok(WriteOutcome::LeaseLost) => {
                    meter::lease_lost();
                    tracing::warn!(job.id = %id, "the end of a job was not recorded: its lease was lost");
                    return;
                }
                Err(error) => log_store_error(&error, "the end of a job could not be recorded"),
            }
            tokio::time::sleep(self.shared.config.tick).await;
        }
    }

    fn ended(&self, outcome: &'static str) {
        meter::ended(&self.claimed.job.method, outcome, self.since.elapsed());
    }

    async fn try_record(&self, outcome: &RunOutcome) -> Result<WriteOutcome, StoreError> {
        let (store, now) = (&self.shared.store, self.shared.clock.now());
        let id = self.claimed.job.id;
        match outcome {
            RunOutcome::Committed => Ok(WriteOutcome::Done),
            RunOutcome::Lost => Ok(WriteOutcome::LeaseLost),
            RunOutcome::Reused(release) => store.succeed_with_reused(id, self.token, *release, now).await,
            RunOutcome::End(end) => {
                tracing::info!(job.id = %id, job.status = end.status().name(), "job ended without a release");
                store.finish(id, self.token, end.clone(), now).await
            }
            RunOutcome::BackToQueue | RunOutcome::LeftToOthers => store.release_lease(id, self.token, now).await,
        }
    }
}

fn failed(job: Uuid, problem: &Problem) -> RunOutcome {
    RunOutcome::End(JobEnd::Failed(problem.to_json(&instance(job))))
}

/// Keeps a lease alive and passes on what should stop the computation.
struct HeartbeatTask {
    shared: Arc<WorkerContext>,
    job: Uuid,
    /// By the clock of this process.
    deadline_at: Option<DateTime<Utc>>,
    token: LeaseToken,
    verdict: Arc<StopSignal>,
}

impl HeartbeatTask {
    /// Every tick, or at once when someone asks to cancel a job: writes when the progress changed or a third of the lease has
    /// passed, else only reads. A store that cannot answer is asked again; should it stay away too long the lease expires and
    /// the store refuses what follows. The claim was the first beat: of a job that ends within a tick there is no other.
    async fn beat(&self) {
        let third = self.shared.config.lease / 3;
        let mut cancels = self.shared.signals.cancels();
        // the job may have begun before its heartbeat did
        let mut written = (Control::default().progress(), self.shared.clock.now());
        let mut closing = false;
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.shared.config.tick) => {}
                Ok(()) = cancels.changed() => {}
                () = self.shared.closing.cancelled(), if !closing => {
                    closing = true;
                    self.verdict.stop(StopCause::Shutdown);
                }
            }
            let now = self.shared.clock.now();
            let progress = self.verdict.control.progress();
            let due = written.0 != progress || elapsed(written.1, now) >= third;
            match self.look(due.then_some(progress), now).await {
                Ok(Heartbeat::Alive { cancel_requested }) => {
                    if due {
                        written = (progress, now);
                    }
                    if cancel_requested {
                        self.verdict.stop(StopCause::Cancel);
                    }
                }
                Ok(Heartbeat::Lost) => {
                    // also the answer once the end is recorded, when it no longer matters
                    self.verdict.stop(StopCause::LeaseLost);
                    return std::future::pending().await;
                }
                Err(error) => log_store_error(&error, "a heartbeat failed"),
            }
            if self.deadline_at.is_some_and(|deadline| deadline <= self.shared.clock.now()) {
                self.verdict.stop(StopCause::Deadline);
            }
            if let (Some(most), Some(&begun)) = (self.shared.config.max_job, self.verdict.begun.get())
                && elapsed(begun, self.shared.clock.now()) >= most
            {
                self.verdict.stop(StopCause::TooLong);
            }
        }
    }

    async fn look(&self, note: Option<Progress>, now: DateTime<Utc>) -> Result<Heartbeat, StoreError> {
        let store = &self.shared.store;
        match note {
            Some(progress) => {
                store.heartbeat(self.job, self.token, Some(progress), self.shared.config.lease, now).await
            }
            None => store.lease(self.job, self.token, now).await,
        }
    }
}

fn elapsed(from: DateTime<Utc>, to: DateTime<Utc>) -> Duration {
    (to - from).to_std().unwrap_or_default()
}
