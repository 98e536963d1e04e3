//! Columns of chunks, and the purging of datasets.

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use uuid::Uuid;

use super::backend::log;
use super::error::failed;
use super::pool::run_transaction;
use super::{CHUNKS_PER_DELETE, SqliteStore};
use crate::ports::{AuditEntry, DatasetRecord, DatasetStore, StoreError};
use crate::store::sql::{datasets as sql, people, releases};

/// Takes a JSON list of columns. Each is looked up by itself: the columns of a chunk do not lie side by side.
const GET_COLUMNS: &str = "\
-- get_columns
SELECT (SELECT payload FROM column_chunks WHERE dataset_id = $1 AND column_no = w.value AND chunk_no = $2)
FROM json_each($3) AS w ORDER BY w.key";

impl SqliteStore {
    pub(in crate::store) async fn read_columns(
        &self,
        dataset: Uuid,
        chunk_no: u32,
        columns: &[u32],
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        run_sql!(query_scalar.fetch_all, &self.reader, GET_COLUMNS, dataset, i64::from(chunk_no), Json(columns))
            .map_err(failed)
    }

    pub(in crate::store) async fn purge(
        &self,
        tenant: &str,
        id: Uuid,
        at: DateTime<Utc>,
        audit_entry: &AuditEntry,
    ) -> Result<DatasetRecord, StoreError> {
        // the key first: after an interruption the rows are unreadable, and the sweep removes them
        run_transaction("purge_dataset", || async {
            let mut tx = self.begin().await?;
            let marked = run_sql!(query.execute, &mut *tx, sql::MARK_PURGED, id, at, tenant)?;
            if marked.rows_affected() > 0 {
                log(&mut tx, audit_entry).await?;
            }
            run_sql!(query.execute, &mut *tx, sql::DELETE_DATASET_KEY, id)?;
            Ok(tx.commit().await?)
        })
        .await?;
        let purged = self.dataset(tenant, id).await?.ok_or(StoreError::NotFound)?;
        self.delete_chunks(id).await?;
        self.empty_journal().await?;
        Ok(purged)
    }

    /// Deletes the key of an upload that is no dataset, or of a purged one, then its chunks, a few in each transaction.
    pub(in crate::store) async fn delete_chunks(&self, dataset: Uuid) -> Result<(), StoreError> {
        run_transaction("delete_chunks", || async {
            let mut tx = self.begin().await?;
            run_sql!(query.execute, &mut *tx, sql::DELETE_DATASET_KEY, dataset)?;
            run_sql!(query.execute, &mut *tx, releases::DELETE_INTERNAL_REPORTS_OF_DATASET, dataset)?;
            run_sql!(query.execute, &mut *tx, people::DELETE_EVIDENCE, dataset)?;
            run_sql!(query.execute, &mut *tx, people::DELETE_PERSON_PIECES, dataset)?;
            Ok(tx.commit().await?)
        })
        .await?;
        let delete_some = || async {
            let mut tx = self.begin().await?;
            let deleted = run_sql!(query.execute, &mut *tx, sql::DELETE_SOME_CHUNKS, dataset, CHUNKS_PER_DELETE)?;
            tx.commit().await?;
            Ok(deleted.rows_affected())
        };
        while run_transaction("delete_chunks", delete_some).await? > 0 {}
        Ok(())
    }
}
