//! Candidate splits of a bucket.

use std::cmp::Ordering;

use super::limits::MedianSplit;
use super::space::SplitSpace;
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

/// Memory that buckets use in turn.
#[derive(Default)]
pub struct Scratch {
    /// The dimensions of the bucket.
    order: Vec<DimensionWidth>,
    /// Ordinals of the rows of the bucket, and a copy for the selection of the median.
    of_rows: Vec<u32>,
    ordinals: Vec<u32>,
    pub(super) left: Vec<u32>,
    pub(super) right: Vec<u32>,
}

impl<'a> SplitCandidates<'a> {
    /// The splits of the bucket of `rows`, rising.
    #[must_use]
    pub fn new(space: &'a SplitSpace, split: MedianSplit, rows: &'a [u32], scratch: &'a mut Scratch) -> Self {
        scratch.order.clear();
        for (index, dimension) in space.dimensions.iter().enumerate() {
            let (low, high) = with_codes!(&dimension.ordinals, ordinals => range_in(ordinals, rows));
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
        self.scratch.cut(&self.space.dimensions[dimension].ordinals, self.rows, self.split);
        Some((&self.scratch.left, &self.scratch.right))
    }
}

/// Smallest and largest ordinal of `rows`.
fn range_in<T: Copy + Ord + Into<u32>>(ordinals: &[T], rows: &[u32]) -> (u32, u32) {
    let Some(&first) = rows.first() else { return (0, 0) };
    let first = ordinals[first as usize];
    let of_rows = rows.iter().map(|&row| ordinals[row as usize]);
    let (low, high) = of_rows.fold((first, first), |(low, high), ordinal| (low.min(ordinal), high.max(ordinal)));
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
    fn cut(&mut self, ordinals: &Codes, rows: &[u32], split: MedianSplit) {
        self.of_rows.clear();
        with_codes!(ordinals, ordinals => put(ordinals, rows, &mut self.of_rows));
        self.ordinals.clone_from(&self.of_rows);
        let middle = match split {
            MedianSplit::Relaxed => rows.len() / 2,
            MedianSplit::Strict => (rows.len() - 1) / 2,
        };
        let (below, &mut median, above) = self.ordinals.select_nth_unstable(middle);
        // number of rows with the median value that go to the left
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
