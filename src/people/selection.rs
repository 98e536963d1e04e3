//! Which columns say something of the column by which rows are chosen.
//!
//! Who knows that the first row of a person by a column is published learns of the others that they come later. That must
//! say nothing of a sensitive value. So columns are found that determine the order, follow from it, or are ranges of it.

use ahash::{AHashMap, RandomState};

use crate::microdata::formats::IngestLimits;
use crate::microdata::{AttributeType, Chunk, DictionaryError, Domain, Interner};

/// Most distinct values of a column that is compared with ranges of the order. Others hold too many values to be ranges.
const MAX_RANGES: usize = 1 << 16;

/// Most entries of all comparisons of a table, about 70 MB. A column that would need more counts as tied.
const MAX_ENTRIES: usize = 1 << 21;

/// The place of a row in the order; rows without a value come last.
pub(super) type RowRank = u32;

/// The values of the column by which rows are chosen, while a table is read.
pub(super) struct OrderValues<'a> {
    column: usize,
    values: Interner,
    missing: bool,
    limits: &'a IngestLimits,
}

impl<'a> OrderValues<'a> {
    pub(super) fn new(column: usize, limits: &'a IngestLimits) -> Self {
        Self { column, values: Interner::default(), missing: false, limits }
    }

    /// Takes the values of a chunk.
    ///
    /// # Errors
    /// [`DictionaryError`] when they exceed the limits.
    pub(super) fn add(&mut self, chunk: &Chunk) -> Result<(), DictionaryError> {
        let column = &chunk.columns[self.column];
        for value in column.values().iter() {
            self.values.intern(value);
        }
        self.missing |= column.missing() > 0;
        self.limits.check_dictionary(&self.values)
    }

    /// The order of the values, by the type of their column.
    pub(super) fn rank(self, kinds: &[Option<AttributeType>]) -> RowOrder {
        let Self { column, values, missing, .. } = self;
        let kind = kinds[column].unwrap_or_else(|| AttributeType::infer(values.values().iter()));
        let (_, ranks) = Domain::sort(kind, false, values.values());
        RowOrder { column, values, ranks, missing }
    }
}

/// The order by which rows are chosen. It takes memory for its values, and none for rows.
pub(super) struct RowOrder {
    column: usize,
    values: Interner,
    ranks: Vec<RowRank>,
    /// Whether a row has no value.
    missing: bool,
}

impl RowOrder {
    /// The rank of each row of a chunk of the table.
    pub(super) fn ranks(&self, chunk: &Chunk) -> Vec<RowRank> {
        let column = &chunk.columns[self.column];
        let rank = |value: &[u8]| self.values.get(value).map_or(RowRank::MAX, |code| self.ranks[code as usize]);
        let of_code: Vec<RowRank> = std::iter::once(RowRank::MAX).chain(column.values().iter().map(rank)).collect();
        column.codes().iter().map(|code| of_code[code as usize]).collect()
    }
}

/// Compares every column of a table with the ranks of its rows.
pub(super) struct OrderSearch {
    hashes: RandomState,
    /// The column of the order.
    order: usize,
    columns: Vec<OrderedColumn>,
    rows: u64,
    /// What all comparisons hold.
    entries: usize,
}

/// A column that is compared with the order. A comparison ends when a row contradicts it.
struct OrderedColumn {
    /// The only value of each rank.
    by_rank: Option<AHashMap<RowRank, u64>>,
    /// The smallest and the largest rank of each value.
    by_value: Option<AHashMap<u64, RankRange>>,
    /// Whether the comparison took too much memory.
    is_unknown: bool,
}

/// The ranks of a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RankRange {
    least: RowRank,
    most: RowRank,
}

/// Whether a side of a comparison is coarse. Of single rows everything follows, so that a side must have two rows for each of
/// its values on average.
const fn is_coarse(values: usize, rows: u64) -> bool {
    values as u64 * 2 <= rows
}

impl OrderSearch {
    /// For a table with these numbers of columns and rows.
    pub(super) fn new(order: &RowOrder, columns: usize, rows: u64) -> Self {
        let is_compared = is_coarse(order.ranks.len() + usize::from(order.missing), rows);
        let column = |at| OrderedColumn {
            by_rank: (is_compared && at != order.column).then(AHashMap::default),
            by_value: (at != order.column).then(AHashMap::default),
            is_unknown: false,
        };
        let columns = (0..columns).map(column).collect();
        Self { hashes: RandomState::new(), order: order.column, columns, rows, entries: 0 }
    }

    /// Takes the next rows with their ranks.
    pub(super) fn add(&mut self, chunk: &Chunk, ranks: &[RowRank]) {
        for (column, of) in chunk.columns.iter().zip(&mut self.columns) {
            if of.by_rank.is_none() && of.by_value.is_none() {
                continue;
            }
            let hash = |value: &[u8]| self.hashes.hash_one(value);
            let hashes: Vec<u64> = std::iter::once(0).chain(column.values().iter().map(hash)).collect();
            let before = of.entries();
            for (row, &rank) in ranks.iter().enumerate() {
                of.add(hashes[column.codes().get(row) as usize], rank);
            }
            self.entries = self.entries - before + of.entries();
            if self.entries > MAX_ENTRIES {
                self.entries -= of.entries();
                (of.by_rank, of.by_value, of.is_unknown) = (None, None, true);
            }
        }
    }

    /// For each column whether it says something of the order, or may.
    pub(super) fn finish(self) -> Vec<bool> {
        let Self { order, columns, rows, .. } = self;
        let is_tied = |of: OrderedColumn| {
            let follows = of.by_rank.is_some_and(|by_rank| {
                let mut held = by_rank.values();
                let first = held.next();
                held.any(|value| Some(value) != first)
            });
            let orders_ranks = of.by_value.is_some_and(|by_value| {
                by_value.len() > 1 && is_coarse(by_value.len(), rows) && orders(by_value.into_values())
            });
            follows || orders_ranks || of.is_unknown
        };
        columns.into_iter().enumerate().map(|(column, of)| column == order || is_tied(of)).collect()
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
    fn entries(&self) -> usize {
        self.by_rank.as_ref().map_or(0, |of| of.len()) + self.by_value.as_ref().map_or(0, |of| of.len())
    }

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
    use crate::microdata::ChunkColumn;

    fn tied(rows: u32, columns: &[&dyn Fn(u32) -> u32]) -> Vec<bool> {
        let column = |of: &&dyn Fn(u32) -> u32| {
            let mut interner = Interner::default();
            let codes: Vec<u16> =
                (0..rows).map(|row| interner.intern(of(row).to_string().as_bytes()) as u16 + 1).collect();
            ChunkColumn::new(interner.take(), &codes)
        };
        let chunk = Chunk { rows, columns: columns.iter().map(column).collect() };
        let limits = IngestLimits::default();
        let mut values = OrderValues::new(0, &limits);
        values.add(&chunk).unwrap();
        let order = values.rank(&vec![None; columns.len()]);
        let mut search = OrderSearch::new(&order, columns.len(), rows.into());
        search.add(&chunk, &order.ranks(&chunk));
        search.finish()
    }

    #[test]
    fn columns_that_take_too_much_memory_count_as_tied() {
        let (rows, limits) = (60_000, IngestLimits::default());
        let chunk = |from: u32| {
            let column = |of: &dyn Fn(u32) -> u32| {
                let mut interner = Interner::default();
                let codes: Vec<u16> =
                    (from..from + rows).map(|row| interner.intern(of(row).to_string().as_bytes()) as u16 + 1).collect();
                ChunkColumn::new(interner.take(), &codes)
            };
            let (order, constant) = (column(&|row| row), column(&|_| 1));
            Chunk { rows, columns: std::iter::once(order).chain(vec![constant; 5]).collect() }
        };
        // twenty pieces, each of which comes twice, so that the order has two rows for each of its values
        let pieces = || (0..40).map(|piece| chunk(piece % 20 * rows));
        let mut values = OrderValues::new(0, &limits);
        pieces().for_each(|chunk| values.add(&chunk).unwrap());
        let order = values.rank(&[None; 6]);
        let mut search = OrderSearch::new(&order, 6, 40 * u64::from(rows) + 2);
        for chunk in pieces() {
            search.add(&chunk, &order.ranks(&chunk));
            assert!(search.entries <= MAX_ENTRIES);
        }
        // constants of which all could be known are not tied
        let found = search.finish();
        assert!(found[0] && found.iter().any(|tied| !tied) && found[1..].contains(&true), "{found:?}");
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
