//! Predicates of splits that keep counts by row numbers of a table.

use std::convert::Infallible;

use crate::publish::partition::{LocalSplitPredicate, SplitPredicate};

/// Predicate of splits, by row numbers of the table.
pub(super) trait HalfPredicate {
    /// As [`SplitPredicate::allows`].
    fn allows(&mut self, bucket: u32, left: &[u32], right: &[u32]) -> bool;

    /// As [`SplitPredicate::closed`].
    fn closed(&mut self, _bucket: u32) {}
}

/// A predicate that sees the row numbers of the table after rows are renumbered.
pub(super) struct RenumberedPredicate<'a> {
    predicate: &'a mut dyn HalfPredicate,
    /// Number of each row in the table of the predicate; `None` while it is the same.
    originals: Option<Vec<u32>>,
    halves: [Vec<u32>; 2],
}

impl<'a> RenumberedPredicate<'a> {
    /// `originals` are the numbers of the rows of the partition in the table of the predicate, where they differ.
    pub(super) const fn wrap(predicate: &'a mut dyn HalfPredicate, originals: Option<Vec<u32>>) -> Self {
        Self { predicate, originals, halves: [Vec::new(), Vec::new()] }
    }
}

/// The numbers of some rows in another table.
fn numbered(rows: &[u32], originals: &[u32], out: &mut Vec<u32>) {
    out.clear();
    out.extend(rows.iter().map(|&row| originals[row as usize]));
}

/// The numbers of rows in another table after a renumbering.
fn reordered(order: &[u32], originals: Option<&Vec<u32>>) -> Vec<u32> {
    order.iter().map(|&row| originals.map_or(row, |originals| originals[row as usize])).collect()
}

impl SplitPredicate for RenumberedPredicate<'_> {
    fn allows(&mut self, bucket: u32, left: &[u32], right: &[u32]) -> bool {
        let Some(originals) = &self.originals else { return self.predicate.allows(bucket, left, right) };
        for (half, rows) in self.halves.iter_mut().zip([left, right]) {
            numbered(rows, originals, half);
        }
        self.predicate.allows(bucket, &self.halves[0], &self.halves[1])
    }

    fn closed(&mut self, bucket: u32) {
        self.predicate.closed(bucket);
    }

    fn reorder(&mut self, order: &[u32]) {
        self.originals = Some(reordered(order, self.originals.as_ref()));
    }
}

/// A predicate of buckets by themselves, by row numbers of a table.
pub(super) struct RenumberedLocal<F> {
    holds: F,
    originals: Option<Vec<u32>>,
}

impl<F: Fn(&[u32]) -> bool + Sync> RenumberedLocal<F> {
    /// As [`RenumberedPredicate::wrap`]: `holds` says whether the bucket of some rows keeps the bound.
    pub(super) const fn wrap(holds: F, originals: Option<Vec<u32>>) -> Self {
        Self { holds, originals }
    }
}

impl<F: Fn(&[u32]) -> bool + Sync> LocalSplitPredicate for RenumberedLocal<F> {
    type Memory = Vec<u32>;
    type Unclear = Infallible;

    fn allows(&self, left: &[u32], right: &[u32], memory: &mut Vec<u32>) -> Result<bool, Infallible> {
        let mut holds = |rows: &[u32]| match &self.originals {
            None => (self.holds)(rows),
            Some(originals) => {
                numbered(rows, originals, memory);
                (self.holds)(memory)
            }
        };
        Ok(holds(left) && holds(right))
    }

    fn reorder(&mut self, order: &[u32]) {
        self.originals = Some(reordered(order, self.originals.as_ref()));
    }
}
