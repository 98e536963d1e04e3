//! The suite that every store passes, and what only a file can show.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::SqliteStore;
use crate::jobs::{Datasets, JobEnd, Queue, Releases, Store, StoreError, Written, problem_of};
use crate::problem::Kind;
use crate::store::conformance::{self, Bench, TENANT, at};
use async_trait::async_trait;
use uuid::Uuid;

struct SqliteBench(Arc<SqliteStore>);

#[async_trait]
impl Bench for SqliteBench {
    fn store(&self) -> Arc<dyn Store> {
        Arc::<SqliteStore>::clone(&self.0)
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

    conformance::conformance!({ super::SqliteBench(super::Arc::new(super::SqliteStore::temporary().await)) });
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
    assert_eq!(store.finish(id, token, JobEnd::Cancelled, at(2)).await.unwrap(), Written::Done);
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
        store.insert_dataset(&conformance::dataset_record(id, 0), &conformance::deed()).await.unwrap();
        keys.push((id, key));
        // every third goes while others come, so that gaps are filled again
        if number % 3 == 2 {
            let (id, key) = keys.remove(keys.len() / 2);
            store.purge_dataset(TENANT, id, at(9), &conformance::deed()).await.unwrap();
            assert!(!in_files(home.path(), &key), "key {number}");
        }
    }
    assert!(keys.iter().all(|(_, key)| in_files(home.path(), key)));
    let mut purged = Vec::new();
    for (id, key) in keys {
        store.purge_dataset(TENANT, id, at(9), &conformance::deed()).await.unwrap();
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
    let payload = || conformance::sealed(&[7; 10_000]);
    let mut chunk = 0;
    let full = loop {
        chunk += 1;
        if let Err(error) = store.put_column_chunks(upload, chunk, &[(0, payload()), (1, payload())]).await {
            break error;
        }
    };
    assert!(matches!(full, StoreError::Full), "{full:?}");
    assert_eq!(problem_of(&full).kind, Kind::StorageFull);
    assert_eq!(std::io::Error::from(full).kind(), std::io::ErrorKind::StorageFull);
    // what was kept can be given up, and then there is room again
    store.discard_upload(upload).await.unwrap();
    let upload = conformance::begun(&store).await;
    store.put_column_chunks(upload, 0, &[(0, payload()), (1, payload())]).await.unwrap();
}
