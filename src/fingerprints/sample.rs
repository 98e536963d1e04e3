//! The sample of rows by which tables are compared across series: rows that differ from every other row of their table in at least
//! two attributes, of all of them those with the lowest hashes. Such rows rarely agree by chance: two datasets that share one have it,
//! as a rule, of the same subject.

use std::collections::{BTreeMap, HashMap};

use ahash::RandomState;

/// Candidate rows in tables of few columns.
const MAX_SAMPLED_ROWS: usize = 1 << 13;

/// Fewest candidate rows, in tables of many columns.
const MIN_CANDIDATE_ROWS: usize = 1 << 11;

/// Most cells of candidates that are remembered.
const MAX_SAMPLED_CELLS: usize = 1 << 19;

/// The rows with the lowest hashes.
pub(super) struct RowSample {
    room: usize,
    /// The hashes of the cells, by the hash of the row.
    rows: BTreeMap<u128, Box<[u128]>>,
    left_out: bool,
}

impl RowSample {
    pub(super) fn new(columns: usize) -> Self {
        Self::with_room((MAX_SAMPLED_CELLS / columns.max(1)).clamp(MIN_CANDIDATE_ROWS, MAX_SAMPLED_ROWS))
    }

    fn with_room(room: usize) -> Self {
        Self { room, rows: BTreeMap::new(), left_out: false }
    }

    /// Whether a row with this hash is one of the lowest so far.
    pub(super) fn wants(&mut self, hash: u128) -> bool {
        let full = self.rows.len() >= self.room;
        let wanted = !full || self.rows.last_key_value().is_some_and(|(highest, _)| hash < *highest);
        self.left_out |= !wanted && !self.rows.contains_key(&hash);
        wanted
    }

    pub(super) fn push(&mut self, hash: u128, cells: Box<[u128]>) {
        self.rows.insert(hash, cells);
        if self.rows.len() > self.room {
            self.rows.pop_last();
            self.left_out = true;
        }
    }

    /// Begins to hold all rows of the table against them.
    pub(super) fn neighbours(self) -> SampleNeighbours {
        let below = self.rows.last_key_value().map(|(highest, _)| *highest).filter(|_| self.left_out);
        let columns = self.rows.values().next().map_or(0, |cells| cells.len());
        let mut neighbours = SampleNeighbours {
            columns,
            below,
            hashes: Vec::with_capacity(self.rows.len()),
            met: vec![0; self.rows.len()],
            without: HashMap::default(),
        };
        for (index, (hash, cells)) in self.rows.into_iter().enumerate() {
            neighbours.hashes.push(hash);
            let sum = sum(&cells);
            for (column, cell) in cells.iter().enumerate() {
                let other = neighbours.without.insert(without(column, sum, *cell), index as u32);
                if let Some(other) = other {
                    // they are alike but for this column
                    neighbours.met[index] = u64::MAX / 2;
                    neighbours.met[other as usize] = u64::MAX / 2;
                }
            }
        }
        neighbours
    }
}

/// The candidates, and how often each was met with one column left out.
pub(super) struct SampleNeighbours {
    columns: usize,
    below: Option<u128>,
    hashes: Vec<u128>,
    met: Vec<u64>,
    without: HashMap<u64, u32, RandomState>,
}

impl SampleNeighbours {
    /// Holds a row against the candidates.
    pub(super) fn meet(&mut self, sum: u128, cells: impl Iterator<Item = u128>) {
        for (column, cell) in cells.enumerate() {
            if let Some(index) = self.without.get(&without(column, sum, cell)) {
                self.met[*index as usize] += 1;
            }
        }
    }

    /// The sample, in order, and up to which hash it goes where rows were left out.
    pub(super) fn sample(self) -> (Vec<u128>, Option<u128>) {
        // each met itself once for every column
        let alone = |met: u64| met == self.columns as u64;
        let sample = self.hashes.iter().zip(&self.met).filter(|(_, met)| alone(**met));
        (sample.map(|(hash, _)| *hash).collect(), self.below)
    }
}

/// The hashes of the cells of a row as one, in whatever order they stand.
pub(super) fn sum(cells: &[u128]) -> u128 {
    cells.iter().fold(0, |sum, cell| sum.wrapping_add(*cell))
}

/// A row but for one column. Half of the digits are enough: rows that are taken for neighbours are only left out.
fn without(column: usize, sum: u128, cell: u128) -> u64 {
    let rest = sum.wrapping_sub(cell) as u64;
    rest.wrapping_add((column as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    use proptest::prelude::*;

    use super::*;

    /// A hash of a number.
    fn mixed(number: u128) -> u128 {
        let half = |label: u8| BuildHasherDefault::<DefaultHasher>::default().hash_one((label, number));
        u128::from(half(0)) << 64 | u128::from(half(1))
    }

    proptest! {
        #[test]
        fn rows_with_a_neighbour_are_left_out(
            rows in prop::collection::vec(prop::array::uniform3(0..6_u8), 1..60),
            room in 1..70_usize,
        ) {
            let cells: Vec<[u128; 3]> = rows.iter().map(|row| row.map(|value| mixed(value.into()))).collect();
            let hash = |cells: &[u128; 3]| mixed(sum(cells));
            let mut candidates = RowSample::with_room(room);
            for cells in &cells {
                if candidates.wants(hash(cells)) {
                    candidates.push(hash(cells), Box::new(*cells));
                }
            }
            let mut neighbours = candidates.neighbours();
            cells.iter().for_each(|cells| neighbours.meet(sum(cells), cells.iter().copied()));
            let (sample, below) = neighbours.sample();
            // pairs are equal in either order of their columns
            let rest = |cells: &[u128; 3], column: usize| {
                let mut rest: Vec<u128> = (0..3).filter(|at| *at != column).map(|at| cells[at]).collect();
                rest.sort_unstable();
                rest
            };
            let near = |a: &[u128; 3], b: &[u128; 3]| (0..3).any(|column| rest(a, column) == rest(b, column));
            let alone = |at: usize| (0..cells.len()).all(|other| other == at || !near(&cells[at], &cells[other]));
            // two rows with the same cells in other columns have one hash: of them nothing is asked here
            let twisted = |at: usize| (0..cells.len()).any(|other| other != at && hash(&cells[at]) == hash(&cells[other]));
            for at in (0..cells.len()).filter(|at| !twisted(*at)) {
                let low = below.is_none_or(|below| hash(&cells[at]) <= below);
                prop_assert_eq!(sample.contains(&hash(&cells[at])), low && alone(at));
            }
            let mut hashes: Vec<u128> = cells.iter().map(hash).collect();
            hashes.sort_unstable();
            hashes.dedup();
            prop_assert_eq!(below.is_some(), hashes.len() > room);
            prop_assert!(sample.is_sorted());
        }
    }
}
