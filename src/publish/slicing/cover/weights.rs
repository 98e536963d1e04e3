//! Weights of sensitive values: products and quotients of counts, as logarithms if these decide, otherwise exact.

use num_bigint::BigUint;

use crate::microdata::AttrSet;
use crate::publish::slicing::counts::FrequencyBound;

/// Relative distance from the bound below which shares are computed exactly. Errors of a hundred logarithms are far smaller.
const WEIGHT_EPSILON: f64 = 1e-9;

/// A product of counts.
pub(super) trait CountProduct: Clone {
    /// The empty product.
    fn one() -> Self;
    /// Multiplies the weight.
    fn times(&mut self, count: u128);
    /// Divides the weight by a number that is not 0.
    fn over(&mut self, number: u128);
}

/// Natural logarithm of a weight.
#[derive(Clone, Copy)]
pub(super) struct NaturalLog(pub(super) f64);

impl CountProduct for NaturalLog {
    fn one() -> Self {
        Self(0.0)
    }

    fn times(&mut self, count: u128) {
        self.0 += (count as f64).ln();
    }

    fn over(&mut self, number: u128) {
        self.0 -= (number as f64).ln();
    }
}

/// A fraction that is not in lowest terms.
#[derive(Clone)]
pub(super) struct UnreducedFraction {
    numerator: BigUint,
    denominator: BigUint,
}

impl CountProduct for UnreducedFraction {
    fn one() -> Self {
        Self { numerator: 1u32.into(), denominator: 1u32.into() }
    }

    fn times(&mut self, count: u128) {
        self.numerator *= count;
    }

    fn over(&mut self, number: u128) {
        self.denominator *= number;
    }
}

/// A sensitive value with its weight.
#[derive(Clone)]
pub(super) struct ValueWeight<W> {
    pub(super) code: u32,
    pub(super) weight: W,
}

/// Share of a sensitive value: `most` of `of`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::publish::slicing) struct LargestShare {
    pub(in crate::publish::slicing) most: u64,
    pub(in crate::publish::slicing) of: u64,
}

impl LargestShare {
    /// Whether this share is the larger one.
    fn exceeds(self, other: Self) -> bool {
        u128::from(self.most) * u128::from(other.of) > u128::from(other.most) * u128::from(self.of)
    }
}

/// Whether no sensitive value exceeds the bound. A value that is listed several times has the sum of its weights.
///
/// `exactly` computes the same weights exactly, if logarithms do not decide.
pub(super) fn holds(
    bound: &FrequencyBound,
    weights: &mut [ValueWeight<NaturalLog>],
    exactly: impl FnOnce() -> Vec<ValueWeight<UnreducedFraction>>,
) -> bool {
    clearly(bound, weights).unwrap_or_else(|| {
        let sums = CommonDenominator::from_weights(&exactly());
        let (l, of) = (bound.l.numerator(), bound.l.denominator());
        let (all, informative) = sums.totals(bound);
        informative > BigUint::ZERO
            && sums.0.iter().all(|sum| {
                &sum.weight * l <= (if bound.annotations.is_excludable(sum.code) { &all } else { &informative }) * of
            })
    })
}

/// Decides by floats; `None` if the case is not clear.
fn clearly(bound: &FrequencyBound, weights: &mut [ValueWeight<NaturalLog>]) -> Option<bool> {
    weights.sort_unstable_by_key(|of| of.code);
    let (sums, all, informative) = floats(bound, weights);
    let l = bound.l.to_f64();
    let mut kept = true;
    for ValueWeight { code, weight: sum } in sums {
        let among = if bound.annotations.is_excludable(code) { all } else { informative };
        if (l * sum - among).abs() <= WEIGHT_EPSILON * all {
            return None;
        }
        kept &= l * sum < among;
    }
    // a sum of zero is decided exactly
    (informative > WEIGHT_EPSILON * all).then_some(kept)
}

/// Weights of values over a common denominator, values rising.
struct CommonDenominator(Vec<ValueWeight<BigUint>>);

impl CommonDenominator {
    fn from_weights(weights: &[ValueWeight<UnreducedFraction>]) -> Self {
        let mut denominators: Vec<&BigUint> = weights.iter().map(|of| &of.weight.denominator).collect();
        denominators.sort_unstable();
        denominators.dedup();
        let common: BigUint = denominators.into_iter().product();
        let mut sums: Vec<ValueWeight<BigUint>> = Vec::new();
        for ValueWeight { code, weight } in weights {
            let more = &weight.numerator * (&common / &weight.denominator);
            match sums.binary_search_by_key(code, |sum| sum.code) {
                Ok(at) => sums[at].weight += more,
                Err(at) => sums.insert(at, ValueWeight { code: *code, weight: more }),
            }
        }
        Self(sums)
    }

    /// Sum of all weights, and of those of values that are not excluded.
    fn totals(&self, bound: &FrequencyBound) -> (BigUint, BigUint) {
        let all = self.0.iter().map(|sum| &sum.weight).sum();
        let informative = self.0.iter().filter(|sum| !bound.annotations.is_excludable(sum.code));
        (all, informative.map(|sum| &sum.weight).sum())
    }
}

/// The largest share of a value, and the attributes that the adversary knows.
#[derive(Clone, Copy, Debug)]
pub(in crate::publish::slicing) struct WorstShare {
    pub(in crate::publish::slicing) share: LargestShare,
    pub(in crate::publish::slicing) attributes: AttrSet,
    about: f64,
}

impl WorstShare {
    /// No share at all.
    pub(super) const fn none() -> Self {
        Self { share: LargestShare { most: 0, of: 1 }, attributes: AttrSet::EMPTY, about: 0.0 }
    }

    /// Takes weights into account. They are computed exactly if they may exceed the largest share.
    pub(super) fn see(
        &mut self,
        bound: &FrequencyBound,
        attributes: AttrSet,
        weights: &mut [ValueWeight<NaturalLog>],
        exactly: impl FnOnce() -> Vec<ValueWeight<UnreducedFraction>>,
    ) {
        weights.sort_unstable_by_key(|of| of.code);
        let (sums, all, informative) = floats(bound, weights);
        let share = |sum: &ValueWeight<f64>| {
            sum.weight / if bound.annotations.is_excludable(sum.code) { all } else { informative }
        };
        let about = sums.iter().map(share).fold(0.0, f64::max);
        if about < self.about * (1.0 + WEIGHT_EPSILON) {
            return;
        }
        if let Some(share) = largest(bound, &exactly()).filter(|share| share.exceeds(self.share)) {
            *self = Self { share, attributes, about };
        }
    }
}

/// Weights of values relative to the largest one, their sum, and the sum of values that are not excluded. Values rise.
fn floats(bound: &FrequencyBound, weights: &[ValueWeight<NaturalLog>]) -> (Vec<ValueWeight<f64>>, f64, f64) {
    let largest = weights.iter().map(|of| of.weight.0).fold(f64::NEG_INFINITY, f64::max);
    let sum = |run: &[ValueWeight<NaturalLog>]| ValueWeight {
        code: run[0].code,
        weight: run.iter().map(|of| (of.weight.0 - largest).exp()).sum::<f64>(),
    };
    let sums: Vec<ValueWeight<f64>> = weights.chunk_by(|a, b| a.code == b.code).map(sum).collect();
    let all = sums.iter().map(|sum| sum.weight).sum();
    let informative = sums.iter().filter(|sum| !bound.annotations.is_excludable(sum.code));
    let informative = informative.map(|sum| sum.weight).sum();
    (sums, all, informative)
}

fn largest(bound: &FrequencyBound, weights: &[ValueWeight<UnreducedFraction>]) -> Option<LargestShare> {
    let sums = CommonDenominator::from_weights(weights);
    let (all, informative) = sums.totals(bound);
    let share = |sum: &ValueWeight<BigUint>| {
        let among = if bound.annotations.is_excludable(sum.code) { &all } else { &informative };
        lowest(sum.weight.clone(), among.clone())
    };
    sums.0.iter().map(share).reduce(|a, b| if b.exceeds(a) { b } else { a })
}

/// The fraction in lowest terms, rounded if it exceeds 64 bits.
fn lowest(most: BigUint, of: BigUint) -> LargestShare {
    let (mut a, mut b) = (most.clone(), of.clone());
    while b > BigUint::ZERO {
        (a, b) = (b.clone(), a % b);
    }
    let divisor = if a == BigUint::ZERO { 1u32.into() } else { a };
    let (most, of) = (most / &divisor, of / &divisor);
    let shift = most.bits().max(of.bits()).saturating_sub(63);
    let number = |big: BigUint| (big >> shift).to_u64_digits().first().copied().unwrap_or(0);
    LargestShare { most: number(most), of: number(of).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::ColumnAnnotations;

    fn bound(l: &str, excluded_codes: &[u32]) -> FrequencyBound {
        FrequencyBound { l: l.parse().unwrap(), annotations: ColumnAnnotations::without(excluded_codes.to_vec()) }
    }

    fn kept(l: &str, excluded_codes: &[u32], weights: &[(u32, u128, u128)]) -> bool {
        fn made<W: CountProduct>(weights: &[(u32, u128, u128)]) -> Vec<ValueWeight<W>> {
            let weight = |&(code, times, over): &(u32, u128, u128)| {
                let mut weight = W::one();
                weight.times(times);
                weight.over(over);
                ValueWeight { code, weight }
            };
            weights.iter().map(weight).collect()
        }
        holds(&bound(l, excluded_codes), &mut made(weights), || made(weights))
    }

    #[test]
    fn the_bound_itself_is_kept_exactly() {
        // 1/3 + 1/6 of 1, whatever the order
        let even = [(0, 1, 3), (1, 1, 2), (0, 1, 6)];
        assert!(kept("2", &[], &even) && !kept("2.0000001", &[], &even) && !kept("3", &[], &even));
        assert!(!kept("2", &[], &[(0, 1, 3), (1, 1, 2), (0, 100_001, 600_000)]));
        // of what can be ruled out nothing protects
        assert!(!kept("2", &[1], &even) && kept("1", &[1], &even) && !kept("1", &[0, 1], &even));
        assert!(kept("4", &[9], &[(0, 1, 1), (1, 1, 1), (2, 1, 1), (3, 1, 1)]));
        let share = |weights: &[(u32, u128, u128)], excluded_codes: &[u32]| {
            let weights = weights.iter().map(|&(code, times, over)| ValueWeight {
                code,
                weight: UnreducedFraction { numerator: times.into(), denominator: over.into() },
            });
            largest(&bound("2", excluded_codes), &weights.collect::<Vec<_>>())
        };
        assert_eq!(share(&even, &[]), Some(LargestShare { most: 1, of: 2 }));
        assert_eq!(share(&[(0, 10, 1), (1, 1, 1)], &[]), Some(LargestShare { most: 10, of: 11 }));
        assert_eq!(share(&[(0, 1, 1), (1, 1, 1)], &[1]), Some(LargestShare { most: 1, of: 1 }));
        let huge = share(&[(0, u128::MAX, 1), (0, u128::MAX, 1), (1, u128::MAX - 1, 1)], &[]).unwrap();
        assert!((huge.most as f64 / huge.of as f64 - 2.0 / 3.0).abs() < 1e-9);
    }
}
