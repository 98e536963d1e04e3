//! What happens when processes meet. Each store here is a process: stores share nothing but the database.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;
use sqlx::Executor;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{TestDatabase, database};
use crate::clock::Clock;
use crate::control::Control;
use crate::jobs::{JobAssignment, JobRunner, RunCompletion, RunError, WorkerConfig, Workers};
use crate::ports::{
    ApiKeyStore, CancelOutcome, ClaimTerms, CommitOutcome, DisclosureStore, JobEnd, JobQueue, JobStatus, Notifier,
    PartChunkStore, ReleaseStore, Store, WriteOutcome,
};
use crate::store::conformance::keys::api_key;
use crate::store::conformance::turns::submit;
use crate::store::conformance::{
    LEASE, TENANT, TERMS, at, audit_entry, claim, commit_of, dataset, enqueue, job, new_job, part_chunk, problems,
    token,
};
use crate::store::postgres::pool::PostgresStore;
use crate::vault::{Purpose, Vault};

const NEVER: Duration = Duration::from_secs(3600);
const ROUNDS: u8 = 20;

#[tokio::test(flavor = "multi_thread")]
async fn no_two_processes_get_one_job() {
    let database = database!();
    let stores = [Arc::new(database.store_by_its_clock().await), Arc::new(database.store_by_its_clock().await)];
    let dataset = dataset(&*stores[0]).await;
    for reuse in 0..40 {
        stores[usize::from(reuse % 2)].enqueue(new_job(dataset, reuse)).await.unwrap();
    }
    let mut claimers = JoinSet::new();
    for claimer in 0..8 {
        let store = Arc::clone(&stores[claimer % 2]);
        claimers.spawn(async move {
            let mut claimed = Vec::new();
            while let Some(job) = store.claim(token(), TERMS, at(1)).await.unwrap() {
                claimed.push(job.job.id);
            }
            claimed
        });
    }
    let all: Vec<_> = claimers.join_all().await.into_iter().flatten().collect();
    assert_eq!(all.len(), 40);
    assert_eq!(all.into_iter().collect::<HashSet<_>>().len(), 40);
}

/// Claims until nothing is free, or a number of times, by eight claimers in two processes; whose the jobs are.
async fn claimed_at_once(terms: ClaimTerms, each: usize, tenants: &[&str]) -> Option<Vec<(String, Uuid)>> {
    let database = TestDatabase::create().await?;
    let stores = [Arc::new(database.store_by_its_clock().await), Arc::new(database.store_by_its_clock().await)];
    for tenant in tenants {
        submit(&*stores[0], tenant, &[0; 100]).await;
    }
    let mut claimers = JoinSet::new();
    for claimer in 0..8 {
        let store = Arc::clone(&stores[claimer % 2]);
        claimers.spawn(async move {
            let mut claimed = Vec::new();
            while claimed.len() < each
                && let Some(job) = store.claim(token(), terms, at(1)).await.unwrap()
            {
                claimed.push((job.job.tenant, job.job.id));
            }
            claimed
        });
    }
    Some(claimers.join_all().await.into_iter().flatten().collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_take_turns_among_processes() {
    let Some(claimed) = claimed_at_once(TERMS, 9, &["a", "b", "c"]).await else { return };
    assert_eq!(claimed.iter().map(|(_, id)| id).collect::<HashSet<_>>().len(), 72, "no job twice");
    for tenant in ["a", "b", "c"] {
        assert_eq!(claimed.iter().filter(|(of, _)| of == tenant).count(), 24, "{tenant}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tenant_gets_more_than_its_share_by_asking_at_once() {
    let terms = ClaimTerms { max_running_per_tenant: Some(3), ..TERMS };
    let Some(claimed) = claimed_at_once(terms, usize::MAX, &["a", "b"]).await else { return };
    for tenant in ["a", "b"] {
        assert_eq!(claimed.iter().filter(|(of, _)| of == tenant).count(), 3, "{tenant}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_engine_gets_more_than_its_share_by_asking_at_once() {
    let terms = ClaimTerms { max_running_per_engine: Some(3), ..TERMS };
    let Some(claimed) = claimed_at_once(terms, usize::MAX, &["a", "b"]).await else { return };
    assert_eq!(claimed.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_key_waits_for_one_that_is_being_made() {
    let database = database!();
    let (one, other) = (database.store().await, database.store().await);
    // another process is about to make a key, and no other sees it yet
    let mut making = one.begin().await.unwrap();
    let insert =
        "INSERT INTO api_keys (id, tenant, name, scopes, hash, created_at) VALUES ($1, 'x', 'x', '', $2, now())";
    let insert = sqlx::query(insert).bind(Uuid::now_v7()).bind([0_u8; 32].as_slice());
    insert.execute(&mut *making).await.unwrap();
    let late = tokio::spawn(async move { other.insert_first_key(&api_key(TENANT).0, &audit_entry()).await.unwrap() });
    let waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while !late.is_finished() && sqlx::query_scalar::<_, i64>(waits).fetch_one(&one.pool).await.unwrap() == 0 {
        tokio::task::yield_now().await;
    }
    making.commit().await.unwrap();
    assert!(!late.await.unwrap(), "it is the second");
    assert_eq!(one.keys(None).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_equal_jobs_one_runs_at_a_time() {
    let database = database!();
    let stores = [database.store().await, database.store().await];
    let dataset = dataset(&*stores[0]).await;
    for _ in 0..ROUNDS {
        stores[0].enqueue(new_job(dataset, 1)).await.unwrap();
    }
    for round in 0..ROUNDS {
        let mut claimers = JoinSet::new();
        for claimer in 0..6 {
            let store = Arc::clone(&stores[claimer % 2]);
            let token = token();
            claimers.spawn(async move { (store.claim(token, TERMS, at(1)).await.unwrap(), token) });
        }
        let claimed: Vec<_> =
            claimers.join_all().await.into_iter().filter_map(|(claimed, token)| Some((claimed?, token))).collect();
        let [(claimed, token)] = &claimed[..] else { panic!("{} run in round {round}", claimed.len()) };
        let end = JobEnd::Failed(json!({}));
        assert_eq!(stores[0].finish(claimed.job.id, *token, end, at(2)).await.unwrap(), WriteOutcome::Done);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_commits_of_one_ledger_version_one_wins() {
    let database = database!();
    let stores = [database.store().await, database.store().await];
    for round in 0..ROUNDS {
        let mut commits = JoinSet::new();
        for (process, store) in (0..).zip(&stores) {
            enqueue(&**store, round * 2 + process).await;
            let (claimed, token) = claim(&**store, at(1)).await;
            let commit = commit_of(&claimed.job, token, i64::from(round), at(2));
            let store = Arc::clone(store);
            commits.spawn(async move { (store.commit(commit).await.unwrap(), claimed.job.id, token) });
        }
        let mut committed = 0;
        for (outcome, id, token) in commits.join_all().await {
            match outcome {
                CommitOutcome::Committed => committed += 1,
                CommitOutcome::LedgerMoved => {
                    let written = stores[0].finish(id, token, JobEnd::Cancelled, at(3)).await.unwrap();
                    assert_eq!(written, WriteOutcome::Done, "it still has its job");
                }
                other => panic!("{other:?} in round {round}"),
            }
        }
        assert_eq!(committed, 1, "round {round}");
        let ledger = stores[1].disclosures("default", "people", &[7; 32]).await.unwrap();
        assert_eq!((ledger.version, ledger.entries.len()), (i64::from(round) + 1, usize::from(round + 1) * 2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_queued_during_the_commit_of_its_twin_gets_the_release() {
    let database = database!();
    let stores = [database.store().await, database.store().await];
    let dataset = dataset(&*stores[0]).await;
    for round in 0..ROUNDS {
        stores[0].enqueue(new_job(dataset, round)).await.unwrap();
        let (claimed, token) = claim(&*stores[0], at(1)).await;
        let commit = commit_of(&claimed.job, token, i64::from(round), at(2));
        let release = commit.release.id;
        let (committed, twin) = tokio::join!(
            tokio::spawn({
                let store = Arc::clone(&stores[0]);
                async move { store.commit(commit).await.unwrap() }
            }),
            tokio::spawn({
                let store = Arc::clone(&stores[1]);
                async move { store.enqueue(new_job(dataset, round)).await.unwrap().id }
            })
        );
        assert_eq!(committed.unwrap(), CommitOutcome::Committed);
        let twin = job(&*stores[0], twin.unwrap()).await;
        assert_eq!((twin.status, twin.release), (JobStatus::Succeeded, Some(release)), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_ends_or_goes_back_but_not_both() {
    let database = database!();
    let stores = [database.store().await, database.store().await];
    let mut version = 0;
    for round in 0..ROUNDS {
        let id = enqueue(&*stores[0], round).await.id;
        let (claimed, token) = claim(&*stores[0], at(1)).await;
        // the reaper's clock is far ahead: as if the lease expired just between the two looks
        let commit = commit_of(&claimed.job, token, version, at(2));
        let (committed, reaped) = tokio::join!(
            tokio::spawn({
                let store = Arc::clone(&stores[0]);
                async move { store.commit(commit).await.unwrap() }
            }),
            tokio::spawn({
                let store = Arc::clone(&stores[1]);
                async move { store.reap(at(1000), 3, &problems()).await.unwrap() }
            })
        );
        let status = job(&*stores[0], id).await.status;
        match (committed.unwrap(), reaped.unwrap().requeued.len()) {
            (CommitOutcome::Committed, 0) => {
                version += 1;
                assert_eq!(status, JobStatus::Succeeded);
            }
            (CommitOutcome::LeaseLost, 1) => {
                assert_eq!(status, JobStatus::Queued);
                assert_eq!(
                    stores[0].request_cancel(TENANT, id, at(3), &audit_entry()).await.unwrap(),
                    CancelOutcome::CancelledAtOnce
                );
            }
            other => panic!("{other:?} in round {round}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_are_not_dropped_under_a_commit_that_is_under_way() {
    let database = database!();
    let (here, there) = (database.store().await, database.store().await);
    let id = enqueue(&*here, 1).await.id;
    let (claimed, _) = claim(&*here, at(1)).await;
    here.put_part_chunk(id, 1, &part_chunk(0, 0, 1)).await.unwrap();
    // a commit whose worker lost its connection: it has written everything, and the server is about to end it
    let mut commit = here.begin().await.unwrap();
    sqlx::query("SELECT id FROM jobs WHERE id = $1 FOR UPDATE").bind(id).execute(&mut *commit).await.unwrap();
    let release = "INSERT INTO releases SELECT id, id, attempt, tenant, series, dataset_id, reuse_key, reuse_key, method, submitted_at,
                   'published' FROM jobs WHERE id = $1";
    sqlx::query(release).bind(claimed.job.id).execute(&mut *commit).await.unwrap();
    let dropping = tokio::spawn(async move { there.drop_attempt(id, 1).await });
    // until it waits for the commit
    let waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waits).fetch_one(&here.pool).await.unwrap() == 0 {
        assert!(!dropping.is_finished(), "dropped under the commit");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    commit.commit().await.unwrap();
    dropping.await.unwrap().unwrap();
    assert!(here.part_chunk(TENANT, id, 1, "t1.qi.csv", 0).await.unwrap().is_some());
}

/// Reports its start, then waits until it is stopped.
struct Waits(mpsc::Sender<&'static str>);

impl JobRunner for Waits {
    fn run(&self, _: JobAssignment, control: &Control) -> Result<RunCompletion, RunError> {
        self.0.send("started").unwrap();
        while control.check().is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.0.send("stopped").unwrap();
        Err(RunError::Cancelled)
    }
}

/// Workers that look for nothing by themselves, on a store that listens.
async fn listening_workers(
    store: &Arc<PostgresStore>,
    vault: &Arc<Vault>,
) -> (mpsc::Receiver<&'static str>, CancellationToken) {
    let (sender, receiver) = mpsc::channel();
    let (signals, stopping) = (Arc::new(Notifier::default()), CancellationToken::new());
    tokio::spawn(store.listen(Arc::clone(&signals), stopping.clone()).await.unwrap());
    let config = WorkerConfig { tick: NEVER, poll: NEVER, grace: Duration::ZERO, ..WorkerConfig::default() };
    let (vault, runner) = (Arc::clone(vault), Arc::new(Waits(sender)));
    let store: Arc<dyn Store> = Arc::<PostgresStore>::clone(store);
    let workers = Workers { store, clock: Clock::settable(at(1)), runner, vault, signals, config }.start();
    let stop = stopping.clone();
    tokio::spawn(async move {
        stop.cancelled().await;
        workers.shutdown().await;
    });
    (receiver, stopping)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_keeps_its_lease_while_no_connection_is_free() {
    let database = database!();
    let (here, there) = (database.store().await, database.store().await);
    let vault = Arc::new(Vault::in_memory().unwrap());
    let clock = Clock::settable(at(1));
    let (sender, receiver) = mpsc::channel();
    let config = WorkerConfig { tick: Duration::from_millis(5), grace: Duration::ZERO, ..WorkerConfig::default() };
    let workers = Workers {
        store: Arc::<PostgresStore>::clone(&there),
        clock: clock.clone(),
        runner: Arc::new(Waits(sender)),
        vault: Arc::clone(&vault),
        signals: Arc::new(Notifier::default()),
        config,
    };
    let workers = workers.start();
    let mut new = new_job(dataset(&*here).await, 1);
    new.wrapped_key = vault.wrap(crate::vault::Purpose::Release, new.id, &Vault::fresh_secret().unwrap()).unwrap();
    let id = here.enqueue(new).await.unwrap().id;
    assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok("started"));
    let mut taken = Vec::new();
    for _ in 0..there.pool.options().get_max_connections() {
        taken.push(there.pool.acquire().await.unwrap());
    }
    let until = "SELECT lease_expires_at FROM jobs WHERE id = $1";
    for _ in 0..4 {
        clock.advance(Duration::from_secs(20));
        let kept = async {
            let extended = clock.now() + LEASE;
            while sqlx::query_scalar::<_, Option<chrono::DateTime<chrono::Utc>>>(until)
                .bind(id)
                .fetch_one(&here.pool)
                .await
                .unwrap()
                != Some(extended)
            {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), kept).await.expect("the lease is extended");
        assert!(here.reap(clock.now(), 3, &problems()).await.unwrap().is_empty());
    }
    assert!(there.pool.try_acquire().is_none());
    drop(taken);
    workers.shutdown().await;
    assert_eq!(job(&*here, id).await.status, JobStatus::Queued);
}

/// Queues a job under a key that the workers' vault cannot open: it fails at once, which shows that it was claimed.
async fn is_picked_up(from: &PostgresStore, reuse: u8) {
    let id = enqueue(from, reuse).await.id;
    for _ in 0..2_000 {
        if job(from, id).await.status == JobStatus::Failed {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the other process was not woken");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_is_woken_by_a_queued_job() {
    let database = database!();
    let (here, there) = (database.store().await, database.store().await);
    let vault = Arc::new(Vault::in_memory().unwrap());
    let (_receiver, stopping) = listening_workers(&there, &vault).await;
    for reuse in 0..5 {
        is_picked_up(&here, reuse).await;
    }
    stopping.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_sees_a_cancellation() {
    let database = database!();
    let (here, there) = (database.store().await, database.store().await);
    let vault = Arc::new(Vault::in_memory().unwrap());
    let (receiver, stopping) = listening_workers(&there, &vault).await;
    let mut new = new_job(dataset(&*here).await, 1);
    new.wrapped_key = vault.wrap(Purpose::Release, new.id, &Vault::fresh_secret().unwrap()).unwrap();
    let id = here.enqueue(new).await.unwrap().id;
    let long = Duration::from_secs(10);
    assert_eq!(receiver.recv_timeout(long), Ok("started"));
    assert_eq!(here.request_cancel(TENANT, id, at(2), &audit_entry()).await.unwrap(), CancelOutcome::Requested);
    assert_eq!(receiver.recv_timeout(long), Ok("stopped"));
    stopping.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_was_cut_off_listens_again() {
    let database = database!();
    let (here, there) = (database.store().await, database.store().await);
    let vault = Arc::new(Vault::in_memory().unwrap());
    let (_receiver, stopping) = listening_workers(&there, &vault).await;
    is_picked_up(&here, 1).await;
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    assert_eq!(here.pool.execute(cut).await.unwrap().rows_affected(), 1);
    is_picked_up(&here, 2).await;
    is_picked_up(&here, 3).await;
    stopping.cancel();
}
