//! The content hash of a table.

use std::ops::Range;

use rayon::prelude::*;

use crate::microdata::Chunk;
use crate::vault::ContentHasher;

/// A keyed hash of a table's content, names and values: the sum of the rows' hashes. The order of rows and of columns does not
/// enter it, nor do types: a table of the same subjects in another arrangement, or with other types of columns, is the same
/// content to the ledger.
pub(crate) struct TableContentHash {
    template: ContentHasher,
    names: Vec<String>,
    /// The columns by name.
    order: Vec<usize>,
    sum: HashSum,
}

/// Rows that a processor hashes at once.
const ROWS_AT_ONCE: usize = 1 << 12;

/// A sum of hashes: of their words, each by itself.
#[derive(Clone, Copy, Default)]
struct HashSum([u64; 4]);

impl HashSum {
    fn add(&mut self, hash: [u8; 32]) {
        let words = hash.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        self.0.iter_mut().zip(words).for_each(|(sum, word)| *sum = sum.wrapping_add(word));
    }

    fn merge(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(sum, word)| *sum = sum.wrapping_add(word));
        self
    }
}

impl TableContentHash {
    /// Of a table with these columns; `template` has hashed nothing.
    pub(crate) fn new(template: ContentHasher, names: &[String]) -> Self {
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_unstable_by_key(|&column| &names[column]);
        Self { template, names: names.to_vec(), order, sum: HashSum::default() }
    }

    /// Adds rows.
    pub(crate) fn add(&mut self, chunk: &Chunk) {
        let starts = (0..chunk.rows as usize).into_par_iter().step_by(ROWS_AT_ONCE);
        let sum = starts.map(|first| self.sum_of(chunk, first..(chunk.rows as usize).min(first + ROWS_AT_ONCE)));
        self.sum = self.sum.merge(sum.reduce(HashSum::default, HashSum::merge));
    }

    /// The sum of some rows.
    fn sum_of(&self, chunk: &Chunk, rows: Range<usize>) -> HashSum {
        let (mut sum, mut bytes) = (HashSum::default(), Vec::new());
        for row in rows {
            bytes.clear();
            bytes.push(b'r');
            for &column in &self.order {
                match chunk.columns[column].value(row) {
                    None => bytes.extend_from_slice(&u32::MAX.to_le_bytes()),
                    Some(value) => {
                        bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
                        bytes.extend_from_slice(value);
                    }
                }
            }
            let mut hash = self.template.clone();
            hash.update(&bytes);
            sum.add(hash.finish());
        }
        sum
    }

    /// The hash, over names too.
    pub(crate) fn finish(self) -> [u8; 32] {
        let mut hash = self.template;
        hash.update(b"table\0");
        for &column in &self.order {
            let name = &self.names[column];
            hash.update(&(name.len() as u64).to_le_bytes());
            hash.update(name.as_bytes());
        }
        for word in self.sum.0 {
            hash.update(&word.to_le_bytes());
        }
        hash.finish()
    }
}
