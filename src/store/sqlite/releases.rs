//! Writing of part chunks and of audit entries without an act.

use uuid::Uuid;

use super::SqliteStore;
use super::backend::log;
use super::pool::run_transaction;
use crate::ports::{AuditEntry, PartChunkRecord, StoreError};
use crate::store::rows::stored;
use crate::store::sql::releases as sql;

impl SqliteStore {
    pub(in crate::store) async fn write_part_chunk(
        &self,
        job: Uuid,
        attempt: u32,
        chunk: &PartChunkRecord,
    ) -> Result<(), StoreError> {
        run_transaction("put_part_chunk", || async {
            let mut tx = self.begin().await?;
            let put = run_sql!(
                query.execute,
                &mut *tx,
                sql::PUT_PART_CHUNK,
                job,
                i64::from(attempt),
                &chunk.file,
                i64::from(chunk.number),
                stored(chunk.first_row)?,
                i64::from(chunk.rows),
                &chunk.payload
            )?;
            if put.rows_affected() == 0 {
                return Err(StoreError::Conflict.into());
            }
            Ok(tx.commit().await?)
        })
        .await
    }

    pub(in crate::store) async fn append_entry(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        run_transaction("append_audit", || async {
            let mut tx = self.begin().await?;
            log(&mut tx, entry).await?;
            Ok(tx.commit().await?)
        })
        .await
    }
}
