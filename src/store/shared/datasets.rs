//! Datasets and their chunks.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::{AuditEntry, ChunkEncryptor, Cursor, DatasetRecord, DatasetStore, ListedDataset, Page, StoreError};
use crate::store::rows::{DatasetRow, ListedDatasetRow, before, place, records, stored};
use crate::store::sql::datasets as sql;
use crate::vault::{Ciphertext, CiphertextContext};

both_stores! {
    #[async_trait]
    impl DatasetStore for Backend {
        async fn begin_upload(&self, dataset: Uuid, wrapped_key: &[u8]) -> Result<(), StoreError> {
            let begin = || async {
                let mut tx = self.begin().await?;
                self.check_master_key(&mut tx).await?;
                run_sql!(query.execute, &mut *tx, sql::INSERT_DATASET_KEY, dataset, wrapped_key)?;
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

        async fn get_columns(
            &self,
            dataset: Uuid,
            chunk_no: u32,
            columns: &[u32],
        ) -> Result<Vec<Option<Ciphertext>>, StoreError> {
            let payloads = self.read_columns(dataset, chunk_no, columns).await?;
            Ok(payloads.into_iter().map(|payload| payload.map(Ciphertext::from_stored)).collect())
        }

        async fn insert_dataset(&self, dataset: &DatasetRecord, audit_entry: &AuditEntry) -> Result<(), StoreError> {
            run_transaction("insert_dataset", || self.try_insert_dataset(dataset, audit_entry)).await
        }

        async fn discard_upload(&self, id: Uuid) -> Result<(), StoreError> {
            self.delete_chunks(id).await
        }

        async fn dataset(&self, tenant: &str, id: Uuid) -> Result<Option<DatasetRecord>, StoreError> {
            let row: Option<DatasetRow> =
                run_sql!(query_as.fetch_optional, self.reader(), sql::DATASET, id, tenant).map_err(failed)?;
            row.map(DatasetRecord::try_from).transpose()
        }

        async fn datasets(
            &self,
            tenant: &str,
            cursor: Option<Cursor>,
            limit: u32,
        ) -> Result<Page<ListedDataset>, StoreError> {
            let rows: Vec<ListedDatasetRow> = run_sql!(
                query_as.fetch_all, self.reader(), sql::DATASETS, before(cursor), i64::from(limit) + 1, tenant
            ).map_err(failed)?;
            Ok(Page::new(records(rows)?, limit, |dataset: &ListedDataset| dataset.id))
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
            run_sql!(query_scalar.fetch_all, self.reader(), sql::UNSEALED_DATASETS).map_err(failed)
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
                let put = run_sql!(
                    query.execute, &mut *tx, sql::PUT_COLUMN_CHUNK, dataset, i64::from(*column_no),
                    i64::from(chunk_no), payload.as_bytes()
                )?;
                if put.rows_affected() == 0 {
                    return Err(StoreError::Conflict.into());
                }
            }
            Ok(tx.commit().await?)
        }

        async fn try_insert_dataset(
            &self,
            dataset: &DatasetRecord,
            audit_entry: &AuditEntry,
        ) -> Result<(), TransactionError> {
            let mut tx = self.begin().await?;
            lock_dataset(&mut tx, dataset.id).await?;
            let chunks: i64 = run_sql!(query_scalar.fetch_one, &mut *tx, sql::COUNT_CHUNKS, dataset.id)?;
            if chunks != i64::from(dataset.chunks) {
                return Err(StoreError::Conflict.into());
            }
            let inserted = run_sql!(
                query.execute, &mut *tx, sql::INSERT_DATASET, dataset.id, &dataset.tenant, &dataset.name,
                &dataset.series, dataset.same_people, &dataset.same_people_reason,
                dataset.record_key.as_ref().map(Json), &dataset.subject,
                dataset.max_rows_per_subject.map(stored).transpose()?, dataset.created_at, stored(dataset.rows)?,
                stored(dataset.bytes)?, &dataset.format, dataset.content_hash.as_slice(), i64::from(dataset.chunks),
                dataset.profiles.as_ref().map(Ciphertext::as_bytes), dataset.purged_at, &dataset.population,
                Json(&dataset.person), &dataset.uploaded_by, dataset.contributions.as_ref().map(Json),
                dataset.place.as_ref().map(Json)
            )?;
            if inserted.rows_affected() == 0 {
                return Err(StoreError::Conflict.into());
            }
            log(&mut tx, audit_entry).await?;
            Ok(tx.commit().await?)
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
                run_sql!(query_scalar.fetch_optional, &mut *tx, sql::PROFILES_TO_SEAL, dataset)?;
            let Some(profiles) = profiles else { return Ok(()) };
            let ciphertext = encrypt(CiphertextContext::Profiles, &profiles)?;
            run_sql!(query.execute, &mut *tx, sql::SET_PROFILES, dataset, ciphertext.as_bytes())?;
            let chunks: Vec<(i64, i64)> =
                run_sql!(query_as.fetch_all, &mut *tx, sql::CHUNKS_OF_DATASET, dataset)?;
            for (column_no, chunk_no) in chunks {
                let payload: Vec<u8> =
                    run_sql!(query_scalar.fetch_one, &mut *tx, sql::GET_COLUMN_CHUNK, dataset, column_no, chunk_no)?;
                let ciphertext = encrypt(place(column_no, chunk_no)?, &payload)?;
                run_sql!(
                    query.execute, &mut *tx, sql::SET_COLUMN_CHUNK, dataset, column_no, chunk_no,
                    ciphertext.as_bytes()
                )?;
            }
            run_sql!(query.execute, &mut *tx, sql::INSERT_DATASET_KEY, dataset, wrapped_key)?;
            Ok(tx.commit().await?)
        }
    }
}
