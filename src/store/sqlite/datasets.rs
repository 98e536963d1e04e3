//! Datasets and their chunks.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::types::Json;
use uuid::Uuid;

use super::error::failed;
use super::keys::log;
use super::tx::Tx;
use super::{DELETED_AT_ONCE, SqliteStore};
use crate::ports::{AuditEntry, ChunkEncryptor, Cursor, DatasetRecord, DatasetStore, NewFingerprint, Page, StoreError};
use crate::store::rows::{DatasetRow, before, place, stored};
use crate::store::sql::{datasets as sql, people as by_people, releases};
use crate::vault::{Ciphertext, CiphertextContext};

#[async_trait]
impl DatasetStore for SqliteStore {
    async fn begin_upload(&self, dataset: Uuid, wrapped_key: &[u8]) -> Result<(), StoreError> {
        let mut tx = self.begin("begin_upload").await?;
        sqlx::query(sql::INSERT_DATASET_KEY).bind(dataset).bind(wrapped_key).execute(&mut *tx).await.map_err(failed)?;
        tx.commit().await.map_err(failed)
    }

    async fn put_column_chunks(
        &self,
        dataset: Uuid,
        chunk_no: u32,
        columns: &[(u32, Ciphertext)],
    ) -> Result<(), StoreError> {
        let mut tx = self.begin("put_column_chunks").await?;
        for (column_no, payload) in columns {
            let put = sqlx::query(sql::PUT_COLUMN_CHUNK)
                .bind(dataset)
                .bind(i64::from(*column_no))
                .bind(i64::from(chunk_no))
                .bind(payload.as_bytes())
                .execute(&mut *tx)
                .await
                .map_err(failed)?;
            if put.rows_affected() == 0 {
                return Err(StoreError::Conflict);
            }
        }
        tx.commit().await.map_err(failed)
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
            .fetch_optional(&self.reader)
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
        let mut tx = self.begin("admit_dataset").await?;
        let chunks: i64 =
            sqlx::query_scalar(sql::COUNT_CHUNKS).bind(dataset.id).fetch_one(&mut *tx).await.map_err(failed)?;
        if chunks != i64::from(dataset.chunks) {
            return Err(StoreError::Conflict);
        }
        let inserted = sqlx::query(sql::INSERT_DATASET)
            .bind(dataset.id)
            .bind(&dataset.tenant)
            .bind(&dataset.name)
            .bind(&dataset.series)
            .bind(dataset.same_people)
            .bind(&dataset.same_people_reason)
            .bind(dataset.record_key.as_ref().map(Json))
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
            .await
            .map_err(failed)?;
        if inserted.rows_affected() == 0 {
            return Err(StoreError::Conflict);
        }
        if let Some(people) = people
            && !keep_people(&mut tx, dataset, people).await?
        {
            return Ok(false);
        }
        let uploads = sqlx::query(by_people::BUMP_SERIES).bind(&dataset.tenant).bind(by_people::UPLOADS);
        uploads.execute(&mut *tx).await.map_err(failed)?;
        log(&mut tx, audit_entry).await?;
        tx.commit().await.map_err(failed)?;
        Ok(true)
    }

    async fn discard_upload(&self, id: Uuid) -> Result<(), StoreError> {
        self.delete_chunks(id).await
    }

    async fn dataset(&self, tenant: &str, id: Uuid) -> Result<Option<DatasetRecord>, StoreError> {
        let row: Option<DatasetRow> =
            sqlx::query_as(sql::DATASET).bind(id).bind(tenant).fetch_optional(&self.reader).await.map_err(failed)?;
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
            .fetch_all(&self.reader)
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
        let mut tx = self.begin("purge_dataset").await?;
        let marked =
            sqlx::query(sql::MARK_PURGED).bind(id).bind(at).bind(tenant).execute(&mut *tx).await.map_err(failed)?;
        if marked.rows_affected() > 0 {
            log(&mut tx, audit_entry).await?;
        }
        sqlx::query(sql::DELETE_DATASET_KEY).bind(id).execute(&mut *tx).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        let purged = self.dataset(tenant, id).await?.ok_or(StoreError::NotFound)?;
        self.delete_chunks(id).await?;
        self.empty_journal().await?;
        Ok(purged)
    }

    async fn unencrypted_datasets(&self) -> Result<Vec<Uuid>, StoreError> {
        sqlx::query_scalar(sql::UNSEALED_DATASETS).fetch_all(&self.reader).await.map_err(failed)
    }

    async fn encrypt_dataset(
        &self,
        dataset: Uuid,
        wrapped_key: &[u8],
        encrypt: ChunkEncryptor<'_>,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin("seal_dataset").await?;
        let profiles: Option<Vec<u8>> =
            sqlx::query_scalar(sql::PROFILES_TO_SEAL).bind(dataset).fetch_optional(&mut *tx).await.map_err(failed)?;
        let Some(profiles) = profiles else { return Ok(()) };
        let ciphertext = encrypt(CiphertextContext::Profiles, &profiles)?;
        sqlx::query(sql::SET_PROFILES)
            .bind(dataset)
            .bind(ciphertext.as_bytes())
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        let chunks: Vec<(i64, i64)> =
            sqlx::query_as(sql::CHUNKS_OF_DATASET).bind(dataset).fetch_all(&mut *tx).await.map_err(failed)?;
        for (column_no, chunk_no) in chunks {
            let payload: Vec<u8> = sqlx::query_scalar(sql::GET_COLUMN_CHUNK)
                .bind(dataset)
                .bind(column_no)
                .bind(chunk_no)
                .fetch_one(&mut *tx)
                .await
                .map_err(failed)?;
            let ciphertext = encrypt(place(column_no, chunk_no)?, &payload)?;
            sqlx::query(sql::SET_COLUMN_CHUNK)
                .bind(dataset)
                .bind(column_no)
                .bind(chunk_no)
                .bind(ciphertext.as_bytes())
                .execute(&mut *tx)
                .await
                .map_err(failed)?;
        }
        sqlx::query(sql::INSERT_DATASET_KEY).bind(dataset).bind(wrapped_key).execute(&mut *tx).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        // what stood there in the clear
        self.empty_journal().await
    }
}

impl SqliteStore {
    /// Deletes the key of an upload that is no dataset, or of a purged one, then its chunks, a few in each transaction.
    pub(super) async fn delete_chunks(&self, dataset: Uuid) -> Result<(), StoreError> {
        let mut tx = self.begin("delete_chunks").await?;
        sqlx::query(sql::DELETE_DATASET_KEY).bind(dataset).execute(&mut *tx).await.map_err(failed)?;
        let reports = sqlx::query(releases::DELETE_INTERNAL_REPORTS_OF_DATASET).bind(dataset);
        reports.execute(&mut *tx).await.map_err(failed)?;
        sqlx::query(by_people::DELETE_PIECES).bind(dataset).execute(&mut *tx).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        loop {
            let mut tx = self.begin("delete_chunks").await?;
            let deleted = sqlx::query(sql::DELETE_SOME_CHUNKS)
                .bind(dataset)
                .bind(DELETED_AT_ONCE)
                .execute(&mut *tx)
                .await
                .map_err(failed)?;
            tx.commit().await.map_err(failed)?;
            if deleted.rows_affected() == 0 {
                return Ok(());
            }
        }
    }
}

/// Keeps whom a dataset speaks of, unless other uploads came since it was compared with those that there were.
async fn keep_people(tx: &mut Tx, dataset: &DatasetRecord, people: &NewFingerprint) -> Result<bool, StoreError> {
    let uploads = sqlx::query_scalar(by_people::SERIES_VERSION).bind(&dataset.tenant).bind(by_people::UPLOADS);
    let uploads: Option<i64> = uploads.fetch_optional(&mut **tx).await.map_err(failed)?;
    if uploads.unwrap_or(0) != people.uploads {
        return Ok(false);
    }
    let insert = sqlx::query(by_people::INSERT_PEOPLE).bind(dataset.id);
    let insert = insert.bind(Json(&people.people)).bind(Json(&dataset.overlaps));
    insert.execute(&mut **tx).await.map_err(failed)?;
    Ok(true)
}
