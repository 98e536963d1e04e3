//! Blocks: the rows with one value of a column, and what they have in another. Two tables of independent rows have few
//! of them in common.
//!
//! Neither names nor order nor keys count. Any two columns that survive an export show it to be the same table.

use std::collections::BTreeMap;
use std::io;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::cells::{CellChunk, CellFile};
use super::counter::ExternalCounter;
use super::hash::{HashOfHashes, KeyedHash};
use super::surprise::{BlockCounts, SurpriseTable, UNITS_PER_BIT};
use crate::control::{Cancelled, Control, fewest_at_once};

/// Most columns whose blocks and signatures are kept.
pub(super) const MAX_CHOSEN_COLUMNS: usize = 16;

/// Values of each column whose blocks are looked at: those with the lowest hashes.
const VALUES: usize = 32;

/// Blocks with less surprise say nothing.
const MIN_BLOCK_SURPRISE: u64 = 12 * UNITS_PER_BIT;

/// The surprise of common blocks of two columns from which two tables are alike.
const ENOUGH_SURPRISE: u64 = 160 * UNITS_PER_BIT;

/// Bits of a hash that go with the number of a block into one key; 112 bits of a hash distinguish cells.
const NUMBER_BITS: u32 = 16;
const _: () = assert!(MAX_CHOSEN_COLUMNS * MAX_CHOSEN_COLUMNS * VALUES <= 1 << NUMBER_BITS, "blocks have numbers");

/// Cells of a block that are kept until it is known whether it says something.
const CELLS_AT_ONCE: usize = 1 << 12;

/// Values of a chunk that are counted in an array rather than one by one.
const MAX_DENSE_COUNTS: usize = 1 << 16;

/// The mark of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Block {
    /// The hash of its value, its cells and their numbers.
    pub mark: KeyedHash,
    /// A lower bound of `-log2` of its probability, in 1/256 bit.
    pub surprise: u32,
    /// Which ordered pair of the table's own columns it is of.
    pub pair: u16,
}

/// Why what is collected of a table could not be.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScanError {
    #[error(transparent)]
    Spool(#[from] io::Error),
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// The blocks of the chosen columns.
pub(super) fn blocks(cells: &CellFile, chosen: &[usize], control: &Control) -> Result<Vec<Block>, ScanError> {
    let rows = cells.rows() as usize;
    let lowest = chosen.par_iter().with_min_len(fewest_at_once(rows));
    let lowest = lowest.map(|column| cells.lowest(*column, VALUES));
    let lowest: Vec<Vec<u128>> = lowest.collect::<io::Result<_>>()?;
    let mut counter = cells.counter();
    for chunk in 0..cells.chunks() {
        let columns = chosen.par_iter().with_min_len(fewest_at_once(rows / cells.chunks()));
        let columns = columns.map(|column| cells.read(chunk, *column));
        let columns: Vec<CellChunk> = columns.collect::<io::Result<_>>()?;
        for (by, values) in lowest.iter().enumerate() {
            control.check()?;
            count(&columns, by, values, &mut counter)?;
        }
    }
    let (mut found, mut table) = (Vec::new(), SurpriseTable::default());
    let mut open: Option<OpenBlock> = None;
    counter.finish(|key, times| -> Result<(), ScanError> {
        let number = (key >> (u128::BITS - NUMBER_BITS)) as usize;
        if open.as_ref().is_none_or(|of| of.number != number) {
            let next = OpenBlock::new(number, lowest[number / VALUES / chosen.len()][number % VALUES]);
            found.extend(open.replace(next).and_then(|full| full.close(&mut table)));
        }
        if let Some(of) = &mut open {
            of.push(key, times, &mut table);
        }
        Ok(())
    })?;
    found.extend(open.and_then(|last| last.close(&mut table)));
    Ok(found)
}

/// For each row with one of these values: the row and the number of the value.
struct NumberedRow {
    row: u32,
    value: u16,
}

fn numbered_rows(column: &CellChunk, values: &[u128]) -> Vec<NumberedRow> {
    let numbers: Vec<Option<u16>> =
        column.hashes.iter().map(|hash| values.binary_search(hash).ok().map(|at| at as u16)).collect();
    let row =
        |(row, code): (usize, &u16)| numbers[usize::from(*code)].map(|value| NumberedRow { row: row as u32, value });
    column.codes.iter().enumerate().filter_map(row).collect()
}

/// Counts the cells of all other columns in the blocks of the column `by` with these values.
fn count(columns: &[CellChunk], by: usize, values: &[u128], counter: &mut ExternalCounter) -> io::Result<()> {
    let rows = numbered_rows(&columns[by], values);
    let others: Vec<usize> = (0..columns.len()).filter(|other| *other != by).collect();
    let first = |other: usize| ((by * columns.len() + other) * VALUES) as u64;
    let counted = others.par_iter().with_min_len(fewest_at_once(rows.len()));
    let counted = counted.map(|other| dense_counts(&rows, &columns[*other], first(*other)));
    for (&other, counted) in others.iter().zip(counted.collect::<Vec<_>>()) {
        let column = &columns[other];
        let rare = |row: &NumberedRow| key(first(other) + u64::from(row.value), column.cell(row.row as usize));
        match counted {
            Some(counted) => counted.into_iter().try_for_each(|(key, times)| counter.add(key, times))?,
            None => rows.iter().try_for_each(|row| counter.add_rare(rare(row)))?,
        }
    }
    Ok(())
}

/// A cell in a block.
fn key(block: u64, hash: u128) -> u128 {
    u128::from(block) << (u128::BITS - NUMBER_BITS) | hash >> NUMBER_BITS
}

/// The number of each cell of a column in the blocks of these rows, of which `first` is the first one; in the order of the keys.
/// `None` where the column has too many values.
fn dense_counts(rows: &[NumberedRow], column: &CellChunk, first: u64) -> Option<Vec<(u128, u64)>> {
    let distinct = column.hashes.len();
    if distinct * VALUES > MAX_DENSE_COUNTS {
        return None;
    }
    let mut counts = vec![0_u32; distinct * VALUES];
    for row in rows {
        counts[usize::from(row.value) * distinct + usize::from(column.codes[row.row as usize])] += 1;
    }
    let mut codes: Vec<usize> = (0..distinct).collect();
    codes.sort_unstable_by_key(|code| column.hashes[*code]);
    let blocks = counts.chunks_exact(distinct.max(1)).zip(first..);
    let counted = blocks.flat_map(|(counts, block)| {
        let seen = codes.iter().filter(|code| counts[**code] > 0);
        seen.map(move |code| (key(block, column.hashes[*code]), u64::from(counts[*code])))
    });
    Some(counted.collect())
}

/// A block whose cells arrive in their order.
struct OpenBlock {
    number: usize,
    value: u128,
    counts: BlockCounts,
    /// Those that are not in `hash`.
    cells: Vec<(u128, u64)>,
    /// Begun where the cells are many.
    hash: Option<HashOfHashes>,
}

impl OpenBlock {
    fn new(number: usize, value: u128) -> Self {
        Self { number, value, counts: BlockCounts::default(), cells: Vec::new(), hash: None }
    }

    fn push(&mut self, key: u128, times: u64, table: &mut SurpriseTable) {
        table.add(&mut self.counts, times);
        self.cells.push((key << NUMBER_BITS, times));
        if self.cells.len() == CELLS_AT_ONCE {
            self.hash = Some(self.hashed());
        }
    }

    /// The hash of all cells up to now.
    fn hashed(&mut self) -> HashOfHashes {
        let mut hash = self.hash.take().unwrap_or_else(|| {
            let mut hash = HashOfHashes::new(b"block\0");
            hash.update(self.value);
            hash
        });
        for (cell, times) in self.cells.drain(..) {
            hash.update(cell);
            hash.update(times.into());
        }
        hash
    }

    /// Most blocks say nothing, and are not hashed.
    fn close(mut self, table: &mut SurpriseTable) -> Option<Block> {
        let surprise = table.surprise(self.counts);
        (surprise >= MIN_BLOCK_SURPRISE).then(|| Block {
            mark: KeyedHash(self.hashed().finish()),
            surprise: surprise.try_into().unwrap_or(u32::MAX),
            pair: (self.number / VALUES) as u16,
        })
    }
}

/// The blocks of a table that can say so: of pairs of columns whose blocks together do.
pub(super) fn telling(own: &[Block]) -> impl Iterator<Item = KeyedHash> {
    let mut of_pairs = BTreeMap::<u16, u64>::new();
    for block in own {
        *of_pairs.entry(block.pair).or_default() += u64::from(block.surprise);
    }
    own.iter().filter(move |block| of_pairs[&block.pair] >= ENOUGH_SURPRISE).map(|block| block.mark)
}

/// Whether the blocks that two tables have in common say that one was made of the other: by the pair of columns that
/// says most.
pub(super) fn are_alike(own: &[Block], is_common: impl Fn(KeyedHash) -> bool) -> bool {
    let mut of_pairs = BTreeMap::<u16, u64>::new();
    for block in own.iter().filter(|block| is_common(block.mark)) {
        *of_pairs.entry(block.pair).or_default() += u64::from(block.surprise);
    }
    of_pairs.values().any(|surprise| *surprise >= ENOUGH_SURPRISE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_many_cells_is_hashed_like_one_of_few() {
        let (mut block, mut table) = (OpenBlock::new(3, 7), SurpriseTable::default());
        let mut hash = HashOfHashes::new(b"block\0");
        hash.update(7);
        for cell in 0..2 * CELLS_AT_ONCE as u64 + 3 {
            block.push(cell.into(), cell % 3 + 1, &mut table);
            hash.update(u128::from(cell) << NUMBER_BITS);
            hash.update((cell % 3 + 1).into());
        }
        assert_eq!(block.close(&mut table).unwrap().mark, KeyedHash(hash.finish()));
    }
}
