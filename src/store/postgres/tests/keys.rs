//! The master key of a shared store, and processes that learn of its rotation.

use std::time::Duration;

use sqlx::{Connection, Executor, PgConnection, PgPool};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{TestDatabase, database};
use crate::ports::{
    DatasetStore, JobQueue, MASTER_KEY_PIN, MetadataStore, ReleaseStore, Rotation, RotationCounts, StoreError,
};
use crate::store::conformance::{TENANT, WRAPPED, at, audit_entry, dataset, new_job};
use crate::store::postgres::pool::PostgresStore;

const OLD: [u8; 32] = [1; 32];
const NEW: [u8; 32] = [2; 32];

/// A store as a process has it that has opened its vault.
async fn process(database: &TestDatabase) -> PostgresStore {
    let store = database.store_by_its_clock().await;
    assert_eq!(store.pin(MASTER_KEY_PIN, &OLD).await.unwrap(), OLD);
    store.wraps_under(OLD);
    store
}

async fn rotate(store: &PostgresStore) -> Result<RotationCounts, StoreError> {
    let rewrap = |_, _: Uuid, wrapped: &[u8]| Ok(wrapped.to_vec());
    store.rotate(Rotation { from: OLD, to: NEW, hashing_key: vec![3], rewrap: &rewrap }).await
}

/// Ends the sessions that hold the lock of the master key in this database; their number.
async fn cut(pool: &PgPool) -> i64 {
    let sql = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_locks \
               WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND mode = 'ShareLock' \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    sqlx::query_scalar(sql).fetch_one(pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rotation_is_refused_while_a_process_attends() {
    let database = database!();
    let (one, other) = (process(&database).await, process(&database).await);
    let stopping = CancellationToken::new();
    let there: Vec<_> = [one.attend().await.unwrap(), other.attend().await.unwrap()]
        .map(|there| tokio::spawn(there.watch(OLD, stopping.clone(), CancellationToken::new())))
        .into();
    assert!(matches!(rotate(&other).await, Err(StoreError::InUse(_))));
    // those who are there are not in each other's way
    one.begin_upload(Uuid::now_v7(), &WRAPPED).await.unwrap();
    stopping.cancel();
    for gone in there {
        gone.await.unwrap();
    }
    assert_eq!(rotate(&other).await.unwrap(), RotationCounts { datasets: 1, ..RotationCounts::default() });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_lock_is_taken_again() {
    let database = database!();
    let store = process(&database).await;
    let (stopping, evicted) = (CancellationToken::new(), CancellationToken::new());
    let watch = tokio::spawn(store.attend().await.unwrap().watch(OLD, stopping.clone(), evicted.clone()));
    assert_eq!(cut(&store.pool).await, 1);
    // it is there again once it can be cut again
    while cut(&store.pool).await == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!evicted.is_cancelled());
    stopping.cancel();
    watch.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn process_with_old_key_writes_nothing_and_stops() {
    let database = database!();
    let store = process(&database).await;
    let dataset = dataset(&store).await;
    let (stopping, evicted) = (CancellationToken::new(), CancellationToken::new());
    let watch = tokio::spawn(store.attend().await.unwrap().watch(OLD, stopping, evicted.clone()));
    // its connection is lost, and before it is there again the key is changed
    let other = database.store_by_its_clock().await;
    let rotated = loop {
        cut(&store.pool).await;
        match rotate(&other).await {
            Err(StoreError::InUse(_)) => {}
            rotated => break rotated.unwrap(),
        }
    };
    assert_eq!(rotated, RotationCounts { datasets: 1, ..RotationCounts::default() });
    assert!(matches!(store.begin_upload(Uuid::now_v7(), &WRAPPED).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(store.enqueue(new_job(dataset, 1)).await, Err(StoreError::Unavailable(_))));
    evicted.cancelled().await;
    watch.await.unwrap();
}

/// A transaction that began before a purge, and holds no lock on keys.
async fn reader_of(database: &TestDatabase) -> PgConnection {
    let mut reader = PgConnection::connect_with(&database.options()).await.unwrap();
    reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT COUNT(*) FROM jobs").await.unwrap();
    reader
}

async fn purge(store: &PostgresStore, dataset: Uuid) {
    store.purge_dataset(TENANT, dataset, at(1), &audit_entry()).await.unwrap();
}

/// How many bytes the table of keys has.
async fn bytes_of_keys(store: &PostgresStore) -> i64 {
    sqlx::query_scalar("SELECT pg_relation_size('dataset_keys')").fetch_one(&store.pool).await.unwrap()
}

/// Sweeps until no key stays. A single sweep gives up while a transaction of another test goes on for longer.
async fn sweep_keys(store: &PostgresStore) {
    while bytes_of_keys(store).await > 0 {
        store.sweep(at(1), Duration::from_secs(3600)).await.unwrap();
    }
}

/// Purges a dataset while a transaction goes on, which ends after a while.
async fn assert_purge_waits_for(mut transaction: PgConnection, store: &PostgresStore) {
    let id = dataset(store).await;
    let ended = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        transaction.execute("COMMIT").await.unwrap();
    });
    purge(store, id).await;
    assert!(ended.is_finished(), "the row of the destroyed key is copied for it");
    sweep_keys(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn purge_waits_for_readers_of_the_key() {
    let database = database!();
    let store = database.store_by_its_clock().await;
    assert_purge_waits_for(reader_of(&database).await, &store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn purge_waits_for_writers_of_other_databases() {
    let (database, other) = (database!(), database!());
    let store = database.store_by_its_clock().await;
    let mut writer = PgConnection::connect_with(&other.options()).await.unwrap();
    writer.execute("BEGIN; SELECT txid_current()").await.unwrap();
    assert_purge_waits_for(writer, &store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_sample_no_key() {
    let database = database!();
    let store = database.store_by_its_clock().await;
    for number in 0..60_u8 {
        store.begin_upload(Uuid::now_v7(), &[number; 73]).await.unwrap();
    }
    store.pool.execute("ANALYZE").await.unwrap();
    let sampled =
        "SELECT CAST(tablename AS TEXT) || '.' || CAST(attname AS TEXT) FROM pg_stats WHERE tablename = 'dataset_keys'";
    let sampled: Vec<String> = sqlx::query_scalar(sampled).fetch_all(&store.pool).await.unwrap();
    assert_eq!(sampled, ["dataset_keys.dataset_id"]);
    let others = "SELECT CAST(CAST(attrelid AS regclass) AS TEXT) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid \
                  WHERE attname = 'wrapped_key' AND relkind = 'r' AND attstattarget IS DISTINCT FROM 0";
    let others: Vec<String> = sqlx::query_scalar(others).fetch_all(&store.pool).await.unwrap();
    assert_eq!(others, Vec::<String>::new(), "of whose keys statistics could be made");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_a_purge_left_in_pages_is_swept() {
    let database = database!();
    let store = database.store_by_its_clock().await;
    let id = dataset(&store).await;
    let reader = reader_of(&database).await;
    // its answer does not wait for ever
    purge(&store, id).await;
    assert!(bytes_of_keys(&store).await > 0);
    reader.close().await.unwrap();
    sweep_keys(&store).await;
}
