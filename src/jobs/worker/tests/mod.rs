//! Workers over a real store, with runners that do what the test says. Time is the test's clock; waiting is for tasks only.

mod limits;
mod poison;

use super::run;
use crate::clock::Clock;
use crate::control::Control;
use crate::inputs::MemoryPermit;
use crate::jobs::runner::{JobAssignment, JobReservation, JobRunner, RunCompletion, RunError, WorkerConfig};
use crate::ports::{JobRecord, Notifier, Store};
use crate::problem::{Kind, Problem};
use crate::vault::{Secret, Vault};
use async_trait::async_trait;
use std::io::Read;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;

use super::*;
use crate::control::Phase;
use crate::inputs::PartStorage;
use crate::ports::{CancelOutcome, CommitOutcome, JobStatus, NewJob};
use crate::publication::PublishedBytes;
use crate::store::conformance::{self, TENANT, at, audit_entry};
use crate::store::sqlite::SqliteStore;
use crate::vault::Purpose;

/// No tick comes while a test lasts.
const NEVER: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_millis(5);

struct Does<F>(F);

impl<F: Fn(JobAssignment, &Control) -> Result<RunCompletion, RunError> + Send + Sync> JobRunner for Does<F> {
    fn run(&self, assignment: JobAssignment, control: &Control) -> Result<RunCompletion, RunError> {
        (self.0)(assignment, control)
    }
}

struct Bench {
    store: Arc<dyn Store>,
    clock: Clock,
    vault: Arc<Vault>,
    signals: Arc<Notifier>,
}

impl Bench {
    async fn new() -> Self {
        Self {
            store: Arc::new(SqliteStore::temporary().await),
            clock: Clock::settable(at(0)),
            vault: Arc::new(Vault::in_memory().unwrap()),
            signals: Arc::new(Notifier::default()),
        }
    }

    fn start(
        &self,
        tick: Duration,
        runner: impl Fn(JobAssignment, &Control) -> Result<RunCompletion, RunError> + Send + Sync + 'static,
    ) -> WorkersHandle {
        let config = WorkerConfig { workers: 2, tick, poll: NEVER, grace: Duration::ZERO, ..WorkerConfig::default() };
        self.start_with(config, runner)
    }

    fn start_with(
        &self,
        config: WorkerConfig,
        runner: impl Fn(JobAssignment, &Control) -> Result<RunCompletion, RunError> + Send + Sync + 'static,
    ) -> WorkersHandle {
        self.start_runner(config, Arc::new(Does(runner)))
    }

    fn start_runner(&self, config: WorkerConfig, runner: Arc<dyn JobRunner>) -> WorkersHandle {
        let workers = Workers {
            store: Arc::clone(&self.store),
            clock: self.clock.clone(),
            runner,
            vault: Arc::clone(&self.vault),
            signals: Arc::clone(&self.signals),
            config,
        };
        workers.start()
    }

    async fn submit(&self, reuse: u8) -> Uuid {
        self.submit_with(reuse, |_| {}).await
    }

    async fn submit_with(&self, reuse: u8, change: impl FnOnce(&mut NewJob)) -> Uuid {
        let mut new = conformance::new_job(conformance::dataset(&*self.store).await, reuse);
        new.wrapped_key = self.vault.wrap(Purpose::Release, new.id, &Secret::new([reuse; 32])).unwrap();
        change(&mut new);
        let id = self.store.enqueue(new).await.unwrap().id;
        self.signals.job_queued();
        id
    }

    /// Awaits a status as the API does: subscribe, read, await a change.
    async fn reaches(&self, id: Uuid, status: JobStatus) -> JobRecord {
        let waiting = async {
            let mut changes = self.signals.changes();
            loop {
                let job = conformance::job(&*self.store, id).await;
                if job.status == status {
                    return job;
                }
                assert!(!job.status.is_terminal(), "ended as {:?}", job.status);
                changes.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("the job gets there")
    }
}

fn problem_type(job: &JobRecord) -> &str {
    job.problem.as_ref().unwrap()["type"].as_str().unwrap()
}

/// Works until it is cancelled; not for ever, as no test ends before its threads.
fn until_stopped(control: &Control) -> Result<RunCompletion, RunError> {
    for _ in 0..60_000 {
        control.check()?;
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the job was not stopped");
}

fn storage(assignment: &JobAssignment) -> PartStorage {
    let JobAssignment { handle, store, job, attempt, .. } = assignment;
    PartStorage::new(handle.clone(), Arc::clone(store), job.tenant.clone(), job.id, *attempt)
}

fn commit(assignment: &JobAssignment) -> RunCompletion {
    commit_at(assignment, at(1))
}

fn commit_at(assignment: &JobAssignment, now: chrono::DateTime<chrono::Utc>) -> RunCompletion {
    let job = &assignment.job;
    loop {
        let ledger =
            assignment.handle.block_on(assignment.store.disclosures(&job.tenant, &job.series, &[7; 32])).unwrap();
        let commit = conformance::commit_of(job, assignment.lease_token, ledger.version, now);
        let id = commit.release.id;
        match assignment.handle.block_on(assignment.store.commit(commit)).unwrap() {
            CommitOutcome::Committed => return RunCompletion::Committed(id),
            CommitOutcome::AlreadyReleased(release) => return RunCompletion::Reused(release),
            CommitOutcome::LeaseLost => return RunCompletion::LeaseLost,
            CommitOutcome::LedgerMoved | CommitOutcome::ChainMoved => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_run_from_the_queue_to_a_release() {
    let bench = Bench::new().await;
    let rows = |number: u32| format!("{number},x\r\n").repeat(1000 + number as usize).into_bytes();
    let workers = bench.start(NEVER, move |assignment, control| {
        assert_eq!(*assignment.release_key, [1; 32]);
        let mut storage = storage(&assignment);
        control.begin(Phase::Write, 3)?;
        for number in 0..3 {
            storage.put("t1.qi.csv", number, u64::from(number) * 2000, 1000 + number, &rows(number)).unwrap();
            control.advance(1)?;
        }
        assert!(storage.open("t1.sa.csv").is_err());
        let mut read = Vec::new();
        storage.open("t1.qi.csv").unwrap().read_to_end(&mut read).unwrap();
        assert!(read == [rows(0), rows(1), rows(2)].concat());
        Ok(commit(&assignment))
    });
    let id = bench.submit(1).await;
    let job = bench.reaches(id, JobStatus::Succeeded).await;
    assert_eq!((job.attempt, job.started_at), (1, Some(at(0))));
    let chunk = bench.store.part_chunk(TENANT, id, 1, "t1.qi.csv", 1).await.unwrap().unwrap();
    assert!(crate::inputs::decompress(&chunk.payload).unwrap() == rows(1));
    assert!(bench.store.release(TENANT, job.release.unwrap()).await.unwrap().is_some());
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_fails_the_job_and_the_worker_goes_on() {
    let bench = Bench::new().await;
    let config = WorkerConfig { workers: 1, tick: NEVER, poll: NEVER, ..WorkerConfig::default() };
    let workers = bench.start_with(config, |assignment, _| {
        storage(&assignment).put("t1.qi.csv", 0, 0, 1, b"x").unwrap();
        assert_ne!(assignment.job.reuse_key, [1; 32], "a secret value");
        Ok(commit(&assignment))
    });
    let first = bench.submit(1).await;
    let failed = bench.reaches(first, JobStatus::Failed).await;
    assert!(problem_type(&failed).ends_with("/internal"));
    assert!(!failed.problem.unwrap().to_string().contains("secret"));
    assert_eq!(bench.store.part_chunk(TENANT, first, 1, "t1.qi.csv", 0).await.unwrap(), None);
    let second = bench.submit(2).await;
    bench.reaches(second, JobStatus::Succeeded).await;
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_recorded_with_its_problem() {
    let bench = Bench::new().await;
    let workers = bench.start(NEVER, |_, _| Err(RunError::Refused(Problem::new(Kind::EmptyTable, "no rows"))));
    let id = bench.submit(1).await;
    let job = bench.reaches(id, JobStatus::Refused).await;
    assert!(conformance::is_problem(job.problem.as_ref(), Kind::EmptyTable, id));
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_job_is_cancelled_by_request() {
    let bench = Bench::new().await;
    let workers = bench.start(NEVER, |assignment, control| {
        storage(&assignment).put("t1.qi.csv", 0, 0, 1, b"x").unwrap();
        until_stopped(control)
    });
    let id = bench.submit(1).await;
    bench.reaches(id, JobStatus::Running).await;
    assert_eq!(bench.store.request_cancel(TENANT, id, at(1), &audit_entry()).await.unwrap(), CancelOutcome::Requested);
    bench.signals.cancel_requested();
    let job = bench.reaches(id, JobStatus::Cancelled).await;
    assert_eq!(job.problem, None);
    assert_eq!(bench.store.part_chunk(TENANT, id, 1, "t1.qi.csv", 0).await.unwrap(), None);
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_another_process_is_found_by_the_tick() {
    let bench = Bench::new().await;
    let workers = bench.start(SOON, |_, control| until_stopped(control));
    let id = bench.submit(1).await;
    bench.reaches(id, JobStatus::Running).await;
    bench.store.request_cancel(TENANT, id, at(1), &audit_entry()).await.unwrap();
    bench.reaches(id, JobStatus::Cancelled).await;
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_stops_a_running_job() {
    let bench = Bench::new().await;
    let (sender, receiver) = mpsc::channel();
    let workers = bench.start(SOON, move |_, control| {
        sender.send(()).unwrap();
        until_stopped(control)
    });
    let id = bench.submit_with(1, |new| new.deadline_at = Some(at(20))).await;
    // the time that is left is taken after the claim, before the run
    tokio::task::spawn_blocking(move || receiver.recv().unwrap()).await.unwrap();
    bench.clock.advance(Duration::from_secs(20));
    let job = bench.reaches(id, JobStatus::Failed).await;
    assert!(problem_type(&job).ends_with("/deadline"));
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_lost_its_lease_stops_and_the_job_runs_again() {
    let bench = Bench::new().await;
    let workers = bench.start(SOON, |assignment, control| {
        let mut storage = storage(&assignment);
        storage.put("t1.qi.csv", 0, 0, 1, b"x").unwrap();
        if assignment.attempt > 1 {
            return Ok(commit_at(&assignment, at(33)));
        }
        let stopped = until_stopped(control);
        // a worker that did not notice could not commit either
        assert_eq!(commit_at(&assignment, at(31)), RunCompletion::LeaseLost);
        stopped
    });
    let id = bench.submit(1).await;
    bench.reaches(id, JobStatus::Running).await;
    bench.clock.advance(WorkerConfig::default().lease);
    bench.reaches(id, JobStatus::Queued).await;
    bench.clock.advance(crate::ports::back_off(1));
    bench.signals.job_queued();
    let job = bench.reaches(id, JobStatus::Succeeded).await;
    assert_eq!(job.attempt, 2);
    assert_eq!(bench.store.release(TENANT, job.release.unwrap()).await.unwrap().unwrap().attempt, 2);
    workers.shutdown().await;
    assert_eq!(bench.store.part_chunk(TENANT, id, 1, "t1.qi.csv", 0).await.unwrap(), None);
    assert!(bench.store.part_chunk(TENANT, id, 2, "t1.qi.csv", 0).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_written_when_it_changed() {
    let bench = Bench::new().await;
    let (proceed, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let workers = bench.start(SOON, move |assignment, control| {
        control.begin(Phase::Verify, 7)?;
        control.advance(3)?;
        wait.lock().unwrap().recv().unwrap();
        Ok(commit(&assignment))
    });
    let id = bench.submit(1).await;
    let noted = async {
        loop {
            let progress = conformance::job(&*bench.store, id).await.progress;
            if progress.is_some_and(|progress| progress.phase == Phase::Verify && progress.done == 3) {
                return progress;
            }
            tokio::time::sleep(SOON).await;
        }
    };
    let progress = tokio::time::timeout(Duration::from_secs(20), noted).await.unwrap().unwrap();
    assert_eq!(progress.of, 7);
    proceed.send(()).unwrap();
    bench.reaches(id, JobStatus::Succeeded).await;
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_puts_running_jobs_back() {
    let bench = Bench::new().await;
    let workers = bench.start(NEVER, |assignment, control| {
        storage(&assignment).put("t1.qi.csv", 0, 0, 1, b"x").unwrap();
        until_stopped(control)
    });
    let id = bench.submit(1).await;
    bench.reaches(id, JobStatus::Running).await;
    workers.shutdown().await;
    let job = conformance::job(&*bench.store, id).await;
    assert_eq!((job.status, job.attempt), (JobStatus::Queued, 1));
    assert_eq!(bench.store.part_chunk(TENANT, id, 1, "t1.qi.csv", 0).await.unwrap(), None);
    // and the next process runs it
    let workers = bench.start(NEVER, |assignment, _| Ok(commit(&assignment)));
    assert_eq!(bench.reaches(id, JobStatus::Succeeded).await.attempt, 2);
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_lets_a_job_end_within_the_grace() {
    let bench = Bench::new().await;
    let (proceed, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let config = WorkerConfig { workers: 1, tick: NEVER, poll: NEVER, grace: NEVER, ..WorkerConfig::default() };
    let workers = bench.start_with(config, move |assignment, _| {
        wait.lock().unwrap().recv().unwrap();
        Ok(commit(&assignment))
    });
    let running = bench.submit(1).await;
    bench.reaches(running, JobStatus::Running).await;
    let waiting = bench.submit(2).await;
    let stopping = workers.shared.stopping.clone();
    let shutdown = tokio::spawn(workers.shutdown());
    stopping.cancelled().await;
    proceed.send(()).unwrap();
    shutdown.await.unwrap();
    assert_eq!(conformance::job(&*bench.store, running).await.status, JobStatus::Succeeded);
    assert_eq!(conformance::job(&*bench.store, waiting).await.status, JobStatus::Queued, "nothing new is claimed");
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_takes_the_lease_of_an_endless_computation() {
    let bench = Bench::new().await;
    let (proceed, wait) = mpsc::channel::<()>();
    let (sender, receiver) = mpsc::channel();
    let wait = Mutex::new(wait);
    let workers = bench.start(NEVER, move |assignment, _| {
        wait.lock().unwrap().recv().unwrap();
        sender.send(commit(&assignment)).unwrap();
        Ok(RunCompletion::LeaseLost)
    });
    let id = bench.submit(1).await;
    bench.reaches(id, JobStatus::Running).await;
    workers.shutdown_within(Duration::ZERO).await;
    assert_eq!(conformance::job(&*bench.store, id).await.status, JobStatus::Queued);
    proceed.send(()).unwrap();
    let late = tokio::task::spawn_blocking(move || receiver.recv().unwrap()).await.unwrap();
    assert_eq!(late, RunCompletion::LeaseLost);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_at_any_moment_leaves_no_job_running() {
    let bench = Bench::new().await;
    for reuse in 1..=12 {
        let id = bench.submit(reuse).await;
        let workers = bench.start(NEVER, |_, control| until_stopped(control));
        for _ in 0..reuse {
            tokio::task::yield_now().await;
        }
        workers.shutdown().await;
        assert_eq!(conformance::job(&*bench.store, id).await.status, JobStatus::Queued);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_jobs_run_than_there_are_workers() {
    let bench = Bench::new().await;
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let counters = (Arc::clone(&now), Arc::clone(&most));
    let workers = bench.start(NEVER, move |assignment, _| {
        let running = counters.0.fetch_add(1, Ordering::SeqCst) + 1;
        counters.1.fetch_max(running, Ordering::SeqCst);
        let completion = commit(&assignment);
        counters.0.fetch_sub(1, Ordering::SeqCst);
        Ok(completion)
    });
    let mut ids = Vec::new();
    for reuse in 1..=9 {
        ids.push(bench.submit(reuse).await);
    }
    for id in ids {
        bench.reaches(id, JobStatus::Succeeded).await;
    }
    assert!((1..=2).contains(&most.load(Ordering::SeqCst)));
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_finds_a_release_like_its_own_gets_it() {
    let bench = Bench::new().await;
    let (_, earlier) = conformance::release(&*bench.store, 9).await;
    let workers = bench.start(NEVER, move |assignment, _| {
        storage(&assignment).put("t1.qi.csv", 0, 0, 1, b"x").unwrap();
        Ok(RunCompletion::Reused(earlier))
    });
    let id = bench.submit(1).await;
    let job = bench.reaches(id, JobStatus::Succeeded).await;
    assert_eq!((job.release, job.reused), (Some(earlier), true));
    assert_eq!(bench.store.part_chunk(TENANT, id, 1, "t1.qi.csv", 0).await.unwrap(), None);
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_twin_follows_when_the_first_ends_without_a_release() {
    let bench = Bench::new().await;
    let first_failed = AtomicU32::new(0);
    let workers = bench.start(NEVER, move |assignment, _| {
        if first_failed.fetch_add(1, Ordering::SeqCst) == 0 {
            return Err(RunError::Failed(Problem::new(Kind::Internal, "first")));
        }
        Ok(commit(&assignment))
    });
    let dataset = conformance::dataset(&*bench.store).await;
    let mut twins = Vec::new();
    for _ in 0..3 {
        let mut new = conformance::new_job(dataset, 1);
        new.wrapped_key = bench.vault.wrap(Purpose::Release, new.id, &Secret::new([1; 32])).unwrap();
        twins.push(bench.store.enqueue(new).await.unwrap().id);
    }
    bench.signals.job_queued();
    bench.reaches(twins[0], JobStatus::Failed).await;
    let second = bench.reaches(twins[1], JobStatus::Succeeded).await;
    let third = bench.reaches(twins[2], JobStatus::Succeeded).await;
    assert_eq!((second.release, second.reused, third.reused), (third.release, false, true));
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_outlives_a_store_without_an_answer_or_room() {
    for kind in [Kind::Unavailable, Kind::StorageFull] {
        let bench = Bench::new().await;
        let tries = AtomicU32::new(0);
        let workers = bench.start(SOON, move |assignment, _| {
            if assignment.job.reuse_key[0] == 2 || tries.fetch_add(1, Ordering::SeqCst) < 3 {
                return Err(RunError::Failed(Problem::new(kind, "not now")));
            }
            Ok(commit(&assignment))
        });
        let id = bench.submit(1).await;
        assert_eq!(bench.reaches(id, JobStatus::Succeeded).await.attempt, 4);
        // not for ever
        let id = bench.submit(2).await;
        let job = bench.reaches(id, JobStatus::Failed).await;
        assert_eq!(job.attempt, run::MAX_STORE_FAILURES);
        assert!(problem_type(&job).ends_with(kind.name()));
        workers.shutdown().await;
    }
}

/// Commits, but the store cannot answer the first reservations.
struct LateReservation {
    refused: AtomicU32,
    most: u32,
}

#[async_trait]
impl JobRunner for LateReservation {
    async fn reserve(&self, _: &JobRecord, _: &Arc<dyn Store>) -> Result<JobReservation, RunError> {
        match self.refused.fetch_add(1, Ordering::SeqCst) < self.most {
            true => Err(RunError::Failed(Problem::new(Kind::Unavailable, "a connection was lost"))),
            false => Ok(JobReservation::new(MemoryPermit::nothing())),
        }
    }

    fn run(&self, assignment: JobAssignment, _: &Control) -> Result<RunCompletion, RunError> {
        Ok(commit(&assignment))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_outlives_a_store_that_fails_before_its_start() {
    let bench = Bench::new().await;
    let config = WorkerConfig { workers: 2, tick: SOON, poll: NEVER, grace: Duration::ZERO, ..WorkerConfig::default() };
    let runner = Arc::new(LateReservation { refused: AtomicU32::new(0), most: 2 });
    let workers = bench.start_runner(config, runner);
    let id = bench.submit(1).await;
    assert_eq!(bench.reaches(id, JobStatus::Succeeded).await.attempt, 3);
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_key_cannot_be_opened_fails() {
    let bench = Bench::new().await;
    let workers = bench.start(NEVER, |_, _| panic!("never runs"));
    let id = bench.submit_with(1, |new| new.wrapped_key = vec![1; 73]).await;
    let job = bench.reaches(id, JobStatus::Failed).await;
    assert!(problem_type(&job).ends_with("/internal"));
    workers.shutdown().await;
}

#[test]
fn waits_are_jittered_by_at_most_a_quarter() {
    for _ in 0..1000 {
        let wait = jittered(Duration::from_millis(1000)).as_millis();
        assert!((750..=1250).contains(&wait), "{wait}");
    }
}
