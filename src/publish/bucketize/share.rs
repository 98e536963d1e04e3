//! Thresholds as exact fractions, with the counts of the values they are for.

use crate::microdata::{Domain, ExactFraction};
use crate::publication::{Ratio, Thresholds};

/// Largest share of a bucket that a value may take: a fraction above 0 and at most 1.
///
/// Numerator and denominator are below 2^93, so that products with counts of rows stay below 2^128.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ValueThreshold {
    numerator: u128,
    denominator: u128,
}

impl From<Ratio> for ValueThreshold {
    fn from(ratio: Ratio) -> Self {
        Self { numerator: ratio.numerator().into(), denominator: ratio.denominator().into() }
    }
}

impl ValueThreshold {
    /// The threshold of a ratio, at most 1.
    pub(super) fn from_fraction(fraction: ExactFraction) -> Self {
        let ExactFraction { numerator, denominator } = fraction;
        if numerator >= denominator { Self::ALL } else { Self { numerator, denominator } }
    }

    /// The whole bucket as a threshold.
    pub const ALL: Self = Self { numerator: 1, denominator: 1 };

    /// `theta * count / rows + c`, at most 1.
    fn linear(theta: Ratio, c: Ratio, count: u64, rows: u64) -> Self {
        // 10^9 times 10^9 times 2^32 each
        let numerator = u128::from(theta.numerator()) * u128::from(c.denominator()) * u128::from(count)
            + u128::from(c.numerator()) * u128::from(theta.denominator()) * u128::from(rows);
        let denominator = u128::from(theta.denominator()) * u128::from(c.denominator()) * u128::from(rows.max(1));
        if numerator >= denominator {
            return Self::ALL;
        }
        let (mut a, mut b) = (numerator, denominator);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        Self { numerator: numerator / a, denominator: denominator / a }
    }

    /// Whether this threshold is below another; `None` if the numbers are too large.
    pub(super) fn is_less(self, other: Self) -> Option<bool> {
        let left = self.numerator.checked_mul(other.denominator)?;
        Some(left < other.numerator.checked_mul(self.denominator)?)
    }

    /// The threshold as a fraction.
    #[must_use]
    pub const fn fraction(self) -> ExactFraction {
        ExactFraction { numerator: self.numerator, denominator: self.denominator }
    }

    /// Largest number of rows of the value in a bucket of `size` rows.
    #[must_use]
    pub const fn most(self, size: u64) -> u64 {
        // at most the size, since the fraction is at most 1
        (self.numerator * size as u128 / self.denominator) as u64
    }

    /// Smallest bucket that may hold the value.
    #[must_use]
    pub const fn smallest_bucket(self) -> u64 {
        let size = self.denominator.div_ceil(if self.numerator == 0 { 1 } else { self.numerator });
        if size > u64::MAX as u128 { u64::MAX } else { size as u64 }
    }

    /// Whether the threshold is the whole bucket.
    #[must_use]
    pub const fn is_all(self) -> bool {
        self.numerator >= self.denominator
    }
}

/// Threshold of each code, given the counts of the values.
///
/// # Errors
/// The number of occurring values without a threshold.
pub fn shares(thresholds: &Thresholds, domain: &Domain, counts: &[u64]) -> Result<Vec<ValueThreshold>, u64> {
    let rows = counts.iter().sum();
    let mut shares: Vec<Option<ValueThreshold>> = counts
        .iter()
        .map(|&count| match *thresholds {
            Thresholds::Uniform { l } => Ratio::new(1, l).ok().map(ValueThreshold::from),
            Thresholds::Linear { theta, c, .. } => Some(ValueThreshold::linear(theta, c, count, rows)),
            Thresholds::Explicit { otherwise, .. } => otherwise.map(ValueThreshold::from),
        })
        .collect();
    let declared_value = thresholds.of_values();
    let named: Vec<Option<String>> =
        declared_value.into_iter().flatten().map(|(value, _)| Some(value.clone())).collect();
    for (codes, (_, &ratio)) in domain.codes_of(&named).into_iter().zip(declared_value.into_iter().flatten()) {
        for code in codes {
            shares[code as usize] = Some(ratio.into());
        }
    }
    let missing = shares.iter().zip(counts).filter(|(share, count)| share.is_none() && **count > 0).count();
    if missing > 0 {
        return Err(missing as u64);
    }
    // a value that does not occur is in no bucket
    Ok(shares.into_iter().map(|share| share.unwrap_or(ValueThreshold::ALL)).collect())
}

/// Values with a threshold of their own that do not occur.
#[must_use]
pub fn unused<'t>(thresholds: &'t Thresholds, domain: &Domain) -> Vec<&'t str> {
    let named: Vec<&str> = thresholds.of_values().into_iter().flatten().map(|(value, _)| value.as_str()).collect();
    let wanted: Vec<Option<String>> = named.iter().map(|value| Some((*value).to_owned())).collect();
    let codes = domain.codes_of(&wanted);
    named.into_iter().zip(codes).filter(|(_, codes)| codes.is_empty()).map(|(value, _)| value).collect()
}

/// Values of one kind: they have equal counts and equal thresholds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ValueClass {
    /// Number of rows of each of the values.
    pub count: u64,
    /// Threshold of each of the values.
    pub share: ValueThreshold,
    /// Number of these values.
    pub values: u64,
}

/// Kinds of the values that occur.
#[must_use]
pub fn kinds(counts: &[u64], shares: &[ValueThreshold]) -> Vec<ValueClass> {
    let mut all: Vec<(u64, ValueThreshold)> =
        counts.iter().copied().zip(shares.iter().copied()).filter(|(count, _)| *count > 0).collect();
    all.sort_unstable();
    let kind = |alike: &[(u64, ValueThreshold)]| ValueClass {
        count: alike[0].0,
        share: alike[0].1,
        values: alike.len() as u64,
    };
    all.chunk_by(|a, b| a == b).map(kind).collect()
}

/// Number of values that exceed their threshold in the whole table, so that no buckets keep it.
#[must_use]
pub(super) fn too_frequent(kinds: &[ValueClass]) -> u64 {
    let rows = rows(kinds);
    kinds.iter().filter(|kind| kind.count > kind.share.most(rows)).map(|kind| kind.values).sum()
}

/// Number of rows of all kinds.
#[must_use]
pub(super) fn rows(kinds: &[ValueClass]) -> u64 {
    kinds.iter().map(|kind| kind.count * kind.values).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(text: &str) -> Ratio {
        text.parse().unwrap()
    }

    #[test]
    fn what_a_bucket_may_hold_is_exact() {
        assert_eq!(ValueThreshold::from(ratio("1/3")).most(3), 1);
        assert_eq!(ValueThreshold::from(ratio("0.333333333")).most(3), 0);
        assert_eq!(ValueThreshold::from(ratio("0.02")).smallest_bucket(), 50);
        // theta 8, c 0.02: 8 * 3/1000 + 0.02 = 0.044
        let linear = ValueThreshold::linear(ratio("8"), ratio("0.02"), 3, 1000);
        assert_eq!((linear.most(22), linear.most(23)), (0, 1));
        assert_eq!(linear, ValueThreshold::from(ratio("0.044")));
        assert!(ValueThreshold::linear(ratio("8"), ratio("0.02"), 200, 1000).is_all());
        // the largest that can be declared
        let large =
            ValueThreshold::linear(ratio("0.999999999"), ratio("1/999999999"), u32::MAX.into(), u32::MAX.into());
        assert!(large.most(u32::MAX.into()) <= u32::MAX.into());
    }

    #[test]
    fn only_values_that_occur_count() {
        let (half, third) = (ValueThreshold::from(ratio("1/2")), ValueThreshold::from(ratio("1/3")));
        let kinds = kinds(&[4, 0, 2, 4, 2], &[half, third, third, half, third]);
        assert_eq!(kinds.len(), 2);
        assert_eq!((rows(&kinds), too_frequent(&kinds)), (12, 0));
        assert_eq!(too_frequent(&super::kinds(&[4, 2, 3], &[half, third, third])), 0);
        assert_eq!(too_frequent(&super::kinds(&[4, 2, 4], &[third, third, third])), 2);
    }
}
