//! Placement of all published values of an attribute without noise: readers know that each is the value of some row.
//!
//! A value is possible at a slot if all other values of the set find slots at the same time.

use std::collections::VecDeque;

use super::mask::ValueMask;

/// Largest number of steps for a bucket and an attribute; nothing is inferred above it.
pub(super) const MAX_PLACEMENT_STEPS: u64 = 1 << 20;

/// Slots of one kind, with their possible values.
pub(super) struct SlotValues<'a> {
    pub(super) count: usize,
    pub(super) values: &'a ValueMask,
}

/// Number of steps of a bucket, from its numbers of values and of distinct primary values.
#[must_use]
pub(super) const fn steps(values: usize, places: usize) -> u64 {
    (values as u64).saturating_mul(values as u64).saturating_mul(places as u64)
}

/// Values that stay possible at slots, given the number of slots of each kind, when each of the `values` has one; `None` if not
/// all find one.
pub(super) fn covered(values: usize, places: &[SlotValues<'_>]) -> Option<Vec<ValueMask>> {
    let mut fits = vec![Vec::new(); values];
    for (at, place) in places.iter().enumerate() {
        place.values.iter().for_each(|value| fits[value].push(at));
    }
    let mut seats = ValuePlacement {
        free: places.iter().map(|place| place.count).collect(),
        fits,
        of: vec![None; values],
        held: vec![Vec::new(); places.len()],
    };
    let mut comes = vec![None; places.len()];
    if !(0..values).all(|value| seats.seat(value, &mut comes)) {
        return None;
    }
    let mut left: Vec<ValueMask> = Vec::with_capacity(places.len());
    let mut reached = vec![false; places.len()];
    for (place, of) in places.iter().enumerate() {
        // the value there moves to a free slot, or to the one that is left
        let moves = seats.reach(place, &mut reached);
        let mut stay = of.values.clone();
        if !moves {
            let stays = |value: usize| seats.of[value].is_some_and(|of| reached[of]);
            of.values.iter().filter(|&value| !stays(value)).for_each(|value| stay.remove(value));
        }
        left.push(stay);
    }
    Some(left)
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
    fn seat(&mut self, value: usize, comes: &mut [Option<usize>]) -> bool {
        if let Some(&place) = self.fits[value].iter().find(|&&place| self.free[place] > 0) {
            self.free[place] -= 1;
            self.held[place].push(value);
            self.of[value] = Some(place);
            return true;
        }
        // the value that would come to each kind of slot
        comes.fill(None);
        let mut next = VecDeque::new();
        let reach = |who: usize, comes: &mut [Option<usize>], next: &mut VecDeque<usize>, fits: &[usize]| {
            for &place in fits {
                if comes[place].is_none() {
                    comes[place] = Some(who);
                    next.push_back(place);
                }
            }
        };
        reach(value, comes, &mut next, &self.fits[value]);
        while let Some(mut place) = next.pop_front() {
            if self.free[place] == 0 {
                for &who in &self.held[place] {
                    reach(who, comes, &mut next, &self.fits[who]);
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

    /// Finds the kinds of slots that are reachable by moves from a kind, itself included, or stops with true at a free slot.
    fn reach(&self, place: usize, reached: &mut [bool]) -> bool {
        reached.fill(false);
        reached[place] = true;
        let mut open = vec![place];
        while let Some(from) = open.pop() {
            if self.free[from] > 0 {
                return true;
            }
            for &to in self.held[from].iter().flat_map(|&who| &self.fits[who]) {
                if !std::mem::replace(&mut reached[to], true) {
                    open.push(to);
                }
            }
        }
        false
    }
}
