//! Uploaded tables.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::{AuditEntry, Cursor, Page, StoreError};

/// An uploaded table, without its rows.
#[derive(Clone, PartialEq, Debug)]
pub struct DatasetRecord {
    /// UUIDv7, drawn when the upload began.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: String,
    /// What the uploader calls it.
    pub name: Option<String>,
    /// The people it speaks of.
    pub series: String,
    /// Whether an overlap with another series was stated to be of the same people.
    pub same_people: Option<bool>,
    /// Why not, as stated.
    pub same_people_reason: Option<String>,
    /// The attributes that identify a record.
    pub record_key: Option<Vec<String>>,
    /// The attribute that identifies a subject.
    pub subject: Option<String>,
    /// How many rows one subject may have.
    pub max_rows_per_subject: Option<u64>,
    /// When it became visible.
    pub created_at: DateTime<Utc>,
    /// Rows.
    pub rows: u64,
    /// Bytes of the uploaded body.
    pub bytes: u64,
    /// Media type of the upload.
    pub format: String,
    /// Keyed hash of the content.
    pub content_hash: [u8; 32],
    /// How many chunks each stored column has.
    pub chunks: u32,
    /// The column profiles.
    pub columns: Value,
    /// When its rows were destroyed.
    pub purged_at: Option<DateTime<Utc>>,
}

/// Keeps uploaded tables, by chunk and column.
///
/// An upload writes its chunks under the id it has drawn, which nobody can see, then inserts the record, which makes all of it
/// visible at once.
#[async_trait]
pub trait Datasets: Send + Sync {
    /// Keeps columns of a chunk, `(column_no, payload)` each, all or none.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when one is there already, or the dataset is visible already.
    async fn put_column_chunks(&self, dataset: Uuid, chunk_no: u32, columns: &[(u32, &[u8])])
    -> Result<(), StoreError>;

    /// Keeps one column of a chunk.
    ///
    /// # Errors
    /// As [`Datasets::put_column_chunks`].
    async fn put_column_chunk(
        &self,
        dataset: Uuid,
        chunk_no: u32,
        column_no: u32,
        payload: &[u8],
    ) -> Result<(), StoreError> {
        self.put_column_chunks(dataset, chunk_no, &[(column_no, payload)]).await
    }

    /// Reads one column of a chunk; `None` when there is none (any more).
    async fn get_column_chunk(
        &self,
        dataset: Uuid,
        chunk_no: u32,
        column_no: u32,
    ) -> Result<Option<Vec<u8>>, StoreError>;

    /// Makes an upload visible.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the id is taken or the chunks that were written are not as many as the record says.
    async fn insert_dataset(&self, dataset: &DatasetRecord, deed: &AuditEntry) -> Result<(), StoreError>;

    /// Removes the chunks of a failed upload; never those of a visible dataset.
    async fn discard_upload(&self, id: Uuid) -> Result<(), StoreError>;

    /// A tenant's dataset by its id, purged or not.
    async fn dataset(&self, tenant: &str, id: Uuid) -> Result<Option<DatasetRecord>, StoreError>;

    /// A page of a tenant's datasets, newest first.
    async fn datasets(
        &self,
        tenant: &str,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<DatasetRecord>, StoreError>;

    /// Destroys the rows of a tenant's dataset and marks it; its record stays. A second purge changes nothing and is not logged.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such dataset.
    async fn purge_dataset(
        &self,
        tenant: &str,
        id: Uuid,
        at: DateTime<Utc>,
        deed: &AuditEntry,
    ) -> Result<DatasetRecord, StoreError>;
}
