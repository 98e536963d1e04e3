//! Parts of releases, and the objects of an object store that may hold them.

use async_trait::async_trait;
use uuid::Uuid;

use super::error::StoreError;

/// The most objects of a part that one answer of a store lists: a page of a list, and what the next one begins with.
pub const MAX_LISTED_PART_OBJECTS: u32 = 1001;

/// A run of rows of a written part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartChunkRecord {
    /// The part's file.
    pub file: String,
    /// Counted from 0 in the file.
    pub number: u32,
    /// The chunk's first row, counted from 0 in the file.
    pub first_row: u64,
    /// How many rows it holds.
    pub rows: u32,
    /// The rows as CSV, compressed.
    pub payload: Vec<u8>,
}

/// An object that holds a chunk of a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartObjectRecord {
    /// The number of the chunk, counted from 0 in the file.
    pub number: u32,
    /// How many rows it holds.
    pub rows: u32,
    /// Its key below the prefix.
    pub key: String,
    /// The SHA-256 of its bytes.
    pub sha256: [u8; 32],
    /// How many bytes it has.
    pub bytes: u64,
}

/// Keeps parts under (job, attempt), where no reader looks before a commit points at them.
#[async_trait]
pub trait PartChunkStore: Send + Sync {
    /// Keeps a chunk of a part.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] unless the job runs in this very attempt and the chunk is new.
    async fn put_part_chunk(&self, job: Uuid, attempt: u32, chunk: &PartChunkRecord) -> Result<(), StoreError>;

    /// A chunk of a part of a tenant's job by its number.
    async fn part_chunk(
        &self,
        tenant: &str,
        job: Uuid,
        attempt: u32,
        file: &str,
        number: u32,
    ) -> Result<Option<PartChunkRecord>, StoreError>;

    /// The chunk that holds a row, counted from 0.
    async fn part_chunk_at_row(
        &self,
        tenant: &str,
        job: Uuid,
        attempt: u32,
        file: &str,
        row: u64,
    ) -> Result<Option<PartChunkRecord>, StoreError>;

    /// Removes the parts of an attempt that became no release, and the state of a chain; those of a release that is held
    /// or published stay.
    async fn drop_attempt(&self, job: Uuid, attempt: u32) -> Result<(), StoreError>;

    /// The objects of a part of a tenant's job from a number on, at most [`MAX_LISTED_PART_OBJECTS`]; none of chunks that the
    /// database holds.
    async fn part_objects(
        &self,
        tenant: &str,
        job: Uuid,
        attempt: u32,
        file: &str,
        from: u32,
    ) -> Result<Vec<PartObjectRecord>, StoreError>;

    /// Any object of a release that is held or published, if there is one.
    async fn any_part_object(&self) -> Result<Option<PartObjectRecord>, StoreError>;
}

/// Keeps bytes under keys, outside the database. No answer holds credentials.
#[async_trait]
pub trait PartObjects: Send + Sync {
    /// Writes an object.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] where there is another one; [`StoreError::Unavailable`] where it cannot be written now.
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StoreError>;

    /// The bytes of an object of at most `limit` bytes.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or [`StoreError::Unavailable`] where it cannot be read now.
    async fn get(&self, key: &str, limit: u64) -> Result<Vec<u8>, StoreError>;

    /// Deletes an object, which need not exist.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] where it cannot be deleted now.
    async fn delete(&self, key: &str) -> Result<(), StoreError>;
}
