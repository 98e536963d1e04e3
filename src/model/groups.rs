//! Rows with equal values, numbered by group.

use std::collections::HashMap;

use ahash::RandomState;

use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Column, Table};
use crate::with_codes;

/// Largest numbers of keys, absolute and per row, for which a direct table replaces a hash table.
const FEW_KEYS: u64 = 1 << 16;
const KEYS_PER_ROW: u64 = 32;

/// Rows of a table, grouped by their values of some attributes. Groups are numbered in the order of their first rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowGroups {
    of_row: Vec<u32>,
    sizes: Vec<u32>,
}

impl RowGroups {
    /// All rows in one group.
    #[must_use]
    pub fn whole(rows: usize) -> Self {
        Self { of_row: vec![0; rows], sizes: if rows == 0 { Vec::new() } else { vec![rows as u32] } }
    }

    /// The rows of `table` by their values of `attributes`.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn new(table: &Table, attributes: AttrSet, control: &Control) -> Result<Self, Cancelled> {
        let columns: Vec<&Column> = attributes.iter().map(|attr| table.column(attr)).collect();
        Self::whole(table.rows()).refined(&columns, control)
    }

    /// The groups, divided by the values of more columns.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn refined(&self, columns: &[&Column], control: &Control) -> Result<Self, Cancelled> {
        let mut rest = columns;
        let mut found = None;
        loop {
            let groups = found.as_ref().unwrap_or(self);
            // as many columns at once as a word holds
            let mut keys = groups.sizes.len().max(1) as u64;
            let taken = rest.iter().take_while(|column| {
                let more = keys.checked_mul(column.domain.len().max(1) as u64);
                more.inspect(|&more| keys = more).is_some()
            });
            let (now, later) = rest.split_at(taken.count());
            if now.is_empty() || groups.are_rows() {
                return Ok(found.unwrap_or_else(|| self.clone()));
            }
            found = Some(groups.split(now, keys, control)?);
            rest = later;
        }
    }

    fn split(&self, columns: &[&Column], keys: u64, control: &Control) -> Result<Self, Cancelled> {
        let mut words: Vec<u64> = self.of_row.iter().map(|&group| u64::from(group)).collect();
        for column in columns {
            let values = column.domain.len() as u64;
            with_codes!(&column.codes, codes => for (words, codes) in words.chunks_mut(Control::STRIDE).zip(codes.chunks(Control::STRIDE)) {
                control.check()?;
                words.iter_mut().zip(codes).for_each(|(word, &code)| *word = *word * values + u64::from(code));
            });
        }
        let mut sizes = Vec::new();
        let mut of_row = Vec::with_capacity(words.len());
        if keys <= FEW_KEYS.max(KEYS_PER_ROW * words.len() as u64) {
            // 0: no group yet
            let mut place = vec![0u32; keys as usize];
            for words in words.chunks(Control::STRIDE) {
                control.check()?;
                of_row.extend(words.iter().map(|&word| numbered(&mut place[word as usize], &mut sizes)));
            }
        } else {
            // the order of the hash table does not matter: groups are numbered by first rows. Its hash is drawn, so that no table makes
            // its words collide
            let mut place: HashMap<u64, u32, RandomState> = HashMap::with_hasher(RandomState::new());
            place.reserve(self.sizes.len());
            for words in words.chunks(Control::STRIDE) {
                control.check()?;
                of_row.extend(words.iter().map(|&word| numbered(place.entry(word).or_default(), &mut sizes)));
            }
        }
        Ok(Self { of_row, sizes })
    }

    /// Group of each row.
    #[must_use]
    pub fn of_row(&self) -> &[u32] {
        &self.of_row
    }

    /// Number of rows of each group.
    #[must_use]
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Whether every row is a group of its own.
    #[must_use]
    pub fn are_rows(&self) -> bool {
        self.sizes.len() == self.of_row.len()
    }
}

/// The group of a slot, one row larger, or a new one. Slots count from 1.
fn numbered(place: &mut u32, sizes: &mut Vec<u32>) -> u32 {
    if *place == 0 {
        sizes.push(0);
        *place = sizes.len() as u32;
    }
    sizes[*place as usize - 1] += 1;
    *place - 1
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::microdata::{Arena, Attr, AttributeType, Codes, Domain};

    /// A table of columns, given the number of values of each; the rows name some.
    pub(in super::super) fn table(values: &[u32], rows: &[Vec<u32>]) -> Table {
        let column = |at: usize| {
            let mut arena = Arena::default();
            (0..values[at]).for_each(|value| arena.push(format!("{value:06}").as_bytes()));
            let codes = rows.iter().map(|row| row[at] % values[at]);
            Column {
                domain: Arc::new(Domain::from_sorted(AttributeType::Text, false, arena)),
                codes: Codes::collect(values[at] as usize, codes.collect::<Vec<_>>().into_iter()),
            }
        };
        Table::new((0..values.len()).map(|at| format!("a{at}")).collect(), (0..values.len()).map(column).collect())
    }

    proptest! {
        #[test]
        fn rows_are_in_one_group_when_their_values_are_equal(
            values in prop::collection::vec(prop::sample::select(vec![1u32, 2, 3, 300, 1000]), 9),
            rows in prop::collection::vec(prop::collection::vec(prop_oneof![4 => 0u32..3, 1 => any::<u32>()], 9), 0..50),
            chosen in any::<u16>(),
        ) {
            let table = table(&values, &rows);
            let chosen: AttrSet = (0..9).filter(|at| chosen >> at & 1 == 1).map(|at| Attr(at as u8)).collect();
            let groups = RowGroups::new(&table, chosen, &Control::default()).unwrap();
            let mut numbers = BTreeMap::new();
            let mut sizes: Vec<u32> = Vec::new();
            for (row, &group) in groups.of_row().iter().enumerate() {
                let tuple: Vec<u32> = chosen.iter().map(|attr| table.column(attr).codes.get(row)).collect();
                let next = numbers.len() as u32;
                let number = *numbers.entry(tuple).or_insert(next);
                prop_assert_eq!(number, group);
                sizes.resize(numbers.len(), 0);
                sizes[number as usize] += 1;
            }
            prop_assert_eq!(&sizes, groups.sizes());
            prop_assert_eq!(groups.are_rows(), sizes.len() == rows.len());
            // in two steps as in one
            let (first, later) = (chosen.iter().take(2).collect::<AttrSet>(), chosen.iter().skip(2));
            let columns: Vec<&Column> = later.map(|attr| table.column(attr)).collect();
            let control = Control::default();
            prop_assert_eq!(RowGroups::new(&table, first, &control).unwrap().refined(&columns, &control).unwrap(), groups);
        }
    }
}
