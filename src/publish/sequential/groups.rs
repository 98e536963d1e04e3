//! Groups of a join by X, with their Y values: the source of measures, updated by changes.

use std::collections::BTreeMap;

use ahash::RandomState;
use hashbrown::HashMap;

use super::GroupMeasure;
use super::fixed::{JoinedEarlier, SensitiveMask};
use super::share::MeasureValue;

/// An X value: its number in the new release, and in the earlier ones.
pub(super) type XKey = (u32, u32);

/// A Y value: its number in the new release and in the earlier ones, and the block of the new release if Y holds its key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct YKey {
    pub(super) new: u32,
    pub(super) earlier: u32,
    pub(super) block: u32,
}

/// Change of the number of tuples of an X and Y value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct TupleChange {
    pub(super) x: XKey,
    pub(super) y: YKey,
    pub(super) tuples: i128,
}

/// Largest number of pending changes before they are summed.
const MAX_PENDING_CHANGES: usize = 1 << 20;

/// Changes that are applied together.
#[derive(Default)]
pub(super) struct ChangeBatch {
    changes: Vec<TupleChange>,
    summed: usize,
}

impl ChangeBatch {
    pub(super) fn push(&mut self, change: TupleChange) {
        self.changes.push(change);
        if self.changes.len() > 2 * self.summed + MAX_PENDING_CHANGES {
            self.sum();
        }
    }

    /// Sums the changes of each value, in order.
    pub(super) fn sum(&mut self) {
        self.changes.sort_unstable();
        self.changes.dedup_by(|next, before| {
            let same = (next.x, next.y) == (before.x, before.y);
            before.tuples += if same { next.tuples } else { 0 };
            same
        });
        self.changes.retain(|change| change.tuples != 0);
        self.summed = self.changes.len();
    }

    /// Changes by X value.
    fn by_x(&self) -> impl Iterator<Item = &[TupleChange]> {
        self.changes.chunk_by(|a, b| a.x == b.x)
    }
}

/// Weights and sensitive values of Y values.
pub(super) struct YIndex<'a> {
    pub(super) measure: &'a GroupMeasure,
    pub(super) fixed: &'a JoinedEarlier,
    /// Of the values in the new release, by number.
    pub(super) new_meets: &'a [SensitiveMask],
    /// Number of rows of each block of the new release.
    pub(super) block_rows: &'a [u64],
}

impl YIndex<'_> {
    /// Number of distinct values that a Y value stands for.
    fn weight(&self, y: YKey) -> u128 {
        let rows = if y.block == NO_BLOCK { 1 } else { self.block_rows[y.block as usize] };
        u128::from(rows) * self.fixed.y_weights[y.earlier as usize]
    }

    fn is_sensitive(&self, y: YKey) -> bool {
        let GroupMeasure::Linkability { sensitive: Some(_), .. } = self.measure else { return true };
        let (new, earlier) = (&self.new_meets[y.new as usize], &self.fixed.y_meets[y.earlier as usize]);
        new.iter().zip(earlier).any(|(new, earlier)| new & earlier != 0)
    }
}

/// Block of a Y value without the key of the new release.
pub(super) const NO_BLOCK: u32 = u32::MAX;

/// Measure of one group, value by value.
#[derive(Default)]
pub(super) struct MeasureTally {
    tuples: u128,
    distinct: u128,
    /// Tuples of the most frequent sensitive value.
    most: u128,
}

impl MeasureTally {
    fn add(&mut self, y: YKey, tuples: u128, lexicon: &YIndex<'_>) {
        self.count(y, lexicon.weight(y), tuples, lexicon);
    }

    /// Adds a Y value that stands for `weight` distinct ones.
    pub(super) fn count(&mut self, y: YKey, weight: u128, tuples: u128, lexicon: &YIndex<'_>) {
        self.tuples += tuples;
        self.distinct += weight;
        if matches!(lexicon.measure, GroupMeasure::Linkability { .. }) && lexicon.is_sensitive(y) {
            // equal rows have equally many tuples each
            self.most = self.most.max(tuples / weight);
        }
    }

    /// The measure; `None` without tuples.
    pub(super) fn level(&self, measure: &GroupMeasure) -> Option<MeasureValue> {
        (self.tuples > 0).then(|| match measure {
            GroupMeasure::Anonymity { .. } => MeasureValue::number(self.distinct),
            GroupMeasure::Linkability { .. } => MeasureValue { count: self.most, of: self.tuples },
        })
    }
}

struct XGroup {
    /// Y values, rising, with their tuples.
    values: Vec<(YKey, u128)>,
    level: MeasureValue,
}

/// The groups of a join.
#[derive(Default)]
pub(super) struct XGroups {
    groups: HashMap<XKey, XGroup, RandomState>,
    /// Number of groups at each level of the measure.
    levels: BTreeMap<MeasureValue, usize>,
}

impl XGroups {
    /// The worst measure of all groups; `None` without tuples.
    pub(super) fn level(&self, measure: &GroupMeasure) -> Option<MeasureValue> {
        measure.worst(self.levels.keys().copied())
    }

    /// The worst measure without some groups; `None` without tuples.
    pub(super) fn level_without(
        &self,
        gone: &BTreeMap<MeasureValue, usize>,
        measure: &GroupMeasure,
    ) -> Option<MeasureValue> {
        let stays = |level: &&MeasureValue| self.levels.get(level) != gone.get(level);
        match measure {
            GroupMeasure::Anonymity { .. } => self.levels.keys().find(stays).copied(),
            GroupMeasure::Linkability { .. } => self.levels.keys().rev().find(stays).copied(),
        }
    }

    /// Applies changes.
    pub(super) fn apply(&mut self, changes: &ChangeBatch, lexicon: &YIndex<'_>) {
        for changes in changes.by_x() {
            let x = changes[0].x;
            let before = self.groups.remove(&x);
            if let Some(before) = &before
                && let Some(count) = self.levels.get_mut(&before.level)
            {
                *count -= 1;
                if *count == 0 {
                    self.levels.remove(&before.level);
                }
            }
            let mut tally = MeasureTally::default();
            let mut values = Vec::new();
            merge(before.as_ref().map_or(&[], |group| &group.values), changes, |y, tuples| {
                tally.add(y, tuples, lexicon);
                values.push((y, tuples));
            });
            if let Some(level) = tally.level(lexicon.measure) {
                *self.levels.entry(level).or_default() += 1;
                self.groups.insert(x, XGroup { values, level });
            }
        }
    }

    /// Number of tuples of the join.
    #[cfg(test)]
    pub(super) fn tuples(&self) -> u128 {
        self.groups.values().flat_map(|group| &group.values).map(|(_, tuples)| tuples).sum()
    }
}

/// Y values of a group after changes, in order, without those that vanish.
fn merge(values: &[(YKey, u128)], changes: &[TupleChange], mut each: impl FnMut(YKey, u128)) {
    let mut changes = changes.iter().peekable();
    for &(y, tuples) in values {
        while let Some(new) = changes.next_if(|change| change.y < y) {
            each(new.y, new.tuples.unsigned_abs());
        }
        let change = changes.next_if(|change| change.y == y).map_or(0, |change| change.tuples);
        let tuples = tuples.saturating_add_signed(change);
        if tuples > 0 {
            each(y, tuples);
        }
    }
    // a new value has positive tuples only
    changes.for_each(|new| each(new.y, new.tuples.unsigned_abs()));
}

impl GroupMeasure {
    /// The worst of several levels.
    pub(super) fn worst(&self, levels: impl IntoIterator<Item = MeasureValue>) -> Option<MeasureValue> {
        match self {
            Self::Anonymity { .. } => levels.into_iter().min(),
            Self::Linkability { .. } => levels.into_iter().max(),
        }
    }

    /// Whether the bound allows a level.
    pub(super) fn allows(&self, level: MeasureValue) -> bool {
        match self {
            Self::Anonymity { k } => level >= MeasureValue::number(u128::from(*k)),
            Self::Linkability { h, .. } => {
                level <= MeasureValue { count: u128::from(h.numerator()), of: u128::from(h.denominator()) }
            }
        }
    }

    /// Deterioration of a level, at least 0, in records or in shares.
    pub(super) fn loss(&self, before: MeasureValue, after: MeasureValue) -> f64 {
        if before == after {
            return 0.0;
        }
        let loss = match self {
            Self::Anonymity { .. } => before.to_f64() - after.to_f64(),
            Self::Linkability { .. } => after.to_f64() - before.to_f64(),
        };
        loss.max(0.0)
    }
}

impl JoinedEarlier {
    /// The measure of earlier releases by themselves; `None` without tuples.
    pub(super) fn level(&self, measure: &GroupMeasure) -> Option<MeasureValue> {
        let lexicon = YIndex {
            measure,
            fixed: self,
            new_meets: &[super::fixed::meets(measure, std::iter::empty())],
            block_rows: &[],
        };
        let mut changes = ChangeBatch::default();
        for block in 0..self.len() {
            let y = YKey { new: 0, earlier: self.y[block], block: NO_BLOCK };
            // fewer tuples than the product of all rows, which was checked
            changes.push(TupleChange { x: (0, self.x[block]), y, tuples: self.weights[block] as i128 });
        }
        changes.sum();
        let mut groups = XGroups::default();
        groups.apply(&changes, &lexicon);
        groups.level(measure)
    }
}
