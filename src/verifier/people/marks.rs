//! The marks by which tables are alike: blocks of two columns, and signatures of rows.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::counts::HashCounts;
use super::facts::{AuditedRows, ChunkCells, RowsLayout, code, first_half, hashed_cells, row_digest};
use super::surprise::surprise;
use crate::control::{Control, fewest_at_once};

/// Most columns whose marks count.
const MAX_CHOSEN: usize = 16;

/// Values of a column that have blocks: those with the lowest hashes.
const BLOCKS_OF_COLUMN: usize = 32;

/// The least surprise of a block, in 1/256 bit.
const MIN_SURPRISE: u64 = 12 * 256;

/// Signatures of a sample: those with the lowest hashes.
const SAMPLED: usize = 256;

/// Rows whose signatures are listed by themselves.
const ROWS_OF_LIST: usize = 1 << 13;

/// Fewest columns of a table of which a signature leaves one out.
const MIN_FREE: usize = 3;

/// Bits of a hash that distinguish cells of a block.
const CELL_BITS: u32 = 112;

/// Cells of a block that are kept unhashed: most blocks say nothing.
const UNHASHED: usize = 1 << 12;

/// Counts of a chunk that are kept in an array.
const MAX_ARRAY: usize = 1 << 16;

/// What a mark is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MarkKind {
    /// A block of this ordered pair of columns.
    Block(u16),
    /// A signature of this sample.
    Signature(u16),
}

/// A mark by which tables are alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AuditedMark {
    /// Its hash.
    pub hash: u128,
    /// What it is of.
    pub kind: MarkKind,
    /// The surprise of a block in 1/256 bit, or the rows of a signature.
    pub weight: u64,
}

/// The lowest signatures of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuditedSample {
    /// Each with its rows, in order.
    pub rows: Vec<(u128, u64)>,
    /// Whether the table has more.
    pub is_cut: bool,
}

/// A sample that is being drawn.
#[derive(Clone, Default)]
struct GrowingSample {
    /// The rows of signatures. Behind the first ones, which are in order, they stand as they came.
    rows: Vec<(u128, u64)>,
    in_order: usize,
    is_cut: bool,
    /// The highest signature that can be among them; none where any can.
    most: Option<u128>,
}

impl GrowingSample {
    /// A sample of more rows of the same table.
    fn of_more_rows(&self) -> Self {
        Self { most: self.most, ..Self::default() }
    }

    fn add(&mut self, signature: u128, rows: u64) {
        if self.most.is_some_and(|most| signature > most) {
            self.is_cut = true;
        } else {
            self.rows.push((signature, rows));
            if self.rows.len() - self.in_order > 2 * SAMPLED {
                self.order();
            }
        }
    }

    /// Adds up the rows of equal signatures, and cuts those that are too high.
    fn order(&mut self) {
        self.rows.sort_unstable();
        let of_one = self.rows.chunk_by(|(one, _), (other, _)| one == other);
        let mut lowest: Vec<(u128, u64)> =
            of_one.map(|equal| (equal[0].0, equal.iter().map(|(_, rows)| rows).sum())).collect();
        if lowest.len() > SAMPLED {
            lowest.truncate(SAMPLED);
            self.is_cut = true;
        }
        if lowest.len() == SAMPLED {
            self.most = lowest.last().map(|(highest, _)| *highest);
        }
        self.in_order = lowest.len();
        self.rows = lowest;
    }

    fn extend(&mut self, others: Self) {
        for (signature, rows) in others.rows {
            self.add(signature, rows);
        }
        self.is_cut |= others.is_cut;
    }
}

/// The columns that are no keys, and what the choice among them needs.
pub(super) struct FreeColumns {
    columns: Vec<usize>,
    rows: u64,
    sums: Vec<u128>,
    lowest: Vec<BTreeSet<u128>>,
    /// Cells behind the place of their column; only where there is a choice.
    distinct: Option<HashCounts>,
}

impl FreeColumns {
    pub(super) fn new(layout: &RowsLayout, folder: &Path) -> Self {
        let keys: BTreeSet<usize> =
            layout.systems.iter().flat_map(|of| &of.columns).chain(&layout.record_key).copied().collect();
        let columns: Vec<usize> = (0..layout.columns).filter(|column| !keys.contains(column)).collect();
        Self {
            rows: 0,
            sums: vec![0; columns.len()],
            lowest: vec![BTreeSet::new(); columns.len()],
            distinct: (columns.len() > MAX_CHOSEN).then(|| HashCounts::new(folder)),
            columns,
        }
    }

    pub(super) fn add(&mut self, of: &ChunkCells<'_>) -> io::Result<()> {
        self.rows += of.kept.len() as u64;
        for (place, &column) in self.columns.iter().enumerate() {
            let mut seen = vec![false; of.cells[column].len()];
            for &row in of.kept {
                seen[code(&of.chunk.columns[column], row)] = true;
                self.sums[place] = self.sums[place].wrapping_add(of.cell(column, row));
            }
            for (&cell, _) in of.cells[column].iter().zip(seen).filter(|(_, seen)| *seen) {
                let lowest = &mut self.lowest[place];
                if lowest.len() < BLOCKS_OF_COLUMN || lowest.last().is_some_and(|last| cell < *last) {
                    lowest.insert(cell);
                }
                if lowest.len() > BLOCKS_OF_COLUMN {
                    lowest.pop_last();
                }
                if let Some(distinct) = &mut self.distinct {
                    distinct.add(numbered(place as u64, cell), 1)?;
                }
            }
        }
        Ok(())
    }

    /// The places of the columns whose marks count.
    fn choose(&mut self) -> io::Result<Vec<usize>> {
        let mut chosen: Vec<usize> = (0..self.columns.len()).collect();
        if let Some(counts) = self.distinct.take() {
            let mut distinct = vec![0_u64; self.columns.len()];
            counts.finish(|key, _| -> io::Result<()> {
                distinct[(key >> CELL_BITS) as usize] += 1;
                Ok(())
            })?;
            // with at most half as many values as rows, most values first; then the others, most first
            let rank = |&place: &usize| {
                (distinct[place] > self.rows / 2, std::cmp::Reverse(distinct[place]), self.sums[place])
            };
            chosen.sort_by_key(rank);
            chosen.truncate(MAX_CHOSEN);
        }
        Ok(chosen)
    }
}

const fn numbered(number: u64, cell: u128) -> u128 {
    ((number as u128) << CELL_BITS) | (cell >> (u128::BITS - CELL_BITS))
}

/// All marks of a table.
pub(super) struct DerivedMarks {
    pub(super) marks: Vec<AuditedMark>,
    pub(super) cuts: Vec<bool>,
}

/// Derives the marks, on a second reading of the rows.
pub(super) fn derive_marks<R: AuditedRows>(
    rows: &mut R,
    mut free: FreeColumns,
    folder: &Path,
    control: &Control,
) -> Result<DerivedMarks, R::Error> {
    let chosen = free.choose()?;
    let lowest = chosen.iter().map(|place| free.lowest[*place].iter().copied().collect()).collect();
    let columns: Vec<usize> = chosen.iter().map(|place| free.columns[*place]).collect();
    let left_out = if free.columns.len() < MIN_FREE { 0 } else { columns.len() };
    let kinds = if free.columns.is_empty() { 0 } else { 1 + left_out };
    let mut samples = vec![GrowingSample::default(); kinds];
    let mut blocks = BlockCounter { columns: columns.clone(), lowest, counts: HashCounts::new(folder) };
    for number in 0..rows.chunks() {
        let chunk = rows.chunk(number)?;
        let kept: Vec<usize> = (0..chunk.rows as usize).filter(|row| rows.is_kept(number, *row)).collect();
        let cells =
            |(place, column)| if free.columns.contains(&place) { hashed_cells(rows, column) } else { Vec::new() };
        let cells: Vec<Vec<u128>> = chunk.columns.iter().enumerate().map(cells).collect();
        let of = ChunkCells { chunk: &chunk, cells: &cells, kept: &kept };
        let lists: Vec<Vec<GrowingSample>> = kept
            .par_chunks(ROWS_OF_LIST)
            .map(|rows| {
                let mut found: Vec<GrowingSample> = samples.iter().map(GrowingSample::of_more_rows).collect();
                let mut cells = vec![0_u128; free.columns.len()];
                for &row in rows {
                    cells.iter_mut().zip(&free.columns).for_each(|(cell, column)| *cell = of.cell(*column, row));
                    let whole = cells.iter().fold(0, |sum: u128, cell| sum.wrapping_add(*cell));
                    for (kind, sample) in found.iter_mut().enumerate() {
                        let without = kind.checked_sub(1).map_or(0, |left_out| cells[chosen[left_out]]);
                        sample.add(row_digest(whole.wrapping_sub(without)), 1);
                    }
                }
                found
            })
            .collect();
        for found in lists {
            samples.iter_mut().zip(found).for_each(|(sample, found)| sample.extend(found));
        }
        let codes = |column: &usize| kept.iter().map(|row| code(&chunk.columns[*column], *row)).collect();
        let codes: Vec<Vec<usize>> = columns.par_iter().with_min_len(fewest_at_once(kept.len())).map(codes).collect();
        for by in 0..columns.len() {
            control.check()?;
            blocks.add(&cells, &codes, by)?;
        }
    }
    samples.iter_mut().for_each(GrowingSample::order);
    let cuts = samples.iter().map(|sample| sample.is_cut).collect();
    let signature = |kind: usize, &(hash, weight): &(u128, u64)| AuditedMark {
        hash,
        kind: MarkKind::Signature(kind as u16),
        weight,
    };
    let mut marks = blocks.finish::<R::Error>()?;
    marks.extend(samples.iter().enumerate().flat_map(|(kind, of)| of.rows.iter().map(move |row| signature(kind, row))));
    Ok(DerivedMarks { marks, cuts })
}

/// Counts the cells of one column in the rows with a value of another.
struct BlockCounter {
    columns: Vec<usize>,
    lowest: Vec<Vec<u128>>,
    counts: HashCounts,
}

impl BlockCounter {
    /// The number of a block.
    fn number(&self, by: usize, other: usize, value: usize) -> u64 {
        ((by * self.columns.len() + other) * BLOCKS_OF_COLUMN + value) as u64
    }

    /// Adds rows to the blocks of a column. Of each column the rows have codes, and each code has a cell.
    fn add(&mut self, cells: &[Vec<u128>], codes: &[Vec<usize>], by: usize) -> io::Result<()> {
        let value = |cell: &u128| self.lowest[by].binary_search(cell).ok();
        let value_of_code: Vec<Option<usize>> = cells[self.columns[by]].iter().map(value).collect();
        let value = |(row, code): (usize, &usize)| value_of_code[*code].map(|value| (row, value));
        let rows: Vec<(usize, usize)> = codes[by].iter().enumerate().filter_map(value).collect();
        let others: Vec<usize> = (0..self.columns.len()).filter(|other| *other != by).collect();
        let counted = others.par_iter().with_min_len(fewest_at_once(rows.len())).map(|&other| {
            let first = self.number(by, other, 0);
            counted_in_array(&rows, &codes[other], &cells[self.columns[other]], first)
        });
        for (&other, counted) in others.iter().zip(counted.collect::<Vec<_>>()) {
            let cells = &cells[self.columns[other]];
            match counted {
                Some(counted) => counted.into_iter().try_for_each(|(key, times)| self.counts.add(key, times))?,
                None => rows.iter().try_for_each(|&(row, value)| {
                    let number = self.number(by, other, value);
                    self.counts.add(numbered(number, cells[codes[other][row]]), 1)
                })?,
            }
        }
        Ok(())
    }

    fn finish<E: From<io::Error>>(self) -> Result<Vec<AuditedMark>, E> {
        let (lowest, width) = (self.lowest, self.columns.len());
        let mut found = Vec::new();
        let mut open: Option<CountedBlock> = None;
        self.counts.finish(|key, times| -> Result<(), E> {
            let number = (key >> CELL_BITS) as usize;
            if open.as_ref().is_none_or(|block| block.number != number) {
                let by = number / BLOCKS_OF_COLUMN / width;
                let next = CountedBlock::new(number, lowest[by][number % BLOCKS_OF_COLUMN]);
                found.extend(open.replace(next).and_then(CountedBlock::mark));
            }
            if let Some(block) = &mut open {
                block.push(key << (u128::BITS - CELL_BITS), times);
            }
            Ok(())
        })?;
        found.extend(open.and_then(CountedBlock::mark));
        Ok(found)
    }
}

/// The rows of each cell of a column in blocks whose first number is `first`, in order; none where there are many cells.
fn counted_in_array(
    rows: &[(usize, usize)],
    codes_of_rows: &[usize],
    cells: &[u128],
    first: u64,
) -> Option<Vec<(u128, u64)>> {
    let codes = cells.len();
    if codes * BLOCKS_OF_COLUMN > MAX_ARRAY {
        return None;
    }
    let mut array = vec![0_u64; codes * BLOCKS_OF_COLUMN];
    for &(row, value) in rows {
        array[value * codes + codes_of_rows[row]] += 1;
    }
    let mut by_cell: Vec<usize> = (0..codes).collect();
    by_cell.sort_unstable_by_key(|code| cells[*code]);
    let mut counted = Vec::new();
    for (number, times) in (first..).zip(array.chunks_exact(codes)) {
        let seen = by_cell.iter().filter(|code| times[**code] > 0);
        counted.extend(seen.map(|code| (numbered(number, cells[*code]), times[*code])));
    }
    Some(counted)
}

/// A block with the rows of each of its cells.
struct CountedBlock {
    number: usize,
    value: u128,
    counts: Vec<u64>,
    /// The last cells, which are not hashed.
    cells: Vec<u128>,
    /// Of the cells before.
    digest: Option<Sha256>,
}

impl CountedBlock {
    const fn new(number: usize, value: u128) -> Self {
        Self { number, value, counts: Vec::new(), cells: Vec::new(), digest: None }
    }

    fn push(&mut self, cell: u128, times: u64) {
        self.cells.push(cell);
        self.counts.push(times);
        if self.cells.len() == UNHASHED {
            self.digest = Some(self.hashed());
        }
    }

    fn hashed(&mut self) -> Sha256 {
        let begun = || Sha256::new().chain_update(b"block\0").chain_update(self.value.to_be_bytes());
        let mut digest = self.digest.take().unwrap_or_else(begun);
        let first = self.counts.len() - self.cells.len();
        for (cell, times) in self.cells.drain(..).zip(&self.counts[first..]) {
            digest.update(cell.to_be_bytes());
            digest.update(u128::from(*times).to_be_bytes());
        }
        digest
    }

    fn mark(mut self) -> Option<AuditedMark> {
        let weight = surprise(&self.counts);
        (weight >= MIN_SURPRISE).then(|| AuditedMark {
            hash: first_half(&self.hashed().finalize()),
            kind: MarkKind::Block((self.number / BLOCKS_OF_COLUMN) as u16),
            weight: weight.min(u32::MAX.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_many_cells_is_hashed_like_one_of_few() {
        let mut block = CountedBlock::new(3, 7);
        let mut bytes = [b"block\0".as_slice(), &7_u128.to_be_bytes()].concat();
        for cell in 0..2 * UNHASHED as u64 + 3 {
            block.push(cell.into(), cell % 3 + 1);
            bytes.extend(u128::from(cell).to_be_bytes());
            bytes.extend(u128::from(cell % 3 + 1).to_be_bytes());
        }
        assert_eq!(block.mark().unwrap().hash, first_half(&Sha256::digest(bytes)));
    }
}
