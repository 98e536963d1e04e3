//! Posteriors over all buckets that a row matches, exact where it matters.
//!
//! Let `w(q,s)` be the sum of `n_1 ... n_(c-1) n(u,s) / size^c` over the matching buckets, and `W(q)` its sum over all s. The
//! posterior of a sensitive value s is `w(q,s) / W(q)`. Equality with the bound is common, so that floats decide clear cases
//! only.
//!
//! # Citations
//! - [Li et al. 2012, section 3.2], posteriors of sliced tables.

use std::collections::BTreeMap;

use num_bigint::BigUint;

use super::counts::{BucketCountsView, FrequencyBound};

/// Relative distance from the bound below which sums are computed exactly. Rounding errors of at most 128 factors are far
/// smaller.
const FLOAT_EPSILON: f64 = 1e-9;

/// Products below this are computed exactly, before floats lose digits.
const MIN_FLOAT_PRODUCT: f64 = 1e-280;

/// Weights of buckets in a mixture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BucketWeights {
    /// Share of the combinations of a bucket that are the row.
    Shares,
    /// Both that share and the expected number of copies of the row; the bound holds for both.
    SharesAndSizes,
}

/// A bucket that an identity matches, with the weight of the identity.
#[derive(Clone, Copy)]
pub(super) struct MatchedBucket<'a> {
    weight: f64,
    counts: &'a dyn BucketCountsView,
}

impl<'a> MatchedBucket<'a> {
    /// A bucket for a row with these values.
    pub(super) fn new(others: &[u32], counts: &'a dyn BucketCountsView) -> Self {
        Self { weight: weight(others, counts), counts }
    }

    /// A bucket whose [`weight`] is known.
    pub(super) fn known(weight: f64, counts: &'a dyn BucketCountsView) -> Self {
        Self { weight, counts }
    }
}

/// Weight of one row with a sensitive value in a bucket: `n_1 ... n_(c-1) / size^c`.
pub(super) fn weight(others: &[u32], counts: &dyn BucketCountsView) -> f64 {
    let size = counts.size() as f64;
    let share = |(at, &value): (usize, &u32)| counts.rows_with(at, value) as f64 / size;
    others.iter().enumerate().map(share).product::<f64>() / size
}

/// Judge of mixtures that reuses its memory.
pub(super) struct PosteriorJudge {
    bound: FrequencyBound,
    weights: BucketWeights,
    /// Weights of both kinds, by sensitive value.
    sums: Vec<[f64; 2]>,
    occurring: Vec<u32>,
}

impl PosteriorJudge {
    /// A judge of sensitive values below `values`.
    pub(super) fn new(bound: FrequencyBound, weights: BucketWeights, values: usize) -> Self {
        Self { bound, weights, sums: vec![[0.0; 2]; values], occurring: Vec::new() }
    }

    pub(super) fn bound(&self) -> &FrequencyBound {
        &self.bound
    }

    /// Whether no sensitive value has a posterior above 1/l for a row with these values that matches exactly `buckets`.
    pub(super) fn holds(&mut self, others: &[u32], companion: u32, buckets: &[MatchedBucket<'_>]) -> bool {
        self.clearly_holds(companion, buckets).unwrap_or_else(|| self.exactly_holds(others, companion, buckets))
    }

    /// Decides by floats; `None` if the case is not clear.
    fn clearly_holds(&mut self, companion: u32, buckets: &[MatchedBucket<'_>]) -> Option<bool> {
        self.occurring.drain(..).for_each(|value| self.sums[value as usize] = [0.0; 2]);
        for &MatchedBucket { weight, counts: bucket } in buckets {
            let size = bucket.size() as f64;
            if weight < MIN_FLOAT_PRODUCT {
                return None;
            }
            for &(value, count) in bucket.sensitive(companion) {
                let sums = &mut self.sums[value as usize];
                if sums[0] == 0.0 {
                    self.occurring.push(value);
                }
                let count = f64::from(count);
                sums[0] += weight * count;
                sums[1] += weight * size * count;
            }
        }
        let (l, annotations) = (self.bound.l.to_f64(), &self.bound.annotations);
        for kind in 0..self.weights.kinds() {
            let (mut all, mut informative) = (0.0, 0.0);
            // the largest weights of excluded values, and of the others
            let (mut excluded_codes, mut most) = (0.0_f64, 0.0_f64);
            for &value in &self.occurring {
                let sum = self.sums[value as usize][kind];
                all += sum;
                if annotations.is_excludable(value) {
                    excluded_codes = excluded_codes.max(sum);
                } else {
                    informative += sum;
                    most = most.max(sum);
                }
            }
            for (most, among) in [(most, informative), (excluded_codes, all)] {
                if (l * most - among).abs() <= FLOAT_EPSILON * among {
                    return None;
                }
                if l * most > among {
                    return Some(false);
                }
            }
        }
        Some(true)
    }

    /// Decides in integers, over the common denominator of all buckets.
    fn exactly_holds(&self, others: &[u32], companion: u32, buckets: &[MatchedBucket<'_>]) -> bool {
        let columns = others.len() as u32 + 1;
        let buckets = || buckets.iter().map(|bucket| bucket.counts);
        let common = buckets().fold(BigUint::from(1u32), |common, bucket| {
            let size = bucket.size();
            &common * (size / gcd(&common, size))
        });
        (0..self.weights.kinds()).all(|kind| {
            let mut sums: BTreeMap<u32, BigUint> = BTreeMap::new();
            for bucket in buckets() {
                let mut weight = (&common / bucket.size()).pow(columns);
                others.iter().enumerate().for_each(|(at, &value)| weight *= bucket.rows_with(at, value));
                if kind == 1 {
                    weight *= bucket.size();
                }
                for &(value, count) in bucket.sensitive(companion) {
                    *sums.entry(value).or_default() += &weight * count;
                }
            }
            let is_excluded_code = |value: u32| self.bound.annotations.is_excludable(value);
            let among = |of: &dyn Fn(u32) -> bool| {
                let sums = sums.iter().filter(|(value, _)| of(**value)).map(|(_, sum)| sum);
                sums.sum::<BigUint>() * self.bound.l.denominator()
            };
            let (all, informative) = (among(&|_| true), among(&|value| !is_excluded_code(value)));
            informative > BigUint::ZERO
                && sums.iter().all(|(value, sum)| {
                    sum * self.bound.l.numerator() <= *(if is_excluded_code(*value) { &all } else { &informative })
                })
        })
    }
}

impl BucketWeights {
    const fn kinds(self) -> usize {
        match self {
            Self::Shares => 1,
            Self::SharesAndSizes => 2,
        }
    }
}

/// Product of a large number and a small one, which is not 0.
fn gcd(large: &BigUint, small: u64) -> u64 {
    let rest = (large % small).to_u64_digits().first().copied().unwrap_or(0);
    let (mut a, mut b) = (small, rest);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::microdata::ColumnAnnotations;
    use crate::publication::Ratio;

    /// A bucket seen by one identity.
    #[derive(Debug)]
    struct One {
        size: u64,
        rows_with: Vec<u64>,
        sensitive: Vec<(u32, u32)>,
    }

    impl BucketCountsView for One {
        fn size(&self) -> u64 {
            self.size
        }
        fn rows_with(&self, at: usize, _: u32) -> u64 {
            self.rows_with[at]
        }
        fn sensitive(&self, _: u32) -> &[(u32, u32)] {
            &self.sensitive
        }
    }

    fn ratio(text: &str) -> Ratio {
        text.parse().unwrap()
    }

    fn judged(l: &str, weights: BucketWeights, buckets: &[One]) -> bool {
        judged_without(&[], l, weights, buckets)
    }

    fn judged_without(excluded_codes: &[u32], l: &str, weights: BucketWeights, buckets: &[One]) -> bool {
        let others = vec![0; buckets[0].rows_with.len()];
        let buckets: Vec<MatchedBucket<'_>> =
            buckets.iter().map(|bucket| MatchedBucket::new(&others, bucket)).collect();
        let bound = FrequencyBound { l: ratio(l), annotations: ColumnAnnotations::without(excluded_codes.to_vec()) };
        let mut judge = PosteriorJudge::new(bound, weights, 8);
        let exact = judge.exactly_holds(&others, 0, &buckets);
        assert!(judge.clearly_holds(0, &buckets).is_none_or(|clear| clear == exact));
        judge.holds(&others, 0, &buckets)
    }

    #[test]
    fn a_small_bucket_outweighs_a_large_one_unless_sizes_count() {
        // 1/2 * 1/2 in a bucket of two rows, 1/8 * 8/8 in one of eight
        let small = || One { size: 2, rows_with: vec![1], sensitive: vec![(0, 1)] };
        let large = || One { size: 8, rows_with: vec![1], sensitive: vec![(0, 2), (1, 2), (2, 4)] };
        // shares: s0 16/64 + 2/64 of 24/64; sizes: s0 4/8 + 2/8 of 12/8
        assert!(!judged("2", BucketWeights::Shares, &[small(), large()]));
        assert!(judged("4/3", BucketWeights::Shares, &[small(), large()]), "18/24 is 3/4");
        assert!(!judged("1.333333334", BucketWeights::Shares, &[small(), large()]));
        assert!(judged("4/3", BucketWeights::SharesAndSizes, &[small(), large()]));
        // sizes are the stricter weights if large buckets are bad
        let even = || One { size: 2, rows_with: vec![2], sensitive: vec![(0, 1), (1, 1)] };
        let bad = || One { size: 8, rows_with: vec![2], sensitive: vec![(3, 8)] };
        assert!(judged("2", BucketWeights::Shares, &[even(), bad()]), "s3 1/4 of 5/4");
        assert!(judged("2", BucketWeights::SharesAndSizes, &[even(), bad()]), "s3 2 of 4");
        assert!(judged("2.1", BucketWeights::Shares, &[even(), bad()]));
        assert!(!judged("2.1", BucketWeights::SharesAndSizes, &[even(), bad()]));
    }

    #[test]
    fn a_hundred_columns_are_weighed() {
        // 10^-7 to the power of 127 is no float
        let deep = |sensitive| One { size: 10_000_000, rows_with: vec![1; 127], sensitive };
        assert!(judged("2", BucketWeights::SharesAndSizes, &[deep(vec![(0, 1), (1, 1)]), deep(vec![(0, 1), (2, 1)])]));
        assert!(!judged("2", BucketWeights::Shares, &[deep(vec![(0, 1), (1, 1)]), deep(vec![(0, 1)])]));
    }

    #[test]
    fn excluded_values_protect_no_row() {
        let bucket = || One { size: 6, rows_with: vec![6], sensitive: vec![(0, 2), (1, 1), (2, 3)] };
        assert!(judged("2", BucketWeights::Shares, &[bucket(), bucket()]));
        assert!(!judged_without(&[2], "2", BucketWeights::Shares, &[bucket(), bucket()]), "2 of the other 3");
        assert!(judged_without(&[2], "3/2", BucketWeights::Shares, &[bucket(), bucket()]));
        assert!(!judged_without(&[0, 1, 2], "1", BucketWeights::Shares, &[bucket(), bucket()]), "nothing is left");
    }

    proptest! {
        /// A decision by floats is the decision by integers.
        #[test]
        fn floats_do_not_contradict_integers(
            buckets in prop::collection::vec(
                (1u64..40, prop::collection::vec(1u64..40, 3), prop::collection::btree_map(0u32..4, 1u32..9, 1..4)), 1..6,
            ),
            l in 1u64..9,
            of in 1u64..4,
            excluded_codes in prop::collection::btree_set(0u32..4, 0..3),
        ) {
            let excluded_codes: Vec<u32> = excluded_codes.into_iter().collect();
            let buckets: Vec<One> = buckets
                .into_iter()
                .map(|(size, rows_with, sensitive)| One { size, rows_with, sensitive: sensitive.into_iter().collect() })
                .collect();
            for weights in [BucketWeights::Shares, BucketWeights::SharesAndSizes] {
                judged_without(&excluded_codes, &format!("{l}/{of}"), weights, &buckets);
            }
        }
    }
}
