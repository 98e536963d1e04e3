//! Datasets and their chunks.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::{AuditEntry, ChunkEncryptor, Cursor, DatasetRecord, DatasetStore, NewFingerprint, Page, StoreError};
use crate::store::rows::{DatasetRow, before, place, stored};
use crate::store::sql::{datasets as sql, people as by_people};
use crate::vault::{Ciphertext, CiphertextContext};

both_stores! {
    #[async_trait]
    impl DatasetStore for Backend {
        async fn begin_upload(&self, dataset: Uuid, wrapped_key: &[u8]) -> Result<(), StoreError> {
            let begin = || async {
                let mut tx = self.begin().await?;
                self.check_master_key(&mut tx).await?;
                sqlx::query(sql::INSERT_DATASET_KEY).bind(dataset).bind(wrapped_key).execute(&mut *tx).await?;
                Ok(tx.commit().await?)
            };
            run_transaction("begin_upload", begin).await
        }

        async fn put_column_chunks(
            &self,
            dataset: Uuid,
            chunk_no: u32,
            columns: &[(u32, Ciphertext)],
        ) -> Result<(), StoreError> {
            run_transaction("put_column_chunks", || self.try_put_column_chunks(dataset, chunk_no, columns)).await
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
                .fetch_optional(self.reader())
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
            run_transaction("admit_dataset", || self.try_admit_dataset(dataset, people, audit_entry)).await
        }

        async fn discard_upload(&self, id: Uuid) -> Result<(), StoreError> {
            self.delete_chunks(id).await
        }

        async fn dataset(&self, tenant: &str, id: Uuid) -> Result<Option<DatasetRecord>, StoreError> {
            let row: Option<DatasetRow> = sqlx::query_as(sql::DATASET)
                .bind(id)
                .bind(tenant)
                .fetch_optional(self.reader())
                .await
                .map_err(failed)?;
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
                .fetch_all(self.reader())
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
            self.purge(tenant, id, at, audit_entry).await
        }

        async fn unencrypted_datasets(&self) -> Result<Vec<Uuid>, StoreError> {
            sqlx::query_scalar(sql::UNSEALED_DATASETS).fetch_all(self.reader()).await.map_err(failed)
        }

        async fn encrypt_dataset(
            &self,
            dataset: Uuid,
            wrapped_key: &[u8],
            encrypt: ChunkEncryptor<'_>,
        ) -> Result<(), StoreError> {
            run_transaction("seal_dataset", || self.try_encrypt_dataset(dataset, wrapped_key, encrypt)).await?;
            self.empty_journal().await
        }
    }

    impl Backend {
        async fn try_put_column_chunks(
            &self,
            dataset: Uuid,
            chunk_no: u32,
            columns: &[(u32, Ciphertext)],
        ) -> Result<(), TransactionError> {
            let mut tx = self.begin().await?;
            share_dataset(&mut tx, dataset).await?;
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
            lock_dataset(&mut tx, dataset.id).await?;
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
                    .bind(Json(people))
                    .bind(Json(&dataset.overlaps))
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
            self.check_master_key(&mut tx).await?;
            // two processes that start together encrypt it once
            lock_dataset(&mut tx, dataset).await?;
            let profiles: Option<Vec<u8>> =
                sqlx::query_scalar(sql::PROFILES_TO_SEAL).bind(dataset).fetch_optional(&mut *tx).await?;
            let Some(profiles) = profiles else { return Ok(()) };
            let ciphertext = encrypt(CiphertextContext::Profiles, &profiles)?;
            sqlx::query(sql::SET_PROFILES).bind(dataset).bind(ciphertext.as_bytes()).execute(&mut *tx).await?;
            let chunks: Vec<(i64, i64)> =
                sqlx::query_as(sql::CHUNKS_OF_DATASET).bind(dataset).fetch_all(&mut *tx).await?;
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
    }
}
