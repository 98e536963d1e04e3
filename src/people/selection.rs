//! Which columns say something of the column by which rows are chosen.
//!
//! Who knows that the first row of a person by a column is published learns of the others that they come later. That must
//! say nothing of a sensitive value. So columns are found that determine the order, follow from it, or are ranges of it.

use ahash::{AHashMap, RandomState};

use crate::microdata::Chunk;

/// Most distinct values of a column that is compared with ranges of the order. Others hold too many values to be ranges.
const MAX_RANGES: usize = 1 << 16;

/// What a chunk holds of the order.
pub(super) type RowRank = u32;

/// Compares every column of a table with the ranks of its rows.
pub(super) struct OrderSearch {
    hashes: RandomState,
    /// The column of the order.
    order: usize,
    columns: Vec<OrderedColumn>,
    rows: u64,
}

/// A column beside the order. A comparison ends when a row contradicts it.
struct OrderedColumn {
    /// The only value of each rank.
    by_rank: Option<AHashMap<RowRank, u64>>,
    /// The smallest and the largest rank of each value.
    by_value: Option<AHashMap<u64, RankRange>>,
}

/// The ranks of a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RankRange {
    least: RowRank,
    most: RowRank,
}

impl OrderSearch {
    pub(super) fn new(order: usize, columns: usize) -> Self {
        let column = |_| OrderedColumn { by_rank: Some(AHashMap::default()), by_value: Some(AHashMap::default()) };
        Self { hashes: RandomState::new(), order, columns: (0..columns).map(column).collect(), rows: 0 }
    }

    /// Takes the next rows with their ranks.
    pub(super) fn add(&mut self, chunk: &Chunk, ranks: &[RowRank]) {
        self.rows += ranks.len() as u64;
        for (column, of) in chunk.columns.iter().zip(&mut self.columns) {
            if of.by_rank.is_none() && of.by_value.is_none() {
                continue;
            }
            let hash = |value: &[u8]| self.hashes.hash_one(value);
            let hashes: Vec<u64> = std::iter::once(0).chain(column.values().iter().map(hash)).collect();
            for (row, &rank) in ranks.iter().enumerate() {
                of.add(hashes[column.codes().get(row) as usize], rank);
            }
        }
    }

    /// For each column whether it says something of the order. Of single rows everything follows, so that a side must have
    /// two rows for each of its values on average.
    pub(super) fn finish(self) -> Vec<bool> {
        let is_coarse = |values: usize| values as u64 * 2 <= self.rows;
        let is_tied = |of: OrderedColumn| {
            let values = of.by_value.as_ref().map_or(0, |by_value| by_value.len());
            let follows = of.by_rank.is_some_and(|by_rank| {
                let mut held = by_rank.values();
                let first = held.next();
                is_coarse(by_rank.len()) && held.any(|value| Some(value) != first)
            });
            let orders_ranks =
                values > 1 && is_coarse(values) && of.by_value.is_some_and(|ranges| orders(ranges.into_values()));
            follows || orders_ranks
        };
        let order = self.order;
        self.columns.into_iter().enumerate().map(|(column, of)| column == order || is_tied(of)).collect()
    }
}

/// Whether values determine the rank, or are ranges of ranks.
fn orders(ranges: impl Iterator<Item = RankRange>) -> bool {
    let mut ranges: Vec<RankRange> = ranges.collect();
    ranges.sort_unstable();
    let differ = ranges.first() != ranges.last();
    let is_determined = ranges.iter().all(|of| of.least == of.most);
    let is_apart = ranges.windows(2).all(|pair| pair[0].most < pair[1].least);
    differ && (is_determined || is_apart)
}

impl OrderedColumn {
    fn add(&mut self, value: u64, rank: RowRank) {
        if let Some(by_rank) = &mut self.by_rank
            && *by_rank.entry(rank).or_insert(value) != value
        {
            self.by_rank = None;
        }
        if let Some(by_value) = &mut self.by_value {
            let range = by_value.entry(value).or_insert(RankRange { least: rank, most: rank });
            (range.least, range.most) = (range.least.min(rank), range.most.max(rank));
            if by_value.len() > MAX_RANGES {
                self.by_value = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::{ChunkColumn, Interner};

    fn tied(rows: u32, columns: &[&dyn Fn(u32) -> u32]) -> Vec<bool> {
        let column = |of: &&dyn Fn(u32) -> u32| {
            let mut interner = Interner::default();
            let codes: Vec<u16> =
                (0..rows).map(|row| interner.intern(of(row).to_string().as_bytes()) as u16 + 1).collect();
            ChunkColumn::new(interner.take(), &codes)
        };
        let chunk = Chunk { rows, columns: columns.iter().map(column).collect() };
        let ranks: Vec<RowRank> = (0..rows).map(columns[0]).collect();
        let mut search = OrderSearch::new(0, columns.len());
        search.add(&chunk, &ranks);
        search.finish()
    }

    #[test]
    fn columns_tied_to_the_order_are_found() {
        let found = tied(
            200,
            &[
                &|row| row % 50,
                // determined by the order, and the other way round
                &|row| row % 50 % 3,
                &|row| row % 50 + row / 100 * 1000,
                // neither
                &|row| row / 7 % 5,
                &|_| 4,
                &|row| row,
            ],
        );
        assert_eq!(found, [true, true, true, false, false, false]);
        // of an order without equal values, ranges say something, and nothing else does
        let found = tied(200, &[&|row| row * 7 % 211, &|row| row * 7 % 211 / 50, &|row| row % 4, &|row| row * 3]);
        assert_eq!(found, [true, true, false, false]);
    }
}
