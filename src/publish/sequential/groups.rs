//! Rows of a join that are alike on X, with their values on Y: what the measures are read from, kept up to date by changes.

use std::collections::BTreeMap;

use ahash::RandomState;
use hashbrown::HashMap;

use super::Measure;
use super::fixed::{Fixed, Meets};
use super::share::Share;

/// Values on X: the number of what the new release tells, and of what earlier ones tell.
pub(super) type X = (u32, u32);

/// Values on Y: the number of what the new release tells, of what earlier ones tell, and the block of the new release, where its
/// rows are told apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Y {
    pub(super) new: u32,
    pub(super) earlier: u32,
    pub(super) block: u32,
}

/// So many tuples more, or less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Change {
    pub(super) x: X,
    pub(super) y: Y,
    pub(super) tuples: i128,
}

/// Changes beyond so many are summed up before more are taken.
const ROOM: usize = 1 << 20;

/// Changes that are made together.
#[derive(Default)]
pub(super) struct Changes {
    changes: Vec<Change>,
    summed: usize,
}

impl Changes {
    pub(super) fn push(&mut self, change: Change) {
        self.changes.push(change);
        if self.changes.len() > 2 * self.summed + ROOM {
            self.sum();
        }
    }

    /// Leaves one change for every value, in order.
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

    /// By value on X.
    fn by_x(&self) -> impl Iterator<Item = &[Change]> {
        self.changes.chunk_by(|a, b| a.x == b.x)
    }
}

/// What a group needs to know of values on Y.
pub(super) struct Lexicon<'a> {
    pub(super) measure: &'a Measure,
    pub(super) fixed: &'a Fixed,
    /// By number of what the new release tells.
    pub(super) new_meets: &'a [Meets],
    /// The rows of each block of the new release.
    pub(super) block_rows: &'a [u64],
}

impl Lexicon<'_> {
    /// For how many different values one stands.
    fn weight(&self, y: Y) -> u128 {
        let rows = if y.block == NO_BLOCK { 1 } else { self.block_rows[y.block as usize] };
        u128::from(rows) * self.fixed.y_weights[y.earlier as usize]
    }

    fn is_sensitive(&self, y: Y) -> bool {
        let Measure::Linkability { sensitive: Some(_), .. } = self.measure else { return true };
        let (new, earlier) = (&self.new_meets[y.new as usize], &self.fixed.y_meets[y.earlier as usize]);
        new.iter().zip(earlier).any(|(new, earlier)| new & earlier != 0)
    }
}

/// The block of a value on Y, where the rows of the new release are not told apart.
pub(super) const NO_BLOCK: u32 = u32::MAX;

/// The measure of one group, as its values come in.
#[derive(Default)]
pub(super) struct Tally {
    tuples: u128,
    distinct: u128,
    /// Tuples of the most frequent sensitive value.
    most: u128,
}

impl Tally {
    fn add(&mut self, y: Y, tuples: u128, lexicon: &Lexicon<'_>) {
        self.count(y, lexicon.weight(y), tuples, lexicon);
    }

    /// Counts a value that stands for `weight` different ones.
    pub(super) fn count(&mut self, y: Y, weight: u128, tuples: u128, lexicon: &Lexicon<'_>) {
        self.tuples += tuples;
        self.distinct += weight;
        if matches!(lexicon.measure, Measure::Linkability { .. }) && lexicon.is_sensitive(y) {
            // rows that are alike have equally many tuples each
            self.most = self.most.max(tuples / weight);
        }
    }

    /// `None` of no tuples.
    pub(super) fn level(&self, measure: &Measure) -> Option<Share> {
        (self.tuples > 0).then(|| match measure {
            Measure::Anonymity { .. } => Share::number(self.distinct),
            Measure::Linkability { .. } => Share { count: self.most, of: self.tuples },
        })
    }
}

struct Group {
    /// Values on Y, rising, with their tuples.
    values: Vec<(Y, u128)>,
    level: Share,
}

/// The groups of a join.
#[derive(Default)]
pub(super) struct Groups {
    groups: HashMap<X, Group, RandomState>,
    /// How many groups there are of each level.
    levels: BTreeMap<Share, usize>,
}

impl Groups {
    /// The measure of the whole; `None` of no tuples.
    pub(super) fn level(&self, measure: &Measure) -> Option<Share> {
        measure.worst(self.levels.keys().copied())
    }

    /// The measure of the whole without so many groups of some levels; `None` of no tuples.
    pub(super) fn level_without(&self, gone: &BTreeMap<Share, usize>, measure: &Measure) -> Option<Share> {
        let stays = |level: &&Share| self.levels.get(level) != gone.get(level);
        match measure {
            Measure::Anonymity { .. } => self.levels.keys().find(stays).copied(),
            Measure::Linkability { .. } => self.levels.keys().rev().find(stays).copied(),
        }
    }

    /// Makes changes.
    pub(super) fn apply(&mut self, changes: &Changes, lexicon: &Lexicon<'_>) {
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
            let mut tally = Tally::default();
            let mut values = Vec::new();
            merge(before.as_ref().map_or(&[], |group| &group.values), changes, |y, tuples| {
                tally.add(y, tuples, lexicon);
                values.push((y, tuples));
            });
            if let Some(level) = tally.level(lexicon.measure) {
                *self.levels.entry(level).or_default() += 1;
                self.groups.insert(x, Group { values, level });
            }
        }
    }

    /// The tuples of the join.
    #[cfg(test)]
    pub(super) fn tuples(&self) -> u128 {
        self.groups.values().flat_map(|group| &group.values).map(|(_, tuples)| tuples).sum()
    }
}

/// The values of a group after changes, in order, without those that are gone.
fn merge(values: &[(Y, u128)], changes: &[Change], mut each: impl FnMut(Y, u128)) {
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
    // what was not there only grows
    changes.for_each(|new| each(new.y, new.tuples.unsigned_abs()));
}

impl Measure {
    /// The worst of several levels.
    pub(super) fn worst(&self, levels: impl IntoIterator<Item = Share>) -> Option<Share> {
        match self {
            Self::Anonymity { .. } => levels.into_iter().min(),
            Self::Linkability { .. } => levels.into_iter().max(),
        }
    }

    /// Whether a level is allowed.
    pub(super) fn allows(&self, level: Share) -> bool {
        match self {
            Self::Anonymity { k } => level >= Share::number(u128::from(*k)),
            Self::Linkability { h, .. } => {
                level <= Share { count: u128::from(h.numerator()), of: u128::from(h.denominator()) }
            }
        }
    }

    /// How much worse a level got, and never less than nothing; in records, or in shares.
    pub(super) fn loss(&self, before: Share, after: Share) -> f64 {
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

impl Fixed {
    /// The measure of earlier releases by themselves; `None` of no tuples.
    pub(super) fn level(&self, measure: &Measure) -> Option<Share> {
        let lexicon = Lexicon {
            measure,
            fixed: self,
            new_meets: &[super::fixed::meets(measure, std::iter::empty())],
            block_rows: &[],
        };
        let mut changes = Changes::default();
        for block in 0..self.len() {
            let y = Y { new: 0, earlier: self.y[block], block: NO_BLOCK };
            // fewer tuples than the product of all rows, which was checked
            changes.push(Change { x: (0, self.x[block]), y, tuples: self.weights[block] as i128 });
        }
        changes.sum();
        let mut groups = Groups::default();
        groups.apply(&changes, &lexicon);
        groups.level(measure)
    }
}
