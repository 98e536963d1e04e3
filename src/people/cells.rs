//! The cells of a table as hashes, kept while its evidence is collected. They are read column by column, as often as
//! needed.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};

use ahash::RandomState;

use super::counter::ExternalCounter;
use crate::microdata::SpoolFile;

/// Bytes that stay in memory; more go to an encrypted file without a name, as equal cells have equal hashes.
const MEMORY_BYTES: usize = 4 << 20;

/// Bytes of a hash and of a code.
const HASH_BYTES: usize = 16;
const CODE_BYTES: usize = 2;

/// A column of consecutive rows: the hashes that occur in it, and a code for each row.
pub(super) struct CellChunk {
    pub(super) hashes: Vec<u128>,
    pub(super) codes: Vec<u16>,
}

impl CellChunk {
    /// The column of some rows, given the value of each and the hash of each value. Values may have a hash in common.
    pub(super) fn from_values(values: impl Iterator<Item = u32>, of_values: &[u128]) -> Self {
        let mut known: HashMap<u128, u16, RandomState> = HashMap::default();
        let mut code_of: Vec<Option<u16>> = vec![None; of_values.len()];
        let (mut hashes, mut codes) = (Vec::new(), Vec::new());
        for value in values {
            let code = *code_of[value as usize].get_or_insert_with(|| {
                let hash = of_values[value as usize];
                *known.entry(hash).or_insert_with(|| {
                    hashes.push(hash);
                    hashes.len() as u16 - 1
                })
            });
            codes.push(code);
        }
        Self { hashes, codes }
    }

    /// The hash of the cell of a row.
    pub(super) fn cell(&self, row: usize) -> u128 {
        self.hashes[usize::from(self.codes[row])]
    }
}

/// Bytes in memory, and in a file once they are many.
enum CellBytes {
    Memory(Vec<u8>),
    File(SpoolFile),
}

impl CellBytes {
    fn push(&mut self, bytes: &[u8], folder: &Path) -> io::Result<()> {
        match self {
            Self::Memory(held) if held.len() + bytes.len() <= MEMORY_BYTES => held.extend_from_slice(bytes),
            Self::Memory(held) => {
                let mut file = SpoolFile::new(folder)?;
                file.write_all(held)?;
                file.write_all(bytes)?;
                *self = Self::File(file);
            }
            Self::File(file) => file.write_all(bytes)?,
        }
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], start: u64) -> io::Result<()> {
        match self {
            Self::Memory(held) => {
                let held = held.get(start as usize..).and_then(|held| held.get(..bytes.len()));
                bytes.copy_from_slice(held.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
            Self::File(file) => file.read_exact_at(bytes, start),
        }
    }
}

/// The chunks of the columns of a table.
pub(super) struct CellFile {
    bytes: CellBytes,
    folder: PathBuf,
    columns: usize,
    rows: u64,
    /// For each chunk, where each column begins, and its numbers of hashes and rows.
    places: Vec<Vec<ChunkPlace>>,
    end: u64,
}

#[derive(Clone, Copy)]
struct ChunkPlace {
    start: u64,
    hashes: usize,
    rows: usize,
}

impl CellFile {
    pub(super) fn new(folder: &Path, columns: usize) -> Self {
        let bytes = CellBytes::Memory(Vec::new());
        Self { bytes, folder: folder.to_owned(), columns, rows: 0, places: Vec::new(), end: 0 }
    }

    pub(super) const fn columns(&self) -> usize {
        self.columns
    }

    pub(super) const fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn chunks(&self) -> usize {
        self.places.len()
    }

    /// Adds rows, column by column.
    pub(super) fn push(&mut self, chunk: &[CellChunk]) -> io::Result<()> {
        let mut places = Vec::with_capacity(chunk.len());
        for column in chunk {
            let mut bytes = Vec::with_capacity(column.hashes.len() * HASH_BYTES + column.codes.len() * CODE_BYTES);
            bytes.extend(column.hashes.iter().flat_map(|hash| hash.to_be_bytes()));
            bytes.extend(column.codes.iter().flat_map(|code| code.to_be_bytes()));
            self.bytes.push(&bytes, &self.folder)?;
            places.push(ChunkPlace { start: self.end, hashes: column.hashes.len(), rows: column.codes.len() });
            self.end += bytes.len() as u64;
        }
        self.rows += chunk.first().map_or(0, |column| column.codes.len() as u64);
        self.places.push(places);
        Ok(())
    }

    /// A column of a chunk.
    pub(super) fn read(&self, chunk: usize, column: usize) -> io::Result<CellChunk> {
        let ChunkPlace { start, hashes, rows } = self.places[chunk][column];
        let mut codes = vec![0; rows * CODE_BYTES];
        self.bytes.read(&mut codes, start + (hashes * HASH_BYTES) as u64)?;
        let codes = codes.as_chunks::<CODE_BYTES>().0.iter().map(|bytes| u16::from_be_bytes(*bytes)).collect();
        Ok(CellChunk { hashes: self.hashes(chunk, column)?, codes })
    }

    /// The hashes that occur in a column of a chunk.
    fn hashes(&self, chunk: usize, column: usize) -> io::Result<Vec<u128>> {
        let ChunkPlace { start, hashes, .. } = self.places[chunk][column];
        let mut bytes = vec![0; hashes * HASH_BYTES];
        self.bytes.read(&mut bytes, start)?;
        Ok(bytes.as_chunks::<HASH_BYTES>().0.iter().map(|bytes| u128::from_be_bytes(*bytes)).collect())
    }

    /// How many different cells a column has.
    pub(super) fn distinct(&self, column: usize) -> io::Result<u64> {
        let mut counter = ExternalCounter::new(&self.folder);
        for chunk in 0..self.chunks() {
            self.hashes(chunk, column)?.into_iter().try_for_each(|hash| counter.add(hash, 1))?;
        }
        let mut distinct = 0;
        counter.finish(|_, _| -> io::Result<()> {
            distinct += 1;
            Ok(())
        })?;
        Ok(distinct)
    }

    /// The lowest hashes of a column, at most as many as asked for.
    pub(super) fn lowest(&self, column: usize, most: usize) -> io::Result<Vec<u128>> {
        let mut lowest = BTreeSet::new();
        for chunk in 0..self.chunks() {
            for hash in self.hashes(chunk, column)? {
                if lowest.len() < most || lowest.last().is_some_and(|last| hash < *last) {
                    lowest.insert(hash);
                }
                if lowest.len() > most {
                    lowest.pop_last();
                }
            }
        }
        Ok(lowest.into_iter().collect())
    }

    /// Counts in memory or in the folder of this file.
    pub(super) fn counter(&self) -> ExternalCounter {
        ExternalCounter::new(&self.folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_from_memory_and_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<u8> = (0..3 * MEMORY_BYTES / 2).map(|at| (at % 253) as u8).collect();
        let (mut held, mut kinds) = (CellBytes::Memory(Vec::new()), Vec::new());
        for (number, piece) in all.chunks(MEMORY_BYTES / 2).enumerate() {
            held.push(piece, folder.path()).unwrap();
            kinds.push(matches!(held, CellBytes::File(_)));
            let end = (number + 1) * piece.len();
            let mut read = vec![0; piece.len() / 2 + 7];
            let start = end - read.len();
            held.read(&mut read, start as u64).unwrap();
            assert_eq!(read, all[start..end]);
            assert!(held.read(&mut read, start as u64 + 1).is_err());
        }
        assert_eq!(kinds, [false, false, true]);
    }
}
