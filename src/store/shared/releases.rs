//! Releases, their parts, and the transaction that commits a release.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::{
    CommitOutcome, Cursor, JobStatus, Page, PartChunkRecord, ReleaseCommit, ReleaseFilter, ReleaseRecord, ReleaseStore,
    StoreError, SweepCounts, WriteOutcome,
};
use crate::store::rows::{PartChunkRow, ReleaseRow, before, ciphertext, first_id_at, number, stored};
use crate::store::shared::Notification;
use crate::store::sql::{datasets, disclosures, people, queue, releases as sql};
use crate::vault::Ciphertext;

both_stores! {
    #[async_trait]
    impl ReleaseStore for Backend {
        async fn put_part_chunk(&self, job: Uuid, attempt: u32, chunk: &PartChunkRecord) -> Result<(), StoreError> {
            self.write_part_chunk(job, attempt, chunk).await
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
                // a commit whose worker lost its connection may still run: it holds the job's row until it ends
                lock_job(&mut tx, job).await?;
                let deleted = sqlx::query(sql::DELETE_SOME_PART_CHUNKS)
                    .bind(job)
                    .bind(i64::from(attempt))
                    .bind(CHUNKS_PER_DELETE)
                    .execute(&mut *tx)
                    .await?;
                tx.commit().await?;
                Ok(deleted.rows_affected())
            };
            while run_transaction("drop_attempt", some).await? > 0 {}
            Ok(())
        }

        async fn commit(&self, commit: ReleaseCommit) -> Result<CommitOutcome, StoreError> {
            run_transaction("commit", || self.try_commit(&commit)).await
        }

        async fn release(&self, tenant: &str, id: Uuid) -> Result<Option<ReleaseRecord>, StoreError> {
            let row: Option<ReleaseRow> = sqlx::query_as(sql::RELEASE)
                .bind(id)
                .bind(tenant)
                .fetch_optional(self.reader())
                .await
                .map_err(failed)?;
            row.map(ReleaseRecord::try_from).transpose()
        }

        async fn internal_report(&self, tenant: &str, release: Uuid) -> Result<Option<Ciphertext>, StoreError> {
            let report = sqlx::query_scalar(sql::INTERNAL_REPORT).bind(release).bind(tenant);
            Ok(ciphertext(report.fetch_optional(self.reader()).await.map_err(failed)?))
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
                .fetch_all(self.reader())
                .await
                .map_err(failed)?;
            let records = rows.into_iter().map(ReleaseRecord::try_from).collect::<Result<_, _>>()?;
            Ok(Page::new(records, limit, |record| record.id))
        }

        async fn sweep(&self, now: DateTime<Utc>, grace: Duration) -> Result<SweepCounts, StoreError> {
            let mut swept = SweepCounts::default();
            let attempts: Vec<(Uuid, i64)> =
                sqlx::query_as(sql::UNREACHABLE_ATTEMPTS).fetch_all(self.reader()).await.map_err(failed)?;
            for (job, attempt) in attempts {
                self.drop_attempt(job, number(attempt)?).await?;
                swept.attempts += 1;
            }
            let uploads: Vec<Uuid> = sqlx::query_scalar(datasets::UNREACHABLE_UPLOADS)
                .bind(first_id_at(now - grace))
                .fetch_all(self.reader())
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

    impl Backend {
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
                .fetch_optional(self.reader())
                .await
                .map_err(failed)?;
            row.map(PartChunkRecord::try_from).transpose()
        }

        /// Commits a release in three steps:
        /// 1. Lock the reuse key, the ledgers of content and series, and the job, in this order. Until the end no other commit
        ///    of this series, no new job of this key and no other end of this job can happen.
        /// 2. Check that the caller still has the job, by the time after the locks; that no release of the key exists; and
        ///    that the ledger has the version that the release was checked against.
        /// 3. Write. The locks of step 1 protect what step 2 checked, so READ COMMITTED decides as SERIALIZABLE would.
        ///
        /// Any outcome but a release leaves the transaction unfinished, which rolls it back.
        async fn try_commit(&self, commit: &ReleaseCommit) -> Result<CommitOutcome, TransactionError> {
            let release = &commit.release;
            if commit.job != release.job {
                return Ok(CommitOutcome::LeaseLost);
            }
            let mut tx = self.begin().await?;
            lock_reuse_key(&mut tx, &release.reuse_key).await?;
            let version = lock_ledger(&mut tx, release).await?;
            let series = lock_series(&mut tx, &release.tenant, &release.series).await?;
            lock_job(&mut tx, commit.job).await?;

            let now = self.lease_time(&mut tx, commit.now).await?;
            if !holds_lease(&mut tx, commit, now).await? {
                return Ok(CommitOutcome::LeaseLost);
            }
            let existing: Option<Uuid> = sqlx::query_scalar(queue::STANDING_RELEASE)
                .bind(&release.tenant)
                .bind(release.reuse_key.as_slice())
                .fetch_optional(&mut *tx)
                .await?;
            if let Some(existing) = existing {
                return Ok(CommitOutcome::AlreadyReleased(existing));
            }
            let outdated = match commit.series_version {
                Some(checked) => series != checked,
                None => version != commit.ledger_version,
            };
            if outdated {
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
            notify(&mut tx, Notification::Changed).await?;
            tx.commit().await?;
            Ok(CommitOutcome::Committed)
        }
    }

    async fn holds_lease(
        connection: &mut Connection,
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

    async fn insert_release(connection: &mut Connection, release: &ReleaseRecord) -> Result<(), sqlx::Error> {
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
            .bind(Json(&release.manifest))
            .bind(Json(&release.report))
            .execute(connection)
            .await?;
        Ok(())
    }

    /// Records the disclosures and active rules of a release, and raises the versions of its ledger and series.
    async fn disclose(connection: &mut Connection, commit: &ReleaseCommit) -> Result<(), sqlx::Error> {
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
                .bind(Json(body))
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

    /// Ends the queued jobs of the same reuse key with this release.
    async fn answer_waiting(connection: &mut Connection, commit: &ReleaseCommit) -> Result<(), sqlx::Error> {
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
}
