//! Possible values at the slots with one primary value.
//!
//! The graph has the kinds of rows as nodes. A bucket with a row of one kind leads from it to all kinds that the sets of the bucket
//! admit; row and slot are strongly connected if these kinds are.

use std::collections::HashMap;
use std::ops::Range;

use ahash::RandomState;
use rayon::prelude::*;

use super::attack::GroupSlot;
use super::codes::{CodeSet, PublishedSets};
use super::kinds::{Holder, RowKinds};
use super::mask::ValueMask;
use crate::control::{Cancelled, Control};

/// The slots of all buckets, with their possible values.
pub(super) fn possible(
    kinds: &RowKinds,
    sets: &PublishedSets,
    control: &Control,
) -> Result<Vec<Vec<GroupSlot>>, Cancelled> {
    let masks = |at: usize| AlikeKinds::new(kinds, at).masks(&kinds.holders[at], sets, control);
    let all: Vec<Vec<Vec<ValueMask>>> =
        (0..kinds.primaries.len()).into_par_iter().map(masks).collect::<Result<_, _>>()?;
    let mut places: Vec<Vec<GroupSlot>> = sets.iter().map(|_| Vec::new()).collect();
    for ((&primary, holders), masks) in kinds.primaries.iter().zip(&kinds.holders).zip(all) {
        for (holder, values) in holders.iter().zip(masks) {
            places[holder.group as usize].push(GroupSlot { primary, count: holder.rows as usize, values });
        }
    }
    Ok(places)
}

/// The kinds of rows with one primary value.
struct AlikeKinds<'a> {
    all: &'a RowKinds,
    /// Kinds by their value of the pivot, an attribute with the most values.
    kinds: Vec<u32>,
    pivot: usize,
    by_pivot: HashMap<u32, Range<usize>, RandomState>,
    /// Position of each kind in `kinds`.
    place: HashMap<u32, usize, RandomState>,
}

impl<'a> AlikeKinds<'a> {
    fn new(all: &'a RowKinds, primary: usize) -> Self {
        let mut kinds = all.of_primary[primary].clone();
        let attributes = kinds.first().map_or(0, |&kind| all.values(kind).len());
        let distinct = |&attribute: &usize| {
            let mut values: Vec<u32> = kinds.iter().map(|&kind| all.values(kind)[attribute]).collect();
            values.sort_unstable();
            values.dedup();
            values.len()
        };
        let pivot = (0..attributes).max_by_key(distinct).unwrap_or(0);
        let value = |kind: u32| all.values(kind).get(pivot).copied();
        kinds.sort_by_key(|&kind| value(kind));
        let mut by_pivot: HashMap<u32, Range<usize>, RandomState> = HashMap::default();
        let mut begin = 0;
        for alike in kinds.chunk_by(|&a, &b| value(a) == value(b)) {
            let end = begin + alike.len();
            by_pivot.insert(value(alike[0]).unwrap_or(0), begin..end);
            begin = end;
        }
        let place = kinds.iter().copied().zip(0..).collect();
        Self { all, kinds, pivot, by_pivot, place }
    }

    /// Calls `each` with the kinds that sets admit, and the positions of their values in the sets.
    fn admitted(&self, sets: &[CodeSet], mut each: impl FnMut(usize, &[usize])) {
        let mut positions = vec![0; sets.len()];
        let Some(pivot) = sets.get(self.pivot) else { return };
        for (at, code) in pivot.as_slice().iter().enumerate() {
            let Some(range) = self.by_pivot.get(code) else { continue };
            positions[self.pivot] = at;
            'kinds: for place in range.clone() {
                let values = self.all.values(self.kinds[place]);
                for (other, set) in sets.iter().enumerate().filter(|(other, _)| *other != self.pivot) {
                    let Some(at) = set.position(values[other]) else { continue 'kinds };
                    positions[other] = at;
                }
                each(place, &positions);
            }
        }
    }

    /// The possible values of each attribute, for each bucket that holds the primary value.
    fn masks(
        &self,
        holders: &[Holder],
        sets: &PublishedSets,
        control: &Control,
    ) -> Result<Vec<Vec<ValueMask>>, Cancelled> {
        let component = components(&self.arcs(holders, sets, control)?);
        let mut masks = Vec::with_capacity(holders.len());
        for holder in holders {
            control.check()?;
            let sets = &sets[holder.group as usize];
            let own = component[self.place[&holder.kind]];
            let mut values: Vec<ValueMask> = sets.iter().map(|set| ValueMask::none(set.len())).collect();
            self.admitted(sets, |place, positions| {
                if component[place] == own {
                    values.iter_mut().zip(positions).for_each(|(values, &at)| values.add(at));
                }
            });
            masks.push(values);
        }
        Ok(masks)
    }

    /// The kinds that a row of each kind may be exchanged for in some bucket.
    fn arcs(&self, holders: &[Holder], sets: &PublishedSets, control: &Control) -> Result<Vec<Vec<usize>>, Cancelled> {
        let mut of_kind: Vec<(usize, usize)> = Vec::with_capacity(holders.len());
        let mut arcs: Vec<Vec<usize>> = vec![Vec::new(); self.kinds.len()];
        for (at, holder) in holders.iter().enumerate() {
            let kind = self.place[&holder.kind];
            of_kind.push((kind, at));
            // the rows of a bucket may be exchanged with each other
            for more in &holder.more {
                arcs[self.place[more]].push(kind);
            }
        }
        of_kind.sort_unstable();
        let mut seen = vec![usize::MAX; self.kinds.len()];
        for of in of_kind.chunk_by(|a, b| a.0 == b.0) {
            let (kind, mut left) = (of[0].0, self.kinds.len());
            for &(_, at) in of {
                control.check()?;
                if left == 0 {
                    break;
                }
                self.admitted(&sets[holders[at].group as usize], |to, _| {
                    if seen[to] != kind {
                        seen[to] = kind;
                        left -= 1;
                        arcs[kind].push(to);
                    }
                });
            }
        }
        Ok(arcs)
    }
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
