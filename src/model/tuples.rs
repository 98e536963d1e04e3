//! Tuples of few bits as words, which are sorted where a hash table would miss the caches.

use rayon::prelude::*;

use super::counted_tuples::{CountedTuples, WordField, bits};
use super::groups::RowGroups;
use super::inferred_rows::InferredRows;
use crate::control::{Cancelled, Control};
use crate::microdata::Column;
use crate::with_codes;

/// Tuples that a processor takes at once, about: its caches hold them twice.
const PIECE_TUPLES: usize = 1 << 16;

/// Rows that are looked at to find the column that parts them best.
const SAMPLED_ROWS: usize = 1 << 14;

/// Rows whose tuples fit into words, by groups if there are several.
pub(super) struct PackedRows<'a> {
    rows: usize,
    groups: Option<&'a RowGroups>,
    columns: Vec<&'a Column>,
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

    /// Bits of a word that are used.
    fn used(&self) -> u32 {
        self.columns.iter().map(|column| bits(column.domain.len())).sum::<u32>() + self.group_bits()
    }

    /// Number of rows that no other row of their group equals.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub(super) fn unique(&self, control: &Control) -> Result<u64, Cancelled> {
        let order: Vec<usize> = (0..self.columns.len()).collect();
        Ok(self.tuples(&order, control)?.0.unique())
    }

    /// The same, and for each column the rows of which it follows from all others and the group.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub(super) fn inferred(&self, control: &Control) -> Result<(u64, Vec<InferredRows>), Cancelled> {
        self.inferred_by(PIECE_TUPLES, control)
    }

    fn inferred_by(&self, piece: usize, control: &Control) -> Result<(u64, Vec<InferredRows>), Cancelled> {
        let mut order: Vec<usize> = (0..self.columns.len()).collect();
        // the highest bits part the tuples; groups have them where there are some
        let highest = if self.groups.is_some() { None } else { self.parting_column() };
        if let Some(column) = highest {
            order[column..].rotate_left(1);
        }
        let (tuples, fields) = self.tuples(&order, control)?;
        let unique = tuples.unique();
        let mut found = tuples.inferred(&fields, piece, control)?;
        if let Some(column) = highest {
            found[column..].rotate_right(1);
        }
        Ok((unique, found))
    }

    /// The column whose most frequent value has the fewest rows.
    fn parting_column(&self) -> Option<usize> {
        // an odd step meets the rows of tables that repeat themselves
        let step = (self.rows / SAMPLED_ROWS) | 1;
        let most = |column: &usize| {
            let codes = &self.columns[*column].codes;
            let mut sampled: Vec<u32> = (0..self.rows).step_by(step).map(|row| codes.get(row)).collect();
            sampled.sort_unstable();
            sampled.chunk_by(|one, next| one == next).map(<[u32]>::len).max()
        };
        (0..self.columns.len()).min_by_key(most)
    }

    /// The distinct tuples, and where words hold the columns of `order`, of which the first has the lowest bits.
    fn tuples(&self, order: &[usize], control: &Control) -> Result<(CountedTuples, Vec<WordField>), Cancelled> {
        let mut fields = Vec::with_capacity(order.len());
        let mut end = 0;
        for &column in order {
            fields.push(WordField { shift: end, bits: bits(self.columns[column].domain.len()) });
            end += fields.last().map_or(0, |field: &WordField| field.bits);
        }
        let of_group = WordField { shift: end, bits: self.group_bits() };
        let mut words = vec![0; self.rows];
        words.par_chunks_mut(Control::STRIDE).enumerate().try_for_each(|(at, words)| {
            control.check()?;
            let rows = at * Control::STRIDE..at * Control::STRIDE + words.len();
            // a fresh page that is read before it is written is made twice, and other processors wait for it
            words.fill(0);
            for (&column, &field) in order.iter().zip(&fields) {
                with_codes!(&self.columns[column].codes, codes => write(words, &codes[rows.clone()], field));
            }
            if let Some(groups) = self.groups {
                write(words, &groups.of_row()[rows], of_group);
            }
            Ok(())
        })?;
        // in place: the words of all rows are the largest list of a verification
        words.sort_unstable();
        Ok((CountedTuples::new(words, self.used()), fields))
    }
}

/// Writes codes into the words of their rows.
fn write<T: Copy + Into<u64>>(words: &mut [u64], codes: &[T], field: WordField) {
    // no shift is too large for a field with bits
    if field.bits > 0 {
        words.iter_mut().zip(codes).for_each(|(word, &code)| *word |= code.into() << field.shift);
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
