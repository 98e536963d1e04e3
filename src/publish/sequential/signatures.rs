//! Rows that are alike in what matters, counted: whatever comes after works on these, not on rows.

use ahash::RandomState;
use hashbrown::HashMap;

use crate::control::{Cancelled, Control};
use crate::microdata::Codes;

/// The distinct rows of some columns, each with its count.
#[derive(Clone)]
pub(super) struct RowSignatures {
    width: usize,
    /// One signature behind the other.
    values: Vec<u32>,
    counts: Vec<u64>,
}

impl RowSignatures {
    /// Of the rows of a table.
    pub(super) fn of_rows(rows: usize, columns: &[&Codes], control: &Control) -> Result<Self, Cancelled> {
        Self::new(rows, columns.len(), |row, at| columns[at].get(row), |_| 1, control)
    }

    /// Of some columns of other signatures.
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
            // numbers are given in the order of first rows
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

/// Numbers tuples in the order in which they come.
#[derive(Default)]
pub(super) struct TupleInterner {
    numbers: HashMap<Box<[u32]>, u32, RandomState>,
}

impl TupleInterner {
    /// The number of a tuple, and whether it is new.
    pub(super) fn number(&mut self, tuple: &[u32]) -> (u32, bool) {
        if let Some(&number) = self.numbers.get(tuple) {
            return (number, false);
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(tuple.into(), number);
        (number, true)
    }
}
