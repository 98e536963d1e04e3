//! Buckets of many sizes: two sizes, each divided again, or the rounded solution of a linear program.
//!
//! # Citations
//! - [Wang et al. 2012, section 4], MultiSizeBucketing.

use std::collections::BTreeMap;

use super::columns::{PatternAmount, RelaxedSolution, relax};
use super::filled::FilledBuckets;
use super::flow::{MAX_FILL_STEPS, fill};
use super::share::{ValueClass, ValueThreshold, kinds};
use super::sizes::{Pruning, TwoSizes, loss, two_sizes, work};
use crate::control::{Cancelled, Control};
use crate::publication::SizeCount;

/// Numbers of buckets of each kind that are split up, tried in turn, until the remaining rows fill whole buckets.
const SPLIT_BUCKETS_TRIED: [u64; 6] = [0, 1, 2, 4, 8, 16];
/// Largest number of steps of a repair.
const MAX_REPAIR_STEPS: u64 = 1 << 21;

/// Divides the rows of all values among buckets of two valid sizes. Values move in the given order.
#[must_use]
pub(super) fn divide(
    counts: &[u64],
    shares: &[ValueThreshold],
    two: TwoSizes,
    order: &[usize],
) -> (Vec<u64>, Vec<u64>) {
    let TwoSizes { first, second } = two;
    let room = |share: &ValueThreshold, class: SizeCount| share.most(class.size) * class.buckets;
    let mut smaller: Vec<u64> =
        counts.iter().zip(shares).map(|(&count, share)| count.min(room(share, first))).collect();
    let mut larger: Vec<u64> = counts.iter().zip(&smaller).map(|(all, smaller)| all - smaller).collect();
    let mut excess = smaller.iter().sum::<u64>() - first.rows();
    for &value in order {
        if excess == 0 {
            break;
        }
        let room = counts[value].min(room(&shares[value], second)) - larger[value];
        let moved = room.min(smaller[value]).min(excess);
        smaller[value] -= moved;
        larger[value] += moved;
        excess -= moved;
    }
    (smaller, larger)
}

/// Order in which values move if there is a choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoveOrder {
    /// The most frequent value first.
    Falling,
    /// By code.
    Index,
}

impl MoveOrder {
    /// Codes in this order.
    #[must_use]
    pub fn indices(self, counts: &[u64]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..counts.len()).collect();
        if self == Self::Falling {
            order.sort_by_key(|&value| std::cmp::Reverse(counts[value]));
        }
        order
    }
}

/// Fills the buckets of two sizes.
#[must_use]
pub(super) fn fill_two(counts: &[u64], shares: &[ValueThreshold], two: TwoSizes) -> Vec<FilledBuckets> {
    let (smaller, larger) = divide(counts, shares, two, &MoveOrder::Falling.indices(counts));
    let filled =
        [FilledBuckets { class: two.first, counts: smaller }, FilledBuckets { class: two.second, counts: larger }];
    filled.into_iter().filter(|filled| filled.class.buckets > 0).collect()
}

/// Search for buckets of many sizes.
pub struct MultiSizeSearch<'a> {
    /// Threshold of each code.
    pub shares: &'a [ValueThreshold],
    /// Smallest size of a bucket.
    pub m: u64,
    /// Largest size of a bucket.
    pub most: u64,
    /// Order in which values move.
    pub order: MoveOrder,
    /// Cancellation and progress of the job.
    pub control: &'a Control,
}

impl MultiSizeSearch<'_> {
    /// Buckets of sizes from `m` to `most` whose loss no division of one size into two can lower. `None` without buckets of at
    /// most two sizes.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn search(&self, counts: Vec<u64>) -> Result<Option<Vec<FilledBuckets>>, Cancelled> {
        let mut done = Vec::new();
        // values still to divide, with their current buckets; the last one is next
        let mut open: Vec<(Vec<u64>, Option<SizeCount>)> = vec![(counts, None)];
        while let Some((counts, current)) = open.pop() {
            let found = two_sizes(&kinds(&counts, self.shares), self.m, self.most, Pruning::Full, self.control)?;
            let better = found.filter(|two| current.is_none_or(|class| loss(&two.setting()) < loss(&[class])));
            match (better, current) {
                (None, None) => return Ok(None),
                (None, Some(class)) => done.push(FilledBuckets { class, counts }),
                (Some(two), _) => match two.setting()[..] {
                    [only] => open.push((counts, Some(only))),
                    _ => {
                        let (smaller, larger) = divide(&counts, self.shares, two, &self.order.indices(&counts));
                        open.push((larger, Some(two.second)));
                        open.push((smaller, Some(two.first)));
                    }
                },
            }
        }
        Ok(Some(done))
    }

    /// The better buckets of [`MultiSizeSearch::search`] and of the linear program, with the proved lower bound of the loss.
    ///
    /// They are repaired if their loss exceeds the bound by more than a hundredth.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn best(&self, counts: &[u64]) -> Result<(Option<Vec<FilledBuckets>>, Option<u64>), Cancelled> {
        let halves = self.search(counts.to_vec())?;
        let kinds = kinds(counts, self.shares);
        let relaxed = relax(&kinds, self.m, self.most, self.control)?;
        let bound = relaxed.as_ref().map(|relaxed| relaxed.lower_bound);
        let whole = match &relaxed {
            Some(relaxed) => self.whole(counts, &kinds, relaxed)?,
            None => None,
        };
        let best = halves.into_iter().chain(whole).min_by_key(|filled| FilledBuckets::loss(filled));
        let near = |best: &Vec<FilledBuckets>| {
            bound.is_some_and(|bound| 100 * u128::from(FilledBuckets::loss(best)) <= 101 * u128::from(bound))
        };
        Ok(match best {
            Some(best) if !near(&best) => (Some(self.mended(best)?), bound),
            best => (best, bound),
        })
    }

    /// Whole buckets of a fractional solution; the remaining rows are searched by themselves. `None` unless all can be filled.
    fn whole(
        &self,
        counts: &[u64],
        kinds: &[ValueClass],
        relaxed: &RelaxedSolution,
    ) -> Result<Option<Vec<FilledBuckets>>, Cancelled> {
        if relaxed.patterns.is_empty() {
            return Ok(None);
        }
        for broken in SPLIT_BUCKETS_TRIED {
            let mut setting: BTreeMap<u64, u64> = BTreeMap::new();
            let mut left: Vec<u64> = kinds.iter().map(|kind| kind.count * kind.values).collect();
            for PatternAmount { pattern, amount } in &relaxed.patterns {
                // tolerance for rounding errors below a whole number
                let wanted = ((amount + 1e-6).floor() as u64).saturating_sub(broken);
                let fits =
                    left.iter().zip(&pattern.held).filter(|(_, held)| **held > 0).map(|(left, held)| left / held);
                let number = wanted.min(fits.min().unwrap_or(0));
                left.iter_mut().zip(&pattern.held).for_each(|(left, held)| *left -= held * number);
                *setting.entry(pattern.size).or_default() += number;
            }
            // the values of a kind share the remaining rows
            let of_kind = |(&ValueClass { values, share, .. }, left): (&ValueClass, u64)| {
                (0..values).map(move |value| (left / values + u64::from(value < left % values), share))
            };
            let (left, shares): (Vec<u64>, Vec<ValueThreshold>) = kinds.iter().zip(left).flat_map(of_kind).unzip();
            if left.iter().any(|left| *left > 0) {
                let Some(rest) = (MultiSizeSearch { shares: &shares, ..*self }).search(left)? else { continue };
                rest.iter().for_each(|filled| *setting.entry(filled.class.size).or_default() += filled.class.buckets);
            }
            setting.retain(|_, buckets| *buckets > 0);
            if (kinds.len() * setting.len()) as u64 > MAX_FILL_STEPS {
                return Ok(None);
            }
            let setting: Vec<SizeCount> =
                setting.into_iter().map(|(size, buckets)| SizeCount { size, buckets }).collect();
            if let Some(filled) = fill(counts, self.shares, &setting, self.control)? {
                return Ok(Some(filled));
            }
        }
        Ok(None)
    }

    /// Divides the buckets of two sizes anew while that lowers the loss.
    fn mended(&self, mut filled: Vec<FilledBuckets>) -> Result<Vec<FilledBuckets>, Cancelled> {
        let mut steps = 0;
        'again: loop {
            for second in 1..filled.len() {
                for first in 0..second {
                    let pair = [filled[first].clone(), filled[second].clone()];
                    let both: Vec<u64> = pair[0].counts.iter().zip(&pair[1].counts).map(|(a, b)| a + b).collect();
                    steps += work(both.iter().filter(|count| **count > 0).count(), self.m, self.most);
                    if steps > MAX_REPAIR_STEPS {
                        return Ok(filled);
                    }
                    let anew = self.search(both)?.filter(|anew| FilledBuckets::loss(anew) < FilledBuckets::loss(&pair));
                    if let Some(anew) = anew {
                        filled.remove(second);
                        filled.remove(first);
                        filled.extend(anew);
                        continue 'again;
                    }
                }
            }
            return Ok(filled);
        }
    }
}
