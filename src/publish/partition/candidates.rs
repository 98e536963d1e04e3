//! Candidate splits of a bucket.

use std::cmp::Ordering;

use super::limits::MedianSplit;
use super::space::{OrdinalRange, SplitSpace};
use super::weights::RowWeights;
use crate::microdata::Codes;
use crate::with_codes;

/// Candidate splits of one bucket: the dimension with the largest share of its span first; of equal ones the first attribute.
pub struct SplitCandidates<'a> {
    space: &'a SplitSpace,
    split: MedianSplit,
    rows: &'a [u32],
    scratch: &'a mut Scratch,
    next: usize,
}

/// Width of a bucket along a dimension.
#[derive(Clone, Copy)]
struct DimensionWidth {
    dimension: usize,
    width: u64,
    /// Width of the whole table.
    span: u64,
}

/// A median of ordinals.
struct Median {
    ordinal: u32,
    /// Number of rows with a smaller ordinal.
    below: usize,
    /// Whether no row has a larger ordinal.
    last: bool,
}

/// Number of rows after which a range is compared with that of the table.
const RANGE_ROWS: usize = 64;

/// Largest number of counters for each row; above it, medians are selected.
const COUNTERS_PER_ROW: usize = 2;

/// Memory that buckets use in turn.
#[derive(Default)]
pub struct Scratch {
    /// The dimensions of the bucket.
    order: Vec<DimensionWidth>,
    /// Ordinals of the rows of the bucket, and a copy for the selection of the median.
    of_rows: Vec<u32>,
    ordinals: Vec<u32>,
    /// Number of rows with each ordinal.
    counts: Vec<u32>,
    /// The same for rows that stand for several, and the ordinals that occur.
    weighted: Vec<u64>,
    occurring: Vec<u32>,
    pub(super) left: Vec<u32>,
    pub(super) right: Vec<u32>,
}

impl<'a> SplitCandidates<'a> {
    /// The splits of the bucket of `rows`, rising.
    #[must_use]
    pub fn new(space: &'a SplitSpace, split: MedianSplit, rows: &'a [u32], scratch: &'a mut Scratch) -> Self {
        scratch.order.clear();
        for (index, dimension) in space.dimensions.iter().enumerate() {
            let (low, high) = with_codes!(&dimension.ordinals, ordinals => range_in(ordinals, rows, dimension.range));
            if low < high {
                let (width, span) = (dimension.axis.width(low, high), dimension.span);
                scratch.order.push(DimensionWidth { dimension: index, width, span });
            }
        }
        scratch.order.sort_by(wider);
        Self { space, split, rows, scratch, next: 0 }
    }

    /// The next split: rows of the left and of the right half, rising. Neither is empty.
    pub fn next_split(&mut self) -> Option<(&[u32], &[u32])> {
        let dimension = self.scratch.order.get(self.next)?.dimension;
        self.next += 1;
        self.scratch.cut(&self.space.dimensions[dimension].ordinals, &self.space.weights, self.rows, self.split);
        Some((&self.scratch.left, &self.scratch.right))
    }
}

/// Smallest and largest ordinal of `rows`, of which none is outside the range of the table.
fn range_in<T: Copy + Ord + Into<u32>>(ordinals: &[T], rows: &[u32], of_table: OrdinalRange) -> (u32, u32) {
    let Some(&first) = rows.first() else { return (0, 0) };
    let first = ordinals[first as usize];
    let (mut low, mut high) = (first, first);
    for rows in rows.chunks(RANGE_ROWS) {
        let of_rows = rows.iter().map(|&row| ordinals[row as usize]);
        (low, high) = of_rows.fold((low, high), |(low, high), ordinal| (low.min(ordinal), high.max(ordinal)));
        if low.into() == of_table.low && high.into() == of_table.high {
            break;
        }
    }
    (low.into(), high.into())
}

/// Appends the ordinals of `rows` to `to`.
fn put<T: Copy + Into<u32>>(ordinals: &[T], rows: &[u32], to: &mut Vec<u32>) {
    to.extend(rows.iter().map(|&row| ordinals[row as usize].into()));
}

/// Order by the share of the span, falling; of equal ones the first.
fn wider(a: &DimensionWidth, b: &DimensionWidth) -> Ordering {
    let share = |one: &DimensionWidth, other: &DimensionWidth| u128::from(one.width) * u128::from(other.span);
    share(b, a).cmp(&share(a, b)).then(a.dimension.cmp(&b.dimension))
}

impl Scratch {
    /// Splits `rows` at the median of `ordinals`, of which at least two differ.
    fn cut(&mut self, ordinals: &Codes, weights: &RowWeights, rows: &[u32], split: MedianSplit) {
        self.of_rows.clear();
        with_codes!(ordinals, ordinals => put(ordinals, rows, &mut self.of_rows));
        let middle = match split {
            MedianSplit::Relaxed => rows.len() / 2,
            MedianSplit::Strict => (rows.len() - 1) / 2,
        };
        let (split, median) = match weights.each() {
            None => (split, self.median(middle)),
            Some(weights) => (MedianSplit::Strict, self.weighted_median(rows, weights)),
        };
        let Median { ordinal: median, below, last } = median;
        // number of rows with the median value that go to the left
        let mut of_median = match split {
            MedianSplit::Relaxed => middle - below,
            MedianSplit::Strict if !last => usize::MAX,
            MedianSplit::Strict => 0,
        };
        let Self { of_rows, left, right, .. } = self;
        left.resize(rows.len(), 0);
        right.resize(rows.len(), 0);
        let (mut to_left, mut to_right) = (0, 0);
        for (&row, &ordinal) in rows.iter().zip(&*of_rows) {
            let of_equal = ordinal == median && of_median > 0;
            of_median -= usize::from(of_equal);
            let is_left = ordinal < median || of_equal;
            // written to both: which half a row comes to cannot be predicted
            left[to_left] = row;
            right[to_right] = row;
            to_left += usize::from(is_left);
            to_right += usize::from(!is_left);
        }
        left.truncate(to_left);
        right.truncate(to_right);
    }

    /// The ordinal at a position of the sorted ordinals of the bucket.
    fn median(&mut self, middle: usize) -> Median {
        let Self { of_rows, ordinals, counts, .. } = self;
        let most = of_rows.iter().copied().max().map_or(0, |most| most as usize);
        if most >= of_rows.len() * COUNTERS_PER_ROW {
            ordinals.clone_from(of_rows);
            let (below, &mut ordinal, above) = ordinals.select_nth_unstable(middle);
            let below = below.iter().filter(|other| **other < ordinal).count();
            return Median { ordinal, below, last: above.iter().all(|other| *other == ordinal) };
        }
        counts.clear();
        counts.resize(most + 1, 0);
        of_rows.iter().for_each(|&ordinal| counts[ordinal as usize] += 1);
        let (mut ordinal, mut below) = (0, 0);
        while below + counts[ordinal] as usize <= middle {
            below += counts[ordinal] as usize;
            ordinal += 1;
        }
        Median { ordinal: ordinal as u32, below, last: ordinal == most }
    }

    /// The ordinal in the middle of the rows that these rows stand for.
    fn weighted_median(&mut self, rows: &[u32], weights: &[u64]) -> Median {
        let Self { of_rows, weighted, occurring, .. } = self;
        let most = of_rows.iter().copied().max().map_or(0, |most| most as usize);
        // all are 0 between calls
        weighted.resize(weighted.len().max(most + 1), 0);
        occurring.clear();
        let mut all = 0;
        for (&row, &ordinal) in rows.iter().zip(&*of_rows) {
            let (of_ordinal, weight) = (&mut weighted[ordinal as usize], weights[row as usize]);
            if *of_ordinal == 0 {
                occurring.push(ordinal);
            }
            *of_ordinal += weight;
            all += weight;
        }
        occurring.sort_unstable();
        let (middle, mut below) = ((all - 1) / 2, 0);
        let mut found = most as u32;
        for &ordinal in &*occurring {
            let of_ordinal = std::mem::take(&mut weighted[ordinal as usize]);
            if below <= middle && middle < below + of_ordinal {
                found = ordinal;
            }
            below += of_ordinal;
        }
        // only relaxed splits ask how many are below
        Median { ordinal: found, below: 0, last: found as usize == most }
    }
}
