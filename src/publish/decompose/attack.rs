//! What a reader of groups, their sets and the sensitive table can conclude.
//!
//! A world gives every place of a group - one for each of its rows, of which the primary value is published - a row of the
//! sensitive table with that primary value, whose other values are in the group's sets, no row twice. A row is possible at a place
//! when some world puts it there. The true one is a world, so the possible ones are those that an alternating cycle through it
//! reaches: the row and the place are strongly connected. Places of one group and primary value are alike, and so are rows with
//! equal values: one node stands for all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Groups, Sensitive, Sets};
use crate::control::{Cancelled, Control};

/// The possible rows of every place, as kinds of rows with equal sensitive values.
#[derive(Debug)]
pub struct Candidates {
    /// The other attributes' values of each kind.
    kinds: Vec<Vec<u32>>,
    /// Per group and primary value: how many places there are, and the kinds that are possible at each of them.
    places: Vec<BTreeMap<u32, (usize, Vec<usize>)>>,
}

impl Candidates {
    /// What all worlds leave possible.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn of(sensitive: &Sensitive, groups: &Groups, sets: &Sets, control: &Control) -> Result<Self, Cancelled> {
        // per primary value, its kinds of rows, and which of them are in which group
        let mut numbers: BTreeMap<(u32, Vec<u32>), usize> = BTreeMap::new();
        let mut kinds = Vec::new();
        let mut examples = Vec::new();
        let mut there: BTreeMap<u32, BTreeMap<usize, BTreeSet<usize>>> = BTreeMap::new();
        let mut places: Vec<BTreeMap<u32, (usize, Vec<usize>)>> = vec![BTreeMap::new(); groups.len()];
        for (at, group) in groups.iter().enumerate() {
            control.check()?;
            for &row in group {
                let primary = sensitive.primary[row as usize];
                let values: Vec<u32> = sensitive.others.iter().map(|codes| codes[row as usize]).collect();
                let kind = *numbers.entry((primary, values.clone())).or_insert_with(|| {
                    kinds.push(values);
                    examples.push(row);
                    kinds.len() - 1
                });
                there.entry(primary).or_default().entry(at).or_default().insert(kind);
                places[at].entry(primary).or_default().0 += 1;
            }
        }
        let mut of_primary: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for ((primary, _), &kind) in &numbers {
            of_primary.entry(*primary).or_default().push(kind);
        }
        for (primary, holders) in &there {
            let kinds = &of_primary[primary];
            // nodes: the groups, then the kinds; a group leads to the kinds that its sets admit, a kind to where it truly is
            let mut arcs: Vec<Vec<usize>> = Vec::with_capacity(holders.len() + kinds.len());
            for &group in holders.keys() {
                control.check()?;
                let admitted =
                    kinds.iter().enumerate().filter(|(_, kind)| sensitive.admitted(examples[**kind], &sets[group]));
                arcs.push(admitted.map(|(at, _)| holders.len() + at).collect());
            }
            let place: BTreeMap<usize, usize> = kinds.iter().copied().zip(0..).collect();
            arcs.resize(holders.len() + kinds.len(), Vec::new());
            for (at, of_group) in holders.values().enumerate() {
                of_group.iter().for_each(|kind| arcs[holders.len() + place[kind]].push(at));
            }
            let component = components(&arcs);
            for (at, group) in holders.keys().enumerate() {
                let possible = arcs[at].iter().filter(|&&node| component[node] == component[at]);
                let possible = possible.map(|node| kinds[node - holders.len()]).collect();
                if let Some(place) = places[*group].get_mut(primary) {
                    place.1 = possible;
                }
            }
        }
        Ok(Self { kinds, places })
    }

    /// The values of an attribute that are possible at the places of some kinds.
    fn values<'a>(&'a self, kinds: impl Iterator<Item = &'a usize>, attribute: usize) -> BTreeSet<u32> {
        kinds.map(|&kind| self.kinds[kind][attribute]).collect()
    }

    /// The values of an attribute that are possible in a group.
    #[must_use]
    pub fn in_group(&self, group: usize, attribute: usize) -> BTreeSet<u32> {
        self.values(self.places[group].values().flat_map(|(_, kinds)| kinds), attribute)
    }
}

/// The strongly connected component of each node (Tarjan, without recursion).
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
        // a node, and which of its arcs comes next
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

/// Published values of each group that no row of the sensitive table with one of its primary values has: group, other attribute,
/// value (linkage, as the authors have it).
#[must_use]
pub fn unlinked(sensitive: &Sensitive, groups: &Groups, sets: &Sets) -> Vec<(usize, usize, u32)> {
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

/// Published values that no world has in the group: group, other attribute, value.
#[must_use]
pub fn excludable(candidates: &Candidates, sets: &Sets) -> Vec<(usize, usize, u32)> {
    let mut found = Vec::new();
    for (group, sets) in sets.iter().enumerate() {
        for (attribute, set) in sets.iter().enumerate() {
            let possible = candidates.in_group(group, attribute);
            found.extend(set.difference(&possible).map(|&value| (group, attribute, value)));
        }
    }
    found
}

/// What leads a reader of the sensitive table to a value of another attribute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum BreachKind {
    /// Somebody's primary value is known, and with it the value.
    Chain,
    /// A primary value is known not to be somebody's, and with that the value.
    Exclusion,
    /// So many places of the group have the value in every world that their share is above the bound.
    Forced,
}

/// A value of another attribute that can be concluded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Breach {
    /// How.
    pub kind: BreachKind,
    /// The group.
    pub group: usize,
    /// The other attribute, by its index.
    pub attribute: usize,
    /// The primary value that is known, or excluded; none where none needs to be.
    pub primary: Option<u32>,
}

/// Every conclusion that leaves fewer than `fewest` values of an attribute, and every value that more of a group's places than 1/l
/// have in all worlds; `l` is that of each other attribute.
#[must_use]
pub fn breaches(candidates: &Candidates, l: &[u64], fewest: usize) -> Vec<Breach> {
    let mut found = Vec::new();
    for (group, places) in candidates.places.iter().enumerate() {
        let rows: usize = places.values().map(|(count, _)| count).sum();
        for (attribute, &l) in l.iter().enumerate() {
            let mut breach = |kind, primary| found.push(Breach { kind, group, attribute, primary });
            let mut forced: BTreeMap<u32, usize> = BTreeMap::new();
            for (&primary, (count, kinds)) in places {
                let values = candidates.values(kinds.iter(), attribute);
                if values.len() < fewest {
                    breach(BreachKind::Chain, Some(primary));
                }
                if let (1, Some(&value)) = (values.len(), values.first()) {
                    *forced.entry(value).or_default() += count;
                }
                let others = places.iter().filter(|(other, _)| **other != primary);
                let left = candidates.values(others.flat_map(|(_, (_, kinds))| kinds), attribute);
                if left.len() < fewest {
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
