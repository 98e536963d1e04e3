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

use super::cover::{MAX_PLACEMENT_STEPS, SlotValues, covered, steps};
use super::{PublishedSets, RowsByGroup, SensitiveCodesByRow};
use crate::control::{Cancelled, Control};
use crate::publication::BreachKind;

/// Possible values at every slot.
#[derive(Debug)]
pub struct PossibleTuples {
    /// Slots of each bucket, by primary value.
    places: Vec<BTreeMap<u32, GroupSlot>>,
}

/// The slots of a bucket with the same primary value.
#[derive(Debug, Default)]
struct GroupSlot {
    /// Number of these slots.
    count: usize,
    /// Possible values of each other attribute.
    values: Vec<BTreeSet<u32>>,
}

/// Largest number of pairs of a bucket and a kind of row with a common primary value.
pub const MAX_GROUP_PAIRS: u64 = 1 << 26;

/// Number of pairs of a bucket and a kind of row with a common primary value.
#[must_use]
pub fn pairs(sensitive: &SensitiveCodesByRow, groups: &RowsByGroup) -> u64 {
    let mut of_primary: BTreeMap<u32, (u64, BTreeSet<Vec<u32>>)> = BTreeMap::new();
    for group in groups {
        let values: BTreeSet<u32> = group.iter().map(|&row| sensitive.primary[row as usize]).collect();
        values.into_iter().for_each(|value| of_primary.entry(value).or_default().0 += 1);
        for &row in group {
            let values = sensitive.others.iter().map(|codes| codes[row as usize]).collect();
            of_primary.entry(sensitive.primary[row as usize]).or_default().1.insert(values);
        }
    }
    of_primary.values().fold(0, |all, (groups, kinds)| all.saturating_add(groups * kinds.len() as u64))
}

impl PossibleTuples {
    /// Tuples that are possible in some world.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn new(
        sensitive: &SensitiveCodesByRow,
        groups: &RowsByGroup,
        sets: &PublishedSets,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        Self::without(sensitive, groups, sets, &BTreeSet::new(), control)
    }

    /// Possible tuples if the joint table lacks rows of some primary values: every published value is possible at their slots.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn without(
        sensitive: &SensitiveCodesByRow,
        groups: &RowsByGroup,
        sets: &PublishedSets,
        left_out: &BTreeSet<u32>,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let kinds = RowKinds::new(sensitive, groups, control)?;
        let mut places: Vec<BTreeMap<u32, GroupSlot>> = groups.iter().map(|group| slots(sensitive, group)).collect();
        for (primary, holders) in &kinds.holders {
            let possible = match left_out.contains(primary) {
                true => holders.keys().map(|&group| sets[group].clone()).collect(),
                false => kinds.possible(*primary, holders, sets, control)?,
            };
            for (&group, values) in holders.keys().zip(possible) {
                if let Some(place) = places[group].get_mut(primary) {
                    place.values = values;
                }
            }
        }
        Ok(Self { places })
    }

    /// Tuples that stay possible for readers who know that some attributes have no noise.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn covering(mut self, sets: &PublishedSets, exact: &[bool], control: &Control) -> Result<Self, Cancelled> {
        for (places, sets) in self.places.iter_mut().zip(sets) {
            control.check()?;
            for (attribute, set) in sets.iter().enumerate().filter(|(attribute, _)| exact[*attribute]) {
                if steps(set.len(), places.len()) > MAX_PLACEMENT_STEPS {
                    continue;
                }
                let of: Vec<SlotValues<'_>> = places
                    .values()
                    .map(|place| SlotValues { count: place.count, values: &place.values[attribute] })
                    .collect();
                // the true rows have all values of the set
                let Some(left) = covered(set, &of) else { continue };
                places.values_mut().zip(left).for_each(|(place, left)| place.values[attribute] = left);
            }
        }
        Ok(self)
    }

    /// Possible values of an attribute in a bucket.
    #[must_use]
    pub fn in_group(&self, group: usize, attribute: usize) -> BTreeSet<u32> {
        union(self.places[group].values(), attribute)
    }

    /// Upper bound of the rows of a bucket with the same value of an attribute.
    #[must_use]
    pub fn most_alike(&self, group: usize, attribute: usize) -> usize {
        let mut alike: BTreeMap<u32, usize> = BTreeMap::new();
        for place in self.places[group].values() {
            place.values[attribute].iter().for_each(|value| *alike.entry(*value).or_default() += place.count);
        }
        alike.into_values().max().unwrap_or(0)
    }
}

/// Slots of a bucket by primary value, without possible values.
fn slots(sensitive: &SensitiveCodesByRow, group: &[u32]) -> BTreeMap<u32, GroupSlot> {
    let mut slots: BTreeMap<u32, GroupSlot> = BTreeMap::new();
    for &row in group {
        slots.entry(sensitive.primary[row as usize]).or_default().count += 1;
    }
    slots
}

/// The kinds of rows in each bucket: rows of one kind have equal values.
struct RowKinds<'a> {
    sensitive: &'a SensitiveCodesByRow,
    /// Values of each kind, without the primary one.
    values: Vec<Vec<u32>>,
    /// A row of each kind.
    examples: Vec<u32>,
    /// Kinds with each primary value.
    of_primary: BTreeMap<u32, Vec<usize>>,
    /// By primary value, the buckets with its kinds in them.
    holders: BTreeMap<u32, BTreeMap<usize, BTreeSet<usize>>>,
}

impl<'a> RowKinds<'a> {
    fn new(sensitive: &'a SensitiveCodesByRow, groups: &RowsByGroup, control: &Control) -> Result<Self, Cancelled> {
        let mut numbers: BTreeMap<(u32, Vec<u32>), usize> = BTreeMap::new();
        let (of_primary, holders) = (BTreeMap::new(), BTreeMap::new());
        let mut kinds = Self { sensitive, values: Vec::new(), examples: Vec::new(), of_primary, holders };
        for (at, group) in groups.iter().enumerate() {
            control.check()?;
            for &row in group {
                let primary = sensitive.primary[row as usize];
                let values: Vec<u32> = sensitive.others.iter().map(|codes| codes[row as usize]).collect();
                let kind = *numbers.entry((primary, values)).or_insert_with_key(|(_, values)| {
                    kinds.values.push(values.clone());
                    kinds.examples.push(row);
                    kinds.examples.len() - 1
                });
                kinds.holders.entry(primary).or_default().entry(at).or_default().insert(kind);
            }
        }
        for ((primary, _), kind) in numbers {
            kinds.of_primary.entry(primary).or_default().push(kind);
        }
        Ok(kinds)
    }

    /// Possible values of each attribute at the slots with a primary value, for each bucket that holds it.
    fn possible(
        &self,
        primary: u32,
        holders: &BTreeMap<usize, BTreeSet<usize>>,
        sets: &PublishedSets,
        control: &Control,
    ) -> Result<Vec<Vec<BTreeSet<u32>>>, Cancelled> {
        let kinds = &self.of_primary[&primary];
        // nodes are buckets, then kinds; a bucket leads to the kinds that its sets admit, a kind to its true buckets
        let mut arcs: Vec<Vec<usize>> = Vec::with_capacity(holders.len() + kinds.len());
        for &group in holders.keys() {
            control.check()?;
            let admits = |kind: usize| self.sensitive.admitted(self.examples[kind], &sets[group]);
            let admitted = kinds.iter().enumerate().filter(|(_, kind)| admits(**kind));
            arcs.push(admitted.map(|(at, _)| holders.len() + at).collect());
        }
        let place: BTreeMap<usize, usize> = kinds.iter().copied().zip(0..).collect();
        arcs.resize(holders.len() + kinds.len(), Vec::new());
        for (at, of_group) in holders.values().enumerate() {
            of_group.iter().for_each(|kind| arcs[holders.len() + place[kind]].push(at));
        }
        let component = components(&arcs);
        let values = |at: usize| {
            let mut values = vec![BTreeSet::new(); self.sensitive.others.len()];
            for &node in arcs[at].iter().filter(|&&node| component[node] == component[at]) {
                for (values, value) in values.iter_mut().zip(&self.values[kinds[node - holders.len()]]) {
                    values.insert(*value);
                }
            }
            values
        };
        Ok((0..holders.len()).map(values).collect())
    }
}

/// Possible values of an attribute at some slots.
fn union<'a>(places: impl Iterator<Item = &'a GroupSlot>, attribute: usize) -> BTreeSet<u32> {
    places.flat_map(|place| &place.values[attribute]).copied().collect()
}

/// Strongly connected component of each node, by Tarjan's algorithm without recursion.
fn components(arcs: &[Vec<usize>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let (mut number, mut low) = (vec![NONE; arcs.len()], vec![0; arcs.len()]);
    let mut component = vec![NONE; arcs.len()];
    let (mut next, mut found) = (0, 0);
    let mut open: Vec<usize> = Vec::new();
    for root in 0..arcs.len() {
        if number[root] != NONE {
            continue;
        }
        // a node, and the index of its next arc
        let mut path = vec![(root, 0)];
        while let Some((node, arc)) = path.pop() {
            if arc == 0 {
                number[node] = next;
                low[node] = next;
                next += 1;
                open.push(node);
            }
            if let Some(&to) = arcs[node].get(arc) {
                path.push((node, arc + 1));
                if number[to] == NONE {
                    path.push((to, 0));
                } else if component[to] == NONE {
                    low[node] = low[node].min(number[to]);
                }
                continue;
            }
            if low[node] == number[node] {
                while let Some(member) = open.pop() {
                    component[member] = found;
                    if member == node {
                        break;
                    }
                }
                found += 1;
            }
            if let Some(&(parent, _)) = path.last() {
                low[parent] = low[parent].min(low[node]);
            }
        }
    }
    component
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
            found.extend(sets[attribute].iter().filter(|value| !has(**value)).map(|&value| (at, attribute, value)));
        }
    }
    found.sort_unstable();
    found
}

/// Published values that no world has in the bucket: bucket, other attribute, value.
#[must_use]
pub fn excludable(candidates: &PossibleTuples, sets: &PublishedSets) -> Vec<(usize, usize, u32)> {
    let mut found = Vec::new();
    for (group, sets) in sets.iter().enumerate() {
        for (attribute, set) in sets.iter().enumerate() {
            let possible = candidates.in_group(group, attribute);
            found.extend(set.difference(&possible).map(|&value| (group, attribute, value)));
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
pub fn breaches(candidates: &PossibleTuples, l: &[u64], fewest: usize) -> Vec<InferredBreach> {
    let mut found = Vec::new();
    for (group, places) in candidates.places.iter().enumerate() {
        let rows: usize = places.values().map(|place| place.count).sum();
        for (attribute, &l) in l.iter().enumerate() {
            let mut breach = |kind, primary| found.push(InferredBreach { kind, group, attribute, primary });
            let mut forced: BTreeMap<u32, usize> = BTreeMap::new();
            for (&primary, place) in places {
                let values = &place.values[attribute];
                if values.len() < fewest {
                    breach(BreachKind::Chain, Some(primary));
                }
                if let (1, Some(&value)) = (values.len(), values.first()) {
                    *forced.entry(value).or_default() += place.count;
                }
                let others = places.iter().filter(|(other, _)| **other != primary).map(|(_, place)| place);
                if union(others, attribute).len() < fewest {
                    breach(BreachKind::Exclusion, Some(primary));
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
