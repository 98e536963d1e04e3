//! The ledger carried from one store to another.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::pool::retried;
use super::releases::{BEGIN_LEDGER, LOCK_LEDGER};
use super::{Document, Fault, PostgresStore, failed};
use crate::jobs::{Content, ImportConflict, ImportPlan, Imported, LedgerCopy, LedgerHere, Ledgers, StoreError};
use crate::store::rows::{PortableDisclosureRow, PortableReleaseRow, PortableRuleRow, PortableVersionRow, here};
use crate::store::sql::{people, portable as sql};

#[async_trait]
impl Ledgers for PostgresStore {
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
    ) -> Result<Result<Imported, ImportConflict>, StoreError> {
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
    /// Locks the ledgers of all contents, in their order, as a commit locks that of its one: nothing is published of them between
    /// the look at what is here and the end.
    async fn try_import(
        &self,
        copy: &LedgerCopy,
        at: DateTime<Utc>,
    ) -> Result<Result<Imported, ImportConflict>, Fault> {
        let mut tx = self.begin().await?;
        for Content { tenant, series, hash } in copy.contents() {
            for lock in [BEGIN_LEDGER, LOCK_LEDGER] {
                sqlx::query(lock).bind(&tenant).bind(&series).bind(hash.as_slice()).execute(&mut *tx).await?;
            }
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

async fn read(connection: &mut PgConnection, tenant: Option<&str>) -> Result<LedgerHere, StoreError> {
    let releases: Vec<PortableReleaseRow> =
        sqlx::query_as(sql::ALL_RELEASES).bind(tenant).fetch_all(&mut *connection).await.map_err(failed)?;
    let disclosures: Vec<PortableDisclosureRow> =
        sqlx::query_as(sql::ALL_DISCLOSURES).bind(tenant).fetch_all(&mut *connection).await.map_err(failed)?;
    let rules: Vec<PortableRuleRow> =
        sqlx::query_as(sql::ALL_RULES).bind(tenant).fetch_all(&mut *connection).await.map_err(failed)?;
    let versions: Vec<PortableVersionRow> =
        sqlx::query_as(sql::ALL_VERSIONS).bind(tenant).fetch_all(&mut *connection).await.map_err(failed)?;
    here(releases, disclosures, rules, versions)
}

async fn enter(connection: &mut PgConnection, plan: &ImportPlan<'_>, at: DateTime<Utc>) -> Result<(), sqlx::Error> {
    for release in &plan.releases {
        sqlx::query(sql::IMPORT_RELEASE)
            .bind(release.id)
            .bind(&release.tenant)
            .bind(&release.series)
            .bind(release.content_hash.as_slice())
            .bind(release.reuse_key.as_slice())
            .bind(&release.method)
            .bind(release.created_at)
            .bind(&release.status)
            .bind(release.was_read)
            .bind(at)
            .execute(&mut *connection)
            .await?;
    }
    for release in &plan.advanced {
        sqlx::query(sql::ADVANCE_RELEASE)
            .bind(release.id)
            .bind(&release.status)
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
            .bind(Document(&disclosure.body))
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
            .bind(Document(&rule.body))
            .execute(&mut *connection)
            .await?;
    }
    for (Content { tenant, series, hash }, version) in &plan.versions {
        sqlx::query(sql::SET_VERSION)
            .bind(tenant)
            .bind(series)
            .bind(hash.as_slice())
            .bind(version)
            .execute(&mut *connection)
            .await?;
        let series = sqlx::query(people::BUMP_SERIES).bind(tenant).bind(series);
        series.execute(&mut *connection).await?;
    }
    Ok(())
}
