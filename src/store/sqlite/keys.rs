//! API keys and the audit log.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;
use uuid::Uuid;

use super::SqliteStore;
use super::error::failed;
use crate::identity::ApiKey;
use crate::ports::{ApiKeyStore, AuditAction, AuditEntry, AuditFilter, Cursor, Page, StoreError};
use crate::store::rows::{AuditRow, KeyRow, before};
use crate::store::sql::keys as sql;

#[async_trait]
impl ApiKeyStore for SqliteStore {
    async fn insert_key(&self, key: &ApiKey, audit_entry: &AuditEntry) -> Result<(), StoreError> {
        let mut tx = self.begin("insert_key").await?;
        sqlx::query(sql::INSERT_KEY)
            .bind(key.id)
            .bind(&key.tenant)
            .bind(&key.name)
            .bind(key.scopes.to_string())
            .bind(key.hash.bytes().as_slice())
            .bind(key.created_at)
            .bind(key.expires_at)
            .bind(key.revoked_at)
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        log(&mut tx, audit_entry).await?;
        tx.commit().await.map_err(failed)
    }

    async fn insert_first_key(&self, key: &ApiKey, audit_entry: &AuditEntry) -> Result<bool, StoreError> {
        let mut tx = self.begin("insert_first_key").await?;
        let inserted = sqlx::query(sql::INSERT_FIRST_KEY)
            .bind(key.id)
            .bind(&key.tenant)
            .bind(&key.name)
            .bind(key.scopes.to_string())
            .bind(key.hash.bytes().as_slice())
            .bind(key.created_at)
            .bind(key.expires_at)
            .bind(key.revoked_at)
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        let first = inserted.rows_affected() == 1;
        if first {
            log(&mut tx, audit_entry).await?;
        }
        tx.commit().await.map_err(failed)?;
        Ok(first)
    }

    async fn key(&self, id: Uuid) -> Result<Option<ApiKey>, StoreError> {
        let row: Option<KeyRow> =
            sqlx::query_as(sql::KEY).bind(id).fetch_optional(&self.reader).await.map_err(failed)?;
        row.map(ApiKey::try_from).transpose()
    }

    async fn keys(&self, tenant: Option<&str>) -> Result<Vec<ApiKey>, StoreError> {
        let rows: Vec<KeyRow> = sqlx::query_as(sql::KEYS).bind(tenant).fetch_all(&self.reader).await.map_err(failed)?;
        rows.into_iter().map(ApiKey::try_from).collect()
    }

    async fn revoke_key(&self, id: Uuid, at: DateTime<Utc>, audit_entry: &AuditEntry) -> Result<ApiKey, StoreError> {
        let mut tx = self.begin("revoke_key").await?;
        let revoked: Option<KeyRow> =
            sqlx::query_as(sql::REVOKE_KEY).bind(id).bind(at).fetch_optional(&mut *tx).await.map_err(failed)?;
        let Some(revoked) = revoked else { return self.key(id).await?.ok_or(StoreError::NotFound) };
        log(&mut tx, audit_entry).await?;
        tx.commit().await.map_err(failed)?;
        revoked.try_into()
    }

    async fn append_audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let mut tx = self.begin("append_audit").await?;
        log(&mut tx, entry).await?;
        tx.commit().await.map_err(failed)
    }

    async fn audit(
        &self,
        tenant: &str,
        filter: AuditFilter,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<AuditEntry>, StoreError> {
        let rows: Vec<AuditRow> = sqlx::query_as(sql::AUDIT)
            .bind(tenant)
            .bind(before(cursor))
            .bind(i64::from(limit) + 1)
            .bind(filter.since)
            .bind(filter.action.map(AuditAction::name))
            .fetch_all(&self.reader)
            .await
            .map_err(failed)?;
        Ok(Page::new(rows.into_iter().map(AuditEntry::from).collect(), limit, |entry| entry.id))
    }
}

/// Writes a line of the audit log beside what it tells of.
pub(super) async fn log(connection: &mut SqliteConnection, entry: &AuditEntry) -> Result<(), StoreError> {
    sqlx::query(sql::APPEND_AUDIT)
        .bind(entry.id)
        .bind(entry.at)
        .bind(&entry.tenant)
        .bind(entry.key)
        .bind(&entry.actor)
        .bind(&entry.action)
        .bind(&entry.object)
        .bind(&entry.detail)
        .execute(connection)
        .await
        .map_err(failed)?;
    Ok(())
}
