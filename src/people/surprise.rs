//! How improbable it is that independent rows agree, alike on all machines.

use std::collections::HashMap;

use ahash::RandomState;
use num_bigint::BigUint;

/// Units of a bit in which surprise is counted.
pub const UNITS_PER_BIT: u64 = 256;

/// 1/(2 pi) lies between these fractions; the bound needs the first below and the second above.
const BELOW: (u64, u64) = (333, 53);
const ABOVE: (u64, u64) = (710, 113);

/// Units that rounding and the correction of Robbins' bounds cost.
const ROUNDING: i64 = 63;

/// The share of twins that a test of 80 bits leaves to chance.
const TWIN_BITS: u64 = 80;

/// A distance from the next integer far above the errors of floating-point logarithms, which are below 2^-40 here.
const SAFE_DISTANCE: f64 = 1.0 / 1024.0;

/// `floor(256 log2(top / bottom))`, of numbers that a floating-point number holds exactly.
fn log2_units(top: u64, bottom: u64) -> i64 {
    let near = (top as f64 / bottom as f64).log2() * UNITS_PER_BIT as f64;
    // away from integers no error changes what is rounded, so that all machines agree
    if (near - near.round()).abs() > SAFE_DISTANCE {
        return near.floor() as i64;
    }
    log2_units_by_powers(top, bottom)
}

/// The same: the greatest t with 2^t <= (top / bottom)^256.
fn log2_units_by_powers(top: u64, bottom: u64) -> i64 {
    let power = |base: u64| BigUint::from(base).pow(UNITS_PER_BIT as u32);
    let (top, bottom) = (power(top), power(bottom));
    let guess = top.bits() as i64 - bottom.bits() as i64;
    let is_above = if guess >= 0 { top < bottom << guess } else { top << -guess < bottom };
    guess - i64::from(is_above)
}

/// The surprise of blocks: a lower bound of `-log2` of the largest probability that any distribution gives the counts
/// of a block.
#[derive(Default)]
pub(super) struct SurpriseTable {
    terms: HashMap<u64, i64, RandomState>,
    /// Of the numbers of rows of blocks: a value has a block in each other column.
    sizes: HashMap<u64, i64, RandomState>,
}

/// The counts of a block that were seen so far.
#[derive(Clone, Copy, Default)]
pub(super) struct BlockCounts {
    terms: i64,
    size: u64,
    values: u64,
}

impl SurpriseTable {
    /// Adds a value that occurs in `count` rows of the block.
    pub(super) fn add(&mut self, block: &mut BlockCounts, count: u64) {
        let term = *self.terms.entry(count).or_insert_with(|| log2_units(BELOW.0 * count, BELOW.1));
        block.terms += term;
        block.size += count;
        block.values += 1;
    }

    /// The surprise of a block, in 1/256 bit.
    pub(super) fn surprise(&mut self, BlockCounts { terms, size, values }: BlockCounts) -> u64 {
        if values < 2 {
            return 0;
        }
        let of_all = *self.sizes.entry(size).or_insert_with(|| log2_units(ABOVE.0 * size, ABOVE.1));
        u64::try_from((terms - of_all - ROUNDING).div_euclid(2)).unwrap_or(0)
    }
}

/// Whether a fair coin shows one side at least `cross` times in `twins` throws with probability below 2^-80.
pub(super) fn exceeds_chance(cross: u64, twins: u64) -> bool {
    // fewer twins, or no majority of them, cannot
    if twins <= TWIN_BITS || cross * 2 <= twins {
        return false;
    }
    let (mut tail, mut choices) = (BigUint::ZERO, BigUint::from(1_u8));
    for drawn in 0..=twins {
        if drawn >= cross {
            tail += &choices;
        }
        choices = choices * (twins - drawn) / (drawn + 1);
    }
    tail << TWIN_BITS < BigUint::from(1_u8) << twins
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn surprise(counts: &[u64]) -> u64 {
        let (mut table, mut block) = (SurpriseTable::default(), BlockCounts::default());
        counts.iter().for_each(|count| table.add(&mut block, *count));
        table.surprise(block)
    }

    #[test]
    fn logarithms_are_those_of_powers() {
        for count in (1..3_000).chain((1 << 32) - 100..1 << 32) {
            for (top, bottom) in [(BELOW.0 * count, BELOW.1), (ABOVE.0 * count, ABOVE.1), (count, 1)] {
                assert_eq!(log2_units(top, bottom), log2_units_by_powers(top, bottom), "{top}/{bottom}");
            }
        }
    }

    #[test]
    fn surprises_are_those_of_the_vectors() {
        let vectors = include_str!("../../tests/vectors/identity/scenarios.json");
        let vectors: Value = serde_json::from_str(vectors).unwrap();
        let vectors = vectors["surprises"].as_array().unwrap();
        assert_eq!(vectors.len(), 8);
        for vector in vectors {
            let counts: Vec<u64> = serde_json::from_value(vector["counts"].clone()).unwrap();
            assert_eq!(surprise(&counts), vector["bits_256"].as_u64().unwrap(), "{counts:?}");
        }
    }

    #[test]
    fn eighty_one_twins_exceed_chance() {
        assert!(exceeds_chance(81, 81) && !exceeds_chance(80, 80));
        assert!(!exceeds_chance(0, 0) && !exceeds_chance(60, 120) && exceeds_chance(300, 320));
    }

    /// `-log2` of the multinomial probability of counts under their own shares, times 256.
    fn exact(counts: &[u64]) -> f64 {
        let ln_factorial = |n: u64| (1..=n).map(|factor| (factor as f64).ln()).sum::<f64>();
        let size: u64 = counts.iter().sum();
        let terms = counts.iter().map(|&m| m as f64 * (m as f64 / size as f64).ln() - ln_factorial(m));
        -(ln_factorial(size) + terms.sum::<f64>()) / std::f64::consts::LN_2 * UNITS_PER_BIT as f64
    }

    proptest! {
        #[test]
        fn surprise_is_below_the_exact_one(counts in prop::collection::vec(1..60_u64, 1..40)) {
            prop_assert!(surprise(&counts) as f64 <= exact(&counts).max(0.0) + 1e-6);
        }

        #[test]
        fn tails_are_those_of_pascals_triangle(twins in 0..130_u64, drawn in 0..130_u64) {
            let cross = drawn % (twins + 1);
            let mut row = vec![1.0_f64];
            for _ in 0..twins {
                let next = row.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
                row = [row[0] / 2.0].into_iter().chain(next).chain([row[row.len() - 1] / 2.0]).collect();
            }
            let tail: f64 = row.iter().skip(cross as usize).sum();
            prop_assume!((tail.log2() + 80.0).abs() > 1e-6);
            prop_assert_eq!(exceeds_chance(cross, twins), tail < 2.0_f64.powi(-80));
        }
    }
}
