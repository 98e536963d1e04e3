//! Valid buckets of one size, and of two, and the best of them.
//!
//! # Citations
//! - [Wang et al. 2012, section 4.3, Lemma 4.13 and Theorem 4.17]

use super::share::{ValueClass, rows};
use crate::control::{Cancelled, Control};

/// A size, and the number of its buckets.
pub type SizeCount = (u64, u64);

/// Loss of buckets: the sum of (size - 1)^2.
#[must_use]
pub fn loss(setting: &[SizeCount]) -> u64 {
    setting.iter().map(|&(size, buckets)| buckets * (size - 1) * (size - 1)).sum()
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
        [self.first, self.second].into_iter().filter(|(_, buckets)| *buckets > 0).collect()
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
pub(super) fn one_is_valid(kinds: &[ValueClass], (size, buckets): SizeCount) -> bool {
    u128::from(size) * u128::from(buckets) == u128::from(rows(kinds))
        && kinds.iter().all(|kind| kind.count <= kind.share.most(size) * buckets)
}

/// Whether the values fill buckets of two sizes [Wang et al. 2012, section 4.3, Theorem 4.17].
#[must_use]
pub fn two_are_valid(kinds: &[ValueClass], (s1, b1): SizeCount, (s2, b2): SizeCount) -> bool {
    let fits = |kind: &ValueClass| kind.share.most(s1) * b1 + kind.share.most(s2) * b2 >= kind.count;
    s1 * b1 + s2 * b2 == rows(kinds) && kinds.iter().all(fits) && fills(kinds, (s1, b1)) && fills(kinds, (s2, b2))
}

/// Whether all buckets of a size can be filled.
fn fills(kinds: &[ValueClass], (size, buckets): SizeCount) -> bool {
    let held: u64 = kinds.iter().map(|kind| (kind.share.most(size) * buckets).min(kind.count) * kind.values).sum();
    held >= size * buckets
}

/// All numbers of buckets of two sizes that hold a number of rows. Position p has `b1 - p * d1` and `b2 + p * d2` buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizePairs {
    sizes: (i128, i128),
    b: (i128, i128),
    d: (i128, i128),
    last: i128,
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
        Some(Self { sizes: (s1, s2), b: (b1, b2), d: (a2, a1), last: b1 / a2 })
    }

    /// Numbers of buckets at a position.
    #[must_use]
    pub const fn at(&self, position: i128) -> (u64, u64) {
        ((self.b.0 - position * self.d.0) as u64, (self.b.1 + position * self.d.1) as u64)
    }

    /// The last position of the pair.
    #[must_use]
    pub const fn last(&self) -> i128 {
        self.last
    }

    fn first_loss(&self) -> i128 {
        let square = |size: i128| (size - 1) * (size - 1);
        self.b.0 * square(self.sizes.0) + self.b.1 * square(self.sizes.1)
    }

    /// Increase of the loss from one position to the next.
    fn step(&self) -> i128 {
        let square = |size: i128| (size - 1) * (size - 1);
        self.d.1 * square(self.sizes.1) - self.d.0 * square(self.sizes.0)
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
        let (s1, s2) = (self.sizes.0 as u64, self.sizes.1 as u64);
        let (mut low, mut high) = (0, last);
        for kind in kinds {
            // the free capacity of a value is linear in the position
            let (q1, q2) = (i128::from(kind.share.most(s1)), i128::from(kind.share.most(s2)));
            let room = q1 * self.b.0 + q2 * self.b.1 - i128::from(kind.count);
            let slope = q2 * self.d.1 - q1 * self.d.0;
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
        let first = partition(low, high, |position| fills(kinds, (s1, self.at(position).0)));
        let end = partition(first, high, |position| !fills(kinds, (s2, self.at(position).1)));
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
pub(super) const MAX_SEARCH_STEPS: u64 = 1 << 32;

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
    let size = (m.max(1)..=most.min(rows))
        .find(|&size| rows.is_multiple_of(size) && one_is_valid(kinds, (size, rows / size)))?;
    Some(TwoSizes { first: (size, rows / size), second: (size + 1, 0) })
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
                        let (b1, b2) = pairs.at(position);
                        two_are_valid(kinds, (s1, b1), (s2, b2))
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
                let (b1, b2) = pairs.at(position);
                best = Some(TwoSizes { first: (s1, b1), second: (s2, b2) });
                least = Some(pairs.loss_at(position));
            }
        }
    }
    Ok(best)
}
