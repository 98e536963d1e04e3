//! Tuples of few bits as words, which are sorted where a hash table would miss the caches.
//!
//! Only the words of some rows exist at a time: those of the rows that may agree in the columns that are compared. Each
//! processor has such a part of the rows.

use super::counted_tuples::{CountedTuples, WordField, bits};
use super::groups::RowGroups;
use super::inferred_rows::InferredRows;
use super::row_parts::{RowParts, RowSelection};
use crate::control::{Cancelled, Control};
use crate::microdata::Column;
use crate::with_codes;

/// Tuples that a processor takes at once, about: its caches hold them twice.
const PIECE_TUPLES: usize = 1 << 16;

/// Pieces of the largest part of the rows, about.
const PART_PIECES: usize = 16;

/// Parts of the rows of a table that is not large.
const FEWEST_PARTS: usize = 8;

/// Parts of the rows of a huge table, about: each is found by a pass over all rows.
const MOST_PARTS: usize = 64;

/// Bits of words of which each is counted, where a table has more rows than there are such words.
const COUNTED_BITS: u32 = 16;

/// Rows that are looked at to find the column that parts them best.
const SAMPLED_ROWS: usize = 1 << 14;

/// Rows whose tuples fit into words, by groups if there are several.
pub(super) struct PackedRows<'a> {
    rows: usize,
    groups: Option<&'a RowGroups>,
    columns: Vec<&'a Column>,
}

/// What parts rows.
#[derive(Clone, Copy)]
enum PartedBy<'a> {
    /// The groups in which tuples are compared.
    Groups(&'a RowGroups),
    /// One of the columns.
    Column(usize),
    /// Nothing does: all rows are one part.
    Nothing,
}

impl PartedBy<'_> {
    fn column(self) -> Option<usize> {
        match self {
            Self::Column(column) => Some(column),
            Self::Groups(_) | Self::Nothing => None,
        }
    }
}

/// The places of columns in a word, and of the groups above them.
struct WordLayout {
    /// The columns; the first has the lowest bits.
    order: Vec<usize>,
    fields: Vec<WordField>,
    groups: WordField,
}

impl<'a> PackedRows<'a> {
    /// The tuples of `columns` in each of `groups`; `None` where a word does not hold them.
    pub(super) fn new(rows: usize, groups: Option<&'a RowGroups>, columns: Vec<&'a Column>) -> Option<Self> {
        let groups = groups.filter(|groups| groups.sizes().len() > 1);
        let packed = Self { rows, groups, columns };
        (packed.used() <= u64::BITS).then_some(packed)
    }

    fn group_bits(&self) -> u32 {
        bits(self.groups.map_or(1, |groups| groups.sizes().len()))
    }

    fn column_bits(&self, column: usize) -> u32 {
        bits(self.columns[column].domain.len())
    }

    /// Bits of a word that are used.
    fn used(&self) -> u32 {
        (0..self.columns.len()).map(|column| self.column_bits(column)).sum::<u32>() + self.group_bits()
    }

    /// Whether there are so few words that those of some rows are counted, and none is sorted.
    fn has_few_words(&self, rows: usize) -> bool {
        self.used() <= COUNTED_BITS && rows >> self.used() > 0
    }

    /// Number of rows that no other row of their group equals.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub(super) fn unique(&self, control: &Control) -> Result<u64, Cancelled> {
        let (parted, _) = self.parted_by(PIECE_TUPLES);
        let layout = self.layout((0..self.columns.len()).collect());
        let look = |rows: RowSelection| Ok(self.tuples(&rows, &layout, control)?.unique());
        Ok(self.each_part(parted, PIECE_TUPLES, control, look)?.into_iter().sum())
    }

    /// The same, and for each column the rows of which it follows from all others and the group.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub(super) fn inferred(&self, control: &Control) -> Result<(u64, Vec<InferredRows>), Cancelled> {
        self.inferred_by(PIECE_TUPLES, control)
    }

    fn inferred_by(&self, piece: usize, control: &Control) -> Result<(u64, Vec<InferredRows>), Cancelled> {
        let (first, second) = self.parted_by(piece);
        let mut found = vec![InferredRows::default(); self.columns.len()];
        let compared: Vec<usize> = (0..found.len()).filter(|column| first.column() != Some(*column)).collect();
        let unique = self.add_inferred(&compared, first, piece, &mut found, control)?;
        // rows that agree in all columns but the parting one are in several parts
        if let Some(column) = first.column() {
            self.add_inferred(&[column], second, piece, &mut found, control)?;
        }
        Ok((unique, found))
    }

    /// Adds the rows that are inferred of `columns`, which part no rows; the unique rows.
    fn add_inferred(
        &self,
        columns: &[usize],
        parted: PartedBy<'_>,
        piece: usize,
        found: &mut [InferredRows],
        control: &Control,
    ) -> Result<u64, Cancelled> {
        let mut order = columns.to_vec();
        order.extend(
            (0..self.columns.len()).filter(|column| !columns.contains(column) && parted.column() != Some(*column)),
        );
        order.extend(parted.column());
        let layout = self.layout(order);
        let parting = parted.column().and(layout.fields.last().copied()).unwrap_or(layout.groups);
        let look = |rows: RowSelection| {
            let tuples = self.tuples(&rows, &layout, control)?;
            drop(rows);
            let unique = tuples.unique();
            Ok((unique, tuples.inferred(&layout.fields[..columns.len()], parting, piece, control)?))
        };
        let mut unique = 0;
        for (more, inferred) in self.each_part(parted, piece, control, look)? {
            unique += more;
            columns.iter().zip(inferred).for_each(|(&column, inferred)| found[column] += inferred);
        }
        Ok(unique)
    }

    /// What parts the rows best, and what does where rows of several such parts are compared.
    fn parted_by(&self, piece: usize) -> (PartedBy<'a>, PartedBy<'a>) {
        if self.rows <= piece || self.has_few_words(self.rows) {
            return (PartedBy::Nothing, PartedBy::Nothing);
        }
        if let Some(groups) = self.groups {
            return (PartedBy::Groups(groups), PartedBy::Nothing);
        }
        // the column whose most frequent value has the fewest rows; an odd step meets those of tables that repeat themselves
        let step = (self.rows / SAMPLED_ROWS) | 1;
        let most = |column: &usize| {
            let codes = &self.columns[*column].codes;
            let mut sampled: Vec<u32> = (0..self.rows).step_by(step).map(|row| codes.get(row)).collect();
            sampled.sort_unstable();
            sampled.chunk_by(|one, next| one == next).map(<[u32]>::len).max()
        };
        let mut columns: Vec<usize> = (0..self.columns.len()).collect();
        columns.sort_by_cached_key(most);
        let mut parted = columns.into_iter().map(PartedBy::Column);
        let mut next = || parted.next().unwrap_or(PartedBy::Nothing);
        (next(), next())
    }

    /// Calls `look` with the rows of each part, side by side.
    fn each_part<R: Send>(
        &self,
        parted: PartedBy<'_>,
        piece: usize,
        control: &Control,
        look: impl Fn(RowSelection) -> Result<R, Cancelled> + Sync,
    ) -> Result<Vec<R>, Cancelled> {
        let most = (self.rows / FEWEST_PARTS).clamp(piece, piece * PART_PIECES).max(self.rows / MOST_PARTS);
        match parted {
            PartedBy::Groups(groups) => {
                let (of_row, number) = (groups.of_row(), groups.sizes().len());
                RowParts::new(of_row, number, most, control)?.each(of_row, control, look)
            }
            PartedBy::Column(column) => {
                let Column { codes, domain, .. } = self.columns[column];
                with_codes!(codes, codes => RowParts::new(codes, domain.len(), most, control)?.each(codes, control, look))
            }
            PartedBy::Nothing => Ok(vec![look(RowSelection::All(self.rows))?]),
        }
    }

    fn layout(&self, order: Vec<usize>) -> WordLayout {
        let mut end = 0;
        let mut field = |bits: u32| {
            end += bits;
            WordField { shift: end - bits, bits }
        };
        let fields = order.iter().map(|column| field(self.column_bits(*column))).collect();
        WordLayout { order, fields, groups: field(self.group_bits()) }
    }

    /// The distinct tuples of some rows.
    fn tuples(&self, rows: &RowSelection, layout: &WordLayout, control: &Control) -> Result<CountedTuples, Cancelled> {
        if self.has_few_words(rows.len()) {
            let mut counts = vec![0_u32; 1 << self.used()];
            let mut words = vec![0; rows.len().min(Control::STRIDE)];
            for rows in rows.chunks(Control::STRIDE) {
                control.check()?;
                let words = &mut words[..rows.len()];
                self.write_words(words, &rows, layout);
                words.iter().for_each(|word| counts[*word as usize] += 1);
            }
            return Ok(CountedTuples::from_counts(&counts, rows.len()));
        }
        let mut words = vec![0; rows.len()];
        for (words, rows) in words.chunks_mut(Control::STRIDE).zip(rows.chunks(Control::STRIDE)) {
            control.check()?;
            self.write_words(words, &rows, layout);
        }
        words.sort_unstable();
        Ok(CountedTuples::new(words, self.used()))
    }

    fn write_words(&self, words: &mut [u64], rows: &[u32], layout: &WordLayout) {
        // a fresh page that is read before it is written is made twice, and other processors wait for it
        words.fill(0);
        for (&column, &field) in layout.order.iter().zip(&layout.fields) {
            with_codes!(&self.columns[column].codes, codes => write(words, rows, codes, field));
        }
        if let Some(groups) = self.groups {
            write(words, rows, groups.of_row(), layout.groups);
        }
    }
}

/// Writes codes into the words of some rows.
fn write<T: Copy + Into<u64>>(words: &mut [u64], rows: &[u32], codes: &[T], field: WordField) {
    // no shift is too large for a field with bits
    if field.bits > 0 {
        words.iter_mut().zip(rows).for_each(|(word, &row)| *word |= codes[row as usize].into() << field.shift);
    }
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
}
