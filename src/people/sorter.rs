//! Sorts more hashes than memory holds: runs go to a file without a name, and are merged when all are there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Most hashes that are sorted in memory.
const RUN_HASHES: usize = 1 << 19;

/// Fewest hashes of a run: with less, most of the time goes into merging.
const MIN_RUN_HASHES: usize = 1 << 12;

/// Bytes of a run that are read at once.
const READ_BYTES: usize = 1 << 15;

/// What is sorted. The bytes of an entry are as many as those of every other.
pub(crate) trait SortedEntry: Copy + Ord {
    /// How many they are.
    const BYTES: usize;

    /// Appends the bytes.
    fn write(self, bytes: &mut Vec<u8>);

    /// From its bytes.
    fn read(bytes: &[u8]) -> Self;
}

/// A number from its bytes, the highest first.
pub(super) fn number_of(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |word, &byte| word << 8 | u128::from(byte))
}

/// A hash and the row that it is of.
type HashEntry = (u128, u64);

impl SortedEntry for HashEntry {
    const BYTES: usize = 24;

    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.0.to_be_bytes());
        bytes.extend_from_slice(&self.1.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        (number_of(&bytes[..16]), number_of(&bytes[16..]) as u64)
    }
}

/// Takes hashes, or other entries, in any order.
pub(crate) struct ExternalSorter<E = HashEntry> {
    run: Vec<E>,
    size: usize,
    folder: PathBuf,
    spilled: Option<(File, Vec<u64>)>,
}

impl ExternalSorter {
    pub(crate) fn new(folder: &Path) -> Self {
        Self::with_runs(folder, RUN_HASHES)
    }

    /// Takes one hash.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn push(&mut self, hash: u128, row: u64) -> io::Result<()> {
        self.push_entry((hash, row))
    }

    /// Gives all of them in their order.
    ///
    /// # Errors
    /// As [`ExternalSorter::finish_entries`].
    pub(crate) fn finish<F: From<io::Error>>(self, mut take: impl FnMut(u128, u64) -> Result<(), F>) -> Result<(), F> {
        self.finish_entries(|(hash, row)| take(hash, row))
    }
}

impl<E: SortedEntry> ExternalSorter<E> {
    /// Of entries that are larger than hashes: fewer of them fit the same memory.
    pub(crate) fn with_entries(folder: &Path) -> Self {
        Self::with_runs(folder, RUN_HASHES * HashEntry::BYTES / E::BYTES)
    }

    /// Keeps at most `1 / of` of the usual memory: for one of several that are filled at once.
    pub(crate) fn one_of(folder: &Path, of: usize) -> Self {
        Self::with_runs(folder, (RUN_HASHES / of.max(1)).max(MIN_RUN_HASHES))
    }

    fn with_runs(folder: &Path, size: usize) -> Self {
        Self { run: Vec::new(), size, folder: folder.to_owned(), spilled: None }
    }

    /// Takes one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn push_entry(&mut self, entry: E) -> io::Result<()> {
        self.run.push(entry);
        if self.run.len() < self.size { Ok(()) } else { self.spill() }
    }

    fn spill(&mut self) -> io::Result<()> {
        self.run.sort_unstable();
        let (file, ends) = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert((tempfile::tempfile_in(&self.folder)?, Vec::new())),
        };
        let mut bytes = Vec::with_capacity(self.run.len() * E::BYTES);
        self.run.iter().for_each(|entry| entry.write(&mut bytes));
        file.write_all(&bytes)?;
        ends.push(ends.last().unwrap_or(&0) + bytes.len() as u64);
        self.run.clear();
        Ok(())
    }

    /// Gives all of them in their order.
    ///
    /// # Errors
    /// When the file cannot be read, or what `take` fails with.
    pub(crate) fn finish_entries<F: From<io::Error>>(
        mut self,
        mut take: impl FnMut(E) -> Result<(), F>,
    ) -> Result<(), F> {
        if self.spilled.is_none() {
            self.run.sort_unstable();
            return self.run.iter().try_for_each(|entry| take(*entry));
        }
        if !self.run.is_empty() {
            self.spill()?;
        }
        let Some((file, ends)) = self.spilled else { return Ok(()) };
        let mut runs = Vec::with_capacity(ends.len());
        let mut heads = BinaryHeap::new();
        let mut start = 0;
        for (number, end) in ends.into_iter().enumerate() {
            let mut run = SortedRun { at: start, end, read: Vec::new().into_iter() };
            heads.extend(run.next(&file)?.map(|entry| Reverse((entry, number))));
            runs.push(run);
            start = end;
        }
        while let Some(Reverse((entry, number))) = heads.pop() {
            take(entry)?;
            heads.extend(runs[number].next(&file)?.map(|entry| Reverse((entry, number))));
        }
        Ok(())
    }
}

/// A sorted run in the file.
struct SortedRun<E> {
    at: u64,
    end: u64,
    read: std::vec::IntoIter<E>,
}

impl<E: SortedEntry> SortedRun<E> {
    fn next(&mut self, file: &File) -> io::Result<Option<E>> {
        if self.read.len() == 0 && self.at < self.end {
            let length = (READ_BYTES / E::BYTES * E::BYTES).min((self.end - self.at) as usize);
            let mut bytes = vec![0; length];
            let mut file = file;
            file.seek(SeekFrom::Start(self.at))?;
            file.read_exact(&mut bytes)?;
            self.at += length as u64;
            self.read = bytes.chunks_exact(E::BYTES).map(E::read).collect::<Vec<_>>().into_iter();
        }
        Ok(self.read.next())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sorts_as_memory_does(hashes in prop::collection::vec(0..50_u128, 0..200), size in 1..70_usize) {
            let folder = tempfile::tempdir().unwrap();
            let mut sorter = ExternalSorter::with_runs(folder.path(), size);
            for (&hash, row) in hashes.iter().zip(0..) {
                sorter.push(hash << 99, row).unwrap();
            }
            let mut expected: Vec<HashEntry> = hashes.iter().zip(0..).map(|(&hash, row)| (hash << 99, row)).collect();
            expected.sort_unstable();
            let mut found = Vec::new();
            sorter.finish(|hash, row| { found.push((hash, row)); io::Result::Ok(()) }).unwrap();
            prop_assert_eq!(found, expected);
        }
    }
}
