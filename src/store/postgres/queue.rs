//! The queue.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::PostgresStore;
use super::document::JsonText;
use super::error::{TransactionError, failed};
use super::keys::log;
use super::listen::{Notification, tell};
use super::pool::retried;
use crate::control::Progress;
use crate::ports::{
    AuditEntry, CancelOutcome, ClaimTerms, ClaimedJob, Cursor, Heartbeat, JobEnd, JobFilter, JobQueue, JobRecord,
    JobStatus, LeaseToken, NewJob, Page, ReapProblems, Reaped, StoreError, UnknownStatusError, WriteOutcome, back_off,
    instance,
};
use crate::problem::Problem;
use crate::store::rows::{ExpiredRow, JobRow, alive, before, number};
use crate::store::sql::queue::{next_of_tenant, turns};
use crate::store::sql::{queue as sql, releases};

/// Tenants are asked in the order of their turns, and the first job that is found ends the search: the nested loop takes what is
/// ordered as it comes, so that only the row that is taken is locked. Rows that somebody else is about to move are passed over.
/// MATERIALIZED keeps the planner from looking for the row again while it updates, and locking another one. Equal jobs that two
/// claims choose at once meet at the unique index of running jobs.
const CLAIM: &str = concat!(
    "-- claim\n",
    turns!(),
    ",
ordered AS MATERIALIZED (
    SELECT tenant FROM turns WHERE running < $4 ORDER BY running, served_at NULLS FIRST, tenant),
next AS MATERIALIZED (
    SELECT n.id FROM ordered AS t CROSS JOIN LATERAL (",
    next_of_tenant!(),
    " FOR UPDATE OF q SKIP LOCKED) AS n
    LIMIT 1)
UPDATE jobs AS j SET status = 'running', lease_token = $1, lease_expires_at = $2, started_at = $3, attempt = j.attempt + 1,
    progress = NULL
FROM next WHERE j.id = next.id
RETURNING j.id, j.tenant"
);

/// One claim at a time: what a claim counts is what the one before it made of it, so that turns are kept and a tenant never has
/// more running jobs than it may. A claim takes milliseconds; a claimer that froze within it is cut off soon.
const LOCK_CLAIMS: &str = "\
-- lock_claims
SELECT pg_advisory_xact_lock(8, 1), set_config('idle_in_transaction_session_timeout', '5s', TRUE)";

const STATUS_LOCKED: &str = "\
-- status_locked
SELECT status FROM jobs WHERE id = $1 AND tenant = $2 FOR UPDATE";

/// Whoever has the row at the moment is about to move the job; the next look tells whether it did.
const EXPIRED: &str = "\
-- expired
SELECT id, attempt, lapses, cancel_requested FROM jobs WHERE status = 'running' AND lease_expires_at <= $1
ORDER BY id FOR UPDATE SKIP LOCKED";

const OVERDUE: &str = "\
-- overdue
SELECT id FROM jobs WHERE status = 'queued' AND deadline_at IS NOT NULL AND deadline_at <= $1
ORDER BY id FOR UPDATE SKIP LOCKED";

const LOCK_REUSE_KEY: &str = "\
-- lock_reuse_key
SELECT pg_advisory_xact_lock($1)";

#[async_trait]
impl JobQueue for PostgresStore {
    async fn enqueue(&self, job: NewJob) -> Result<JobRecord, StoreError> {
        retried("enqueue", || self.try_enqueue(&job)).await
    }

    async fn claim(
        &self,
        token: LeaseToken,
        terms: ClaimTerms,
        now: DateTime<Utc>,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        retried("claim", || self.try_claim(token, terms, now)).await
    }

    async fn heartbeat(
        &self,
        id: Uuid,
        token: LeaseToken,
        progress: Option<Progress>,
        lease: Duration,
        now: DateTime<Utc>,
    ) -> Result<Heartbeat, StoreError> {
        let mut connection = self.heart.acquire().await.map_err(failed)?;
        let now = self.lease_time(&mut connection, now).await.map_err(failed)?;
        let beat = sqlx::query_scalar(sql::HEARTBEAT)
            .bind(id)
            .bind(token.0)
            .bind(now + lease)
            .bind(progress.map(JsonText))
            .bind(now)
            .fetch_optional(&mut *connection)
            .await
            .map_err(failed)?;
        Ok(alive(beat))
    }

    async fn lease(&self, id: Uuid, token: LeaseToken, now: DateTime<Utc>) -> Result<Heartbeat, StoreError> {
        let mut connection = self.heart.acquire().await.map_err(failed)?;
        let now = self.lease_time(&mut connection, now).await.map_err(failed)?;
        let found = sqlx::query_scalar(sql::LEASE)
            .bind(id)
            .bind(token.0)
            .bind(now)
            .fetch_optional(&mut *connection)
            .await
            .map_err(failed)?;
        Ok(alive(found))
    }

    async fn finish(
        &self,
        id: Uuid,
        token: LeaseToken,
        end: JobEnd,
        now: DateTime<Utc>,
    ) -> Result<WriteOutcome, StoreError> {
        retried("finish", || self.try_finish(id, token, &end, now)).await
    }

    async fn succeed_with_reused(
        &self,
        id: Uuid,
        token: LeaseToken,
        release: Uuid,
        now: DateTime<Utc>,
    ) -> Result<WriteOutcome, StoreError> {
        retried("succeed_with_reused", || self.try_succeed_with_reused(id, token, release, now)).await
    }

    async fn release_lease(&self, id: Uuid, token: LeaseToken, now: DateTime<Utc>) -> Result<WriteOutcome, StoreError> {
        retried("release_lease", || self.try_release_lease(id, token, now)).await
    }

    async fn request_cancel(
        &self,
        tenant: &str,
        id: Uuid,
        now: DateTime<Utc>,
        audit_entry: &AuditEntry,
    ) -> Result<CancelOutcome, StoreError> {
        retried("request_cancel", || self.try_request_cancel(tenant, id, now, audit_entry)).await
    }

    async fn reap(&self, now: DateTime<Utc>, max_attempts: u32, problems: &ReapProblems) -> Result<Reaped, StoreError> {
        retried("reap", || self.try_reap(now, max_attempts, problems)).await
    }

    async fn expire_all_leases(&self, now: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(failed)?;
        let now = self.lease_time(&mut connection, now).await.map_err(failed)?;
        let expired = sqlx::query(sql::EXPIRE_ALL).bind(now).execute(&mut *connection).await.map_err(failed)?;
        Ok(expired.rows_affected())
    }

    async fn queued_jobs(&self, tenant: &str) -> Result<u64, StoreError> {
        let queued: i64 =
            sqlx::query_scalar(sql::QUEUED_JOBS).bind(tenant).fetch_one(&self.pool).await.map_err(failed)?;
        number(queued)
    }

    async fn job(&self, tenant: &str, id: Uuid) -> Result<Option<JobRecord>, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(failed)?;
        read_job(&mut connection, tenant, id).await
    }

    async fn jobs(
        &self,
        tenant: &str,
        filter: &JobFilter,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<JobRecord>, StoreError> {
        let rows: Vec<JobRow> = sqlx::query_as(sql::JOBS)
            .bind(before(cursor))
            .bind(filter.status.map(JobStatus::name))
            .bind(filter.dataset)
            .bind(&filter.series)
            .bind(&filter.method)
            .bind(i64::from(limit) + 1)
            .bind(tenant)
            .fetch_all(&self.pool)
            .await
            .map_err(failed)?;
        let records = rows.into_iter().map(JobRecord::try_from).collect::<Result<_, _>>()?;
        Ok(Page::new(records, limit, |record| record.id))
    }
}

impl PostgresStore {
    async fn try_enqueue(&self, job: &NewJob) -> Result<JobRecord, TransactionError> {
        let mut tx = self.begin().await?;
        self.same_master_key(&mut tx).await?;
        // a commit under this key either sees this job wait, or this look sees its release
        lock_reuse_key(&mut tx, &job.reuse_key).await?;
        let protection: Option<Uuid> = sqlx::query_scalar(sql::STANDING_RELEASE)
            .bind(&job.tenant)
            .bind(job.reuse_key.as_slice())
            .fetch_optional(&mut *tx)
            .await?;
        let status = if protection.is_some() { JobStatus::Succeeded } else { JobStatus::Queued };
        let inserted = sqlx::query(sql::INSERT_JOB)
            .bind(job.id)
            .bind(&job.tenant)
            .bind(job.dataset)
            .bind(&job.series)
            .bind(&job.method)
            .bind(job.reuse_key.as_slice())
            .bind(i64::from(job.priority))
            .bind(status.name())
            .bind(job.submitted_at)
            .bind(protection.map(|_| job.submitted_at))
            .bind(job.deadline_at)
            .bind(protection)
            .bind(protection.is_some())
            .execute(&mut *tx)
            .await?;
        if inserted.rows_affected() == 0 {
            return Err(StoreError::NotFound.into());
        }
        sqlx::query(sql::INSERT_JOB_DETAILS)
            .bind(job.id)
            .bind(JsonText(&job.specification))
            .bind(&job.reason)
            .bind(&job.audit_entry.actor)
            .execute(&mut *tx)
            .await?;
        if protection.is_none() {
            sqlx::query(sql::INSERT_JOB_KEY).bind(job.id).bind(&job.wrapped_key).execute(&mut *tx).await?;
            tell(&mut tx, Notification::Queued).await?;
        }
        log(&mut tx, &job.audit_entry).await?;
        let record = read_job(&mut tx, &job.tenant, job.id).await?.ok_or(StoreError::NotFound)?;
        tx.commit().await?;
        Ok(record)
    }

    async fn try_claim(
        &self,
        token: LeaseToken,
        terms: ClaimTerms,
        now: DateTime<Utc>,
    ) -> Result<Option<ClaimedJob>, TransactionError> {
        let mut tx = self.begin().await?;
        sqlx::query(LOCK_CLAIMS).execute(&mut *tx).await?;
        let now = self.lease_time(&mut tx, now).await?;
        let claimed: Option<(Uuid, String)> = sqlx::query_as(CLAIM)
            .bind(token.0)
            .bind(now + terms.lease)
            .bind(now)
            .bind(terms.max_running_per_tenant.map_or(i64::MAX, i64::from))
            .fetch_optional(&mut *tx)
            .await?;
        let Some((id, tenant)) = claimed else { return Ok(None) };
        let job = read_job(&mut tx, &tenant, id).await?.ok_or(StoreError::NotFound)?;
        // a missing key is for the worker to fail the job on: failing the claim would block the queue
        let wrapped_key: Option<Vec<u8>> = sqlx::query_scalar(sql::JOB_KEY).bind(id).fetch_optional(&mut *tx).await?;
        tx.commit().await?;
        Ok(Some(ClaimedJob { job, wrapped_key: wrapped_key.unwrap_or_default() }))
    }

    async fn try_finish(
        &self,
        id: Uuid,
        token: LeaseToken,
        end: &JobEnd,
        now: DateTime<Utc>,
    ) -> Result<WriteOutcome, TransactionError> {
        let mut tx = self.begin().await?;
        let now = self.lease_time(&mut tx, now).await?;
        if end_running(&mut tx, id, token, now, end.status(), None).await? == WriteOutcome::LeaseLost {
            return Ok(WriteOutcome::LeaseLost);
        }
        if let Some(problem) = end.problem() {
            set_problem(&mut tx, id, problem).await?;
        }
        // an equal job may wait for this end
        tell(&mut tx, Notification::Queued).await?;
        tx.commit().await?;
        Ok(WriteOutcome::Done)
    }

    async fn try_succeed_with_reused(
        &self,
        id: Uuid,
        token: LeaseToken,
        release: Uuid,
        now: DateTime<Utc>,
    ) -> Result<WriteOutcome, TransactionError> {
        let mut tx = self.begin().await?;
        let found: Option<Uuid> =
            sqlx::query_scalar(releases::RELEASE_EXISTS).bind(release).fetch_optional(&mut *tx).await?;
        if found.is_none() {
            return Err(StoreError::NotFound.into());
        }
        let now = self.lease_time(&mut tx, now).await?;
        let end = Some((release, true));
        let written = end_running(&mut tx, id, token, now, JobStatus::Succeeded, end).await?;
        tell(&mut tx, Notification::Queued).await?;
        tx.commit().await?;
        Ok(written)
    }

    async fn try_release_lease(
        &self,
        id: Uuid,
        token: LeaseToken,
        now: DateTime<Utc>,
    ) -> Result<WriteOutcome, TransactionError> {
        let mut tx = self.begin().await?;
        let now = self.lease_time(&mut tx, now).await?;
        let released: Option<bool> =
            sqlx::query_scalar(sql::RELEASE_LEASE).bind(id).bind(token.0).bind(now).fetch_optional(&mut *tx).await?;
        let Some(cancelled) = released else { return Ok(WriteOutcome::LeaseLost) };
        if cancelled {
            erase_key(&mut tx, id).await?;
        }
        tell(&mut tx, Notification::Queued).await?;
        tx.commit().await?;
        Ok(WriteOutcome::Done)
    }

    async fn try_request_cancel(
        &self,
        tenant: &str,
        id: Uuid,
        now: DateTime<Utc>,
        audit_entry: &AuditEntry,
    ) -> Result<CancelOutcome, TransactionError> {
        let mut tx = self.begin().await?;
        let status: Option<String> =
            sqlx::query_scalar(STATUS_LOCKED).bind(id).bind(tenant).fetch_optional(&mut *tx).await?;
        let Some(status) = status else { return Ok(CancelOutcome::NotFound) };
        let outcome = match status.parse().map_err(|error: UnknownStatusError| StoreError::corrupt(error))? {
            JobStatus::Queued => {
                sqlx::query(sql::CANCEL_QUEUED).bind(id).bind(now).execute(&mut *tx).await?;
                erase_key(&mut tx, id).await?;
                tell(&mut tx, Notification::Changed).await?;
                CancelOutcome::CancelledAtOnce
            }
            JobStatus::Running => {
                sqlx::query(sql::CANCEL_RUNNING).bind(id).execute(&mut *tx).await?;
                tell(&mut tx, Notification::Cancel).await?;
                CancelOutcome::Requested
            }
            terminal => return Ok(CancelOutcome::Terminal(terminal)),
        };
        log(&mut tx, audit_entry).await?;
        tx.commit().await?;
        Ok(outcome)
    }

    async fn try_reap(
        &self,
        now: DateTime<Utc>,
        max_attempts: u32,
        problems: &ReapProblems,
    ) -> Result<Reaped, TransactionError> {
        let mut tx = self.begin().await?;
        let now = self.lease_time(&mut tx, now).await?;
        let mut reaped = Reaped::default();
        let expired: Vec<ExpiredRow> = sqlx::query_as(EXPIRED).bind(now).fetch_all(&mut *tx).await?;
        for row in expired {
            reaped.lapsed.push((row.id, number(row.attempt)?));
            let list = if row.cancel_requested {
                set_reaped(&mut tx, row.id, JobStatus::Cancelled, now, Some(row.lapses)).await?;
                &mut reaped.cancelled
            } else if row.lapses + 1 >= i64::from(max_attempts) {
                set_reaped(&mut tx, row.id, JobStatus::Failed, now, Some(row.lapses)).await?;
                set_problem(&mut tx, row.id, &document(&problems.exhausted, row.id)).await?;
                &mut reaped.exhausted
            } else {
                set_reaped(&mut tx, row.id, JobStatus::Queued, now, Some(row.lapses)).await?;
                &mut reaped.requeued
            };
            list.push(row.id);
        }
        reaped.overdue = sqlx::query_scalar(OVERDUE).bind(now).fetch_all(&mut *tx).await?;
        for &id in &reaped.overdue {
            set_reaped(&mut tx, id, JobStatus::Failed, now, None).await?;
            set_problem(&mut tx, id, &document(&problems.deadline, id)).await?;
        }
        if !reaped.is_empty() {
            tell(&mut tx, Notification::Queued).await?;
        }
        tx.commit().await?;
        Ok(reaped)
    }
}

async fn read_job(connection: &mut PgConnection, tenant: &str, id: Uuid) -> Result<Option<JobRecord>, StoreError> {
    let row: Option<JobRow> =
        sqlx::query_as(sql::JOB).bind(id).bind(tenant).fetch_optional(connection).await.map_err(failed)?;
    row.map(JobRecord::try_from).transpose()
}

/// Ends a running job, with a release and whether it is another job's, and erases its key.
pub(super) async fn end_running(
    connection: &mut PgConnection,
    id: Uuid,
    token: LeaseToken,
    now: DateTime<Utc>,
    status: JobStatus,
    release: Option<(Uuid, bool)>,
) -> Result<WriteOutcome, sqlx::Error> {
    let ended = sqlx::query(sql::FINISH)
        .bind(id)
        .bind(token.0)
        .bind(now)
        .bind(status.name())
        .bind(release.map(|(release, _)| release))
        .bind(release.is_some_and(|(_, reused)| reused))
        .execute(&mut *connection)
        .await?;
    if ended.rows_affected() == 0 {
        return Ok(WriteOutcome::LeaseLost);
    }
    erase_key(connection, id).await?;
    Ok(WriteOutcome::Done)
}

pub(super) async fn erase_key(connection: &mut PgConnection, id: Uuid) -> Result<(), sqlx::Error> {
    sqlx::query(sql::ERASE_JOB_KEY).bind(id).execute(connection).await?;
    Ok(())
}

/// Moves a job that no worker has, because its lease expired (after so many earlier ones) or its deadline passed. A key goes with
/// every end.
async fn set_reaped(
    connection: &mut PgConnection,
    id: Uuid,
    status: JobStatus,
    now: DateTime<Utc>,
    lapsed: Option<i64>,
) -> Result<(), sqlx::Error> {
    let lapses = lapsed.filter(|_| !status.is_terminal()).map(|earlier| u32::try_from(earlier + 1).unwrap_or(u32::MAX));
    let not_before = lapses.map(|lapses| now + back_off(lapses));
    sqlx::query(sql::REAP)
        .bind(id)
        .bind(status.name())
        .bind(status.is_terminal().then_some(now))
        .bind(i64::from(lapsed.is_some()))
        .bind(not_before)
        .execute(&mut *connection)
        .await?;
    if status.is_terminal() { erase_key(connection, id).await } else { Ok(()) }
}

async fn set_problem(connection: &mut PgConnection, id: Uuid, problem: &serde_json::Value) -> Result<(), sqlx::Error> {
    sqlx::query(sql::SET_PROBLEM).bind(id).bind(JsonText(problem)).execute(connection).await?;
    Ok(())
}

/// Locks by the beginning of a key, which is as random as the rest. Two keys with the same beginning wait for each other, which
/// does no harm.
pub(super) async fn lock_reuse_key(connection: &mut PgConnection, key: &[u8; 32]) -> Result<(), sqlx::Error> {
    let (beginning, _) = key.split_first_chunk().unwrap_or((&[0; 8], &[]));
    sqlx::query(LOCK_REUSE_KEY).bind(i64::from_be_bytes(*beginning)).execute(connection).await?;
    Ok(())
}

fn document(problem: &Problem, job: Uuid) -> serde_json::Value {
    problem.to_json(&instance(job))
}
