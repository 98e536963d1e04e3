//! How long jobs may run, and how much memory they may take together.

use async_trait::async_trait;

use super::*;
use crate::inputs::MemoryBudget;
use crate::jobs::runner::JobReservation;
use crate::store::conformance;

const MIB: u64 = 1 << 20;

/// Jobs need as many MiB as their reuse key says.
struct Rationed<F>(MemoryBudget, F);

#[async_trait]
impl<F: Fn(JobAssignment, &Control) -> Result<RunCompletion, RunError> + Send + Sync> JobRunner for Rationed<F> {
    async fn reserve(&self, job: &JobRecord, _: &Arc<dyn Store>) -> Result<JobReservation, RunError> {
        let memory = self.0.acquire(u64::from(job.reuse_key[0]) * MIB).await;
        memory.map(JobReservation::new).map_err(RunError::Failed)
    }

    fn run(&self, assignment: JobAssignment, control: &Control) -> Result<RunCompletion, RunError> {
        (self.1)(assignment, control)
    }
}

fn start(
    bench: &Bench,
    mib: u64,
    runner: impl Fn(JobAssignment, &Control) -> Result<RunCompletion, RunError> + Send + Sync + 'static,
) -> WorkersHandle {
    let config = WorkerConfig { workers: 4, tick: SOON, poll: NEVER, grace: Duration::ZERO, ..WorkerConfig::default() };
    let runner = Arc::new(Rationed(MemoryBudget::new(Some(mib * MIB)), runner));
    let (vault, signals) = (Arc::clone(&bench.vault), Arc::clone(&bench.signals));
    Workers { store: Arc::clone(&bench.store), clock: bench.clock.clone(), runner, vault, signals, config }.start()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_runs_too_long_fails_with_the_limit() {
    let bench = Bench::new().await;
    let config =
        WorkerConfig { tick: SOON, poll: NEVER, max_job: Some(Duration::from_secs(7)), ..WorkerConfig::default() };
    let (sender, receiver) = mpsc::channel();
    let workers = bench.start_with(config, move |_, control| {
        sender.send(()).unwrap();
        until_stopped(control)
    });
    let id = bench.submit(1).await;
    tokio::task::spawn_blocking(move || receiver.recv().unwrap()).await.unwrap();
    bench.clock.advance(Duration::from_secs(7));
    let job = bench.reaches(id, JobStatus::Failed).await;
    assert!(conformance::is_problem(job.problem.as_ref(), Kind::Deadline, id));
    assert_eq!(job.problem.unwrap()["limit"], 7);
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_run_together_as_far_as_their_memory_goes() {
    let bench = Bench::new().await;
    let (proceed, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let (sender, receiver) = mpsc::channel();
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
    let workers = start(&bench, 10, move |assignment, _| {
        let need = u32::from(assignment.job.reuse_key[0]);
        peak.fetch_max(now.fetch_add(need, Ordering::SeqCst) + need, Ordering::SeqCst);
        sender.send(need).unwrap();
        wait.lock().unwrap().recv().unwrap();
        now.fetch_sub(need, Ordering::SeqCst);
        Ok(commit(&assignment))
    });
    let first = bench.submit(6).await;
    let mut receiver = tokio::task::spawn_blocking(move || (receiver.recv().unwrap(), receiver)).await.unwrap();
    assert_eq!(receiver.0, 6);
    let large = bench.submit(9).await;
    bench.reaches(large, JobStatus::Running).await;
    for _ in 0..3 {
        proceed.send(()).unwrap();
    }
    bench.reaches(first, JobStatus::Succeeded).await;
    bench.reaches(large, JobStatus::Succeeded).await;
    receiver = tokio::task::spawn_blocking(move || (receiver.1.recv().unwrap(), receiver.1)).await.unwrap();
    assert_eq!((receiver.0, most.load(Ordering::SeqCst)), (9, 9), "never both");
    let after = bench.submit(10).await;
    bench.reaches(after, JobStatus::Succeeded).await;
    workers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_waits_for_memory_can_be_stopped() {
    let bench = Bench::new().await;
    let workers = start(&bench, 10, |_, control| until_stopped(control));
    let first = bench.submit(10).await;
    bench.reaches(first, JobStatus::Running).await;
    let waiting = bench.submit(8).await;
    let overdue = bench.submit_with(7, |new| new.deadline_at = Some(at(20))).await;
    let put_back = bench.submit(6).await;
    for id in [waiting, overdue, put_back] {
        bench.reaches(id, JobStatus::Running).await;
    }
    bench.store.request_cancel(TENANT, waiting, at(1), &audit_entry()).await.unwrap();
    bench.signals.cancel_requested();
    bench.reaches(waiting, JobStatus::Cancelled).await;
    bench.clock.advance(Duration::from_secs(20));
    let overdue = bench.reaches(overdue, JobStatus::Failed).await;
    assert!(problem_type(&overdue).ends_with("/deadline"));
    workers.shutdown().await;
    assert_eq!(conformance::job(&*bench.store, put_back).await.status, JobStatus::Queued);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_never_fits_fails_and_others_go_on() {
    let bench = Bench::new().await;
    let workers = start(&bench, 10, |assignment, _| Ok(commit(&assignment)));
    let large = bench.submit(11).await;
    let job = bench.reaches(large, JobStatus::Failed).await;
    assert!(conformance::is_problem(job.problem.as_ref(), Kind::WorkLimit, large));
    let problem = job.problem.unwrap();
    assert_eq!((&problem["limit"], &problem["found"]), (&(10 * MIB).into(), &(11 * MIB).into()));
    let small = bench.submit(10).await;
    bench.reaches(small, JobStatus::Succeeded).await;
    workers.shutdown().await;
}
