//! Groups of movers: distinct new values, none of them in the last signature of any member.

use std::collections::BTreeMap;

use super::division::Mover;
use super::state::State;
use crate::control::{Cancelled, Control};
use crate::random::RandomStream;

/// The movers of a value that are looked at for one place.
const LOOKED_AT: usize = 64;

/// The groups, each of `size` movers by rising value. Who fits in no group is left out.
pub(super) fn groups(
    state: &State,
    mut movers: Vec<Mover>,
    size: usize,
    stream: &mut RandomStream,
    control: &Control,
) -> Result<Vec<Vec<Mover>>, Cancelled> {
    stream.shuffle(&mut movers);
    let mut by_value: BTreeMap<u32, Vec<Mover>> = BTreeMap::new();
    // the first of a value is the last of its list, where taking is cheap
    movers.iter().rev().for_each(|mover| by_value.entry(mover.value).or_default().push(*mover));
    let mut groups = Vec::new();
    loop {
        control.check()?;
        let mut order: Vec<(usize, u32)> = by_value.iter().map(|(value, left)| (left.len(), *value)).collect();
        order.retain(|(left, _)| *left > 0);
        order.sort_by_key(|&(left, value)| (std::cmp::Reverse(left), value));
        let Some(&(_, most)) = order.first() else { return Ok(groups) };
        let mut group: Vec<Mover> = by_value.get_mut(&most).and_then(Vec::pop).into_iter().collect();
        for &(_, value) in &order[1..] {
            if group.len() == size {
                break;
            }
            let knows = |mover: &Mover, value: u32| {
                state.signature(state.members[mover.member as usize].bucket).contains(&value)
            };
            if group.iter().any(|placed| knows(placed, value)) {
                continue;
            }
            let Some(left) = by_value.get_mut(&value) else { continue };
            let fits = |mover: &Mover| !group.iter().any(|placed| knows(mover, placed.value));
            if let Some(at) = left.iter().rev().take(LOOKED_AT).position(fits) {
                group.push(left.remove(left.len() - 1 - at));
            }
        }
        if group.len() < size {
            // the opener is left out for the night
            for mover in group.drain(1..) {
                by_value.entry(mover.value).or_default().push(mover);
            }
            continue;
        }
        group.sort_by_key(|mover| mover.value);
        groups.push(group);
    }
}
