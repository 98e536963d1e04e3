//! Parts, written and read from the blocking threads that compute.

use std::io;
use std::io::{Cursor, Read};
use std::sync::Arc;

use tokio::runtime::Handle;
use uuid::Uuid;

use crate::ports::{PartChunkRecord, Store};
use crate::publication::PublishedBytes;

/// Parts are written once and read often; the fastest level already removes most of a CSV's repetition.
const PART_ZSTD_LEVEL: i32 = 1;

/// The CSV bytes of a chunk's payload.
///
/// # Errors
/// When the payload is damaged.
pub fn decompress(payload: &[u8]) -> io::Result<Vec<u8>> {
    zstd::stream::decode_all(payload)
}

/// Writes the parts of one attempt, and reads them back as they will be served. Only for threads outside the async runtime:
/// each call blocks on the store.
pub struct PartStorage {
    handle: Handle,
    store: Arc<dyn Store>,
    tenant: String,
    job: Uuid,
    attempt: u32,
}

impl PartStorage {
    /// Storage of the parts of one attempt.
    #[must_use]
    pub fn new(handle: Handle, store: Arc<dyn Store>, tenant: String, job: Uuid, attempt: u32) -> Self {
        Self { handle, store, tenant, job, attempt }
    }

    /// Writes a chunk of a file: `rows` rows from `first_row` on, as CSV. Numbers and rows count from 0.
    ///
    /// # Errors
    /// When the store refuses it, which it also does once the attempt no longer runs.
    pub fn put(&mut self, file: &str, number: u32, first_row: u64, rows: u32, csv: &[u8]) -> io::Result<()> {
        let payload = zstd::bulk::compress(csv, PART_ZSTD_LEVEL)?;
        let chunk = PartChunkRecord { file: file.to_owned(), number, first_row, rows, payload };
        Ok(self.handle.block_on(self.store.put_part_chunk(self.job, self.attempt, &chunk))?)
    }

    /// The bytes of a file from its beginning.
    ///
    /// # Errors
    /// When there is no such file or the store cannot answer.
    pub fn reader(&self, file: &str) -> io::Result<Box<dyn Read + '_>> {
        let first = self.chunk(file, 0)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(StoredPartReader { storage: self, file: file.to_owned(), next: 1, current: Cursor::new(first) }))
    }

    fn chunk(&self, file: &str, number: u32) -> io::Result<Option<Vec<u8>>> {
        let chunk = self.handle.block_on(self.store.part_chunk(&self.tenant, self.job, self.attempt, file, number))?;
        chunk.map(|chunk| decompress(&chunk.payload)).transpose()
    }
}

impl PublishedBytes for PartStorage {
    fn open(&self, file: &str) -> io::Result<Box<dyn Read + '_>> {
        self.reader(file)
    }
}

/// Streams a file, one chunk in memory at a time.
struct StoredPartReader<'a> {
    storage: &'a PartStorage,
    file: String,
    next: u32,
    current: Cursor<Vec<u8>>,
}

impl Read for StoredPartReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.current.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            // the last chunk goes before the next one comes
            self.current = Cursor::default();
            match self.storage.chunk(&self.file, self.next)? {
                Some(bytes) => self.current = Cursor::new(bytes),
                None => return Ok(0),
            }
            self.next += 1;
        }
    }
}
