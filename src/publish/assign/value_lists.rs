//! Rows by sensitive value, from which buckets take them.

use super::SensitiveCodes;
use crate::control::{Cancelled, Control};
use crate::random::RandomStream;
use crate::with_codes;

/// The rows of each sensitive value that no bucket has taken, in random order.
pub(super) struct ValueLists {
    /// Rows of the first value, then those of the second, and so on; those that are taken last within their value.
    pub(super) rows: Vec<u32>,
    /// End of the rows of each value that are left.
    pub(super) ends: Vec<usize>,
    /// Number of rows of each value that are left.
    pub(super) sizes: Vec<usize>,
}

impl ValueLists {
    /// Groups all rows by value; `stream` draws the order within a value.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub(super) fn draw(
        values: &SensitiveCodes<'_>,
        stream: &mut RandomStream,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let sizes: Vec<usize> = values.counts.iter().map(|&count| count as usize).collect();
        let mut ends = Vec::with_capacity(sizes.len());
        let mut start = 0;
        for &count in &sizes {
            ends.push(start);
            start += count;
        }
        let mut rows = vec![0u32; values.codes.len()];
        let mut row = 0;
        with_codes!(&*values.codes, codes => for codes in codes.chunks(Control::STRIDE) {
            control.check()?;
            for &code in codes {
                let slot = &mut ends[code as usize];
                rows[*slot] = row;
                *slot += 1;
                row += 1;
            }
        });
        for (&end, &count) in ends.iter().zip(&sizes) {
            control.check()?;
            stream.shuffle(&mut rows[end - count..end]);
        }
        Ok(Self { rows, ends, sizes })
    }

    /// Position of the first row of a value.
    pub(super) fn start(&self, value: usize) -> usize {
        self.ends[value] - self.sizes[value]
    }

    /// The rows of a value that are left.
    pub(super) fn left(&self, value: usize) -> &[u32] {
        &self.rows[self.start(value)..self.ends[value]]
    }

    /// Takes the row of a value at the position in [`Self::left`] that `choose` returns.
    pub(super) fn take(&mut self, value: usize, choose: impl FnOnce(&[u32]) -> usize) -> u32 {
        let start = self.start(value);
        let chosen = start + choose(self.left(value));
        self.ends[value] -= 1;
        self.sizes[value] -= 1;
        self.rows.swap(chosen, self.ends[value]);
        self.rows[self.ends[value]]
    }
}
