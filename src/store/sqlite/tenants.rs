//! Settings of tenants.

use async_trait::async_trait;
use sqlx::SqliteConnection;
use sqlx::types::Json;

use super::SqliteStore;
use super::error::failed;
use super::keys::log;
use crate::ports::{AuditEntry, StoreError, TenantSettings, TenantStore};
use crate::store::rows::{TenantRow, settings};
use crate::store::sql::tenants as sql;

#[async_trait]
impl TenantStore for SqliteStore {
    async fn tenant_settings(&self, tenant: &str) -> Result<TenantSettings, StoreError> {
        let mut connection = self.reader.acquire().await.map_err(failed)?;
        settings_of(&mut connection, tenant).await
    }

    async fn tenants(&self) -> Result<Vec<(String, TenantSettings)>, StoreError> {
        let rows: Vec<TenantRow> = sqlx::query_as(sql::TENANTS).fetch_all(&self.reader).await.map_err(failed)?;
        Ok(rows.into_iter().map(TenantRow::into).collect())
    }

    async fn set_tenant(
        &self,
        tenant: &str,
        settings: TenantSettings,
        audit_entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin("set_tenant").await?;
        let set = sqlx::query(sql::SET_TENANT).bind(tenant).bind(Json(settings));
        set.execute(&mut *tx).await.map_err(failed)?;
        log(&mut tx, audit_entry).await?;
        tx.commit().await.map_err(failed)
    }
}

/// A tenant's settings, within a transaction that goes by them.
pub(super) async fn settings_of(connection: &mut SqliteConnection, tenant: &str) -> Result<TenantSettings, StoreError> {
    let found = sqlx::query_scalar(sql::TENANT_SETTINGS).bind(tenant).fetch_optional(connection).await;
    Ok(settings(found.map_err(failed)?))
}
