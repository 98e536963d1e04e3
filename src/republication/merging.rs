//! Merges of single survivors of one signature.

use std::collections::{BTreeMap, BTreeSet};

use super::components::ComponentForest;
use crate::random::RandomStream;

/// A member who is alone in his bucket.
#[derive(Clone, Copy)]
pub(super) struct Single {
    /// The position among the members.
    pub(super) member: u32,
    pub(super) bucket: u32,
    pub(super) slot: u16,
}

/// The bins that a single may try.
const TRIES: usize = 8;

/// A bucket in the making.
#[derive(Default)]
struct Bin {
    slots: BTreeSet<u16>,
    singles: Vec<Single>,
}

/// The groups of singles of one signature that become buckets. ComponentForest of a group are joined at once, so a later group of the
/// same night does not join them again.
pub(super) fn groups(
    singles: &[Single],
    components: &mut ComponentForest,
    stream: &mut RandomStream,
) -> Vec<Vec<Single>> {
    let mut by_slot: BTreeMap<u16, Vec<Single>> = BTreeMap::new();
    singles.iter().for_each(|single| by_slot.entry(single.slot).or_default().push(*single));
    by_slot.values_mut().for_each(|equal| stream.shuffle(equal));
    let mut order: Vec<Vec<Single>> = by_slot.into_values().collect();
    stream.shuffle(&mut order);
    order.sort_by_key(|equal| std::cmp::Reverse(equal.len()));
    let mut bins: Vec<Bin> = Vec::new();
    bins.resize_with(order.first().map_or(0, Vec::len), Bin::default);
    for equal in &order {
        let mut free = 0;
        for single in equal {
            let own = components.of(single.bucket);
            for bin in bins.iter_mut().skip(free).take(TRIES) {
                let joined = bin.singles.first().map(|first| components.of(first.bucket));
                if joined == Some(own) || bin.slots.contains(&single.slot) {
                    continue;
                }
                if let Some(joined) = joined {
                    components.join(joined, own);
                }
                bin.slots.insert(single.slot);
                bin.singles.push(*single);
                break;
            }
            while bins.get(free).is_some_and(|bin| bin.slots.contains(&single.slot)) {
                free += 1;
            }
        }
    }
    bins.into_iter().map(|bin| bin.singles).filter(|singles| singles.len() > 1).collect()
}
