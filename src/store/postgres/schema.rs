//! The tables' version: how a database is brought up to date while other processes serve from it.
//!
//! A migration waits briefly for the tables that it changes. Behind a longer wait every statement on them would wait, too, and a
//! transaction that has one table and asks for another would meet a migration that has the other. So it gives way, and is tried again.

use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::time::Instant;

use super::error::{failed, is_in_use};
use crate::ports::StoreError;
use crate::store::migrations::{self, POSTGRES};
use crate::store::sql::pulse;

const MIN_SERVER_VERSION: i32 = 15;

/// How long a migration waits for a table, and others for it.
const TABLE_WAIT: &str = "2s";
/// How long the tables are left to others before it is tried again.
const PAUSE: Duration = Duration::from_millis(200);
/// How long it is tried again: longer than another process may need for its own migration.
const PATIENCE: Duration = Duration::from_mins(10);

const SERVER_VERSION: &str = "\
-- server_version
SELECT CAST(current_setting('server_version_num') AS INTEGER) / 10000";

/// Applies the migrations that a database lacks, while no other process does, and gives its version.
///
/// # Errors
/// [`StoreError::Schema`] when the database or its server is of another version; [`StoreError::Unavailable`] when the tables
/// stay in use.
pub(super) async fn migrate(options: &PgConnectOptions) -> Result<i64, StoreError> {
    let options = options.clone().options([("lock_timeout", TABLE_WAIT)]);
    let (began, mut tried) = (Instant::now(), 1);
    loop {
        // what an attempt has locked goes with its connection
        let mut connection = PgConnection::connect_with(&options).await.map_err(failed)?;
        check_server(&mut connection).await?;
        let applied = apply_or_stay(&mut connection).await;
        connection.close().await.map_err(failed)?;
        match applied {
            Err(error) if finds_use(&error) => {
                if began.elapsed() > PATIENCE {
                    return Err(StoreError::Unavailable(Box::new(error)));
                }
                if tried == 1 {
                    let minutes = PATIENCE.as_secs() / 60;
                    tracing::warn!(minutes, error = %error, "the tables are in use: the migration is tried again until it gets them");
                }
                tokio::time::sleep(PAUSE).await;
                tried += 1;
            }
            applied => return applied,
        }
    }
}

async fn check_server(connection: &mut PgConnection) -> Result<(), StoreError> {
    let server: i32 = sqlx::query_scalar(SERVER_VERSION).fetch_one(connection).await.map_err(failed)?;
    if server < MIN_SERVER_VERSION {
        let said = format!("the database is Postgres {server}; guardian needs {MIN_SERVER_VERSION} or later");
        return Err(StoreError::Schema(said));
    }
    Ok(())
}

/// Whether a migration found a table, or the lock of migrations, in use.
fn finds_use(error: &StoreError) -> bool {
    let StoreError::Backend(error) = error else { return false };
    match error.downcast_ref() {
        Some(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) => is_in_use(error),
        _ => false,
    }
}

/// Applies what is missing, or stays on tables that a later guardian only expanded.
async fn apply_or_stay(connection: &mut PgConnection) -> Result<i64, StoreError> {
    let refusal = match migrations::apply(&POSTGRES, connection).await {
        Err(refusal @ StoreError::Schema(_)) => refusal,
        applied => return applied,
    };
    let known = migrations::latest(&POSTGRES);
    let found: Option<i64> =
        sqlx::query_scalar(pulse::SCHEMA_VERSION).bind(known).fetch_one(&mut *connection).await.map_err(failed)?;
    if found != Some(known) {
        return Err(refusal);
    }
    // what is known must still be what it was
    let mut tolerant = Migrator::with_migrations(POSTGRES.iter().cloned().collect());
    tolerant.set_ignore_missing(true);
    migrations::apply(&tolerant, connection).await
}
