//! The queue of jobs.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::control::Progress;
use crate::ports::{
    AuditEntry, CancelOutcome, ClaimTerms, ClaimedJob, Cursor, Heartbeat, JobEnd, JobFilter, JobQueue, JobRecord,
    JobStatus, LeaseToken, ListedJob, NewJob, Page, ReapProblems, Reaped, StoreError, UnknownStatusError, WriteOutcome,
    back_off, instance,
};
use crate::problem::Problem;
use crate::store::rows::{ExpiredRow, JobRow, ListedJobRow, alive, before, number, records};
use crate::store::shared::Notification;
use crate::store::sql::{queue as sql, releases};

/// How a running job ends.
pub(in crate::store) struct RunEnd {
    pub(in crate::store) status: JobStatus,
    pub(in crate::store) release: Option<Uuid>,
    /// Whether the release is another job's.
    pub(in crate::store) is_reused: bool,
}

both_stores! {
    #[async_trait]
    impl JobQueue for Backend {
        async fn enqueue(&self, job: NewJob) -> Result<JobRecord, StoreError> {
            run_transaction("enqueue", || self.try_enqueue(&job)).await
        }

        async fn claim(
            &self,
            token: LeaseToken,
            terms: ClaimTerms,
            now: DateTime<Utc>,
        ) -> Result<Option<ClaimedJob>, StoreError> {
            // an idle worker takes no lock
            let is_any_queued: bool =
                run_sql!(query_scalar.fetch_one, self.reader(), sql::IS_ANY_QUEUED).map_err(failed)?;
            if !is_any_queued {
                return Ok(None);
            }
            run_transaction("claim", || self.try_claim(token, terms, now)).await
        }

        async fn heartbeat(
            &self,
            id: Uuid,
            token: LeaseToken,
            progress: Option<Progress>,
            lease: Duration,
            now: DateTime<Utc>,
        ) -> Result<Heartbeat, StoreError> {
            self.extend_lease(id, token, progress, lease, now).await
        }

        async fn lease(&self, id: Uuid, token: LeaseToken, now: DateTime<Utc>) -> Result<Heartbeat, StoreError> {
            let mut connection = self.heartbeat_pool().acquire().await.map_err(failed)?;
            let now = self.lease_time(&mut connection, now).await.map_err(failed)?;
            let found =
                run_sql!(query_scalar.fetch_optional, &mut *connection, sql::LEASE, id, token.0, now).map_err(failed)?;
            Ok(alive(found))
        }

        async fn finish(
            &self,
            id: Uuid,
            token: LeaseToken,
            end: JobEnd,
            now: DateTime<Utc>,
        ) -> Result<WriteOutcome, StoreError> {
            run_transaction("finish", || self.try_finish(id, token, &end, now)).await
        }

        async fn succeed_with_reused(
            &self,
            id: Uuid,
            token: LeaseToken,
            release: Uuid,
            now: DateTime<Utc>,
        ) -> Result<WriteOutcome, StoreError> {
            run_transaction("succeed_with_reused", || self.try_succeed_with_reused(id, token, release, now)).await
        }

        async fn release_lease(
            &self,
            id: Uuid,
            token: LeaseToken,
            now: DateTime<Utc>,
        ) -> Result<WriteOutcome, StoreError> {
            run_transaction("release_lease", || self.try_release_lease(id, token, now)).await
        }

        async fn request_cancel(
            &self,
            tenant: &str,
            id: Uuid,
            now: DateTime<Utc>,
            audit_entry: &AuditEntry,
        ) -> Result<CancelOutcome, StoreError> {
            run_transaction("request_cancel", || self.try_request_cancel(tenant, id, now, audit_entry)).await
        }

        async fn reap(
            &self,
            now: DateTime<Utc>,
            max_attempts: u32,
            problems: &ReapProblems,
        ) -> Result<Reaped, StoreError> {
            run_transaction("reap", || self.try_reap(now, max_attempts, problems)).await
        }

        async fn expire_all_leases(&self, now: DateTime<Utc>) -> Result<u64, StoreError> {
            self.expire_leases(now).await
        }

        async fn queued_jobs(&self, tenant: &str) -> Result<u64, StoreError> {
            let queued: i64 =
                run_sql!(query_scalar.fetch_one, self.reader(), sql::QUEUED_JOBS, tenant).map_err(failed)?;
            number(queued)
        }

        async fn job(&self, tenant: &str, id: Uuid) -> Result<Option<JobRecord>, StoreError> {
            let mut connection = self.reader().acquire().await.map_err(failed)?;
            read_job(&mut connection, tenant, id).await
        }

        async fn jobs(
            &self,
            tenant: &str,
            filter: &JobFilter,
            cursor: Option<Cursor>,
            limit: u32,
        ) -> Result<Page<ListedJob>, StoreError> {
            let rows: Vec<ListedJobRow> = run_sql!(
                query_as.fetch_all, self.reader(), sql::JOBS, before(cursor), filter.status.map(JobStatus::name),
                filter.dataset, &filter.series, &filter.method, i64::from(limit) + 1, tenant
            ).map_err(failed)?;
            Ok(Page::new(records(rows)?, limit, |job: &ListedJob| job.id))
        }
    }

    impl Backend {
        async fn try_enqueue(&self, job: &NewJob) -> Result<JobRecord, TransactionError> {
            let mut tx = self.begin().await?;
            self.check_master_key(&mut tx).await?;
            // a commit under this key either sees this job wait, or this query sees its release
            lock_reuse_key(&mut tx, &job.reuse_key).await?;
            let existing: Option<Uuid> = run_sql!(
                query_scalar.fetch_optional, &mut *tx, sql::STANDING_RELEASE, &job.tenant, job.reuse_key.as_slice()
            )?;
            let status = if existing.is_some() { JobStatus::Succeeded } else { JobStatus::Queued };
            let inserted = run_sql!(
                query.execute, &mut *tx, sql::INSERT_JOB, job.id, &job.tenant, job.dataset, &job.series, &job.method,
                job.reuse_key.as_slice(), i64::from(job.priority), status.name(), job.submitted_at,
                existing.map(|_| job.submitted_at), job.deadline_at, existing, existing.is_some()
            )?;
            if inserted.rows_affected() == 0 {
                return Err(StoreError::NotFound.into());
            }
            run_sql!(
                query.execute, &mut *tx, sql::INSERT_JOB_DETAILS, job.id, Json(&job.specification), &job.reason,
                &job.audit_entry.actor, &job.policy
            )?;
            if existing.is_none() {
                run_sql!(query.execute, &mut *tx, sql::INSERT_JOB_KEY, job.id, &job.wrapped_key)?;
                notify(&mut tx, Notification::Queued).await?;
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
            lock_claims(&mut tx).await?;
            let now = self.lease_time(&mut tx, now).await?;
            let claimed: Option<(Uuid, String)> = run_sql!(
                query_as.fetch_optional, &mut *tx, CLAIM, token.0, now + terms.lease, now,
                terms.max_running_per_tenant.map_or(i64::MAX, i64::from),
                terms.max_running_per_engine.map_or(i64::MAX, i64::from)
            )?;
            let Some((id, tenant)) = claimed else { return Ok(None) };
            let job = read_job(&mut tx, &tenant, id).await?.ok_or(StoreError::NotFound)?;
            // a missing key is for the worker to fail the job on: failing the claim would block the queue
            let wrapped_key: Option<Vec<u8>> =
                run_sql!(query_scalar.fetch_optional, &mut *tx, sql::JOB_KEY, id)?;
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
            let ended = RunEnd { status: end.status(), release: None, is_reused: false };
            if end_running(&mut tx, id, token, now, ended).await? == WriteOutcome::LeaseLost {
                return Ok(WriteOutcome::LeaseLost);
            }
            if let Some(problem) = end.problem() {
                set_problem(&mut tx, id, problem).await?;
            }
            // an equal job may wait for this end
            notify(&mut tx, Notification::Queued).await?;
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
                run_sql!(query_scalar.fetch_optional, &mut *tx, releases::RELEASE_EXISTS, release)?;
            if found.is_none() {
                return Err(StoreError::NotFound.into());
            }
            let now = self.lease_time(&mut tx, now).await?;
            let ended = RunEnd { status: JobStatus::Succeeded, release: Some(release), is_reused: true };
            let written = end_running(&mut tx, id, token, now, ended).await?;
            notify(&mut tx, Notification::Queued).await?;
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
                run_sql!(query_scalar.fetch_optional, &mut *tx, sql::RELEASE_LEASE, id, token.0, now)?;
            let Some(cancelled) = released else { return Ok(WriteOutcome::LeaseLost) };
            if cancelled {
                erase_key(&mut tx, id).await?;
            }
            notify(&mut tx, Notification::Queued).await?;
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
                run_sql!(query_scalar.fetch_optional, &mut *tx, STATUS, id, tenant)?;
            let Some(status) = status else { return Ok(CancelOutcome::NotFound) };
            let outcome = match status.parse().map_err(|error: UnknownStatusError| StoreError::corrupt(error))? {
                JobStatus::Queued => {
                    run_sql!(query.execute, &mut *tx, sql::CANCEL_QUEUED, id, now)?;
                    erase_key(&mut tx, id).await?;
                    notify(&mut tx, Notification::Changed).await?;
                    CancelOutcome::CancelledAtOnce
                }
                JobStatus::Running => {
                    run_sql!(query.execute, &mut *tx, sql::CANCEL_RUNNING, id)?;
                    notify(&mut tx, Notification::Cancel).await?;
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
            let expired: Vec<ExpiredRow> = run_sql!(query_as.fetch_all, &mut *tx, EXPIRED, now)?;
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
            reaped.overdue = run_sql!(query_scalar.fetch_all, &mut *tx, OVERDUE, now)?;
            for &id in &reaped.overdue {
                set_reaped(&mut tx, id, JobStatus::Failed, now, None).await?;
                set_problem(&mut tx, id, &document(&problems.deadline, id)).await?;
            }
            if !reaped.is_empty() {
                notify(&mut tx, Notification::Queued).await?;
            }
            tx.commit().await?;
            Ok(reaped)
        }
    }

    async fn read_job(connection: &mut Connection, tenant: &str, id: Uuid) -> Result<Option<JobRecord>, StoreError> {
        let row: Option<JobRow> =
            run_sql!(query_as.fetch_optional, connection, sql::JOB, id, tenant).map_err(failed)?;
        row.map(JobRecord::try_from).transpose()
    }

    /// Ends a running job, and erases its key.
    pub(in crate::store) async fn end_running(
        connection: &mut Connection,
        id: Uuid,
        token: LeaseToken,
        now: DateTime<Utc>,
        end: RunEnd,
    ) -> Result<WriteOutcome, sqlx::Error> {
        let ended = run_sql!(
            query.execute, &mut *connection, sql::FINISH, id, token.0, now, end.status.name(), end.release,
            end.is_reused
        )?;
        if ended.rows_affected() == 0 {
            return Ok(WriteOutcome::LeaseLost);
        }
        erase_key(connection, id).await?;
        Ok(WriteOutcome::Done)
    }

    pub(in crate::store) async fn erase_key(connection: &mut Connection, id: Uuid) -> Result<(), sqlx::Error> {
        run_sql!(query.execute, connection, sql::ERASE_JOB_KEY, id)?;
        Ok(())
    }

    /// Moves a job without a worker: its lease expired, after `lapsed` earlier ones, or its deadline passed. Every end
    /// erases the key.
    async fn set_reaped(
        connection: &mut Connection,
        id: Uuid,
        status: JobStatus,
        now: DateTime<Utc>,
        lapsed: Option<i64>,
    ) -> Result<(), sqlx::Error> {
        let lapses =
            lapsed.filter(|_| !status.is_terminal()).map(|earlier| u32::try_from(earlier + 1).unwrap_or(u32::MAX));
        let not_before = lapses.map(|lapses| now + back_off(lapses));
        run_sql!(
            query.execute, &mut *connection, sql::REAP, id, status.name(), status.is_terminal().then_some(now),
            i64::from(lapsed.is_some()), not_before
        )?;
        if status.is_terminal() { erase_key(connection, id).await } else { Ok(()) }
    }

    async fn set_problem(
        connection: &mut Connection,
        id: Uuid,
        problem: &serde_json::Value,
    ) -> Result<(), sqlx::Error> {
        run_sql!(query.execute, connection, sql::SET_PROBLEM, id, Json(problem))?;
        Ok(())
    }

    fn document(problem: &Problem, job: Uuid) -> serde_json::Value {
        problem.to_json(&instance(job))
    }
}
