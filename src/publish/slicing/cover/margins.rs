//! Margins: frequencies of the combined values of some attributes in a bucket.

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Table};
use crate::publish::partition::TallyGroups;
use crate::publish::slicing::keys;

/// Attributes whose values are counted together: a column, or the attributes that several columns share.
struct MarginAttributes {
    attributes: AttrSet,
    /// Value of each row, the sensitive attribute apart.
    values: TallyGroups,
    /// One row with each value.
    rows: Vec<u32>,
}

/// All margins of a table.
pub(super) struct BucketMargins<'a> {
    table: &'a Table,
    sensitive: Attr,
    all: Vec<MarginAttributes>,
    max_combinations: u64,
}

/// Counts of a bucket, by margin.
pub(super) type MarginCounts = Vec<MarginCount>;

/// Counts of one margin in a bucket.
#[derive(Default)]
pub(super) struct MarginCount {
    /// Occurring values, rising, each with the end of its list.
    values: Vec<(u32, u32)>,
    /// For each value, its sensitive values, rising, with the number of rows that have both.
    ///
    /// A margin without the sensitive attribute has one entry for all of them.
    paired: Vec<(u32, u32)>,
}

impl<'a> BucketMargins<'a> {
    pub(super) const fn new(table: &'a Table, sensitive: Attr, max_combinations: u64) -> Self {
        Self { table, sensitive, all: Vec::new(), max_combinations }
    }

    /// Largest number of combinations of rows that are examined in a bucket.
    pub(super) const fn max_combinations(&self) -> u64 {
        self.max_combinations
    }

    /// Index of the margin of `attributes`, which is added if it is new.
    pub(super) fn add(&mut self, attributes: AttrSet, control: &Control) -> Result<usize, Cancelled> {
        if let Some(known) = self.all.iter().position(|margin| margin.attributes == attributes) {
            return Ok(known);
        }
        let values = keys::together(self.table, attributes.without(self.sensitive), control)?;
        let rows = MarginAttributes::rows_of(&values);
        self.all.push(MarginAttributes { attributes, values, rows });
        Ok(self.all.len() - 1)
    }

    pub(super) fn attributes(&self, margin: usize) -> AttrSet {
        self.all[margin].attributes
    }

    /// Value of a row in a margin, the sensitive attribute apart.
    pub(super) fn value(&self, margin: usize, row: u32) -> u32 {
        self.all[margin].values.of_row[row as usize]
    }

    /// Value of a narrower margin, by value of a margin.
    pub(super) fn within(&self, margin: usize, narrower: usize) -> Vec<u32> {
        self.all[margin].rows.iter().map(|&row| self.value(narrower, row)).collect()
    }

    /// Code of an attribute in a value of a margin; `None` for the sensitive attribute, which values leave out.
    pub(super) fn code(&self, margin: usize, value: u32, attr: Attr) -> Option<u32> {
        let row = self.all[margin].rows[value as usize];
        (attr != self.sensitive).then(|| self.table.column(attr).codes.get(row as usize))
    }

    /// Number of rows of a bucket that agree with a row on a margin, and on the sensitive value if the margin holds it.
    pub(super) fn rows_with(&self, margin: usize, counted: &MarginCount, row: u32, sensitive: u32) -> u32 {
        let with = self.all[margin].attributes.contains(self.sensitive);
        rows_of(counted.paired(self.value(margin, row)), if with { sensitive } else { 0 })
    }

    /// Number of rows of the table.
    pub(super) fn rows(&self) -> usize {
        self.table.rows()
    }

    /// Numbers the combinations of some attributes, the sensitive one apart.
    pub(super) fn together(&self, attributes: AttrSet, control: &Control) -> Result<TallyGroups, Cancelled> {
        keys::together(self.table, attributes.without(self.sensitive), control)
    }

    /// Number of margins.
    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    /// Counts the rows of a bucket in every margin.
    pub(super) fn count(&self, rows: &[u32]) -> MarginCounts {
        (0..self.len()).map(|margin| self.count_one(margin, rows)).collect()
    }

    /// Counts the rows of a bucket in one margin.
    pub(super) fn count_one(&self, margin: usize, rows: &[u32]) -> MarginCount {
        let (column, margin) = (self.table.column(self.sensitive), &self.all[margin]);
        match margin.attributes.contains(self.sensitive) {
            true => margin.count(rows, column.domain.len(), |row| column.codes.get(row)),
            false => margin.count(rows, 1, |_| 0),
        }
    }

    /// A counter for a margin without the sensitive attribute.
    pub(super) fn dense(&self, margin: usize) -> DenseCounter {
        DenseCounter { rows_with: vec![0; self.all[margin].values.count as usize], occurring: Vec::new() }
    }
}

/// Counter of a margin without the sensitive attribute that reuses its memory for several buckets.
#[derive(Default)]
pub(super) struct DenseCounter {
    rows_with: Vec<u32>,
    /// Occurring values.
    occurring: Vec<u32>,
}

impl DenseCounter {
    /// Counts the rows of a bucket in place of earlier ones.
    pub(super) fn count(&mut self, margins: &BucketMargins<'_>, margin: usize, rows: &[u32]) {
        self.clear();
        let values = &margins.all[margin].values.of_row;
        for &row in rows {
            let value = values[row as usize];
            let count = &mut self.rows_with[value as usize];
            if *count == 0 {
                self.occurring.push(value);
            }
            *count += 1;
        }
    }

    fn clear(&mut self) {
        self.occurring.drain(..).for_each(|value| self.rows_with[value as usize] = 0);
    }

    /// Number of rows with a value.
    pub(super) fn rows(&self, value: u32) -> u32 {
        self.rows_with[value as usize]
    }
}

/// Largest number of array cells per row; above it, values are counted by sorting.
const CELLS_PER_ROW: usize = 2;

impl MarginAttributes {
    /// One row with each value.
    fn rows_of(values: &TallyGroups) -> Vec<u32> {
        let mut rows = vec![0; values.count as usize];
        (0..).zip(&values.of_row).for_each(|(row, &value)| rows[value as usize] = row);
        rows
    }

    /// Counts the values of rows together with `sensitive` of each row, which is below `values`.
    fn count(&self, rows: &[u32], values: usize, sensitive: impl Fn(usize) -> u32) -> MarginCount {
        let key = |&row: &u32| (self.values.of_row[row as usize], sensitive(row as usize));
        let mut counted = MarginCount::default();
        let cells = (self.values.count as usize).saturating_mul(values);
        if cells <= rows.len().saturating_mul(CELLS_PER_ROW).max(64) {
            let mut counts = vec![0_u32; cells];
            rows.iter().map(key).for_each(|(value, paired)| counts[value as usize * values + paired as usize] += 1);
            for (value, of_value) in counts.chunks(values.max(1)).enumerate() {
                let begin = counted.paired.len();
                let occurring = of_value.iter().enumerate().filter(|(_, rows)| **rows > 0);
                counted.paired.extend(occurring.map(|(paired, &rows)| (paired as u32, rows)));
                if counted.paired.len() > begin {
                    counted.values.push((value as u32, counted.paired.len() as u32));
                }
            }
            return counted;
        }
        let mut keys: Vec<u64> =
            rows.iter().map(key).map(|(value, paired)| u64::from(value) << 32 | u64::from(paired)).collect();
        keys.sort_unstable();
        for run in keys.chunk_by(|a, b| a == b) {
            let (value, sensitive) = ((run[0] >> 32) as u32, run[0] as u32);
            counted.paired.push((sensitive, run.len() as u32));
            let end = counted.paired.len() as u32;
            match counted.values.last_mut() {
                Some((last, ends)) if *last == value => *ends = end,
                _ => counted.values.push((value, end)),
            }
        }
        counted
    }
}

impl MarginCount {
    /// Number of occurring values.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The occurring value at an index, with its sensitive values.
    pub(super) fn at(&self, place: usize) -> (u32, &[(u32, u32)]) {
        let begin = place.checked_sub(1).map_or(0, |before| self.values[before].1);
        let (value, end) = self.values[place];
        (value, &self.paired[begin as usize..end as usize])
    }

    /// Sensitive values of a value; empty if it does not occur.
    pub(super) fn paired(&self, value: u32) -> &[(u32, u32)] {
        match self.values.binary_search_by_key(&value, |(value, _)| *value) {
            Ok(place) => self.at(place).1,
            Err(_) => &[],
        }
    }

    /// Number of rows with a value, in a margin without the sensitive attribute.
    pub(super) fn rows(&self, value: u32) -> u32 {
        self.paired(value).first().map_or(0, |(_, rows)| *rows)
    }
}

/// Number of rows with a sensitive value, in a list of sensitive values.
pub(super) fn rows_of(paired: &[(u32, u32)], sensitive: u32) -> u32 {
    paired.binary_search_by_key(&sensitive, |(of, _)| *of).map_or(0, |at| paired[at].1)
}
