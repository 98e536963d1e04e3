//! Rows of a table in groups of equal values.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::control::{Cancelled, Control};
use crate::microdata::Column;
use crate::with_codes;

/// The rows of a column in groups of equal codes: the groups in a mixed order, the rows of a group in theirs.
///
/// Its first rows are complete groups, but for the last one, and are alike for every column.
pub(super) struct GroupedRows {
    rows: Vec<u32>,
    /// The codes that occur, in the order of their groups.
    codes: Vec<u32>,
    /// The end of the group of each code.
    ends: Vec<u32>,
    counts: Vec<u32>,
}

impl GroupedRows {
    /// The first `rows` rows of a column.
    pub(super) fn new(column: &Column, rows: usize, control: &Control) -> Result<Self, Cancelled> {
        let mut counts: Vec<u32> = vec![0; column.domain.len()];
        with_codes!(&column.codes, values => values[..rows].iter().for_each(|&code| counts[code as usize] += 1));
        let mut codes: Vec<u32> = (0..counts.len() as u32).filter(|&code| counts[code as usize] > 0).collect();
        codes.sort_unstable_by_key(|&code| mixed(u64::from(code)));
        let mut ends = vec![0; counts.len()];
        let mut start = 0;
        for &code in &codes {
            ends[code as usize] = start;
            start += counts[code as usize];
        }
        let mut rows = vec![0; rows];
        with_codes!(&column.codes, values => {
            for (row, &code) in values[..rows.len()].iter().enumerate() {
                if row.is_multiple_of(Control::STRIDE) {
                    control.check()?;
                }
                let end = &mut ends[code as usize];
                rows[*end as usize] = row as u32;
                *end += 1;
            }
        });
        Ok(Self { rows, codes, ends, counts })
    }

    /// The number of groups.
    pub(super) fn len(&self) -> usize {
        self.codes.len()
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The number of rows with `code`.
    fn count(&self, code: u32) -> usize {
        self.counts[code as usize] as usize
    }

    /// The rows with `code`.
    pub(super) fn of_code(&self, code: u32) -> &[u32] {
        let end = self.ends[code as usize] as usize;
        &self.rows[end - self.count(code)..end]
    }

    /// The groups among the first `rows` rows; the last one may be incomplete.
    pub(super) fn groups(&self, rows: usize) -> impl Iterator<Item = &[u32]> {
        let mut start = 0;
        self.codes.iter().map_while(move |&code| {
            let taken = self.count(code).min(rows - start);
            start += taken;
            (taken > 0).then(|| &self.rows[start - taken..start])
        })
    }
}

/// A one-to-one mixture of the bits of a number.
const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// A number for each code of a column, all forgotten at once.
#[derive(Default)]
pub(super) struct CodeNumbers {
    /// For each code, when its number was written, and the number.
    entries: Vec<u64>,
    now: u32,
}

impl CodeNumbers {
    /// Forgets all numbers, and makes room for `codes` codes.
    pub(super) fn forget(&mut self, codes: usize) {
        if self.now == u32::MAX {
            self.entries.fill(0);
            self.now = 0;
        }
        self.now += 1;
        if self.entries.len() < codes {
            self.entries.resize(codes, 0);
        }
    }

    /// The number of `code`.
    pub(super) fn get(&self, code: usize) -> Option<u32> {
        let entry = self.entries[code];
        ((entry >> 32) as u32 == self.now).then_some(entry as u32)
    }

    /// Sets the number of `code`.
    pub(super) fn set(&mut self, code: usize, number: u32) {
        self.entries[code] = u64::from(self.now) << 32 | u64::from(number);
    }

    /// Adds 1 to the number of `code`, which begins at 0, and gives it.
    pub(super) fn increment(&mut self, code: usize) -> u32 {
        let number = self.get(code).unwrap_or(0) + 1;
        self.set(code, number);
        number
    }
}

/// The rows that a search has visited.
pub(super) struct RowVisits<'a> {
    rows: AtomicU64,
    control: &'a Control,
}

impl<'a> RowVisits<'a> {
    pub(super) const fn new(control: &'a Control) -> Self {
        Self { rows: AtomicU64::new(0), control }
    }

    pub(super) const fn control(&self) -> &Control {
        self.control
    }

    /// The number of visited rows.
    pub(super) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Adds rows, at most a few times [`Control::STRIDE`] where a loop visits more.
    pub(super) fn add(&self, rows: usize) -> Result<(), Cancelled> {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.control.check()
    }

    /// Adds `pending` rows once they are many, and begins anew.
    pub(super) fn add_many(&self, pending: &mut usize) -> Result<(), Cancelled> {
        if *pending >= Control::STRIDE { self.add(std::mem::take(pending)) } else { Ok(()) }
    }
}
