//! The ledger: disclosures, active rules and statements.

use async_trait::async_trait;

use crate::ports::{
    ActiveRuleRecord, AuditEntry, DisclosureRecord, DisclosureStore, LedgerSnapshot, SeriesRecord, StatementRecord,
    StoreError,
};
use crate::store::rows::{self, ActiveRuleRow, DisclosureRow};
use crate::store::sql::{disclosures as sql, people};

both_stores! {
    #[async_trait]
    impl DisclosureStore for Backend {
        async fn disclosures(
            &self,
            tenant: &str,
            series: &str,
            content_hash: &[u8; 32],
        ) -> Result<LedgerSnapshot, StoreError> {
            // one moment: else the entries of one version could be checked under the number of another
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            let version: Option<i64> = sqlx::query_scalar(sql::LEDGER_VERSION)
                .bind(tenant)
                .bind(series)
                .bind(content_hash.as_slice())
                .fetch_optional(&mut *tx)
                .await
                .map_err(failed)?;
            let entries: Vec<DisclosureRow> = sqlx::query_as(sql::DISCLOSURES)
                .bind(tenant)
                .bind(series)
                .bind(content_hash.as_slice())
                .fetch_all(&mut *tx)
                .await
                .map_err(failed)?;
            let rules: Vec<ActiveRuleRow> = sqlx::query_as(sql::STANDING_RULES)
                .bind(tenant)
                .bind(series)
                .bind(content_hash.as_slice())
                .fetch_all(&mut *tx)
                .await
                .map_err(failed)?;
            Ok(LedgerSnapshot {
                version: version.unwrap_or(0),
                entries: entries.into_iter().map(DisclosureRecord::from).collect(),
                rules: rules.into_iter().map(ActiveRuleRecord::from).collect(),
            })
        }

        async fn series(&self, tenant: &str, series: &str) -> Result<SeriesRecord, StoreError> {
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            let datasets = sqlx::query_as(sql::SERIES_DATASETS).bind(tenant).bind(series);
            let datasets = datasets.fetch_all(&mut *tx).await.map_err(failed)?;
            let entries = sqlx::query_as(sql::SERIES_DISCLOSURES).bind(tenant).bind(series);
            let entries = entries.fetch_all(&mut *tx).await.map_err(failed)?;
            let rules = sqlx::query_as(sql::SERIES_RULES).bind(tenant).bind(series);
            let rules = rules.fetch_all(&mut *tx).await.map_err(failed)?;
            let statements = sqlx::query_as(sql::STATEMENTS).bind(tenant).bind(series);
            let statements = statements.fetch_all(&mut *tx).await.map_err(failed)?;
            let version = sqlx::query_scalar(people::SERIES_VERSION).bind(tenant).bind(series);
            let version = version.fetch_optional(&mut *tx).await.map_err(failed)?;
            rows::series(version, datasets, entries, rules, statements)
        }

        async fn enter_statement(
            &self,
            tenant: &str,
            series: &str,
            statement: &StatementRecord,
            audit_entry: &AuditEntry,
        ) -> Result<(), StoreError> {
            let enter = || async {
                let mut tx = self.begin().await?;
                sqlx::query(sql::INSERT_STATEMENT)
                    .bind(statement.id)
                    .bind(tenant)
                    .bind(series)
                    .bind(Json(&statement.body))
                    .bind(statement.recorded_at)
                    .execute(&mut *tx)
                    .await?;
                sqlx::query(people::BUMP_SERIES).bind(tenant).bind(series).execute(&mut *tx).await?;
                log(&mut tx, audit_entry).await?;
                Ok(tx.commit().await?)
            };
            run_transaction("enter_statement", enter).await
        }
    }
}
