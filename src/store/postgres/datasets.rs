//! Datasets and their chunks.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::document::JsonText;
use super::error::{TransactionError, failed};
use super::keys::log;
use super::people::{SHARE_DATASET, lock_series};
use super::pins::DATASET_KEYS;
use super::pool::retried;
use super::{CHUNKS_PER_DELETE, PostgresStore};
use crate::ports::{AuditEntry, ChunkEncryptor, Cursor, DatasetRecord, DatasetStore, NewFingerprint, Page, StoreError};
use crate::store::rows::{DatasetRow, before, place, stored};
use crate::store::sql::{datasets as sql, people as by_people, releases};
use crate::vault::{Ciphertext, CiphertextContext};

/// Whether a dataset is visible decides what may become of its chunks, and a dataset that is not there has no row to lock.
const LOCK_DATASET: &str = "\
-- lock_dataset
SELECT pg_advisory_xact_lock($1)";

#[async_trait]
impl DatasetStore for PostgresStore {
    async fn begin_upload(&self, dataset: Uuid, wrapped_key: &[u8]) -> Result<(), StoreError> {
        let begin = || async {
            let mut tx = self.begin().await?;
            self.same_master_key(&mut tx).await?;
            sqlx::query(sql::INSERT_DATASET_KEY).bind(dataset).bind(wrapped_key).execute(&mut *tx).await?;
            Ok(tx.commit().await?)
        };
        retried("begin_upload", begin).await
    }

    async fn put_column_chunks(
        &self,
        dataset: Uuid,
        chunk_no: u32,
        columns: &[(u32, Ciphertext)],
    ) -> Result<(), StoreError> {
        retried("put_column_chunks", || self.try_put_column_chunks(dataset, chunk_no, columns)).await
    }

    async fn get_column_chunk(
        &self,
        dataset: Uuid,
        chunk_no: u32,
        column_no: u32,
    ) -> Result<Option<Ciphertext>, StoreError> {
        let payload = sqlx::query_scalar(sql::GET_COLUMN_CHUNK)
            .bind(dataset)
            .bind(i64::from(column_no))
            .bind(i64::from(chunk_no))
            .fetch_optional(&self.pool)
            .await
            .map_err(failed)?;
        Ok(payload.map(Ciphertext::from_stored))
    }

    async fn admit_dataset(
        &self,
        dataset: &DatasetRecord,
        people: Option<&NewFingerprint>,
        audit_entry: &AuditEntry,
    ) -> Result<bool, StoreError> {
        retried("admit_dataset", || self.try_admit_dataset(dataset, people, audit_entry)).await
    }

    async fn discard_upload(&self, id: Uuid) -> Result<(), StoreError> {
        self.delete_chunks(id).await
    }

    async fn dataset(&self, tenant: &str, id: Uuid) -> Result<Option<DatasetRecord>, StoreError> {
        let row: Option<DatasetRow> =
            sqlx::query_as(sql::DATASET).bind(id).bind(tenant).fetch_optional(&self.pool).await.map_err(failed)?;
        row.map(DatasetRecord::try_from).transpose()
    }

    async fn datasets(
        &self,
        tenant: &str,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<DatasetRecord>, StoreError> {
        let rows: Vec<DatasetRow> = sqlx::query_as(sql::DATASETS)
            .bind(before(cursor))
            .bind(i64::from(limit) + 1)
            .bind(tenant)
            .fetch_all(&self.pool)
            .await
            .map_err(failed)?;
        let records = rows.into_iter().map(DatasetRecord::try_from).collect::<Result<_, _>>()?;
        Ok(Page::new(records, limit, |record| record.id))
    }

    async fn purge_dataset(
        &self,
        tenant: &str,
        id: Uuid,
        at: DateTime<Utc>,
        audit_entry: &AuditEntry,
    ) -> Result<DatasetRecord, StoreError> {
        // the key first: should the rest be interrupted, nobody can read the rows any more and the sweep removes them
        let purge = || async {
            let mut tx = self.begin().await?;
            lock(&mut tx, LOCK_DATASET, id).await?;
            let marked = sqlx::query(sql::MARK_PURGED).bind(id).bind(at).bind(tenant).execute(&mut *tx).await?;
            if marked.rows_affected() > 0 {
                sqlx::query(sql::DELETE_DATASET_KEY).bind(id).execute(&mut *tx).await?;
                log(&mut tx, audit_entry).await?;
            }
            Ok(tx.commit().await?)
        };
        retried("purge_dataset", purge).await?;
        let purged = self.dataset(tenant, id).await?.ok_or(StoreError::NotFound)?;
        self.scour(&[DATASET_KEYS]).await;
        self.delete_chunks(id).await?;
        Ok(purged)
    }

    async fn unencrypted_datasets(&self) -> Result<Vec<Uuid>, StoreError> {
        sqlx::query_scalar(sql::UNSEALED_DATASETS).fetch_all(&self.pool).await.map_err(failed)
    }

    async fn encrypt_dataset(
        &self,
        dataset: Uuid,
        wrapped_key: &[u8],
        encrypt: ChunkEncryptor<'_>,
    ) -> Result<(), StoreError> {
        retried("seal_dataset", || self.try_encrypt_dataset(dataset, wrapped_key, encrypt)).await
    }
}

impl PostgresStore {
    async fn try_put_column_chunks(
        &self,
        dataset: Uuid,
        chunk_no: u32,
        columns: &[(u32, Ciphertext)],
    ) -> Result<(), TransactionError> {
        let mut tx = self.begin().await?;
        lock(&mut tx, SHARE_DATASET, dataset).await?;
        for (column_no, payload) in columns {
            let put = sqlx::query(sql::PUT_COLUMN_CHUNK)
                .bind(dataset)
                .bind(i64::from(*column_no))
                .bind(i64::from(chunk_no))
                .bind(payload.as_bytes())
                .execute(&mut *tx)
                .await?;
            if put.rows_affected() == 0 {
                return Err(StoreError::Conflict.into());
            }
        }
        Ok(tx.commit().await?)
    }

    async fn try_admit_dataset(
        &self,
        dataset: &DatasetRecord,
        people: Option<&NewFingerprint>,
        audit_entry: &AuditEntry,
    ) -> Result<bool, TransactionError> {
        let mut tx = self.begin().await?;
        lock(&mut tx, LOCK_DATASET, dataset.id).await?;
        let chunks: i64 = sqlx::query_scalar(sql::COUNT_CHUNKS).bind(dataset.id).fetch_one(&mut *tx).await?;
        if chunks != i64::from(dataset.chunks) {
            return Err(StoreError::Conflict.into());
        }
        let inserted = sqlx::query(sql::INSERT_DATASET)
            .bind(dataset.id)
            .bind(&dataset.tenant)
            .bind(&dataset.name)
            .bind(&dataset.series)
            .bind(dataset.same_people)
            .bind(&dataset.same_people_reason)
            .bind(dataset.record_key.as_ref().map(JsonText))
            .bind(&dataset.subject)
            .bind(dataset.max_rows_per_subject.map(stored).transpose()?)
            .bind(dataset.created_at)
            .bind(stored(dataset.rows)?)
            .bind(stored(dataset.bytes)?)
            .bind(&dataset.format)
            .bind(dataset.content_hash.as_slice())
            .bind(i64::from(dataset.chunks))
            .bind(dataset.profiles.as_ref().map(Ciphertext::as_bytes))
            .bind(dataset.purged_at)
            .execute(&mut *tx)
            .await?;
        if inserted.rows_affected() == 0 {
            return Err(StoreError::Conflict.into());
        }
        // from here on no other upload of the tenant becomes visible before this one
        let before = lock_series(&mut tx, &dataset.tenant, by_people::UPLOADS).await?;
        if let Some(NewFingerprint { people, uploads }) = people {
            if *uploads != before {
                return Ok(false);
            }
            sqlx::query(by_people::INSERT_PEOPLE)
                .bind(dataset.id)
                .bind(JsonText(people))
                .bind(JsonText(&dataset.overlaps))
                .execute(&mut *tx)
                .await?;
        }
        let uploads = sqlx::query(by_people::BUMP_SERIES).bind(&dataset.tenant).bind(by_people::UPLOADS);
        uploads.execute(&mut *tx).await?;
        log(&mut tx, audit_entry).await?;
        tx.commit().await?;
        Ok(true)
    }

    async fn try_encrypt_dataset(
        &self,
        dataset: Uuid,
        wrapped_key: &[u8],
        encrypt: ChunkEncryptor<'_>,
    ) -> Result<(), TransactionError> {
        let mut tx = self.begin().await?;
        self.same_master_key(&mut tx).await?;
        // two processes that start together encrypt it once
        lock(&mut tx, LOCK_DATASET, dataset).await?;
        let profiles: Option<Vec<u8>> =
            sqlx::query_scalar(sql::PROFILES_TO_SEAL).bind(dataset).fetch_optional(&mut *tx).await?;
        let Some(profiles) = profiles else { return Ok(()) };
        let ciphertext = encrypt(CiphertextContext::Profiles, &profiles)?;
        sqlx::query(sql::SET_PROFILES).bind(dataset).bind(ciphertext.as_bytes()).execute(&mut *tx).await?;
        let chunks: Vec<(i64, i64)> = sqlx::query_as(sql::CHUNKS_OF_DATASET).bind(dataset).fetch_all(&mut *tx).await?;
        for (column_no, chunk_no) in chunks {
            let payload: Vec<u8> = sqlx::query_scalar(sql::GET_COLUMN_CHUNK)
                .bind(dataset)
                .bind(column_no)
                .bind(chunk_no)
                .fetch_one(&mut *tx)
                .await?;
            let ciphertext = encrypt(place(column_no, chunk_no)?, &payload)?;
            sqlx::query(sql::SET_COLUMN_CHUNK)
                .bind(dataset)
                .bind(column_no)
                .bind(chunk_no)
                .bind(ciphertext.as_bytes())
                .execute(&mut *tx)
                .await?;
        }
        sqlx::query(sql::INSERT_DATASET_KEY).bind(dataset).bind(wrapped_key).execute(&mut *tx).await?;
        Ok(tx.commit().await?)
    }

    /// Deletes the key of an upload that is no dataset, or of a purged one, then its chunks, a few in each transaction.
    pub(super) async fn delete_chunks(&self, dataset: Uuid) -> Result<(), StoreError> {
        let key = || async {
            let mut tx = self.begin().await?;
            lock(&mut tx, LOCK_DATASET, dataset).await?;
            sqlx::query(sql::DELETE_DATASET_KEY).bind(dataset).execute(&mut *tx).await?;
            sqlx::query(releases::DELETE_INTERNAL_REPORTS_OF_DATASET).bind(dataset).execute(&mut *tx).await?;
            sqlx::query(by_people::DELETE_PIECES).bind(dataset).execute(&mut *tx).await?;
            Ok(tx.commit().await?)
        };
        retried("delete_dataset_key", key).await?;
        let some = || async {
            let mut tx = self.begin().await?;
            lock(&mut tx, LOCK_DATASET, dataset).await?;
            let deleted =
                sqlx::query(sql::DELETE_SOME_CHUNKS).bind(dataset).bind(CHUNKS_PER_DELETE).execute(&mut *tx).await?;
            tx.commit().await?;
            Ok(deleted.rows_affected())
        };
        while retried("delete_chunks", some).await? > 0 {}
        Ok(())
    }
}

/// Locks by the random half of a UUIDv7. Two datasets with the same half wait for each other, which does no harm.
pub(super) async fn lock(connection: &mut PgConnection, lock: &'static str, dataset: Uuid) -> Result<(), sqlx::Error> {
    let (_, random) = dataset.as_u64_pair();
    sqlx::query(lock).bind(random.cast_signed()).execute(connection).await?;
    Ok(())
}
