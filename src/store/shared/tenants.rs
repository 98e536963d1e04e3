//! Settings of tenants.

use async_trait::async_trait;

use crate::ports::{AuditEntry, StoreError, TenantSettings, TenantStore};
use crate::store::rows::{TenantRow, settings};
use crate::store::sql::tenants as sql;

both_stores! {
    #[async_trait]
    impl TenantStore for Backend {
        async fn tenant_settings(&self, tenant: &str) -> Result<TenantSettings, StoreError> {
            let mut connection = self.reader().acquire().await.map_err(failed)?;
            settings_of(&mut connection, tenant).await.map_err(failed)
        }

        async fn tenants(&self) -> Result<Vec<(String, TenantSettings)>, StoreError> {
            let rows: Vec<TenantRow> = run_sql!(query_as.fetch_all, self.reader(), sql::TENANTS).map_err(failed)?;
            Ok(rows.into_iter().map(TenantRow::into).collect())
        }

        async fn set_tenant(
            &self,
            tenant: &str,
            settings: TenantSettings,
            audit_entry: &AuditEntry,
        ) -> Result<(), StoreError> {
            let set = || async {
                let mut tx = self.begin().await?;
                run_sql!(query.execute, &mut *tx, sql::SET_TENANT, tenant, Json(settings))?;
                log(&mut tx, audit_entry).await?;
                Ok(tx.commit().await?)
            };
            run_transaction("set_tenant", set).await
        }
    }

    /// The settings of a tenant, read within a transaction that depends on them.
    pub(in crate::store) async fn settings_of(
        connection: &mut Connection,
        tenant: &str,
    ) -> Result<TenantSettings, sqlx::Error> {
        Ok(settings(run_sql!(query_scalar.fetch_optional, connection, sql::TENANT_SETTINGS, tenant)?))
    }
}
