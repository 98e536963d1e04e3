//! Canonical order: rows by bucket label, then by the attributes from left to right.
//!
//! Codes are ranks, so that comparing codes compares values. Tuples whose codes fit a word are sorted as words and unpacked
//! again. Memory is read at random only once, by label.

use rayon::prelude::*;

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, Codes, Column, Table};
use crate::with_codes;

/// Rows of each label.
pub(super) struct BucketRows<'a> {
    labels: &'a [u32],
    /// Start of the rows of each label when grouped, label 1 first, and the end of the last one.
    starts: Vec<usize>,
}

impl<'a> BucketRows<'a> {
    /// Groups of rows by `labels`, each in `1..=groups`, or 0 for a suppressed row.
    pub(super) fn new(labels: &'a [u32], groups: u32) -> Self {
        let mut starts = vec![0; groups as usize + 1];
        for &label in labels {
            starts[label as usize] += 1;
        }
        starts[0] = 0;
        for group in 1..starts.len() {
            starts[group] += starts[group - 1];
        }
        Self { labels, starts }
    }

    /// Label of each row.
    pub(super) const fn labels(&self) -> &'a [u32] {
        self.labels
    }

    /// Number of labels.
    pub(super) const fn groups(&self) -> u32 {
        (self.starts.len() - 1) as u32
    }

    /// Number of rows of each label, label 1 first.
    pub(super) fn sizes(&self) -> impl Iterator<Item = usize> {
        self.starts.windows(2).map(|group| group[1] - group[0])
    }

    /// One item per row, grouped by label.
    fn gathered<T: Copy + Default>(&self, items: &[T], control: &Control) -> Result<Vec<T>, Cancelled> {
        let mut together = vec![T::default(); self.starts.last().copied().unwrap_or(0)];
        let mut next = self.starts.clone();
        for (items, labels) in items.chunks(Control::STRIDE).zip(self.labels.chunks(Control::STRIDE)) {
            control.check()?;
            for (&item, &label) in items.iter().zip(labels).filter(|(_, label)| **label > 0) {
                let place = &mut next[label as usize - 1];
                together[*place] = item;
                *place += 1;
            }
        }
        Ok(together)
    }
}

/// The columns of `attrs` with their rows in canonical order, within each group if there are groups.
pub(super) fn arranged(
    table: &Table,
    attrs: &[Attr],
    groups: Option<&BucketRows<'_>>,
    control: &Control,
) -> Result<Vec<Column>, Cancelled> {
    let columns: Vec<&Column> = attrs.iter().map(|&attr| table.column(attr)).collect();
    match columns.iter().map(|column| width(column)).sum() {
        0..=8 => as_words::<u8>(table.rows(), &columns, groups, control),
        9..=16 => as_words::<u16>(table.rows(), &columns, groups, control),
        17..=32 => as_words::<u32>(table.rows(), &columns, groups, control),
        33..=64 => as_words::<u64>(table.rows(), &columns, groups, control),
        65..=128 => as_words::<u128>(table.rows(), &columns, groups, control),
        _ => as_rows(table.rows(), &columns, groups, control),
    }
}

/// Number of bits of a code of the column.
fn width(column: &Column) -> u32 {
    column.domain.len().saturating_sub(1).checked_ilog2().map_or(0, |highest| highest + 1)
}

/// A word that holds the codes of a tuple, the first attribute in the highest bits.
trait PackedTuple: Copy + Ord + Default + Send + Sync {
    fn append(self, width: u32, code: impl Into<u32>) -> Self;
    fn code(self, shift: u32, width: u32) -> u32;
}

macro_rules! words {
    ($($word:ty),*) => {$(
        impl PackedTuple for $word {
            #[inline]
            fn append(self, width: u32, code: impl Into<u32>) -> Self {
                // only the first code may be as wide as the word
                self.checked_shl(width).unwrap_or(0) | code.into() as Self
            }

            #[inline]
            fn code(self, shift: u32, width: u32) -> u32 {
                (self >> shift) as u32 & (u32::MAX >> (u32::BITS - width))
            }
        }
    )*};
}
words!(u8, u16, u32, u64, u128);

/// Tuples of `columns` as words.
fn packed<W: PackedTuple>(rows: usize, columns: &[&Column], control: &Control) -> Result<Vec<W>, Cancelled> {
    let mut words = vec![W::default(); rows];
    words.par_chunks_mut(Control::STRIDE).enumerate().try_for_each(|(at, words)| {
        control.check()?;
        let rows = at * Control::STRIDE..at * Control::STRIDE + words.len();
        // a fresh page that is read before it is written is made twice, and other processors wait for it
        words.fill(W::default());
        for column in columns.iter().filter(|column| width(column) > 0) {
            let width = width(column);
            with_codes!(&column.codes, codes => {
                let codes = &codes[rows.clone()];
                words.iter_mut().zip(codes).for_each(|(word, &code)| *word = word.append(width, code));
            });
        }
        Ok(())
    })?;
    Ok(words)
}

fn as_words<W: PackedTuple>(
    rows: usize,
    columns: &[&Column],
    groups: Option<&BucketRows<'_>>,
    control: &Control,
) -> Result<Vec<Column>, Cancelled> {
    let words = packed::<W>(rows, columns, control)?;
    let words = sorted(words, groups, control, <[W]>::sort_unstable)?;
    let mut shift = columns.iter().map(|column| width(column)).sum::<u32>();
    let placed: Vec<(&Column, u32)> = columns
        .iter()
        .map(|&column| {
            shift -= width(column);
            (column, shift)
        })
        .collect();
    let taken = placed.into_par_iter().map(|(column, shift)| {
        control.check()?;
        let width = width(column);
        let code = |word: &W| if width == 0 { 0 } else { word.code(shift, width) };
        let codes = Codes::collect(column.domain.len(), words.iter().map(code));
        Ok(Column { domain: column.domain.clone(), codes })
    });
    taken.collect()
}

/// Sorts row numbers of tuples that no word holds: by as many first attributes as a word holds, then by the others.
fn as_rows(
    rows: usize,
    columns: &[&Column],
    groups: Option<&BucketRows<'_>>,
    control: &Control,
) -> Result<Vec<Column>, Cancelled> {
    let mut bits = 0;
    let fits = |column: &&&Column| {
        bits += width(column);
        bits <= u128::BITS
    };
    let (first, others) = columns.split_at(columns.iter().take_while(fits).count());
    let keys = packed::<u128>(rows, first, control)?;
    let keyed = keys.iter().zip(0..rows as u32).map(|(&key, row)| (key, row)).collect();
    drop(keys);
    let codes = |row: u32| others.iter().map(move |column| column.codes.get(row as usize));
    let keyed = sorted(keyed, groups, control, |keyed| {
        keyed.sort_unstable_by(|&(a, row_a), &(b, row_b)| a.cmp(&b).then_with(|| codes(row_a).cmp(codes(row_b))));
    })?;
    let order: Vec<u32> = keyed.into_iter().map(|(_, row)| row).collect();
    let gathered = columns.par_iter().map(|column| {
        control.check()?;
        Ok(Column { domain: column.domain.clone(), codes: column.codes.gather(&order) })
    });
    gathered.collect()
}

/// Items of the rows, sorted by `sort` group by group.
fn sorted<T: Copy + Default + Send>(
    items: Vec<T>,
    groups: Option<&BucketRows<'_>>,
    control: &Control,
    sort: impl Fn(&mut [T]) + Sync,
) -> Result<Vec<T>, Cancelled> {
    let rows = items.len() as u64;
    let Some(groups) = groups else {
        let mut items = items;
        sort(&mut items);
        control.advance(rows)?;
        return Ok(items);
    };
    let mut together = groups.gathered(&items, control)?;
    drop(items);
    // suppressed rows are done
    control.advance(rows - together.len() as u64)?;
    sort_groups(&mut together, &groups.starts, &sort, control)?;
    Ok(together)
}

/// Sorts the items of each group, given where each group begins and where the last one ends.
fn sort_groups<T: Send, F: Fn(&mut [T]) + Sync>(
    items: &mut [T],
    starts: &[usize],
    sort: &F,
    control: &Control,
) -> Result<(), Cancelled> {
    let groups = starts.len() - 1;
    if items.len() > Control::STRIDE && groups > 1 {
        let middle = groups / 2;
        let (first, second) = items.split_at_mut(starts[middle] - starts[0]);
        let (first, second) = rayon::join(
            || sort_groups(first, &starts[..=middle], sort, control),
            || sort_groups(second, &starts[middle..], sort, control),
        );
        return first.and(second);
    }
    for group in starts.windows(2) {
        sort(&mut items[group[0] - starts[0]..group[1] - starts[0]]);
    }
    control.advance(items.len() as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::microdata::{Arena, AttributeType, Codes, Domain};

    /// This number of columns, each of `len` values.
    fn table(columns: usize, len: usize, rows: &[Vec<u32>]) -> Table {
        let mut arena = Arena::default();
        (0..len).for_each(|value| arena.push(format!("{value:05}").as_bytes()));
        let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
        let codes = |index: usize| Codes::collect(len, rows.iter().map(move |row| row[index] % len as u32));
        let columns = (0..columns).map(|index| Column { domain: Arc::clone(&domain), codes: codes(index) });
        let columns: Vec<Column> = columns.collect();
        Table::new((0..columns.len()).map(|i| format!("a{i}")).collect(), columns)
    }

    proptest! {
        #[test]
        fn the_order_is_by_label_and_then_left_to_right(
            columns in 1usize..10,
            len in prop::sample::select(vec![1usize, 3, 300, 70_000]),
            rows in prop::collection::vec(prop::collection::vec(prop_oneof![3 => 0u32..2, 1 => any::<u32>()], 10), 0..60),
            groups in 1u32..9,
        ) {
            // one narrow attribute fits 8 bits, more fit 16 to 128, many none
            let table = table(columns, len, &rows);
            let attrs: Vec<Attr> = table.attributes().iter().collect();
            let labels: Vec<u32> = rows.iter().map(|row| row[9] % groups + 1).collect();
            let tuples = |label: &dyn Fn(usize) -> u32, columns: &[&Column]| -> Vec<(u32, Vec<u32>)> {
                (0..rows.len()).map(|row| (label(row), columns.iter().map(|c| c.codes.get(row)).collect())).collect()
            };
            let columns: Vec<&Column> = attrs.iter().map(|&a| table.column(a)).collect();
            let by_label = BucketRows::new(&labels, groups);
            let runs: Vec<u32> = (1..).zip(by_label.sizes()).flat_map(|(l, n)| std::iter::repeat_n(l, n)).collect();
            for grouped in [true, false] {
                let arranged = arranged(&table, &attrs, grouped.then_some(&by_label), &Control::default()).unwrap();
                let found = tuples(&|row| if grouped { runs[row] } else { 0 }, &arranged.iter().collect::<Vec<_>>());
                let mut expected = tuples(&|row| if grouped { labels[row] } else { 0 }, &columns);
                expected.sort_unstable();
                prop_assert_eq!(found, expected);
                prop_assert!(arranged.iter().zip(&columns).all(|(a, b)| Arc::ptr_eq(&a.domain, &b.domain)));
            }
        }
    }
}
