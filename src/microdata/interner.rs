//! Byte strings to dense codes, in the order in which they are first seen: the dictionary of a column under construction.
//!
//! Nearly every field of a table repeats a value seen before, so a small direct-mapped cache stands before the hash table.
//! It is keyed by a value's ends and its length, which for values of at most sixteen bytes is the value itself. Its hash is fixed and an adversary may fill it with collisions; that costs a look-up in the hash table,
//! whose own hash is keyed at random.

use ahash::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::domain::Arena;

/// The cache grows with the dictionary, by this many slots for each value, up to `CACHE_LIMIT` slots.
const CACHE_FACTOR: usize = 8;
const CACHE_START: usize = 64;
const CACHE_LIMIT: usize = 1 << 12;
/// The most slots of the caches of all columns of a table together: 8 MiB.
const CACHES_TOGETHER: usize = 1 << 18;
/// A table with more than this multiple of the places that it needed is freed.
const SPARE_PLACES: usize = 8;

/// Memory for a distinct value without its bytes: its end, its place in the hash table, a count that others keep.
pub(super) const VALUE_OVERHEAD: usize = 24;

/// A value of at most sixteen bytes as it is, filled up with zeros; of a longer one the first and the last eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueKey(u128);

/// By length, the bytes of a value that are its own.
const OWN_BYTES_MASK: [u128; 17] = {
    let mut own = [u128::MAX; 17];
    let mut length = 0;
    while length < 16 {
        own[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    own
};

impl ValueKey {
    /// The ends of `value`.
    #[must_use]
    pub fn from_bytes(value: &[u8]) -> Self {
        let mut ends = [0; 16];
        if value.len() <= 16 {
            ends[..value.len()].copy_from_slice(value);
        } else {
            ends[..8].copy_from_slice(&value[..8]);
            ends[8..].copy_from_slice(&value[value.len() - 8..]);
        }
        Self(u128::from_le_bytes(ends))
    }

    /// The ends of the value at `start..end` of `buffer`, without a branch on its length where the buffer goes on behind it:
    /// lengths change from field to field, and no processor guesses them.
    #[inline]
    pub(super) fn within(buffer: &[u8], start: usize, end: usize) -> Self {
        match (buffer[start..].first_chunk(), OWN_BYTES_MASK.get(end - start)) {
            (Some(chunk), Some(own)) => Self(u128::from_le_bytes(*chunk) & own),
            _ => Self::from_bytes(&buffer[start..end]),
        }
    }

    /// A place in a cache of `slots`, a power of two.
    #[inline]
    #[must_use]
    pub const fn slot(self, slots: usize) -> usize {
        const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
        let (first, last) = (self.0 as u64, (self.0 >> 64) as u64);
        let product = (first ^ last.rotate_left(23)) as u128 * ODD as u128;
        (product ^ product >> 64) as usize & (slots - 1)
    }
}

#[derive(Clone, Copy)]
struct InternerSlot {
    ends: ValueKey,
    length: u32,
    code: u32,
}

impl InternerSlot {
    /// No value has this length: longer ones are not cached.
    const VACANT: Self = Self { ends: ValueKey(0), length: u32::MAX, code: 0 };
}

/// Assigns codes 0, 1, 2, ... to distinct byte strings.
#[derive(Clone)]
pub struct Interner {
    values: Arena,
    /// Hashes and codes. With the hash at hand, growing the table does not touch the values.
    table: HashTable<(u32, u32)>,
    hasher: RandomState,
    cache: Box<[InternerSlot]>,
    cache_limit: usize,
}

impl Default for Interner {
    fn default() -> Self {
        Self::among(1)
    }
}

impl Interner {
    /// One of several interners in use at the same time, whose caches together stay small.
    #[must_use]
    pub fn among(columns: usize) -> Self {
        let share = CACHES_TOGETHER / columns.max(1);
        Self {
            values: Arena::default(),
            table: HashTable::new(),
            hasher: RandomState::new(),
            cache: vec![InternerSlot::VACANT; CACHE_START].into_boxed_slice(),
            cache_limit: (share.max(CACHE_START) / 2 + 1).next_power_of_two().min(CACHE_LIMIT),
        }
    }

    /// The code of `value`; a value not seen before gets the next one.
    ///
    /// # Panics
    /// When there would be more than 2^32 distinct values.
    pub fn intern(&mut self, value: &[u8]) -> u32 {
        self.intern_with(value, ValueKey::from_bytes(value))
    }

    /// The same for a value whose ends are at hand.
    ///
    /// # Panics
    /// When there would be more than 2^32 distinct values.
    #[inline]
    pub fn intern_with(&mut self, value: &[u8], ends: ValueKey) -> u32 {
        let cached = self.cache[ends.slot(self.cache.len())];
        let alike = cached.ends == ends && cached.length as usize == value.len();
        if alike && (value.len() <= 16 || self.values.get(cached.code as usize) == value) {
            return cached.code;
        }
        self.look_up(value, ends)
    }

    #[inline(never)]
    fn look_up(&mut self, value: &[u8], ends: ValueKey) -> u32 {
        let Self { values, table, hasher, .. } = self;
        let hash = hasher.hash_one(value) as u32;
        let same = |&(known, code): &(u32, u32)| known == hash && values.get(code as usize) == value;
        let code = match table.entry(spread(hash), same, |&(hash, _)| spread(hash)) {
            Entry::Occupied(found) => found.get().1,
            Entry::Vacant(place) => {
                // Unwrap safety: every caller bounds the number of values, and 2^32 of them would not fit in memory.
                let code = u32::try_from(values.len()).expect("fewer than 2^32 distinct values");
                place.insert((hash, code));
                values.push(value);
                let wanted = CACHE_FACTOR * values.len();
                if wanted > self.cache.len() && self.cache.len() < self.cache_limit {
                    let slots = wanted.next_power_of_two().min(self.cache_limit);
                    self.cache = vec![InternerSlot::VACANT; slots].into_boxed_slice();
                }
                code
            }
        };
        if value.len() < u32::MAX as usize {
            let index = ends.slot(self.cache.len());
            self.cache[index] = InternerSlot { ends, length: value.len() as u32, code };
        }
        code
    }

    /// The code of `value` if it was seen before.
    #[must_use]
    pub fn get(&self, value: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(value) as u32;
        let alike = |&(known, code): &(u32, u32)| known == hash && self.values.get(code as usize) == value;
        self.table.find(spread(hash), alike).map(|&(_, code)| code)
    }

    /// How many distinct values were seen.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// About how many bytes of memory the dictionary takes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        (self.values.size() + self.values.len() * VALUE_OVERHEAD) as u64
    }

    /// Whether no value was seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The distinct values, in the order of their codes.
    #[must_use]
    pub const fn values(&self) -> &Arena {
        &self.values
    }

    /// The distinct values, in the order of their codes; the interner begins anew.
    pub fn take(&mut self) -> Arena {
        if self.table.capacity() > SPARE_PLACES * self.values.len().max(CACHE_START) {
            // one rich piece of a column must not cost memory for the rest of a table
            self.table = HashTable::new();
        }
        self.table.clear();
        self.cache.fill(InternerSlot::VACANT);
        // what comes next is likely to be as large
        let next = Arena::with_capacity(self.values.len(), self.values.size());
        std::mem::replace(&mut self.values, next)
    }
}

/// The table takes its tags from the highest bits and its places from the lowest.
const fn spread(hash: u32) -> u64 {
    (hash as u64) << 32 | hash as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_map(values in prop::collection::vec(prop::collection::vec(b'a'..=b'c', 0..20), 0..3000)) {
            let mut interner = Interner::default();
            let mut codes = HashMap::new();
            for value in &values {
                let next = codes.len() as u32;
                let code = *codes.entry(value.clone()).or_insert(next);
                prop_assert_eq!(interner.intern(value), code);
                prop_assert_eq!(interner.get(value), Some(code));
            }
            prop_assert_eq!(interner.len(), codes.len());
            for (value, code) in &codes {
                prop_assert_eq!(interner.values().get(*code as usize), &value[..]);
            }
        }
    }

    #[test]
    fn ends_do_not_depend_on_what_stands_behind_a_value() {
        let buffer: Vec<u8> = (1..=60).collect();
        for start in 0..40 {
            for end in start..=60 {
                assert_eq!(ValueKey::within(&buffer, start, end), ValueKey::from_bytes(&buffer[start..end]));
            }
        }
    }

    #[test]
    fn short_values_get_distinct_codes() {
        let mut interner = Interner::default();
        for round in 0..3 {
            let mut code = 0;
            for length in 0..4 {
                for number in 0..3_usize.pow(length) {
                    let value: Vec<u8> = (0..length).map(|i| (number / 3_usize.pow(i) % 3) as u8).collect();
                    assert_eq!(interner.intern(&value), code, "round {round}");
                    code += 1;
                }
            }
        }
    }

    #[test]
    fn take_begins_anew() {
        let mut interner = Interner::default();
        assert_eq!((interner.intern(b"x"), interner.intern(b"y")), (0, 1));
        assert_eq!(interner.take().iter().collect::<Vec<_>>(), [b"x", b"y"]);
        assert!(interner.is_empty());
        assert_eq!((interner.intern(b"y"), interner.get(b"x")), (0, None));
    }
}
