//! Mondrian: rows are halved at medians, again and again, as long as what is asked of every half holds (slicing, section
//! 4.3). Used by slicing and generalization.
//!
//! Of a bucket all that is kept is a stretch of one array of rows, in rising order. A split counts or selects the median,
//! then deals the rows to both sides in one pass: O(n log n) per dimension when halves are even, without an allocation per
//! bucket. When the rows of a bucket have become few among all, rows are renumbered bucket by bucket, so that those of one lie
//! together in memory again. Buckets that are judged by themselves are halved side by side, by all processors.

mod halve;
mod require;
mod tally;

use std::cmp::Ordering;

pub use halve::{LocalSplitPredicate, PartitionError, SplitPredicate, partition, partition_apart};
pub use require::{BucketRequirement, CountPredicate, PerHalfPredicate};
pub use tally::{GroupTally, TallyGroups};

use crate::microdata::{Attr, AttrSet, AttributeType, Axis, Codes, ColumnAnnotations, Table};
use crate::with_codes;

/// How a bucket is halved at a median.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MedianSplit {
    /// Rows with equal values stay together.
    Strict,
    /// Both halves have equally many rows, but for one: rows with the median's value go to both, in the order of rows.
    Relaxed,
}

/// How far rows are split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartitionLimits {
    /// How a bucket is halved.
    pub split: MedianSplit,
    /// So many of a bucket's dimensions are tried, the widest first; all of them without a limit.
    pub max_attempts: Option<usize>,
    /// No bucket has fewer rows.
    pub min_bucket: usize,
}

/// What is stated of the values of a table beyond their canonical order.
pub trait TableAnnotations {
    /// The axis of an attribute whose order is declared, or is that of the leaves of its taxonomy; others have the axis of
    /// their domain.
    fn axis(&self, _: Attr) -> Option<Axis> {
        None
    }

    /// Which values of a sensitive attribute an insider can rule out.
    fn annotations(&self, _: Attr) -> ColumnAnnotations {
        ColumnAnnotations::default()
    }
}

/// A table carries what the specification states of its values. Where these are no numbers, they stand in the order of the leaves of
/// their taxonomy.
impl TableAnnotations for Table {
    fn axis(&self, attr: Attr) -> Option<Axis> {
        let worth = !matches!(self.column(attr).domain.kind(), AttributeType::Text | AttributeType::Boolean);
        Self::annotations(self, attr).taxonomy().filter(|_| !worth).map(|tree| Axis::from_places(&tree.places()))
    }

    fn annotations(&self, attr: Attr) -> ColumnAnnotations {
        Self::annotations(self, attr).clone()
    }
}

/// Nothing is stated.
pub struct NoAnnotations;

impl TableAnnotations for NoAnnotations {}

/// The dimensions that rows are split along, in the order of attributes.
pub struct SplitSpace {
    dimensions: Vec<Dimension>,
}

struct Dimension {
    axis: Axis,
    /// The ordinal of each row.
    ordinals: Codes,
    /// How far the smallest and the largest value of the table are apart.
    span: u64,
}

impl SplitSpace {
    /// The dimensions of `attributes`.
    #[must_use]
    pub fn new(table: &Table, attributes: AttrSet, stated: &dyn TableAnnotations) -> Self {
        let dimension = |attr| {
            let column = table.column(attr);
            let axis = stated.axis(attr).unwrap_or_else(|| Axis::from_domain(&column.domain));
            let of_code: Vec<u32> = (0..column.domain.len() as u32).map(|code| axis.ordinal(code)).collect();
            let (low, high) = range(&column.codes, &of_code);
            let most = of_code.iter().copied().max().map_or(0, |most| most as usize + 1);
            let ordinals = Codes::collect(most, column.codes.iter().map(|code| of_code[code as usize]));
            let span = if low < high { axis.width(low, high) } else { 0 };
            Dimension { axis, ordinals, span }
        };
        Self { dimensions: attributes.iter().map(dimension).collect() }
    }

    /// What was row `order[row]` is `row` from now on.
    fn reorder(&mut self, order: &[u32]) {
        self.dimensions.iter_mut().for_each(|dimension| dimension.ordinals = dimension.ordinals.gather(order));
    }
}

/// The smallest and the largest ordinal that occurs.
fn range(codes: &Codes, of_code: &[u32]) -> (u32, u32) {
    let mut occurs = vec![false; of_code.len()];
    with_codes!(codes, codes => codes.iter().for_each(|&code| occurs[code as usize] = true));
    let occurring = || of_code.iter().zip(&occurs).filter(|(_, occurs)| **occurs).map(|(ordinal, _)| *ordinal);
    (occurring().min().unwrap_or(0), occurring().max().unwrap_or(0))
}

/// The splits of one bucket, the dimension with the largest share of its span first; of equal ones the first attribute.
pub struct SplitCandidates<'a> {
    space: &'a SplitSpace,
    split: MedianSplit,
    rows: &'a [u32],
    scratch: &'a mut Scratch,
    next: usize,
}

/// Memory that all buckets use in turn.
#[derive(Default)]
pub struct Scratch {
    /// `(width, span, dimension)` of the bucket's dimensions.
    order: Vec<(u64, u64, usize)>,
    /// The ordinals of the bucket's rows, and the same in another order.
    of_rows: Vec<u32>,
    ordinals: Vec<u32>,
    left: Vec<u32>,
    right: Vec<u32>,
}

impl<'a> SplitCandidates<'a> {
    /// The splits of the bucket of `rows`, which rise.
    #[must_use]
    pub fn new(space: &'a SplitSpace, split: MedianSplit, rows: &'a [u32], scratch: &'a mut Scratch) -> Self {
        scratch.order.clear();
        for (index, dimension) in space.dimensions.iter().enumerate() {
            let (low, high) = with_codes!(&dimension.ordinals, ordinals => range_in(ordinals, rows));
            if low < high {
                scratch.order.push((dimension.axis.width(low, high), dimension.span, index));
            }
        }
        scratch.order.sort_by(|a, b| wider(*a, *b));
        Self { space, split, rows, scratch, next: 0 }
    }

    /// The next split: rows of the left and of the right side, rising. Neither is empty.
    pub fn next_split(&mut self) -> Option<(&[u32], &[u32])> {
        let &(_, _, dimension) = self.scratch.order.get(self.next)?;
        self.next += 1;
        self.scratch.cut(&self.space.dimensions[dimension].ordinals, self.rows, self.split);
        Some((&self.scratch.left, &self.scratch.right))
    }
}

/// The smallest and the largest ordinal of `rows`.
fn range_in<T: Copy + Ord + Into<u32>>(ordinals: &[T], rows: &[u32]) -> (u32, u32) {
    let Some(&first) = rows.first() else { return (0, 0) };
    let first = ordinals[first as usize];
    let of_rows = rows.iter().map(|&row| ordinals[row as usize]);
    let (low, high) = of_rows.fold((first, first), |(low, high), ordinal| (low.min(ordinal), high.max(ordinal)));
    (low.into(), high.into())
}

/// Puts the ordinals of `rows` behind those of `to`.
fn put<T: Copy + Into<u32>>(ordinals: &[T], rows: &[u32], to: &mut Vec<u32>) {
    to.extend(rows.iter().map(|&row| ordinals[row as usize].into()));
}

/// By the share of the span, falling; of equal ones the first.
fn wider((width_a, span_a, a): (u64, u64, usize), (width_b, span_b, b): (u64, u64, usize)) -> Ordering {
    let (share_a, share_b) = (u128::from(width_a) * u128::from(span_b), u128::from(width_b) * u128::from(span_a));
    share_b.cmp(&share_a).then(a.cmp(&b))
}

impl Scratch {
    /// Deals `rows` to both sides of the median of `ordinals`, of which at least two differ.
    fn cut(&mut self, ordinals: &Codes, rows: &[u32], split: MedianSplit) {
        self.of_rows.clear();
        with_codes!(ordinals, ordinals => put(ordinals, rows, &mut self.of_rows));
        self.ordinals.clone_from(&self.of_rows);
        let middle = match split {
            MedianSplit::Relaxed => rows.len() / 2,
            MedianSplit::Strict => (rows.len() - 1) / 2,
        };
        let (below, &mut median, above) = self.ordinals.select_nth_unstable(middle);
        // so many rows with the median's value go to the left
        let mut of_median = match split {
            MedianSplit::Relaxed => middle - below.iter().filter(|ordinal| **ordinal < median).count(),
            MedianSplit::Strict if above.iter().any(|ordinal| *ordinal > median) => usize::MAX,
            MedianSplit::Strict => 0,
        };
        self.left.clear();
        self.right.clear();
        for (&row, ordinal) in rows.iter().zip(&self.of_rows) {
            let side = match ordinal.cmp(&median) {
                Ordering::Less => &mut self.left,
                Ordering::Equal if of_median > 0 => {
                    of_median -= 1;
                    &mut self.left
                }
                Ordering::Equal | Ordering::Greater => &mut self.right,
            };
            side.push(row);
        }
    }
}

#[cfg(test)]
mod tests;
