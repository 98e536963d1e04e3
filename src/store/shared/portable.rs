//! Export and import of the ledger.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::{
    DestinationLedger, ImportConflict, ImportPlan, ImportSummary, LedgerContent, LedgerCopy, LedgerTransferStore,
    PortableDataset, StoreError,
};
use crate::store::rows::{
    PortableDatasetRow, PortableDisclosureRow, PortableReleaseRow, PortableRuleRow, PortableStatementRow,
    PortableVersionRow, here, stored,
};
use crate::store::sql::{datasets, disclosures, people, portable as sql};

both_stores! {
    #[async_trait]
    impl LedgerTransferStore for Backend {
        async fn copy_ledger(&self, tenant: Option<&str>) -> Result<LedgerCopy, StoreError> {
            // a transaction, so that all reads are of one moment
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            Ok(read(&mut tx, tenant).await?.copy)
        }

        async fn import_ledger(
            &self,
            copy: &LedgerCopy,
            at: DateTime<Utc>,
        ) -> Result<Result<ImportSummary, ImportConflict>, StoreError> {
            run_transaction("import_ledger", || self.try_import(copy, at)).await
        }

        async fn is_imported(&self, tenant: &str, release: Uuid) -> Result<bool, StoreError> {
            let found: i64 = sqlx::query_scalar(sql::IS_IMPORTED)
                .bind(tenant)
                .bind(release)
                .fetch_one(self.reader())
                .await
                .map_err(failed)?;
            Ok(found > 0)
        }
    }

    impl Backend {
        /// Compares the copy with the ledger here and records what is missing, under the locks of all its series.
        async fn try_import(
            &self,
            copy: &LedgerCopy,
            at: DateTime<Utc>,
        ) -> Result<Result<ImportSummary, ImportConflict>, TransactionError> {
            let mut tx = self.begin().await?;
            lock_for_import(&mut tx, copy).await?;
            let here = read(&mut tx, None).await?;
            let plan = match copy.plan_for(&here) {
                Ok(plan) => plan,
                Err(conflict) => return Ok(Err(conflict)),
            };
            enter(&mut tx, &plan, at).await?;
            tx.commit().await?;
            Ok(Ok(plan.counts()))
        }
    }

    async fn read(connection: &mut Connection, tenant: Option<&str>) -> Result<DestinationLedger, StoreError> {
        let releases: Vec<PortableReleaseRow> =
            sqlx::query_as(sql::ALL_RELEASES).bind(tenant).fetch_all(&mut *connection).await.map_err(failed)?;
        let disclosures: Vec<PortableDisclosureRow> =
            sqlx::query_as(sql::ALL_DISCLOSURES).bind(tenant).fetch_all(&mut *connection).await.map_err(failed)?;
        let rules: Vec<PortableRuleRow> =
            sqlx::query_as(sql::ALL_RULES).bind(tenant).fetch_all(&mut *connection).await.map_err(failed)?;
        let versions: Vec<PortableVersionRow> =
            sqlx::query_as(sql::ALL_VERSIONS).bind(tenant).fetch_all(&mut *connection).await.map_err(failed)?;
        let datasets: Vec<PortableDatasetRow> =
            sqlx::query_as(datasets::ALL_DATASETS).bind(tenant).fetch_all(&mut *connection).await.map_err(failed)?;
        let statements: Vec<PortableStatementRow> =
            sqlx::query_as(sql::ALL_STATEMENTS).bind(tenant).fetch_all(&mut *connection).await.map_err(failed)?;
        here(releases, disclosures, rules, versions, datasets, statements)
    }

    async fn enter(
        connection: &mut Connection,
        plan: &ImportPlan<'_>,
        at: DateTime<Utc>,
    ) -> Result<(), TransactionError> {
        for release in &plan.releases {
            sqlx::query(sql::IMPORT_RELEASE)
                .bind(release.id)
                .bind(&release.tenant)
                .bind(&release.series)
                .bind(release.content_hash.as_slice())
                .bind(release.reuse_key.as_slice())
                .bind(&release.method)
                .bind(release.created_at)
                .bind(release.status.as_str())
                .bind(release.was_read)
                .bind(at)
                .execute(&mut *connection)
                .await?;
        }
        for release in &plan.advanced {
            sqlx::query(sql::ADVANCE_RELEASE)
                .bind(release.id)
                .bind(release.status.as_str())
                .bind(release.was_read)
                .execute(&mut *connection)
                .await?;
        }
        for (release, disclosure) in &plan.disclosures {
            sqlx::query(sql::IMPORT_DISCLOSURE)
                .bind(disclosure.id)
                .bind(release.id)
                .bind(&release.tenant)
                .bind(&release.series)
                .bind(release.content_hash.as_slice())
                .bind(&disclosure.table)
                .bind(Json(&disclosure.body))
                .bind(disclosure.recorded_at)
                .execute(&mut *connection)
                .await?;
        }
        for (release, rule) in &plan.rules {
            sqlx::query(sql::IMPORT_RULE)
                .bind(release.id)
                .bind(i64::from(rule.number))
                .bind(&release.tenant)
                .bind(&release.series)
                .bind(release.content_hash.as_slice())
                .bind(Json(&rule.body))
                .execute(&mut *connection)
                .await?;
        }
        for (LedgerContent { tenant, series, hash }, version) in &plan.versions {
            sqlx::query(sql::SET_VERSION)
                .bind(tenant)
                .bind(series)
                .bind(hash.as_slice())
                .bind(version)
                .execute(&mut *connection)
                .await?;
        }
        for dataset in &plan.datasets {
            enter_dataset(connection, dataset, at).await?;
        }
        for piece in &plan.pieces {
            let hashes = piece.hashes.read().map_err(StoreError::Unread)?;
            let insert = sqlx::query(sql::IMPORT_PIECE).bind(piece.dataset).bind(piece.piece).bind(&*hashes);
            insert.execute(&mut *connection).await?;
        }
        for statement in &plan.statements {
            sqlx::query(disclosures::INSERT_STATEMENT)
                .bind(statement.id)
                .bind(&statement.tenant)
                .bind(&statement.series)
                .bind(Json(&statement.body))
                .bind(statement.recorded_at)
                .execute(&mut *connection)
                .await?;
        }
        // releases in progress are checked again, and uploads compared again
        let uploads = plan.uploaders().into_iter().map(|tenant| (tenant, people::UPLOADS));
        let series = plan.series.iter().map(|(tenant, series)| (tenant.as_str(), series.as_str()));
        for (tenant, series) in uploads.chain(series) {
            let bump = sqlx::query(people::BUMP_SERIES).bind(tenant).bind(series);
            bump.execute(&mut *connection).await?;
        }
        Ok(())
    }

    /// Records a dataset of another store as a purged one.
    async fn enter_dataset(
        connection: &mut Connection,
        dataset: &PortableDataset,
        at: DateTime<Utc>,
    ) -> Result<(), TransactionError> {
        sqlx::query(datasets::IMPORT_DATASET)
            .bind(dataset.id)
            .bind(&dataset.tenant)
            .bind(&dataset.name)
            .bind(&dataset.series)
            .bind(dataset.same_people)
            .bind(&dataset.same_people_reason)
            .bind(dataset.record_key.as_ref().map(Json))
            .bind(&dataset.subject)
            .bind(dataset.max_rows_per_subject.map(stored).transpose()?)
            .bind(dataset.created_at)
            .bind(stored(dataset.rows)?)
            .bind(stored(dataset.bytes)?)
            .bind(&dataset.format)
            .bind(dataset.content_hash.as_slice())
            .bind(at)
            .execute(&mut *connection)
            .await?;
        if let Some(known) = &dataset.people {
            let insert = sqlx::query(people::INSERT_PEOPLE).bind(dataset.id);
            let insert = insert.bind(Json(known)).bind(Json(&dataset.overlaps));
            insert.execute(&mut *connection).await?;
        }
        Ok(())
    }
}
