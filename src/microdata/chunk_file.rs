//! Chunks of a table that has to be read more than once, in an encrypted file without a name.

use std::io;
use std::io::Write;
use std::path::Path;

use super::chunk::{Chunk, ChunkColumn};
use super::spool_file::SpoolFile;

/// Takes chunks, and gives them again as often as one likes: each as a whole, or some of its columns.
#[derive(Debug)]
pub struct ChunkFile {
    file: SpoolFile,
    chunks: Vec<WrittenChunk>,
}

/// Where a chunk stands in the file.
#[derive(Debug)]
struct WrittenChunk {
    rows: u32,
    /// Where its columns begin, and where the last one ends.
    bounds: Vec<u64>,
}

impl ChunkFile {
    /// In this folder.
    ///
    /// # Errors
    /// When no file can be made.
    pub fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self { file: SpoolFile::new(folder)?, chunks: Vec::new() })
    }

    /// Takes the next chunk.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn push(&mut self, chunk: &Chunk) -> io::Result<()> {
        let mut bounds = vec![self.file.len()];
        for column in &chunk.columns {
            self.file.write_all(&column.encode())?;
            bounds.push(self.file.len());
        }
        self.chunks.push(WrittenChunk { rows: chunk.rows, bounds });
        Ok(())
    }

    /// The number of chunks.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        self.chunks.len() as u32
    }

    /// A chunk with some of its columns, in this order; chunks and columns count from 0.
    ///
    /// # Errors
    /// When there is no such chunk or column, or the file cannot be read.
    pub fn columns(&self, chunk: u32, columns: impl IntoIterator<Item = usize>) -> io::Result<Chunk> {
        let WrittenChunk { rows, bounds } = self.chunks.get(chunk as usize).ok_or(io::ErrorKind::NotFound)?;
        let read = |column: usize| {
            let Some(&[begin, end]) = bounds.get(column..column + 2) else {
                return Err(io::ErrorKind::NotFound.into());
            };
            let mut encoded = vec![0; (end - begin) as usize];
            self.file.read_exact_at(&mut encoded, begin)?;
            ChunkColumn::decode(&encoded).map_err(io::Error::other)
        };
        Ok(Chunk { rows: *rows, columns: columns.into_iter().map(read).collect::<io::Result<_>>()? })
    }

    /// A whole chunk; `None` after the last one.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn chunk(&self, chunk: u32) -> io::Result<Option<Chunk>> {
        let Some(of) = self.chunks.get(chunk as usize) else { return Ok(None) };
        self.columns(chunk, 0..of.bounds.len() - 1).map(Some)
    }
}
