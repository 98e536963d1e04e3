//! Pinned values and the rotation of the master key. No other process uses the store meanwhile: its folder is locked.

use async_trait::async_trait;

use super::SqliteStore;
use super::error::{SqliteTransactionError, failed};
use super::pool::run_transaction;
use crate::ports::{MetadataStore, Rotation, RotationCounts, StoreError};
use crate::store::shared::store_metadata::sqlite::rewrap_keys;
use crate::store::sql::pins as sql;

#[async_trait]
impl MetadataStore for SqliteStore {
    async fn pin(&self, name: &str, value: &[u8]) -> Result<Vec<u8>, StoreError> {
        run_transaction("pin", || async {
            let mut tx = self.begin().await?;
            run_sql!(query.execute, &mut *tx, sql::PIN, name, value)?;
            let pinned = run_sql!(query_scalar.fetch_one, &mut *tx, sql::PINNED, name)?;
            tx.commit().await?;
            Ok(pinned)
        })
        .await
    }

    async fn pinned(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        run_sql!(query_scalar.fetch_optional, &self.reader, sql::PINNED, name).map_err(failed)
    }

    async fn rotate(&self, rotation: Rotation<'_>) -> Result<RotationCounts, StoreError> {
        let rotated = run_transaction("rotate", || self.try_rotate(&rotation)).await?;
        // the journal still has what was wrapped under the old key
        self.empty_journal().await?;
        Ok(rotated)
    }
}

impl SqliteStore {
    async fn try_rotate(&self, rotation: &Rotation<'_>) -> Result<RotationCounts, SqliteTransactionError> {
        let mut tx = self.begin().await?;
        let rotated = rewrap_keys(&mut tx, rotation).await?;
        tx.commit().await?;
        Ok(rotated)
    }
}
