//! Writing of part chunks and of audit entries without an act.

use uuid::Uuid;

use super::PostgresStore;
use super::backend::log;
use super::error::failed;
use super::pool::run_transaction;
use crate::ports::{AuditEntry, PartChunkRecord, StoreError};
use crate::store::rows::stored;

/// The shared text, holding the job's row: an attempt that ends meanwhile gets no more parts.
const PUT_PART_CHUNK: &str = "\
-- put_part_chunk
INSERT INTO part_chunks (job_id, attempt, file, chunk_no, first_row, row_count, payload)
SELECT id, attempt, $3, $4, $5, $6, $7 FROM jobs WHERE id = $1 AND attempt = $2 AND status = 'running' FOR SHARE";

impl PostgresStore {
    pub(in crate::store) async fn write_part_chunk(
        &self,
        job: Uuid,
        attempt: u32,
        chunk: &PartChunkRecord,
    ) -> Result<(), StoreError> {
        let put = run_transaction("put_part_chunk", || async {
            let put = run_sql!(
                query.execute,
                &self.pool,
                PUT_PART_CHUNK,
                job,
                i64::from(attempt),
                &chunk.file,
                i64::from(chunk.number),
                stored(chunk.first_row)?,
                i64::from(chunk.rows),
                &chunk.payload
            )?;
            Ok(put.rows_affected())
        });
        if put.await? == 0 { Err(StoreError::Conflict) } else { Ok(()) }
    }

    pub(in crate::store) async fn append_entry(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await.map_err(failed)?;
        log(&mut connection, entry).await.map_err(failed)
    }
}
