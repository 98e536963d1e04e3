//! Strata: rows with equal values of some attributes.

use std::collections::HashMap;

use ahash::RandomState;

use crate::microdata::{AttrSet, Column, Table};
use crate::with_codes;

/// Maximal number of combinations that are ranked by an array, whatever the rows.
const MAX_DENSE_STRATA: usize = 1 << 16;

/// A partition of the rows of a table, into strata of attributes or into unions of such strata.
///
/// A missing value is a value. Strata of attributes are in the order of their values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Strata {
    of_row: Vec<u32>,
    sizes: Vec<u32>,
}

impl Strata {
    /// The rows of `table` by their values of `attributes`; without attributes, one stratum.
    #[must_use]
    pub fn new(table: &Table, attributes: AttrSet) -> Self {
        let mut of_row = vec![0; table.rows()];
        let mut strata = usize::from(table.rows() > 0);
        for attr in attributes.iter() {
            strata = refine(&mut of_row, strata, table.column(attr));
        }
        Self::from_ranks(of_row, strata)
    }

    /// Rows of which each has the number of its group; there are `groups` of them, and each has rows.
    pub(super) fn from_ranks(of_row: Vec<u32>, groups: usize) -> Self {
        let mut sizes = vec![0; groups];
        of_row.iter().for_each(|&group| sizes[group as usize] += 1);
        Self { of_row, sizes }
    }

    /// The stratum of each row.
    #[must_use]
    pub fn of_row(&self) -> &[u32] {
        &self.of_row
    }

    /// The number of rows of each stratum.
    #[must_use]
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// The number of strata.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Whether there is no stratum: the table has no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// The rows of each stratum, so that an assignment of buckets can treat one after the other.
    #[must_use]
    pub fn split(&self) -> StratumRows {
        let mut ends: Vec<usize> = Vec::with_capacity(self.len());
        let mut next: Vec<usize> = Vec::with_capacity(self.len());
        let mut end = 0;
        for &size in &self.sizes {
            next.push(end);
            end += size as usize;
            ends.push(end);
        }
        let mut rows = vec![0; self.of_row.len()];
        for (row, &stratum) in (0..).zip(&self.of_row) {
            let at = &mut next[stratum as usize];
            rows[*at] = row;
            *at += 1;
        }
        StratumRows { rows, ends }
    }
}

/// The rows of a partition, group after group, rising inside a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StratumRows {
    rows: Vec<u32>,
    ends: Vec<usize>,
}

impl StratumRows {
    /// The rows of each group.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        (0..self.ends.len()).map(|group| self.group(group))
    }

    /// The rows of one group.
    #[must_use]
    pub fn group(&self, group: usize) -> &[u32] {
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.rows[start..self.ends[group]]
    }
}

/// Splits strata by the codes of a column, keeps their order, and gives the new number of strata.
fn refine(of_row: &mut [u32], strata: usize, column: &Column) -> usize {
    let width = column.domain.len();
    match strata.checked_mul(width) {
        Some(combinations) if combinations <= MAX_DENSE_STRATA.max(4 * of_row.len()).min(u32::MAX as usize) => {
            let mut ranks = vec![u32::MAX; combinations];
            with_codes!(&column.codes, codes => {
                let combine = |stratum: u32, code: usize| stratum as usize * width + code;
                for (stratum, &code) in of_row.iter_mut().zip(codes) {
                    let combination = combine(*stratum, code as usize);
                    ranks[combination] = 0;
                    *stratum = combination as u32;
                }
            });
            let occurring = ranks.iter_mut().filter(|rank| **rank == 0);
            let found = occurring.zip(0..).map(|(rank, next)| *rank = next).count();
            of_row.iter_mut().for_each(|combination| *combination = ranks[*combination as usize]);
            found
        }
        _ => refine_by_hashing(of_row, width as u64, column),
    }
}

fn refine_by_hashing(of_row: &mut [u32], width: u64, column: &Column) -> usize {
    let combination = |stratum: u32, row: usize| u64::from(stratum) * width + u64::from(column.codes.get(row));
    let mut ranks: HashMap<u64, u32, RandomState> = HashMap::default();
    for (row, &stratum) in of_row.iter().enumerate() {
        ranks.insert(combination(stratum, row), 0);
    }
    let mut occurring: Vec<u64> = ranks.keys().copied().collect();
    occurring.sort_unstable();
    for (&key, rank) in occurring.iter().zip(0..) {
        ranks.insert(key, rank);
    }
    for (row, stratum) in of_row.iter_mut().enumerate() {
        *stratum = ranks.get(&combination(*stratum, row)).copied().unwrap_or_default();
    }
    occurring.len()
}
