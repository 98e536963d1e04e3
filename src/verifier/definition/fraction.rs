use crate::publication::Ratio;

/// A distance between distributions, as a fraction: the work, and the work of distance 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::verifier) struct Distance {
    pub(in crate::verifier) work: u128,
    pub(in crate::verifier) unit: u128,
}

impl Distance {
    pub(in crate::verifier) fn to_f64(self) -> f64 {
        self.work as f64 / self.unit as f64
    }

    /// Whether the distance is at most a bound; false when the products overflow.
    pub(in crate::verifier) fn is_at_most(self, bound: Ratio) -> bool {
        let left = self.work.checked_mul(u128::from(bound.denominator()));
        let right = self.unit.checked_mul(u128::from(bound.numerator()));
        left.zip(right).is_some_and(|(left, right)| left <= right)
    }
}

/// Whether `count / total` is above `numerator / denominator`; also true when the products overflow.
pub(in crate::verifier) fn is_above(count: u128, total: u128, numerator: u64, denominator: u64) -> bool {
    let left = count.checked_mul(u128::from(denominator));
    let right = total.checked_mul(u128::from(numerator));
    left.zip(right).is_none_or(|(left, right)| left > right)
}

/// A count, shifted so that distances can be computed with it; unchanged when `total` is at most 2^40.
pub(in crate::verifier) fn scaled(count: u128, total: u128) -> u64 {
    let mut shift = 0;
    while total >> shift > 1 << 40 {
        shift += 1;
    }
    (count >> shift) as u64
}
