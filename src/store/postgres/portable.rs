//! The ledger carried from one store to another.

use std::collections::BTreeSet;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::PostgresStore;
use super::document::JsonText;
use super::error::{TransactionError, failed};
use super::people::lock_series;
use super::pool::retried;
use super::releases::{BEGIN_LEDGER, LOCK_LEDGER};
use crate::ports::{
    DestinationLedger, ImportConflict, ImportPlan, ImportSummary, LedgerContent, LedgerCopy, LedgerTransferStore,
    PortableDataset, StoreError,
};
use crate::store::rows::{
    PortableDatasetRow, PortableDisclosureRow, PortableReleaseRow, PortableRuleRow, PortableStatementRow,
    PortableVersionRow, here, stored,
};
use crate::store::sql::{datasets, disclosures, people, portable as sql};

#[async_trait]
impl LedgerTransferStore for PostgresStore {
    async fn copy_ledger(&self, tenant: Option<&str>) -> Result<LedgerCopy, StoreError> {
        // a transaction, so that all reads are of one moment
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
        let mut tx = self.pool.begin_with(begin).await.map_err(failed)?;
        Ok(read(&mut tx, tenant).await?.copy)
    }

    async fn import_ledger(
        &self,
        copy: &LedgerCopy,
        at: DateTime<Utc>,
    ) -> Result<Result<ImportSummary, ImportConflict>, StoreError> {
        retried("import_ledger", || self.try_import(copy, at)).await
    }

    async fn is_imported(&self, tenant: &str, release: Uuid) -> Result<bool, StoreError> {
        let found: i64 = sqlx::query_scalar(sql::IS_IMPORTED)
            .bind(tenant)
            .bind(release)
            .fetch_one(&self.pool)
            .await
            .map_err(failed)?;
        Ok(found > 0)
    }
}

impl PostgresStore {
    /// Locks the ledgers of all contents, and then the series, in their order, as a commit locks its one: nothing is published of them,
    /// and nothing stated, between the look at what is here and the end.
    async fn try_import(
        &self,
        copy: &LedgerCopy,
        at: DateTime<Utc>,
    ) -> Result<Result<ImportSummary, ImportConflict>, TransactionError> {
        let mut tx = self.begin().await?;
        for LedgerContent { tenant, series, hash } in copy.contents() {
            for lock in [BEGIN_LEDGER, LOCK_LEDGER] {
                sqlx::query(lock).bind(&tenant).bind(&series).bind(hash.as_slice()).execute(&mut *tx).await?;
            }
        }
        // then what a commit, a statement and an upload take last
        let uploads: BTreeSet<&str> = copy.datasets.iter().map(|dataset| dataset.tenant.as_str()).collect();
        for tenant in uploads {
            lock_series(&mut tx, tenant, people::UPLOADS).await?;
        }
        for (tenant, series) in copy.series() {
            lock_series(&mut tx, &tenant, &series).await?;
        }
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

async fn read(connection: &mut PgConnection, tenant: Option<&str>) -> Result<DestinationLedger, StoreError> {
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
    connection: &mut PgConnection,
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
            .bind(JsonText(&disclosure.body))
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
            .bind(JsonText(&rule.body))
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
            .bind(JsonText(&statement.body))
            .bind(statement.recorded_at)
            .execute(&mut *connection)
            .await?;
    }
    // whoever judges by what was here judges again, and whoever uploads compares again
    let uploads = plan.uploaders().into_iter().map(|tenant| (tenant, people::UPLOADS));
    let series = plan.series.iter().map(|(tenant, series)| (tenant.as_str(), series.as_str()));
    for (tenant, series) in uploads.chain(series) {
        let bump = sqlx::query(people::BUMP_SERIES).bind(tenant).bind(series);
        bump.execute(&mut *connection).await?;
    }
    Ok(())
}

/// One that was purged, as far as anybody can see here.
async fn enter_dataset(
    connection: &mut PgConnection,
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
        .bind(dataset.record_key.as_ref().map(JsonText))
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
        let insert = insert.bind(JsonText(known)).bind(JsonText(&dataset.overlaps));
        insert.execute(&mut *connection).await?;
    }
    Ok(())
}
