//! How often values of some attributes stand together in a bucket.

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Codes, Table};
use crate::publish::partition::Groups;
use crate::publish::slicing::keys;

/// Attributes whose values are counted together in every bucket: a column, or what several columns share.
struct Margin {
    attributes: AttrSet,
    /// The values of all of them but the sensitive one.
    values: Groups,
    /// A row with each of these.
    rows: Vec<u32>,
}

/// All that is counted of a table.
pub(super) struct Margins<'a> {
    table: &'a Table,
    sensitive: Attr,
    all: Vec<Margin>,
}

/// The counts of a bucket, margin by margin.
pub(super) type Counts = Vec<Counted>;

/// The counts of a margin in a bucket.
#[derive(Default)]
pub(super) struct Counted {
    /// The values that occur, rising, each with the end of its list.
    values: Vec<(u32, u32)>,
    /// Per value: the sensitive values that stand beside it, rising, each with how many rows have both; where the margin has not the
    /// sensitive attribute, one entry for all.
    beside: Vec<(u32, u32)>,
}

impl<'a> Margins<'a> {
    pub(super) const fn of(table: &'a Table, sensitive: Attr) -> Self {
        Self { table, sensitive, all: Vec::new() }
    }

    /// The margin of some attributes, by its number.
    pub(super) fn add(&mut self, attributes: AttrSet, control: &Control) -> Result<usize, Cancelled> {
        if let Some(known) = self.all.iter().position(|margin| margin.attributes == attributes) {
            return Ok(known);
        }
        let values = keys::together(self.table, attributes.without(self.sensitive), control)?;
        let rows = Margin::rows_of(&values);
        self.all.push(Margin { attributes, values, rows });
        Ok(self.all.len() - 1)
    }

    pub(super) fn attributes(&self, margin: usize) -> AttrSet {
        self.all[margin].attributes
    }

    /// What a row has of a margin, the sensitive attribute apart.
    pub(super) fn value(&self, margin: usize, row: u32) -> u32 {
        self.all[margin].values.of_row[row as usize]
    }

    /// For each value of a margin what it has of a narrower one.
    pub(super) fn within(&self, margin: usize, narrower: usize) -> Vec<u32> {
        self.all[margin].rows.iter().map(|&row| self.value(narrower, row)).collect()
    }

    /// The code of an attribute, in a value of a margin that stands beside a sensitive one.
    pub(super) fn code(&self, margin: usize, (value, sensitive): (u32, u32), attr: Attr) -> u32 {
        match attr == self.sensitive {
            true => sensitive,
            false => self.table.column(attr).codes.get(self.all[margin].rows[value as usize] as usize),
        }
    }

    /// How many rows of a bucket have what a row has of a margin, and the sensitive value where that is in it.
    pub(super) fn rows_with(&self, margin: usize, counted: &Counted, row: u32, sensitive: u32) -> u32 {
        let with = self.all[margin].attributes.contains(self.sensitive);
        rows_of(counted.beside(self.value(margin, row)), if with { sensitive } else { 0 })
    }

    /// How many rows the table has.
    pub(super) fn rows(&self) -> usize {
        self.table.rows()
    }

    /// A row for each combination of some attributes, the sensitive one apart.
    pub(super) fn representatives(&self, attributes: AttrSet, control: &Control) -> Result<Vec<u32>, Cancelled> {
        let groups = keys::together(self.table, attributes.without(self.sensitive), control)?;
        Ok(Margin::rows_of(&groups))
    }

    /// Counts the rows of a bucket.
    pub(super) fn count(&self, rows: &[u32]) -> Counts {
        let codes = &self.table.column(self.sensitive).codes;
        self.all.iter().map(|margin| margin.count(rows, codes, margin.attributes.contains(self.sensitive))).collect()
    }
}

impl Margin {
    /// A row with each value.
    fn rows_of(values: &Groups) -> Vec<u32> {
        let mut rows = vec![0; values.count as usize];
        (0..).zip(&values.of_row).for_each(|(row, &value)| rows[value as usize] = row);
        rows
    }

    fn count(&self, rows: &[u32], codes: &Codes, with_sensitive: bool) -> Counted {
        let key = |&row: &u32| {
            let sensitive = if with_sensitive { codes.get(row as usize) } else { 0 };
            u64::from(self.values.of_row[row as usize]) << 32 | u64::from(sensitive)
        };
        let mut keys: Vec<u64> = rows.iter().map(key).collect();
        keys.sort_unstable();
        let mut counted = Counted::default();
        for run in keys.chunk_by(|a, b| a == b) {
            let (value, sensitive) = ((run[0] >> 32) as u32, run[0] as u32);
            counted.beside.push((sensitive, run.len() as u32));
            let end = counted.beside.len() as u32;
            match counted.values.last_mut() {
                Some((last, ends)) if *last == value => *ends = end,
                _ => counted.values.push((value, end)),
            }
        }
        counted
    }
}

impl Counted {
    /// How many values occur.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// A value that occurs, by its place among them, and what stands beside it.
    pub(super) fn at(&self, place: usize) -> (u32, &[(u32, u32)]) {
        let begin = place.checked_sub(1).map_or(0, |before| self.values[before].1);
        let (value, end) = self.values[place];
        (value, &self.beside[begin as usize..end as usize])
    }

    /// What stands beside a value; nothing where it does not occur.
    pub(super) fn beside(&self, value: u32) -> &[(u32, u32)] {
        match self.values.binary_search_by_key(&value, |(value, _)| *value) {
            Ok(place) => self.at(place).1,
            Err(_) => &[],
        }
    }

    /// How many rows have a value, of a margin without the sensitive attribute.
    pub(super) fn rows(&self, value: u32) -> u32 {
        self.beside(value).first().map_or(0, |(_, rows)| *rows)
    }
}

/// How many rows have a sensitive value, of what stands beside some value.
pub(super) fn rows_of(beside: &[(u32, u32)], sensitive: u32) -> u32 {
    beside.binary_search_by_key(&sensitive, |(of, _)| *of).map_or(0, |at| beside[at].1)
}
