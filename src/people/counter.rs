//! Counts more keys than memory holds.

use std::io;
use std::path::Path;

use super::sorter::ExternalSorter;

/// Most keys that are counted in memory.
const MAX_COUNTED_KEYS: usize = 1 << 18;

/// How often each of some keys occurs. What memory cannot hold goes to a file without a name.
///
/// Keys that come in their order, as most do here, are counted without being moved.
pub(super) struct ExternalCounter {
    /// Keys may be there several times.
    counts: Vec<(u128, u64)>,
    room: usize,
    full: ExternalSorter,
}

impl ExternalCounter {
    pub(super) fn new(folder: &Path) -> Self {
        Self::with_room(folder, MAX_COUNTED_KEYS)
    }

    fn with_room(folder: &Path, room: usize) -> Self {
        Self { counts: Vec::new(), room, full: ExternalSorter::new(folder) }
    }

    /// Counts a key.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn add(&mut self, key: u128, times: u64) -> io::Result<()> {
        self.counts.push((key, times));
        if self.counts.len() < self.room {
            return Ok(());
        }
        self.merge();
        // else there is room again for as many
        if self.counts.len() > self.room / 2 { self.empty() } else { Ok(()) }
    }

    /// Sorts the keys, each of which is there once from then on.
    fn merge(&mut self) {
        // this sort merges runs that are in order
        self.counts.sort_by_key(|(key, _)| *key);
        self.counts.dedup_by(|(next, more), (key, times)| {
            let is_same = next == key;
            *times += if is_same { *more } else { 0 };
            is_same
        });
    }

    fn empty(&mut self) -> io::Result<()> {
        self.counts.drain(..).try_for_each(|(key, times)| self.full.push(key, times))
    }

    /// Counts a key that hardly occurs again: it is not looked up before the end.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn add_rare(&mut self, key: u128) -> io::Result<()> {
        self.full.push(key, 1)
    }

    /// Gives the keys in their order, each once with its number.
    ///
    /// # Errors
    /// When the file cannot be read, or what `take` fails with.
    pub(super) fn finish<E: From<io::Error>>(
        mut self,
        mut take: impl FnMut(u128, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        self.merge();
        self.empty()?;
        let mut open: Option<(u128, u64)> = None;
        self.full.finish(|key, times| -> Result<(), E> {
            match &mut open {
                Some((of, sum)) if *of == key => *sum += times,
                _ => {
                    if let Some((of, sum)) = open.replace((key, times)) {
                        take(of, sum)?;
                    }
                }
            }
            Ok(())
        })?;
        open.map_or(Ok(()), |(of, sum)| take(of, sum))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_as_memory_does(keys in prop::collection::vec((0..30_u128, 1..4_u64), 0..200), room in 1..40_usize) {
            let folder = tempfile::tempdir().unwrap();
            let mut counter = ExternalCounter::with_room(folder.path(), room);
            let mut expected: BTreeMap<u128, u64> = BTreeMap::new();
            for (key, times) in keys {
                if times == 1 {
                    counter.add_rare(key << 100).unwrap();
                } else {
                    counter.add(key << 100, times).unwrap();
                }
                *expected.entry(key << 100).or_default() += times;
            }
            let mut found = Vec::new();
            counter.finish(|key, times| { found.push((key, times)); io::Result::Ok(()) }).unwrap();
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
