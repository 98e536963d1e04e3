//! Chunks of a table that has to be read more than once, in a file without a name.

use std::fs::File;
use std::io;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::microdata::{Chunk, ChunkColumn};

/// Takes chunks, and gives them again in the same order, as often as one likes.
pub(super) struct ChunkFile {
    file: File,
    columns: usize,
    chunks: u32,
}

impl ChunkFile {
    /// In this folder, of tables with this number of columns.
    ///
    /// # Errors
    /// When no file can be made.
    pub(super) fn new(folder: &Path, columns: usize) -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile_in(folder)?, columns, chunks: 0 })
    }

    /// Takes the next chunk.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn push(&mut self, chunk: &Chunk) -> io::Result<()> {
        let mut writer = BufWriter::new(&self.file);
        writer.write_all(&chunk.rows.to_be_bytes())?;
        for column in &chunk.columns {
            let encoded = column.encode();
            writer.write_all(&(encoded.len() as u64).to_be_bytes())?;
            writer.write_all(&encoded)?;
        }
        self.chunks += 1;
        writer.flush()
    }

    /// Begins at the first chunk.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn chunks(&self) -> io::Result<ChunkFileReader> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        Ok(ChunkFileReader { file: BufReader::new(file), columns: self.columns, left: self.chunks })
    }
}

/// Reads chunks. Of two readers of one file, only the one that began last is of use.
pub(super) struct ChunkFileReader {
    file: BufReader<File>,
    columns: usize,
    left: u32,
}

impl ChunkFileReader {
    /// The next chunk; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<Chunk>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let mut rows = [0; 4];
        self.file.read_exact(&mut rows)?;
        let column = |_| {
            let mut length = [0; 8];
            self.file.read_exact(&mut length)?;
            let mut encoded = Vec::new();
            self.file.by_ref().take(u64::from_be_bytes(length)).read_to_end(&mut encoded)?;
            ChunkColumn::decode(&encoded).map_err(io::Error::other)
        };
        let columns = (0..self.columns).map(column).collect::<io::Result<_>>()?;
        Ok(Some(Chunk { rows: u32::from_be_bytes(rows), columns }))
    }
}
