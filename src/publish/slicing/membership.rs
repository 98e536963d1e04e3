//! How well a sliced table hides who is in it: the tuples it might hold, by how many buckets they match (slicing, section 5).
//! Counted against the original, so for whoever may see that.

use std::collections::BTreeMap;

use super::keys::{self, pairs};
use super::{Groups, Sliced, keys_of};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Table};

/// Tuples that match some bucket in every column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Membership {
    /// How many distinct tuples match so many buckets.
    pub tuples: BTreeMap<u32, u64>,
    /// How many rows of the table match so many buckets.
    pub rows: BTreeMap<u32, u64>,
    /// How many distinct tuples the table has.
    pub originals: u64,
}

impl Membership {
    /// Tuples that match and are not in the table.
    #[must_use]
    pub fn fake(&self) -> u64 {
        self.tuples.values().sum::<u64>() - self.originals
    }

    /// Counts tuples of all attributes, or, unless `whole`, of those but the sensitive one; `None` when there are too many to
    /// look at in `limit` steps.
    ///
    /// # Errors
    /// [`Cancelled`] when told to stop.
    pub fn of(
        table: &Table,
        sliced: &Sliced,
        sensitive: Attr,
        whole: bool,
        limit: u64,
        control: &Control,
    ) -> Result<Option<Self>, Cancelled> {
        let keys = keys_of(table, &sliced.columns, &sliced.boxes, sensitive, control)?;
        let (mut columns, mut last) = (keys.others, keys.beside);
        if whole {
            last = pairs(&last, &keys::together(table, AttrSet::one(sensitive), control)?, control)?;
        }
        columns.push(last);
        let mut distinct = columns[0].clone();
        for column in &columns[1..] {
            distinct = pairs(&distinct, column, control)?;
        }
        // numbers of pairs have no gaps, those of a single column's codes have none either
        let originals = u64::from(distinct.count);
        columns.sort_by_key(|column| column.count);
        let masks: Vec<Masks> = columns.iter().map(|column| Masks::of(column, sliced)).collect();
        let mut rows = BTreeMap::new();
        let mut mask = vec![0; masks[0].words];
        for row in 0..table.rows() {
            if row % Control::STRIDE == 0 {
                control.check()?;
            }
            mask.fill(u64::MAX);
            for (column, masks) in columns.iter().zip(&masks) {
                let with = masks.get(column.of_row[row] as usize);
                mask.iter_mut().zip(with).for_each(|(mask, with)| *mask &= with);
            }
            *rows.entry(ones(&mask)).or_default() += 1;
        }
        let mut search = Search { tuples: BTreeMap::new(), steps: limit, control };
        mask.fill(u64::MAX);
        let done = search.extend(&mask, &masks)?;
        Ok(done.then_some(Self { tuples: search.tuples, rows, originals }))
    }
}

fn ones(mask: &[u64]) -> u32 {
    mask.iter().map(|word| word.count_ones()).sum()
}

/// Per value of a column the buckets that it occurs in, a bit each.
struct Masks {
    bits: Vec<u64>,
    words: usize,
}

impl Masks {
    fn of(column: &Groups, sliced: &Sliced) -> Self {
        let words = (sliced.buckets.buckets as usize).div_ceil(64);
        let mut bits = vec![0; words * column.count as usize];
        for (&value, &bucket) in column.of_row.iter().zip(&sliced.buckets.bucket_of) {
            bits[value as usize * words + bucket as usize / 64] |= 1 << (bucket % 64);
        }
        Self { bits, words }
    }

    fn get(&self, value: usize) -> &[u64] {
        &self.bits[value * self.words..][..self.words]
    }
}

/// Depth first over the columns: every tuple is met once, and what matches no bucket any more is left.
struct Search<'a> {
    tuples: BTreeMap<u32, u64>,
    steps: u64,
    control: &'a Control,
}

impl Search<'_> {
    /// Counts all ways to go on from tuples that match the buckets of `mask`; false when steps run out.
    fn extend(&mut self, mask: &[u64], columns: &[Masks]) -> Result<bool, Cancelled> {
        let Some((column, further)) = columns.split_first() else {
            *self.tuples.entry(ones(mask)).or_default() += 1;
            return Ok(true);
        };
        self.control.check()?;
        let values = column.bits.len() / column.words.max(1);
        let Some(left) = self.steps.checked_sub((values * column.words) as u64) else { return Ok(false) };
        self.steps = left;
        let mut narrowed = vec![0; column.words];
        for value in 0..values {
            let with = column.get(value);
            narrowed.iter_mut().zip(mask.iter().zip(with)).for_each(|(to, (a, b))| *to = a & b);
            if narrowed.iter().any(|word| *word > 0) && !self.extend(&narrowed, further)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
