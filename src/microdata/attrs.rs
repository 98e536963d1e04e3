//! Attributes and sets of attributes of one table.

use std::fmt;

/// The largest number of attributes one job may use: an [`AttrSet`] is one machine word pair.
pub const MAX_ATTRIBUTES: usize = 128;

/// An attribute: the position of a column in the table of a job, in the dataset's column order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Attr(pub u8);

impl Attr {
    /// The position as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<usize> for Attr {
    /// # Panics
    /// When `index` is not below [`MAX_ATTRIBUTES`]; specifications with more attributes are refused before.
    fn from(index: usize) -> Self {
        assert!(index < MAX_ATTRIBUTES, "attribute index out of range");
        Self(index as u8)
    }
}

/// A set of attributes, as a bit mask.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AttrSet(u128);

impl AttrSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// The first `count` attributes.
    ///
    /// # Panics
    /// When `count` exceeds [`MAX_ATTRIBUTES`].
    #[must_use]
    pub fn first(count: usize) -> Self {
        assert!(count <= MAX_ATTRIBUTES, "more attributes than a set can hold");
        if count == MAX_ATTRIBUTES { Self(u128::MAX) } else { Self((1 << count) - 1) }
    }

    /// The set of one attribute.
    #[must_use]
    pub const fn one(attr: Attr) -> Self {
        Self(1 << attr.0)
    }

    /// Whether `attr` is a member.
    #[must_use]
    pub const fn contains(self, attr: Attr) -> bool {
        self.0 >> attr.0 & 1 == 1
    }

    /// Whether no attribute is a member.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many attributes are members.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether every member is a member of `other`.
    #[must_use]
    pub const fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Whether the sets share a member.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Members of either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Members of both.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Members of `self` that are not members of `other`.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The set with `attr` added.
    #[must_use]
    pub const fn with(self, attr: Attr) -> Self {
        Self(self.0 | 1 << attr.0)
    }

    /// The set with `attr` removed.
    #[must_use]
    pub const fn without(self, attr: Attr) -> Self {
        Self(self.0 & !(1 << attr.0))
    }

    /// The members in rising order.
    pub fn iter(self) -> impl Iterator<Item = Attr> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let lowest = rest.trailing_zeros() as u8;
                rest &= rest - 1;
                Attr(lowest)
            })
        })
    }
}

impl FromIterator<Attr> for AttrSet {
    fn from_iter<I: IntoIterator<Item = Attr>>(attrs: I) -> Self {
        attrs.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Debug for AttrSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|a| a.0)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_behave_as_sets() {
        let set: AttrSet = [Attr(3), Attr(0), Attr(127)].into_iter().collect();
        assert_eq!(set.iter().map(|a| a.0).collect::<Vec<_>>(), [0, 3, 127]);
        assert_eq!(set.len(), 3);
        assert!(set.without(Attr(127)).is_subset(AttrSet::first(4)));
        assert!(!set.is_subset(AttrSet::first(127)));
        assert!(set.is_subset(AttrSet::first(128)));
        assert_eq!(set.minus(AttrSet::first(4)), AttrSet::one(Attr(127)));
    }
}
