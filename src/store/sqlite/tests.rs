//! The suite that every store passes, and what only a file can show.

use std::sync::Arc;
use std::time::Duration;

use super::SqliteStore;
use crate::jobs::{Datasets, JobEnd, Queue, Releases, Store, StoreError, Written, problem_of};
use crate::problem::Kind;
use crate::store::conformance::{self, Bench, TENANT, at};
use async_trait::async_trait;

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
    let in_files = || {
        std::fs::read_dir(home.path()).unwrap().any(|entry| {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            bytes.windows(key.len()).any(|window| window == key)
        })
    };
    let (_, token) = conformance::claim(&store, at(1)).await;
    assert!(in_files());
    assert_eq!(store.finish(id, token, JobEnd::Cancelled, at(2)).await.unwrap(), Written::Done);
    store.sweep(at(3), Duration::ZERO).await.unwrap();
    assert!(!in_files());
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
