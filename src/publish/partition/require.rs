//! What every bucket must keep alone.

use std::borrow::Cow;
use std::convert::Infallible;

use super::{Apart, Groups, Tally};
use crate::microdata::{Codes, Column};

/// A predicate on counts: each value that occurs once, with its count, values rising.
pub type Predicate<'a> = Box<dyn Fn(&[(u32, u64)]) -> bool + Sync + 'a>;

/// What must hold of the counts of a sensitive attribute, in every bucket or in every group of rows in a bucket.
pub struct Requirement<'a> {
    /// Rows of a bucket are looked at group by group, or all together.
    pub groups: Option<&'a Groups>,
    /// The sensitive attribute.
    pub sensitive: &'a Column,
    /// Judges the counts.
    pub holds: Predicate<'a>,
}

/// Allows the splits whose halves both keep every requirement.
#[derive(Default)]
pub struct Each<'a> {
    requirements: Vec<Required<'a>>,
}

/// A requirement, of rows as they are called now.
struct Required<'a> {
    groups: Option<Cow<'a, Groups>>,
    codes: Cow<'a, Codes>,
    values: usize,
    holds: Predicate<'a>,
}

impl<'a> Each<'a> {
    /// Holds every bucket to `requirements`.
    #[must_use]
    pub fn new(requirements: Vec<Requirement<'a>>) -> Self {
        let required = |Requirement { groups, sensitive, holds }: Requirement<'a>| Required {
            groups: groups.map(Cow::Borrowed),
            codes: Cow::Borrowed(&sensitive.codes),
            values: sensitive.domain.len(),
            holds,
        };
        Self { requirements: requirements.into_iter().map(required).collect() }
    }

    /// Whether the bucket of `rows` keeps every requirement.
    #[must_use]
    pub fn holds(&self, rows: &[u32], tally: &mut Tally) -> bool {
        self.first_broken(rows, tally).is_none()
    }

    /// The first requirement that the bucket of `rows` breaks, and the counts of the first group that does.
    pub fn first_broken(&self, rows: &[u32], tally: &mut Tally) -> Option<(usize, Vec<(u32, u64)>)> {
        self.requirements.iter().enumerate().find_map(|(index, requirement)| {
            let Required { groups, codes, values, holds } = requirement;
            let mut broken = None;
            tally.groups(rows, groups.as_deref(), codes, *values, |_, counts| {
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

impl Apart for Each<'_> {
    type Memory = Tally;
    type Unclear = Infallible;

    fn allows(&self, left: &[u32], right: &[u32], memory: &mut Tally) -> Result<bool, Infallible> {
        Ok(self.holds(left, memory) && self.holds(right, memory))
    }

    fn reorder(&mut self, order: &[u32]) {
        for Required { groups, codes, .. } in &mut self.requirements {
            *codes = Cow::Owned(codes.gather(order));
            if let Some(groups) = groups {
                *groups = Cow::Owned(groups.gather(order));
            }
        }
    }
}
