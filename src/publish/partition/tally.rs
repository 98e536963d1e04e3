//! Counts of sensitive values in the groups of a bucket.

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

/// Counter that reuses its memory for several buckets.
#[derive(Default)]
pub struct GroupTally {
    cells: Vec<u32>,
    keys: Vec<u64>,
    weights: Vec<u64>,
    group: Vec<(u32, u64)>,
}

impl GroupTally {
    /// Calls `each` with the counts of `codes` in every group of `rows`, groups and values rising, each code below `values`.
    ///
    /// Stops at the first `false`, and returns whether there was none.
    pub fn groups(
        &mut self,
        rows: &[u32],
        groups: Option<&TallyGroups>,
        codes: &Codes,
        values: usize,
        mut each: impl FnMut(u32, &[(u32, u64)]) -> bool,
    ) -> bool {
        let count = groups.map_or(1, |groups| groups.count as usize);
        let cells = values.saturating_mul(count);
        if cells > rows.len().saturating_mul(CELLS_PER_ROW).max(64) {
            return self.sorted(rows, groups, codes, each);
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

    /// The counts of `codes` in `rows`, of which each stands for as many rows as its weight says; values rising.
    pub fn weighted(&mut self, rows: &[u32], weights: &[u64], codes: &Codes) -> &[(u32, u64)] {
        self.group.clear();
        for &row in rows {
            let code = codes.get(row as usize);
            // all are 0 between calls
            self.weights.resize(self.weights.len().max(code as usize + 1), 0);
            let weight = &mut self.weights[code as usize];
            if *weight == 0 {
                self.group.push((code, 0));
            }
            *weight += weights[row as usize];
        }
        self.group.sort_unstable();
        for (code, count) in &mut self.group {
            *count = std::mem::take(&mut self.weights[*code as usize]);
        }
        &self.group
    }

    fn sorted(
        &mut self,
        rows: &[u32],
        groups: Option<&TallyGroups>,
        codes: &Codes,
        mut each: impl FnMut(u32, &[(u32, u64)]) -> bool,
    ) -> bool {
        let group = |row: u32| groups.map_or(0, |groups| u64::from(groups.of_row[row as usize]));
        self.keys.clear();
        self.keys.extend(rows.iter().map(|&row| group(row) << 32 | u64::from(codes.get(row as usize))));
        self.keys.sort_unstable();
        self.keys.chunk_by(|a, b| a >> 32 == b >> 32).all(|keys| {
            self.group.clear();
            self.group.extend(keys.chunk_by(|a, b| a == b).map(|same| (same[0] as u32, same.len() as u64)));
            each((keys[0] >> 32) as u32, &self.group)
        })
    }
}
