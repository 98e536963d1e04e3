//! Predicates of splits that keep counts by row numbers of the table.

use crate::publish::partition::SplitPredicate;

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
    /// Number of each row in the table; `None` before rows are renumbered.
    originals: Option<Vec<u32>>,
    halves: [Vec<u32>; 2],
}

impl<'a> RenumberedPredicate<'a> {
    pub(super) const fn wrap(predicate: &'a mut dyn HalfPredicate) -> Self {
        Self { predicate, originals: None, halves: [Vec::new(), Vec::new()] }
    }
}

impl SplitPredicate for RenumberedPredicate<'_> {
    fn allows(&mut self, bucket: u32, left: &[u32], right: &[u32]) -> bool {
        let Some(originals) = &self.originals else { return self.predicate.allows(bucket, left, right) };
        for (half, rows) in self.halves.iter_mut().zip([left, right]) {
            half.clear();
            half.extend(rows.iter().map(|&row| originals[row as usize]));
        }
        self.predicate.allows(bucket, &self.halves[0], &self.halves[1])
    }

    fn closed(&mut self, bucket: u32) {
        self.predicate.closed(bucket);
    }

    fn reorder(&mut self, order: &[u32]) {
        let named = |&row: &u32| self.originals.as_ref().map_or(row, |originals| originals[row as usize]);
        self.originals = Some(order.iter().map(named).collect());
    }
}
