//! What stands in the cells of a class: an interval, a set of values, a node of a taxonomy.

use crate::microdata::{Attr, AttributeType, Axis, BoundTaxonomy, Column, ColumnAnnotations, Table};
use crate::publish::assign::BucketAssignment;
use crate::publish::partition::TableAnnotations;
use crate::spec::CellKind;

/// The values of a class, both ends included, and whether a missing value is among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassInterval {
    /// The codes of the first and of the last value, in the order of the axis; none where all values are missing.
    pub ends: Option<(u32, u32)>,
    /// Whether a missing value occurs.
    pub missing: bool,
}

/// The interval of every class, by class.
#[must_use]
pub fn intervals(column: &Column, axis: &Axis, classes: &BucketAssignment) -> Vec<ClassInterval> {
    let mut intervals = vec![ClassInterval { ends: None, missing: false }; classes.buckets as usize];
    // of values of equal worth the code decides
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

/// The codes that occur in every class, by class, each rising.
#[must_use]
pub fn sets(column: &Column, classes: &BucketAssignment) -> Vec<Vec<u32>> {
    let pair = |(&class, code): (&u32, u32)| u64::from(class) << 32 | u64::from(code);
    let mut pairs: Vec<u64> = classes.bucket_of.iter().zip(column.codes.iter()).map(pair).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.chunk_by(|a, b| a >> 32 == b >> 32).map(|class| class.iter().map(|&pair| pair as u32).collect()).collect()
}

/// The order along which rows are split, by what is published of it: intervals are read in the order of values, so that rows are
/// cut along that; sets and nodes are not, and rows are cut along the leaves of taxonomies. Values that are no numbers and have no taxonomy
/// have no order that a set shows: the most frequent comes first, so that halves are parted between frequent values and rare ones, and
/// the frequent soon stand alone, of which counts are then exact.
pub(super) struct CutOrder<'a> {
    pub(super) table: &'a Table,
    pub(super) cells: CellKind,
}

impl TableAnnotations for CutOrder<'_> {
    fn axis(&self, attr: Attr) -> Option<Axis> {
        match self.cells {
            CellKind::Interval => None,
            CellKind::Set => self.table.axis(attr).or_else(|| by_frequency(self.table.column(attr))),
            CellKind::Node => self.table.annotations(attr).taxonomy().map(|tree| Axis::from_places(&tree.places())),
        }
    }

    fn annotations(&self, attr: Attr) -> ColumnAnnotations {
        self.table.annotations(attr).clone()
    }
}

/// The order of values that are worth nothing, by how often they occur; of equally frequent ones the first comes first.
fn by_frequency(column: &Column) -> Option<Axis> {
    if !matches!(column.domain.kind(), AttributeType::Text | AttributeType::Boolean) {
        return None;
    }
    let counts = column.counts();
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
    /// The lowest node above all of `codes`, of which there is at least one.
    fn covering(&self, codes: &[u32]) -> u32;
}

impl ValueTree for BoundTaxonomy {
    fn covering(&self, codes: &[u32]) -> u32 {
        self.lowest_above(codes)
    }
}

/// The lowest node above the values of every class, by class.
#[must_use]
pub fn nodes(column: &Column, classes: &BucketAssignment, tree: &dyn ValueTree) -> Vec<u32> {
    sets(column, classes).iter().map(|codes| tree.covering(codes)).collect()
}
