//! Uploaded tables.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::api_keys::AuditEntry;
use super::error::StoreError;
use super::page::{Cursor, Page};
use crate::publication::ContributionChoice;
use crate::vault::{Ciphertext, CiphertextContext};

/// What became of the rows of persons who had more than are kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BoundedContributions {
    /// How the kept rows were chosen.
    pub choice: ContributionChoice,
    /// Rows that were left out; nothing of them is stored.
    pub left_out_rows: u64,
    /// Persons of whom rows were left out.
    pub cut_persons: u64,
}

/// A table of another engine, where its rows are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EngineTable {
    /// The name of the engine.
    pub engine: String,
    /// The name of the table in the engine, or its path.
    pub table: String,
}

/// An uploaded table, without its rows.
#[derive(Clone, PartialEq, Debug)]
pub struct DatasetRecord {
    /// UUIDv7, drawn when the upload began.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: String,
    /// What the uploader calls it.
    pub name: Option<String>,
    /// The ledger's name for its people: the population, or the dataset's id.
    pub series: String,
    /// What an upload of an earlier version declared: whether an overlap with another series is of the same data subjects.
    pub same_people: Option<bool>,
    /// The reason declared with it.
    pub same_people_reason: Option<String>,
    /// The population whose persons it is about; none of an undeclared dataset.
    pub population: Option<String>,
    /// Per key system that identifies its persons, the attributes of the key.
    pub person: BTreeMap<String, Vec<String>>,
    /// The attributes that identify a record.
    pub record_key: Option<Vec<String>>,
    /// The attribute that identifies a subject.
    pub subject: Option<String>,
    /// How many rows one subject may have.
    pub max_rows_per_subject: Option<u64>,
    /// What was left out of the upload, where rows of a person were.
    pub contributions: Option<BoundedContributions>,
    /// The name of the actor that uploaded it, if known.
    pub uploaded_by: Option<String>,
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
    /// The column profiles, encrypted; none once it is purged.
    pub profiles: Option<Ciphertext>,
    /// The key that everything of it is encrypted under, wrapped; none once it is purged. Kept by [`DatasetStore::begin_upload`].
    pub wrapped_key: Option<Vec<u8>>,
    /// When its rows were destroyed.
    pub purged_at: Option<DateTime<Utc>>,
    /// Where its rows are, if they are not here: it then has no chunks.
    pub place: Option<EngineTable>,
}

/// A dataset as an item of a list: its columns without its profiles, whose length is that of its table's description.
#[derive(Clone, PartialEq, Debug)]
pub struct ListedDataset {
    /// UUIDv7, drawn when the upload began.
    pub id: Uuid,
    /// What the uploader calls it.
    pub name: Option<String>,
    /// The ledger's name for its people: the population, or the dataset's id.
    pub series: String,
    /// The population whose persons it is about; none of an undeclared dataset.
    pub population: Option<String>,
    /// Per key system that identifies its persons, the attributes of the key.
    pub person: BTreeMap<String, Vec<String>>,
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
    /// When its rows were destroyed.
    pub purged_at: Option<DateTime<Utc>>,
}

/// Seals what stands in a place of a dataset.
pub type ChunkEncryptor<'a> = &'a (dyn Fn(CiphertextContext, &[u8]) -> Result<Ciphertext, StoreError> + Send + Sync);

/// Keeps uploaded tables, by chunk and column. It is given encrypted bytes alone, and cannot open them.
///
/// An upload first keeps its wrapped key, then writes its chunks under the id it has drawn, which no reader can see, then inserts the
/// record, which makes all of it visible at once. The key is there until the purge, or until the upload is given up.
#[async_trait]
pub trait DatasetStore: Send + Sync {
    /// Keeps the wrapped key of an upload that begins.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the id is taken.
    async fn begin_upload(&self, dataset: Uuid, wrapped_key: &[u8]) -> Result<(), StoreError>;

    /// Keeps columns of a chunk, `(column_no, payload)` each, all or none.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when one is there already, the dataset is visible already, or the upload has no key.
    async fn put_column_chunks(
        &self,
        dataset: Uuid,
        chunk_no: u32,
        columns: &[(u32, Ciphertext)],
    ) -> Result<(), StoreError>;

    /// Keeps one column of a chunk.
    ///
    /// # Errors
    /// As [`DatasetStore::put_column_chunks`].
    async fn put_column_chunk(
        &self,
        dataset: Uuid,
        chunk_no: u32,
        column_no: u32,
        payload: Ciphertext,
    ) -> Result<(), StoreError> {
        self.put_column_chunks(dataset, chunk_no, &[(column_no, payload)]).await
    }

    /// Reads columns of a chunk, in the order they are given; `None` for one that is not there (any more).
    async fn get_columns(
        &self,
        dataset: Uuid,
        chunk_no: u32,
        columns: &[u32],
    ) -> Result<Vec<Option<Ciphertext>>, StoreError>;

    /// Reads one column of a chunk; `None` when there is none (any more).
    async fn get_column_chunk(
        &self,
        dataset: Uuid,
        chunk_no: u32,
        column_no: u32,
    ) -> Result<Option<Ciphertext>, StoreError> {
        Ok(self.get_columns(dataset, chunk_no, &[column_no]).await?.pop().flatten())
    }

    /// Makes an upload visible, under the key that it began with.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the id is taken, the chunks that were written are not as many as the record says, or the
    /// upload has no key.
    async fn insert_dataset(&self, dataset: &DatasetRecord, audit_entry: &AuditEntry) -> Result<(), StoreError>;

    /// Removes the key and the chunks of a failed upload; never those of a visible dataset.
    async fn discard_upload(&self, id: Uuid) -> Result<(), StoreError>;

    /// A tenant's dataset by its id, purged or not.
    async fn dataset(&self, tenant: &str, id: Uuid) -> Result<Option<DatasetRecord>, StoreError>;

    /// A page of a tenant's datasets, newest first.
    async fn datasets(
        &self,
        tenant: &str,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<ListedDataset>, StoreError>;

    /// Destroys the key and the profiles of a tenant's dataset and marks it, in one transaction, after which nothing can be read,
    /// then the rows; its record stays. A second purge changes nothing and is not logged.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such dataset.
    async fn purge_dataset(
        &self,
        tenant: &str,
        id: Uuid,
        at: DateTime<Utc>,
        audit_entry: &AuditEntry,
    ) -> Result<DatasetRecord, StoreError>;

    /// The datasets that were uploaded before anything was encrypted.
    async fn unencrypted_datasets(&self) -> Result<Vec<Uuid>, StoreError>;

    /// Seals one of them in one transaction, a chunk in memory at a time. One that is encrypted stays as it is.
    async fn encrypt_dataset(
        &self,
        dataset: Uuid,
        wrapped_key: &[u8],
        encrypt: ChunkEncryptor<'_>,
    ) -> Result<(), StoreError>;
}
