//! Exact measures of privacy.

use std::cmp::Ordering;

/// A fraction: a share for linkability, a count over 1 for anonymity.
#[derive(Clone, Copy, Debug)]
pub struct MeasureValue {
    /// Numerator of the fraction.
    pub count: u128,
    /// Denominator of the fraction, not 0.
    pub of: u128,
}

impl MeasureValue {
    /// A whole number.
    #[must_use]
    pub const fn number(count: u128) -> Self {
        Self { count, of: 1 }
    }

    /// The nearest float, or an adjacent one.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.count as f64 / self.of as f64
    }
}

impl Ord for MeasureValue {
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut a, mut b) = (*self, *other);
        loop {
            if let (Some(left), Some(right)) = (a.count.checked_mul(b.of), b.count.checked_mul(a.of)) {
                return left.cmp(&right);
            }
            // the products are too long: integer parts decide, then the reciprocals of the remainders
            let whole = (a.count / a.of).cmp(&(b.count / b.of));
            let (a_rest, b_rest) = (a.count % a.of, b.count % b.of);
            if whole.is_ne() || a_rest == 0 || b_rest == 0 {
                return whole.then((a_rest != 0).cmp(&(b_rest != 0)));
            }
            (a, b) = (Self { count: b.of, of: b_rest }, Self { count: a.of, of: a_rest });
        }
    }
}

impl PartialOrd for MeasureValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for MeasureValue {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for MeasureValue {}
