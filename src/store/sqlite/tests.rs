//! The suite that every store passes, and what only a file can show.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::SqliteStore;
use crate::jobs::{JobEnd, Queue, Releases, Store, Written};
use crate::store::conformance::{self, Bench, at};

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
    assert!(store.release(release).await.unwrap().is_some());
}
