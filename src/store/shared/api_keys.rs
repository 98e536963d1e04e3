//! API keys and the audit log.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::identity::ApiKey;
use crate::ports::{ApiKeyStore, AuditAction, AuditEntry, AuditFilter, Cursor, Page, StoreError};
use crate::store::rows::{AuditRow, KeyRow, before};
use crate::store::sql::keys as sql;

both_stores! {
    #[async_trait]
    impl ApiKeyStore for Backend {
        async fn insert_key(&self, key: &ApiKey, audit_entry: &AuditEntry) -> Result<(), StoreError> {
            run_transaction("insert_key", || async {
                let mut tx = self.begin().await?;
                insert(&mut tx, sql::INSERT_KEY, key).await?;
                log(&mut tx, audit_entry).await?;
                Ok(tx.commit().await?)
            })
            .await
        }

        async fn insert_first_key(&self, key: &ApiKey, audit_entry: &AuditEntry) -> Result<bool, StoreError> {
            run_transaction("insert_first_key", || async {
                let mut tx = self.begin().await?;
                lock_keys(&mut tx).await?;
                let first = insert(&mut tx, sql::INSERT_FIRST_KEY, key).await? == 1;
                if first {
                    log(&mut tx, audit_entry).await?;
                }
                tx.commit().await?;
                Ok(first)
            })
            .await
        }

        async fn key(&self, id: Uuid) -> Result<Option<ApiKey>, StoreError> {
            let row: Option<KeyRow> =
                sqlx::query_as(sql::KEY).bind(id).fetch_optional(self.reader()).await.map_err(failed)?;
            row.map(ApiKey::try_from).transpose()
        }

        async fn keys(&self, tenant: Option<&str>) -> Result<Vec<ApiKey>, StoreError> {
            let rows: Vec<KeyRow> =
                sqlx::query_as(sql::KEYS).bind(tenant).fetch_all(self.reader()).await.map_err(failed)?;
            rows.into_iter().map(ApiKey::try_from).collect()
        }

        async fn revoke_key(
            &self,
            id: Uuid,
            at: DateTime<Utc>,
            audit_entry: &AuditEntry,
        ) -> Result<ApiKey, StoreError> {
            match run_transaction("revoke_key", || self.try_revoke_key(id, at, audit_entry)).await? {
                Some(revoked) => revoked.try_into(),
                None => self.key(id).await?.ok_or(StoreError::NotFound),
            }
        }

        async fn append_audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
            self.append_entry(entry).await
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
                .fetch_all(self.reader())
                .await
                .map_err(failed)?;
            Ok(Page::new(rows.into_iter().map(AuditEntry::from).collect(), limit, |entry| entry.id))
        }
    }

    impl Backend {
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

    /// Inserts a key and returns the number of inserted rows.
    async fn insert(connection: &mut Connection, statement: &'static str, key: &ApiKey) -> Result<u64, sqlx::Error> {
        let inserted = sqlx::query(statement)
            .bind(key.id)
            .bind(&key.tenant)
            .bind(&key.name)
            .bind(key.scopes.to_string())
            .bind(key.hash.bytes().as_slice())
            .bind(key.created_at)
            .bind(key.expires_at)
            .bind(key.revoked_at)
            .execute(connection)
            .await?;
        Ok(inserted.rows_affected())
    }

    /// Appends an entry to the audit log, in the transaction of the act that it records.
    pub(in crate::store) async fn log(connection: &mut Connection, entry: &AuditEntry) -> Result<(), sqlx::Error> {
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
}
