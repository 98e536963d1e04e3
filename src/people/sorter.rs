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

/// Bytes of an entry in the file.
const ENTRY_BYTES: usize = 24;

/// A hash and the row that it is of.
type HashEntry = (u128, u64);

/// Takes hashes in any order.
pub(crate) struct ExternalSorter {
    run: Vec<HashEntry>,
    size: usize,
    folder: PathBuf,
    spilled: Option<(File, Vec<u64>)>,
}

impl ExternalSorter {
    pub(crate) fn new(folder: &Path) -> Self {
        Self::with_runs(folder, RUN_HASHES)
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
    pub(crate) fn push(&mut self, hash: u128, row: u64) -> io::Result<()> {
        self.run.push((hash, row));
        if self.run.len() < self.size { Ok(()) } else { self.spill() }
    }

    fn spill(&mut self) -> io::Result<()> {
        self.run.sort_unstable();
        let (file, ends) = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert((tempfile::tempfile_in(&self.folder)?, Vec::new())),
        };
        let bytes: Vec<u8> =
            self.run.iter().flat_map(|(hash, row)| hash.to_be_bytes().into_iter().chain(row.to_be_bytes())).collect();
        file.write_all(&bytes)?;
        ends.push(ends.last().unwrap_or(&0) + bytes.len() as u64);
        self.run.clear();
        Ok(())
    }

    /// Gives all of them in their order.
    ///
    /// # Errors
    /// When the file cannot be read, or what `take` fails with.
    pub(crate) fn finish<E: From<io::Error>>(
        mut self,
        mut take: impl FnMut(u128, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.spilled.is_none() {
            self.run.sort_unstable();
            return self.run.iter().try_for_each(|&(hash, row)| take(hash, row));
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
        while let Some(Reverse(((hash, row), number))) = heads.pop() {
            take(hash, row)?;
            heads.extend(runs[number].next(&file)?.map(|entry| Reverse((entry, number))));
        }
        Ok(())
    }
}

/// A sorted run in the file.
struct SortedRun {
    at: u64,
    end: u64,
    read: std::vec::IntoIter<HashEntry>,
}

impl SortedRun {
    fn next(&mut self, file: &File) -> io::Result<Option<HashEntry>> {
        if self.read.len() == 0 && self.at < self.end {
            let length = (READ_BYTES / ENTRY_BYTES * ENTRY_BYTES).min((self.end - self.at) as usize);
            let mut bytes = vec![0; length];
            let mut file = file;
            file.seek(SeekFrom::Start(self.at))?;
            file.read_exact(&mut bytes)?;
            self.at += length as u64;
            let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
            let number = |bytes: &[u8]| bytes.iter().fold(0_u128, |word, &byte| word << 8 | u128::from(byte));
            let entry = |bytes: &[u8; ENTRY_BYTES]| (number(&bytes[..16]), number(&bytes[16..]) as u64);
            self.read = entries.iter().map(entry).collect::<Vec<_>>().into_iter();
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
