//! Parts of releases. Their chunks are rows; with an object store the rows say which objects have the payloads.
//!
//! The row of a chunk comes before its object, and a key that no row has any more is kept until its object is deleted. So every
//! object has a row that names it, whenever a process ends. A store may complete a write long after its writer has given up:
//! the key is kept for a day more, and its object deleted once again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, stream};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::ports::{
    MAX_LISTED_PART_OBJECTS, PartChunkRecord, PartChunkStore, PartObjectRecord, PartObjects, StoreError,
};
use crate::store::rows::{NewPartChunk, PartChunkRow, PartObjectRow, records, stored};
use crate::store::sql::parts as sql;

/// The most objects that are deleted before the next are looked for.
const OBJECTS_PER_PAGE: i64 = 256;

/// The most objects that are deleted at the same time.
const OBJECTS_AT_ONCE: usize = 8;

/// How long the end of a release or an attempt waits for its objects to be deleted.
const IMMEDIATE_DELETION: Duration = Duration::from_secs(5);

/// After this long an object is deleted once more.
const LATE_WRITES: Duration = Duration::from_secs(24 * 60 * 60);

/// A sweep that has waited so long for refusals leaves the rest to the next one: their store may be away.
const MAX_WAIT_FOR_REFUSALS: Duration = Duration::from_secs(30);

both_stores! {
    #[async_trait]
    impl PartChunkStore for Backend {
        async fn put_part_chunk(&self, job: Uuid, attempt: u32, chunk: &PartChunkRecord) -> Result<(), StoreError> {
            let Some(objects) = self.objects.get() else {
                return self.write_part_chunk(job, attempt, NewPartChunk::with_payload(chunk)).await.map(drop);
            };
            let row = NewPartChunk::in_object(job, attempt, chunk)?;
            let key = self.write_part_chunk(job, attempt, row).await?;
            let key = key.ok_or_else(|| StoreError::corrupt("a chunk without the object that it was to have"))?;
            let put = objects.put(&key, chunk.payload.clone()).await;
            // where the attempt was dropped meanwhile, the object came after its deletion
            let mark = || async {
                let mut tx = self.begin().await?;
                let marked = run_sql!(query.execute, &mut *tx, sql::MARK_UNWANTED_WITHOUT_CHUNK, &key)?;
                tx.commit().await?;
                Ok(marked.rows_affected() > 0)
            };
            if run_transaction("put_part_chunk", mark).await? {
                self.delete_objects(vec![key]).await;
                return Err(StoreError::Conflict);
            }
            put
        }

        async fn part_chunk(
            &self,
            tenant: &str,
            job: Uuid,
            attempt: u32,
            file: &str,
            number: u32,
        ) -> Result<Option<PartChunkRecord>, StoreError> {
            let (attempt, number) = (i64::from(attempt), i64::from(number));
            let row: Option<PartChunkRow> = run_sql!(
                query_as.fetch_optional, self.reader(), sql::PART_CHUNK, job, attempt, file, number, tenant
            ).map_err(failed)?;
            self.fetched(row).await
        }

        async fn part_chunk_at_row(
            &self,
            tenant: &str,
            job: Uuid,
            attempt: u32,
            file: &str,
            row: u64,
        ) -> Result<Option<PartChunkRecord>, StoreError> {
            let (attempt, at) = (i64::from(attempt), stored(row)?);
            let found: Option<PartChunkRow> = run_sql!(
                query_as.fetch_optional, self.reader(), sql::PART_CHUNK_AT_ROW, job, attempt, file, at, tenant
            ).map_err(failed)?;
            let chunk = self.fetched(found).await?;
            Ok(chunk.filter(|chunk| row - chunk.first_row < u64::from(chunk.rows)))
        }

        async fn drop_attempt(&self, job: Uuid, attempt: u32) -> Result<(), StoreError> {
            let some = || async {
                let mut tx = self.begin().await?;
                // a commit whose worker lost its connection may still run: it holds the job's row until it ends
                lock_job(&mut tx, job).await?;
                let deleted: Vec<Option<String>> = run_sql!(
                    query_scalar.fetch_all, &mut *tx, sql::DELETE_SOME_PART_CHUNKS, job, i64::from(attempt),
                    CHUNKS_PER_DELETE
                )?;
                for object in deleted.iter().flatten() {
                    run_sql!(query.execute, &mut *tx, sql::MARK_UNWANTED, object)?;
                }
                tx.commit().await?;
                Ok(deleted)
            };
            let mut unwanted = Vec::new();
            loop {
                let deleted = run_transaction("drop_attempt", some).await?;
                if deleted.is_empty() {
                    break;
                }
                unwanted.extend(deleted.into_iter().flatten());
            }
            self.delete_objects(unwanted).await;
            self.drop_chain_state(job, i64::from(attempt)).await
        }

        async fn part_objects(
            &self,
            tenant: &str,
            job: Uuid,
            attempt: u32,
            file: &str,
            from: u32,
        ) -> Result<Vec<PartObjectRecord>, StoreError> {
            let rows: Vec<PartObjectRow> = run_sql!(
                query_as.fetch_all, self.reader(), sql::PART_OBJECTS, job, i64::from(attempt), file, i64::from(from),
                tenant, i64::from(MAX_LISTED_PART_OBJECTS)
            ).map_err(failed)?;
            records(rows)
        }

        async fn any_part_object(&self) -> Result<Option<PartObjectRecord>, StoreError> {
            let row: Option<PartObjectRow> =
                run_sql!(query_as.fetch_optional, self.reader(), sql::ANY_PART_OBJECT).map_err(failed)?;
            row.map(PartObjectRecord::try_from).transpose()
        }
    }

    impl Backend {
        /// Keeps the payloads of new chunks in an object store from now on, and reads those that are there.
        pub fn keep_parts_in(&self, objects: Arc<dyn PartObjects>) {
            // a process has one place for parts, from its start on
            let _ = self.objects.set(objects);
        }

        /// A chunk with its payload; none where its release ended while its object was read.
        async fn fetched(&self, row: Option<PartChunkRow>) -> Result<Option<PartChunkRecord>, StoreError> {
            let Some(row) = row else { return Ok(None) };
            let (chunk, object) = row.located()?;
            let Some(object) = object else { return Ok(Some(chunk)) };
            let objects = self.objects.get();
            let objects = objects.ok_or_else(|| StoreError::Unavailable(
                "parts are in an object store: start this process with --parts as the others".into()
            ))?;
            let payload = match objects.get(&object.key, object.bytes).await {
                Err(StoreError::NotFound) => {
                    let is_kept: Option<i64> =
                        run_sql!(query_scalar.fetch_optional, self.reader(), sql::OBJECT_IS_KEPT, &object.key)
                            .map_err(failed)?;
                    return match is_kept {
                        None => Ok(None),
                        Some(_) => Err(StoreError::corrupt("an object of a part is missing")),
                    };
                }
                answer => answer?,
            };
            if Sha256::digest(&payload)[..] != object.sha256 {
                return Err(StoreError::corrupt("an object of a part is not the one that was written"));
            }
            Ok(Some(PartChunkRecord { payload, ..chunk }))
        }

        /// Deletes objects that no chunk has any more, and waits for it a short time. Their keys stay for the sweep.
        async fn delete_objects(&self, keys: Vec<String>) {
            let Some(objects) = self.objects.get().cloned() else { return };
            let deletion = tokio::spawn(async move {
                let delete = async |key: String| objects.delete(&key).await;
                let mut answers = stream::iter(keys).map(delete).buffer_unordered(OBJECTS_AT_ONCE);
                while let Some(answer) = answers.next().await {
                    if let Err(error) = answer {
                        tracing::warn!(error = %error, "objects of parts are left to the sweep");
                        return;
                    }
                }
            });
            if tokio::time::timeout(IMMEDIATE_DELETION, deletion).await.is_err() {
                tracing::warn!("objects of parts are still being deleted: their store is slow");
            }
        }

        /// Deletes all objects that no chunk has any more, at first and after a day. What cannot be deleted now is left to the
        /// next sweep.
        pub(in crate::store) async fn sweep_objects(&self, now: DateTime<Utc>) -> Result<(), StoreError> {
            let Some(objects) = self.objects.get() else { return Ok(()) };
            let (mut last, mut waited) = (String::new(), Duration::ZERO);
            while waited < MAX_WAIT_FOR_REFUSALS {
                let unwanted: Vec<(String, bool)> = run_sql!(
                    query_as.fetch_all, self.reader(), sql::UNWANTED_OBJECTS, &last, now, OBJECTS_PER_PAGE
                ).map_err(failed)?;
                let Some((end, _)) = unwanted.last() else { break };
                last.clone_from(end);
                for (key, is_last) in unwanted {
                    let asked = Instant::now();
                    if let Err(error) = objects.delete(&key).await {
                        tracing::warn!(error = %error, "an object of a part is left to the next sweep");
                        waited += asked.elapsed();
                        if waited >= MAX_WAIT_FOR_REFUSALS {
                            break;
                        }
                    } else if is_last {
                        run_sql!(query.execute, self.writer(), sql::FORGET_OBJECT, key).map_err(failed)?;
                    } else {
                        run_sql!(query.execute, self.writer(), sql::DELETE_OBJECT_AGAIN, key, now + LATE_WRITES)
                            .map_err(failed)?;
                    }
                }
            }
            Ok(())
        }
    }
}
