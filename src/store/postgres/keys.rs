//! API keys and the audit log.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::{Executor, PgConnection};
use uuid::Uuid;

use super::PostgresStore;
use super::error::{TransactionError, failed};
use super::pool::retried;
use crate::identity::ApiKey;
use crate::ports::{ApiKeyStore, AuditAction, AuditEntry, AuditFilter, Cursor, Page, StoreError};
use crate::store::rows::{AuditRow, KeyRow, before};
use crate::store::sql::keys as sql;

/// Readers go on; whoever would write a key waits.
const LOCK_KEYS: &str = "\
-- lock_keys
LOCK TABLE api_keys IN SHARE ROW EXCLUSIVE MODE";

#[async_trait]
impl ApiKeyStore for PostgresStore {
    async fn insert_key(&self, key: &ApiKey, audit_entry: &AuditEntry) -> Result<(), StoreError> {
        retried("insert_key", || self.try_insert_key(key, audit_entry)).await
    }

    async fn insert_first_key(&self, key: &ApiKey, audit_entry: &AuditEntry) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await.map_err(failed)?;
        // the absence of a key can be locked in no other way
        transaction.execute(LOCK_KEYS).await.map_err(failed)?;
        let inserted = sqlx::query(sql::INSERT_FIRST_KEY)
            .bind(key.id)
            .bind(&key.tenant)
            .bind(&key.name)
            .bind(key.scopes.to_string())
            .bind(key.hash.bytes().as_slice())
            .bind(key.created_at)
            .bind(key.expires_at)
            .bind(key.revoked_at)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        let first = inserted.rows_affected() == 1;
        if first {
            log(&mut transaction, audit_entry).await.map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)?;
        Ok(first)
    }

    async fn key(&self, id: Uuid) -> Result<Option<ApiKey>, StoreError> {
        let row: Option<KeyRow> = sqlx::query_as(sql::KEY).bind(id).fetch_optional(&self.pool).await.map_err(failed)?;
        row.map(ApiKey::try_from).transpose()
    }

    async fn keys(&self, tenant: Option<&str>) -> Result<Vec<ApiKey>, StoreError> {
        let rows: Vec<KeyRow> = sqlx::query_as(sql::KEYS).bind(tenant).fetch_all(&self.pool).await.map_err(failed)?;
        rows.into_iter().map(ApiKey::try_from).collect()
    }

    async fn revoke_key(&self, id: Uuid, at: DateTime<Utc>, audit_entry: &AuditEntry) -> Result<ApiKey, StoreError> {
        match retried("revoke_key", || self.try_revoke_key(id, at, audit_entry)).await? {
            Some(revoked) => revoked.try_into(),
            None => self.key(id).await?.ok_or(StoreError::NotFound),
        }
    }

    async fn append_audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await.map_err(failed)?;
        log(&mut connection, entry).await.map_err(failed)
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
            .fetch_all(&self.pool)
            .await
            .map_err(failed)?;
        Ok(Page::new(rows.into_iter().map(AuditEntry::from).collect(), limit, |entry| entry.id))
    }
}

impl PostgresStore {
    async fn try_insert_key(&self, key: &ApiKey, audit_entry: &AuditEntry) -> Result<(), TransactionError> {
        let mut tx = self.begin().await?;
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
            .await?;
        log(&mut tx, audit_entry).await?;
        Ok(tx.commit().await?)
    }

    async fn try_revoke_key(
        &self,
        id: Uuid,
        at: DateTime<Utc>,
        audit_entry: &AuditEntry,
    ) -> Result<Option<KeyRow>, TransactionError> {
        let mut tx = self.begin().await?;
        let revoked = sqlx::query_as(sql::REVOKE_KEY).bind(id).bind(at).fetch_optional(&mut *tx).await?;
        if revoked.is_some() {
            log(&mut tx, audit_entry).await?;
        }
        tx.commit().await?;
        Ok(revoked)
    }
}

/// Writes a line of the audit log beside what it tells of.
pub(super) async fn log(connection: &mut PgConnection, entry: &AuditEntry) -> Result<(), sqlx::Error> {
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
        .await?;
    Ok(())
}
