//! A job that kills its workers, on both stores: processes end in the middle of it without a word.

use crate::store::conformance;
use tokio::runtime::Runtime;

use super::*;
use crate::ports::back_off;
use crate::problem::Kind;
use crate::store::postgres::tests::TestDatabase;

/// Opens the store as another process would.
type Open<'a> = &'a dyn Fn(&Runtime) -> Arc<dyn Store>;

/// A process that gets the job, writes a part, and is gone.
fn dies(open: Open<'_>, clock: &Clock, vault: &Arc<Vault>) -> (Uuid, u32) {
    let process = Runtime::new().unwrap();
    let bench = Bench {
        store: open(&process),
        clock: clock.clone(),
        vault: Arc::clone(vault),
        signals: Arc::new(Notifier::default()),
    };
    let ((sender, receiver), (alive, dead)) = (mpsc::channel(), mpsc::channel::<()>());
    let dead = Mutex::new(dead);
    let inside = process.enter();
    let _workers = bench.start(NEVER, move |assignment, _| {
        storage(&assignment).put("t1.qi.csv", 0, 0, 1, b"x").unwrap();
        sender.send((assignment.job.id, assignment.attempt)).unwrap();
        let _ = dead.lock().unwrap().recv();
        Err(RunError::Cancelled)
    });
    drop(inside);
    let started = receiver.recv_timeout(Duration::from_secs(20)).expect("the job is taken");
    process.shutdown_background();
    drop(alive);
    started
}

fn poison_is_stopped(open: Open<'_>) {
    let here = Runtime::new().unwrap();
    let bench = Bench {
        store: open(&here),
        clock: Clock::settable(at(0)),
        vault: Arc::new(Vault::in_memory().unwrap()),
        signals: Arc::new(Notifier::default()),
    };
    let max_attempts = WorkerConfig::default().max_attempts;
    let poison = here.block_on(bench.submit(1));
    for attempt in 1..=max_attempts {
        assert_eq!(dies(open, &bench.clock, &bench.vault), (poison, attempt));
        bench.clock.advance(WorkerConfig::default().lease);
        // the next process finds what is lost, and has the others' jobs first
        here.block_on(async {
            let other = bench.submit(100 + u8::try_from(attempt).unwrap()).await;
            let workers = bench.start(NEVER, move |assignment, _| {
                assert_ne!(assignment.job.id, poison, "too soon");
                Ok(commit(&assignment))
            });
            bench.reaches(other, JobStatus::Succeeded).await;
            let reaped = if attempt < max_attempts { JobStatus::Queued } else { JobStatus::Failed };
            let gone = async {
                while conformance::job(&*bench.store, poison).await.status != reaped
                    || bench.store.part_chunk(TENANT, poison, attempt, "t1.qi.csv", 0).await.unwrap().is_some()
                {
                    tokio::time::sleep(SOON).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(20), gone).await.expect("it is reaped, and its parts are gone");
            workers.shutdown().await;
        });
        bench.clock.advance(back_off(attempt));
    }
    let failed = here.block_on(conformance::job(&*bench.store, poison));
    assert!(conformance::is_problem(failed.problem.as_ref(), Kind::AttemptsExhausted, poison));
    assert_eq!(failed.attempt, max_attempts);
}

#[test]
fn a_job_that_kills_its_workers_is_stopped_on_sqlite() {
    let store: Arc<dyn Store> = Arc::new(Runtime::new().unwrap().block_on(SqliteStore::temporary()));
    poison_is_stopped(&|_| Arc::clone(&store));
}

#[test]
fn a_job_that_kills_its_workers_is_stopped_on_postgres() {
    let Some(database) = Runtime::new().unwrap().block_on(TestDatabase::create()) else { return };
    poison_is_stopped(&|process| process.block_on(database.store()));
}
