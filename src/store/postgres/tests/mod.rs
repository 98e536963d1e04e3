//! The suite that every store passes, and what only a server can show. Each test has a database of its own on the server that
//! `DATABASE_URL` names.

mod keys;
mod lookups;
mod races;
mod upgrades;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection};
use uuid::Uuid;

use super::PostgresStore;
use super::pool::LeaseClock;
use crate::ports::{Heartbeat, JobQueue, MetadataStore, PartObjects, Store};
use crate::store::conformance::{self, Bench, LEASE, at, token};

/// A database that goes with it.
pub(crate) struct TestDatabase {
    server: PgConnectOptions,
    name: String,
}

/// A database with all tables and no row of a store, of which those of many tests are copies: migrations take longer than these
/// tests.
const TEMPLATE: &str = "guardian_tables";

impl TestDatabase {
    /// An empty database; `None`, and a line that says so, where there is no server.
    pub(crate) async fn create() -> Option<Self> {
        let database = Self::named()?;
        database.on_server("CREATE DATABASE", "").await;
        Some(database)
    }

    /// A database with the tables of a store that was never used; `None` as for an empty one.
    pub(crate) async fn create_with_tables() -> Option<Self> {
        // a server that outlives the run might have the tables of an earlier version
        if std::env::var_os("GUARDIAN_TEST_PGDATA").is_none() {
            return Self::create().await;
        }
        let database = Self::named()?;
        database.make_template().await;
        // copied as files: most of the time of such a test went into copying pages through the log
        database.on_server("CREATE DATABASE", &format!("TEMPLATE {TEMPLATE} STRATEGY FILE_COPY")).await;
        Some(database)
    }

    /// Makes the template, unless another test has.
    async fn make_template(&self) {
        let mut connection = PgConnection::connect_with(&self.server).await.unwrap();
        // until the connection is closed; tests that run at the same time wait for the first
        connection.execute("SELECT pg_advisory_lock(hashtext('guardian_tables'))").await.unwrap();
        let made = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)";
        let made: bool = sqlx::query_scalar(made).bind(TEMPLATE).fetch_one(&mut connection).await.unwrap();
        if !made {
            let new = Self { server: self.server.clone(), name: format!("{TEMPLATE}_new") };
            new.on_server("DROP DATABASE IF EXISTS", "").await;
            new.on_server("CREATE DATABASE", "").await;
            new.store_by_its_clock().await.close().await;
            new.on_server("ALTER DATABASE", &format!("RENAME TO {TEMPLATE}")).await;
            // it stays
            std::mem::forget(new);
        }
        connection.close().await.unwrap();
    }

    /// The name of a database that is not there yet.
    fn named() -> Option<Self> {
        let Ok(url) = std::env::var("DATABASE_URL") else {
            let required = std::env::var("REQUIRE_POSTGRES").is_ok_and(|required| required == "1");
            assert!(!required, "REQUIRE_POSTGRES is 1, but DATABASE_URL names no Postgres");
            eprintln!("skipped: DATABASE_URL names no Postgres; try scripts/pg-tmp.sh run cargo test");
            return None;
        };
        let server: PgConnectOptions = url.parse().unwrap();
        Some(Self { server, name: format!("guardian_test_{}", Uuid::now_v7().simple()) })
    }

    async fn on_server(&self, what: &str, how: &str) {
        let mut connection = PgConnection::connect_with(&self.server).await.unwrap();
        connection.execute(AssertSqlSafe(format!("{what} {} {how}", self.name))).await.unwrap();
    }

    pub(crate) fn url(&self) -> String {
        self.options().to_url_lossy().into()
    }

    fn options(&self) -> PgConnectOptions {
        self.server.clone().database(&self.name)
    }

    /// How many tables it has.
    pub(crate) async fn tables(&self) -> i64 {
        let mut connection = PgConnection::connect_with(&self.options()).await.unwrap();
        let tables = "SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'";
        sqlx::query_scalar(tables).fetch_one(&mut connection).await.unwrap()
    }

    /// A store as another process would have it, by the caller's clock.
    pub(crate) async fn store(&self) -> Arc<PostgresStore> {
        let mut store = self.store_by_its_clock().await;
        store.lease_clock = LeaseClock::Caller;
        Arc::new(store)
    }

    pub(super) async fn store_by_its_clock(&self) -> PostgresStore {
        PostgresStore::connect_with(self.options()).await.unwrap()
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // FORCE: connections of stores that are still open are cut
        let drop = async || {
            let mut connection = PgConnection::connect_with(&self.server).await?;
            connection.execute(AssertSqlSafe(format!("DROP DATABASE {} WITH (FORCE)", self.name))).await
        };
        let dropped = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(drop())
            });
            thread.join()
        });
        if !matches!(dropped, Ok(Ok(_))) {
            eprintln!("{} was left behind", self.name);
        }
    }
}

/// Evaluates to a fresh database, or ends the test where there is no server.
macro_rules! database {
    () => {
        $crate::store::postgres::tests::database!(create)
    };
    ($create:ident) => {
        match crate::store::postgres::tests::TestDatabase::$create().await {
            Some(database) => database,
            None => return,
        }
    };
}
pub(crate) use database;

struct PostgresBench {
    store: Arc<PostgresStore>,
    _database: TestDatabase,
}

impl PostgresBench {
    async fn new(database: TestDatabase) -> Self {
        Self { store: database.store().await, _database: database }
    }
}

#[async_trait]
impl Bench for PostgresBench {
    fn store(&self) -> Arc<dyn Store> {
        Arc::<PostgresStore>::clone(&self.store)
    }

    fn keep_parts_in(&self, objects: Arc<dyn PartObjects>) {
        self.store.keep_parts_in(objects);
    }

    async fn count(&self, table: &'static str) -> i64 {
        let sql = AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
        sqlx::query_scalar(sql).fetch_one(&self.store.pool).await.unwrap()
    }

    async fn refuses(&self, sql: &'static str) -> bool {
        sqlx::query(sql).execute(&self.store.pool).await.is_err()
    }
}

mod stamped {
    use super::*;

    conformance::conformance!({ super::PostgresBench::new(super::database!(create_with_tables)).await });
}

#[tokio::test]
async fn leases_follow_the_clock_of_the_database() {
    let database = database!();
    let store = database.store_by_its_clock().await;
    let id = conformance::enqueue(&store, 1).await.id;
    let (_, held) = conformance::claim(&store, at(-1_000_000)).await;
    let alive = Heartbeat::Alive { cancel_requested: false };
    assert_eq!(store.heartbeat(id, held, None, LEASE, at(1_000_000)).await.unwrap(), alive);
    assert_eq!(store.lease(id, held, at(9_000_000)).await.unwrap(), alive);
    let reaped = store.reap(at(9_000_000), 3, &conformance::problems()).await.unwrap();
    assert!(reaped.is_empty(), "another process' clock is fast");
    assert_eq!(store.expire_all_leases(at(9_000_000)).await.unwrap(), 1);
    assert_eq!(store.heartbeat(id, held, None, LEASE, at(-1_000_000)).await.unwrap(), Heartbeat::Lost);
    let reaped = store.reap(at(-1_000_000), 3, &conformance::problems()).await.unwrap();
    assert_eq!(reaped.requeued, [id], "nor does a slow one keep the job");
}

#[tokio::test]
async fn documents_come_back_as_they_were_written() {
    let database = database!();
    let store = database.store().await;
    let mut new = conformance::new_job(conformance::dataset(&*store).await, 1);
    new.specification = json!({"nul": "a\u{0}b", "large": 1e16, "zero": -0.0, "long": 0.1 + 0.2, "whole": 1.0});
    let id = store.enqueue(new.clone()).await.unwrap().id;
    let read = conformance::job(&*store, id).await.specification;
    assert_eq!(read.to_string(), new.specification.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_start_together_make_the_tables_once() {
    let database = Arc::new(database!());
    let starting: Vec<_> = (0..6)
        .map(|_| {
            let database = Arc::clone(&database);
            tokio::spawn(async move { database.store().await.schema_version() })
        })
        .collect();
    for started in starting {
        assert!(started.await.unwrap() >= 2);
    }
}

#[tokio::test]
async fn a_pin_stays_what_it_was_first() {
    let database = database!();
    let (one, other) = (database.store().await, database.store().await);
    assert_eq!(one.pin("key", b"first").await.unwrap(), b"first");
    assert_eq!(other.pin("key", b"second").await.unwrap(), b"first");
}

#[tokio::test]
async fn a_heartbeat_needs_no_connection_that_others_use() {
    let database = database!();
    let store = database.store().await;
    let id = conformance::enqueue(&*store, 1).await.id;
    let (_, held) = conformance::claim(&*store, at(0)).await;
    let mut taken = Vec::new();
    for _ in 0..store.pool.options().get_max_connections() {
        taken.push(store.pool.acquire().await.unwrap());
    }
    assert!(store.pool.try_acquire().is_none());
    let alive = Heartbeat::Alive { cancel_requested: false };
    assert_eq!(store.heartbeat(id, held, None, LEASE, at(1)).await.unwrap(), alive);
    assert_eq!(store.lease(id, token(), at(1)).await.unwrap(), Heartbeat::Lost);
}

#[tokio::test]
async fn a_crash_of_the_server_forgets_no_release() {
    let database = database!();
    let store = database.store().await;
    let how: String = sqlx::query_scalar("SHOW synchronous_commit").fetch_one(&store.pool).await.unwrap();
    assert_eq!(how, "on", "whatever the server's default is");
}
