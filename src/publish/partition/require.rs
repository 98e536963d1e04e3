//! What every bucket must keep alone.

use super::{Groups, Judge, Tally};
use crate::microdata::Column;

/// A predicate on counts: each value that occurs once, with its count, values rising.
pub type Predicate<'a> = Box<dyn Fn(&[(u32, u64)]) -> bool + 'a>;

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
    requirements: Vec<Requirement<'a>>,
    tally: Tally,
}

impl<'a> Each<'a> {
    /// Holds every bucket to `requirements`.
    #[must_use]
    pub fn new(requirements: Vec<Requirement<'a>>) -> Self {
        Self { requirements, tally: Tally::default() }
    }

    /// Whether the bucket of `rows` keeps every requirement.
    pub fn holds(&mut self, rows: &[u32]) -> bool {
        self.first_broken(rows).is_none()
    }

    /// The first requirement that the bucket of `rows` breaks, and the counts of the first group that does.
    pub fn first_broken(&mut self, rows: &[u32]) -> Option<(usize, Vec<(u32, u64)>)> {
        self.requirements.iter().enumerate().find_map(|(index, requirement)| {
            let Requirement { groups, sensitive, holds } = requirement;
            let mut broken = None;
            self.tally.groups(rows, *groups, &sensitive.codes, sensitive.domain.len(), |_, counts| {
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

impl Judge for Each<'_> {
    fn allows(&mut self, _: u32, left: &[u32], right: &[u32]) -> bool {
        self.holds(left) && self.holds(right)
    }
}
