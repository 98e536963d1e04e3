//! Writing of part chunks and of audit entries without an act.

use uuid::Uuid;

use super::PostgresStore;
use super::backend::log;
use super::error::failed;
use super::pool::run_transaction;
use crate::ports::{AuditEntry, StoreError};
use crate::store::rows::{NewPartChunk, stored};
use crate::store::sql::parts::put_part_chunk;

/// Holds the job's row: an attempt that ends meanwhile gets no more parts.
const PUT_PART_CHUNK: &str = put_part_chunk!(" FOR SHARE");

impl PostgresStore {
    /// Keeps a chunk, and gives the key of its object if it has one.
    pub(in crate::store) async fn write_part_chunk(
        &self,
        job: Uuid,
        attempt: u32,
        new: NewPartChunk<'_>,
    ) -> Result<Option<String>, StoreError> {
        let chunk = new.chunk;
        let put = run_transaction("put_part_chunk", || async {
            let put: Option<Option<String>> = run_sql!(
                query_scalar.fetch_optional,
                &self.pool,
                PUT_PART_CHUNK,
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
            Ok(put)
        });
        put.await?.ok_or(StoreError::Conflict)
    }

    pub(in crate::store) async fn append_entry(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await.map_err(failed)?;
        log(&mut connection, entry).await.map_err(failed)
    }
}
