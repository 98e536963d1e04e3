//! Tables of other versions: which are refused, and how they are brought up to date while others use them.

use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::task::JoinHandle;

use super::{TestDatabase, database};
use crate::ports::{QueueStatsStore, StoreError};
use crate::store::migrations::POSTGRES;
use crate::store::postgres::PostgresStore;

#[tokio::test]
async fn tables_of_a_later_version_are_not_touched() {
    let database = database!();
    let store = database.store().await;
    let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (9000, 'later', TRUE, '', 0)";
    store.pool.execute(later).await.unwrap();
    let Err(StoreError::Schema(said)) = PostgresStore::connect(&database.url()).await else { panic!("opened") };
    assert!(said.contains("9000"), "{said}");
}

#[tokio::test]
async fn tables_that_a_later_version_expanded_are_used() {
    let database = database!();
    let store = database.store().await;
    let applied = async |version: i64, description: &str| {
        let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                     VALUES ($1, $2, TRUE, '', 0)";
        sqlx::query(later).bind(version).bind(description).execute(&store.pool).await.unwrap();
    };
    applied(9000, "expand jobs").await;
    store.check().await.unwrap();
    let again = PostgresStore::connect(&database.url()).await.unwrap();
    assert_eq!(again.schema_version(), store.schema_version());
    again.check().await.unwrap();
    // one that only sounds alike
    applied(9001, "expanded").await;
    assert!(matches!(store.check().await, Err(StoreError::Schema(_))));
    assert!(matches!(again.check().await, Err(StoreError::Schema(_))));
    assert!(matches!(PostgresStore::connect(&database.url()).await, Err(StoreError::Schema(_))));
    store.pool.execute("DELETE FROM _sqlx_migrations WHERE version = 9001").await.unwrap();
    again.check().await.unwrap();
    // what both know must be the same
    store.pool.execute("UPDATE _sqlx_migrations SET checksum = 'x' WHERE version = 3").await.unwrap();
    assert!(matches!(PostgresStore::connect(&database.url()).await, Err(StoreError::Schema(_))));
}

/// The version after which a migration changes several tables of wrapped keys at once.
const FORMER: i64 = 29;

/// A database as the former version left it, which a client of that version uses.
struct Upgrade {
    database: TestDatabase,
    client: PgConnection,
}

impl Upgrade {
    async fn prepare() -> Option<Self> {
        let database = TestDatabase::create().await?;
        let mut client = PgConnection::connect_with(&database.options()).await.unwrap();
        let former = POSTGRES.iter().filter(|migration| migration.version <= FORMER).cloned().collect();
        Migrator::with_migrations(former).run_direct(None, &mut client, false).await.unwrap();
        Some(Self { database, client })
    }

    /// Begins to migrate, and waits until a table is asked for that the client has.
    async fn migrate(&self, table: &str) -> JoinHandle<i64> {
        let url = self.database.url();
        let migrating = tokio::spawn(async move { PostgresStore::connect(&url).await.unwrap().schema_version() });
        let mut other = self.connect().await;
        let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = to_regclass($1) AND NOT granted)";
        while !sqlx::query_scalar::<_, bool>(waits).bind(table).fetch_one(&mut other).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        migrating
    }

    async fn connect(&self) -> PgConnection {
        PgConnection::connect_with(&self.database.options()).await.unwrap()
    }

    /// Takes what a statement that writes rows takes.
    async fn use_table(connection: &mut PgConnection, table: &str) -> Result<(), sqlx::Error> {
        connection.execute(AssertSqlSafe(format!("LOCK TABLE {table} IN ROW EXCLUSIVE MODE"))).await?;
        Ok(())
    }
}

/// A transaction has one table and asks for another that the migration has, which asks for the first.
#[tokio::test]
async fn a_migration_gives_way_to_a_transaction_that_waits_for_it() {
    let Some(mut upgrade) = Upgrade::prepare().await else { return };
    // of both that wait for each other the migration is the first to find out
    upgrade.client.execute("SET deadlock_timeout = '60s'").await.unwrap();
    upgrade.client.execute("BEGIN").await.unwrap();
    Upgrade::use_table(&mut upgrade.client, "job_keys").await.unwrap();
    let migrating = upgrade.migrate("job_keys").await;
    Upgrade::use_table(&mut upgrade.client, "dataset_keys").await.unwrap();
    upgrade.client.execute("COMMIT").await.unwrap();
    assert!(migrating.await.unwrap() > FORMER);
}

/// A copy of the database is made while it is upgraded: for as long as that takes, no client may be kept from writing.
#[tokio::test]
async fn a_migration_that_waits_keeps_no_writer_waiting() {
    let Some(mut upgrade) = Upgrade::prepare().await else { return };
    upgrade.client.execute("BEGIN; LOCK TABLE dataset_keys IN ACCESS SHARE MODE").await.unwrap();
    let migrating = upgrade.migrate("dataset_keys").await;
    let mut writer = upgrade.connect().await;
    writer.execute("SET lock_timeout = '30s'").await.unwrap();
    writer.execute("BEGIN").await.unwrap();
    Upgrade::use_table(&mut writer, "dataset_keys").await.unwrap();
    writer.execute("COMMIT").await.unwrap();
    assert!(!migrating.is_finished());
    upgrade.client.execute("COMMIT").await.unwrap();
    assert!(migrating.await.unwrap() > FORMER);
}
