//! Tuples of few bits as words, which are sorted where a hash table would miss the caches.
//!
//! A large table is taken in pieces: rows that agree in all columns but one are in the same piece, whatever pieces the codes of another
//! column make. So the lists of words stay short, and processors take pieces side by side.

use rayon::prelude::*;

use super::groups::RowGroups;
use super::inferred_rows::{AgreeingRows, InferredRows};
use crate::control::{Cancelled, Control};
use crate::microdata::Column;
use crate::with_codes;

/// Bits by which one pass sorts.
const DIGIT_BITS: u32 = 11;

/// Rows of a piece, about. A column more is sorted in pieces than without, so that a table that fits is taken whole.
const PIECE_ROWS: usize = 1 << 24;

/// Rows that are looked at to find the pieces.
const SAMPLED_ROWS: usize = 1 << 14;

/// Where a word holds the codes of a column.
#[derive(Clone, Copy)]
struct WordField {
    shift: u32,
    bits: u32,
    /// The least code, which is written as 0.
    least: u32,
}

impl WordField {
    /// The bits above `below` for the codes of `keys`.
    fn above(below: u32, keys: KeyRange) -> Self {
        Self {
            shift: below,
            bits: bits((u64::from(keys.last) - u64::from(keys.first) + 1) as usize),
            least: keys.first,
        }
    }

    const fn end(self) -> u32 {
        self.shift + self.bits
    }

    fn mask(self) -> u64 {
        if self.bits == 0 { 0 } else { (u64::MAX >> (u64::BITS - self.bits)) << self.shift }
    }
}

/// Bits that hold the numbers below `values`.
fn bits(values: usize) -> u32 {
    u64::BITS - (values.max(1) as u64 - 1).leading_zeros()
}

/// A tuple, and the rows that have it.
#[derive(Clone, Copy, Default)]
struct CountedTuple {
    word: u64,
    rows: u32,
}

/// Distinct tuples in the order of their words.
enum CountedTuples {
    /// Each word stands above the number of its rows, for which there are `row_bits`.
    Narrow { words: Vec<u64>, row_bits: u32 },
    /// Words that leave no room for the number.
    Wide(Vec<CountedTuple>),
}

impl CountedTuples {
    /// The tuples of rows with these words, which are sorted and take `used` bits.
    fn new(mut words: Vec<u64>, used: u32) -> Self {
        let row_bits = bits(words.len() + 1);
        if used + row_bits > u64::BITS {
            let runs = || words.chunk_by(|one, next| one == next);
            let mut tuples = Vec::with_capacity(runs().count());
            tuples.extend(runs().map(|run| CountedTuple { word: run[0], rows: run.len() as u32 }));
            return Self::Wide(tuples);
        }
        // in place: a table of distinct rows takes no second list
        let (mut tuples, mut row) = (0, 0);
        while let Some(&word) = words.get(row) {
            let rows = words[row..].iter().take_while(|next| **next == word).count();
            words[tuples] = word << row_bits | rows as u64;
            tuples += 1;
            row += rows;
        }
        words.truncate(tuples);
        words.shrink_to_fit();
        Self::Narrow { words, row_bits }
    }

    /// Number of tuples that one row has.
    fn unique(&self) -> u64 {
        let unique = match self {
            Self::Narrow { words, row_bits } => {
                words.iter().filter(|word| unpacked(**word, *row_bits).rows == 1).count()
            }
            Self::Wide(tuples) => tuples.iter().filter(|tuple| tuple.rows == 1).count(),
        };
        unique as u64
    }

    /// For each of `fields`, which stand in this order from the lowest bits, the rows inferred from all others.
    fn inferred(self, fields: &[WordField], control: &Control) -> Result<Vec<InferredRows>, Cancelled> {
        match self {
            Self::Narrow { words, row_bits } => {
                columns_in_turn(words, fields, |word| unpacked(*word, row_bits), control)
            }
            Self::Wide(tuples) => columns_in_turn(tuples, fields, |tuple| *tuple, control),
        }
    }
}

/// A tuple of [`CountedTuples::Narrow`].
const fn unpacked(word: u64, row_bits: u32) -> CountedTuple {
    CountedTuple { word: word >> row_bits, rows: (word & ((1 << row_bits) - 1)) as u32 }
}

/// Rows whose tuples fit into words, by groups if there are several.
pub(super) struct PackedRows<'a> {
    rows: usize,
    groups: Option<&'a RowGroups>,
    columns: Vec<&'a Column>,
}

/// By what a row is in a piece.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceKey {
    Group,
    Column(usize),
}

/// Pieces of the rows, by ranges of keys.
struct RowPieces {
    key: PieceKey,
    /// The least key of each piece but the first.
    bounds: Vec<u32>,
    /// Sampled rows in the largest piece.
    largest: usize,
}

/// Keys from the first to the last one.
#[derive(Clone, Copy)]
struct KeyRange {
    first: u32,
    last: u32,
}

impl KeyRange {
    /// Those below `keys`; there is at least one.
    fn below(keys: usize) -> Self {
        Self { first: 0, last: (keys.max(1) - 1) as u32 }
    }
}

impl RowPieces {
    /// The keys of piece `at`, of keys that `all` has.
    fn keys(&self, at: usize, all: KeyRange) -> KeyRange {
        let first = at.checked_sub(1).map_or(all.first, |before| self.bounds[before]);
        KeyRange { first, last: self.bounds.get(at).map_or(all.last, |next| next - 1) }
    }
}

/// What is looked for in the pieces.
struct PiecesInTurn {
    /// The columns, the one with the lowest bits first.
    order: Vec<usize>,
    /// How many of them, from the first, are inferred from all others.
    inferred: usize,
    /// `None` for all rows at once.
    pieces: Option<RowPieces>,
}

impl<'a> PackedRows<'a> {
    /// The tuples of `columns` in each of `groups`; `None` where a word does not hold them.
    pub(super) fn new(rows: usize, groups: Option<&'a RowGroups>, columns: Vec<&'a Column>) -> Option<Self> {
        let groups = groups.filter(|groups| groups.sizes().len() > 1);
        let packed = Self { rows, groups, columns };
        (packed.used() <= u64::BITS).then_some(packed)
    }

    /// Bits of a word that are used.
    fn used(&self) -> u32 {
        let columns: u32 = self.columns.iter().map(|column| bits(column.domain.len())).sum();
        columns + bits(self.groups.map_or(1, |groups| groups.sizes().len()))
    }

    /// Number of rows that no other row of their group equals.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub(super) fn unique(&self, control: &Control) -> Result<u64, Cancelled> {
        let pieces = self.pieces(PIECE_ROWS, None);
        let order = (0..self.columns.len()).collect();
        Ok(self.in_pieces(PiecesInTurn { order, inferred: 0, pieces }, control)?.0)
    }

    /// The same, and for each column the rows of which it follows from all others and the group.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub(super) fn inferred(&self, control: &Control) -> Result<(u64, Vec<InferredRows>), Cancelled> {
        self.inferred_by(PIECE_ROWS, control)
    }

    fn inferred_by(&self, piece: usize, control: &Control) -> Result<(u64, Vec<InferredRows>), Cancelled> {
        let mut order: Vec<usize> = (0..self.columns.len()).collect();
        let pieces = self.pieces(piece, None);
        let split = match pieces.as_ref().map(|pieces| pieces.key) {
            Some(PieceKey::Column(split)) => Some(split),
            Some(PieceKey::Group) | None => None,
        };
        if let Some(split) = split {
            order[split..].rotate_left(1);
        }
        let inferred = self.columns.len() - usize::from(split.is_some());
        let turn = PiecesInTurn { order: order.clone(), inferred, pieces };
        let (unique, mut found) = self.in_pieces(turn, control)?;
        if let Some(split) = split {
            // rows that agree in all but this column may be in several of its pieces
            order.rotate_right(1);
            let pieces = self.pieces(piece, Some(split));
            let (_, by_others) = self.in_pieces(PiecesInTurn { order, inferred: 1, pieces }, control)?;
            found.splice(split..split, by_others);
        }
        Ok((unique, found))
    }

    /// Pieces of about `piece` rows by the best key, which is not the column `except`; `None` where all rows are one.
    fn pieces(&self, piece: usize, except: Option<usize>) -> Option<RowPieces> {
        let wanted = self.rows.div_ceil(piece);
        if wanted < 2 {
            return None;
        }
        if self.groups.is_some() {
            return Some(self.pieces_by(PieceKey::Group, wanted)).filter(|pieces| !pieces.bounds.is_empty());
        }
        let columns = (0..self.columns.len()).filter(|column| Some(*column) != except);
        let pieces = columns.map(|column| self.pieces_by(PieceKey::Column(column), wanted));
        pieces.min_by_key(|pieces| pieces.largest).filter(|pieces| !pieces.bounds.is_empty())
    }

    /// Pieces by the quantiles of the keys of some rows.
    fn pieces_by(&self, key: PieceKey, wanted: usize) -> RowPieces {
        // an odd step meets the rows of tables that repeat themselves
        let step = (self.rows / SAMPLED_ROWS) | 1;
        let mut sampled: Vec<u32> = match key {
            PieceKey::Group => {
                self.groups.into_iter().flat_map(|of| of.of_row().iter().step_by(step)).copied().collect()
            }
            PieceKey::Column(column) => {
                let codes = &self.columns[column].codes;
                (0..self.rows).step_by(step).map(|row| codes.get(row)).collect()
            }
        };
        sampled.sort_unstable();
        let quantile = |at: usize| sampled[sampled.len() * at / wanted];
        let mut bounds: Vec<u32> = (1..wanted).map(quantile).filter(|bound| *bound > sampled[0]).collect();
        bounds.dedup();
        let ends = bounds.iter().map(|bound| sampled.partition_point(|key| key < bound)).chain([sampled.len()]);
        let (mut start, mut largest) = (0, 0);
        for end in ends {
            largest = largest.max(end - start);
            start = end;
        }
        RowPieces { key, bounds, largest }
    }

    /// All keys of a column, or all groups.
    fn keys(&self, key: PieceKey) -> KeyRange {
        KeyRange::below(match key {
            PieceKey::Group => self.groups.map_or(1, |groups| groups.sizes().len()),
            PieceKey::Column(column) => self.columns[column].domain.len(),
        })
    }

    /// The unique rows, and the inferred ones of each column that is asked for.
    fn in_pieces(&self, turn: PiecesInTurn, control: &Control) -> Result<(u64, Vec<InferredRows>), Cancelled> {
        let pieces = turn.pieces.as_ref();
        let found = (0..pieces.map_or(1, |pieces| pieces.bounds.len() + 1)).into_par_iter().map(|at| {
            let keys = |key: PieceKey| match pieces.filter(|pieces| pieces.key == key) {
                Some(pieces) => pieces.keys(at, self.keys(key)),
                None => self.keys(key),
            };
            let mut fields = Vec::with_capacity(turn.order.len());
            let mut end = 0;
            for &column in &turn.order {
                fields.push(WordField::above(end, keys(PieceKey::Column(column))));
                end += fields.last().map_or(0, |field: &WordField| field.bits);
            }
            let group = WordField::above(end, keys(PieceKey::Group));
            let rows = pieces.map(|pieces| self.rows_with(pieces.key, keys(pieces.key)));
            let mut words = vec![0; rows.as_ref().map_or(self.rows, Vec::len)];
            let of = rows.as_deref();
            if let Some(groups) = self.groups {
                write(&mut words, of, groups.of_row(), group, control)?;
            }
            for (&column, &field) in turn.order.iter().zip(&fields) {
                with_codes!(&self.columns[column].codes, codes => write(&mut words, of, codes, field, control)?);
            }
            drop(rows);
            control.check()?;
            // in place, and as fast as digit by digit: the words of all rows are the largest list of a verification
            words.sort_unstable();
            let tuples = CountedTuples::new(words, group.end());
            Ok((tuples.unique(), tuples.inferred(&fields[..turn.inferred], control)?))
        });
        found.try_reduce(
            || (0, vec![InferredRows::default(); turn.inferred]),
            |(unique, mut sums), (more, inferred)| {
                sums.iter_mut().zip(inferred).for_each(|(sum, of)| *sum += of);
                Ok((unique + more, sums))
            },
        )
    }

    /// The rows with some keys.
    fn rows_with(&self, key: PieceKey, keys: KeyRange) -> Vec<u32> {
        match (key, self.groups) {
            (PieceKey::Column(column), _) => {
                with_codes!(&self.columns[column].codes, codes => rows_between(codes, keys))
            }
            (PieceKey::Group, Some(groups)) => rows_between(groups.of_row(), keys),
            (PieceKey::Group, None) => (0..self.rows as u32).collect(),
        }
    }
}

/// The rows with codes in a range. Whether the next one is among them cannot be predicted: each is written.
fn rows_between<T: Copy + Into<u64>>(codes: &[T], keys: KeyRange) -> Vec<u32> {
    let (first, width) = (u64::from(keys.first), u64::from(keys.last - keys.first));
    let is_in = |code: T| code.into().wrapping_sub(first) <= width;
    let found: usize = codes.iter().map(|code| usize::from(is_in(*code))).sum();
    let (mut rows, mut at) = (vec![0; found + 1], 0);
    for (code, row) in codes.iter().zip(0..) {
        rows[at] = row;
        at += usize::from(is_in(*code));
    }
    rows.truncate(found);
    rows
}

/// Writes the codes of some rows, or of all, into their words.
fn write<T: Copy + Into<u64> + Sync>(
    words: &mut [u64],
    rows: Option<&[u32]>,
    codes: &[T],
    field: WordField,
    control: &Control,
) -> Result<(), Cancelled> {
    // no shift is too large for a field with bits
    if field.bits == 0 {
        return Ok(());
    }
    let placed = |code: T| (code.into() - u64::from(field.least)) << field.shift;
    words.par_chunks_mut(Control::STRIDE).enumerate().try_for_each(|(at, words)| {
        control.check()?;
        let range = at * Control::STRIDE..at * Control::STRIDE + words.len();
        match rows {
            Some(rows) => {
                words.iter_mut().zip(&rows[range]).for_each(|(word, row)| *word |= placed(codes[*row as usize]));
            }
            None => words.iter_mut().zip(&codes[range]).for_each(|(word, code)| *word |= placed(*code)),
        }
        Ok(())
    })
}

/// A column whose bits decide last has the rows that agree in all others side by side. A stable sort by it makes it decide first,
/// and the next one last, so that one pass over the tuples turns from a column to the next.
fn columns_in_turn<T: Copy + Default>(
    mut tuples: Vec<T>,
    fields: &[WordField],
    counted: impl Fn(&T) -> CountedTuple,
    control: &Control,
) -> Result<Vec<InferredRows>, Cancelled> {
    let mut found = vec![InferredRows::default(); fields.len()];
    for (at, (&field, inferred)) in fields.iter().zip(&mut found).enumerate() {
        let others = !field.mask();
        for run in tuples.chunk_by(|one, next| counted(one).word & others == counted(next).word & others) {
            let agree = |sum: AgreeingRows, tuple: &T| {
                let rows = counted(tuple).rows;
                AgreeingRows { rows: sum.rows + rows, most: sum.most.max(rows) }
            };
            inferred.add_agreeing(run.iter().fold(AgreeingRows::default(), agree));
        }
        if at + 1 < fields.len() {
            sort_by_field(&mut tuples, field, |tuple| counted(tuple).word, control)?;
        }
    }
    Ok(found)
}

/// Sorts by the bits of a field; stable.
fn sort_by_field<T: Copy + Default>(
    items: &mut Vec<T>,
    field: WordField,
    word: impl Fn(&T) -> u64,
    control: &Control,
) -> Result<(), Cancelled> {
    let mut sorted = vec![T::default(); items.len()];
    // digits of equal widths
    let passes = field.bits.div_ceil(DIGIT_BITS);
    for pass in 0..passes {
        let (from, upto) = (field.bits * pass / passes, field.bits * (pass + 1) / passes);
        let digit = |item: &T| (word(item) >> (field.shift + from)) as usize & ((1 << (upto - from)) - 1);
        control.check()?;
        let mut ends = vec![0_usize; 1 << (upto - from)];
        items.iter().for_each(|item| ends[digit(item)] += 1);
        if ends.contains(&items.len()) {
            continue;
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        for items in items.chunks(Control::STRIDE) {
            control.check()?;
            for item in items {
                let end = &mut ends[digit(item)];
                sorted[*end] = *item;
                *end += 1;
            }
        }
        std::mem::swap(items, &mut sorted);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::groups::tests::table;
    use super::*;
    use crate::microdata::{Attr, Table};

    /// The rows whose value of column `one` follows from those of the other columns; by definition.
    fn inferred(table: &Table, columns: &[Attr], one: usize) -> InferredRows {
        let mut groups = std::collections::BTreeMap::<Vec<u32>, std::collections::BTreeMap<u32, u32>>::new();
        for row in 0..table.rows() {
            let code = |attr: Attr| table.column(attr).codes.get(row);
            let others = columns.iter().enumerate().filter(|(at, _)| *at != one).map(|(_, attr)| code(*attr));
            *groups.entry(others.collect()).or_default().entry(code(columns[one])).or_default() += 1;
        }
        let mut found = InferredRows::default();
        for values in groups.values() {
            let (rows, most) = (values.values().sum::<u32>(), *values.values().max().unwrap());
            found.add(u64::from(rows), values.len() == 1, 2 * most > rows);
        }
        found
    }

    proptest! {
        #[test]
        fn tuples_of_words_agree_as_their_cells_do(
            values in prop::collection::vec(prop::sample::select(vec![1u32, 2, 3, 300, 70_000]), 5),
            rows in prop::collection::vec(prop::collection::vec(prop_oneof![4 => 0u32..3, 1 => any::<u32>()], 5), 0..60),
            grouped in 0usize..3,
            piece in 1usize..70,
        ) {
            let (table, control) = (table(&values, &rows), Control::default());
            let columns: Vec<Attr> = (0..5).map(Attr).collect();
            let all: Vec<&Column> = columns.iter().map(|attr| table.column(*attr)).collect();
            let groups = RowGroups::whole(rows.len()).refined(&all[..grouped], &control).unwrap();
            let bits: u32 = all[grouped..].iter().map(|column| bits(column.domain.len())).sum();
            let groups = (grouped > 0).then_some(&groups);
            let packed = PackedRows::new(rows.len(), groups, all[grouped..].to_vec());
            let groups = groups.map_or(1, |groups| groups.sizes().len());
            prop_assert_eq!(packed.is_some(), bits + super::bits(groups) <= 64);
            let Some(packed) = packed else { return Ok(()) };
            let whole = RowGroups::whole(rows.len()).refined(&all, &control).unwrap();
            let unique = whole.sizes().iter().filter(|size| **size == 1).count() as u64;
            let expected: Vec<_> = (grouped..5).map(|at| inferred(&table, &columns, at)).collect();
            prop_assert_eq!(packed.unique(&control).unwrap(), unique);
            prop_assert_eq!(packed.inferred(&control).unwrap(), (unique, expected.clone()));
            prop_assert_eq!(packed.inferred_by(piece, &control).unwrap(), (unique, expected));
        }
    }

    #[test]
    fn pieces_hold_about_as_many_rows_as_asked() {
        let rows: Vec<Vec<u32>> = (0..4000).map(|row| vec![row % 2, row % 40, row / 3]).collect();
        let table = table(&[2, 40, 2000], &rows);
        let columns: Vec<&Column> = (0..3).map(|at| table.column(Attr(at))).collect();
        let packed = PackedRows::new(rows.len(), None, columns).unwrap();
        for except in [None, Some(0), Some(1), Some(2)] {
            let pieces = packed.pieces(500, except).unwrap();
            let sizes: Vec<usize> = (0..=pieces.bounds.len())
                .map(|at| packed.rows_with(pieces.key, pieces.keys(at, packed.keys(pieces.key))).len())
                .collect();
            assert_eq!((sizes.len(), sizes.iter().sum::<usize>()), (8, 4000), "{sizes:?}");
            assert!(sizes.iter().all(|size| (400..=600).contains(size)), "{sizes:?}");
        }
        assert!(packed.pieces(4000, None).is_none());
    }
}
