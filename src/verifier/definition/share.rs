use std::cmp::Ordering;

/// A share of the rows of a class: of a value, or the probability of a value for an adversary.
///
/// Terms need not be the lowest. Equal shares of classes of other sizes are not the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ShareOfRows {
    /// Number of rows with the value.
    pub count: u64,
    /// Number of rows among which the value is sought.
    pub of: u64,
}

impl ShareOfRows {
    pub(in crate::verifier) const fn new(count: u64, of: u64) -> Self {
        Self { count, of }
    }

    /// The share `count / of` in lowest terms; rounded down where a term exceeds 64 bits.
    pub(in crate::verifier) fn lowest(count: u128, of: u128) -> Self {
        let (mut a, mut b) = (count, of);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        let (mut count, mut of) = (count / a.max(1), of / a.max(1));
        while of > u128::from(u64::MAX) {
            (count, of) = (count >> 1, of >> 1);
        }
        Self { count: count as u64, of: of as u64 }
    }

    pub(in crate::verifier) fn to_f64(self) -> f64 {
        self.count as f64 / self.of as f64
    }

    /// The order by probability alone.
    pub(in crate::verifier) fn compare(self, other: Self) -> Ordering {
        let (left, right) =
            (u128::from(self.count) * u128::from(other.of), u128::from(other.count) * u128::from(self.of));
        left.cmp(&right)
    }

    /// Whether the probability is above the other one.
    pub(in crate::verifier) fn exceeds(self, other: Self) -> bool {
        self.compare(other) == Ordering::Greater
    }

    /// The order by harm: by probability, and of equal ones the smaller class is worse.
    pub(in crate::verifier) fn compare_harm(self, other: Self) -> Ordering {
        self.compare(other).then(other.of.cmp(&self.of))
    }

    /// The worse of two shares.
    pub(in crate::verifier) fn worse(self, other: Self) -> Self {
        if self.compare_harm(other) == Ordering::Less { other } else { self }
    }
}
