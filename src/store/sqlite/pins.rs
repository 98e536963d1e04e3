//! What is fixed, and the rotation of the master key. No other process has the store meanwhile: its folder is locked.

use async_trait::async_trait;
use uuid::Uuid;

use super::SqliteStore;
use super::error::failed;
use super::tx::Tx;
use crate::ports::{HASHING_KEY_PIN, MASTER_KEY_PIN, MetadataStore, Rotation, RotationCounts, StoreError};
use crate::store::rows::count_key;
use crate::store::sql::pins as sql;

#[async_trait]
impl MetadataStore for SqliteStore {
    async fn pin(&self, name: &str, value: &[u8]) -> Result<Vec<u8>, StoreError> {
        let mut tx = self.begin("pin").await?;
        sqlx::query(sql::PIN).bind(name).bind(value).execute(&mut *tx).await.map_err(failed)?;
        let pinned = sqlx::query_scalar(sql::PINNED).bind(name).fetch_one(&mut *tx).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(pinned)
    }

    async fn pinned(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        sqlx::query_scalar(sql::PINNED).bind(name).fetch_optional(&self.reader).await.map_err(failed)
    }

    async fn rotate(&self, rotation: Rotation<'_>) -> Result<RotationCounts, StoreError> {
        let mut tx = self.begin("rotate").await?;
        let pinned: Option<Vec<u8>> =
            sqlx::query_scalar(sql::PINNED).bind(MASTER_KEY_PIN).fetch_optional(&mut *tx).await.map_err(failed)?;
        if pinned.as_deref() != Some(&rotation.from) {
            return Err(StoreError::Conflict);
        }
        let mut rotated = RotationCounts::default();
        for (purpose, keys, set) in sql::KEYS {
            let mut last = Uuid::nil();
            loop {
                let some: Vec<(Uuid, Vec<u8>)> = sqlx::query_as(keys)
                    .bind(last)
                    .bind(sql::KEYS_AT_ONCE)
                    .fetch_all(&mut *tx)
                    .await
                    .map_err(failed)?;
                let Some(&(id, _)) = some.last() else { break };
                last = id;
                for (id, wrapped) in some {
                    let anew = (rotation.rewrap)(purpose, id, &wrapped)?;
                    sqlx::query(set).bind(id).bind(anew).execute(&mut *tx).await.map_err(failed)?;
                    count_key(&mut rotated, purpose);
                }
            }
        }
        set_pin(&mut tx, HASHING_KEY_PIN, &rotation.hashing_key).await?;
        set_pin(&mut tx, MASTER_KEY_PIN, &rotation.to).await?;
        tx.commit().await.map_err(failed)?;
        // what was wrapped under the old key
        self.empty_journal().await?;
        Ok(rotated)
    }
}

async fn set_pin(tx: &mut Tx, name: &str, value: &[u8]) -> Result<(), StoreError> {
    sqlx::query(sql::SET_PIN).bind(name).bind(value).execute(&mut **tx).await.map_err(failed)?;
    Ok(())
}
