//! The content hash of a table.

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
    sum: [u64; 4],
    row: Vec<u8>,
}

impl TableContentHash {
    /// Of a table with these columns; `template` has hashed nothing.
    pub(crate) fn new(template: ContentHasher, names: &[String]) -> Self {
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_unstable_by_key(|&column| &names[column]);
        Self { template, names: names.to_vec(), order, sum: [0; 4], row: Vec::new() }
    }

    /// Adds rows.
    pub(crate) fn add(&mut self, chunk: &Chunk) {
        for row in 0..chunk.rows as usize {
            self.row.clear();
            self.row.push(b'r');
            for &column in &self.order {
                match chunk.columns[column].value(row) {
                    None => self.row.extend_from_slice(&u32::MAX.to_le_bytes()),
                    Some(value) => {
                        self.row.extend_from_slice(&(value.len() as u32).to_le_bytes());
                        self.row.extend_from_slice(value);
                    }
                }
            }
            let mut hash = self.template.clone();
            hash.update(&self.row);
            for (sum, word) in self.sum.iter_mut().zip(hash.finish().chunks_exact(8)) {
                let word = word.iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
                *sum = sum.wrapping_add(word);
            }
        }
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
        for word in self.sum {
            hash.update(&word.to_le_bytes());
        }
        hash.finish()
    }
}
