//! Binary logarithms as integers, each rounded to a known side.

use rayon::prelude::*;

/// Number of units of one bit.
pub(super) const BIT: i64 = 1 << FRACTION;

const FRACTION: u32 = 20;

/// Values that a floating-point number holds exactly.
const EXACT_VALUES: u64 = 1 << 53;

/// A distance from the next integer far above the errors of floating-point logarithms, which are below 2^-25 here.
const SAFE_DISTANCE: f64 = 1.0 / 1024.0;

/// The binary logarithm of `value`, at least 1, in units of 2^-20 bit, rounded down.
pub(in crate::privacy) fn log2_down(value: u64) -> i64 {
    let near = (value as f64).log2() * BIT as f64;
    // away from integers no error changes what is rounded, so that all machines agree
    if value < EXACT_VALUES && (near - near.round()).abs() > SAFE_DISTANCE {
        return near.floor() as i64;
    }
    log2_by_digits(value)
}

/// The same, digit by digit.
fn log2_by_digits(value: u64) -> i64 {
    let exponent = value.ilog2();
    // 2^62 <= mantissa < 2^63; every squaring gives one binary digit
    let mut mantissa = (u128::from(value) << 62) >> exponent;
    let mut digits = 0;
    for _ in 0..FRACTION {
        mantissa = (mantissa * mantissa) >> 62;
        digits <<= 1;
        if mantissa >= 1 << 63 {
            mantissa >>= 1;
            digits |= 1;
        }
    }
    i64::from(exponent) << FRACTION | digits
}

/// The binary logarithm of `value`, at least 1, in units of 2^-20 bit, rounded up.
pub(super) fn log2_up(value: u64) -> i64 {
    log2_down(value) + i64::from(!value.is_power_of_two())
}

/// The distance between sums that are kept of a large table; the others follow from the one before.
const STEP: usize = 16;

/// Most rows of a table of which all sums are kept.
const MAX_ROWS_WITH_ALL_SUMS: usize = 1 << 16;

/// Steps that a processor takes at once.
const STEPS_TOGETHER: usize = 1 << 10;

/// Logarithms of the factorials of 0 up to a number of rows, in units of 2^-20 bit.
pub(super) struct FactorialLogarithms {
    most: usize,
    /// Sums of logarithms that are rounded down, for the factorials of 0, of one step, and so on.
    sums: Vec<i64>,
    step: usize,
}

/// The sum of the logarithms of the numbers above `from`, up to `to`.
fn sum_of_logarithms(from: usize, to: usize) -> i64 {
    (from as u64 + 1..=to as u64).map(log2_down).sum()
}

impl FactorialLogarithms {
    /// The logarithms of the factorials of 0 to `most`.
    pub(super) fn new(most: usize) -> Self {
        let step = if most <= MAX_ROWS_WITH_ALL_SUMS { 1 } else { STEP };
        let of_step = |at: usize| sum_of_logarithms(at * step, (at + 1) * step);
        let mut sums: Vec<i64> = vec![0; most / step + 1];
        sums[1..].par_iter_mut().with_min_len(STEPS_TOGETHER).enumerate().for_each(|(at, sum)| *sum = of_step(at));
        for at in 1..sums.len() {
            sums[at] += sums[at - 1];
        }
        Self { most, sums, step }
    }

    /// The largest number whose factorial is kept.
    pub(super) const fn most(&self) -> usize {
        self.most
    }

    /// The logarithm of the factorial of `number`, rounded down.
    pub(super) fn down(&self, number: usize) -> i64 {
        let at = number / self.step;
        self.sums[at] + sum_of_logarithms(at * self.step, number)
    }

    /// The logarithm of the factorial of `number`, rounded up.
    pub(super) fn up(&self, number: usize) -> i64 {
        // every factor but the powers of two is rounded
        let powers_of_two = number.checked_ilog2().map_or(0, |exponent| exponent as usize + 1);
        self.down(number) + (number - powers_of_two) as i64
    }

    /// An upper bound of the logarithm of the number of subsets of `set` elements that have at most `size` elements.
    pub(super) fn subsets(&self, set: usize, size: usize) -> i64 {
        let size = size.min(set);
        let all = set as i64 * BIT;
        if 2 * size >= set {
            return all;
        }
        let of_this_size = self.up(set) - self.down(size) - self.down(set - size);
        all.min(of_this_size + log2_up(size as u64 + 1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn log2_of_powers_of_two_is_exact() {
        for exponent in 0..63 {
            assert_eq!(log2_down(1 << exponent), BIT * exponent);
            assert_eq!(log2_up(1 << exponent), BIT * exponent);
        }
    }

    #[test]
    fn log2_of_any_number_is_that_of_its_digits() {
        for value in (1..200_000).chain((1 << 40)..(1 << 40) + 1000).chain((1 << 53) - 1000..(1 << 53) + 10) {
            assert_eq!(log2_down(value), log2_by_digits(value), "{value}");
        }
        // logarithms of numbers near powers of two are near integers
        for exponent in 2..62 {
            for value in [(1_u64 << exponent) - 1, 1 << exponent, (1 << exponent) + 1] {
                assert_eq!(log2_down(value), log2_by_digits(value), "{value}");
            }
        }
    }

    #[test]
    fn factorials_are_sums_of_logarithms() {
        // of the larger table only some are kept
        for most in [70, MAX_ROWS_WITH_ALL_SUMS + 70] {
            let factorials = FactorialLogarithms::new(most);
            let (mut down, mut up) = (0, 0);
            for number in 1..=most as u64 {
                down += log2_down(number);
                up += log2_up(number);
                assert_eq!((factorials.down(number as usize), factorials.up(number as usize)), (down, up), "{number}");
            }
            assert_eq!((factorials.down(0), factorials.up(0)), (0, 0));
        }
    }

    proptest! {
        #[test]
        fn subsets_bound_the_exact_number(set in 0usize..60, size in 0usize..60) {
            let mut choose = 1u64;
            let mut number = 1u64;
            for taken in 0..size.min(set) as u64 {
                choose = choose * (set as u64 - taken) / (taken + 1);
                number += choose;
            }
            prop_assert!(FactorialLogarithms::new(60).subsets(set, size) >= log2_down(number));
        }

        /// More elements or larger subsets are not fewer: the search relies on it.
        #[test]
        fn subsets_are_monotone(set in 0usize..500, size in 0usize..500) {
            let factorials = FactorialLogarithms::new(501);
            prop_assert!(factorials.subsets(set, size) <= factorials.subsets(set + 1, size));
            prop_assert!(factorials.subsets(set, size) <= factorials.subsets(set, size + 1));
        }
    }
}
