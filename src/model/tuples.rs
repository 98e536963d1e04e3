//! Tuples of few bits as words, which are sorted digit by digit where a hash table would miss the caches.

use rayon::prelude::*;

use super::groups::RowGroups;
use crate::control::{Cancelled, Control};
use crate::microdata::Column;
use crate::with_codes;

/// Bits by which one pass sorts.
const DIGIT_BITS: u32 = 11;

/// Where a word holds the codes of a column.
#[derive(Clone, Copy)]
struct WordField {
    shift: u32,
    bits: u32,
}

impl WordField {
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

/// The rows of a group that agree in all columns but one.
#[derive(Clone, Copy, Default)]
pub(super) struct AgreeingRows {
    /// The rows.
    pub(super) rows: u32,
    /// Those with the most frequent value of the one column.
    pub(super) most: u32,
}

/// The distinct tuples of groups of rows by some columns. The first column has the lowest bits of a word, the group the highest.
pub(super) struct PackedTuples {
    fields: Vec<WordField>,
    tuples: CountedTuples,
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
        Self::Narrow { words, row_bits }
    }
}

/// A tuple of [`CountedTuples::Narrow`].
const fn unpacked(word: u64, row_bits: u32) -> CountedTuple {
    CountedTuple { word: word >> row_bits, rows: (word & ((1 << row_bits) - 1)) as u32 }
}

impl PackedTuples {
    /// The tuples of `columns` in each of `groups`; `None` where a word does not hold them.
    pub(super) fn new(groups: &RowGroups, columns: &[&Column], control: &Control) -> Result<Option<Self>, Cancelled> {
        let mut fields = Vec::with_capacity(columns.len());
        let mut shift = 0;
        for column in columns {
            let bits = bits(column.domain.len());
            fields.push(WordField { shift, bits });
            shift += bits;
        }
        let used = shift + bits(groups.sizes().len());
        if used > u64::BITS {
            return Ok(None);
        }
        // the groups take no bits where there is one, and no shift can be too large then
        let mut words = vec![0; groups.of_row().len()];
        words
            .par_chunks_mut(Control::STRIDE)
            .zip(groups.of_row().par_chunks(Control::STRIDE))
            .enumerate()
            .try_for_each(|(at, (words, groups))| {
                control.check()?;
                words.iter_mut().zip(groups).for_each(|(word, &group)| *word = u64::from(group).unbounded_shl(shift));
                let rows = at * Control::STRIDE..at * Control::STRIDE + words.len();
                for (column, field) in columns.iter().zip(&fields).filter(|(_, field)| field.bits > 0) {
                    with_codes!(&column.codes, codes => {
                        let codes = &codes[rows.clone()];
                        words.iter_mut().zip(codes).for_each(|(word, &code)| *word |= u64::from(code) << field.shift);
                    });
                }
                Ok(())
            })?;
        sort_by_field(&mut words, WordField { shift: 0, bits: used }, |word| *word, control)?;
        Ok(Some(Self { fields, tuples: CountedTuples::new(words, used) }))
    }

    /// Number of tuples that one row has.
    pub(super) fn unique(&self) -> u64 {
        let unique = match &self.tuples {
            CountedTuples::Narrow { words, row_bits } => {
                words.iter().filter(|word| unpacked(**word, *row_bits).rows == 1).count()
            }
            CountedTuples::Wide(tuples) => tuples.iter().filter(|tuple| tuple.rows == 1).count(),
        };
        unique as u64
    }

    /// For each column in turn, calls `look` with its index and with each group of rows that agree in all others.
    pub(super) fn each_column(self, control: &Control, look: impl FnMut(usize, AgreeingRows)) -> Result<(), Cancelled> {
        match self.tuples {
            CountedTuples::Narrow { words, row_bits } => {
                columns_in_turn(words, &self.fields, |word| unpacked(*word, row_bits), control, look)
            }
            CountedTuples::Wide(tuples) => columns_in_turn(tuples, &self.fields, |tuple| *tuple, control, look),
        }
    }
}

/// A column whose bits decide last has the rows that agree in all others side by side. A stable sort by it makes it decide first,
/// and the next one last, so that one pass over the tuples turns from a column to the next.
fn columns_in_turn<T: Copy + Default>(
    mut tuples: Vec<T>,
    fields: &[WordField],
    counted: impl Fn(&T) -> CountedTuple,
    control: &Control,
    mut look: impl FnMut(usize, AgreeingRows),
) -> Result<(), Cancelled> {
    for (at, &field) in fields.iter().enumerate() {
        let others = !field.mask();
        for run in tuples.chunk_by(|one, next| counted(one).word & others == counted(next).word & others) {
            let agree = |sum: AgreeingRows, tuple: &T| {
                let rows = counted(tuple).rows;
                AgreeingRows { rows: sum.rows + rows, most: sum.most.max(rows) }
            };
            look(at, run.iter().fold(AgreeingRows::default(), agree));
        }
        if at + 1 < fields.len() {
            sort_by_field(&mut tuples, field, |tuple| counted(tuple).word, control)?;
        }
    }
    Ok(())
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
    use crate::microdata::Attr;

    /// Of each group of rows that agree in all columns but one, their number and that of the most frequent value; by definition.
    fn agreeing(table: &crate::microdata::Table, columns: &[Attr], one: usize) -> Vec<(u32, u32)> {
        let mut groups = std::collections::BTreeMap::<Vec<u32>, std::collections::BTreeMap<u32, u32>>::new();
        for row in 0..table.rows() {
            let code = |attr: Attr| table.column(attr).codes.get(row);
            let others = columns.iter().enumerate().filter(|(at, _)| *at != one).map(|(_, attr)| code(*attr));
            *groups.entry(others.collect()).or_default().entry(code(columns[one])).or_default() += 1;
        }
        let mut found: Vec<(u32, u32)> =
            groups.values().map(|values| (values.values().sum(), *values.values().max().unwrap())).collect();
        found.sort_unstable();
        found
    }

    proptest! {
        #[test]
        fn tuples_of_words_agree_as_their_cells_do(
            values in prop::collection::vec(prop::sample::select(vec![1u32, 2, 3, 300, 70_000]), 5),
            rows in prop::collection::vec(prop::collection::vec(prop_oneof![4 => 0u32..3, 1 => any::<u32>()], 5), 0..60),
            grouped in 0usize..3,
        ) {
            let (table, control) = (table(&values, &rows), Control::default());
            let columns: Vec<Attr> = (0..5).map(Attr).collect();
            let all: Vec<&Column> = columns.iter().map(|attr| table.column(*attr)).collect();
            let groups = RowGroups::whole(rows.len()).refined(&all[..grouped], &control).unwrap();
            let bits: u32 = all[grouped..].iter().map(|column| bits(column.domain.len())).sum();
            let packed = PackedTuples::new(&groups, &all[grouped..], &control).unwrap();
            prop_assert_eq!(packed.is_some(), bits + super::bits(groups.sizes().len()) <= 64);
            let Some(packed) = packed else { return Ok(()) };
            let whole = RowGroups::whole(rows.len()).refined(&all, &control).unwrap();
            prop_assert_eq!(packed.unique(), whole.sizes().iter().filter(|size| **size == 1).count() as u64);
            let mut found = vec![Vec::new(); all.len()];
            packed.each_column(&control, |at, agree| found[grouped + at].push((agree.rows, agree.most))).unwrap();
            for (at, found) in found.iter_mut().enumerate().skip(grouped) {
                found.sort_unstable();
                prop_assert_eq!(&*found, &agreeing(&table, &columns, at));
            }
        }
    }
}
