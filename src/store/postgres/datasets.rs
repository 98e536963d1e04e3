//! Purging of datasets, and the fingerprint pieces of several datasets.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::backend::log;
use super::error::failed;
use super::locks::lock_dataset;
use super::pool::run_transaction;
use super::store_metadata::DATASET_KEYS;
use super::{CHUNKS_PER_DELETE, PostgresStore};
use crate::ports::{AuditEntry, DatasetRecord, DatasetStore, FingerprintPiece, StoreError};
use crate::store::sql::{datasets as sql, fingerprints, people, releases};

/// Takes arrays of dataset ids and of piece numbers, in equal order.
const FINGERPRINT_PIECES: &str = "\
-- people_pieces
SELECT w.at - 1, p.hashes FROM UNNEST($2, $3) WITH ORDINALITY AS w (dataset_id, piece_no, at)
JOIN people_pieces AS p ON p.dataset_id = w.dataset_id AND p.piece_no = w.piece_no
JOIN datasets AS d ON d.id = p.dataset_id
WHERE d.tenant = $1";

impl PostgresStore {
    pub(in crate::store) async fn find_pieces(
        &self,
        tenant: &str,
        wanted: &[(Uuid, FingerprintPiece)],
    ) -> Result<Vec<(i64, Vec<u8>)>, StoreError> {
        let (datasets, pieces): (Vec<Uuid>, Vec<i64>) =
            wanted.iter().map(|(dataset, piece)| (dataset, piece.number())).unzip();
        run_sql!(query_as.fetch_all, &self.pool, FINGERPRINT_PIECES, tenant, datasets, pieces).map_err(failed)
    }

    pub(in crate::store) async fn purge(
        &self,
        tenant: &str,
        id: Uuid,
        at: DateTime<Utc>,
        audit_entry: &AuditEntry,
    ) -> Result<DatasetRecord, StoreError> {
        // the key first: after an interruption the rows are unreadable, and the sweep removes them
        let purge = || async {
            let mut tx = self.begin().await?;
            lock_dataset(&mut tx, id).await?;
            let marked = run_sql!(query.execute, &mut *tx, sql::MARK_PURGED, id, at, tenant)?;
            if marked.rows_affected() > 0 {
                run_sql!(query.execute, &mut *tx, sql::DELETE_DATASET_KEY, id)?;
                log(&mut tx, audit_entry).await?;
            }
            Ok(tx.commit().await?)
        };
        run_transaction("purge_dataset", purge).await?;
        let purged = self.dataset(tenant, id).await?.ok_or(StoreError::NotFound)?;
        self.scour(&[DATASET_KEYS]).await;
        self.delete_chunks(id).await?;
        Ok(purged)
    }

    /// Deletes the key of an upload that is no dataset, or of a purged one, then its chunks, a few in each transaction.
    pub(in crate::store) async fn delete_chunks(&self, dataset: Uuid) -> Result<(), StoreError> {
        let key = || async {
            let mut tx = self.begin().await?;
            lock_dataset(&mut tx, dataset).await?;
            run_sql!(query.execute, &mut *tx, sql::DELETE_DATASET_KEY, dataset)?;
            run_sql!(query.execute, &mut *tx, releases::DELETE_INTERNAL_REPORTS_OF_DATASET, dataset)?;
            run_sql!(query.execute, &mut *tx, fingerprints::DELETE_PIECES, dataset)?;
            run_sql!(query.execute, &mut *tx, people::DELETE_EVIDENCE, dataset)?;
            run_sql!(query.execute, &mut *tx, people::DELETE_PERSON_PIECES, dataset)?;
            Ok(tx.commit().await?)
        };
        run_transaction("delete_dataset_key", key).await?;
        let some = || async {
            let mut tx = self.begin().await?;
            lock_dataset(&mut tx, dataset).await?;
            let deleted = run_sql!(query.execute, &mut *tx, sql::DELETE_SOME_CHUNKS, dataset, CHUNKS_PER_DELETE)?;
            tx.commit().await?;
            Ok(deleted.rows_affected())
        };
        while run_transaction("delete_chunks", some).await? > 0 {}
        Ok(())
    }
}
