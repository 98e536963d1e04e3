//! Signatures: the distinct rows of the needed columns, with their counts.

use ahash::RandomState;
use hashbrown::HashMap;

use crate::control::{Cancelled, Control};
use crate::microdata::Codes;

/// Distinct rows of some columns, each with its count.
#[derive(Clone)]
pub(super) struct RowSignatures {
    width: usize,
    /// Codes of all signatures, one after the other.
    values: Vec<u32>,
    counts: Vec<u64>,
}

impl RowSignatures {
    /// Signatures of the rows of a table.
    pub(super) fn of_rows(rows: usize, columns: &[&Codes], control: &Control) -> Result<Self, Cancelled> {
        Self::new(rows, columns.len(), |row, at| columns[at].get(row), |_| 1, control)
    }

    /// Signatures of some columns of other signatures.
    pub(super) fn project(&self, columns: &[usize], control: &Control) -> Result<Self, Cancelled> {
        Self::new(self.len(), columns.len(), |row, at| self.get(row)[columns[at]], |row| self.counts[row], control)
    }

    fn new(
        rows: usize,
        width: usize,
        cell: impl Fn(usize, usize) -> u32,
        count: impl Fn(usize) -> u64,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let mut number_of = vec![0_u32; rows];
        for at in 0..width {
            let mut numbers: HashMap<u64, u32, RandomState> = HashMap::default();
            for (chunk, begin) in number_of.chunks_mut(Control::STRIDE).zip((0..).step_by(Control::STRIDE)) {
                control.check()?;
                for (number, row) in chunk.iter_mut().zip(begin..) {
                    let next = numbers.len() as u32;
                    *number = *numbers.entry(u64::from(*number) << 32 | u64::from(cell(row, at))).or_insert(next);
                }
            }
        }
        let mut found = Self { width, values: Vec::new(), counts: Vec::new() };
        for (row, number) in number_of.into_iter().enumerate() {
            // numbers follow the order of first rows
            if number as usize == found.counts.len() {
                found.values.extend((0..width).map(|at| cell(row, at)));
                found.counts.push(0);
            }
            found.counts[number as usize] += count(row);
        }
        Ok(found)
    }

    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    pub(super) fn get(&self, signature: usize) -> &[u32] {
        &self.values[signature * self.width..][..self.width]
    }

    pub(super) fn count(&self, signature: usize) -> u64 {
        self.counts[signature]
    }
}

/// Numbers tuples in the order of their first occurrence.
#[derive(Default)]
pub(super) struct TupleInterner {
    numbers: HashMap<Box<[u32]>, u32, RandomState>,
}

impl TupleInterner {
    /// Number of the tuple, and whether it is new.
    pub(super) fn number(&mut self, tuple: &[u32]) -> (u32, bool) {
        if let Some(&number) = self.numbers.get(tuple) {
            return (number, false);
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(tuple.into(), number);
        (number, true)
    }
}
