//! The ledger: disclosures, active rules and statements.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::{
    ActiveRuleRecord, AuditEntry, DisclosureRecord, DisclosureStore, LedgerSnapshot, SeriesRecord, SeriesStatements,
    StatementRecord, StoreError,
};
use crate::store::rows::{self, ActiveRuleRow, DisclosureRow, StatementRow};
use crate::store::sql::{disclosures as sql, series as series_sql};

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
            let version: Option<i64> = run_sql!(
                query_scalar.fetch_optional, &mut *tx, sql::LEDGER_VERSION, tenant, series, content_hash.as_slice()
            ).map_err(failed)?;
            let content = content_hash.as_slice();
            let entries: Vec<DisclosureRow> =
                run_sql!(query_as.fetch_all, &mut *tx, sql::DISCLOSURES, tenant, series, content).map_err(failed)?;
            let rules: Vec<ActiveRuleRow> =
                run_sql!(query_as.fetch_all, &mut *tx, sql::STANDING_RULES, tenant, series, content).map_err(failed)?;
            Ok(LedgerSnapshot {
                version: version.unwrap_or(0),
                entries: entries.into_iter().map(DisclosureRecord::from).collect(),
                rules: rules.into_iter().map(ActiveRuleRecord::from).collect(),
            })
        }

        async fn series_statements(&self, tenant: &str, series: &str) -> Result<SeriesStatements, StoreError> {
            let mut connection = self.reader().acquire().await.map_err(failed)?;
            // the version first: who acts on later statements finds that it has moved
            let version: Option<i64> = run_sql!(
                query_scalar.fetch_optional, &mut *connection, series_sql::SERIES_VERSION, tenant, series
            ).map_err(failed)?;
            let statements: Vec<StatementRow> =
                run_sql!(query_as.fetch_all, &mut *connection, sql::STATEMENTS, tenant, series).map_err(failed)?;
            let statements = statements.into_iter().map(StatementRecord::from).collect();
            Ok(SeriesStatements { version: version.unwrap_or(0), statements })
        }

        async fn series_datasets(&self, tenant: &str, series: &str) -> Result<Vec<Uuid>, StoreError> {
            let found: Vec<(Uuid, DateTime<Utc>)> =
                run_sql!(query_as.fetch_all, self.reader(), sql::SERIES_DATASETS, tenant, series).map_err(failed)?;
            Ok(found.into_iter().map(|(id, _)| id).collect())
        }

        async fn series(&self, tenant: &str, series: &str) -> Result<SeriesRecord, StoreError> {
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            let datasets =
                run_sql!(query_as.fetch_all, &mut *tx, sql::SERIES_DATASETS, tenant, series).map_err(failed)?;
            let entries =
                run_sql!(query_as.fetch_all, &mut *tx, sql::SERIES_DISCLOSURES, tenant, series).map_err(failed)?;
            let rules = run_sql!(query_as.fetch_all, &mut *tx, sql::SERIES_RULES, tenant, series).map_err(failed)?;
            let statements = run_sql!(query_as.fetch_all, &mut *tx, sql::STATEMENTS, tenant, series).map_err(failed)?;
            let version = run_sql!(
                query_scalar.fetch_optional, &mut *tx, series_sql::SERIES_VERSION, tenant, series
            ).map_err(failed)?;
            rows::series(version, datasets, entries, rules, statements)
        }

        async fn series_between(
            &self,
            tenant: &str,
            series: &str,
            from: Uuid,
            to: Uuid,
        ) -> Result<SeriesRecord, StoreError> {
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            let datasets =
                run_sql!(query_as.fetch_all, &mut *tx, sql::SERIES_DATASETS, tenant, series).map_err(failed)?;
            let entries = run_sql!(query_as.fetch_all, &mut *tx, sql::DISCLOSURES_BETWEEN, tenant, series, from, to)
                .map_err(failed)?;
            let rules = run_sql!(query_as.fetch_all, &mut *tx, sql::RULES_BETWEEN, tenant, series, from, to)
                .map_err(failed)?;
            let statements = run_sql!(query_as.fetch_all, &mut *tx, sql::STATEMENTS, tenant, series).map_err(failed)?;
            let version = run_sql!(
                query_scalar.fetch_optional, &mut *tx, series_sql::SERIES_VERSION, tenant, series
            ).map_err(failed)?;
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
                run_sql!(
                    query.execute, &mut *tx, sql::INSERT_STATEMENT, statement.id, tenant, series,
                    Json(&statement.body), statement.recorded_at
                )?;
                run_sql!(query.execute, &mut *tx, series_sql::BUMP_SERIES, tenant, series)?;
                log(&mut tx, audit_entry).await?;
                Ok(tx.commit().await?)
            };
            run_transaction("enter_statement", enter).await
        }
    }
}
