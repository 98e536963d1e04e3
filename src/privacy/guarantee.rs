//! Guarantees: their order by strength, and their conditions on counts.
//!
//! Integers wherever the definition allows it.

use crate::microdata::ColumnAnnotations;
use crate::publication::{Divergence, Guarantee, Ratio, RhoMode, ValueDistance};

/// Relative tolerance for rounding in computed distances.
const DISTANCE_TOLERANCE: f64 = 1e-9;

/// Counts of the sensitive attribute over the whole table, in the order of the values.
#[derive(Clone, Debug)]
pub struct OverallCounts {
    counts: Vec<u64>,
    rows: u64,
    annotations: ColumnAnnotations,
}

impl OverallCounts {
    /// From the count of every value; values that do not occur are ignored.
    #[must_use]
    pub fn new(counts: Vec<u64>) -> Self {
        let rows = counts.iter().sum();
        Self { counts, rows, annotations: ColumnAnnotations::default() }
    }

    /// Adds the annotations of the values.
    #[must_use]
    pub fn on(self, annotations: ColumnAnnotations) -> Self {
        Self { annotations, ..self }
    }

    /// Number of rows of the table.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of rows with the most frequent value.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.counts.iter().copied().max().unwrap_or(0)
    }

    /// Number of values that occur.
    fn occurring(&self) -> usize {
        self.counts.iter().filter(|count| **count > 0).count()
    }

    /// The whole table as one bucket.
    #[must_use]
    pub fn as_bucket(&self) -> Vec<(u32, u64)> {
        let occurring = self.counts.iter().zip(0..).filter(|(count, _)| **count > 0);
        occurring.map(|(&count, code)| (code, count)).collect()
    }

    /// The counts of the values, in their order.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
}

/// Whether everything that satisfies `stronger` satisfies `weaker`.
///
/// This is the order in which rules imply each other and guards serve rules.
#[must_use]
pub fn implies(stronger: Guarantee, weaker: Guarantee) -> bool {
    use Guarantee as G;
    match (stronger, weaker) {
        (G::KAnonymity { k: many } | G::AlphaK { k: many, .. }, G::KAnonymity { k: few }) => many >= few,
        (G::LDiversity { l: strong }, G::LDiversity { l: weak } | G::DistinctLDiversity { l: weak })
        | (G::DistinctLDiversity { l: strong }, G::DistinctLDiversity { l: weak }) => strong >= weak,
        // the largest share is at most 1/l, so the entropy is at least ln l
        (G::LDiversity { l: strong }, G::EntropyLDiversity { l: weak }) => whole(strong) >= Some(weak),
        (G::EntropyLDiversity { l: strong }, G::EntropyLDiversity { l: weak }) => strong >= weak,
        // the values after the l - 1 most frequent ones have a share of at least 1/l, so at least that of the most
        // frequent one
        (G::LDiversity { l: strong }, G::RecursiveLDiversity { c, l: weak }) => c > Ratio::ONE && strong >= weak,
        (G::RecursiveLDiversity { c: strong, l: at }, G::RecursiveLDiversity { c: weak, l: of }) => {
            strong <= weak && at >= of
        }
        (G::LDiversity { l }, G::AlphaK { alpha, k }) => {
            u128::from(alpha.numerator()) * u128::from(l) >= u128::from(alpha.denominator()) && k <= l
        }
        (G::AlphaK { alpha: strong, k: many }, G::AlphaK { alpha: weak, k: few }) => strong <= weak && many >= few,
        // with other references, nothing follows
        _ if stronger.reference() != weaker.reference() => false,
        (G::TCloseness { t: strong, distance: a, .. }, G::TCloseness { t: weak, distance: b, .. }) => {
            a == b && strong <= weak
        }
        (G::Rho { rho1: a, rho2: strong, mode, .. }, G::Rho { rho1: b, rho2: weak, mode: other, .. }) => {
            a == b && mode == other && strong <= weak
        }
        (G::Delta { distance: a, b: strong, prior, .. }, G::Delta { distance: b, b: weak, prior: other, .. }) => {
            a == b && prior == other && strong <= weak
        }
        (G::Thresholds { digest, most, .. }, G::Thresholds { digest: other, least, .. }) => {
            digest == other || most <= least
        }
        // every value has a share of at most 1/l
        (G::Thresholds { most, .. }, G::LDiversity { l }) => is_part(most, l),
        (G::LDiversity { l }, G::Thresholds { least, .. }) => {
            u128::from(least.numerator()) * u128::from(l) >= u128::from(least.denominator())
        }
        _ => false,
    }
}

/// Whether a fraction is at most 1/l.
fn is_part(fraction: Ratio, l: u64) -> bool {
    u128::from(fraction.numerator()) * u128::from(l) <= u128::from(fraction.denominator())
}

/// The guarantees that no other one implies; of equal ones the first.
#[must_use]
pub fn strongest(guarantees: impl IntoIterator<Item = Guarantee>) -> Vec<Guarantee> {
    let mut kept: Vec<Guarantee> = Vec::new();
    for guarantee in guarantees {
        if !kept.iter().any(|&other| implies(other, guarantee)) {
            kept.retain(|&other| !implies(guarantee, other));
            kept.push(guarantee);
        }
    }
    kept
}

fn whole(number: u64) -> Option<Ratio> {
    Ratio::new(number, 1).ok()
}

/// The smallest number of pairwise distinct values that satisfies `guarantee` in every bucket.
///
/// `None` where it depends on the values.
#[must_use]
pub fn distinct_rows(guarantee: Guarantee) -> Option<u64> {
    match guarantee {
        Guarantee::KAnonymity { k } => Some(k),
        Guarantee::LDiversity { l } | Guarantee::DistinctLDiversity { l } => Some(l),
        Guarantee::EntropyLDiversity { l } => Some(l.ceil()),
        // 1 < c (L - l + 1)
        Guarantee::RecursiveLDiversity { c, l } => {
            c.denominator().checked_div(c.numerator())?.checked_add(l.checked_sub(1)?)?.checked_add(1)
        }
        Guarantee::AlphaK { alpha, k } => Some(k.max(alpha.denominator().div_ceil(alpha.numerator().max(1)))),
        Guarantee::TCloseness { .. }
        | Guarantee::Rho { .. }
        | Guarantee::Delta { .. }
        | Guarantee::Thresholds { .. } => None,
    }
}

/// A lower bound of the number of rows of a bucket that satisfies `guarantee`.
#[must_use]
pub fn fewest_rows(guarantee: Guarantee) -> u64 {
    match guarantee {
        Guarantee::KAnonymity { k } => k,
        Guarantee::LDiversity { l }
        | Guarantee::DistinctLDiversity { l }
        | Guarantee::RecursiveLDiversity { l, .. } => l,
        Guarantee::EntropyLDiversity { l } => l.ceil(),
        Guarantee::AlphaK { alpha, k } => k.max(alpha.denominator().div_ceil(alpha.numerator().max(1))),
        Guarantee::TCloseness { .. }
        | Guarantee::Rho { .. }
        | Guarantee::Delta { .. }
        | Guarantee::Thresholds { .. } => 1,
    }
}

/// Whether a bucket satisfies `guarantee`.
///
/// `bucket` holds each occurring value once with its count, values rising.
#[must_use]
pub fn holds(guarantee: Guarantee, bucket: &[(u32, u64)], population: &OverallCounts) -> bool {
    if population.annotations.excludable().is_empty() {
        return holds_as_it_is(guarantee, bucket, population);
    }
    holds_outside(guarantee, bucket, population)
}

/// Whether a bucket satisfies `guarantee` against an insider who excludes values.
///
/// See docs/security/threat-model.md#excludable.
///
/// The other values satisfy it by themselves, and no excludable value exceeds the bound within the whole bucket.
/// Distances and events concern all values together, and have no such condition.
fn holds_outside(guarantee: Guarantee, bucket: &[(u32, u64)], population: &OverallCounts) -> bool {
    let (excludable, informative): (Vec<_>, Vec<_>) =
        bucket.iter().partition(|(code, _)| population.annotations.is_excludable(*code));
    let size: u64 = bucket.iter().map(|(_, count)| count).sum();
    // at most 1/l, as a fraction
    let (of, most) = match guarantee {
        Guarantee::KAnonymity { .. } => (1, 1),
        Guarantee::LDiversity { l }
        | Guarantee::DistinctLDiversity { l }
        | Guarantee::RecursiveLDiversity { l, .. } => (l, 1),
        Guarantee::EntropyLDiversity { l } => (l.numerator(), l.denominator()),
        Guarantee::AlphaK { alpha, .. } => (alpha.denominator(), alpha.numerator()),
        Guarantee::TCloseness { .. }
        | Guarantee::Rho { .. }
        | Guarantee::Delta { .. }
        | Guarantee::Thresholds { .. } => return false,
    };
    let within = |count: u64| u128::from(count) * u128::from(of) <= u128::from(size) * u128::from(most);
    excludable.iter().all(|(_, count)| within(*count))
        && !informative.is_empty()
        && holds_as_it_is(guarantee, &informative, population)
}

fn holds_as_it_is(guarantee: Guarantee, bucket: &[(u32, u64)], population: &OverallCounts) -> bool {
    let bucket = SortedCounts { counts: bucket, size: bucket.iter().map(|(_, count)| count).sum(), population };
    match guarantee {
        Guarantee::KAnonymity { k } => bucket.size >= k,
        Guarantee::LDiversity { l } => u128::from(bucket.largest()) * u128::from(l) <= u128::from(bucket.size),
        Guarantee::DistinctLDiversity { l } => bucket.counts.len() as u64 >= l,
        Guarantee::EntropyLDiversity { l } => bucket.entropy() >= l.to_f64().ln() * (1.0 - DISTANCE_TOLERANCE),
        Guarantee::RecursiveLDiversity { c, l } => bucket.is_recursive(c, l),
        Guarantee::AlphaK { alpha, k } => bucket.is_share(bucket.largest(), alpha) && bucket.size >= k,
        Guarantee::Thresholds { digest, least, .. } => match population.annotations.limits(digest.bytes()) {
            Some(limits) => bucket.counts.iter().all(|&(code, count)| {
                // a code without a limit is in no bucket
                let limit = limits.get(code as usize);
                limit.is_some_and(|limit| {
                    u128::from(count) * limit.denominator <= limit.numerator * u128::from(bucket.size)
                })
            }),
            // unknown thresholds hold where even the smallest one is at least the largest share
            None => bucket.is_share(bucket.largest(), least),
        },
        Guarantee::TCloseness { t, distance: ValueDistance::Equal, .. } => bucket.total_variation(t),
        Guarantee::TCloseness { t, distance: ValueDistance::Ordered, .. } => bucket.ordered_distance(t),
        Guarantee::TCloseness { t, distance: ValueDistance::Hierarchical, .. } => bucket.hierarchical_distance(t),
        Guarantee::Rho { rho1, rho2, mode, .. } => match mode {
            RhoMode::Single => bucket.counts.iter().all(|&value| !bucket.breaches(&[value], rho1, rho2)),
            RhoMode::Exact => bucket.no_event_breaches(rho1, rho2),
            RhoMode::Amplification => bucket.is_amplified_within(rho1, rho2),
        },
        Guarantee::Delta { distance, b, .. } => {
            let within = |figure: f64| figure <= b.to_f64() * (1.0 + DISTANCE_TOLERANCE) + DISTANCE_TOLERANCE;
            match distance {
                Divergence::TotalVariation => bucket.total_variation(b),
                Divergence::Max => bucket.largest_difference(b),
                Divergence::Emd => bucket.ordered_distance(b),
                Divergence::Kl => within(bucket.kl()),
                Divergence::LogRatio => within(bucket.log_ratio()),
            }
        }
    }
}

/// Counts of a bucket, next to those of the whole table.
struct SortedCounts<'a> {
    /// Each occurring value with its count, values rising.
    counts: &'a [(u32, u64)],
    /// Number of rows.
    size: u64,
    population: &'a OverallCounts,
}

impl SortedCounts<'_> {
    fn largest(&self) -> u64 {
        self.counts.iter().map(|(_, count)| *count).max().unwrap_or(0)
    }

    /// Whether `count` is at most this share of the bucket.
    fn is_share(&self, count: u64, share: Ratio) -> bool {
        u128::from(count) * u128::from(share.denominator()) <= u128::from(share.numerator()) * u128::from(self.size)
    }

    /// In nats.
    ///
    /// Values rise, so that the rounded sum is deterministic.
    fn entropy(&self) -> f64 {
        let size = self.size as f64;
        self.counts.iter().map(|&(_, count)| count as f64 / size).map(|share| -share * share.ln()).sum()
    }

    fn is_recursive(&self, c: Ratio, l: u64) -> bool {
        let mut falling: Vec<u64> = self.counts.iter().map(|(_, count)| *count).collect();
        falling.sort_unstable_by(|a, b| b.cmp(a));
        let (Some(&most), Ok(rank)) = (falling.first(), usize::try_from(l)) else { return false };
        let Some(tail) = rank.checked_sub(1).and_then(|skipped| falling.get(skipped..)) else { return false };
        let tail: u64 = tail.iter().sum();
        u128::from(most) * u128::from(c.denominator()) < u128::from(c.numerator()) * u128::from(tail)
    }

    /// The difference of a value's shares in the bucket and in the table, times the product of both sizes.
    fn difference(&self, count: u64, overall: u64) -> i128 {
        i128::from(count) * i128::from(self.population.rows) - i128::from(overall) * i128::from(self.size)
    }

    /// The differences of all values, in their order.
    fn differences(&self) -> impl Iterator<Item = i128> {
        let mut next = self.counts.iter().peekable();
        self.population.counts.iter().zip(0u32..).map(move |(&overall, code)| {
            let count = next.next_if(|(of, _)| *of == code).map_or(0, |(_, count)| *count);
            self.difference(count, overall)
        })
    }

    /// Whether `sum`, in units of 1 / (size * rows * parts), is at most `bound`.
    ///
    /// False when the products overflow.
    fn is_within(&self, sum: u128, parts: u64, bound: Ratio) -> bool {
        let unit = u128::from(self.size).checked_mul(u128::from(self.population.rows));
        let unit = unit.and_then(|unit| unit.checked_mul(u128::from(parts)));
        let left = sum.checked_mul(u128::from(bound.denominator()));
        let right = unit.and_then(|unit| unit.checked_mul(u128::from(bound.numerator())));
        matches!((left, right), (Some(left), Some(right)) if left <= right)
    }

    fn total_variation(&self, bound: Ratio) -> bool {
        // only values of the bucket gain, and their total gain is the total loss of the others
        let gains =
            self.counts.iter().map(|&(code, count)| self.difference(count, self.population.counts[code as usize]));
        let gained: i128 = gains.filter(|gain| *gain > 0).sum();
        self.is_within(gained.unsigned_abs(), 1, bound)
    }

    fn largest_difference(&self, bound: Ratio) -> bool {
        let largest = self.differences().map(i128::unsigned_abs).max().unwrap_or(0);
        self.is_within(largest, 1, bound)
    }

    fn ordered_distance(&self, bound: Ratio) -> bool {
        // values that do not occur are ignored: they add no step to the order
        let occurring = self.population.occurring() as u64;
        if occurring < 2 {
            return true;
        }
        let (mut carried, mut work) = (0i128, 0u128);
        for (difference, overall) in self.differences().zip(&self.population.counts) {
            carried += difference;
            if *overall > 0 {
                work = work.saturating_add(carried.unsigned_abs());
            }
        }
        self.is_within(work, occurring - 1, bound)
    }

    /// Hierarchical earth mover's distance (docs/reference/guarantees.md#t-closeness).
    ///
    /// The distance of two leaves is the height of their lowest common ancestor. Excess and deficit below a node cancel
    /// there, and only the rest moves up. Without a taxonomy the distance is maximal.
    fn hierarchical_distance(&self, bound: Ratio) -> bool {
        let Some(taxonomy) = self.population.annotations.taxonomy() else { return false };
        let branches = taxonomy.branches();
        let mut extra = vec![0i128; branches.len()];
        for (difference, code) in self.differences().zip(0..) {
            extra[taxonomy.branch(code) as usize] += difference;
        }
        let (mut gained, mut lost, mut work) = (vec![0u128; branches.len()], vec![0u128; branches.len()], 0u128);
        // children follow their parents
        for (at, branch) in branches.iter().enumerate().rev() {
            let evened = gained[at].min(lost[at]);
            work = work.saturating_add(evened.saturating_mul(u128::from(branch.height)));
            let parent = branch.parent as usize;
            if parent != at {
                let side = if extra[at] > 0 { &mut gained } else { &mut lost };
                side[parent] += extra[at].unsigned_abs();
                extra[parent] += extra[at];
            }
        }
        self.is_within(work, u64::from(branches[0].height), bound)
    }

    /// Whether an event has a probability of at most `rho1` in the table and above `rho2` in the bucket.
    fn breaches(&self, event: &[(u32, u64)], rho1: Ratio, rho2: Ratio) -> bool {
        let inside: u64 = event.iter().map(|(_, count)| count).sum();
        let overall: u64 = event.iter().map(|(code, _)| self.population.counts[*code as usize]).sum();
        let unlikely = u128::from(overall) * u128::from(rho1.denominator())
            <= u128::from(rho1.numerator()) * u128::from(self.population.rows);
        unlikely && !self.is_share(inside, rho2)
    }

    /// Every event of values that occur in the bucket; other values only raise the prior of an event.
    fn no_event_breaches(&self, rho1: Ratio, rho2: Ratio) -> bool {
        let values = self.counts.len();
        if values > RhoMode::EXACT_VALUES {
            return false;
        }
        let mut event = Vec::with_capacity(values);
        (1u32..1 << values).all(|members| {
            event.clear();
            let chosen = self.counts.iter().enumerate().filter(|(index, _)| members >> index & 1 == 1);
            event.extend(chosen.map(|(_, value)| *value));
            !self.breaches(&event, rho1, rho2)
        })
    }

    fn is_amplified_within(&self, rho1: Ratio, rho2: Ratio) -> bool {
        // count/size <= (rho2/rho1) overall/rows
        let left = u128::from(self.population.rows) * u128::from(rho1.numerator()) * u128::from(rho2.denominator());
        let right = u128::from(self.size) * u128::from(rho2.numerator()) * u128::from(rho1.denominator());
        self.counts.iter().all(|&(code, count)| {
            let overall = u128::from(self.population.counts[code as usize]);
            matches!((left.checked_mul(u128::from(count)), right.checked_mul(overall)), (Some(a), Some(b)) if a <= b)
        })
    }

    /// Share of a value in the bucket, and that share over the one in the table.
    fn share_and_ratio(&self, code: u32, count: u64) -> (f64, f64) {
        let share = count as f64 / self.size as f64;
        (share, share / (self.population.counts[code as usize] as f64 / self.population.rows as f64))
    }

    fn kl(&self) -> f64 {
        let ratios = self.counts.iter().map(|&(code, count)| self.share_and_ratio(code, count));
        ratios.map(|(share, ratio)| share * ratio.ln()).sum()
    }

    fn log_ratio(&self) -> f64 {
        if self.counts.len() < self.population.occurring() {
            return f64::INFINITY;
        }
        let ratios = self.counts.iter().map(|&(code, count)| self.share_and_ratio(code, count).1);
        ratios.map(|ratio| ratio.ln().abs()).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests;
