//! Which columns say something of the column by which rows are chosen.
//!
//! Who knows that the first row of a person by a column is published learns of the others that they come later. That must
//! say nothing of a sensitive value. So columns are found that determine the order, follow from it, or are ranges of it. As
//! where dependencies are discovered, a few rows that contradict hide nothing.
//!
//! Memory is bounded: of a large table, a column is compared on all rows of some ranks, and on all rows of some of its values.
//! What ties the whole ties both choices, so that a column is unrelated only if one of them contradicts.

use ahash::{AHashMap, AHashSet, RandomState};

use super::selection::{RowOrder, RowRank};
use crate::microdata::Chunk;

/// Most cells of all comparisons of a table, about 50 MB.
const MAX_CELLS: usize = 1 << 20;

/// One row of this number may contradict.
const ROWS_PER_ERROR: u64 = 100;

/// Of a choice of rows, twice as many may contradict, and some more where it is small.
const CHOSEN_ROWS_PER_ERROR: u64 = 50;
const ERRORS_OF_A_CHOICE: u64 = 4;

/// Compares every column of a table with the ranks of its rows.
pub(super) struct OrderSearch {
    hashes: RandomState,
    /// `None` for the column of the order.
    columns: Vec<Option<OrderedColumn>>,
    rows: u64,
}

/// A column that is compared with the order.
struct OrderedColumn {
    of_ranks: CellChoice,
    of_values: CellChoice,
    /// Whether too many rows contradict already.
    is_unrelated: bool,
}

/// A value of a column, by its hash, and the rank of a row that has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct RankedValue {
    rank: RowRank,
    value: u64,
}

impl RankedValue {
    const fn by_value(self) -> (u64, RowRank) {
        (self.value, self.rank)
    }
}

/// Of which a choice of rows holds all rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WholeSide {
    Ranks,
    Values,
}

/// The cells of all rows of some ranks, or of some values, with their numbers of rows.
struct CellChoice {
    whole: WholeSide,
    rows: AHashMap<RankedValue, u64>,
    /// A rank or value is chosen if its hash ends in at least this number of zeros.
    zeros: u32,
    /// Most cells.
    most: usize,
}

/// What a choice of rows says; `None` where it says nothing.
struct TieVerdict {
    /// Whether the rank determines the value.
    follows: Option<bool>,
    /// Whether the value determines the rank.
    determines: Option<bool>,
    /// Whether the values are ranges of ranks.
    orders: Option<bool>,
}

impl OrderSearch {
    /// For a table with these numbers of columns and rows.
    pub(super) fn new(order: &RowOrder, columns: usize, rows: u64) -> Self {
        let most = MAX_CELLS / (2 * columns.max(1));
        let choice = |whole| CellChoice { whole, rows: AHashMap::default(), zeros: 0, most };
        let compared = || OrderedColumn {
            of_ranks: choice(WholeSide::Ranks),
            of_values: choice(WholeSide::Values),
            is_unrelated: false,
        };
        let columns = (0..columns).map(|at| (at != order.column).then(compared)).collect();
        Self { hashes: RandomState::new(), columns, rows }
    }

    /// Takes the next rows with their ranks.
    pub(super) fn add(&mut self, chunk: &Chunk, ranks: &[RowRank]) {
        let of_ranks: Vec<u64> = ranks.iter().map(|rank| self.hashes.hash_one(rank)).collect();
        for (column, of) in chunk.columns.iter().zip(&mut self.columns) {
            let Some(of) = of.as_mut().filter(|of| !of.is_unrelated) else { continue };
            let hash = |value: Option<&[u8]>| self.hashes.hash_one(value);
            let hashes: Vec<u64> = std::iter::once(None).chain(column.values().iter().map(Some)).map(hash).collect();
            for (row, (&rank, &hash)) in ranks.iter().zip(&of_ranks).enumerate() {
                let value = hashes[column.codes().get(row) as usize];
                of.of_ranks.add(RankedValue { rank, value }, hash, &self.hashes);
                of.of_values.add(RankedValue { rank, value }, value, &self.hashes);
            }
            let most = self.rows / ROWS_PER_ERROR;
            if of.of_ranks.contradicts(most) || of.of_values.contradicts(most) {
                of.is_unrelated = true;
                (of.of_ranks.rows, of.of_values.rows) = (AHashMap::default(), AHashMap::default());
            }
        }
    }

    /// For each column whether it says something of the order, or may.
    pub(super) fn finish(self) -> Vec<bool> {
        let is_tied = |of: OrderedColumn| !of.is_unrelated && are_tied(&of.of_ranks.judge(), &of.of_values.judge());
        self.columns.into_iter().map(|of| of.is_none_or(is_tied)).collect()
    }
}

/// Whether no choice contradicts a tie.
fn are_tied(one: &TieVerdict, other: &TieVerdict) -> bool {
    let holds = |of: fn(&TieVerdict) -> Option<bool>| of(one) != Some(false) && of(other) != Some(false);
    holds(|of| of.follows) || holds(|of| of.determines) || holds(|of| of.orders)
}

impl CellChoice {
    /// Takes a row; `hash` is that of the rank or value by which rows are chosen.
    fn add(&mut self, cell: RankedValue, hash: u64, hashes: &RandomState) {
        if hash.trailing_zeros() < self.zeros {
            return;
        }
        *self.rows.entry(cell).or_default() += 1;
        if self.rows.len() <= self.most {
            return;
        }
        let whole = self.whole;
        while self.rows.len() > self.most / 2 {
            self.zeros += 1;
            let least = self.zeros;
            self.rows.retain(|cell, _| {
                let hash = match whole {
                    WholeSide::Ranks => hashes.hash_one(cell.rank),
                    WholeSide::Values => cell.value,
                };
                hash.trailing_zeros() >= least
            });
        }
    }

    /// Whether more than `most` rows contradict each way in which a column may be tied: all cells of a rank or value but one do.
    fn contradicts(&self, most: u64) -> bool {
        let cells = self.rows.len();
        if cells as u64 <= most {
            return false;
        }
        let values: AHashSet<u64> = self.rows.keys().map(|cell| cell.value).collect();
        let ranks: AHashSet<RowRank> = self.rows.keys().map(|cell| cell.rank).collect();
        [values.len(), ranks.len()].iter().all(|sides| (cells - sides) as u64 > most)
    }

    fn judge(&self) -> TieVerdict {
        let mut cells: Vec<(RankedValue, u64)> = self.rows.iter().map(|(cell, rows)| (*cell, *rows)).collect();
        let rows: u64 = cells.iter().map(|(_, rows)| rows).sum();
        cells.sort_unstable_by_key(|(cell, _)| cell.by_value());
        let of_values = RankedSides::new(&cells, |one, other| one.value == other.value);
        let places = places(&cells);
        cells.sort_unstable();
        let of_ranks = RankedSides::new(&cells, |one, other| one.rank == other.rank);
        let in_order = heaviest_order(&cells, &places);
        let is_part = self.zeros > 0;
        // what is chosen by may be one by chance: a choice then says nothing, and what goes with it may be constant
        let (chosen, other) = match self.whole {
            WholeSide::Ranks => (of_ranks.count, of_values.count),
            WholeSide::Values => (of_values.count, of_ranks.count),
        };
        let (are_constant, is_silent) = (other < 2 || chosen < 2, is_part && chosen < 2);
        // of single rows everything follows: a side must have two rows for each of its values on average
        let judge = |side: &RankedSides, whole: WholeSide, errors: u64, top: u64| {
            let is_coarse = side.count as u64 * 2 <= rows;
            match is_coarse {
                _ if is_silent => None,
                false if is_part && whole != self.whole => None,
                false => Some(false),
                true => Some(!are_constant && are_few(errors, rows, top, is_part)),
            }
        };
        // how frequent the top of what is chosen by is follows from the choice
        let top = |side: &RankedSides, of: WholeSide| if is_part && of == self.whole { 0 } else { side.top };
        let (top_value, top_rank) = (top(&of_values, WholeSide::Values), top(&of_ranks, WholeSide::Ranks));
        TieVerdict {
            follows: judge(&of_ranks, WholeSide::Ranks, rows - of_ranks.right, top_value),
            determines: judge(&of_values, WholeSide::Values, rows - of_values.right, top_rank),
            orders: judge(&of_values, WholeSide::Values, rows - in_order, top_value),
        }
    }
}

/// Whether errors are few, and who knows the one side makes at most half as many as who guesses the other side's top value.
const fn are_few(errors: u64, rows: u64, top: u64, is_part: bool) -> bool {
    let few = match is_part {
        true => errors * CHOSEN_ROWS_PER_ERROR <= rows + ERRORS_OF_A_CHOICE * CHOSEN_ROWS_PER_ERROR,
        false => errors * ROWS_PER_ERROR <= rows,
    };
    errors == 0 || few && 2 * errors <= rows - top
}

/// The ranks of a choice, or its values.
struct RankedSides {
    count: usize,
    /// The rows of the one with most rows.
    top: u64,
    /// The rows of which each has the most frequent other side.
    right: u64,
}

impl RankedSides {
    /// Of cells that are sorted so that those of one side come together.
    fn new(cells: &[(RankedValue, u64)], is_same: impl Fn(&RankedValue, &RankedValue) -> bool) -> Self {
        let mut sides = Self { count: 0, top: 0, right: 0 };
        for side in cells.chunk_by(|(one, _), (other, _)| is_same(one, other)) {
            sides.count += 1;
            sides.top = sides.top.max(side.iter().map(|(_, rows)| rows).sum());
            sides.right += side.iter().map(|(_, rows)| *rows).max().unwrap_or(0);
        }
        sides
    }
}

/// The place of each value in the order of their middle ranks; cells are sorted by value and rank.
fn places(cells: &[(RankedValue, u64)]) -> AHashMap<u64, usize> {
    let middle = |of: &[(RankedValue, u64)]| {
        let all: u64 = of.iter().map(|(_, rows)| rows).sum();
        let mut before = 0;
        let is_past_half = |(_, rows): &&(RankedValue, u64)| {
            before += rows;
            2 * before >= all
        };
        of.iter().find(is_past_half).map(|(cell, _)| (cell.rank, cell.value))
    };
    let values = cells.chunk_by(|(one, _), (other, _)| one.value == other.value);
    let mut middles: Vec<(RowRank, u64)> = values.filter_map(middle).collect();
    middles.sort_unstable();
    middles.into_iter().enumerate().map(|(place, (_, value))| (value, place)).collect()
}

/// The most rows among which later values have higher ranks, so that values are ranges; cells are sorted by rank.
fn heaviest_order(cells: &[(RankedValue, u64)], places: &AHashMap<u64, usize>) -> u64 {
    // the heaviest order that ends at a place or before it, as a tree of maxima (Fenwick)
    let mut ends = vec![0_u64; places.len() + 1];
    for rank in cells.chunk_by(|(one, _), (other, _)| one.rank == other.rank) {
        // one value has the rank
        let with = |(cell, rows): &(RankedValue, u64)| {
            let place = places[&cell.value] + 1;
            let before = std::iter::successors(Some(place), |at| Some(at & (at - 1)).filter(|at| *at > 0));
            (place, rows + before.map(|at| ends[at]).max().unwrap_or(0))
        };
        let found: Vec<(usize, u64)> = rank.iter().map(with).collect();
        for (place, rows) in found {
            let after = std::iter::successors(Some(place), |at| Some(at + (at & at.wrapping_neg())));
            for at in after.take_while(|&at| at < ends.len()).collect::<Vec<_>>() {
                ends[at] = ends[at].max(rows);
            }
        }
    }
    ends.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::selection::OrderValues;
    use super::*;
    use crate::microdata::formats::IngestLimits;
    use crate::microdata::{ChunkColumn, Interner};

    /// What is said of columns, the first of which is the order.
    fn tied(rows: u32, columns: &[&dyn Fn(u32) -> u32]) -> Vec<bool> {
        let limits = IngestLimits::default();
        let mut values = OrderValues::new(0, &limits);
        let chunks = || (0..rows.div_ceil(60_000)).map(|at| at * 60_000).map(|from| chunk(from, rows, columns));
        chunks().for_each(|chunk| values.add(&chunk).unwrap());
        let order = values.rank(&vec![None; columns.len()]);
        let mut search = OrderSearch::new(&order, columns.len(), rows.into());
        for chunk in chunks() {
            search.add(&chunk, &order.ranks(&chunk));
            let compared = search.columns.iter().flatten();
            let cells: usize = compared.map(|of| of.of_ranks.rows.len() + of.of_values.rows.len()).sum();
            assert!(cells <= MAX_CELLS);
        }
        search.finish()
    }

    fn chunk(from: u32, rows: u32, columns: &[&dyn Fn(u32) -> u32]) -> Chunk {
        let rows = rows.min(from + 60_000) - from;
        let column = |of: &&dyn Fn(u32) -> u32| {
            let mut interner = Interner::default();
            let codes: Vec<u16> =
                (from..from + rows).map(|row| interner.intern(of(row).to_string().as_bytes()) as u16 + 1).collect();
            ChunkColumn::new(interner.take(), &codes)
        };
        Chunk { rows, columns: columns.iter().map(column).collect() }
    }

    /// A number that goes with nothing.
    fn mixed(row: u32) -> u32 {
        row.wrapping_mul(0x9E37_79B1) >> 8 ^ row.wrapping_mul(0x85EB_CA6B) >> 13
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

    #[test]
    fn a_few_wrong_rows_hide_no_tie() {
        for wrong in [1, 4, 20] {
            let is_wrong = move |row: u32| row % (400 / wrong) == 7;
            let dirty = move |row: u32, value: u32| if is_wrong(row) { mixed(row) % 3 } else { value };
            let order = |row: u32| mixed(row) % 40;
            let found = tied(
                400,
                &[
                    &order,
                    &|row| dirty(row, order(row) % 3),
                    &|row| dirty(row, order(row) + row % 2 * 100),
                    &|row| mixed(row) / 64 % 3,
                    // nearly always the same, so that nothing says more of it
                    &|row| u32::from(row == 7),
                ],
            );
            let is_found = wrong <= 4;
            assert_eq!(found, [true, is_found, is_found, false, false], "{wrong}");
            // ranges of an order without equal values
            let found = tied(400, &[&|row| row, &|row| dirty(row, row / 50), &|row| mixed(row) % 4]);
            assert_eq!(found, [true, is_found, false], "{wrong}");
        }
    }

    #[test]
    fn large_tables_are_compared_in_bounded_memory() {
        let rows = 600_000;
        let found = tied(
            rows,
            &[
                &|row| row / 2,
                // ranges, few and many, with some wrong rows; what the order determines
                &|row| if row % 200 == 3 { mixed(row) % 5 } else { row / 120_000 },
                &|row| if row % 200 == 3 { mixed(row) } else { row / 40 },
                &|row| mixed(row / 2) % 7,
                // neither: constants, few and many values
                &|_| 1,
                &|row| mixed(row) % 9,
                &|row| mixed(row) % 100_000,
                &mixed,
            ],
        );
        assert_eq!(found, [true, true, true, true, false, false, false, false]);
    }
}
