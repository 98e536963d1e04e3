//! Numbers of tuples of values.

use ahash::RandomState;
use hashbrown::HashTable;

/// Distinct tuples of equal width, numbered in the order in which they came.
#[derive(Default)]
pub(super) struct NumberedTuples {
    width: usize,
    /// The values of all tuples, one tuple after the other.
    values: Vec<u32>,
    numbers: HashTable<u32>,
    hashing: RandomState,
}

impl NumberedTuples {
    pub(super) fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// Number of tuples.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(super) fn tuple(&self, number: u32) -> &[u32] {
        tuple(&self.values, self.width, number)
    }

    /// The number of a tuple, which is listed if it is new.
    pub(super) fn number(&mut self, wanted: &[u32]) -> u32 {
        let Self { width, values, numbers, hashing } = self;
        let next = numbers.len() as u32;
        let is_wanted = |number: &u32| tuple(values, *width, *number) == wanted;
        let hash_of = |number: &u32| hashing.hash_one(tuple(values, *width, *number));
        let number = *numbers.entry(hashing.hash_one(wanted), is_wanted, hash_of).or_insert(next).get();
        if number == next {
            values.extend_from_slice(wanted);
        }
        number
    }

    /// The number of a tuple that may be there.
    pub(super) fn find(&self, wanted: &[u32]) -> Option<u32> {
        self.numbers.find(self.hashing.hash_one(wanted), |number| self.tuple(*number) == wanted).copied()
    }
}

fn tuple(values: &[u32], width: usize, number: u32) -> &[u32] {
    &values[number as usize * width..][..width]
}
