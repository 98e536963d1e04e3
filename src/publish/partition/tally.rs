//! Counts of sensitive values in the groups of a bucket.

use super::weights::RowWeights;
use crate::microdata::Codes;

/// Largest number of array cells per row; above it, values are counted by sorting.
const CELLS_PER_ROW: usize = 2;

/// A partition of the rows of a table into groups.
#[derive(Clone, Debug)]
pub struct TallyGroups {
    /// Group of each row.
    pub of_row: Vec<u32>,
    /// Number of groups; group numbers are below it.
    pub count: u32,
}

impl TallyGroups {
    /// Groups of the rows in this order.
    #[must_use]
    pub fn gather(&self, order: &[u32]) -> Self {
        Self { of_row: order.iter().map(|&row| self.of_row[row as usize]).collect(), count: self.count }
    }
}

/// Codes to be counted in the groups of some rows.
#[derive(Clone, Copy)]
pub struct TalliedRows<'a> {
    /// The rows.
    pub rows: &'a [u32],
    /// Their groups; `None` for one of all rows.
    pub groups: Option<&'a TallyGroups>,
    /// The code of each row of the table.
    pub codes: &'a Codes,
    /// A number above all codes.
    pub values: usize,
}

/// Counter that reuses its memory for several buckets.
#[derive(Default)]
pub struct GroupTally {
    cells: Vec<u32>,
    keys: Vec<u64>,
    weighted: Vec<(u64, u64)>,
    group: Vec<(u32, u64)>,
}

impl TalliedRows<'_> {
    /// The group of a row, and its code.
    fn key(&self, row: u32) -> u64 {
        let group = self.groups.map_or(0, |groups| u64::from(groups.of_row[row as usize]));
        group << 32 | u64::from(self.codes.get(row as usize))
    }
}

impl GroupTally {
    /// Calls `each` with the counts of the codes in every group of rows, groups and values rising.
    ///
    /// Stops at the first `false`, and returns whether there was none.
    pub fn groups(&mut self, tallied: TalliedRows<'_>, mut each: impl FnMut(u32, &[(u32, u64)]) -> bool) -> bool {
        let TalliedRows { rows, groups, codes, values } = tallied;
        let count = groups.map_or(1, |groups| groups.count as usize);
        let cells = values.saturating_mul(count);
        if cells > rows.len().saturating_mul(CELLS_PER_ROW).max(64) {
            return self.sorted(tallied, each);
        }
        self.cells.clear();
        self.cells.resize(cells, 0);
        match groups {
            None => rows.iter().for_each(|&row| self.cells[codes.get(row as usize) as usize] += 1),
            Some(groups) => rows.iter().for_each(|&row| {
                let group = groups.of_row[row as usize] as usize;
                self.cells[group * values + codes.get(row as usize) as usize] += 1;
            }),
        }
        self.cells.chunks(values.max(1)).zip(0..).all(|(counts, group)| {
            self.group.clear();
            self.group.extend((0..).zip(counts).filter(|(_, n)| **n > 0).map(|(code, &n)| (code, u64::from(n))));
            self.group.is_empty() || each(group, &self.group)
        })
    }

    /// [`Self::groups`] of rows of which each stands for as many as its weight says.
    pub fn weighted(
        &mut self,
        tallied: TalliedRows<'_>,
        weights: &RowWeights,
        mut each: impl FnMut(u32, &[(u32, u64)]) -> bool,
    ) -> bool {
        let Some(weights) = weights.each() else { return self.groups(tallied, each) };
        self.weighted.clear();
        self.weighted.extend(tallied.rows.iter().map(|&row| (tallied.key(row), weights[row as usize])));
        self.weighted.sort_unstable_by_key(|of| of.0);
        self.weighted.chunk_by(|a, b| a.0 >> 32 == b.0 >> 32).all(|keys| {
            self.group.clear();
            let same = keys.chunk_by(|a, b| a.0 == b.0);
            self.group.extend(same.map(|same| (same[0].0 as u32, same.iter().map(|(_, weight)| weight).sum())));
            each((keys[0].0 >> 32) as u32, &self.group)
        })
    }

    fn sorted(&mut self, tallied: TalliedRows<'_>, mut each: impl FnMut(u32, &[(u32, u64)]) -> bool) -> bool {
        self.keys.clear();
        self.keys.extend(tallied.rows.iter().map(|&row| tallied.key(row)));
        self.keys.sort_unstable();
        self.keys.chunk_by(|a, b| a >> 32 == b >> 32).all(|keys| {
            self.group.clear();
            self.group.extend(keys.chunk_by(|a, b| a == b).map(|same| (same[0] as u32, same.len() as u64)));
            each((keys[0] >> 32) as u32, &self.group)
        })
    }
}
