//! Cells of a class: an interval, a set of values, or a node of a taxonomy.

use super::counted_rows::CountedRows;
use crate::microdata::{Attr, AttrSet, AttributeType, Axis, BoundTaxonomy, Column, ColumnAnnotations};
use crate::publish::assign::BucketAssignment;
use crate::publish::partition::TableAnnotations;
use crate::spec::CellKind;

/// The interval of a class, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassInterval {
    /// Codes of the first and the last value, in the order of the axis; `None` if all values are missing.
    pub ends: Option<(u32, u32)>,
    /// Whether a missing value occurs.
    pub missing: bool,
}

/// Interval of every class.
#[must_use]
pub fn intervals(column: &Column, axis: &Axis, classes: &BucketAssignment) -> Vec<ClassInterval> {
    let mut intervals = vec![ClassInterval { ends: None, missing: false }; classes.buckets as usize];
    // the code breaks ties of values at one position
    let rank = |code: u32| (axis.ordinal(code), code);
    for (&class, code) in classes.bucket_of.iter().zip(column.codes.iter()) {
        let interval = &mut intervals[class as usize];
        if column.domain.has_missing() && code == 0 {
            interval.missing = true;
        } else {
            let (low, high) = interval.ends.unwrap_or((code, code));
            let low = if rank(code) < rank(low) { code } else { low };
            let high = if rank(code) > rank(high) { code } else { high };
            interval.ends = Some((low, high));
        }
    }
    intervals
}

/// Occurring codes of every class, rising.
#[must_use]
pub fn sets(column: &Column, classes: &BucketAssignment) -> Vec<Vec<u32>> {
    let pair = |(&class, code): (&u32, u32)| u64::from(class) << 32 | u64::from(code);
    let mut pairs: Vec<u64> = classes.bucket_of.iter().zip(column.codes.iter()).map(pair).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.chunk_by(|a, b| a >> 32 == b >> 32).map(|class| class.iter().map(|&pair| pair as u32).collect()).collect()
}

/// Order along which rows are split, by the form of cells.
///
/// Intervals are read in the order of values. Sets and nodes follow the leaves of taxonomies. Text without a taxonomy has no
/// order that a set shows: the most frequent value comes first, so that halves separate frequent and rare values. The frequent
/// ones soon have classes of their own, with exact counts.
pub(super) struct CutOrder<'a> {
    pub(super) rows: CountedRows<'a>,
    pub(super) cells: CellKind,
    /// Attributes whose cells are sets.
    pub(super) sets: AttrSet,
}

impl TableAnnotations for CutOrder<'_> {
    fn axis(&self, attr: Attr) -> Option<Axis> {
        if self.sets.contains(attr) {
            let CountedRows { table, weights } = self.rows;
            let column = table.column(attr);
            return table.axis(attr).or_else(|| by_frequency(column, &weights.counts(column)));
        }
        match self.cells {
            CellKind::Interval | CellKind::Set | CellKind::ByType => None,
            CellKind::Node => {
                self.rows.table.annotations(attr).taxonomy().map(|tree| Axis::from_places(&tree.places()))
            }
        }
    }

    fn annotations(&self, attr: Attr) -> ColumnAnnotations {
        self.rows.table.annotations(attr).clone()
    }
}

/// Order of text values by frequency; of equally frequent ones the first comes first.
fn by_frequency(column: &Column, counts: &[u64]) -> Option<Axis> {
    if !matches!(column.domain.kind(), AttributeType::Text | AttributeType::Boolean) {
        return None;
    }
    let mut falling: Vec<usize> = (0..counts.len()).collect();
    falling.sort_by_key(|&code| std::cmp::Reverse(counts[code]));
    let mut places = vec![0; counts.len()];
    for (place, code) in (0..).zip(falling) {
        places[code] = place;
    }
    Some(Axis::from_places(&places))
}

/// A tree over the values of a column.
pub trait ValueTree {
    /// The lowest node above all of `codes`, which are not empty.
    fn covering(&self, codes: &[u32]) -> u32;
}

impl ValueTree for BoundTaxonomy {
    fn covering(&self, codes: &[u32]) -> u32 {
        self.lowest_above(codes)
    }
}

/// Lowest node above the values of every class.
#[must_use]
pub fn nodes(column: &Column, classes: &BucketAssignment, tree: &dyn ValueTree) -> Vec<u32> {
    sets(column, classes).iter().map(|codes| tree.covering(codes)).collect()
}
