//! Releases, their parts, and the one transaction that makes a release.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::document::JsonText;
use super::error::{TransactionError, failed};
use super::listen::{Notification, tell};
use super::people::lock_series;
use super::pool::retried;
use super::queue::{end_running, erase_key, lock_reuse_key};
use super::{CHUNKS_PER_DELETE, PostgresStore};
use crate::ports::{
    CommitOutcome, Cursor, JobStatus, Page, PartChunkRecord, ReleaseCommit, ReleaseFilter, ReleaseRecord, ReleaseStore,
    StoreError, SweepCounts, WriteOutcome,
};
use crate::store::rows::{PartChunkRow, ReleaseRow, before, ciphertext, first_id_at, number, stored};
use crate::store::sql::{datasets, disclosures, people, queue, releases as sql};
use crate::vault::Ciphertext;

/// The shared text, holding the job's row: an attempt that ends meanwhile gets no more parts.
const PUT_PART_CHUNK: &str = "\
-- put_part_chunk
INSERT INTO part_chunks (job_id, attempt, file, chunk_no, first_row, row_count, payload)
SELECT id, attempt, $3, $4, $5, $6, $7 FROM jobs WHERE id = $1 AND attempt = $2 AND status = 'running' FOR SHARE";

const LOCK_JOB: &str = "\
-- lock_job
SELECT id FROM jobs WHERE id = $1 FOR UPDATE";

/// A row to lock, also for the first commit of a content. It goes again when the commit does not come through.
pub(super) const BEGIN_LEDGER: &str = "\
-- begin_ledger
INSERT INTO ledgers (tenant, series, content_hash, version) VALUES ($1, $2, $3, 0)
ON CONFLICT (tenant, series, content_hash) DO NOTHING";

pub(super) const LOCK_LEDGER: &str = "\
-- lock_ledger
SELECT version FROM ledgers WHERE tenant = $1 AND series = $2 AND content_hash = $3 FOR UPDATE";

const WAITING_ALIKE: &str = "\
-- waiting_alike
SELECT id FROM jobs WHERE status = 'queued' AND tenant = $1 AND reuse_key = $2 ORDER BY id FOR UPDATE";

#[async_trait]
impl ReleaseStore for PostgresStore {
    async fn put_part_chunk(&self, job: Uuid, attempt: u32, chunk: &PartChunkRecord) -> Result<(), StoreError> {
        let put = retried("put_part_chunk", || async {
            let put = sqlx::query(PUT_PART_CHUNK)
                .bind(job)
                .bind(i64::from(attempt))
                .bind(&chunk.file)
                .bind(i64::from(chunk.number))
                .bind(stored(chunk.first_row)?)
                .bind(i64::from(chunk.rows))
                .bind(&chunk.payload)
                .execute(&self.pool)
                .await?;
            Ok(put.rows_affected())
        });
        if put.await? == 0 { Err(StoreError::Conflict) } else { Ok(()) }
    }

    async fn part_chunk(
        &self,
        tenant: &str,
        job: Uuid,
        attempt: u32,
        file: &str,
        number: u32,
    ) -> Result<Option<PartChunkRecord>, StoreError> {
        self.chunk(sql::PART_CHUNK, tenant, job, attempt, file, i64::from(number)).await
    }

    async fn part_chunk_at_row(
        &self,
        tenant: &str,
        job: Uuid,
        attempt: u32,
        file: &str,
        row: u64,
    ) -> Result<Option<PartChunkRecord>, StoreError> {
        let chunk = self.chunk(sql::PART_CHUNK_AT_ROW, tenant, job, attempt, file, stored(row)?).await?;
        Ok(chunk.filter(|chunk| row - chunk.first_row < u64::from(chunk.rows)))
    }

    async fn drop_attempt(&self, job: Uuid, attempt: u32) -> Result<(), StoreError> {
        let some = || async {
            let mut tx = self.begin().await?;
            // a worker that lost its connection in the middle of a commit does not know how that ended, and the server may
            // still be at it: it holds the job's row until a release, if there is one, can be seen
            sqlx::query(LOCK_JOB).bind(job).fetch_optional(&mut *tx).await?;
            let deleted = sqlx::query(sql::DELETE_SOME_PART_CHUNKS)
                .bind(job)
                .bind(i64::from(attempt))
                .bind(CHUNKS_PER_DELETE)
                .execute(&mut *tx)
                .await?;
            tx.commit().await?;
            Ok(deleted.rows_affected())
        };
        while retried("drop_attempt", some).await? > 0 {}
        Ok(())
    }

    async fn commit(&self, commit: ReleaseCommit) -> Result<CommitOutcome, StoreError> {
        retried("commit", || self.try_commit(&commit)).await
    }

    async fn release(&self, tenant: &str, id: Uuid) -> Result<Option<ReleaseRecord>, StoreError> {
        let row: Option<ReleaseRow> =
            sqlx::query_as(sql::RELEASE).bind(id).bind(tenant).fetch_optional(&self.pool).await.map_err(failed)?;
        row.map(ReleaseRecord::try_from).transpose()
    }

    async fn internal_report(&self, tenant: &str, release: Uuid) -> Result<Option<Ciphertext>, StoreError> {
        let report = sqlx::query_scalar(sql::INTERNAL_REPORT).bind(release).bind(tenant);
        Ok(ciphertext(report.fetch_optional(&self.pool).await.map_err(failed)?))
    }

    async fn releases(
        &self,
        tenant: &str,
        filter: &ReleaseFilter,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<ReleaseRecord>, StoreError> {
        let rows: Vec<ReleaseRow> = sqlx::query_as(sql::RELEASES)
            .bind(before(cursor))
            .bind(&filter.series)
            .bind(filter.dataset)
            .bind(&filter.method)
            .bind(&filter.status)
            .bind(i64::from(limit) + 1)
            .bind(tenant)
            .fetch_all(&self.pool)
            .await
            .map_err(failed)?;
        let records = rows.into_iter().map(ReleaseRecord::try_from).collect::<Result<_, _>>()?;
        Ok(Page::new(records, limit, |record| record.id))
    }

    async fn sweep(&self, now: DateTime<Utc>, grace: Duration) -> Result<SweepCounts, StoreError> {
        let mut swept = SweepCounts::default();
        let attempts: Vec<(Uuid, i64)> =
            sqlx::query_as(sql::UNREACHABLE_ATTEMPTS).fetch_all(&self.pool).await.map_err(failed)?;
        for (job, attempt) in attempts {
            self.drop_attempt(job, number(attempt)?).await?;
            swept.attempts += 1;
        }
        let uploads: Vec<Uuid> = sqlx::query_scalar(datasets::UNREACHABLE_UPLOADS)
            .bind(first_id_at(now - grace))
            .fetch_all(&self.pool)
            .await
            .map_err(failed)?;
        for upload in uploads {
            self.delete_chunks(upload).await?;
            swept.uploads += 1;
        }
        Ok(swept)
    }
}

impl PostgresStore {
    async fn chunk(
        &self,
        sql: &'static str,
        tenant: &str,
        job: Uuid,
        attempt: u32,
        file: &str,
        at: i64,
    ) -> Result<Option<PartChunkRecord>, StoreError> {
        let row: Option<PartChunkRow> = sqlx::query_as(sql)
            .bind(job)
            .bind(i64::from(attempt))
            .bind(file)
            .bind(at)
            .bind(tenant)
            .fetch_optional(&self.pool)
            .await
            .map_err(failed)?;
        row.map(PartChunkRecord::try_from).transpose()
    }

    /// Steps:
    /// 1. lock the reuse key, the ledger of the content, that of the series and the job, in this order. From here on no other commit
    ///    of this series, no new job of this key and no other end of this job can come between;
    /// 2. look whether the job is still the caller's, by the time after the locks; whether there is a release already; whether
    ///    the ledger is the one that was judged by;
    /// 3. write. What was looked at in 2 is what the locks of 1 keep from changing, so READ COMMITTED decides as SERIALIZABLE
    ///    would.
    ///
    /// An outcome other than a release leaves the transaction unfinished, which rolls it back.
    async fn try_commit(&self, commit: &ReleaseCommit) -> Result<CommitOutcome, TransactionError> {
        let release = &commit.release;
        if commit.job != release.job {
            return Ok(CommitOutcome::LeaseLost);
        }
        let mut tx = self.begin().await?;
        lock_reuse_key(&mut tx, &release.reuse_key).await?;
        let version = lock_ledger(&mut tx, release).await?;
        let series = lock_series(&mut tx, &release.tenant, &release.series).await?;
        sqlx::query(LOCK_JOB).bind(commit.job).fetch_optional(&mut *tx).await?;

        let now = self.lease_time(&mut tx, commit.now).await?;
        if !holds_lease(&mut tx, commit, now).await? {
            return Ok(CommitOutcome::LeaseLost);
        }
        let protection: Option<Uuid> = sqlx::query_scalar(queue::STANDING_RELEASE)
            .bind(&release.tenant)
            .bind(release.reuse_key.as_slice())
            .fetch_optional(&mut *tx)
            .await?;
        if let Some(protection) = protection {
            return Ok(CommitOutcome::AlreadyReleased(protection));
        }
        let moved = match commit.series_version {
            Some(judged) => series != judged,
            None => version != commit.ledger_version,
        };
        if moved {
            return Ok(CommitOutcome::LedgerMoved);
        }

        insert_release(&mut tx, release).await?;
        if let Some(report) = &commit.internal_report {
            let insert = sqlx::query(sql::INSERT_INTERNAL_REPORT).bind(release.id).bind(report.as_bytes());
            insert.execute(&mut *tx).await?;
        }
        disclose(&mut tx, commit).await?;
        let end = Some((release.id, false));
        match end_running(&mut tx, commit.job, commit.token, now, JobStatus::Succeeded, end).await? {
            WriteOutcome::Done => {}
            WriteOutcome::LeaseLost => return Ok(CommitOutcome::LeaseLost),
        }
        answer_waiting(&mut tx, commit).await?;
        tell(&mut tx, Notification::Changed).await?;
        tx.commit().await?;
        Ok(CommitOutcome::Committed)
    }
}

pub(super) async fn lock_ledger(connection: &mut PgConnection, release: &ReleaseRecord) -> Result<i64, sqlx::Error> {
    sqlx::query(BEGIN_LEDGER)
        .bind(&release.tenant)
        .bind(&release.series)
        .bind(release.content_hash.as_slice())
        .execute(&mut *connection)
        .await?;
    sqlx::query_scalar(LOCK_LEDGER)
        .bind(&release.tenant)
        .bind(&release.series)
        .bind(release.content_hash.as_slice())
        .fetch_one(connection)
        .await
}

async fn holds_lease(
    connection: &mut PgConnection,
    commit: &ReleaseCommit,
    now: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let found: Option<i64> = sqlx::query_scalar(sql::LEASE_OF_ATTEMPT)
        .bind(commit.job)
        .bind(commit.token.0)
        .bind(now)
        .bind(i64::from(commit.release.attempt))
        .fetch_optional(connection)
        .await?;
    Ok(found.is_some())
}

async fn insert_release(connection: &mut PgConnection, release: &ReleaseRecord) -> Result<(), sqlx::Error> {
    sqlx::query(sql::INSERT_RELEASE)
        .bind(release.id)
        .bind(release.job)
        .bind(i64::from(release.attempt))
        .bind(&release.tenant)
        .bind(&release.series)
        .bind(release.dataset)
        .bind(release.content_hash.as_slice())
        .bind(release.reuse_key.as_slice())
        .bind(&release.method)
        .bind(release.created_at)
        .bind(release.status.as_str())
        .execute(&mut *connection)
        .await?;
    sqlx::query(sql::INSERT_RELEASE_DOCUMENTS)
        .bind(release.id)
        .bind(JsonText(&release.manifest))
        .bind(JsonText(&release.report))
        .execute(connection)
        .await?;
    Ok(())
}

/// Enters what the release discloses and promises, and lets every other judgement of the content be out of date.
async fn disclose(connection: &mut PgConnection, commit: &ReleaseCommit) -> Result<(), sqlx::Error> {
    let release = &commit.release;
    for disclosure in &commit.disclosures {
        sqlx::query(disclosures::INSERT_DISCLOSURE)
            .bind(disclosure.id)
            .bind(release.id)
            .bind(&release.tenant)
            .bind(&release.series)
            .bind(release.content_hash.as_slice())
            .bind(&disclosure.table)
            .bind(JsonText(&disclosure.body))
            .bind(commit.now)
            .execute(&mut *connection)
            .await?;
    }
    for (number, body) in (0_i64..).zip(&commit.rules) {
        sqlx::query(disclosures::INSERT_STANDING_RULE)
            .bind(release.id)
            .bind(number)
            .bind(&release.tenant)
            .bind(&release.series)
            .bind(release.content_hash.as_slice())
            .bind(JsonText(body))
            .execute(&mut *connection)
            .await?;
    }
    sqlx::query(disclosures::BUMP_LEDGER)
        .bind(&release.tenant)
        .bind(&release.series)
        .bind(release.content_hash.as_slice())
        .execute(&mut *connection)
        .await?;
    let series = sqlx::query(people::BUMP_SERIES).bind(&release.tenant).bind(&release.series);
    series.execute(connection).await?;
    Ok(())
}

/// Gives the release to the jobs that waited for one like it.
async fn answer_waiting(connection: &mut PgConnection, commit: &ReleaseCommit) -> Result<(), sqlx::Error> {
    let waiting: Vec<Uuid> = sqlx::query_scalar(WAITING_ALIKE)
        .bind(&commit.release.tenant)
        .bind(commit.release.reuse_key.as_slice())
        .fetch_all(&mut *connection)
        .await?;
    for job in waiting {
        sqlx::query(queue::ANSWER_WAITING)
            .bind(job)
            .bind(commit.now)
            .bind(commit.release.id)
            .execute(&mut *connection)
            .await?;
        erase_key(connection, job).await?;
    }
    Ok(())
}
