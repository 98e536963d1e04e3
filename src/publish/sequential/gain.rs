//! Gain of a specialization step: information on the class, or rows made more exact; and the cut point of an interval.

use ahash::RandomState;
use hashbrown::HashMap;

use super::span::NodeRange;
use crate::control::{Cancelled, Control};
use crate::microdata::Codes;

/// Difference below which gains are equal; the smaller cut point wins.
const GAIN_EPSILON: f64 = 1e-12;

/// Frequencies of leaves and classes, leaves in order.
pub(super) struct ClassHistogram {
    cells: Vec<(u32, u32, u64)>,
    /// Number of classes; 0 if steps are not judged by them.
    classes: usize,
}

impl ClassHistogram {
    /// Histogram of a column with these leaves. Without classes all rows have one class.
    pub(super) fn new(
        codes: &Codes,
        places: &[u32],
        class: Option<(&Codes, usize)>,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let mut counts: HashMap<(u32, u32), u64, RandomState> = HashMap::default();
        for (row, code) in codes.iter().enumerate() {
            if row % Control::STRIDE == 0 {
                control.check()?;
            }
            let class = class.map_or(0, |(codes, _)| codes.get(row));
            *counts.entry((places[code as usize], class)).or_default() += 1;
        }
        let mut cells: Vec<(u32, u32, u64)> =
            counts.into_iter().map(|((place, class), rows)| (place, class, rows)).collect();
        cells.sort_unstable();
        Ok(Self { cells, classes: class.map_or(0, |(_, classes)| classes) })
    }

    /// First and last leaf.
    pub(super) fn ends(&self) -> (u32, u32) {
        match (self.cells.first(), self.cells.last()) {
            (Some(first), Some(last)) => (first.0, last.0),
            _ => (0, 0),
        }
    }

    /// The occurring leaves, rising.
    pub(super) fn places(&self) -> impl Iterator<Item = u32> + '_ {
        self.cells.chunk_by(|a, b| a.0 == b.0).map(|of_place| of_place[0].0)
    }

    fn below(&self, span: NodeRange) -> &[(u32, u32, u64)] {
        let first = self.cells.partition_point(|cell| cell.0 < span.first);
        let end = self.cells.partition_point(|cell| cell.0 <= span.last);
        &self.cells[first..end.max(first)]
    }

    /// Number of rows below a node.
    pub(super) fn rows(&self, span: NodeRange) -> u64 {
        self.below(span).iter().map(|cell| cell.2).sum()
    }

    fn histogram(&self, span: NodeRange) -> Vec<u64> {
        let mut histogram = vec![0; self.classes.max(1)];
        self.below(span).iter().for_each(|cell| histogram[cell.1 as usize] += cell.2);
        histogram
    }

    /// Information gain on the class, in bits, of the replacement of `span` by `children`.
    pub(super) fn information(&self, span: NodeRange, children: impl Iterator<Item = NodeRange>) -> f64 {
        let whole = self.histogram(span);
        let rows: u64 = whole.iter().sum();
        if rows == 0 {
            return 0.0;
        }
        let mut rest = 0.0;
        for child in children {
            let part = self.histogram(child);
            rest += part.iter().sum::<u64>() as f64 / rows as f64 * entropy(&part);
        }
        (entropy(&whole) - rest).max(0.0)
    }

    /// The halves of an interval at the cut point of the largest information gain, or of the most even halves without classes.
    ///
    /// The smaller of equal cut points wins. `None` with at most one leaf.
    pub(super) fn halves(&self, span: NodeRange) -> Option<[NodeRange; 2]> {
        let cells = self.below(span);
        let first = cells.first()?.0;
        let mut left = vec![0; self.classes.max(1)];
        let mut right = self.histogram(span);
        let rows: u64 = right.iter().sum();
        let (mut left_sum, mut right_sum): (f64, f64) = (0.0, right.iter().map(|&count| weighed(count)).sum());
        let mut left_rows = 0;
        let mut best: Option<(f64, u32)> = None;
        for place in cells.chunk_by(|a, b| a.0 == b.0) {
            let cut = place[0].0;
            if cut > first {
                let right_rows = rows - left_rows;
                // information times rows, up to the sign and a constant
                let rest = if self.classes > 0 {
                    weighed(left_rows) - left_sum + weighed(right_rows) - right_sum
                } else {
                    left_rows.abs_diff(right_rows) as f64
                };
                let rest = rest / rows as f64;
                if best.is_none_or(|(least, _)| rest < least - GAIN_EPSILON) {
                    best = Some((rest, cut));
                }
            }
            for &(_, class, count) in place {
                let class = class as usize;
                left_sum -= weighed(left[class]);
                right_sum -= weighed(right[class]);
                left[class] += count;
                right[class] -= count;
                left_sum += weighed(left[class]);
                right_sum += weighed(right[class]);
                left_rows += count;
            }
        }
        let (_, cut) = best?;
        Some([NodeRange { first: span.first, last: cut - 1 }, NodeRange { first: cut, last: span.last }])
    }
}

/// `n log n`.
fn weighed(count: u64) -> f64 {
    if count == 0 { 0.0 } else { count as f64 * (count as f64).log2() }
}

/// The entropy of counts, in bits.
fn entropy(counts: &[u64]) -> f64 {
    let rows = counts.iter().sum::<u64>() as f64;
    let part = |&count: &u64| {
        let share = count as f64 / rows;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(part).sum()
}
