//! Binary logarithms as integers, each rounded to a known side.

/// Number of units of one bit.
pub(super) const BIT: i64 = 1 << FRACTION;

const FRACTION: u32 = 20;

/// The binary logarithm of `value`, at least 1, in units of 2^-20 bit, rounded down.
pub(in crate::privacy) fn log2_down(value: u64) -> i64 {
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

/// Logarithms of the factorials of 0 up to a number of rows, in units of 2^-20 bit.
pub(super) struct FactorialLogarithms {
    /// Sums of logarithms that are rounded down.
    sums: Vec<i64>,
}

impl FactorialLogarithms {
    /// The logarithms of the factorials of 0 to `most`.
    pub(super) fn new(most: usize) -> Self {
        let mut sums = Vec::with_capacity(most + 1);
        sums.push(0);
        let mut sum = 0;
        sums.extend((1..=most as u64).map(|factor| {
            sum += log2_down(factor);
            sum
        }));
        Self { sums }
    }

    /// The largest number whose factorial is kept.
    pub(super) const fn most(&self) -> usize {
        self.sums.len() - 1
    }

    /// The logarithm of the factorial of `number`, rounded down.
    pub(super) fn down(&self, number: usize) -> i64 {
        self.sums[number]
    }

    /// The logarithm of the factorial of `number`, rounded up.
    pub(super) fn up(&self, number: usize) -> i64 {
        // every factor but the powers of two is rounded
        let powers_of_two = number.checked_ilog2().map_or(0, |exponent| exponent as usize + 1);
        self.sums[number] + (number - powers_of_two) as i64
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
    fn factorials_are_sums_of_logarithms() {
        let factorials = FactorialLogarithms::new(70);
        let (mut down, mut up) = (0, 0);
        for number in 1..=70 {
            down += log2_down(number);
            up += log2_up(number);
            assert_eq!((factorials.down(number as usize), factorials.up(number as usize)), (down, up), "{number}");
        }
        assert_eq!((factorials.down(0), factorials.up(0)), (0, 0));
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
