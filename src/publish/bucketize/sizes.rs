//! Valid buckets of one size, and of two, and the best of them.
//!
//! # Citations
//! - [Wang et al. 2012, section 4.3, Lemma 4.13 and Theorem 4.17]

use super::share::{ValueClass, rows};
use crate::control::{Cancelled, Control};
use crate::publication::SizeCount;

/// Loss of buckets: the sum of (size - 1)^2.
#[must_use]
pub fn loss(setting: &[SizeCount]) -> u64 {
    setting.iter().map(|class| class.buckets * (class.size - 1) * (class.size - 1)).sum()
}

/// Two sizes with their numbers of buckets, the smaller size first; one number may be 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TwoSizes {
    /// Size and number of the smaller buckets.
    pub first: SizeCount,
    /// Size and number of the larger buckets.
    pub second: SizeCount,
}

impl TwoSizes {
    /// The sizes that have buckets.
    #[must_use]
    pub fn setting(self) -> Vec<SizeCount> {
        [self.first, self.second].into_iter().filter(|class| class.buckets > 0).collect()
    }
}

/// Pruning of the search, which does not change its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pruning {
    /// Every position of every pair of sizes is examined.
    None,
    /// Positions above the best loss are skipped.
    Loss,
    /// Invalid positions are skipped, too: the valid ones are an interval.
    Full,
}

/// Whether the values fill `buckets` buckets of `size` rows [Wang et al. 2012, section 4.3, Lemma 4.13].
#[must_use]
pub(super) fn one_is_valid(kinds: &[ValueClass], class: SizeCount) -> bool {
    class.wide_rows() == u128::from(rows(kinds))
        && kinds.iter().all(|kind| kind.count <= kind.share.most(class.size) * class.buckets)
}

/// Whether the values fill buckets of two sizes [Wang et al. 2012, section 4.3, Theorem 4.17].
#[must_use]
pub fn two_are_valid(kinds: &[ValueClass], first: SizeCount, second: SizeCount) -> bool {
    let room = |kind: &ValueClass, class: SizeCount| kind.share.most(class.size) * class.buckets;
    first.rows() + second.rows() == rows(kinds)
        && kinds.iter().all(|kind| room(kind, first) + room(kind, second) >= kind.count)
        && fills(kinds, first)
        && fills(kinds, second)
}

/// Whether all buckets of a size can be filled.
fn fills(kinds: &[ValueClass], class: SizeCount) -> bool {
    let most = |kind: &ValueClass| (kind.share.most(class.size) * class.buckets).min(kind.count) * kind.values;
    kinds.iter().map(most).sum::<u64>() >= class.rows()
}

/// All numbers of buckets of two sizes that hold a number of rows, by position.
///
/// From one position to the next, buckets of the smaller size become fewer and those of the larger size more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizePairs {
    smaller: PairedSize,
    larger: PairedSize,
    last: i128,
}

/// One size of [`SizePairs`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PairedSize {
    size: i128,
    /// Number of buckets at the first position.
    buckets: i128,
    /// Difference of the numbers at two neighbouring positions.
    step: i128,
}

impl PairedSize {
    /// Loss of one bucket.
    const fn loss(self) -> i128 {
        (self.size - 1) * (self.size - 1)
    }
}

impl SizePairs {
    /// Positions of two sizes, the smaller first; `None` if there are none.
    #[must_use]
    pub fn new(rows: u64, s1: u64, s2: u64) -> Option<Self> {
        let (n, s1, s2) = (i128::from(rows), i128::from(s1), i128::from(s2));
        let (g, inverse) = gcd(s2, s1);
        if n % g != 0 {
            return None;
        }
        let (a1, a2) = (s1 / g, s2 / g);
        // g = s2 * inverse modulo s1
        let b2 = ((n / g) % a1 * inverse.rem_euclid(a1)) % a1;
        let b1 = n - s2 * b2;
        if b1 < 0 {
            return None;
        }
        let b1 = b1 / s1;
        let smaller = PairedSize { size: s1, buckets: b1, step: a2 };
        Some(Self { smaller, larger: PairedSize { size: s2, buckets: b2, step: a1 }, last: b1 / a2 })
    }

    /// Numbers of buckets at a position.
    #[must_use]
    pub const fn at(&self, position: i128) -> TwoSizes {
        let Self { smaller, larger, .. } = *self;
        TwoSizes {
            first: SizeCount::new(smaller.size as u64, (smaller.buckets - position * smaller.step) as u64),
            second: SizeCount::new(larger.size as u64, (larger.buckets + position * larger.step) as u64),
        }
    }

    /// The last position of the pair.
    #[must_use]
    pub const fn last(&self) -> i128 {
        self.last
    }

    const fn first_loss(&self) -> i128 {
        self.smaller.buckets * self.smaller.loss() + self.larger.buckets * self.larger.loss()
    }

    /// Increase of the loss from one position to the next.
    const fn step(&self) -> i128 {
        self.larger.step * self.larger.loss() - self.smaller.step * self.smaller.loss()
    }

    /// The last position with a loss below `best`.
    fn last_below(&self, best: Option<u64>) -> i128 {
        let Some(best) = best.map(i128::from) else { return self.last };
        let first = self.first_loss();
        if first >= best { -1 } else { self.last.min((best - 1 - first) / self.step()) }
    }

    fn loss_at(&self, position: i128) -> u64 {
        (self.first_loss() + position * self.step()) as u64
    }

    /// First and last valid position up to `last`.
    #[must_use]
    pub fn valid(&self, kinds: &[ValueClass], last: i128) -> Option<(i128, i128)> {
        let (s1, s2) = (self.smaller.size as u64, self.larger.size as u64);
        let (mut low, mut high) = (0, last);
        for kind in kinds {
            // the free capacity of a value is linear in the position
            let (q1, q2) = (i128::from(kind.share.most(s1)), i128::from(kind.share.most(s2)));
            let room = q1 * self.smaller.buckets + q2 * self.larger.buckets - i128::from(kind.count);
            let slope = q2 * self.larger.step - q1 * self.smaller.step;
            match slope.signum() {
                1 if room < 0 => low = low.max((-room + slope - 1) / slope),
                -1 if room >= 0 => high = high.min(room / -slope),
                0 | -1 if room < 0 => return None,
                _ => {}
            }
            if low > high {
                return None;
            }
        }
        // more buckets of a size are harder to fill
        let first = partition(low, high, |position| fills(kinds, self.at(position).first));
        let end = partition(first, high, |position| !fills(kinds, self.at(position).second));
        (first < end).then_some((first, end - 1))
    }
}

/// The first position from `low` to `high` at which a monotone predicate holds; `high + 1` if there is none.
fn partition(low: i128, high: i128, holds: impl Fn(i128) -> bool) -> i128 {
    let (mut low, mut end) = (low, high + 1);
    while low < end {
        let middle = low + (end - low) / 2;
        if holds(middle) { end = middle } else { low = middle + 1 }
    }
    low
}

/// Greatest common divisor, and the inverse factor of the first number modulo the second.
fn gcd(a: i128, b: i128) -> (i128, i128) {
    let (mut r, mut s) = ((a, b), (1, 0));
    while r.1 != 0 {
        let q = r.0 / r.1;
        r = (r.1, r.0 - q * r.1);
        s = (s.1, s.0 - q * s.1);
    }
    (r.0, s.0)
}

/// Largest number of steps of a search for sizes.
pub(super) const MAX_SEARCH_STEPS: u64 = 1 << 29;

/// Number of steps of a search over pairs of sizes from `m` to `most`.
#[must_use]
pub(super) const fn work(kinds: usize, m: u64, most: u64) -> u64 {
    let sizes = most.saturating_add(1).saturating_sub(m);
    sizes.saturating_mul(sizes).saturating_mul(kinds as u64)
}

/// The buckets of one size from `m` to `most` with the least loss.
#[must_use]
pub fn one_size(kinds: &[ValueClass], m: u64, most: u64) -> Option<TwoSizes> {
    let rows = rows(kinds);
    // the loss rises with the size
    let mut classes = (m.max(1)..=most.min(rows))
        .filter(|&size| rows.is_multiple_of(size))
        .map(|size| SizeCount { size, buckets: rows / size });
    let first = classes.find(|&class| one_is_valid(kinds, class))?;
    Some(TwoSizes { first, second: SizeCount::new(first.size + 1, 0) })
}

/// The buckets of at most two sizes from `m` to `most` with the least loss; the first of equal ones.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub fn two_sizes(
    kinds: &[ValueClass],
    m: u64,
    most: u64,
    pruning: Pruning,
    control: &Control,
) -> Result<Option<TwoSizes>, Cancelled> {
    let rows = rows(kinds);
    let mut best = one_size(kinds, m, most);
    let mut least = best.map(|two| loss(&two.setting()));
    // no bucket is larger than the table
    for s1 in m.max(1)..most.min(rows.max(1)) {
        for s2 in s1 + 1..=most {
            control.check()?;
            let Some(pairs) = SizePairs::new(rows, s1, s2) else { continue };
            let last = if pruning == Pruning::None { pairs.last() } else { pairs.last_below(least) };
            let found = match pruning {
                Pruning::Full if last < 0 => None,
                Pruning::Full => pairs.valid(kinds, last).map(|(first, _)| first),
                Pruning::Loss | Pruning::None => {
                    let valid = |&position: &i128| {
                        let two = pairs.at(position);
                        two_are_valid(kinds, two.first, two.second)
                    };
                    // without pruning, positions after the first valid one are examined, too
                    let mut valid: Box<dyn Iterator<Item = i128>> = Box::new((0..=last).filter(valid));
                    let first = valid.next();
                    if pruning == Pruning::None {
                        valid.for_each(drop);
                    }
                    first
                }
            };
            if let Some(position) = found.filter(|&position| least.is_none_or(|least| pairs.loss_at(position) < least))
            {
                best = Some(pairs.at(position));
                least = Some(pairs.loss_at(position));
            }
        }
    }
    Ok(best)
}
