//! Founding buckets: full buckets of newcomers alone.

use std::collections::BTreeMap;

use crate::random::RandomStream;

/// A value of a cohort, by its rank, and the number of newcomers with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CohortValue {
    /// The rank of the value among the values of the night.
    pub value: u32,
    /// The number of newcomers.
    pub newcomers: u64,
}

/// The number of founding buckets of a cohort. It depends on the counts alone, and so do all decisions on founding.
pub trait FoundingRule {
    /// The number of buckets; `None` if the cohort is not eligible and waits.
    ///
    /// Each bucket must keep the guarantee when newcomers, sorted by value, are dealt to the buckets in turn.
    fn buckets(&self, counts: &[CohortValue]) -> Option<u64>;
}

/// Buckets of at least l newcomers with distinct values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Diversity {
    /// The least number of newcomers of a bucket.
    pub l: u64,
}

impl FoundingRule for Diversity {
    fn buckets(&self, counts: &[CohortValue]) -> Option<u64> {
        let all: u64 = counts.iter().map(|count| count.newcomers).sum();
        let most = counts.iter().map(|count| count.newcomers).max()?;
        let is_eligible = self.l > 0 && u128::from(most) * u128::from(self.l) <= u128::from(all);
        is_eligible.then(|| all / self.l)
    }
}

/// A newcomer: the row and the rank of the value.
#[derive(Clone, Copy)]
pub(super) struct Newcomer {
    pub(super) row: u32,
    pub(super) value: u32,
}

/// The counts of a cohort, by rising value.
pub(super) fn counts(cohort: &[Newcomer]) -> Vec<CohortValue> {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    cohort.iter().for_each(|newcomer| *counts.entry(newcomer.value).or_default() += 1);
    counts.into_iter().map(|(value, newcomers)| CohortValue { value, newcomers }).collect()
}

/// Deals a cohort by the wrap-around rule: newcomers by value, equal values in drawn order, newcomer t to bucket t mod b.
///
/// The place of a newcomer in his bucket is his slot: values rise along a bucket.
pub(super) fn deal(mut cohort: Vec<Newcomer>, buckets: usize, stream: &mut RandomStream) -> Vec<Vec<Newcomer>> {
    cohort.sort_by_key(|newcomer| newcomer.value);
    cohort.chunk_by_mut(|a, b| a.value == b.value).for_each(|equal| stream.shuffle(equal));
    let mut dealt: Vec<Vec<Newcomer>> = vec![Vec::new(); buckets];
    for (newcomer, at) in cohort.into_iter().zip((0..buckets).cycle()) {
        dealt[at].push(newcomer);
    }
    dealt
}
