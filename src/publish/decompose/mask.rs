//! Which values of a published set are possible at a slot.

use smallvec::{SmallVec, smallvec};

/// Positions in a set of codes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ValueMask(SmallVec<[u64; 1]>);

impl ValueMask {
    /// No position of a set of `len` codes.
    pub(super) fn none(len: usize) -> Self {
        Self(smallvec![0; len.div_ceil(64)])
    }

    /// Every position of a set of `len` codes.
    pub(super) fn all(len: usize) -> Self {
        let mut all = Self::none(len);
        (0..len).for_each(|at| all.add(at));
        all
    }

    pub(super) fn add(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.0[at / 64] &= !(1 << (at % 64));
    }

    #[cfg(test)]
    pub(super) fn has(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    /// Adds the positions of another mask.
    pub(super) fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    /// The positions of both masks.
    pub(super) fn common(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(word, other)| word & other).collect())
    }

    /// The positions that the other mask does not have.
    pub(super) fn without(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(word, other)| word & !other).collect())
    }

    /// Number of positions.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The positions, rising.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().zip((0..).step_by(64)).flat_map(|(&word, from)| {
            let rest = |word: &u64| Some(word & (word - 1)).filter(|rest| *rest > 0);
            std::iter::successors((word > 0).then_some(word), rest)
                .map(move |word| from + word.trailing_zeros() as usize)
        })
    }
}
