//! Rows whose value of a column follows from other columns of a part, or from their bucket.

use super::groups::RowGroups;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, Column};

/// Relative excess over 1/2 that counts: a sum of fractions with different denominators is rounded.
const TOLERANCE: f64 = 1e-9;

/// Rows of which a reader infers the value of a column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct InferredRows {
    /// Rows with one possible value.
    pub fixed: u64,
    /// Rows whose likeliest value has a probability above 1/2; those with one possible value too.
    pub likely: u64,
}

impl InferredRows {
    fn add(&mut self, rows: u64, fixed: bool, likely: bool) {
        self.fixed += if fixed { rows } else { 0 };
        self.likely += if fixed || likely { rows } else { 0 };
    }
}

/// Rows whose value of a column follows from their group: the column stands beside the columns of the groups.
///
/// # Errors
/// [`Cancelled`]
pub(super) fn inferred_in_part(
    groups: &RowGroups,
    column: &Column,
    control: &Control,
) -> Result<InferredRows, Cancelled> {
    let with_value = groups.refined(&[column], control)?;
    let mut most = vec![0_u32; groups.sizes().len()];
    for (group, with_value_at) in groups.of_row().iter().zip(with_value.of_row()) {
        let most = &mut most[*group as usize];
        *most = (*most).max(with_value.sizes()[*with_value_at as usize]);
    }
    let mut inferred = InferredRows::default();
    for (&size, &most) in groups.sizes().iter().zip(&most) {
        inferred.add(u64::from(size), most == size, u64::from(most) * 2 > u64::from(size));
    }
    Ok(inferred)
}

/// A column, and the rows whose value of it follows from all other columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InferredByOthers {
    /// The inferred column.
    pub attribute: Attr,
    /// The rows.
    pub inferred: InferredRows,
}

/// For each column, the rows whose value of it follows from all others; n columns take n log n passes.
///
/// # Errors
/// [`Cancelled`]
pub fn inferred_by_others(
    rows: usize,
    columns: &[AttributeColumn<'_>],
    control: &Control,
) -> Result<Vec<InferredByOthers>, Cancelled> {
    let mut found = Vec::with_capacity(columns.len());
    if columns.len() > 1 {
        halve(&RowGroups::whole(rows), columns, &mut found, control)?;
    }
    Ok(found)
}

/// A column with its attribute.
#[derive(Clone, Copy)]
pub struct AttributeColumn<'a> {
    /// The attribute.
    pub attribute: Attr,
    /// Its cells.
    pub column: &'a Column,
}

/// `groups` has the rows by all columns that are not in `columns`.
fn halve(
    groups: &RowGroups,
    columns: &[AttributeColumn<'_>],
    found: &mut Vec<InferredByOthers>,
    control: &Control,
) -> Result<(), Cancelled> {
    if let [AttributeColumn { attribute, column }] = *columns {
        found.push(InferredByOthers { attribute, inferred: inferred_in_part(groups, column, control)? });
        return Ok(());
    }
    let (left, right) = columns.split_at(columns.len() / 2);
    let by = |half: &[AttributeColumn<'_>]| {
        let columns: Vec<&Column> = half.iter().map(|of| of.column).collect();
        groups.refined(&columns, control)
    };
    halve(&by(right)?, left, found, control)?;
    halve(&by(left)?, right, found, control)
}

/// How often a bucket has a value.
#[derive(Clone, Copy)]
struct KnownValueCount {
    value: u32,
    count: u32,
}

/// The values of a column in each bucket.
pub(super) struct BucketValues {
    /// First entry of each bucket, and one more.
    starts: Vec<usize>,
    entries: Vec<KnownValueCount>,
    /// Rows of each bucket, in the part of the column.
    sizes: Vec<u32>,
    /// Codes of the column.
    codes: usize,
}

impl BucketValues {
    pub(super) fn new(labels: &[u32], column: &Column, buckets: usize) -> Self {
        let cell = |(row, &label): (usize, &u32)| (label, column.codes.get(row));
        let mut cells: Vec<(u32, u32)> = labels.iter().enumerate().map(cell).collect();
        cells.sort_unstable();
        let mut values = Self {
            starts: Vec::with_capacity(buckets + 1),
            entries: Vec::new(),
            sizes: vec![0; buckets],
            codes: column.domain.len(),
        };
        let mut runs = cells.chunk_by(|a, b| a == b).peekable();
        for bucket in 0..buckets {
            values.starts.push(values.entries.len());
            while let Some(run) = runs.next_if(|run| run[0].0 as usize == bucket) {
                values.entries.push(KnownValueCount { value: run[0].1, count: run.len() as u32 });
                values.sizes[bucket] += run.len() as u32;
            }
        }
        values.starts.push(values.entries.len());
        values
    }

    fn of(&self, bucket: u32) -> &[KnownValueCount] {
        let at = bucket as usize;
        &self.entries[self.starts[at]..self.starts[at + 1]]
    }

    fn size(&self, bucket: u32) -> u32 {
        self.sizes[bucket as usize]
    }

    /// Cells that are compared for the rows of a part at most.
    pub(super) fn work(&self, labels: &[u32]) -> u64 {
        labels.iter().map(|&label| self.of(label).len() as u64).sum()
    }
}

/// Rows of a part in the order of the sizes and labels of their buckets.
pub(super) struct RowsByBucket<'a> {
    labels: &'a [u32],
    rows: Vec<u32>,
}

impl<'a> RowsByBucket<'a> {
    pub(super) fn new(labels: &'a [u32], values: &BucketValues) -> Self {
        let mut rows: Vec<u32> = (0..labels.len() as u32).collect();
        rows.sort_unstable_by_key(|&row| {
            let label = labels[row as usize];
            (values.size(label), label, row)
        });
        Self { labels, rows }
    }

    /// The rows, group after group, each in this order; and the end of each group.
    fn by_group(&self, groups: &RowGroups) -> (Vec<u32>, Vec<usize>) {
        let mut ends = Vec::with_capacity(groups.sizes().len());
        let mut start = 0;
        for &size in groups.sizes() {
            ends.push(start);
            start += size as usize;
        }
        let mut ordered = vec![0; self.rows.len()];
        for &row in &self.rows {
            let end = &mut ends[groups.of_row()[row as usize] as usize];
            ordered[*end] = self.labels[row as usize];
            *end += 1;
        }
        (ordered, ends)
    }
}

/// Rows whose value of a column in another part follows from their group: each row of the bucket is equally likely.
///
/// # Errors
/// [`Cancelled`]
pub(super) fn inferred_through_buckets(
    groups: &RowGroups,
    rows: &RowsByBucket<'_>,
    values: &BucketValues,
    control: &Control,
) -> Result<InferredRows, Cancelled> {
    let (labels, ends) = rows.by_group(groups);
    let mut inferred = InferredRows::default();
    let mut mixture = BucketMixture::new(values.codes);
    let mut start = 0;
    for (at, &end) in ends.iter().enumerate() {
        if at.is_multiple_of(Control::STRIDE) {
            control.check()?;
        }
        let labels = &labels[start..end];
        let (mut certain, mut constant) = (None, true);
        for bucket in labels.chunk_by(|a, b| a == b) {
            let entries = values.of(bucket[0]);
            let only = if let [one] = entries { Some(one.value) } else { None };
            constant &= only.is_some() && certain.is_none_or(|known| Some(known) == only);
            certain = certain.or(only);
            mixture.add(entries, bucket.len() as u64, values.size(bucket[0]));
        }
        let half = labels.len() as f64 / 2.0;
        let likely = mixture.largest() > half * (1.0 + TOLERANCE);
        inferred.add(labels.len() as u64, constant, likely);
        start = end;
    }
    Ok(inferred)
}

/// Expected numbers of rows for each value, over buckets of rising sizes.
struct BucketMixture {
    /// Numerators for buckets of the current size.
    counts: Vec<u64>,
    size: u32,
    expected: Vec<f64>,
    /// Values with an entry, perhaps repeated.
    touched: Vec<u32>,
    /// The first of `touched` that belongs to the current size.
    current: usize,
}

impl BucketMixture {
    fn new(codes: usize) -> Self {
        Self { counts: vec![0; codes], size: 0, expected: vec![0.0; codes], touched: Vec::new(), current: 0 }
    }

    fn add(&mut self, entries: &[KnownValueCount], rows: u64, size: u32) {
        if size != self.size {
            self.divide();
            self.size = size;
        }
        for entry in entries {
            self.counts[entry.value as usize] += rows * u64::from(entry.count);
            self.touched.push(entry.value);
        }
    }

    /// Adds what buckets of the current size make likely.
    fn divide(&mut self) {
        for &value in &self.touched[self.current..] {
            let count = std::mem::take(&mut self.counts[value as usize]);
            self.expected[value as usize] += count as f64 / f64::from(self.size);
        }
        self.current = self.touched.len();
    }

    /// The expected rows of the likeliest value; forgets all.
    fn largest(&mut self) -> f64 {
        self.divide();
        let mut largest = 0.0_f64;
        for value in self.touched.drain(..) {
            largest = largest.max(std::mem::take(&mut self.expected[value as usize]));
        }
        (self.current, self.size) = (0, 0);
        largest
    }
}
