//! Inferences of a reader of buckets, their sets and the joint table.
//!
//! A possible world assigns a row of the joint table to every slot of a bucket, one slot per row. The primary value of a slot is
//! published. The assigned row has it, its other values are in the sets of the bucket, and no row is assigned twice. A row is
//! possible at a slot if some world puts it there. The truth is a world, so that the possible rows are those on an alternating
//! cycle through it: row and slot are strongly connected. Slots of one bucket and primary value are equal, and so are rows with
//! equal values: one node represents them.
//!
//! Without noise every value of a set is that of some row. Then worlds without one of the values are ruled out, too, bucket by
//! bucket ([`PossibleTuples::covering`]). This finds what a reader of one bucket infers, not all that follows from several.
//!
//! See `docs/spec/decompose.md#attacks`.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::codes::{CodeSet, PublishedSets, RowsByGroup, SensitiveCodesByRow};
use super::cover::{MAX_PLACEMENT_STEPS, SlotValues, covered, steps};
use super::kinds::RowKinds;
use super::mask::ValueMask;
use super::possible::possible;
use crate::control::{Cancelled, Control};
use crate::publication::BreachKind;

/// Possible values at every slot.
#[derive(Clone, Debug)]
pub struct PossibleTuples<'a> {
    sets: &'a PublishedSets,
    /// Slots of each bucket, primary values rising.
    places: Vec<Vec<GroupSlot>>,
}

/// The slots of a bucket with the same primary value.
#[derive(Clone, Debug)]
pub(super) struct GroupSlot {
    pub(super) primary: u32,
    /// Number of these slots.
    pub(super) count: usize,
    /// Which published values of each other attribute are possible.
    pub(super) values: Vec<ValueMask>,
}

/// Largest number of pairs of a bucket and a kind of row with a common primary value.
pub const MAX_GROUP_PAIRS: u64 = 1 << 26;

/// Number of pairs of a bucket and a kind of row with a common primary value.
///
/// # Errors
/// [`Cancelled`]
pub fn pairs(sensitive: &SensitiveCodesByRow, groups: &RowsByGroup, control: &Control) -> Result<u64, Cancelled> {
    Ok(RowKinds::new(sensitive, groups, control)?.pairs())
}

impl<'a> PossibleTuples<'a> {
    /// Tuples that are possible in some world.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn new(
        sensitive: &SensitiveCodesByRow,
        groups: &RowsByGroup,
        sets: &'a PublishedSets,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        Ok(Self { sets, places: possible(&RowKinds::new(sensitive, groups, control)?, sets, control)? })
    }

    /// Possible tuples if the joint table lacks rows of some primary values: every published value is possible at their slots.
    #[must_use]
    pub fn without(mut self, left_out: &BTreeSet<u32>) -> Self {
        let lacks = |place: &&mut GroupSlot| left_out.contains(&place.primary);
        for (places, sets) in self.places.iter_mut().zip(self.sets) {
            for place in places.iter_mut().filter(lacks) {
                place.values = sets.iter().map(|set| ValueMask::all(set.len())).collect();
            }
        }
        self
    }

    /// Tuples that stay possible for readers who know that some attributes have no noise.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn covering(mut self, exact: &[bool], control: &Control) -> Result<Self, Cancelled> {
        let cover = |(places, sets): (&mut Vec<GroupSlot>, &Vec<CodeSet>)| {
            control.check()?;
            for (attribute, set) in sets.iter().enumerate().filter(|(attribute, _)| exact[*attribute]) {
                if steps(set.len(), places.len()) > MAX_PLACEMENT_STEPS {
                    continue;
                }
                let of: Vec<SlotValues<'_>> = places
                    .iter()
                    .map(|place| SlotValues { count: place.count, values: &place.values[attribute] })
                    .collect();
                // the true rows have all values of the set
                let Some(left) = covered(set.len(), &of) else { continue };
                places.iter_mut().zip(left).for_each(|(place, left)| place.values[attribute] = left);
            }
            Ok(())
        };
        self.places.par_iter_mut().zip(self.sets).try_for_each(cover)?;
        Ok(self)
    }

    /// Possible values of an attribute in a bucket.
    #[must_use]
    pub fn in_group(&self, group: usize, attribute: usize) -> BTreeSet<u32> {
        let set = self.sets[group][attribute].as_slice();
        let mut all = ValueMask::none(set.len());
        self.places[group].iter().for_each(|place| all.join(&place.values[attribute]));
        all.iter().map(|at| set[at]).collect()
    }

    /// Upper bound of the rows of a bucket with the same value of an attribute.
    #[must_use]
    pub fn most_alike(&self, group: usize, attribute: usize) -> usize {
        let mut alike = vec![0; self.sets[group][attribute].len()];
        for place in &self.places[group] {
            place.values[attribute].iter().for_each(|at| alike[at] += place.count);
        }
        alike.into_iter().max().unwrap_or(0)
    }
}

/// Published values that no row with a primary value of the bucket has: bucket, other attribute, value. [Ye et al. 2009] calls
/// this linkage.
#[must_use]
pub fn unlinked(
    sensitive: &SensitiveCodesByRow,
    groups: &RowsByGroup,
    sets: &PublishedSets,
) -> Vec<(usize, usize, u32)> {
    let mut found = Vec::new();
    for (attribute, codes) in sensitive.others.iter().enumerate() {
        let linked: BTreeSet<(u32, u32)> = sensitive.primary.iter().copied().zip(codes.iter().copied()).collect();
        for (at, (group, sets)) in groups.iter().zip(sets).enumerate() {
            let has = |value: u32| group.iter().any(|&row| linked.contains(&(sensitive.primary[row as usize], value)));
            let listed = sets[attribute].as_slice().iter();
            found.extend(listed.filter(|value| !has(**value)).map(|&value| (at, attribute, value)));
        }
    }
    found.sort_unstable();
    found
}

/// Published values that no world has in the bucket: bucket, other attribute, value.
#[must_use]
pub fn excludable(candidates: &PossibleTuples<'_>, sets: &PublishedSets) -> Vec<(usize, usize, u32)> {
    let mut found = Vec::new();
    for (group, sets) in sets.iter().enumerate() {
        for (attribute, set) in sets.iter().enumerate() {
            let possible = candidates.in_group(group, attribute);
            let excluded = set.as_slice().iter().filter(|value| !possible.contains(value));
            found.extend(excluded.map(|&value| (group, attribute, value)));
        }
    }
    found
}

/// An inference of a value of another attribute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct InferredBreach {
    /// Kind of the inference.
    pub kind: BreachKind,
    /// Index of the bucket.
    pub group: usize,
    /// Index of the other attribute.
    pub attribute: usize,
    /// The known or excluded primary value; `None` if none is needed.
    pub primary: Option<u32>,
}

/// Inferences that leave fewer than `fewest` values of an attribute, and values that more than 1/l of the slots have in all
/// worlds.
///
/// `l` holds the diversity of each other attribute.
#[must_use]
pub fn breaches(candidates: &PossibleTuples<'_>, l: &[u64], fewest: usize) -> Vec<InferredBreach> {
    let mut found = Vec::new();
    for (group, places) in candidates.places.iter().enumerate() {
        let rows: usize = places.iter().map(|place| place.count).sum();
        for (attribute, &l) in l.iter().enumerate() {
            let mut breach = |kind, primary| found.push(InferredBreach { kind, group, attribute, primary });
            let none = ValueMask::none(candidates.sets[group][attribute].len());
            // values that are possible at one kind of slot, and at several
            let (mut once, mut again) = (none.clone(), none);
            for GroupSlot { values, .. } in places {
                again.join(&once.common(&values[attribute]));
                once.join(&values[attribute]);
            }
            let mut forced: BTreeMap<usize, usize> = BTreeMap::new();
            for GroupSlot { primary, count, values } in places {
                let values = &values[attribute];
                if values.len() < fewest {
                    breach(BreachKind::Chain, Some(*primary));
                }
                if let (1, Some(value)) = (values.len(), values.iter().next()) {
                    *forced.entry(value).or_default() += count;
                }
                let mut others = once.without(values);
                others.join(&again);
                if others.len() < fewest {
                    breach(BreachKind::Exclusion, Some(*primary));
                }
            }
            if forced.values().any(|&count| count as u128 * u128::from(l) > rows as u128) {
                breach(BreachKind::Forced, None);
            }
        }
    }
    found.sort_unstable();
    found
}
