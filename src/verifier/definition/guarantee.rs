//! Guarantees by definition: their conditions on a bucket, and their implications.
//!
//! # Citations
//! docs/reference/guarantees.md#order-of-guarantees

use std::sync::Arc;

use super::fraction::Distance;
use super::share::ShareOfRows;
use super::taxonomy::{DeclaredValues, TaxonomyPaths};
use super::thresholds::ThresholdBounds;
use crate::publication::{Divergence, Guarantee, Ratio, RhoMode, ThresholdsDigest, ValueDistance};

/// Tolerance for rounded logarithms, relative.
const LOG_TOLERANCE: f64 = 1e-9;

/// Counts of a bucket and of the whole column, by value in order, and both totals.
pub(in crate::verifier) struct BucketShares {
    values: Vec<(u64, u64)>,
    /// Whether an insider can exclude the value, by value.
    excluded: Vec<bool>,
    /// Codes of the values, and their paths in the taxonomy.
    codes: Vec<u32>,
    paths: Option<Arc<TaxonomyPaths>>,
    bounds: Vec<Arc<ThresholdBounds>>,
    size: u64,
    rows: u64,
}

impl BucketShares {
    /// A bucket with `counts` by code, in a column with `overall` counts by code.
    pub(in crate::verifier) fn new(counts: &[(u32, u64)], overall: &[u64], declared: &DeclaredValues) -> Self {
        let mut values: Vec<(u64, u64)> = overall.iter().map(|&rows| (0, rows)).collect();
        for &(code, count) in counts {
            values[code as usize].0 = count;
        }
        let all = values.into_iter().zip(0u32..);
        // values that do not occur in the column are not in its domain
        let occurring = all.filter(|((_, rows), _)| *rows > 0);
        let (values, codes): (Vec<(u64, u64)>, Vec<u32>) = occurring.unzip();
        let excluded = codes.iter().map(|code| declared.excluded.binary_search(code).is_ok()).collect();
        let size = values.iter().map(|(count, _)| count).sum();
        let rows = values.iter().map(|(_, rows)| rows).sum();
        let (paths, bounds) = (declared.paths.clone(), declared.bounds.clone());
        Self { values, excluded, codes, paths, bounds, size, rows }
    }

    /// The bucket and the column without the excluded values.
    pub(in crate::verifier) fn left(&self) -> Self {
        let values = self.values.iter().zip(&self.excluded).filter(|(_, out)| !**out).map(|(value, _)| *value);
        let values: Vec<(u64, u64)> = values.collect();
        let size = values.iter().map(|(count, _)| count).sum();
        let rows = values.iter().map(|(_, rows)| rows).sum();
        Self {
            excluded: vec![false; values.len()],
            values,
            codes: Vec::new(),
            paths: None,
            bounds: Vec::new(),
            size,
            rows,
        }
    }

    /// Whether the bucket satisfies `guarantee`, also against an insider who excludes values.
    ///
    /// Of n rows, m have an excluded value. Each other value takes at most 1/l of n - m, and each excluded value at
    /// most 1/l of n; for other guarantees the same with their bound. A bucket of excluded values alone satisfies no
    /// guarantee.
    pub(in crate::verifier) fn satisfies(&self, guarantee: Guarantee) -> bool {
        if !self.excluded.contains(&true) {
            return self.satisfies_among(guarantee);
        }
        let part = match guarantee {
            // knowledge of the rows does not change their number
            Guarantee::KAnonymity { .. } => return self.satisfies_among(guarantee),
            Guarantee::LDiversity { l }
            | Guarantee::DistinctLDiversity { l }
            | Guarantee::RecursiveLDiversity { l, .. } => Ratio::new(1, l).ok(),
            Guarantee::EntropyLDiversity { l } => Ratio::new(l.denominator(), l.numerator()).ok(),
            Guarantee::AlphaK { alpha, .. } => Some(alpha),
            // the insider does not take the column as the prior
            Guarantee::TCloseness { .. } | Guarantee::Delta { .. } | Guarantee::Rho { .. } => None,
            // thresholds are not defined with excluded values
            Guarantee::Thresholds { .. } => None,
        };
        let Some(part) = part else { return false };
        let few = |count: u64| {
            u128::from(count) * u128::from(part.denominator()) <= u128::from(self.size) * u128::from(part.numerator())
        };
        let left = self.left();
        let excluded = self.values.iter().zip(&self.excluded).filter(|(_, out)| **out);
        left.size > 0 && left.satisfies_among(guarantee) && excluded.map(|((count, _), _)| *count).all(few)
    }

    /// A class by itself, for guarantees that do not compare it with the whole column.
    pub(in crate::verifier) fn alone(counts: &[(u32, u64)]) -> Self {
        let values: Vec<(u64, u64)> = counts.iter().map(|&(_, count)| (count, count)).collect();
        let size = values.iter().map(|(count, _)| count).sum();
        let excluded = vec![false; values.len()];
        Self { values, excluded, codes: Vec::new(), paths: None, bounds: Vec::new(), size, rows: size }
    }

    /// The share of the most frequent value.
    pub(in crate::verifier) fn posterior(&self) -> ShareOfRows {
        ShareOfRows::new(self.most(), self.size)
    }

    fn most(&self) -> u64 {
        self.values.iter().map(|(count, _)| *count).max().unwrap_or(0)
    }

    fn share(&self, count: u64) -> f64 {
        count as f64 / self.size as f64
    }

    fn prior(&self, rows: u64) -> f64 {
        rows as f64 / self.rows as f64
    }

    /// Number of distinct values in the bucket.
    pub(in crate::verifier) fn distinct(&self) -> u64 {
        self.values.iter().filter(|(count, _)| *count > 0).count() as u64
    }

    /// Number of equally frequent values with the same entropy; the same whatever the order of values.
    pub(in crate::verifier) fn entropy_l(&self) -> f64 {
        let mut counts: Vec<u64> = self.values.iter().map(|(count, _)| *count).filter(|count| *count > 0).collect();
        counts.sort_unstable();
        let shares = counts.into_iter().map(|count| self.share(count));
        shares.map(|share| -share * share.ln()).sum::<f64>().exp()
    }

    /// The count of the most frequent value, and the sum of the counts from the l-th most frequent on.
    ///
    /// `None` without an l-th.
    pub(in crate::verifier) fn recursive(&self, l: u64) -> Option<(u64, u64)> {
        let mut falling: Vec<u64> = self.values.iter().map(|(count, _)| *count).filter(|count| *count > 0).collect();
        falling.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        let tail: u64 = falling.get(usize::try_from(l).ok()?.checked_sub(1)?..)?.iter().sum();
        (tail > 0).then(|| (falling[0], tail))
    }

    /// Share in the bucket minus share in the column, by value, in units of 1 / (size * rows).
    fn gaps(&self) -> impl Iterator<Item = i128> {
        let gap = |&(count, rows): &(u64, u64)| {
            i128::from(count) * i128::from(self.rows) - i128::from(rows) * i128::from(self.size)
        };
        self.values.iter().map(gap)
    }

    /// Earth mover's distance from the column.
    ///
    /// `None` for the hierarchical distance without a taxonomy.
    pub(in crate::verifier) fn distance(&self, distance: ValueDistance) -> Option<Distance> {
        let unit = u128::from(self.size) * u128::from(self.rows);
        match distance {
            ValueDistance::Equal => Some(self.apart()),
            ValueDistance::Ordered => Some(self.ordered()),
            ValueDistance::Hierarchical => {
                let (work, height) = self.paths.as_ref()?.distance(self.codes.iter().copied().zip(self.gaps()))?;
                Some(Distance { work, unit: unit.checked_mul(height)? })
            }
        }
    }

    /// Total variation: all values are equally distant.
    fn apart(&self) -> Distance {
        let unit = u128::from(self.size) * u128::from(self.rows);
        Distance { work: self.gaps().map(i128::unsigned_abs).sum(), unit: 2 * unit }
    }

    /// Earth mover's distance over the order of the values.
    fn ordered(&self) -> Distance {
        let unit = u128::from(self.size) * u128::from(self.rows);
        let mut carried = 0;
        let work = self.gaps().map(|gap| {
            carried += gap;
            carried.unsigned_abs()
        });
        Distance { work: work.sum(), unit: unit * (self.values.len().max(2) - 1) as u128 }
    }

    /// The largest difference between the shares in the bucket and in the column, as a fraction.
    fn largest_gap(&self) -> Distance {
        let unit = u128::from(self.size) * u128::from(self.rows);
        Distance { work: self.gaps().map(i128::unsigned_abs).max().unwrap_or(0), unit }
    }

    /// The divergence of the bucket from the column.
    pub(in crate::verifier) fn divergence(&self, divergence: Divergence) -> f64 {
        let mut shares = self.values.iter().map(|&(count, rows)| (self.share(count), self.prior(rows)));
        match divergence {
            Divergence::TotalVariation => self.apart().to_f64(),
            Divergence::Emd => self.ordered().to_f64(),
            Divergence::Max => self.largest_gap().to_f64(),
            Divergence::Kl => {
                shares.filter(|(share, _)| *share > 0.0).map(|(share, prior)| share * (share / prior).ln()).sum()
            }
            Divergence::LogRatio => {
                shares.by_ref().map(|(share, prior)| (share / prior).ln().abs()).fold(0.0, f64::max)
            }
        }
    }

    /// The largest ratio of a share in the bucket to the share in the column.
    pub(in crate::verifier) fn gain(&self) -> f64 {
        self.values.iter().map(|&(count, rows)| self.share(count) / self.prior(rows)).fold(0.0, f64::max)
    }

    /// The largest count in the bucket of an event with a share of at most `rho1` in the column.
    fn likeliest(&self, rho1: Ratio, events: &[Vec<usize>]) -> Option<u64> {
        let rare = |event: &&Vec<usize>| {
            let rows: u64 = event.iter().map(|&value| self.values[value].1).sum();
            u128::from(rows) * u128::from(rho1.denominator()) <= u128::from(self.rows) * u128::from(rho1.numerator())
        };
        events.iter().filter(rare).map(|event| event.iter().map(|&value| self.values[value].0).sum()).max()
    }

    fn satisfies_among(&self, guarantee: Guarantee) -> bool {
        match guarantee {
            Guarantee::KAnonymity { k } => self.size >= k,
            Guarantee::LDiversity { l } => u128::from(self.most()) * u128::from(l) <= u128::from(self.size),
            Guarantee::DistinctLDiversity { l } => self.distinct() >= l,
            Guarantee::EntropyLDiversity { l } => self.entropy_l() >= l.to_f64() * (1.0 - LOG_TOLERANCE),
            Guarantee::RecursiveLDiversity { c, l } => self.recursive(l).is_some_and(|(most, tail)| {
                u128::from(most) * u128::from(c.denominator()) < u128::from(tail) * u128::from(c.numerator())
            }),
            Guarantee::AlphaK { alpha, k } => {
                let (most, size) = (u128::from(self.most()), u128::from(self.size));
                most * u128::from(alpha.denominator()) <= size * u128::from(alpha.numerator()) && self.size >= k
            }
            Guarantee::TCloseness { t, distance, .. } => {
                self.distance(distance).is_some_and(|distance| distance.is_at_most(t))
            }
            Guarantee::Delta { distance, b, .. } => match distance {
                Divergence::TotalVariation => self.apart().is_at_most(b),
                Divergence::Emd => self.ordered().is_at_most(b),
                Divergence::Max => self.largest_gap().is_at_most(b),
                Divergence::Kl | Divergence::LogRatio => {
                    self.divergence(distance) <= b.to_f64() * (1.0 + LOG_TOLERANCE) + LOG_TOLERANCE
                }
            },
            Guarantee::Rho { rho1, rho2, mode, .. } => self.bounded(rho1, rho2, mode),
            // a class by itself has no codes
            Guarantee::Thresholds { digest, .. } => {
                self.codes.len() == self.values.len() && self.above_thresholds(digest).is_empty()
            }
        }
    }

    /// The codes whose values exceed the thresholds of a digest.
    ///
    /// All occurring codes where none are declared.
    pub(in crate::verifier) fn above_thresholds(&self, name: ThresholdsDigest) -> Vec<u32> {
        let bound = self.bounds.iter().find(|bound| bound.name() == name);
        let admits = |code: u32, count: u64, rows: u64| {
            let (in_bucket, overall) = (ShareOfRows::new(count, self.size), ShareOfRows::new(rows, self.rows));
            bound.is_some_and(|bound| bound.admits(code, in_bucket, overall))
        };
        let values = self.codes.iter().zip(&self.values).filter(|(_, (count, _))| *count > 0);
        values.filter(|(code, (count, rows))| !admits(**code, *count, *rows)).map(|(code, _)| *code).collect()
    }

    fn bounded(&self, rho1: Ratio, rho2: Ratio, mode: RhoMode) -> bool {
        let held: Vec<usize> = (0..self.values.len()).filter(|&value| self.values[value].0 > 0).collect();
        let events: Vec<Vec<usize>> = match mode {
            RhoMode::Amplification => {
                return self.gain() * rho1.to_f64() <= rho2.to_f64() * (1.0 + LOG_TOLERANCE);
            }
            RhoMode::Single => held.iter().map(|&value| vec![value]).collect(),
            RhoMode::Exact if held.len() > RhoMode::EXACT_VALUES => return false,
            RhoMode::Exact => subsets(&held),
        };
        let within = |inside: u64| {
            u128::from(inside) * u128::from(rho2.denominator()) <= u128::from(self.size) * u128::from(rho2.numerator())
        };
        self.likeliest(rho1, &events).is_none_or(within)
    }
}

fn subsets(of: &[usize]) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for &value in of {
        let with: Vec<Vec<usize>> = all.iter().map(|set| [set.as_slice(), &[value]].concat()).collect();
        all.extend(with);
    }
    all
}

/// Whether `held` bounds posteriors at least as much as `wanted`.
pub(in crate::verifier) fn at_least(held: Guarantee, wanted: Guarantee) -> bool {
    use Guarantee::{
        AlphaK, Delta, DistinctLDiversity, EntropyLDiversity, KAnonymity, LDiversity, RecursiveLDiversity, Rho,
        TCloseness, Thresholds,
    };
    match wanted {
        KAnonymity { k } => matches!(held, KAnonymity { k: at } | AlphaK { k: at, .. } if at >= k),
        LDiversity { l } => match held {
            LDiversity { l: at } => at >= l,
            // no threshold above 1/l
            Thresholds { most, .. } => u128::from(most.numerator()) * u128::from(l) <= u128::from(most.denominator()),
            _ => false,
        },
        Thresholds { digest, least, .. } => match held {
            Thresholds { digest: same, most, .. } => same == digest || most <= least,
            LDiversity { l } => u128::from(least.denominator()) <= u128::from(least.numerator()) * u128::from(l),
            _ => false,
        },
        DistinctLDiversity { l } => matches!(held, LDiversity { l: at } | DistinctLDiversity { l: at } if at >= l),
        EntropyLDiversity { l } => match held {
            LDiversity { l: at } => u128::from(at) * u128::from(l.denominator()) >= u128::from(l.numerator()),
            EntropyLDiversity { l: at } => at >= l,
            _ => false,
        },
        RecursiveLDiversity { c, l } => match held {
            LDiversity { l: at } => c.numerator() > c.denominator() && at >= l,
            RecursiveLDiversity { c: factor, l: at } => factor <= c && at >= l,
            _ => false,
        },
        AlphaK { alpha, k } => match held {
            // 1/l <= alpha
            LDiversity { l } => {
                u128::from(alpha.denominator()) <= u128::from(alpha.numerator()) * u128::from(l) && l >= k
            }
            AlphaK { alpha: share, k: rows } => share <= alpha && rows >= k,
            _ => false,
        },
        // compared with other rows, buckets say nothing of these
        _ if held.reference() != wanted.reference() => false,
        TCloseness { t, distance, .. } => {
            matches!(held, TCloseness { t: at, distance: same, .. } if same == distance && at <= t)
        }
        Rho { rho1, rho2, mode, .. } => {
            matches!(held, Rho { rho1: from, rho2: to, mode: same, .. } if from == rho1 && to <= rho2 && same == mode)
        }
        Delta { distance, b, prior, .. } => {
            matches!(held, Delta { distance: same, b: at, prior: of, .. } if same == distance && of == prior && at <= b)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_is_that_of_the_counts_in_any_order() {
        let counts: Vec<(u32, u64)> = (0..).zip([6, 5, 3, 3, 2, 1, 1, 1, 7, 4]).collect();
        let entropy = BucketShares::alone(&counts).entropy_l();
        for rotated in 1..counts.len() {
            let mut other = counts.clone();
            other.rotate_left(rotated);
            assert_eq!(BucketShares::alone(&other).entropy_l().to_bits(), entropy.to_bits(), "{rotated}");
        }
    }
}
