//! The suite that every store passes, and what only a file can show.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::SqliteStore;
use crate::app::{AppService, Upload, UploadRequest};
use crate::clock::Clock;
use crate::control::Control;
use crate::engine::EngineError;
use crate::identity::Caller;
use crate::inputs::{Engines, KeptReadings, MemoryBudget, PartStorage};
use crate::jobs::{JobAssignment, JobRunner, RunCompletion, RunError, WorkerConfig, Workers};
use crate::microdata::formats::IngestLimits;
use crate::ports::{
    DatasetStore, JobEnd, JobQueue, JobStatus, Notifier, PartObjects, ReleaseStore, Store, StoreError, WriteOutcome,
};
use crate::problem::{Kind, Problem};
use crate::store::conformance::{self, Bench, TENANT, at};
use crate::store::sql::{life::RELEASES_OF_KEY, queue::WAITING_ALIKE};
use crate::vault::{Purpose, Secret, Vault};
use async_trait::async_trait;
use uuid::Uuid;

struct SqliteBench(Arc<SqliteStore>);

#[async_trait]
impl Bench for SqliteBench {
    fn store(&self) -> Arc<dyn Store> {
        Arc::<SqliteStore>::clone(&self.0)
    }

    fn keep_parts_in(&self, objects: Arc<dyn PartObjects>) {
        self.0.keep_parts_in(objects);
    }

    async fn count(&self, table: &'static str) -> i64 {
        let sql = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
        sqlx::query_scalar(sql).fetch_one(&self.0.reader).await.unwrap()
    }

    async fn refuses(&self, sql: &'static str) -> bool {
        sqlx::query(sql).execute(&self.0.writer).await.is_err()
    }
}

mod stamped {
    use super::*;

    conformance::conformance!({
        super::SqliteBench(super::Arc::new(crate::store::sqlite::pool::SqliteStore::temporary().await))
    });
}

/// However many other releases and jobs its tenant has.
#[tokio::test]
async fn what_has_a_reuse_key_is_looked_up_by_it() {
    let store = SqliteStore::temporary().await;
    for (sql, lookups) in [(RELEASES_OF_KEY, 2), (WAITING_ALIKE, 1)] {
        let plan = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
        let plan = sqlx::query_as(plan).bind(TENANT).bind([1; 32].as_slice()).fetch_all(&store.reader).await.unwrap();
        let steps: Vec<String> = plan.into_iter().map(|(_, _, _, step): (i64, i64, i64, String)| step).collect();
        let by_key = steps.iter().filter(|step| step.contains("SEARCH") && step.contains("reuse_key=?")).count();
        let all = steps.iter().filter(|step| step.contains("SEARCH") || step.contains("SCAN")).count();
        assert_eq!((by_key, all), (lookups, lookups), "{steps:?}");
    }
}

/// `.cargo/config.toml` sees to it.
#[tokio::test]
async fn connections_have_caches_of_their_own() {
    let store = SqliteStore::temporary().await;
    let is_shared = "SELECT sqlite_compileoption_used('ENABLE_MEMORY_MANAGEMENT')";
    let is_shared: bool = sqlx::query_scalar(is_shared).fetch_one(&store.reader).await.unwrap();
    assert!(!is_shared, "the library was built without the flags of this repository");
}

#[tokio::test]
async fn an_erased_key_is_in_no_file() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(home.path()).await.unwrap();
    let key: Vec<u8> = (100..173).collect();
    let mut new = conformance::new_job(conformance::dataset(&store).await, 1);
    new.wrapped_key.clone_from(&key);
    let id = store.enqueue(new).await.unwrap().id;
    let in_files = || in_files(home.path(), &key);
    let (_, token) = conformance::claim(&store, at(1)).await;
    assert!(in_files());
    assert_eq!(store.finish(id, token, JobEnd::Cancelled, at(2)).await.unwrap(), WriteOutcome::Done);
    store.sweep(at(3), Duration::ZERO).await.unwrap();
    assert!(!in_files());
}

/// Rows move between pages as others come and go: none may leave a copy behind.
#[tokio::test]
async fn of_many_purged_datasets_no_key_is_in_any_file() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(home.path()).await.unwrap();
    let mut keys = Vec::new();
    for number in 0..120_u8 {
        let (id, key) = (Uuid::now_v7(), [&Uuid::now_v7().into_bytes()[..], &[number; 57]].concat());
        store.begin_upload(id, &key).await.unwrap();
        store.insert_dataset(&conformance::dataset_record(id, 0), &conformance::audit_entry()).await.unwrap();
        keys.push((id, key));
        // every third goes while others come, so that gaps are filled again
        if number % 3 == 2 {
            let (id, key) = keys.remove(keys.len() / 2);
            store.purge_dataset(TENANT, id, at(9), &conformance::audit_entry()).await.unwrap();
            assert!(!in_files(home.path(), &key), "key {number}");
        }
    }
    assert!(keys.iter().all(|(_, key)| in_files(home.path(), key)));
    let mut purged = Vec::new();
    for (id, key) in keys {
        store.purge_dataset(TENANT, id, at(9), &conformance::audit_entry()).await.unwrap();
        purged.push(key);
        assert!(!purged.iter().any(|key| in_files(home.path(), key)));
    }
}

fn in_files(folder: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let file = std::fs::read(entry.unwrap().path()).unwrap();
        memchr::memmem::find(&file, bytes).is_some()
    })
}

#[tokio::test]
async fn what_was_written_is_there_after_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(home.path()).await.unwrap();
    let (job, release) = conformance::release(&store, 1).await;
    store.close().await;
    drop(store);
    let store = SqliteStore::open(home.path()).await.unwrap();
    assert_eq!(conformance::job(&store, job.id).await, job);
    assert!(store.release(TENANT, release).await.unwrap().is_some());
}

#[tokio::test]
async fn a_full_store_says_so_and_keeps_nothing() {
    let store = SqliteStore::temporary().await;
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&store.writer).await.unwrap();
    let limit = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {}", pages + 20));
    sqlx::query(limit).execute(&store.writer).await.unwrap();
    let upload = conformance::begun(&store).await;
    let payload = || conformance::ciphertext(&[7; 10_000]);
    let mut chunk = 0;
    let full = loop {
        chunk += 1;
        if let Err(error) = store.put_column_chunks(upload, chunk, &[(0, payload()), (1, payload())]).await {
            break error;
        }
    };
    assert!(matches!(full, StoreError::Full), "{full:?}");
    assert_eq!(Problem::from(StoreError::Full).kind, Kind::StorageFull);
    assert_eq!(std::io::Error::from(full).kind(), std::io::ErrorKind::StorageFull);
    // what was kept can be given up, and then there is room again
    store.discard_upload(upload).await.unwrap();
    let upload = conformance::begun(&store).await;
    store.put_column_chunks(upload, 0, &[(0, payload()), (1, payload())]).await.unwrap();
}

/// Leaves room for a few pages more than there are.
async fn nearly_full() -> Arc<SqliteStore> {
    let store = SqliteStore::temporary().await;
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&store.writer).await.unwrap();
    let limit = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {}", pages + 60));
    sqlx::query(limit).execute(&store.writer).await.unwrap();
    Arc::new(store)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_into_a_full_store_is_refused_and_leaves_nothing() {
    let store = nearly_full().await;
    let service = AppService {
        store: Arc::<SqliteStore>::clone(&store),
        vault: Arc::new(Vault::in_memory().unwrap()),
        clock: Clock::settable(at(0)),
        signals: Arc::default(),
        keys: Arc::new(Vault::fresh_secret),
        max_queued_jobs: 1,
        limits: IngestLimits::default(),
        budget: MemoryBudget::default(),
        readings: KeptReadings::default(),
        spool: std::env::temp_dir(),
        engines: Engines::default(),
    };
    let handle = tokio::runtime::Handle::current();
    let upload = move |rows: u32| {
        let csv: String = (0..rows).map(|row| format!("{},{}\n", row, row.wrapping_mul(2_654_435_761))).collect();
        let body = std::io::Cursor::new(format!("a,b\n{csv}"));
        let (id, request) = (Uuid::now_v7(), UploadRequest { spool: std::env::temp_dir(), ..UploadRequest::default() });
        Upload { service: &service, caller: &Caller::local(), handle: &handle, id }.store(request, body, &|| Ok(1))
    };
    let uploads = tokio::task::spawn_blocking(move || (upload(200_000), upload(10)));
    let (refused, taken) = uploads.await.unwrap();
    assert_eq!(refused.unwrap_err().kind, Kind::StorageFull);
    // and what it took is free again
    assert_eq!(taken.unwrap().rows, 10);
    let bench = SqliteBench(store);
    assert_eq!((bench.count("datasets").await, bench.count("column_chunks").await), (1, 2));
}

/// Writes parts until it cannot.
struct Writes;

impl JobRunner for Writes {
    fn run(&self, assignment: JobAssignment, _: &Control) -> Result<RunCompletion, RunError> {
        let JobAssignment { handle, store, job, attempt, .. } = &assignment;
        let mut storage = PartStorage::new(handle.clone(), Arc::clone(store), job.tenant.clone(), job.id, *attempt);
        let mut noise = 1u64;
        for number in 0.. {
            let bytes: Vec<u8> = (0..20_000)
                .map(|_| {
                    noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (noise >> 56) as u8
                })
                .collect();
            match storage.put("t1.qi.csv", number, u64::from(number), 1, &bytes).map_err(EngineError::from) {
                Err(EngineError::Failed { problem, .. }) => return Err(RunError::Failed(problem)),
                other => other.unwrap(),
            }
        }
        unreachable!("the store is full before numbers run out")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_meets_a_full_store_is_put_back_and_leaves_nothing() {
    let store = nearly_full().await;
    let vault = Arc::new(Vault::in_memory().unwrap());
    let signals: Arc<Notifier> = Arc::default();
    let mut new = conformance::new_job(conformance::dataset(&*store).await, 1);
    new.wrapped_key = vault.wrap(Purpose::Release, new.id, &Secret::new([1; 32])).unwrap();
    let id = store.enqueue(new).await.unwrap().id;
    let workers = Workers {
        store: Arc::<SqliteStore>::clone(&store),
        clock: Clock::settable(at(1)),
        runner: Arc::new(Writes),
        vault,
        signals,
        config: WorkerConfig::default(),
    };
    let workers = workers.start();
    let put_back = async {
        loop {
            let job = conformance::job(&*store, id).await;
            if job.attempt > 0 && job.status == JobStatus::Queued {
                return;
            }
            assert!(!job.status.is_terminal(), "it waits for room");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), put_back).await.unwrap();
    workers.shutdown().await;
    let bench = SqliteBench(store);
    assert_eq!((bench.count("part_chunks").await, bench.count("releases").await), (0, 0));
}
