//! Opening the store: its folder, its lock, its connections, its migrations.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Sqlite, SqlitePool, Transaction};

use super::error::{SqliteTransactionError, failed};
use crate::meter;
use crate::ports::{PartObjects, StoreError};
use crate::store::migrations::{self, SQLITE};
use crate::store::sql::pins as sql;

const DATABASE: &str = "guardian.db";
const HAS_PINS: &str = "\
-- has_pins
SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = 'pins'";

const COPY: &str = "\
-- copy
VACUUM INTO $1";

const CHECK: &str = "\
-- check
PRAGMA quick_check(1)";

const LOCK: &str = "guardian.lock";
const READERS: u32 = 4;

/// Pages of the journal, 32 MiB, after which they go into the database: a page that several jobs change is written once.
const JOURNAL_PAGES: &str = "8192";

/// Longer than any transaction here takes, so that only a fault ends a wait.
const PATIENCE: Duration = Duration::from_secs(10);

/// The store in a folder.
pub struct SqliteStore {
    pub(super) writer: SqlitePool,
    pub(super) reader: SqlitePool,
    /// Where the payloads of chunks go, if not into the database.
    pub(in crate::store) objects: OnceLock<Arc<dyn PartObjects>>,
    schema_version: i64,
    /// Held until the store is closed; the system lets go of it when the process dies.
    lock: File,
    #[cfg(test)]
    _home: Option<tempfile::TempDir>,
}

impl SqliteStore {
    /// Opens the store in a folder, which is made (mode 0700) when there is none.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process has it open; others when it cannot be made, read or migrated.
    pub async fn open(folder: &Path) -> Result<Self, StoreError> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unusable)?;
        let lock = lock(folder)?;
        let file = folder.join(DATABASE);
        // SQLite gives its journal and shared memory the mode of the database
        OpenOptions::new().append(true).create(true).mode(0o600).open(&file).map_err(unusable)?;
        let options = SqliteConnectOptions::new()
            .filename(&file)
            .journal_mode(SqliteJournalMode::Wal)
            // FULL, not NORMAL: with NORMAL a power cut may take back the last commits, and a ledger that forgets a
            // release which someone has read is a privacy failure. The price is one fsync per commit
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(PATIENCE)
            .foreign_keys(true)
            // erased keys and purged rows are overwritten, not only unlinked
            .pragma("secure_delete", "ON")
            // no row of the data in a temporary file outside the folder
            .pragma("temp_store", "MEMORY")
            .pragma("wal_autocheckpoint", JOURNAL_PAGES);
        let pool = SqlitePoolOptions::new().acquire_timeout(PATIENCE * 3).idle_timeout(None).max_lifetime(None);
        // a file does not go away, and the library tests a connection at its return in any case
        let pool = pool.test_before_acquire(false);
        let writer = pool.clone().max_connections(1).connect_with(options.clone()).await.map_err(failed)?;
        let schema_version = migrations::apply(&SQLITE, &mut *writer.acquire().await.map_err(failed)?).await?;
        let reader =
            pool.max_connections(READERS).connect_with(options.pragma("query_only", "ON")).await.map_err(failed)?;
        Ok(Self {
            writer,
            reader,
            objects: OnceLock::new(),
            schema_version,
            lock,
            #[cfg(test)]
            _home: None,
        })
    }

    /// What is pinned in the store of a folder, without making or changing anything; `None` also where there is no store.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn peek(folder: &Path, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let file = folder.join(DATABASE);
        if !file.try_exists().map_err(unusable)? {
            return Ok(None);
        }
        let options = SqliteConnectOptions::new().filename(&file).read_only(true).busy_timeout(PATIENCE);
        let mut connection = options.connect().await.map_err(failed)?;
        let begun: i64 = sqlx::query_scalar(HAS_PINS).fetch_one(&mut connection).await.map_err(failed)?;
        let pinned = if begun == 0 {
            None
        } else {
            sqlx::query_scalar(sql::PINNED).bind(name).fetch_optional(&mut connection).await.map_err(failed)?
        };
        connection.close().await.map_err(failed)?;
        Ok(pinned)
    }

    /// Copies the store of a folder into a new file (mode 0600), as it is at one moment, and checks the copy. Another process may
    /// have the store open: readers and writers do not wait for each other.
    ///
    /// # Errors
    /// When the file exists, or the store cannot be read; then no file remains.
    pub async fn back_up(folder: &Path, file: &Path) -> Result<(), StoreError> {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(unusable)?;
        let copied = copy_into(folder, file).await;
        // what the copy says to have written is on the disk
        let synced = copied.and_then(|()| made.sync_all().map_err(unusable));
        if synced.is_err() {
            // best effort: the error is the answer
            let _ = std::fs::remove_file(file);
        }
        synced
    }

    /// A store in a folder of its own that goes with it.
    #[cfg(test)]
    pub(crate) async fn temporary() -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = Self::open(home.path()).await.unwrap();
        Self { _home: Some(home), ..store }
    }

    /// The version of its tables.
    #[must_use]
    pub const fn schema_version(&self) -> i64 {
        self.schema_version
    }

    /// Ends every connection. Calls under way end first; later ones are refused. Then another process may open the store, also
    /// while tasks that were stopped still hold this one.
    pub async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(error = %error, "the lock of the store is kept until the process ends");
        }
    }

    /// Begins a transaction that is a writer from its beginning.
    pub(in crate::store) async fn begin(&self) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        begin_on(&self.writer).await
    }

    /// Begins a transaction whose reads are all of one moment.
    pub(in crate::store) async fn begin_snapshot(&self) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        self.reader.begin().await
    }

    /// Moves the journal into the database and empties it: it may still hold what was erased.
    pub(in crate::store) async fn empty_journal(&self) -> Result<(), StoreError> {
        let (busy, _, _): (bool, i64, i64) =
            sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&self.writer).await.map_err(failed)?;
        if busy {
            tracing::warn!("a reader held the journal: what was erased stays in it until the next sweep");
        }
        Ok(())
    }
}

/// Copies the store of a folder into an empty file.
async fn copy_into(folder: &Path, file: &Path) -> Result<(), StoreError> {
    let name =
        file.to_str().ok_or_else(|| unusable(io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8")))?;
    let source = SqliteConnectOptions::new().filename(folder.join(DATABASE)).busy_timeout(PATIENCE);
    let mut connection = source.pragma("temp_store", "MEMORY").connect().await.map_err(failed)?;
    sqlx::query(COPY).bind(name).execute(&mut connection).await.map_err(failed)?;
    connection.close().await.map_err(failed)?;

    let copy = SqliteConnectOptions::new().filename(file).read_only(true);
    let mut connection = copy.connect().await.map_err(failed)?;
    let state: String = sqlx::query_scalar(CHECK).fetch_one(&mut connection).await.map_err(failed)?;
    connection.close().await.map_err(failed)?;
    match state.as_str() {
        "ok" => Ok(()),
        _ => Err(StoreError::corrupt(io::Error::other(state))),
    }
}

async fn begin_on(pool: &SqlitePool) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
    pool.begin_with("BEGIN IMMEDIATE").await
}

/// Runs a transaction once; `name` is its name in the metrics.
pub(in crate::store) async fn run_transaction<T, F>(
    name: &'static str,
    attempt: impl FnOnce() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, SqliteTransactionError>>,
{
    let meter = meter::Transaction::begin(name);
    let done = attempt().await.map_err(|SqliteTransactionError(error)| error);
    // a missing or conflicting row is an answer, no failure
    if !matches!(done, Ok(_) | Err(StoreError::NotFound | StoreError::Conflict)) {
        meter.failed();
    }
    done
}

fn lock(folder: &Path) -> Result<File, StoreError> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join(LOCK))
        .map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(folder.display().to_string())),
        Err(TryLockError::Error(error)) => Err(unusable(error)),
    }
}

fn unusable(error: std::io::Error) -> StoreError {
    match error.kind() {
        std::io::ErrorKind::StorageFull => StoreError::Full,
        _ => StoreError::Backend(Box::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn second_opener_gets_in_use() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data");
        let store = SqliteStore::open(&folder).await.unwrap();
        let Err(StoreError::InUse(named)) = SqliteStore::open(&folder).await else { panic!("opened twice") };
        assert_eq!(named, folder.display().to_string());
        store.close().await;
        SqliteStore::open(&folder).await.unwrap();
        // what still holds the closed one writes nothing
        assert!(store.begin().await.is_err());
    }

    #[tokio::test]
    async fn folder_is_readable_by_its_owner_alone() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data");
        let _store = SqliteStore::open(&folder).await.unwrap();
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0, "{:?}", entry.file_name());
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn transactions_that_read_and_then_write_all_commit() {
        let store = SqliteStore::temporary().await;
        // more than one connection, as a backup or a shell next to the service would be
        let options = (*store.writer.connect_options()).clone();
        let pool = SqlitePoolOptions::new().max_connections(8).connect_with(options).await.unwrap();
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let pool = pool.clone();
                tokio::spawn(async move {
                    for _ in 0..25 {
                        let mut tx = begin_on(&pool).await.unwrap();
                        let version: Option<i64> =
                            sqlx::query_scalar("SELECT version FROM ledgers").fetch_optional(&mut *tx).await.unwrap();
                        tokio::task::yield_now().await;
                        sqlx::query(
                            "INSERT INTO ledgers VALUES ('t', 's', x'00', $1) ON CONFLICT DO UPDATE SET version = $1",
                        )
                        .bind(version.unwrap_or(0) + 1)
                        .execute(&mut *tx)
                        .await
                        .unwrap();
                        tx.commit().await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let version: i64 = sqlx::query_scalar("SELECT version FROM ledgers").fetch_one(&store.reader).await.unwrap();
        assert_eq!(version, 200);
    }

    #[tokio::test]
    async fn tables_of_a_later_version_are_not_touched() {
        let home = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(home.path()).await.unwrap();
        let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                     VALUES (9000, 'later', TRUE, x'', 0)";
        sqlx::query(later).execute(&store.writer).await.unwrap();
        store.close().await;
        drop(store);
        let Err(StoreError::Schema(said)) = SqliteStore::open(home.path()).await else { panic!("opened") };
        assert!(said.contains("9000"), "{said}");
    }

    #[tokio::test]
    async fn readers_cannot_write() {
        let store = SqliteStore::temporary().await;
        assert!(sqlx::query("DELETE FROM jobs").execute(&store.reader).await.is_err());
    }
}
