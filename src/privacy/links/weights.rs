//! Weights of attributes: coarse attributes have small ones.

use super::super::discovery::log2_down;
use crate::microdata::{Attr, AttrSet, AttributeCounts};

/// The weight of every attribute in a separator: the binary logarithm of its number of values, plus one.
///
/// The unit is 2^-20 bit. Integers decide alike on every platform.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttributeWeights(Vec<u64>);

impl AttributeWeights {
    /// The weights of attributes with these numbers of distinct values.
    #[must_use]
    pub fn from_distinct(values: impl IntoIterator<Item = u64>) -> Self {
        Self(values.into_iter().map(|distinct| log2_down(distinct.max(1)) as u64 + 1).collect())
    }

    /// The weights of the attributes of a table or of a profile.
    #[must_use]
    pub fn from_counts(counts: &dyn AttributeCounts) -> Self {
        Self::from_distinct((0..counts.attributes()).map(|at| counts.distinct(Attr::from(at))))
    }

    /// Weight 1 for every attribute, where the values are not known.
    #[must_use]
    pub const fn equal() -> Self {
        Self(Vec::new())
    }

    /// The weight of an attribute; an attribute without known values has weight 1.
    #[must_use]
    pub fn weight(&self, attr: Attr) -> u64 {
        self.0.get(attr.index()).copied().unwrap_or(1)
    }

    /// The weight of a set.
    #[must_use]
    pub fn total(&self, attrs: AttrSet) -> u64 {
        attrs.iter().map(|attr| self.weight(attr)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of units of one bit.
    const BIT: u64 = 1 << 20;

    #[test]
    fn weights_are_logarithms_rounded_down() {
        for number in [1, 2, 3, 5, 7, 10, 100, 1_000, 45_222, 1_000_000] {
            let exact = (number as f64).log2() * BIT as f64;
            let found = log2_down(number) as f64;
            assert!((exact - 1e-3..exact + 1.0).contains(&(found + 1.0)) || found == exact, "{number}: {found}");
        }
        assert_eq!(AttributeWeights::from_distinct([1, 8]).total(AttrSet::first(2)), 3 * BIT + 2);
        assert_eq!(AttributeWeights::equal().total(AttrSet::first(3)), 3);
    }
}
