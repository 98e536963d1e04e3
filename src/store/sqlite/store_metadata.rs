//! Pinned values and the rotation of the master key. No other process uses the store meanwhile: its folder is locked.

use async_trait::async_trait;
use uuid::Uuid;

use super::SqliteStore;
use super::error::{TransactionError, failed};
use super::pool::run_transaction;
use crate::ports::{HASHING_KEY_PIN, MASTER_KEY_PIN, MetadataStore, Rotation, RotationCounts, StoreError};
use crate::store::rows::count_key;
use crate::store::sql::pins as sql;

#[async_trait]
impl MetadataStore for SqliteStore {
    async fn pin(&self, name: &str, value: &[u8]) -> Result<Vec<u8>, StoreError> {
        run_transaction("pin", || async {
            let mut tx = self.begin().await?;
            sqlx::query(sql::PIN).bind(name).bind(value).execute(&mut *tx).await?;
            let pinned = sqlx::query_scalar(sql::PINNED).bind(name).fetch_one(&mut *tx).await?;
            tx.commit().await?;
            Ok(pinned)
        })
        .await
    }

    async fn pinned(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        sqlx::query_scalar(sql::PINNED).bind(name).fetch_optional(&self.reader).await.map_err(failed)
    }

    async fn rotate(&self, rotation: Rotation<'_>) -> Result<RotationCounts, StoreError> {
        let rotated = run_transaction("rotate", || self.try_rotate(&rotation)).await?;
        // the journal still has what was wrapped under the old key
        self.empty_journal().await?;
        Ok(rotated)
    }
}

impl SqliteStore {
    async fn try_rotate(&self, rotation: &Rotation<'_>) -> Result<RotationCounts, TransactionError> {
        let mut tx = self.begin().await?;
        let pinned: Option<Vec<u8>> =
            sqlx::query_scalar(sql::PINNED).bind(MASTER_KEY_PIN).fetch_optional(&mut *tx).await?;
        if pinned.as_deref() != Some(&rotation.from) {
            return Err(StoreError::Conflict.into());
        }
        let mut rotated = RotationCounts::default();
        for (purpose, keys, set) in sql::KEYS {
            let mut last = Uuid::nil();
            loop {
                let some: Vec<(Uuid, Vec<u8>)> =
                    sqlx::query_as(keys).bind(last).bind(sql::KEYS_AT_ONCE).fetch_all(&mut *tx).await?;
                let Some(&(id, _)) = some.last() else { break };
                last = id;
                for (id, wrapped) in some {
                    let rewrapped = (rotation.rewrap)(purpose, id, &wrapped)?;
                    sqlx::query(set).bind(id).bind(rewrapped).execute(&mut *tx).await?;
                    count_key(&mut rotated, purpose);
                }
            }
        }
        for (name, value) in [(HASHING_KEY_PIN, rotation.hashing_key.as_slice()), (MASTER_KEY_PIN, &rotation.to)] {
            sqlx::query(sql::SET_PIN).bind(name).bind(value).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok(rotated)
    }
}
