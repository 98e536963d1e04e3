//! Repeated values of the other attributes in a bucket.

use super::codes::{RowsByGroup, SensitiveCodesByRow, occurring};

/// Number of rows of a bucket that repeat a value, over all other attributes.
#[must_use]
pub fn repeats(sensitive: &SensitiveCodesByRow, group: &[u32]) -> usize {
    let distinct = |codes: &Vec<u32>| {
        let mut values: Vec<u32> = group.iter().map(|&row| codes[row as usize]).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    sensitive.others.iter().map(|codes| group.len() - distinct(codes)).sum()
}

/// Fewest repeats that a bucket can have, given its number of rows.
pub(super) struct FewestRepeats {
    /// Number of values that rows have, by other attribute.
    values: Vec<usize>,
}

impl FewestRepeats {
    pub(super) fn new(sensitive: &SensitiveCodesByRow, groups: &RowsByGroup) -> Self {
        Self { values: sensitive.others.iter().map(|codes| occurring(codes, groups)).collect() }
    }

    pub(super) fn of(&self, rows: usize) -> usize {
        self.values.iter().map(|values| rows.saturating_sub(*values)).sum()
    }
}

/// Counts of the values of the rows of one bucket, by other attribute.
pub(super) struct RowValueCounts<'a> {
    sensitive: &'a SensitiveCodesByRow,
    /// Number of rows with each code.
    counts: Vec<Vec<u32>>,
    rows: Vec<u32>,
}

impl<'a> RowValueCounts<'a> {
    /// The values of an empty bucket.
    pub(super) fn new(sensitive: &'a SensitiveCodesByRow) -> Self {
        let counts = |codes: &Vec<u32>| vec![0; codes.iter().max().map_or(0, |most| *most as usize + 1)];
        Self { sensitive, counts: sensitive.others.iter().map(counts).collect(), rows: Vec::new() }
    }

    /// Removes all rows.
    pub(super) fn clear(&mut self) {
        for (counts, codes) in self.counts.iter_mut().zip(&self.sensitive.others) {
            self.rows.iter().for_each(|&row| counts[codes[row as usize] as usize] = 0);
        }
        self.rows.clear();
    }

    /// Counts these rows in place of others. What was exchanged in between has to be exchanged back.
    pub(super) fn fill(&mut self, rows: &[u32]) {
        self.clear();
        rows.iter().for_each(|&row| self.add(row));
    }

    pub(super) fn add(&mut self, row: u32) {
        for (counts, codes) in self.counts.iter_mut().zip(&self.sensitive.others) {
            counts[codes[row as usize] as usize] += 1;
        }
        self.rows.push(row);
    }

    /// Number of attributes in which one more row would repeat a value.
    pub(super) fn repeated(&self, row: u32) -> usize {
        let of = self.counts.iter().zip(&self.sensitive.others);
        of.filter(|(counts, codes)| counts[codes[row as usize] as usize] > 0).count()
    }

    /// Counts a row in place of another one, and returns by how much the number of repeats changes.
    pub(super) fn exchange(&mut self, out: u32, into: u32) -> isize {
        let mut change = 0;
        for (counts, codes) in self.counts.iter_mut().zip(&self.sensitive.others) {
            let (out, into) = (codes[out as usize] as usize, codes[into as usize] as usize);
            counts[out] -= 1;
            change -= isize::from(counts[out] > 0);
            change += isize::from(counts[into] > 0);
            counts[into] += 1;
        }
        change
    }
}
