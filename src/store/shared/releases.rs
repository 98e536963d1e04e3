//! Releases, and the transaction that commits one.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::{
    AnnouncedCoverage, CommitOutcome, Cursor, JobStatus, ListedRelease, NewRelease, Page, PartChunkStore,
    ReleaseCommit, ReleaseFilter, ReleaseRecord, ReleaseStore, StoreError, SweepCounts, WriteOutcome,
};
use crate::store::rows::{ListedReleaseRow, ReleaseRow, before, ciphertext, first_id_at, number, records};
use crate::store::shared::Notification;
use crate::store::shared::queue::RunEnd;
use crate::store::sql::{datasets, disclosures, parts, queue, releases as sql, series as series_sql};
use crate::vault::Ciphertext;

both_stores! {
    #[async_trait]
    impl ReleaseStore for Backend {
        async fn commit(&self, commit: ReleaseCommit) -> Result<CommitOutcome, StoreError> {
            run_transaction("commit", || self.try_commit(&commit)).await
        }

        async fn release(&self, tenant: &str, id: Uuid) -> Result<Option<ReleaseRecord>, StoreError> {
            let row: Option<ReleaseRow> =
                run_sql!(query_as.fetch_optional, self.reader(), sql::RELEASE, id, tenant).map_err(failed)?;
            row.map(ReleaseRecord::try_from).transpose()
        }

        async fn internal_report(&self, tenant: &str, release: Uuid) -> Result<Option<Ciphertext>, StoreError> {
            let report = sqlx::query_scalar(sql::INTERNAL_REPORT).bind(release).bind(tenant);
            Ok(ciphertext(report.fetch_optional(self.reader()).await.map_err(failed)?))
        }

        async fn release_of_policy(
            &self,
            tenant: &str,
            series: &str,
            policy: &str,
        ) -> Result<Option<Uuid>, StoreError> {
            run_sql!(query_scalar.fetch_optional, self.reader(), sql::RELEASE_OF_POLICY, tenant, series, policy)
                .map_err(failed)
        }

        async fn releases(
            &self,
            tenant: &str,
            filter: &ReleaseFilter,
            cursor: Option<Cursor>,
            limit: u32,
        ) -> Result<Page<ListedRelease>, StoreError> {
            let rows: Vec<ListedReleaseRow> = run_sql!(
                query_as.fetch_all, self.reader(), sql::RELEASES, before(cursor), &filter.series, filter.dataset,
                &filter.method, &filter.status, i64::from(limit) + 1, tenant
            ).map_err(failed)?;
            Ok(Page::new(records(rows)?, limit, |release: &ListedRelease| release.id))
        }

        async fn sweep(&self, now: DateTime<Utc>, grace: Duration) -> Result<SweepCounts, StoreError> {
            let mut swept = SweepCounts::default();
            let attempts: Vec<(Uuid, i64)> =
                run_sql!(query_as.fetch_all, self.reader(), parts::UNREACHABLE_ATTEMPTS).map_err(failed)?;
            for (job, attempt) in attempts {
                self.drop_attempt(job, number(attempt)?).await?;
                swept.attempts += 1;
            }
            self.sweep_objects(now).await?;
            swept.chain_states = self.sweep_chain_states().await?;
            let uploads: Vec<Uuid> = run_sql!(
                query_scalar.fetch_all, self.reader(), datasets::UNREACHABLE_UPLOADS, first_id_at(now - grace)
            ).map_err(failed)?;
            for upload in uploads {
                self.delete_chunks(upload).await?;
                swept.uploads += 1;
            }
            self.empty_journal().await?;
            self.scour_again().await;
            Ok(swept)
        }
    }

    impl Backend {
        /// Commits a release in three steps:
        /// 1. Lock the reuse key, the ledgers of content and series, and the job, in this order; a chain comes last. Until
        ///    the end no other commit of this series, no new job of this key and no other end of this job can happen.
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
            let has_moved = has_series_moved(&mut tx, commit).await?;
            lock_job(&mut tx, commit.job).await?;

            let now = self.lease_time(&mut tx, commit.now).await?;
            if !holds_lease(&mut tx, commit, now).await? {
                return Ok(CommitOutcome::LeaseLost);
            }
            let existing: Option<Uuid> = run_sql!(
                query_scalar.fetch_optional, &mut *tx, queue::STANDING_RELEASE, &release.tenant,
                release.reuse_key.as_slice()
            )?;
            if let Some(existing) = existing {
                return Ok(CommitOutcome::AlreadyReleased(existing));
            }
            let is_content_checked = commit.series_versions.is_empty();
            if has_moved || is_content_checked && version != commit.ledger_version {
                return Ok(CommitOutcome::LedgerMoved);
            }

            insert_release(&mut tx, release).await?;
            if let Some(report) = &commit.internal_report {
                run_sql!(query.execute, &mut *tx, sql::INSERT_INTERNAL_REPORT, release.id, report.as_bytes())?;
            }
            disclose(&mut tx, commit).await?;
            if let Some(AnnouncedCoverage { id, end }) = &commit.announcement
                && !end_announced(&mut tx, &release.tenant, *id, end).await?
            {
                // what it joins is void: the held release that had these people was rejected since
                return Ok(CommitOutcome::LedgerMoved);
            }
            if let Some(step) = &commit.chain && !step_chain(&mut tx, commit, step).await? {
                return Ok(CommitOutcome::ChainMoved);
            }
            let end = RunEnd { status: JobStatus::Succeeded, release: Some(release.id), is_reused: false };
            match end_running(&mut tx, commit.job, commit.token, now, end).await? {
                WriteOutcome::Done => {}
                WriteOutcome::LeaseLost => return Ok(CommitOutcome::LeaseLost),
            }
            answer_waiting(&mut tx, commit).await?;
            notify(&mut tx, Notification::Changed).await?;
            tx.commit().await?;
            Ok(CommitOutcome::Committed)
        }
    }

    /// Locks the series of a release and those that it was checked against, in the order of their names, and says whether
    /// one of the latter has changed.
    async fn has_series_moved(connection: &mut Connection, commit: &ReleaseCommit) -> Result<bool, sqlx::Error> {
        let NewRelease { tenant, series, .. } = &commit.release;
        let mut names: BTreeSet<&String> = commit.series_versions.keys().collect();
        names.insert(series);
        let mut has_moved = false;
        for name in names {
            let version = lock_series(connection, tenant, name).await?;
            has_moved |= commit.series_versions.get(name).is_some_and(|checked| *checked != version);
        }
        Ok(has_moved)
    }

    async fn holds_lease(
        connection: &mut Connection,
        commit: &ReleaseCommit,
        now: DateTime<Utc>,
    ) -> Result<bool, sqlx::Error> {
        let found: Option<i64> = run_sql!(
            query_scalar.fetch_optional, connection, sql::LEASE_OF_ATTEMPT, commit.job, commit.token.0, now,
            i64::from(commit.release.attempt)
        )?;
        Ok(found.is_some())
    }

    async fn insert_release(connection: &mut Connection, release: &ReleaseRecord) -> Result<(), sqlx::Error> {
        run_sql!(
            query.execute, &mut *connection, sql::INSERT_RELEASE, release.id, release.job, i64::from(release.attempt),
            &release.tenant, &release.series, release.dataset, release.content_hash.as_slice(),
            release.reuse_key.as_slice(), &release.method, release.created_at, release.status.as_str()
        )?;
        run_sql!(
            query.execute, connection, sql::INSERT_RELEASE_DOCUMENTS, release.id, Json(&release.manifest),
            Json(&release.report)
        )?;
        Ok(())
    }

    /// Records the disclosures and active rules of a release, and raises the versions of its ledger and series.
    async fn disclose(connection: &mut Connection, commit: &ReleaseCommit) -> Result<(), sqlx::Error> {
        let release = &commit.release;
        for disclosure in &commit.disclosures {
            run_sql!(
                query.execute, &mut *connection, disclosures::INSERT_DISCLOSURE, disclosure.id, release.id,
                &release.tenant, &release.series, release.content_hash.as_slice(), &disclosure.table,
                Json(&disclosure.body), commit.now
            )?;
        }
        for (number, body) in (0_i64..).zip(&commit.rules) {
            run_sql!(
                query.execute, &mut *connection, disclosures::INSERT_STANDING_RULE, release.id, number,
                &release.tenant, &release.series, release.content_hash.as_slice(), Json(body)
            )?;
        }
        run_sql!(
            query.execute, &mut *connection, disclosures::BUMP_LEDGER, &release.tenant, &release.series,
            release.content_hash.as_slice()
        )?;
        run_sql!(query.execute, connection, series_sql::BUMP_SERIES, &release.tenant, &release.series)?;
        Ok(())
    }

    /// Ends the queued jobs of the same reuse key with this release.
    async fn answer_waiting(connection: &mut Connection, commit: &ReleaseCommit) -> Result<(), sqlx::Error> {
        let waiting: Vec<Uuid> = run_sql!(
            query_scalar.fetch_all, &mut *connection, WAITING_ALIKE, &commit.release.tenant,
            commit.release.reuse_key.as_slice()
        )?;
        for job in waiting {
            run_sql!(query.execute, &mut *connection, queue::ANSWER_WAITING, job, commit.now, commit.release.id)?;
            erase_key(connection, job).await?;
        }
        Ok(())
    }
}
