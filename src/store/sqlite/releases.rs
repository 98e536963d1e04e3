//! Releases, their parts, and the one transaction that makes a release.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::types::Json;
use uuid::Uuid;

use super::error::failed;
use super::queue::{end_running, erase_key};
use super::tx::Tx;
use super::{DELETED_AT_ONCE, SqliteStore};
use crate::ports::{
    CommitOutcome, Cursor, JobStatus, Page, PartChunkRecord, ReleaseCommit, ReleaseFilter, ReleaseRecord, ReleaseStore,
    StoreError, SweepCounts, WriteOutcome,
};
use crate::store::rows::{PartChunkRow, ReleaseRow, before, ciphertext, first_id_at, number, stored};
use crate::store::sql::{datasets, disclosures, people, queue, releases as sql};
use crate::vault::Ciphertext;

#[async_trait]
impl ReleaseStore for SqliteStore {
    async fn put_part_chunk(&self, job: Uuid, attempt: u32, chunk: &PartChunkRecord) -> Result<(), StoreError> {
        let mut tx = self.begin("put_part_chunk").await?;
        let put = sqlx::query(sql::PUT_PART_CHUNK)
            .bind(job)
            .bind(i64::from(attempt))
            .bind(&chunk.file)
            .bind(i64::from(chunk.number))
            .bind(stored(chunk.first_row)?)
            .bind(i64::from(chunk.rows))
            .bind(&chunk.payload)
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        if put.rows_affected() == 0 {
            return Err(StoreError::Conflict);
        }
        tx.commit().await.map_err(failed)
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
        loop {
            let mut tx = self.begin("drop_attempt").await?;
            let deleted = sqlx::query(sql::DELETE_SOME_PART_CHUNKS)
                .bind(job)
                .bind(i64::from(attempt))
                .bind(DELETED_AT_ONCE)
                .execute(&mut *tx)
                .await
                .map_err(failed)?;
            tx.commit().await.map_err(failed)?;
            if deleted.rows_affected() == 0 {
                return Ok(());
            }
        }
    }

    async fn commit(&self, commit: ReleaseCommit) -> Result<CommitOutcome, StoreError> {
        let release = &commit.release;
        // an outcome other than a release leaves the transaction unfinished, which rolls it back
        let mut tx = self.begin("commit").await?;
        if commit.job != release.job || !holds_lease(&mut tx, &commit).await? {
            return Ok(CommitOutcome::LeaseLost);
        }
        let protection: Option<Uuid> = sqlx::query_scalar(queue::STANDING_RELEASE)
            .bind(&release.tenant)
            .bind(release.reuse_key.as_slice())
            .fetch_optional(&mut *tx)
            .await
            .map_err(failed)?;
        if let Some(protection) = protection {
            return Ok(CommitOutcome::AlreadyReleased(protection));
        }
        let version: Option<i64> = sqlx::query_scalar(disclosures::LEDGER_VERSION)
            .bind(&release.tenant)
            .bind(&release.series)
            .bind(release.content_hash.as_slice())
            .fetch_optional(&mut *tx)
            .await
            .map_err(failed)?;
        let series = sqlx::query_scalar(people::SERIES_VERSION).bind(&release.tenant).bind(&release.series);
        let series: Option<i64> = series.fetch_optional(&mut *tx).await.map_err(failed)?;
        let moved = match commit.series_version {
            Some(judged) => series.unwrap_or(0) != judged,
            None => version.unwrap_or(0) != commit.ledger_version,
        };
        if moved {
            return Ok(CommitOutcome::LedgerMoved);
        }
        insert_release(&mut tx, release).await?;
        if let Some(report) = &commit.internal_report {
            let insert = sqlx::query(sql::INSERT_INTERNAL_REPORT).bind(release.id).bind(report.as_bytes());
            insert.execute(&mut *tx).await.map_err(failed)?;
        }
        disclose(&mut tx, &commit).await?;
        let end = Some((release.id, false));
        match end_running(&mut tx, commit.job, commit.token, commit.now, JobStatus::Succeeded, end).await? {
            WriteOutcome::Done => {}
            WriteOutcome::LeaseLost => return Ok(CommitOutcome::LeaseLost),
        }
        answer_waiting(&mut tx, &commit).await?;
        tx.commit().await.map_err(failed)?;
        Ok(CommitOutcome::Committed)
    }

    async fn release(&self, tenant: &str, id: Uuid) -> Result<Option<ReleaseRecord>, StoreError> {
        let row: Option<ReleaseRow> =
            sqlx::query_as(sql::RELEASE).bind(id).bind(tenant).fetch_optional(&self.reader).await.map_err(failed)?;
        row.map(ReleaseRecord::try_from).transpose()
    }

    async fn internal_report(&self, tenant: &str, release: Uuid) -> Result<Option<Ciphertext>, StoreError> {
        let report = sqlx::query_scalar(sql::INTERNAL_REPORT).bind(release).bind(tenant);
        Ok(ciphertext(report.fetch_optional(&self.reader).await.map_err(failed)?))
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
            .fetch_all(&self.reader)
            .await
            .map_err(failed)?;
        let records = rows.into_iter().map(ReleaseRecord::try_from).collect::<Result<_, _>>()?;
        Ok(Page::new(records, limit, |record| record.id))
    }

    async fn sweep(&self, now: DateTime<Utc>, grace: Duration) -> Result<SweepCounts, StoreError> {
        let mut swept = SweepCounts::default();
        let attempts: Vec<(Uuid, i64)> =
            sqlx::query_as(sql::UNREACHABLE_ATTEMPTS).fetch_all(&self.reader).await.map_err(failed)?;
        for (job, attempt) in attempts {
            self.drop_attempt(job, number(attempt)?).await?;
            swept.attempts += 1;
        }
        let uploads: Vec<Uuid> = sqlx::query_scalar(datasets::UNREACHABLE_UPLOADS)
            .bind(first_id_at(now - grace))
            .fetch_all(&self.reader)
            .await
            .map_err(failed)?;
        for upload in uploads {
            self.delete_chunks(upload).await?;
            swept.uploads += 1;
        }
        self.empty_journal().await?;
        Ok(swept)
    }
}

impl SqliteStore {
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
            .fetch_optional(&self.reader)
            .await
            .map_err(failed)?;
        row.map(PartChunkRecord::try_from).transpose()
    }
}

async fn holds_lease(tx: &mut Tx, commit: &ReleaseCommit) -> Result<bool, StoreError> {
    let found: Option<i64> = sqlx::query_scalar(sql::LEASE_OF_ATTEMPT)
        .bind(commit.job)
        .bind(commit.token.0)
        .bind(commit.now)
        .bind(i64::from(commit.release.attempt))
        .fetch_optional(&mut **tx)
        .await
        .map_err(failed)?;
    Ok(found.is_some())
}

async fn insert_release(tx: &mut Tx, release: &ReleaseRecord) -> Result<(), StoreError> {
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
        .execute(&mut **tx)
        .await
        .map_err(failed)?;
    sqlx::query(sql::INSERT_RELEASE_DOCUMENTS)
        .bind(release.id)
        .bind(Json(&release.manifest))
        .bind(Json(&release.report))
        .execute(&mut **tx)
        .await
        .map_err(failed)?;
    Ok(())
}

/// Enters what the release discloses and promises, and lets every other judgement of the content be out of date.
async fn disclose(tx: &mut Tx, commit: &ReleaseCommit) -> Result<(), StoreError> {
    let release = &commit.release;
    for disclosure in &commit.disclosures {
        sqlx::query(disclosures::INSERT_DISCLOSURE)
            .bind(disclosure.id)
            .bind(release.id)
            .bind(&release.tenant)
            .bind(&release.series)
            .bind(release.content_hash.as_slice())
            .bind(&disclosure.table)
            .bind(Json(&disclosure.body))
            .bind(commit.now)
            .execute(&mut **tx)
            .await
            .map_err(failed)?;
    }
    for (number, body) in (0_i64..).zip(&commit.rules) {
        sqlx::query(disclosures::INSERT_STANDING_RULE)
            .bind(release.id)
            .bind(number)
            .bind(&release.tenant)
            .bind(&release.series)
            .bind(release.content_hash.as_slice())
            .bind(Json(body))
            .execute(&mut **tx)
            .await
            .map_err(failed)?;
    }
    sqlx::query(disclosures::BUMP_LEDGER)
        .bind(&release.tenant)
        .bind(&release.series)
        .bind(release.content_hash.as_slice())
        .execute(&mut **tx)
        .await
        .map_err(failed)?;
    let series = sqlx::query(people::BUMP_SERIES).bind(&release.tenant).bind(&release.series);
    series.execute(&mut **tx).await.map_err(failed)?;
    Ok(())
}

/// Gives the release to the jobs that waited for one like it.
async fn answer_waiting(tx: &mut Tx, commit: &ReleaseCommit) -> Result<(), StoreError> {
    let waiting: Vec<Uuid> = sqlx::query_scalar(queue::WAITING_ALIKE)
        .bind(&commit.release.tenant)
        .bind(commit.release.reuse_key.as_slice())
        .fetch_all(&mut **tx)
        .await
        .map_err(failed)?;
    for job in waiting {
        sqlx::query(queue::ANSWER_WAITING)
            .bind(job)
            .bind(commit.now)
            .bind(commit.release.id)
            .execute(&mut **tx)
            .await
            .map_err(failed)?;
        erase_key(tx, job).await?;
    }
    Ok(())
}
