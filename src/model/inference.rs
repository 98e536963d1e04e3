//! Rows whose value of a column follows from other columns of a part, or from their bucket.

use super::groups::RowGroups;
use super::inferred_rows::{AgreeingRows, InferredRows};
use super::tuples::PackedRows;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, Column};
use crate::with_codes;

/// Relative excess over 1/2 that counts: a sum of fractions with different denominators is rounded.
const TOLERANCE: f64 = 1e-9;

/// Binary digits of shares that are summed over rows: 2^32 of them are less than a word holds.
const SHARE_BITS: u32 = 31;

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
    for (&rows, &most) in groups.sizes().iter().zip(&most) {
        inferred.add_agreeing(AgreeingRows { rows, most });
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

/// What follows of rows from their columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowKnowledge {
    /// Rows that no other row equals in all columns.
    pub unique: u64,
    /// For each column, the rows whose value of it follows from all others; none where there is no other.
    pub by_others: Vec<InferredByOthers>,
}

/// The rows that are unique in all columns, and those whose value of a column follows from all others; n columns take n
/// passes, and where a word does not hold a row, n log n.
///
/// # Errors
/// [`Cancelled`]
pub fn row_knowledge(
    rows: usize,
    columns: &[AttributeColumn<'_>],
    control: &Control,
) -> Result<RowKnowledge, Cancelled> {
    let alone = columns.len() < 2;
    let packed = || columns.iter().map(|of| of.column).collect();
    if let Some(packed) = PackedRows::new(rows, None, packed()) {
        if alone {
            return Ok(RowKnowledge { unique: packed.unique(control)?, by_others: Vec::new() });
        }
        let (unique, inferred) = packed.inferred(control)?;
        return Ok(RowKnowledge { unique, by_others: by_others(columns, inferred).collect() });
    }
    let whole = RowGroups::whole(rows);
    let mut by_others = Vec::with_capacity(columns.len());
    if !alone {
        halve(&whole, columns, &mut by_others, control)?;
    }
    Ok(RowKnowledge { unique: unique_in(&whole.refined(&packed(), control)?), by_others })
}

/// The rows that are unique in all columns.
///
/// # Errors
/// [`Cancelled`]
pub(super) fn unique_rows(rows: usize, columns: &[&Column], control: &Control) -> Result<u64, Cancelled> {
    match PackedRows::new(rows, None, columns.to_vec()) {
        Some(packed) => packed.unique(control),
        None => Ok(unique_in(&RowGroups::whole(rows).refined(columns, control)?)),
    }
}

/// The rows that are groups of their own.
fn unique_in(groups: &RowGroups) -> u64 {
    groups.sizes().iter().filter(|size| **size == 1).count() as u64
}

/// Columns with the rows that are inferred of each.
fn by_others(columns: &[AttributeColumn<'_>], inferred: Vec<InferredRows>) -> impl Iterator<Item = InferredByOthers> {
    columns.iter().zip(inferred).map(|(of, inferred)| InferredByOthers { attribute: of.attribute, inferred })
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
    if groups.are_rows() {
        let rows = groups.of_row().len() as u64;
        let inferred = InferredRows { fixed: rows, likely: rows };
        found.extend(columns.iter().map(|of| InferredByOthers { attribute: of.attribute, inferred }));
        return Ok(());
    }
    let packed = columns.iter().map(|of| of.column).collect();
    if let Some(packed) = PackedRows::new(groups.of_row().len(), Some(groups), packed) {
        found.extend(by_others(columns, packed.inferred(control)?.1));
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

/// Rows in the order of their buckets, and in a bucket in their own.
struct BucketOrder {
    /// `None` where they stand so.
    rows: Option<Vec<u32>>,
    /// First row of each bucket, and one more.
    starts: Vec<usize>,
}

impl BucketOrder {
    fn new(labels: &[u32], buckets: usize) -> Self {
        let below = |label: u32| (label as usize).min(buckets);
        let mut starts = vec![0_usize; buckets + 2];
        labels.iter().for_each(|&label| starts[below(label) + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let rows = (!labels.is_sorted()).then(|| {
            let mut ends = starts.clone();
            let mut rows = vec![0_u32; labels.len()];
            for (row, &label) in labels.iter().enumerate() {
                let end = &mut ends[below(label)];
                rows[*end] = row as u32;
                *end += 1;
            }
            rows
        });
        // rows of no bucket come last
        starts.truncate(buckets + 1);
        Self { rows, starts }
    }

    fn row(&self, at: usize) -> usize {
        self.rows.as_ref().map_or(at, |rows| rows[at] as usize)
    }

    /// The rows of a bucket.
    fn of(&self, bucket: usize) -> impl Iterator<Item = usize> {
        (self.starts[bucket]..self.starts[bucket + 1]).map(|at| self.row(at))
    }

    /// Calls `look` with the sorted cells of each bucket.
    fn each_bucket(&self, column: &Column, look: impl FnMut(&[u32])) {
        with_codes!(&column.codes, codes => self.each_bucket_of(codes, look));
    }

    fn each_bucket_of<T: Copy + Into<u32>>(&self, codes: &[T], mut look: impl FnMut(&[u32])) {
        let mut cells: Vec<u32> = Vec::new();
        for bounds in self.starts.windows(2) {
            cells.clear();
            match &self.rows {
                None => cells.extend(codes[bounds[0]..bounds[1]].iter().map(|&code| code.into())),
                Some(rows) => {
                    cells.extend(rows[bounds[0]..bounds[1]].iter().map(|&row| codes[row as usize].into()));
                }
            }
            cells.sort_unstable();
            look(&cells);
        }
    }
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
    /// Empty where no bucket can reveal a value.
    entries: Vec<KnownValueCount>,
    /// Rows of each bucket, in the part of the column.
    sizes: Vec<u32>,
    /// Of each bucket, the share of its most frequent value, rounded up, in units of 2^-`SHARE_BITS`.
    shares: Vec<u64>,
    /// Codes of the column.
    codes: usize,
}

impl BucketValues {
    pub(super) fn new(labels: &[u32], column: &Column, buckets: usize) -> Self {
        let order = BucketOrder::new(labels, buckets);
        let mut values = Self {
            starts: Vec::with_capacity(buckets + 1),
            entries: Vec::new(),
            sizes: Vec::with_capacity(buckets),
            shares: Vec::with_capacity(buckets),
            codes: column.domain.len(),
        };
        let mut entries = 0;
        order.each_bucket(column, |cells| {
            values.starts.push(entries);
            let mut most = 0;
            for run in cells.chunk_by(|a, b| a == b) {
                entries += 1;
                most = most.max(run.len());
            }
            values.sizes.push(cells.len() as u32);
            values.shares.push(((most as u64) << SHARE_BITS).div_ceil(cells.len().max(1) as u64));
        });
        values.starts.push(entries);
        if values.can_reveal() {
            values.entries.reserve_exact(entries);
            order.each_bucket(column, |cells| {
                let entry = |run: &[u32]| KnownValueCount { value: run[0], count: run.len() as u32 };
                values.entries.extend(cells.chunk_by(|a, b| a == b).map(entry));
            });
        }
        values
    }

    /// Whether the most frequent value of some bucket has more than half of its rows. Of no mixture of other buckets has a value
    /// more than half, nor all.
    pub(super) fn can_reveal(&self) -> bool {
        self.shares.iter().any(|&share| share * 2 > 1 << SHARE_BITS)
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
        let entries = |label: u32| self.starts[label as usize + 1] - self.starts[label as usize];
        labels.iter().map(|&label| entries(label) as u64).sum()
    }
}

/// Rows of a part in the order of the sizes and labels of their buckets.
pub(super) struct RowsByBucket<'a> {
    labels: &'a [u32],
    rows: Vec<u32>,
}

impl<'a> RowsByBucket<'a> {
    /// The rows, where `values` can reveal one.
    pub(super) fn new(labels: &'a [u32], values: &BucketValues) -> Self {
        let order = BucketOrder::new(labels, values.sizes.len());
        let mut buckets: Vec<usize> = (0..values.sizes.len()).collect();
        buckets.sort_by_key(|&bucket| values.sizes[bucket]);
        Self { labels, rows: buckets.into_iter().flat_map(|bucket| order.of(bucket)).map(|row| row as u32).collect() }
    }

    /// The labels of the rows of the wanted groups, group after group, each in this order; and the end of each group.
    fn by_group(&self, groups: &RowGroups, wanted: &[bool]) -> (Vec<u32>, Vec<usize>) {
        let mut ends = Vec::with_capacity(groups.sizes().len());
        let mut start = 0;
        for (&size, &wanted) in groups.sizes().iter().zip(wanted) {
            ends.push(start);
            start += if wanted { size as usize } else { 0 };
        }
        let mut ordered = vec![0; start];
        for &row in &self.rows {
            let group = groups.of_row()[row as usize] as usize;
            if wanted[group] {
                ordered[ends[group]] = self.labels[row as usize];
                ends[group] += 1;
            }
        }
        (ordered, ends)
    }
}

/// The groups in which a value may have more than half of the expected rows: the most frequent values of the buckets, were they
/// all the same, would have. What a sum of fractions is rounded by is far below [`TOLERANCE`].
fn leaning_groups(groups: &RowGroups, labels: &[u32], values: &BucketValues) -> Vec<bool> {
    let mut shares = vec![0_u64; groups.sizes().len()];
    for (&group, &label) in groups.of_row().iter().zip(labels) {
        shares[group as usize] += values.shares[label as usize];
    }
    let leans = |(&size, &share): (&u32, &u64)| share > u64::from(size) << (SHARE_BITS - 1);
    groups.sizes().iter().zip(&shares).map(leans).collect()
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
    let wanted = leaning_groups(groups, rows.labels, values);
    let (labels, ends) = rows.by_group(groups, &wanted);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::groups::tests::table;
    use super::*;

    /// What follows of a value with the numbers of its bucket's rows, as fractions over one denominator.
    fn by_definition(known: &[u32], labels: &[u32], values: &[BTreeMap<u32, u64>]) -> InferredRows {
        const DENOMINATOR: u64 = 27_720; // of buckets of at most 12 rows
        let mut groups = BTreeMap::<u32, Vec<u32>>::new();
        known.iter().zip(labels).for_each(|(&known, &label)| groups.entry(known).or_default().push(label));
        let mut inferred = InferredRows::default();
        for labels in groups.values() {
            let mut expected = BTreeMap::<u32, u64>::new();
            for &label in labels {
                let size: u64 = values[label as usize].values().sum();
                for (&value, &count) in &values[label as usize] {
                    *expected.entry(value).or_default() += count * DENOMINATOR / size;
                }
            }
            let rows = labels.len() as u64;
            let likely = expected.values().any(|&of| of * 2 > rows * DENOMINATOR);
            inferred.add(rows, expected.len() == 1, likely);
        }
        inferred
    }

    proptest! {
        #[test]
        fn buckets_reveal_what_their_values_say(
            rows in prop::collection::vec((0u32..5, 0u32..4, prop_oneof![3 => 0u32..2, 1 => 0u32..6]), 1..60),
        ) {
            let mut sizes = [0_u32; 5];
            let rows: Vec<(u32, u32, u32)> = rows.into_iter().filter(|(label, ..)| {
                sizes[*label as usize] += 1;
                sizes[*label as usize] <= 12
            }).collect();
            let table = table(&[4, 6], &rows.iter().map(|&(_, known, value)| vec![known, value]).collect::<Vec<_>>());
            let [known, column] = [0, 1].map(|at| table.column(crate::microdata::Attr(at)));
            let labels: Vec<u32> = rows.iter().map(|&(label, ..)| label).collect();
            let (control, values) = (Control::default(), BucketValues::new(&labels, column, 5));
            let groups = RowGroups::whole(rows.len()).refined(&[known], &control).unwrap();
            let found = inferred_through_buckets(&groups, &RowsByBucket::new(&labels, &values), &values, &control);
            let mut counts = vec![BTreeMap::<u32, u64>::new(); 5];
            rows.iter().for_each(|&(label, _, value)| *counts[label as usize].entry(value).or_default() += 1);
            let known: Vec<u32> = rows.iter().map(|&(_, known, _)| known).collect();
            let defined = by_definition(&known, &labels, &counts);
            prop_assert_eq!(found.unwrap(), defined);
            prop_assert!(values.can_reveal() || defined == InferredRows::default());
        }
    }
}
