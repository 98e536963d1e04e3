/// Whether `ways / total` is above `numerator / denominator`; also when the products are too large to say.
pub(in crate::verifier) fn beyond(ways: u128, total: u128, numerator: u64, denominator: u64) -> bool {
    let left = ways.checked_mul(u128::from(denominator));
    let right = total.checked_mul(u128::from(numerator));
    left.zip(right).is_none_or(|(left, right)| left > right)
}

pub(in crate::verifier) fn exceeds(a: (u64, u64), b: (u64, u64)) -> bool {
    u128::from(a.0) * u128::from(b.1) > u128::from(b.0) * u128::from(a.1)
}

/// A fraction in lowest terms; what does not fit is rounded.
pub(in crate::verifier) fn lowest(ways: u128, total: u128) -> (u64, u64) {
    let (mut a, mut b) = (ways, total);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    let (mut count, mut of) = (ways / a.max(1), total / a.max(1));
    while of > u128::from(u64::MAX) {
        (count, of) = (count >> 1, of >> 1);
    }
    (count as u64, of as u64)
}

/// A number of ways in a size in which distances can be computed: of small numbers itself.
pub(in crate::verifier) fn scaled(ways: u128, total: u128) -> u64 {
    let mut shift = 0;
    while total >> shift > 1 << 40 {
        shift += 1;
    }
    (ways >> shift) as u64
}
