//! Requirements on every bucket by itself.

use std::borrow::Cow;
use std::convert::Infallible;

use super::halve::LocalSplitPredicate;
use super::tally::{GroupTally, TalliedRows, TallyGroups};
use super::weights::RowWeights;
use crate::microdata::{Codes, Column};

/// A predicate on counts: each occurring value once, with its count, values rising.
pub type CountPredicate<'a> = Box<dyn Fn(&[(u32, u64)]) -> bool + Sync + 'a>;

/// A requirement on the counts of a sensitive attribute, in every bucket or in every group of its rows.
pub struct BucketRequirement<'a> {
    /// Groups of rows that are judged one by one; `None` for the whole bucket.
    pub groups: Option<&'a TallyGroups>,
    /// The sensitive attribute.
    pub sensitive: &'a Column,
    /// Predicate on the counts.
    pub holds: CountPredicate<'a>,
}

/// Predicate of splits whose halves both keep every requirement.
#[derive(Default)]
pub struct PerHalfPredicate<'a> {
    requirements: Vec<BoundRequirement<'a>>,
    weights: RowWeights,
}

/// A requirement on rows under their current numbers.
struct BoundRequirement<'a> {
    groups: Option<Cow<'a, TallyGroups>>,
    codes: Cow<'a, Codes>,
    values: usize,
    holds: CountPredicate<'a>,
}

impl<'a> PerHalfPredicate<'a> {
    /// A predicate of these requirements.
    #[must_use]
    pub fn new(requirements: Vec<BucketRequirement<'a>>) -> Self {
        let required = |BucketRequirement { groups, sensitive, holds }: BucketRequirement<'a>| BoundRequirement {
            groups: groups.map(Cow::Borrowed),
            codes: Cow::Borrowed(&sensitive.codes),
            values: sensitive.domain.len(),
            holds,
        };
        Self { requirements: requirements.into_iter().map(required).collect(), weights: RowWeights::default() }
    }

    /// The same of rows that stand for several.
    #[must_use]
    pub fn weighted(self, weights: RowWeights) -> Self {
        Self { weights, ..self }
    }

    /// Whether the bucket of `rows` keeps every requirement.
    #[must_use]
    pub fn holds(&self, rows: &[u32], tally: &mut GroupTally) -> bool {
        self.first_broken(rows, tally).is_none()
    }

    /// Index of the first requirement that the bucket of `rows` breaks, and the counts of its first violating group.
    pub fn first_broken(&self, rows: &[u32], tally: &mut GroupTally) -> Option<(usize, Vec<(u32, u64)>)> {
        self.requirements.iter().enumerate().find_map(|(index, requirement)| {
            let BoundRequirement { groups, codes, values, holds } = requirement;
            let mut broken = None;
            let tallied = TalliedRows { rows, groups: groups.as_deref(), codes, values: *values };
            tally.weighted(tallied, &self.weights, |_, counts| {
                let kept = holds(counts);
                if !kept {
                    broken = Some((index, counts.to_vec()));
                }
                kept
            });
            broken
        })
    }
}

impl LocalSplitPredicate for PerHalfPredicate<'_> {
    type Memory = GroupTally;
    type Unclear = Infallible;

    fn allows(&self, left: &[u32], right: &[u32], memory: &mut GroupTally) -> Result<bool, Infallible> {
        Ok(self.holds(left, memory) && self.holds(right, memory))
    }

    fn reorder(&mut self, order: &[u32]) {
        self.weights = self.weights.gather(order);
        for BoundRequirement { groups, codes, .. } in &mut self.requirements {
            *codes = Cow::Owned(codes.gather(order));
            if let Some(groups) = groups {
                *groups = Cow::Owned(groups.gather(order));
            }
        }
    }
}
