//! Weights of sensitive values: products and quotients of counts, as floats if these decide, otherwise exact.

use num_bigint::BigUint;

use crate::microdata::AttrSet;
use crate::publish::slicing::counts::FrequencyBound;

/// Relative distance from the bound below which shares are computed exactly. Rounding errors of some hundred factors are far
/// smaller.
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

/// A float with a larger exponent: `significand * 2^(SCALE * exponent)`.
#[derive(Clone, Copy)]
pub(super) struct ScaledFloat {
    significand: f64,
    exponent: i32,
}

/// Step of the exponent, so that a product with a count of 128 bits is never infinite or zero.
const SCALE: i32 = 512;
/// `2^SCALE`.
const STEP: f64 = f64::from_bits((1023 + SCALE as u64) << 52);

impl ScaledFloat {
    fn rescaled(mut self) -> Self {
        if self.significand > STEP {
            self.significand /= STEP;
            self.exponent += 1;
        } else if self.significand < STEP.recip() && self.significand > 0.0 {
            self.significand *= STEP;
            self.exponent -= 1;
        }
        self
    }

    /// The number over `2^(SCALE * exponent)`; 0 if it is far smaller.
    fn over_scale(self, exponent: i32) -> f64 {
        match exponent - self.exponent {
            0 => self.significand,
            steps => self.significand * (-f64::from(SCALE) * f64::from(steps)).exp2(),
        }
    }
}

impl CountProduct for ScaledFloat {
    fn one() -> Self {
        Self { significand: 1.0, exponent: 0 }
    }

    fn times(&mut self, count: u128) {
        self.significand *= count as f64;
        *self = self.rescaled();
    }

    fn over(&mut self, number: u128) {
        self.significand /= number as f64;
        *self = self.rescaled();
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
/// `exactly` computes the same weights exactly, if floats do not decide.
pub(super) fn holds(
    bound: &FrequencyBound,
    weights: &mut [ValueWeight<ScaledFloat>],
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
fn clearly(bound: &FrequencyBound, weights: &mut [ValueWeight<ScaledFloat>]) -> Option<bool> {
    let sums = FloatSums::new(bound, weights);
    let l = bound.l.to_f64();
    let mut kept = true;
    for (code, sum) in sums.iter() {
        let among = sums.among(bound, code);
        if (l * sum - among).abs() <= WEIGHT_EPSILON * sums.all {
            return None;
        }
        kept &= l * sum < among;
    }
    // a sum of zero is decided exactly
    (sums.informative > WEIGHT_EPSILON * sums.all).then_some(kept)
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
        weights: &mut [ValueWeight<ScaledFloat>],
        exactly: impl FnOnce() -> Vec<ValueWeight<UnreducedFraction>>,
    ) {
        let sums = FloatSums::new(bound, weights);
        let about = sums.iter().map(|(code, sum)| sum / sums.among(bound, code)).fold(0.0, f64::max);
        if about < self.about * (1.0 + WEIGHT_EPSILON) {
            return;
        }
        if let Some(share) = largest(bound, &exactly()).filter(|share| share.exceeds(self.share)) {
            *self = Self { share, attributes, about };
        }
    }
}

/// Weights of values over a common scale.
struct FloatSums<'w> {
    /// Values rise.
    weights: &'w [ValueWeight<ScaledFloat>],
    exponent: i32,
    /// Sum of all weights, and of those of values that are not excluded.
    all: f64,
    informative: f64,
}

impl<'w> FloatSums<'w> {
    fn new(bound: &FrequencyBound, weights: &'w mut [ValueWeight<ScaledFloat>]) -> Self {
        weights.sort_unstable_by_key(|of| of.code);
        let exponent = weights.iter().map(|of| of.weight.exponent).max().unwrap_or(0);
        let mut sums = Self { weights, exponent, all: 0.0, informative: 0.0 };
        let informative = sums.iter().filter(|(code, _)| !bound.annotations.is_excludable(*code));
        (sums.all, sums.informative) = (sums.iter().map(|(_, sum)| sum).sum(), informative.map(|(_, sum)| sum).sum());
        sums
    }

    /// Each value with its sum.
    fn iter(&self) -> impl Iterator<Item = (u32, f64)> {
        let sum = |run: &[ValueWeight<ScaledFloat>]| run.iter().map(|of| of.weight.over_scale(self.exponent)).sum();
        self.weights.chunk_by(|a, b| a.code == b.code).map(move |run| (run[0].code, sum(run)))
    }

    /// The sum that bounds a value.
    fn among(&self, bound: &FrequencyBound, code: u32) -> f64 {
        if bound.annotations.is_excludable(code) { self.all } else { self.informative }
    }
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
