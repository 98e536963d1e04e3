//! The locks of transactions, and the statements that lock the rows they read.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::ports::{LedgerContent, LedgerCopy, ReleaseRecord, SeriesName};

/// The shared text, holding the row: versions of a policy are numbered one after the other.
pub(in crate::store) const POLICY_ID: &str = "\
-- policy_id
SELECT id FROM policies WHERE tenant = $1 AND name = $2 FOR UPDATE";

/// The shared text, holding the row: no reader begins, and no other act comes between.
pub(in crate::store) const RELEASE_STATE: &str = "\
-- release_state
SELECT status, first_read_at IS NOT NULL FROM releases WHERE id = $1 FOR UPDATE";

/// The shared text, holding the row.
pub(in crate::store) const STATUS: &str = "\
-- status_locked
SELECT status FROM jobs WHERE id = $1 AND tenant = $2 FOR UPDATE";

/// Skips rows that another transaction is about to move; the next look finds those that stay.
pub(in crate::store) const EXPIRED: &str = "\
-- expired
SELECT id, attempt, lapses, cancel_requested FROM jobs WHERE status = 'running' AND lease_expires_at <= $1
ORDER BY id FOR UPDATE SKIP LOCKED";

pub(in crate::store) const OVERDUE: &str = "\
-- overdue
SELECT id FROM jobs WHERE status = 'queued' AND deadline_at IS NOT NULL AND deadline_at <= $1
ORDER BY id FOR UPDATE SKIP LOCKED";

pub(in crate::store) const WAITING_ALIKE: &str = "\
-- waiting_alike
SELECT id FROM jobs WHERE status = 'queued' AND tenant = $1 AND reuse_key = $2 ORDER BY id FOR UPDATE";

/// Readers go on; writers of keys wait.
const LOCK_KEYS: &str = "\
-- lock_keys
LOCK TABLE api_keys IN SHARE ROW EXCLUSIVE MODE";

/// One claim at a time, so that turns are kept and a tenant never has too many running jobs. A claimer that freezes is cut off.
const LOCK_CLAIMS: &str = "\
-- lock_claims
SELECT pg_advisory_xact_lock(8, 1), set_config('idle_in_transaction_session_timeout', '5s', TRUE)";

const LOCK_REUSE_KEY: &str = "\
-- lock_reuse_key
SELECT pg_advisory_xact_lock($1)";

const LOCK_JOB: &str = "\
-- lock_job
SELECT id FROM jobs WHERE id = $1 FOR UPDATE";

const LOCK_CHAIN: &str = "\
-- lock_chain
SELECT id FROM chains WHERE id = $1 FOR UPDATE";

/// The shared text, holding the job's row: an attempt that ends meanwhile gets no more pieces.
pub(in crate::store) const PUT_CHAIN_PIECE: &str = "\
-- put_chain_piece
INSERT INTO chain_pieces (chain_id, job_id, attempt, piece_no, payload)
SELECT $1, id, attempt, $4, $5 FROM jobs WHERE id = $2 AND attempt = $3 AND status = 'running'
AND EXISTS (SELECT 1 FROM chain_keys WHERE chain_id = $1) FOR SHARE";

/// An advisory lock, because a dataset that is not visible yet has no row.
const LOCK_DATASET: &str = "\
-- lock_dataset
SELECT pg_advisory_xact_lock($1)";

/// Writers of chunks do not exclude each other.
const SHARE_DATASET: &str = "\
-- share_dataset
SELECT pg_advisory_xact_lock_shared($1)";

/// A row to lock, also for the first commit of a content. A rollback removes it again.
const BEGIN_LEDGER: &str = "\
-- begin_ledger
INSERT INTO ledgers (tenant, series, content_hash, version) VALUES ($1, $2, $3, 0)
ON CONFLICT (tenant, series, content_hash) DO NOTHING";

const LOCK_LEDGER: &str = "\
-- lock_ledger
SELECT version FROM ledgers WHERE tenant = $1 AND series = $2 AND content_hash = $3 FOR UPDATE";

/// A row to lock, also for the first entry. A rollback removes it again.
const BEGIN_SERIES: &str = "\
-- begin_series
INSERT INTO series_versions (tenant, series, version) VALUES ($1, $2, 0) ON CONFLICT (tenant, series) DO NOTHING";

const LOCK_SERIES: &str = "\
-- lock_series
SELECT version FROM series_versions WHERE tenant = $1 AND series = $2 FOR UPDATE";

/// Keeps others from inserting a key.
pub(in crate::store) async fn lock_keys(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    run_sql!(query.execute, connection, LOCK_KEYS)?;
    Ok(())
}

pub(in crate::store) async fn lock_claims(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    run_sql!(query.execute, connection, LOCK_CLAIMS)?;
    Ok(())
}

/// Locks by the first eight bytes of a key. Two keys that share them wait for each other, which is harmless.
pub(in crate::store) async fn lock_reuse_key(connection: &mut PgConnection, key: &[u8; 32]) -> Result<(), sqlx::Error> {
    let (beginning, _) = key.split_first_chunk().unwrap_or((&[0; 8], &[]));
    run_sql!(query.execute, connection, LOCK_REUSE_KEY, i64::from_be_bytes(*beginning))?;
    Ok(())
}

pub(in crate::store) async fn lock_job(connection: &mut PgConnection, job: Uuid) -> Result<(), sqlx::Error> {
    run_sql!(query.fetch_optional, connection, LOCK_JOB, job)?;
    Ok(())
}

/// Keeps others from changing the states of a chain.
pub(in crate::store) async fn lock_chain(connection: &mut PgConnection, chain: Uuid) -> Result<(), sqlx::Error> {
    run_sql!(query.fetch_optional, connection, LOCK_CHAIN, chain)?;
    Ok(())
}

/// Keeps others from changing the visibility and the chunks of a dataset.
pub(in crate::store) async fn lock_dataset(connection: &mut PgConnection, dataset: Uuid) -> Result<(), sqlx::Error> {
    lock_half(connection, LOCK_DATASET, dataset).await
}

/// Keeps a dataset from becoming visible or being deleted. Writers of chunks do not exclude each other.
pub(in crate::store) async fn share_dataset(connection: &mut PgConnection, dataset: Uuid) -> Result<(), sqlx::Error> {
    lock_half(connection, SHARE_DATASET, dataset).await
}

/// Locks by the random half of a UUIDv7. Two datasets that share it wait for each other, which is harmless.
async fn lock_half(connection: &mut PgConnection, lock: &'static str, dataset: Uuid) -> Result<(), sqlx::Error> {
    let (_, random) = dataset.as_u64_pair();
    run_sql!(query.execute, connection, lock, random.cast_signed())?;
    Ok(())
}

/// Keeps others from recording anything in the ledger of a release's content, and returns its version.
pub(in crate::store) async fn lock_ledger(
    connection: &mut PgConnection,
    release: &ReleaseRecord,
) -> Result<i64, sqlx::Error> {
    lock_content(connection, &release.tenant, &release.series, &release.content_hash).await
}

async fn lock_content(
    connection: &mut PgConnection,
    tenant: &str,
    series: &str,
    content_hash: &[u8; 32],
) -> Result<i64, sqlx::Error> {
    let hash = content_hash.as_slice();
    run_sql!(query.execute, &mut *connection, BEGIN_LEDGER, tenant, series, hash)?;
    run_sql!(query_scalar.fetch_one, connection, LOCK_LEDGER, tenant, series, hash)
}

/// Keeps others from recording anything in a series, and returns its version.
pub(in crate::store) async fn lock_series(
    connection: &mut PgConnection,
    tenant: &str,
    series: &str,
) -> Result<i64, sqlx::Error> {
    run_sql!(query.execute, &mut *connection, BEGIN_SERIES, tenant, series)?;
    run_sql!(query_scalar.fetch_one, connection, LOCK_SERIES, tenant, series)
}

/// Locks the ledgers of all contents of a copy, then its series, each in their order. Until the end nothing is published or
/// declared in them.
pub(in crate::store) async fn lock_for_import(
    connection: &mut PgConnection,
    copy: &LedgerCopy,
) -> Result<(), sqlx::Error> {
    for LedgerContent { tenant, series, hash } in copy.contents() {
        lock_content(connection, &tenant, &series, &hash).await?;
    }
    for SeriesName { tenant, series } in copy.series() {
        lock_series(connection, &tenant, &series).await?;
    }
    Ok(())
}
