//! Opening the store: its connections, its clock, and how a transaction is tried again.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, Executor, PgConnection, PgPool, Postgres, Transaction};
use tokio::sync::Mutex;

use super::error::{PostgresTransactionError, failed};
use super::schema::migrate;
use crate::meter;
use crate::ports::{PartObjects, StoreError};
use crate::store::sql::pins as sql;

/// Connections for callers and runners.
const MAX_CONNECTIONS: u32 = 16;
/// Heartbeats are short, and a worker beats once in seconds.
const HEARTBEAT_CONNECTIONS: u32 = 2;
/// Longer than any transaction here takes, so that only a fault ends a wait.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// The library tests a connection at its return. One that lay idle for longer is tested once more before it is used.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// How often a transaction is tried, and the longest pause before the second time; it doubles with every retry.
const MAX_TRANSACTION_RETRIES: u32 = 8;
const MAX_FIRST_RETRY_PAUSE: Duration = Duration::from_millis(4);

/// A release that someone has read must not be forgotten in a crash. Where the operator asks for more than `on`, it stays.
const DURABLE: &str = "\
-- durable
SELECT set_config('synchronous_commit', 'on', FALSE) WHERE current_setting('synchronous_commit') IN ('off', 'local')";

const LOOKUP: &str = "\
BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY;
SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";

const HAS_PINS: &str = "\
-- has_pins
SELECT to_regclass('pins') IS NOT NULL";

const NOW: &str = "\
-- now
SELECT clock_timestamp()";

/// The clock of leases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LeaseClock {
    /// The database's: processes may disagree on the time, but not on whether a lease has expired.
    Database,
    /// The caller's, which tests move.
    #[cfg(test)]
    Caller,
}

/// The store in a database.
pub struct PostgresStore {
    pub(super) pool: PgPool,
    pub(super) heart: PgPool,
    pub(super) ears: PgPool,
    pub(super) lease_clock: LeaseClock,
    /// The fingerprint of the master key that this process wraps under, once it has one.
    pub(super) master_key: OnceLock<[u8; 32]>,
    /// Held while tables of wrapped keys are written anew.
    pub(super) scouring: Mutex<()>,
    /// Whether deleted wrapped keys may still stand in pages.
    pub(super) owes_scouring: AtomicBool,
    /// Where the payloads of chunks go, if not into the database.
    pub(in crate::store) objects: OnceLock<Arc<dyn PartObjects>>,
    name: String,
    schema_version: i64,
}

impl PostgresStore {
    /// Connects to a database and applies the migrations that it lacks, while no other process does.
    ///
    /// # Errors
    /// [`StoreError::Schema`] when the database is of a later version; others when it cannot be reached or migrated.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(options(url)?).await
    }

    /// What is pinned in the store of a database, without making or changing anything; `None` also where there is no store.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub async fn peek(url: &str, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let mut connection = PgConnection::connect_with(&options(url)?).await.map_err(failed)?;
        let begun: bool = sqlx::query_scalar(HAS_PINS).fetch_one(&mut connection).await.map_err(failed)?;
        let pinned = if begun {
            sqlx::query_scalar(sql::PINNED).bind(name).fetch_optional(&mut connection).await.map_err(failed)?
        } else {
            None
        };
        connection.close().await.map_err(failed)?;
        Ok(pinned)
    }

    pub(super) async fn connect_with(options: PgConnectOptions) -> Result<Self, StoreError> {
        let options = options.application_name("guardian");
        let name = described(&options);
        let schema_version = migrate(&options).await?;
        // a transaction that was forgotten or waits for ever would hold the locks of others; compiling takes longer
        // than any statement here
        let options = options.options([
            ("jit", "off"),
            ("lock_timeout", "10s"),
            ("statement_timeout", "120s"),
            ("idle_in_transaction_session_timeout", "60s"),
        ]);
        let pool = |connections: u32| {
            PgPoolOptions::new()
                .max_connections(connections)
                .acquire_timeout(ACQUIRE_TIMEOUT)
                .test_before_acquire(false)
                .before_acquire(|connection, found| {
                    Box::pin(async move {
                        if found.idle_for > TRUSTED_IDLE {
                            connection.ping().await?;
                        }
                        Ok(true)
                    })
                })
                .after_connect(|connection, _| {
                    Box::pin(async move {
                        connection.execute(DURABLE).await?;
                        Ok(())
                    })
                })
                .connect_lazy_with(options.clone())
        };
        Ok(Self {
            pool: pool(MAX_CONNECTIONS),
            heart: pool(HEARTBEAT_CONNECTIONS),
            ears: pool(1),
            lease_clock: LeaseClock::Database,
            master_key: OnceLock::new(),
            scouring: Mutex::new(()),
            owes_scouring: AtomicBool::new(false),
            objects: OnceLock::new(),
            name,
            schema_version,
        })
    }

    /// Where it is, without a password.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version of its tables.
    #[must_use]
    pub const fn schema_version(&self) -> i64 {
        self.schema_version
    }

    /// Says which master key this process wraps under: nothing that it wraps is kept once that is another.
    pub fn wraps_under(&self, fingerprint: [u8; 32]) {
        // the first key is the only one that a process opens
        let _ = self.master_key.set(fingerprint);
    }

    /// Ends every connection. Calls under way end first; later ones are refused.
    pub async fn close(&self) {
        self.ears.close().await;
        self.pool.close().await;
        self.heart.close().await;
    }

    /// Begins a transaction. Names its isolation level, because a database may have another default.
    pub(in crate::store) async fn begin(&self) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        self.pool.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED").await
    }

    /// Begins a transaction whose reads are all of one moment. One that only reads is never aborted at this level.
    pub(in crate::store) async fn begin_snapshot(&self) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        self.pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY").await
    }

    /// Begins a transaction that looks thousands of keys up, each in an index. The planner would join whole tables instead: a table
    /// without statistics looks small to it.
    pub(super) async fn begin_lookup(&self) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        self.pool.begin_with(LOOKUP).await
    }

    /// The time of leases. Read it after every lock that is waited for.
    pub(in crate::store) async fn lease_time(
        &self,
        connection: &mut PgConnection,
        #[cfg_attr(not(test), expect(unused_variables))] callers: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, sqlx::Error> {
        match self.lease_clock {
            LeaseClock::Database => sqlx::query_scalar(NOW).fetch_one(connection).await,
            #[cfg(test)]
            LeaseClock::Caller => Ok(callers),
        }
    }
}

fn options(url: &str) -> Result<PgConnectOptions, StoreError> {
    // the parser's own text is not repeated: it may quote the URL, which may hold a password
    let options: Result<PgConnectOptions, _> = url.parse();
    let options = options.map_err(|_| StoreError::Backend("the URL of the store cannot be read".into()))?;
    Ok(options.application_name("guardian"))
}

/// Tries a transaction again as long as others are in its way. `name` is for the log and the metrics.
pub(in crate::store) async fn run_transaction<T, F>(
    name: &'static str,
    attempt: impl Fn() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, PostgresTransactionError>>,
{
    let meter = meter::Transaction::begin(name);
    let mut tried = 1;
    loop {
        match attempt().await {
            Ok(done) => return Ok(done),
            // an answer, no failure
            Err(PostgresTransactionError::Store(error @ (StoreError::NotFound | StoreError::Conflict))) => {
                return Err(error);
            }
            Err(PostgresTransactionError::Store(error)) => {
                meter.failed();
                return Err(error);
            }
            Err(PostgresTransactionError::Again(error)) if tried == MAX_TRANSACTION_RETRIES => {
                meter.failed();
                tracing::warn!(transaction = name, tries = tried, error = %error, "a transaction never came through");
                return Err(StoreError::Unavailable(Box::new(error)));
            }
            Err(PostgresTransactionError::Again(error)) => {
                tracing::debug!(transaction = name, tries = tried, error = %error, "a transaction is tried again");
                meter.again();
                tokio::time::sleep(pause(tried)).await;
                tried += 1;
            }
        }
    }
}

/// A random part of a growing pause, so that those who met do not meet again.
fn pause(tried: u32) -> Duration {
    let mut random = [0; 1];
    // without randomness the pause is none, and no harm
    let _ = getrandom::fill(&mut random);
    MAX_FIRST_RETRY_PAUSE * (1 << tried.min(6)) * u32::from(random[0]) / 256
}

fn described(options: &PgConnectOptions) -> String {
    let place = options.get_socket().map_or_else(
        || format!("{}:{}", options.get_host(), options.get_port()),
        |socket| format!("{}:{}", socket.display(), options.get_port()),
    );
    let database = options.get_database().unwrap_or_else(|| options.get_username());
    format!("postgres://{}@{place}/{database}", options.get_username())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_store_holds_no_password() {
        let options: PgConnectOptions =
            "postgres://me:secret@db.example:5555/guard?password=secret2&sslmode=require".parse().unwrap();
        assert_eq!(described(&options), "postgres://me@db.example:5555/guard");
    }

    #[tokio::test]
    async fn a_url_that_cannot_be_read_is_not_repeated() {
        let Err(error) = PostgresStore::connect("postgres://me:secret@[bad/guard").await else { panic!("connected") };
        assert!(!format!("{error} {error:?}").contains("secret"));
    }

    #[tokio::test]
    async fn transient_failure_is_retried_a_bounded_number_of_times() {
        let tries = std::cell::Cell::new(0);
        let done = run_transaction("test", || async {
            tries.set(tries.get() + 1);
            if tries.get() < 3 {
                Err(PostgresTransactionError::Again(sqlx::Error::PoolTimedOut))
            } else {
                Ok(tries.get())
            }
        });
        assert_eq!(done.await.unwrap(), 3);
        let never = run_transaction("test", || async {
            tries.set(tries.get() + 1);
            Err::<(), _>(PostgresTransactionError::Again(sqlx::Error::PoolTimedOut))
        });
        assert!(matches!(never.await, Err(StoreError::Unavailable(_))));
        assert_eq!(tries.get(), 3 + MAX_TRANSACTION_RETRIES);
    }
}
