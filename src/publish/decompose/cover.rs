//! Placement of all published values of an attribute without noise: readers know that each is the value of some row.
//!
//! A value is possible at a slot if all other values of the set find slots at the same time.

use std::collections::{BTreeSet, VecDeque};

/// Largest number of steps for a bucket and an attribute; nothing is inferred above it.
pub(super) const MAX_PLACEMENT_STEPS: u64 = 1 << 20;

/// Slots of one kind, with their possible values.
pub(super) struct SlotValues<'a> {
    pub(super) count: usize,
    pub(super) values: &'a BTreeSet<u32>,
}

/// Number of steps of a bucket, from its numbers of values and of distinct primary values.
#[must_use]
pub(super) const fn steps(values: usize, places: usize) -> u64 {
    (values as u64).saturating_mul(values as u64).saturating_mul(places as u64)
}

/// Values that stay possible at slots, given the number of slots of each kind, when each of `values` has one; `None` if not all
/// find one.
pub(super) fn covered(values: &BTreeSet<u32>, places: &[SlotValues<'_>]) -> Option<Vec<BTreeSet<u32>>> {
    let values: Vec<u32> = values.iter().copied().collect();
    let mut seats = ValuePlacement {
        free: places.iter().map(|place| place.count).collect(),
        fits: values
            .iter()
            .map(|value| (0..places.len()).filter(|&place| places[place].values.contains(value)).collect())
            .collect(),
        of: vec![None; values.len()],
        held: vec![Vec::new(); places.len()],
    };
    if !(0..values.len()).all(|value| seats.seat(value)) {
        return None;
    }
    let left = |place: usize| {
        // the value there moves to a free slot, or to the one that is left
        let reached = seats.reached(place);
        let moves = reached.iter().any(|&to| seats.free[to] > 0);
        let stays = |value: usize| moves || seats.of[value].is_some_and(|of| reached.contains(&of));
        let fits = (0..values.len()).filter(|&value| places[place].values.contains(&values[value]));
        fits.filter(|&value| stays(value)).map(|value| values[value]).collect()
    };
    Some((0..places.len()).map(left).collect())
}

/// Values placed at slots.
struct ValuePlacement {
    /// Number of free slots of each kind.
    free: Vec<usize>,
    /// Kinds of slots at which each value is possible.
    fits: Vec<Vec<usize>>,
    /// Kind of slot of each value.
    of: Vec<Option<usize>>,
    /// Values at each kind of slot.
    held: Vec<Vec<usize>>,
}

impl ValuePlacement {
    /// Finds a slot for a value, moving others; false if there is none.
    fn seat(&mut self, value: usize) -> bool {
        // the value that would come to each kind of slot
        let mut comes: Vec<Option<usize>> = vec![None; self.free.len()];
        let mut next = VecDeque::new();
        let reach = |who: usize, comes: &mut Vec<Option<usize>>, next: &mut VecDeque<usize>, fits: &[usize]| {
            for &place in fits {
                if comes[place].is_none() {
                    comes[place] = Some(who);
                    next.push_back(place);
                }
            }
        };
        reach(value, &mut comes, &mut next, &self.fits[value]);
        while let Some(mut place) = next.pop_front() {
            if self.free[place] == 0 {
                for &who in &self.held[place] {
                    reach(who, &mut comes, &mut next, &self.fits[who]);
                }
                continue;
            }
            self.free[place] -= 1;
            while let Some(who) = comes[place] {
                self.held[place].push(who);
                let Some(left) = self.of[who].replace(place) else { break };
                self.held[left].retain(|other| *other != who);
                place = left;
            }
            return true;
        }
        false
    }

    /// Kinds of slots that are reachable by moves from a kind, itself included.
    fn reached(&self, place: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::from([place]);
        let mut open = vec![place];
        while let Some(from) = open.pop() {
            for to in self.held[from].iter().flat_map(|&who| &self.fits[who]) {
                if reached.insert(*to) {
                    open.push(*to);
                }
            }
        }
        reached
    }
}
