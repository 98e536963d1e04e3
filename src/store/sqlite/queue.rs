//! The queue.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::SqliteStore;
use super::error::failed;
use super::keys::log;
use super::tx::Tx;
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

/// SQLite needs no lock on the chosen row: under the write lock one UPDATE is atomic, and what it counts does not change meanwhile.
const CLAIM: &str = concat!(
    "-- claim\n",
    turns!(),
    ",
offers AS (
    SELECT t.tenant, t.running, t.served_at, (",
    next_of_tenant!(),
    ") AS id
    FROM turns AS t WHERE t.running < $4)
UPDATE jobs SET status = 'running', lease_token = $1, lease_expires_at = $2, started_at = $3, attempt = attempt + 1,
    progress = NULL
WHERE id = (SELECT o.id FROM offers AS o WHERE o.id IS NOT NULL ORDER BY o.running, o.served_at NULLS FIRST, o.tenant LIMIT 1)
RETURNING id, tenant"
);

#[async_trait]
impl JobQueue for SqliteStore {
    async fn enqueue(&self, job: NewJob) -> Result<JobRecord, StoreError> {
        let mut tx = self.begin("enqueue").await?;
        let protection: Option<Uuid> = sqlx::query_scalar(sql::STANDING_RELEASE)
            .bind(&job.tenant)
            .bind(job.reuse_key.as_slice())
            .fetch_optional(&mut *tx)
            .await
            .map_err(failed)?;
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
            .await
            .map_err(failed)?;
        if inserted.rows_affected() == 0 {
            return Err(StoreError::NotFound);
        }
        sqlx::query(sql::INSERT_JOB_DETAILS)
            .bind(job.id)
            .bind(Json(&job.specification))
            .bind(&job.reason)
            .bind(&job.audit_entry.actor)
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        if protection.is_none() {
            sqlx::query(sql::INSERT_JOB_KEY)
                .bind(job.id)
                .bind(job.wrapped_key)
                .execute(&mut *tx)
                .await
                .map_err(failed)?;
        }
        log(&mut tx, &job.audit_entry).await?;
        let record = read_job(&mut tx, &job.tenant, job.id).await?.ok_or(StoreError::NotFound)?;
        tx.commit().await.map_err(failed)?;
        Ok(record)
    }

    async fn claim(
        &self,
        token: LeaseToken,
        terms: ClaimTerms,
        now: DateTime<Utc>,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        let mut tx = self.begin("claim").await?;
        let claimed: Option<(Uuid, String)> = sqlx::query_as(CLAIM)
            .bind(token.0)
            .bind(now + terms.lease)
            .bind(now)
            .bind(terms.max_running_per_tenant.map_or(i64::MAX, i64::from))
            .fetch_optional(&mut *tx)
            .await
            .map_err(failed)?;
        let Some((id, tenant)) = claimed else { return Ok(None) };
        let job = read_job(&mut tx, &tenant, id).await?.ok_or(StoreError::NotFound)?;
        // a missing key is for the worker to fail the job on: failing the claim would block the queue
        let wrapped_key: Option<Vec<u8>> =
            sqlx::query_scalar(sql::JOB_KEY).bind(id).fetch_optional(&mut *tx).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(Some(ClaimedJob { job, wrapped_key: wrapped_key.unwrap_or_default() }))
    }

    async fn heartbeat(
        &self,
        id: Uuid,
        token: LeaseToken,
        progress: Option<Progress>,
        lease: Duration,
        now: DateTime<Utc>,
    ) -> Result<Heartbeat, StoreError> {
        let mut tx = self.begin("heartbeat").await?;
        let beat: Option<bool> = sqlx::query_scalar(sql::HEARTBEAT)
            .bind(id)
            .bind(token.0)
            .bind(now + lease)
            .bind(progress.map(Json))
            .bind(now)
            .fetch_optional(&mut *tx)
            .await
            .map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(alive(beat))
    }

    async fn lease(&self, id: Uuid, token: LeaseToken, now: DateTime<Utc>) -> Result<Heartbeat, StoreError> {
        let found = sqlx::query_scalar(sql::LEASE)
            .bind(id)
            .bind(token.0)
            .bind(now)
            .fetch_optional(&self.reader)
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
        let mut tx = self.begin("finish").await?;
        if end_running(&mut tx, id, token, now, end.status(), None).await? == WriteOutcome::LeaseLost {
            return Ok(WriteOutcome::LeaseLost);
        }
        if let Some(problem) = end.problem() {
            set_problem(&mut tx, id, problem).await?;
        }
        tx.commit().await.map_err(failed)?;
        Ok(WriteOutcome::Done)
    }

    async fn succeed_with_reused(
        &self,
        id: Uuid,
        token: LeaseToken,
        release: Uuid,
        now: DateTime<Utc>,
    ) -> Result<WriteOutcome, StoreError> {
        let mut tx = self.begin("succeed_with_reused").await?;
        let found: Option<Uuid> = sqlx::query_scalar(releases::RELEASE_EXISTS)
            .bind(release)
            .fetch_optional(&mut *tx)
            .await
            .map_err(failed)?;
        if found.is_none() {
            return Err(StoreError::NotFound);
        }
        let end = Some((release, true));
        let written = end_running(&mut tx, id, token, now, JobStatus::Succeeded, end).await?;
        tx.commit().await.map_err(failed)?;
        Ok(written)
    }

    async fn release_lease(&self, id: Uuid, token: LeaseToken, now: DateTime<Utc>) -> Result<WriteOutcome, StoreError> {
        let mut tx = self.begin("release_lease").await?;
        let released: Option<bool> = sqlx::query_scalar(sql::RELEASE_LEASE)
            .bind(id)
            .bind(token.0)
            .bind(now)
            .fetch_optional(&mut *tx)
            .await
            .map_err(failed)?;
        let Some(cancelled) = released else { return Ok(WriteOutcome::LeaseLost) };
        if cancelled {
            erase_key(&mut tx, id).await?;
        }
        tx.commit().await.map_err(failed)?;
        Ok(WriteOutcome::Done)
    }

    async fn request_cancel(
        &self,
        tenant: &str,
        id: Uuid,
        now: DateTime<Utc>,
        audit_entry: &AuditEntry,
    ) -> Result<CancelOutcome, StoreError> {
        let mut tx = self.begin("request_cancel").await?;
        let status: Option<String> =
            sqlx::query_scalar(sql::STATUS).bind(id).bind(tenant).fetch_optional(&mut *tx).await.map_err(failed)?;
        let Some(status) = status else { return Ok(CancelOutcome::NotFound) };
        let outcome = match status.parse().map_err(|error: UnknownStatusError| StoreError::corrupt(error))? {
            JobStatus::Queued => {
                sqlx::query(sql::CANCEL_QUEUED).bind(id).bind(now).execute(&mut *tx).await.map_err(failed)?;
                erase_key(&mut tx, id).await?;
                CancelOutcome::CancelledAtOnce
            }
            JobStatus::Running => {
                sqlx::query(sql::CANCEL_RUNNING).bind(id).execute(&mut *tx).await.map_err(failed)?;
                CancelOutcome::Requested
            }
            terminal => return Ok(CancelOutcome::Terminal(terminal)),
        };
        log(&mut tx, audit_entry).await?;
        tx.commit().await.map_err(failed)?;
        Ok(outcome)
    }

    async fn reap(&self, now: DateTime<Utc>, max_attempts: u32, problems: &ReapProblems) -> Result<Reaped, StoreError> {
        let mut tx = self.begin("reap").await?;
        let mut reaped = Reaped::default();
        let expired: Vec<ExpiredRow> =
            sqlx::query_as(sql::EXPIRED).bind(now).fetch_all(&mut *tx).await.map_err(failed)?;
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
        reaped.overdue = sqlx::query_scalar(sql::OVERDUE).bind(now).fetch_all(&mut *tx).await.map_err(failed)?;
        for &id in &reaped.overdue {
            set_reaped(&mut tx, id, JobStatus::Failed, now, None).await?;
            set_problem(&mut tx, id, &document(&problems.deadline, id)).await?;
        }
        tx.commit().await.map_err(failed)?;
        Ok(reaped)
    }

    async fn expire_all_leases(&self, now: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut tx = self.begin("expire_all_leases").await?;
        let expired = sqlx::query(sql::EXPIRE_ALL).bind(now).execute(&mut *tx).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(expired.rows_affected())
    }

    async fn queued_jobs(&self, tenant: &str) -> Result<u64, StoreError> {
        let queued: i64 =
            sqlx::query_scalar(sql::QUEUED_JOBS).bind(tenant).fetch_one(&self.reader).await.map_err(failed)?;
        number(queued)
    }

    async fn job(&self, tenant: &str, id: Uuid) -> Result<Option<JobRecord>, StoreError> {
        let mut connection = self.reader.acquire().await.map_err(failed)?;
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
            .fetch_all(&self.reader)
            .await
            .map_err(failed)?;
        let records = rows.into_iter().map(JobRecord::try_from).collect::<Result<_, _>>()?;
        Ok(Page::new(records, limit, |record| record.id))
    }
}

async fn read_job(connection: &mut SqliteConnection, tenant: &str, id: Uuid) -> Result<Option<JobRecord>, StoreError> {
    let row: Option<JobRow> =
        sqlx::query_as(sql::JOB).bind(id).bind(tenant).fetch_optional(connection).await.map_err(failed)?;
    row.map(JobRecord::try_from).transpose()
}

/// Ends a running job, with a release and whether it is another job's, and erases its key.
pub(super) async fn end_running(
    tx: &mut Tx,
    id: Uuid,
    token: LeaseToken,
    now: DateTime<Utc>,
    status: JobStatus,
    release: Option<(Uuid, bool)>,
) -> Result<WriteOutcome, StoreError> {
    let ended = sqlx::query(sql::FINISH)
        .bind(id)
        .bind(token.0)
        .bind(now)
        .bind(status.name())
        .bind(release.map(|(release, _)| release))
        .bind(release.is_some_and(|(_, reused)| reused))
        .execute(&mut **tx)
        .await
        .map_err(failed)?;
    if ended.rows_affected() == 0 {
        return Ok(WriteOutcome::LeaseLost);
    }
    erase_key(tx, id).await?;
    Ok(WriteOutcome::Done)
}

pub(super) async fn erase_key(tx: &mut Tx, id: Uuid) -> Result<(), StoreError> {
    sqlx::query(sql::ERASE_JOB_KEY).bind(id).execute(&mut **tx).await.map_err(failed)?;
    Ok(())
}

/// Moves a job that no worker has, because its lease expired (after so many earlier ones) or its deadline passed. A key goes with
/// every end.
async fn set_reaped(
    tx: &mut Tx,
    id: Uuid,
    status: JobStatus,
    now: DateTime<Utc>,
    lapsed: Option<i64>,
) -> Result<(), StoreError> {
    let lapses = lapsed.filter(|_| !status.is_terminal()).map(|earlier| u32::try_from(earlier + 1).unwrap_or(u32::MAX));
    let not_before = lapses.map(|lapses| now + back_off(lapses));
    sqlx::query(sql::REAP)
        .bind(id)
        .bind(status.name())
        .bind(status.is_terminal().then_some(now))
        .bind(i64::from(lapsed.is_some()))
        .bind(not_before)
        .execute(&mut **tx)
        .await
        .map_err(failed)?;
    if status.is_terminal() { erase_key(tx, id).await } else { Ok(()) }
}

async fn set_problem(tx: &mut Tx, id: Uuid, problem: &serde_json::Value) -> Result<(), StoreError> {
    sqlx::query(sql::SET_PROBLEM).bind(id).bind(Json(problem)).execute(&mut **tx).await.map_err(failed)?;
    Ok(())
}

fn document(problem: &Problem, job: Uuid) -> serde_json::Value {
    problem.to_json(&instance(job))
}
