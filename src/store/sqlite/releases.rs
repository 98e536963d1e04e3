//! Writing of part chunks and of audit entries without an act.

use uuid::Uuid;

use super::SqliteStore;
use super::backend::log;
use super::pool::run_transaction;
use crate::ports::{AuditEntry, StoreError};
use crate::store::rows::{NewPartChunk, stored};
use crate::store::sql::parts as sql;

impl SqliteStore {
    /// Keeps a chunk, and gives the key of its object if it has one.
    pub(in crate::store) async fn write_part_chunk(
        &self,
        job: Uuid,
        attempt: u32,
        new: NewPartChunk<'_>,
    ) -> Result<Option<String>, StoreError> {
        let chunk = new.chunk;
        run_transaction("put_part_chunk", || async {
            let mut tx = self.begin().await?;
            let put: Option<Option<String>> = run_sql!(
                query_scalar.fetch_optional,
                &mut *tx,
                sql::PUT_PART_CHUNK,
                job,
                i64::from(attempt),
                &chunk.file,
                i64::from(chunk.number),
                stored(chunk.first_row)?,
                i64::from(chunk.rows),
                new.payload,
                &new.object,
                &new.object_sha256,
                new.object_bytes
            )?;
            let object = put.ok_or(StoreError::Conflict)?;
            tx.commit().await?;
            Ok(object)
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
