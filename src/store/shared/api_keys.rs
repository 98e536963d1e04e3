//! API keys and the audit log.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::identity::ApiKey;
use crate::ports::{ApiKeyStore, AuditAction, AuditEntry, AuditFilter, Cursor, Page, StoreError};
use crate::store::rows::{AuditRow, KeyRow, before, records};
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
                run_sql!(query_as.fetch_optional, self.reader(), sql::KEY, id).map_err(failed)?;
            row.map(ApiKey::try_from).transpose()
        }

        async fn keys(&self, tenant: Option<&str>) -> Result<Vec<ApiKey>, StoreError> {
            let rows: Vec<KeyRow> =
                run_sql!(query_as.fetch_all, self.reader(), sql::KEYS, tenant).map_err(failed)?;
            records(rows)
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
            let rows: Vec<AuditRow> = run_sql!(
                query_as.fetch_all, self.reader(), sql::AUDIT, tenant, before(cursor), i64::from(limit) + 1,
                filter.since, filter.action.map(AuditAction::as_str)
            ).map_err(failed)?;
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
            let revoked = run_sql!(query_as.fetch_optional, &mut *tx, sql::REVOKE_KEY, id, at)?;
            if revoked.is_some() {
                log(&mut tx, audit_entry).await?;
            }
            tx.commit().await?;
            Ok(revoked)
        }
    }

    /// Inserts a key and returns the number of inserted rows.
    async fn insert(connection: &mut Connection, statement: &'static str, key: &ApiKey) -> Result<u64, sqlx::Error> {
        let inserted = run_sql!(
            query.execute, connection, statement, key.id, &key.tenant, &key.name, key.scopes.to_string(),
            key.hash.bytes().as_slice(), key.created_at, key.expires_at, key.revoked_at, Json(&key.populations)
        )?;
        Ok(inserted.rows_affected())
    }

    /// Appends an entry to the audit log, in the transaction of the act that it records.
    pub(in crate::store) async fn log(connection: &mut Connection, entry: &AuditEntry) -> Result<(), sqlx::Error> {
        run_sql!(
            query.execute, connection, sql::APPEND_AUDIT, entry.id, entry.at, &entry.tenant, entry.key, &entry.actor,
            &entry.action, &entry.object, &entry.detail
        )?;
        Ok(())
    }
}
