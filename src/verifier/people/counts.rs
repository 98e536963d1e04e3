//! Counts hashes of which there may be more than memory holds: full counts go to a file without a name, in order, and
//! are merged when all are there.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Most hashes that are counted in memory.
const MAX_COUNTED: usize = 1 << 17;

/// Bytes of a hash and its number in the file.
const ENTRY_BYTES: usize = 24;

/// Entries that are read of a run at once.
const ENTRIES_AT_ONCE: usize = 1 << 10;

/// How often each hash occurs.
pub(super) struct HashCounts {
    /// A hash may be there several times.
    counts: Vec<(u128, u64)>,
    most: usize,
    folder: PathBuf,
    file: Option<File>,
    /// The first byte of each run in the file, and the end of the last.
    bounds: Vec<u64>,
}

impl HashCounts {
    pub(super) fn new(folder: &Path) -> Self {
        Self::with_most(folder, MAX_COUNTED)
    }

    fn with_most(folder: &Path, most: usize) -> Self {
        Self { counts: Vec::new(), most, folder: folder.to_owned(), file: None, bounds: vec![0] }
    }

    pub(super) fn add(&mut self, hash: u128, times: u64) -> io::Result<()> {
        self.counts.push((hash, times));
        if self.counts.len() < self.most {
            return Ok(());
        }
        self.sum_up();
        if self.counts.len() > self.most / 2 { self.write_run() } else { Ok(()) }
    }

    /// Leaves each hash once, in order. Hashes that come in order are not sorted.
    fn sum_up(&mut self) {
        self.counts.sort_by_key(|of| of.0);
        self.counts.dedup_by(|again, of| {
            let is_again = again.0 == of.0;
            of.1 += if is_again { again.1 } else { 0 };
            is_again
        });
    }

    fn write_run(&mut self) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(self.counts.len() * ENTRY_BYTES);
        for (hash, times) in self.counts.drain(..) {
            bytes.extend_from_slice(&hash.to_le_bytes());
            bytes.extend_from_slice(&times.to_le_bytes());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(&self.folder)?),
        };
        let start = self.bounds.last().copied().unwrap_or(0);
        file.write_all_at(&bytes, start)?;
        self.bounds.push(start + bytes.len() as u64);
        Ok(())
    }

    /// Gives each hash once with its number, lowest first.
    pub(super) fn finish<E: From<io::Error>>(
        mut self,
        mut take: impl FnMut(u128, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        self.sum_up();
        if self.file.is_none() {
            return self.counts.into_iter().try_for_each(|(hash, times)| take(hash, times));
        }
        self.write_run()?;
        let Some(file) = self.file else { return Ok(()) };
        let mut runs: Vec<CountedRun> =
            self.bounds.windows(2).map(|of| CountedRun { next: of[0], end: of[1], read: VecDeque::new() }).collect();
        let mut heads = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            heads.extend(run.pop(&file)?.map(|(hash, times)| Reverse((hash, times, number))));
        }
        let mut open: Option<(u128, u64)> = None;
        while let Some(Reverse((hash, times, number))) = heads.pop() {
            heads.extend(runs[number].pop(&file)?.map(|(hash, times)| Reverse((hash, times, number))));
            match &mut open {
                Some((same, total)) if *same == hash => *total += times,
                other => {
                    if let Some((hash, times)) = other.replace((hash, times)) {
                        take(hash, times)?;
                    }
                }
            }
        }
        open.map_or(Ok(()), |(hash, times)| take(hash, times))
    }
}

/// A run in the file.
struct CountedRun {
    next: u64,
    end: u64,
    read: VecDeque<(u128, u64)>,
}

impl CountedRun {
    fn pop(&mut self, file: &File) -> io::Result<Option<(u128, u64)>> {
        if self.read.is_empty() && self.next < self.end {
            let size = ((ENTRIES_AT_ONCE * ENTRY_BYTES) as u64).min(self.end - self.next);
            let mut bytes = vec![0; size as usize];
            file.read_exact_at(&mut bytes, self.next)?;
            self.next += size;
            for entry in bytes.chunks_exact(ENTRY_BYTES) {
                let (mut hash, mut times) = ([0; 16], [0; 8]);
                hash.copy_from_slice(&entry[..16]);
                times.copy_from_slice(&entry[16..]);
                self.read.push_back((u128::from_le_bytes(hash), u64::from_le_bytes(times)));
            }
        }
        Ok(self.read.pop_front())
    }
}

/// Different hashes in their order, in a file without a name where they are many.
pub struct SortedHashes {
    file: BufWriter<tempfile::SpooledTempFile>,
    len: u64,
}

/// Bytes of sorted hashes that stay in memory.
const SORTED_BYTES: usize = 1 << 20;

impl SortedHashes {
    pub(super) fn new(folder: &Path) -> Self {
        Self { file: BufWriter::new(tempfile::spooled_tempfile_in(SORTED_BYTES, folder)), len: 0 }
    }

    pub(super) fn push(&mut self, hash: u128) -> io::Result<()> {
        self.len += 1;
        self.file.write_all(&hash.to_be_bytes())
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Gives all of them in order, at most `most` at once.
    ///
    /// # Errors
    /// If the file cannot be read, or what `take` fails with.
    pub fn batches<E: From<io::Error>>(
        &mut self,
        most: usize,
        mut take: impl FnMut(&[u128]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.file.flush()?;
        let file = self.file.get_mut();
        file.rewind()?;
        let mut left = self.len as usize;
        while left > 0 {
            let mut bytes = vec![0; left.min(most) * 16];
            file.read_exact(&mut bytes)?;
            let hashes: Vec<u128> = bytes.as_chunks::<16>().0.iter().map(|of| u128::from_be_bytes(*of)).collect();
            take(&hashes)?;
            left -= hashes.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_on_disk_are_those_in_memory(hashes in prop::collection::vec(0..90_u128, 0..400), most in 1..50_usize) {
            let folder = tempfile::tempdir().unwrap();
            let mut counts = HashCounts::with_most(folder.path(), most);
            let mut expected: BTreeMap<u128, u64> = BTreeMap::new();
            for hash in hashes {
                counts.add(hash, 2).unwrap();
                *expected.entry(hash).or_default() += 2;
            }
            let mut found = Vec::new();
            counts.finish(|hash, times| -> io::Result<()> { found.push((hash, times)); Ok(()) }).unwrap();
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn sorted_hashes_are_read_in_batches_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut hashes = SortedHashes::new(folder.path());
        (0..2_500).for_each(|hash| hashes.push(hash << 100).unwrap());
        for _ in 0..2 {
            let mut found = Vec::new();
            hashes
                .batches(999, |some| -> io::Result<()> {
                    found.extend_from_slice(some);
                    Ok(())
                })
                .unwrap();
            assert_eq!(found, (0..2_500).map(|hash| hash << 100).collect::<Vec<u128>>());
        }
        assert_eq!(hashes.len(), 2_500);
    }
}
