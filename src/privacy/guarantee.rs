//! Guarantees: their order by strength, and their conditions on counts.
//!
//! Integers wherever the definition allows it.

use crate::microdata::ColumnAnnotations;
use crate::publication::{Divergence, Guarantee, Ratio, RhoMode, ValueDistance};

/// Relative tolerance for rounding in computed distances.
const DISTANCE_TOLERANCE: f64 = 1e-9;

/// Counts of the sensitive attribute over the whole table, in the order of the values.
#[derive(Clone, Debug)]
pub struct Population {
    counts: Vec<u64>,
    rows: u64,
    annotations: ColumnAnnotations,
}

impl Population {
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
        (G::TCloseness { t: strong, distance: a }, G::TCloseness { t: weak, distance: b }) => a == b && strong <= weak,
        (G::Rho { rho1: a, rho2: strong, mode }, G::Rho { rho1: b, rho2: weak, mode: other }) => {
            a == b && mode == other && strong <= weak
        }
        (G::Delta { distance: a, b: strong, prior }, G::Delta { distance: b, b: weak, prior: other }) => {
            a == b && prior == other && strong <= weak
        }
        (G::Thresholds { stated, most, .. }, G::Thresholds { stated: other, least, .. }) => {
            stated == other || most <= least
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
pub fn holds(guarantee: Guarantee, bucket: &[(u32, u64)], population: &Population) -> bool {
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
fn holds_outside(guarantee: Guarantee, bucket: &[(u32, u64)], population: &Population) -> bool {
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

fn holds_as_it_is(guarantee: Guarantee, bucket: &[(u32, u64)], population: &Population) -> bool {
    let size: u64 = bucket.iter().map(|(_, count)| count).sum();
    let largest = bucket.iter().map(|(_, count)| *count).max().unwrap_or(0);
    match guarantee {
        Guarantee::KAnonymity { k } => size >= k,
        Guarantee::LDiversity { l } => u128::from(largest) * u128::from(l) <= u128::from(size),
        Guarantee::DistinctLDiversity { l } => bucket.len() as u64 >= l,
        Guarantee::EntropyLDiversity { l } => entropy(bucket, size) >= l.to_f64().ln() * (1.0 - DISTANCE_TOLERANCE),
        Guarantee::RecursiveLDiversity { c, l } => is_recursive(bucket, c, l),
        Guarantee::AlphaK { alpha, k } => {
            let (share, of) = (u128::from(alpha.numerator()), u128::from(alpha.denominator()));
            u128::from(largest) * of <= share * u128::from(size) && size >= k
        }
        Guarantee::Thresholds { stated, least, .. } => match population.annotations.limits(stated.bytes()) {
            Some(limits) => bucket.iter().all(|&(code, count)| {
                let (part, of) = limits.get(code as usize).copied().unwrap_or((0, 1));
                u128::from(count) * of <= part * u128::from(size)
            }),
            // unknown thresholds hold where even the smallest one is at least the largest share
            None => {
                u128::from(largest) * u128::from(least.denominator())
                    <= u128::from(least.numerator()) * u128::from(size)
            }
        },
        Guarantee::TCloseness { t, distance: ValueDistance::Equal } => total_variation(bucket, size, population, t),
        Guarantee::TCloseness { t, distance: ValueDistance::Ordered } => ordered_distance(bucket, size, population, t),
        Guarantee::TCloseness { t, distance: ValueDistance::Hierarchical } => {
            hierarchical_distance(bucket, size, population, t)
        }
        Guarantee::Rho { rho1, rho2, mode } => match mode {
            RhoMode::Single => bucket.iter().all(|&value| !breaches(&[value], size, population, rho1, rho2)),
            RhoMode::Exact => no_event_breaches(bucket, size, population, rho1, rho2),
            RhoMode::Amplification => is_amplified_within(bucket, size, population, rho1, rho2),
        },
        Guarantee::Delta { distance, b, .. } => match distance {
            Divergence::TotalVariation => total_variation(bucket, size, population, b),
            Divergence::Max => largest_difference(bucket, size, population, b),
            Divergence::Emd => ordered_distance(bucket, size, population, b),
            Divergence::Kl => {
                kl(bucket, size, population) <= b.to_f64() * (1.0 + DISTANCE_TOLERANCE) + DISTANCE_TOLERANCE
            }
            Divergence::LogRatio => {
                log_ratio(bucket, size, population) <= b.to_f64() * (1.0 + DISTANCE_TOLERANCE) + DISTANCE_TOLERANCE
            }
        },
    }
}

/// In nats.
///
/// Values rise, so that the rounded sum is deterministic.
fn entropy(bucket: &[(u32, u64)], size: u64) -> f64 {
    let size = size as f64;
    bucket.iter().map(|&(_, count)| count as f64 / size).map(|share| -share * share.ln()).sum()
}

fn is_recursive(bucket: &[(u32, u64)], c: Ratio, l: u64) -> bool {
    let mut falling: Vec<u64> = bucket.iter().map(|(_, count)| *count).collect();
    falling.sort_unstable_by(|a, b| b.cmp(a));
    let (Some(&most), Ok(rank)) = (falling.first(), usize::try_from(l)) else { return false };
    let Some(tail) = rank.checked_sub(1).and_then(|skipped| falling.get(skipped..)) else { return false };
    let tail: u64 = tail.iter().sum();
    u128::from(most) * u128::from(c.denominator()) < u128::from(c.numerator()) * u128::from(tail)
}

/// The difference of a value's shares in the bucket and in the table, times the product of both sizes.
fn difference(count: u64, size: u64, overall: u64, rows: u64) -> i128 {
    i128::from(count) * i128::from(rows) - i128::from(overall) * i128::from(size)
}

/// The differences of all values, in their order.
fn differences<'a>(bucket: &'a [(u32, u64)], size: u64, population: &'a Population) -> impl Iterator<Item = i128> + 'a {
    let mut next = bucket.iter().peekable();
    population.counts.iter().zip(0u32..).map(move |(&overall, code)| {
        let count = next.next_if(|(of, _)| *of == code).map_or(0, |(_, count)| *count);
        difference(count, size, overall, population.rows)
    })
}

/// Whether `sum`, in units of 1 / (size * rows * parts), is at most `bound`.
///
/// False when the products overflow.
fn is_within(sum: u128, parts: u64, size: u64, population: &Population, bound: Ratio) -> bool {
    let unit = u128::from(size).checked_mul(u128::from(population.rows)).and_then(|u| u.checked_mul(u128::from(parts)));
    let left = sum.checked_mul(u128::from(bound.denominator()));
    let right = unit.and_then(|unit| unit.checked_mul(u128::from(bound.numerator())));
    matches!((left, right), (Some(left), Some(right)) if left <= right)
}

fn total_variation(bucket: &[(u32, u64)], size: u64, population: &Population, bound: Ratio) -> bool {
    // only values of the bucket gain, and their total gain is the total loss of the others
    let gained: i128 = bucket
        .iter()
        .map(|&(code, count)| difference(count, size, population.counts[code as usize], population.rows))
        .filter(|gain| *gain > 0)
        .sum();
    is_within(gained.unsigned_abs(), 1, size, population, bound)
}

fn largest_difference(bucket: &[(u32, u64)], size: u64, population: &Population, bound: Ratio) -> bool {
    let largest = differences(bucket, size, population).map(i128::unsigned_abs).max().unwrap_or(0);
    is_within(largest, 1, size, population, bound)
}

fn ordered_distance(bucket: &[(u32, u64)], size: u64, population: &Population, bound: Ratio) -> bool {
    // values that do not occur are ignored: they add no step to the order
    let occurring = population.counts.iter().filter(|count| **count > 0).count() as u64;
    if occurring < 2 {
        return true;
    }
    let (mut carried, mut work) = (0i128, 0u128);
    for (difference, overall) in differences(bucket, size, population).zip(&population.counts) {
        carried += difference;
        if *overall > 0 {
            work = work.saturating_add(carried.unsigned_abs());
        }
    }
    is_within(work, occurring - 1, size, population, bound)
}

/// Hierarchical earth mover's distance (docs/reference/guarantees.md#t-closeness).
///
/// The distance of two leaves is the height of their lowest common ancestor. Excess and deficit below a node cancel
/// there, and only the rest moves up. Without a taxonomy the distance is maximal.
fn hierarchical_distance(bucket: &[(u32, u64)], size: u64, population: &Population, bound: Ratio) -> bool {
    let Some(taxonomy) = population.annotations.taxonomy() else { return false };
    let branches = taxonomy.branches();
    let mut extra = vec![0i128; branches.len()];
    for (difference, code) in differences(bucket, size, population).zip(0..) {
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
    is_within(work, u64::from(branches[0].height), size, population, bound)
}

/// Whether some event has a probability of at most `rho1` in the table and above `rho2` in the bucket.
fn breaches(event: &[(u32, u64)], size: u64, population: &Population, rho1: Ratio, rho2: Ratio) -> bool {
    let inside: u64 = event.iter().map(|(_, count)| count).sum();
    let overall: u64 = event.iter().map(|(code, _)| population.counts[*code as usize]).sum();
    let unlikely = u128::from(overall) * u128::from(rho1.denominator())
        <= u128::from(rho1.numerator()) * u128::from(population.rows);
    unlikely && u128::from(inside) * u128::from(rho2.denominator()) > u128::from(rho2.numerator()) * u128::from(size)
}

/// Every event of values that occur in the bucket; other values only raise the prior of an event.
fn no_event_breaches(bucket: &[(u32, u64)], size: u64, population: &Population, rho1: Ratio, rho2: Ratio) -> bool {
    if bucket.len() > RhoMode::EXACT_VALUES {
        return false;
    }
    let mut event = Vec::with_capacity(bucket.len());
    (1u32..1 << bucket.len()).all(|members| {
        event.clear();
        event.extend(bucket.iter().enumerate().filter(|(index, _)| members >> index & 1 == 1).map(|(_, value)| *value));
        !breaches(&event, size, population, rho1, rho2)
    })
}

fn is_amplified_within(bucket: &[(u32, u64)], size: u64, population: &Population, rho1: Ratio, rho2: Ratio) -> bool {
    // count/size <= (rho2/rho1) overall/rows
    let left = u128::from(population.rows) * u128::from(rho1.numerator()) * u128::from(rho2.denominator());
    let right = u128::from(size) * u128::from(rho2.numerator()) * u128::from(rho1.denominator());
    bucket.iter().all(|&(code, count)| {
        let overall = u128::from(population.counts[code as usize]);
        matches!((left.checked_mul(u128::from(count)), right.checked_mul(overall)), (Some(a), Some(b)) if a <= b)
    })
}

fn kl(bucket: &[(u32, u64)], size: u64, population: &Population) -> f64 {
    let term = |&(code, count): &(u32, u64)| {
        let share = count as f64 / size as f64;
        let overall = population.counts[code as usize] as f64 / population.rows as f64;
        share * (share / overall).ln()
    };
    bucket.iter().map(term).sum()
}

fn log_ratio(bucket: &[(u32, u64)], size: u64, population: &Population) -> f64 {
    let occurring = population.counts.iter().filter(|count| **count > 0).count();
    if bucket.len() < occurring {
        return f64::INFINITY;
    }
    let term = |&(code, count): &(u32, u64)| {
        let overall = population.counts[code as usize] as f64 / population.rows as f64;
        (count as f64 / size as f64 / overall).ln().abs()
    };
    bucket.iter().map(term).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
