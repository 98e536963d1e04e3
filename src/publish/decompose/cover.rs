//! Where every published value of an attribute is some row's, and readers are told so: whatever its other places cannot have, one of them
//! must. A value is possible at a place of a group when all values of the group find places beside it there.

use std::collections::{BTreeSet, VecDeque};

/// So many steps are taken for a group and an attribute; of more, nothing is concluded from this.
pub(super) const MAX_PLACEMENT_STEPS: u64 = 1 << 20;

/// How many steps a group takes that publishes so many values, with so many different primary values.
#[must_use]
pub(super) const fn steps(values: usize, places: usize) -> u64 {
    (values as u64).saturating_mul(values as u64).saturating_mul(places as u64)
}

/// What is left of what is possible at places, so many of each kind, when each of `values` stands at one of them; `None` where not all
/// find places.
pub(super) fn covered(values: &BTreeSet<u32>, places: &[(usize, &BTreeSet<u32>)]) -> Option<Vec<BTreeSet<u32>>> {
    let values: Vec<u32> = values.iter().copied().collect();
    let mut seats = ValuePlacement {
        free: places.iter().map(|(count, _)| *count).collect(),
        fits: values
            .iter()
            .map(|value| (0..places.len()).filter(|&place| places[place].1.contains(value)).collect())
            .collect(),
        of: vec![None; values.len()],
        held: vec![Vec::new(); places.len()],
    };
    if !(0..values.len()).all(|value| seats.seat(value)) {
        return None;
    }
    let left = |place: usize| {
        // who sits there moves on to a free place, or to the one that is left
        let reached = seats.reached(place);
        let moves = reached.iter().any(|&to| seats.free[to] > 0);
        let stays = |value: usize| moves || seats.of[value].is_some_and(|of| reached.contains(&of));
        let fits = (0..values.len()).filter(|&value| places[place].1.contains(&values[value]));
        fits.filter(|&value| stays(value)).map(|value| values[value]).collect()
    };
    Some((0..places.len()).map(left).collect())
}

/// Values at places.
struct ValuePlacement {
    /// Per kind of place, how many are free.
    free: Vec<usize>,
    /// Per value, the places where it is possible.
    fits: Vec<Vec<usize>>,
    /// Per value, where it sits.
    of: Vec<Option<usize>>,
    /// Per kind of place, who sits there.
    held: Vec<Vec<usize>>,
}

impl ValuePlacement {
    /// Finds a place for a value, moving others on; false where there is none.
    fn seat(&mut self, value: usize) -> bool {
        // who would come to a place
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

    /// The places that someone can move on to when one more comes to a place, and that place.
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
