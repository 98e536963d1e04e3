//! What is fixed, and the rotation of the master key.
//!
//! Every process that has opened a vault holds one advisory lock for its life, shared with the others, on a connection of its
//! own; a rotation needs the lock for itself, and so is refused while anyone is there. Should a process lose that connection it
//! takes the lock again, and stops when the key has changed meanwhile. Until it learns of it nothing it wraps is kept:
//! whatever writes a wrapped key shares the lock for its transaction, and looks at the pin under it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio_util::sync::CancellationToken;

use super::PostgresStore;
use super::error::{PostgresTransactionError, failed};
use super::pool::run_transaction;
use crate::ports::{MASTER_KEY_PIN, MetadataStore, Rotation, RotationCounts, StoreError};
use crate::store::shared::store_metadata::postgres::rewrap_keys;
use crate::store::sql::pins as sql;

/// Locks of two numbers are others than those of one.
const SHARE: &str = "\
-- share_master_key
SELECT pg_advisory_lock_shared(1735745897, 1)";

const LET_GO: &str = "\
-- let_go_of_master_key
SELECT pg_advisory_unlock_shared(1735745897, 1)";

const SHARE_FOR_TRANSACTION: &str = "\
-- share_master_key_for_transaction
SELECT pg_advisory_xact_lock_shared(1735745897, 1)";

const TAKE_FOR_TRANSACTION: &str = "\
-- take_master_key_for_transaction
SELECT pg_try_advisory_xact_lock(1735745897, 1)";

/// The number of a transaction that begins after all that were begun before.
const NEXT_TRANSACTION: &str = "\
-- next_transaction
SELECT txid_current()";

/// Whether `VACUUM` would copy rows that were deleted before a transaction began. It does while an earlier one of any database of
/// the server goes on, and while anyone in this one, or in none, has a snapshot from before its end.
const EARLIER_SNAPSHOTS: &str = "\
-- earlier_snapshots
SELECT txid_snapshot_xmin(txid_current_snapshot()) <= $1 OR EXISTS (SELECT 1 FROM pg_stat_activity
WHERE (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid()
  AND age(backend_xmin) >= age(CAST(CAST(CAST($1 AS BIGINT) % 4294967296 AS TEXT) AS xid)))";

/// How long a purge waits for the scouring of others.
const MAX_WAIT_FOR_TURN: Duration = Duration::from_secs(2);

/// How long and how often transactions that may see deleted rows are waited for.
const MAX_WAIT_FOR_SNAPSHOTS: Duration = Duration::from_secs(2);
const SNAPSHOT_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// How often the connection that holds the lock is looked at, and how long it may take to answer.
const LOCK_CHECK_INTERVAL: Duration = Duration::from_secs(2);
const LOCK_CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// The lock of a process that has just died may stand for a moment.
const MAX_LOCK_RETRIES: u32 = 20;
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The tables that hold wrapped keys.
pub(super) const DATASET_KEYS: &str = "dataset_keys";
pub(super) const CHAIN_KEYS: &str = "chain_keys";
const JOB_KEYS: &str = "job_keys";
const PINS: &str = "pins";

#[async_trait]
impl MetadataStore for PostgresStore {
    async fn pin(&self, name: &str, value: &[u8]) -> Result<Vec<u8>, StoreError> {
        run_sql!(query.execute, &self.pool, sql::PIN, name, value).map_err(failed)?;
        run_sql!(query_scalar.fetch_one, &self.pool, sql::PINNED, name).map_err(failed)
    }

    async fn pinned(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        run_sql!(query_scalar.fetch_optional, &self.pool, sql::PINNED, name).map_err(failed)
    }

    async fn rotate(&self, rotation: Rotation<'_>) -> Result<RotationCounts, StoreError> {
        let mut tried = 1;
        let rotated = loop {
            match run_transaction("rotate", || self.try_rotate(&rotation)).await {
                Err(StoreError::InUse(_)) if tried < MAX_LOCK_RETRIES => tokio::time::sleep(LOCK_RETRY_PAUSE).await,
                outcome => break outcome?,
            }
            tried += 1;
        };
        // what was wrapped under the old key
        self.scour(&[DATASET_KEYS, CHAIN_KEYS, JOB_KEYS, PINS]).await;
        Ok(rotated)
    }
}

impl PostgresStore {
    async fn try_rotate(&self, rotation: &Rotation<'_>) -> Result<RotationCounts, PostgresTransactionError> {
        let mut tx = self.begin().await?;
        if !sqlx::query_scalar::<_, bool>(TAKE_FOR_TRANSACTION).fetch_one(&mut *tx).await? {
            return Err(StoreError::InUse(self.name().to_owned()).into());
        }
        let rotated = rewrap_keys(&mut tx, rotation).await?;
        tx.commit().await?;
        Ok(rotated)
    }

    /// Refuses a transaction that is about to keep what was wrapped under a master key that no longer counts. No rotation begins
    /// before the transaction ends.
    pub(in crate::store) async fn check_master_key(
        &self,
        connection: &mut PgConnection,
    ) -> Result<(), PostgresTransactionError> {
        let Some(fingerprint) = self.master_key.get() else { return Ok(()) };
        run_sql!(query.execute, &mut *connection, SHARE_FOR_TRANSACTION)?;
        let pinned: Option<Vec<u8>> = run_sql!(query_scalar.fetch_optional, connection, sql::PINNED, MASTER_KEY_PIN)?;
        if pinned.as_deref() == Some(fingerprint) {
            return Ok(());
        }
        let said = "the master key was changed by another process; this one must be started again with the new one";
        Err(StoreError::Unavailable(said.into()).into())
    }

    /// Keeps rotations away until the process ends, or lets go. Waits while one is under way.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn attend(&self) -> Result<SharedStoreLock, StoreError> {
        let options = (*self.pool.connect_options()).clone();
        let connection = share(&options).await.map_err(failed)?;
        Ok(SharedStoreLock { options, connection })
    }

    /// Writes small tables anew, so that the file system has no rows of them that were deleted or changed: Postgres keeps those
    /// in its pages. Where others are in the way, the next sweep does it.
    pub(super) async fn scour(&self, tables: &[&'static str]) {
        match self.try_scour(tables).await {
            Ok(true) => {}
            Ok(false) => {
                self.owes_scouring.store(true, Ordering::Relaxed);
                tracing::warn!(
                    "the bytes of destroyed wrapped keys stay in pages of the database: others are in the way"
                );
            }
            Err(error) => {
                self.owes_scouring.store(true, Ordering::Relaxed);
                tracing::warn!(error = %error, "the bytes of destroyed wrapped keys stay in pages of the database for now");
            }
        }
    }

    /// Writes the tables of wrapped keys anew, if others were in the way before.
    pub(in crate::store) async fn scour_again(&self) {
        if self.owes_scouring.swap(false, Ordering::Relaxed) {
            self.scour(&[DATASET_KEYS, CHAIN_KEYS, JOB_KEYS, PINS]).await;
        }
    }

    /// Whether no row stayed that was deleted before: one that a running transaction may still see is copied.
    async fn try_scour(&self, tables: &[&'static str]) -> Result<bool, sqlx::Error> {
        // readers of the table wait as long as this does
        let options = (*self.pool.connect_options()).clone().options([("lock_timeout", "2s")]);
        // many purges at once have one connection for this
        let Ok(_turn) = tokio::time::timeout(MAX_WAIT_FOR_TURN, self.scouring.lock()).await else { return Ok(false) };
        let mut connection = PgConnection::connect_with(&options).await?;
        let next: i64 = run_sql!(query_scalar.fetch_one, &mut connection, NEXT_TRANSACTION)?;
        let deadline = Instant::now() + MAX_WAIT_FOR_SNAPSHOTS;
        let mut is_seen = true;
        while is_seen && Instant::now() < deadline {
            is_seen = run_sql!(query_scalar.fetch_one, &mut connection, EARLIER_SNAPSHOTS, next)?;
            if is_seen {
                tokio::time::sleep(SNAPSHOT_CHECK_INTERVAL).await;
            }
        }
        for table in tables {
            run_sql!(query.execute, &mut connection, AssertSqlSafe(format!("VACUUM (FULL) {table}")))?;
        }
        connection.close().await?;
        Ok(!is_seen)
    }
}

/// That a process is there, as rotations see it.
pub struct SharedStoreLock {
    options: PgConnectOptions,
    connection: PgConnection,
}

impl SharedStoreLock {
    /// Watches the connection until `stopping`, and takes the lock again whenever it was lost; cancels `evicted` when the master
    /// key is then another one.
    pub async fn watch(self, fingerprint: [u8; 32], stopping: CancellationToken, evicted: CancellationToken) {
        let Self { options, mut connection } = self;
        loop {
            tokio::select! {
                () = stopping.cancelled() => break,
                () = tokio::time::sleep(LOCK_CHECK_INTERVAL) => {}
            }
            if matches!(tokio::time::timeout(LOCK_CHECK_TIMEOUT, connection.ping()).await, Ok(Ok(()))) {
                continue;
            }
            tracing::warn!("the connection that keeps rotations of the master key away was lost");
            let Ok(Ok(again)) = tokio::time::timeout(LOCK_CHECK_TIMEOUT, share(&options)).await else { continue };
            connection = again;
            let pinned = run_sql!(query_scalar.fetch_optional, &mut connection, sql::PINNED, MASTER_KEY_PIN);
            let pinned: Option<Vec<u8>> = pinned.unwrap_or(None);
            if pinned.is_some_and(|pinned| pinned != fingerprint) {
                tracing::error!("the master key was changed by another process: this one cannot go on");
                evicted.cancel();
                break;
            }
        }
        // a server lets go by itself, but only when it has noticed that the connection ended
        let _ = run_sql!(query.execute, &mut connection, LET_GO);
        let _ = connection.close().await;
    }
}

async fn share(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    let mut connection = PgConnection::connect_with(options).await?;
    run_sql!(query.execute, &mut connection, SHARE)?;
    Ok(connection)
}
