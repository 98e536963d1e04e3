//! How improbable an agreement of independent rows is, again from its definition.

use num_bigint::BigUint;

/// Units of a bit.
const UNITS: f64 = 256.0;

/// Closer to a whole number than this, floating point does not decide.
const MIN_DISTANCE: f64 = 1e-8;

/// Rounding, and the correction of the bounds of factorials by Robbins (1955).
const CORRECTION: i64 = 63;

/// `floor(256 log2(top / bottom))`.
fn units(top: u64, bottom: u64) -> i64 {
    let approximate = UNITS * ((top as f64).log2() - (bottom as f64).log2());
    if (approximate - approximate.round()).abs() > MIN_DISTANCE {
        return approximate.floor() as i64;
    }
    let whole = approximate.round() as i64;
    // whether (top / bottom)^256 reaches 2^whole
    let (mut top, mut bottom) = (BigUint::from(top).pow(256), BigUint::from(bottom).pow(256));
    if whole >= 0 {
        bottom <<= whole as u64;
    } else {
        top <<= whole.unsigned_abs();
    }
    if top >= bottom { whole } else { whole - 1 }
}

/// A lower bound of the surprise of a block with these counts, in 1/256 bit.
pub(super) fn surprise(counts: &[u64]) -> u64 {
    if counts.len() < 2 {
        return 0;
    }
    let of_counts: i64 = counts.iter().map(|count| units(333 * count, 53)).sum();
    let of_all = units(710 * counts.iter().sum::<u64>(), 113);
    ((of_counts - of_all - CORRECTION).max(0) / 2) as u64
}

/// Whether at least `cross` of `twins` fair coins show one side with probability below 2^-80.
pub(super) fn exceeds_fair_coins(cross: u64, twins: u64) -> bool {
    let (mut choices, mut tail) = (BigUint::from(1_u8), BigUint::ZERO);
    let mut heads = twins;
    while heads >= cross {
        tail += &choices;
        if heads == 0 {
            break;
        }
        choices = choices * heads / (twins - heads + 1);
        heads -= 1;
    }
    (tail << 80_u8) < (BigUint::from(1_u8) << twins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_exact() {
        // powers of two are whole, and what is next to them is not
        assert_eq!((units(1, 1), units(8, 1), units(1, 4)), (0, 768, -512));
        for count in (1..2_000).chain([1 << 20, 99_999_999]) {
            let found = units(333 * count, 53);
            let power = |base: u64| BigUint::from(base).pow(256);
            let reaches = |t: i64| power(333 * count) >= power(53) << t as u64;
            assert!(reaches(found) && !reaches(found + 1), "{count}");
        }
    }

    #[test]
    fn coins_are_fair() {
        assert!(exceeds_fair_coins(81, 81) && !exceeds_fair_coins(80, 80) && !exceeds_fair_coins(0, 0));
        assert!(exceeds_fair_coins(320, 400) && !exceeds_fair_coins(300, 400) && !exceeds_fair_coins(200, 400));
    }
}
