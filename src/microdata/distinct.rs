//! Exact counts of the distinct values of a column, in bounded memory and several passes over the column.
//!
//! The counter keeps 128 bits of keyed hashes for each value. When it is full, it keeps one class of hashes: half of them, then a
//! quarter, and so on. Later passes count the other classes. A count is wrong only if two values have equal hashes under random
//! keys: for 2^22 values the probability is 2^-85.

use ahash::RandomState;
use hashbrown::HashTable;

/// The most hashes held at once: what a table of 2^20 places takes, of 25 bytes each.
const MAX_HASHES_HELD: usize = (1 << 20) / 8 * 7;
/// The ratio of estimated to accepted values at which counting stops.
const GIVE_UP_FACTOR: u64 = 2;

/// The unit of shares of counted hashes: a pass over all hashes has this share.
const ALL_HASHES: u64 = 1 << 32;

struct HashedValue {
    hash: [u32; 4],
    count: u32,
    length: u32,
}

/// Hashes with equal lowest `level` bits.
#[derive(Clone, Copy)]
struct HashClass {
    residue: u64,
    level: u32,
}

/// Counts of a class, or of several.
#[derive(Clone, Copy, Default)]
struct ClassCounts {
    distinct: u64,
    bytes: u64,
    top: u64,
    share: u64,
}

/// What is known of the distinct values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DistinctSummary {
    /// How many there are; about how many unless `exact`.
    pub(super) distinct: u64,
    /// Their bytes together; about, unless `exact`.
    pub(super) bytes: u64,
    /// How often the most frequent one was counted; at least so often, unless `exact`.
    pub(super) top: u64,
    /// Whether every value was counted.
    pub(super) exact: bool,
}

/// The counting of one column.
pub(super) struct DistinctCounter {
    hashers: [RandomState; 2],
    /// The class that the pass under way counts.
    class: HashClass,
    table: HashTable<HashedValue>,
    bytes: u64,
    room: usize,
    /// The classes of later passes.
    rest: Vec<HashClass>,
    before: ClassCounts,
}

impl Default for DistinctCounter {
    fn default() -> Self {
        Self::with_room(MAX_HASHES_HELD)
    }
}

impl DistinctCounter {
    pub(super) fn with_room(room: usize) -> Self {
        Self {
            hashers: [RandomState::new(), RandomState::new()],
            class: HashClass { residue: 0, level: 0 },
            table: HashTable::new(),
            bytes: 0,
            room: room.max(1),
            rest: Vec::new(),
            before: ClassCounts::default(),
        }
    }

    /// Counts a value that occurs `count` times more. In every pass the same values have to come.
    pub(super) fn push(&mut self, value: &[u8], count: u32) {
        let first = self.hashers[0].hash_one(value);
        if !self.class.has(first) {
            return;
        }
        let second = self.hashers[1].hash_one(value);
        let hash = [first as u32, (first >> 32) as u32, second as u32, (second >> 32) as u32];
        if let Some(entry) = self.table.find_mut(second, |entry| entry.hash == hash) {
            entry.count = entry.count.saturating_add(count);
            return;
        }
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
        self.bytes += u64::from(length);
        self.table.insert_unique(second, HashedValue { hash, count, length }, HashedValue::second);
        while self.table.len() > self.room {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let HashClass { residue, level } = self.class;
        self.rest.push(HashClass { residue: residue | 1 << level, level: level + 1 });
        self.class = HashClass { residue, level: level + 1 };
        let (class, bytes) = (self.class, &mut self.bytes);
        self.table.retain(|entry| {
            let kept = class.has(entry.first());
            *bytes -= if kept { 0 } else { u64::from(entry.length) };
            kept
        });
    }

    /// All that was counted so far, the pass under way as if it had ended.
    fn counted(&self) -> ClassCounts {
        let top = self.table.iter().map(|entry| u64::from(entry.count)).max().unwrap_or(0);
        ClassCounts {
            distinct: self.before.distinct + self.table.len() as u64,
            bytes: self.before.bytes + self.bytes,
            top: self.before.top.max(top),
            share: self.before.share + (ALL_HASHES >> self.class.level),
        }
    }

    /// Ends a pass. Whether another one is needed: not when all is counted, nor once the values are certainly more than
    /// `fits` accepts, which is asked of numbers of values and of their bytes.
    pub(super) fn wants_another(&mut self, fits: impl Fn(u64, u64) -> bool) -> bool {
        let counted = self.counted();
        let found = self.found();
        let certain = !fits(counted.distinct, counted.bytes);
        // of a class this large the share lies within a hundredth of what is expected, whatever the values
        let excessive =
            !fits(found.distinct / GIVE_UP_FACTOR, found.bytes / GIVE_UP_FACTOR) && self.table.len() > self.room / 4;
        if self.rest.is_empty() || certain || excessive {
            return false;
        }
        self.before = counted;
        if let Some(next) = self.rest.pop() {
            self.class = next;
        }
        self.table.clear();
        self.bytes = 0;
        true
    }

    /// What is known after the last pass.
    pub(super) fn found(&self) -> DistinctSummary {
        let ClassCounts { distinct, bytes, top, share } = self.counted();
        let all = |part: u64| (u128::from(part) * u128::from(ALL_HASHES) / u128::from(share.max(1))) as u64;
        DistinctSummary { distinct: all(distinct), bytes: all(bytes), top, exact: self.rest.is_empty() }
    }
}

impl HashClass {
    const fn has(self, first: u64) -> bool {
        first & ((1 << self.level) - 1) == self.residue
    }
}

impl HashedValue {
    const fn first(&self) -> u64 {
        self.hash[0] as u64 | (self.hash[1] as u64) << 32
    }

    /// Places in the table come from the hash that does not make the classes.
    const fn second(&self) -> u64 {
        self.hash[2] as u64 | (self.hash[3] as u64) << 32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn count(values: &[String], room: usize, max: u64) -> (DistinctSummary, u32) {
        let mut distinct = DistinctCounter::with_room(room);
        let mut passes = 0;
        loop {
            passes += 1;
            for value in values {
                distinct.push(value.as_bytes(), 1);
                assert!(distinct.table.len() <= room);
            }
            if !distinct.wants_another(|found, _| found <= max) {
                return (distinct.found(), passes);
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_map(values in prop::collection::vec("[a-d]{0,5}", 1..600), room in 1..400_usize) {
            let mut counts: HashMap<&str, u64> = HashMap::new();
            values.iter().for_each(|value| *counts.entry(value).or_default() += 1);
            let expected = DistinctSummary {
                distinct: counts.len() as u64,
                bytes: counts.keys().map(|value| value.len() as u64).sum(),
                top: counts.values().copied().max().unwrap(),
                exact: true,
            };
            prop_assert_eq!(count(&values, room, u64::MAX).0, expected);
        }
    }

    #[test]
    fn few_values_take_one_pass_and_many_as_few_as_the_room_allows() {
        let values: Vec<String> = (0..40_000).map(|number| number.to_string()).collect();
        assert_eq!(count(&values, 40_000, u64::MAX).1, 1);
        let (found, passes) = count(&values, 3000, u64::MAX);
        assert_eq!((found.distinct, found.exact), (40_000, true));
        assert!((14..=32).contains(&passes), "{passes}");
    }

    #[test]
    fn what_is_far_too_much_is_not_counted() {
        let values: Vec<String> = (0..40_000).map(|number| number.to_string()).collect();
        let (found, passes) = count(&values, 3000, 10_000);
        assert_eq!((found.exact, passes), (false, 1));
        assert!((36_000..44_000).contains(&found.distinct), "{found:?}");
        // at the limit every value counts
        assert!(count(&values, 3000, 40_000).0.exact);
        let (found, passes) = count(&values, 3000, 39_999);
        assert!(!found.exact || found.distinct > 39_999);
        assert!(passes > 10 && found.distinct > 36_000);
    }
}
