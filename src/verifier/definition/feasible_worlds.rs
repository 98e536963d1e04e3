//! What a reader of a decomposed table and of the table of joint values can conclude, by definition (Decompose, section 8.3, E2).
//!
//! A world puts every row of the joint table at a place of its primary value - each row of a bucket is a place - where its other
//! values are all among those that the bucket publishes. A value is possible at a place when some world has it there. Places of
//! buckets that admit the same kinds of rows are alike: so many of a type are filled by a flow of kinds into types, and one more of a
//! kind can stand at a type when the flow can be led round to it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::control::{Cancelled, Control};
use crate::publication::BreachKind;

/// So many pairs of a bucket and a kind of row of one primary value are looked at.
const MAX_FEASIBILITY_PAIRS: u64 = 1 << 26;

/// Buckets whose listed values, squared, times their primary values are more are not looked through for what must stand where.
const MAX_COVER_STEPS: u64 = 1 << 20;

/// What the two tables show, values as numbers that are the same in both.
#[derive(Clone, Default)]
pub(in crate::verifier) struct ObservedDecomposition {
    /// Per bucket, the primary value of each row.
    pub(in crate::verifier) primary: Vec<Vec<u32>>,
    /// Per bucket and further attribute, the values that are published.
    pub(in crate::verifier) sets: Vec<Vec<BTreeSet<u32>>>,
    /// The rows of the joint table: the primary value, and the others.
    pub(in crate::verifier) joint: Vec<(u32, Vec<u32>)>,
    /// The further attributes of which every published value is some row's.
    pub(in crate::verifier) exact: Vec<bool>,
}

/// Places of a bucket that have the same primary value.
#[derive(Clone, Default)]
struct SlotGroup {
    count: u64,
    /// Per further attribute the values that are possible there.
    values: Vec<BTreeSet<u32>>,
}

/// What is possible, per bucket and primary value.
pub(in crate::verifier) struct PossibleValues {
    places: Vec<BTreeMap<u32, SlotGroup>>,
    rows: Vec<u64>,
}

/// Why nothing can be concluded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::verifier) enum InferenceError {
    /// It was told to stop.
    Cancelled,
    /// No world has these tables.
    Contradiction,
    /// There is more to be looked at than is allowed.
    TooMany {
        /// So many pairs are.
        limit: u64,
        /// So many there are.
        found: u64,
    },
}

impl From<Cancelled> for InferenceError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// A value that can be concluded, or so few that one is taken to be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::verifier) struct InferableValue {
    /// The bucket, counted from 0.
    pub(in crate::verifier) bucket: usize,
    /// The further attribute, by index.
    pub(in crate::verifier) attribute: usize,
    /// How.
    pub(in crate::verifier) kind: BreachKind,
    /// The primary values that are known, or known to be others'.
    pub(in crate::verifier) known: Vec<u32>,
    /// What is left.
    pub(in crate::verifier) values: BTreeSet<u32>,
    /// The rows that are certain to have it, of how many.
    pub(in crate::verifier) share: (u64, u64),
}

impl ObservedDecomposition {
    /// What is possible.
    pub(in crate::verifier) fn possible(&self, control: &Control) -> Result<PossibleValues, InferenceError> {
        let others = self.exact.len();
        let mut kinds: BTreeMap<u32, BTreeMap<&[u32], u64>> = BTreeMap::new();
        for (primary, values) in &self.joint {
            *kinds.entry(*primary).or_default().entry(values).or_default() += 1;
        }
        let mut buckets: BTreeMap<u32, BTreeMap<usize, u64>> = BTreeMap::new();
        for (bucket, rows) in self.primary.iter().enumerate() {
            rows.iter().for_each(|value| *buckets.entry(*value).or_default().entry(bucket).or_default() += 1);
        }
        if kinds.keys().any(|value| !buckets.contains_key(value)) || self.sets.len() != self.primary.len() {
            return Err(InferenceError::Contradiction);
        }
        let pairs = buckets.iter().map(|(value, of)| of.len() as u64 * kinds.get(value).map_or(0, |k| k.len() as u64));
        let found = pairs.fold(0, u64::saturating_add);
        if found > MAX_FEASIBILITY_PAIRS {
            return Err(InferenceError::TooMany { limit: MAX_FEASIBILITY_PAIRS, found });
        }
        let rows = self.primary.iter().map(|rows| rows.len() as u64).collect();
        let mut possible = PossibleValues { places: vec![BTreeMap::new(); self.primary.len()], rows };
        for (&value, of) in &buckets {
            control.check()?;
            let Some(kinds) = kinds.get(&value) else {
                // the joint table says nothing of it: whatever the bucket publishes
                for (&bucket, &count) in of {
                    possible.places[bucket].insert(value, SlotGroup { count, values: self.sets[bucket].clone() });
                }
                continue;
            };
            let kinds: Vec<(&[u32], u64)> = kinds.iter().map(|(kind, count)| (*kind, *count)).collect();
            let mut types: BTreeMap<Vec<usize>, Vec<(usize, u64)>> = BTreeMap::new();
            for (&bucket, &count) in of {
                let sets = &self.sets[bucket];
                let fits = |kind: &[u32]| kind.iter().zip(sets).all(|(value, set)| set.contains(value));
                let admitted = (0..kinds.len()).filter(|&kind| fits(kinds[kind].0)).collect();
                types.entry(admitted).or_default().push((bucket, count));
            }
            let network = AssignmentNetwork {
                supply: kinds.iter().map(|(_, count)| *count).collect(),
                demand: types.values().map(|of| of.iter().map(|(_, count)| count).sum()).collect(),
                admitted: types.keys().cloned().collect(),
            };
            let flow = network.filled(control)?.ok_or(InferenceError::Contradiction)?;
            for (of_type, of) in network.exchangeable(&flow).into_iter().zip(types.values()) {
                let value_of = |at: usize| of_type.iter().map(|&kind| kinds[kind].0[at]).collect::<BTreeSet<u32>>();
                let values: Vec<BTreeSet<u32>> = (0..others).map(value_of).collect();
                for &(bucket, count) in of {
                    possible.places[bucket].insert(value, SlotGroup { count, values: values.clone() });
                }
            }
        }
        for (places, sets) in possible.places.iter_mut().zip(&self.sets) {
            control.check()?;
            for (attribute, set) in sets.iter().enumerate().filter(|(attribute, _)| self.exact[*attribute]) {
                let steps = (set.len() as u64).pow(2).saturating_mul(places.len() as u64);
                if steps <= MAX_COVER_STEPS && !lacking(places, set, attribute) {
                    return Err(InferenceError::Contradiction);
                }
            }
        }
        Ok(possible)
    }

    /// How many rows of a bucket can have the same value of an attribute.
    pub(in crate::verifier) fn alike(&self, possible: &PossibleValues, bucket: usize, attribute: usize) -> u64 {
        let mut alike: BTreeMap<u32, u64> = BTreeMap::new();
        for places in possible.places[bucket].values() {
            places.values[attribute].iter().for_each(|value| *alike.entry(*value).or_default() += places.count);
        }
        let most = alike.into_values().max().unwrap_or(0);
        // where each published value is some row's, no more rows are left for one
        let spare = (possible.rows[bucket] + 1).saturating_sub(self.sets[bucket][attribute].len() as u64);
        if self.exact[attribute] { most.min(spare) } else { most }
    }

    /// Published values that no world has in their bucket: bucket, attribute, value.
    pub(in crate::verifier) fn excludable(&self, possible: &PossibleValues) -> Vec<(usize, usize, u32)> {
        let mut found = Vec::new();
        for (bucket, sets) in self.sets.iter().enumerate() {
            for (attribute, set) in sets.iter().enumerate() {
                let of = possible.places[bucket].values().flat_map(|places| &places.values[attribute]);
                let of: BTreeSet<u32> = of.copied().collect();
                found.extend(set.difference(&of).map(|value| (bucket, attribute, *value)));
            }
        }
        found
    }
}

/// Each listed value is some row's: takes away what a place cannot have because one of the others would have no row. False where all
/// values together have none.
fn lacking(places: &mut BTreeMap<u32, SlotGroup>, set: &BTreeSet<u32>, attribute: usize) -> bool {
    let of: Vec<&mut SlotGroup> = places.values_mut().collect();
    let mut rows = JointRows {
        room: of.iter().map(|places| places.count).collect(),
        may: set
            .iter()
            .map(|value| (0..of.len()).filter(|&at| of[at].values[attribute].contains(value)).collect())
            .collect(),
        at: vec![None; set.len()],
    };
    if !(0..set.len()).all(|value| rows.place(value, &mut vec![false; of.len()])) {
        return false;
    }
    let numbered: Vec<u32> = set.iter().copied().collect();
    for (at, places) in of.into_iter().enumerate() {
        places.values[attribute]
            .retain(|value| numbered.binary_search(value).is_ok_and(|value| rows.may_stand(value, at)));
    }
    true
}

/// A row for each listed value of a bucket.
#[derive(Clone)]
struct JointRows {
    /// Per primary value, the rows that have no value yet.
    room: Vec<u64>,
    /// Per value, the primary values whose rows may have it.
    may: Vec<Vec<usize>>,
    /// Per value, the primary value of its row.
    at: Vec<Option<usize>>,
}

impl JointRows {
    /// Finds a row for a value, where others may take other rows for it.
    fn place(&mut self, value: usize, tried: &mut [bool]) -> bool {
        for at in self.may[value].clone() {
            if std::mem::replace(&mut tried[at], true) {
                continue;
            }
            if self.room[at] > 0 {
                self.room[at] -= 1;
            } else if !(0..self.at.len()).any(|other| self.at[other] == Some(at) && self.place(other, tried)) {
                continue;
            }
            self.at[value] = Some(at);
            return true;
        }
        false
    }

    /// Whether all values have rows when this one is at that primary value.
    fn may_stand(&self, value: usize, at: usize) -> bool {
        if self.at[value] == Some(at) || self.room[at] > 0 {
            return true;
        }
        let mut others = self.clone();
        // its row is free for another, and one of that primary value is not
        if let Some(left) = others.at[value].take() {
            others.room[left] += 1;
        }
        let Some(out) = (0..others.at.len()).find(|other| others.at[*other] == Some(at)) else { return false };
        others.at[out] = None;
        let mut tried = vec![false; others.room.len()];
        others.place(out, &mut tried)
    }
}

impl PossibleValues {
    /// What is possible at the places of a bucket, of one primary value after the other.
    pub(in crate::verifier) fn of_bucket(&self, bucket: usize) -> impl Iterator<Item = &Vec<BTreeSet<u32>>> {
        self.places[bucket].values().map(|places| &places.values)
    }

    /// What is concluded by whoever knows the primary value of somebody: fewer than `fewest` values.
    pub(in crate::verifier) fn chains(&self, attributes: usize, fewest: usize) -> Vec<InferableValue> {
        let mut found = Vec::new();
        for (bucket, places) in self.places.iter().enumerate() {
            for attribute in 0..attributes {
                let few = places.iter().filter(|(_, of)| of.values[attribute].len() < fewest);
                found.extend(few.map(|(&value, of)| {
                    let left = &of.values[attribute];
                    self.concluded((bucket, attribute), BreachKind::Chain, vec![value], left.clone(), of.count)
                }));
            }
        }
        found
    }

    /// What is concluded by whoever knows of at most so many primary values that they are not somebody's; those that fewer exclusions
    /// conclude are not listed again. `None` when there are more choices than `most`.
    pub(in crate::verifier) fn exclusions(
        &self,
        (attributes, fewest): (usize, usize),
        excluded: usize,
        most: u64,
        control: &Control,
    ) -> Result<Option<Vec<InferableValue>>, Cancelled> {
        let (mut found, mut work) = (Vec::new(), 0_u64);
        for (bucket, places) in self.places.iter().enumerate() {
            let values: Vec<u32> = places.keys().copied().collect();
            let mut told: Vec<(usize, Vec<u32>)> = Vec::new();
            for size in 1..=excluded.min(values.len().saturating_sub(1)) {
                let mut choice: Vec<usize> = (0..size).collect();
                loop {
                    control.check()?;
                    work += places.len() as u64;
                    if work > most {
                        return Ok(None);
                    }
                    let out: Vec<u32> = choice.iter().map(|&at| values[at]).collect();
                    let rest = || places.iter().filter(|(value, _)| !out.contains(value)).map(|(_, of)| of);
                    for attribute in 0..attributes {
                        let within = |(of, fewer): &(usize, Vec<u32>)| {
                            *of == attribute && fewer.iter().all(|value| out.contains(value))
                        };
                        let left: BTreeSet<u32> = rest().flat_map(|of| &of.values[attribute]).copied().collect();
                        if left.len() < fewest && !told.iter().any(within) {
                            told.push((attribute, out.clone()));
                            let count = rest().map(|of| of.count).sum();
                            let (at, kind) = ((bucket, attribute), BreachKind::Exclusion);
                            found.push(self.concluded(at, kind, out.clone(), left, count));
                        }
                    }
                    // the next choice of places, in their order
                    let Some(at) = (0..size).rev().find(|&at| choice[at] < values.len() - size + at) else { break };
                    choice[at] += 1;
                    (at + 1..size).for_each(|next| choice[next] = choice[next - 1] + 1);
                }
            }
        }
        Ok(Some(found))
    }

    /// Values that more of a bucket's rows than 1/l have in every world; `l` is that of each attribute.
    pub(in crate::verifier) fn forced(&self, l: &[u64]) -> Vec<InferableValue> {
        let mut found = Vec::new();
        for (bucket, places) in self.places.iter().enumerate() {
            for (attribute, &l) in l.iter().enumerate() {
                let mut sure: BTreeMap<u32, u64> = BTreeMap::new();
                for of in places.values() {
                    if let (1, Some(value)) = (of.values[attribute].len(), of.values[attribute].first()) {
                        *sure.entry(*value).or_default() += of.count;
                    }
                }
                for (value, count) in sure {
                    if u128::from(count) * u128::from(l) > u128::from(self.rows[bucket]) {
                        let (at, left) = ((bucket, attribute), BTreeSet::from([value]));
                        let mut told = self.concluded(at, BreachKind::Forced, Vec::new(), left, count);
                        told.share = (count, self.rows[bucket]);
                        found.push(told);
                    }
                }
            }
        }
        found
    }

    fn concluded(
        &self,
        (bucket, attribute): (usize, usize),
        kind: BreachKind,
        known: Vec<u32>,
        values: BTreeSet<u32>,
        count: u64,
    ) -> InferableValue {
        // of a single value all rows are certain; of several, no more than that one of them is
        let certain = if values.len() <= 1 { count } else { 0 };
        InferableValue { bucket, attribute, kind, known, values, share: (certain, count) }
    }
}

/// Kinds of rows on one side, types of places on the other.
struct AssignmentNetwork {
    /// Rows of each kind.
    supply: Vec<u64>,
    /// Places of each type.
    demand: Vec<u64>,
    /// Per type, the kinds that it admits.
    admitted: Vec<Vec<usize>>,
}

impl AssignmentNetwork {
    /// How many rows of each admitted kind stand at each type when all places are filled; `None` when they cannot be.
    fn filled(&self, control: &Control) -> Result<Option<Vec<Vec<u64>>>, Cancelled> {
        if self.supply.iter().sum::<u64>() != self.demand.iter().sum::<u64>() {
            return Ok(None);
        }
        let mut left = self.supply.clone();
        let mut wanted = self.demand.clone();
        let mut flow: Vec<Vec<u64>> = self.admitted.iter().map(|kinds| vec![0; kinds.len()]).collect();
        // types of little choice first
        let mut order: Vec<usize> = (0..self.admitted.len()).collect();
        order.sort_by_key(|of| self.admitted[*of].len());
        for &of in &order {
            for (at, &kind) in self.admitted[of].iter().enumerate() {
                let more = left[kind].min(wanted[of]);
                flow[of][at] += more;
                left[kind] -= more;
                wanted[of] -= more;
            }
        }
        let holders = self.holders();
        while let Some(from) = (0..wanted.len()).find(|&of| wanted[of] > 0) {
            control.check()?;
            // by the shortest way to a kind with rows left: a type takes one more of a kind from a type that takes another for it
            let mut before: Vec<Option<(usize, usize)>> = vec![None; self.supply.len()];
            let mut given: Vec<Option<usize>> = vec![None; self.admitted.len()];
            let (mut next, mut end) = (VecDeque::from([from]), None);
            'search: while let Some(of) = next.pop_front() {
                for (at, &kind) in self.admitted[of].iter().enumerate() {
                    if before[kind].is_some() {
                        continue;
                    }
                    before[kind] = Some((of, at));
                    if left[kind] > 0 {
                        end = Some(kind);
                        break 'search;
                    }
                    for &(holder, place) in &holders[kind] {
                        if holder != from && given[holder].is_none() && flow[holder][place] > 0 {
                            given[holder] = Some(place);
                            next.push_back(holder);
                        }
                    }
                }
            }
            let Some(end) = end else { return Ok(None) };
            let mut way = Vec::new();
            let mut kind = end;
            while let Some((of, at)) = before[kind] {
                way.push((of, at));
                let Some(place) = given[of] else { break };
                kind = self.admitted[of][place];
            }
            let spare = way.iter().filter_map(|&(of, _)| Some(flow[of][given[of]?])).min();
            let more = left[end].min(wanted[from]).min(spare.unwrap_or(u64::MAX));
            for (of, at) in way {
                flow[of][at] += more;
                if let Some(place) = given[of] {
                    flow[of][place] -= more;
                }
            }
            left[end] -= more;
            wanted[from] -= more;
        }
        Ok(Some(flow))
    }

    /// Per kind, the types that admit it, and where it stands among their kinds.
    fn holders(&self) -> Vec<Vec<(usize, usize)>> {
        let mut holders = vec![Vec::new(); self.supply.len()];
        for (of, kinds) in self.admitted.iter().enumerate() {
            kinds.iter().enumerate().for_each(|(at, &kind)| holders[kind].push((of, at)));
        }
        holders
    }

    /// Per type, the kinds of which some full flow has a row there.
    fn exchangeable(&self, flow: &[Vec<u64>]) -> Vec<Vec<usize>> {
        let (types, kinds) = (self.admitted.len(), self.supply.len());
        // types take what they admit; kinds can be given back where they are
        let mut forth: Vec<Vec<usize>> =
            self.admitted.iter().map(|of| of.iter().map(|k| types + k).collect()).collect();
        forth.resize(types + kinds, Vec::new());
        for (of, held) in flow.iter().enumerate() {
            for (&kind, _) in self.admitted[of].iter().zip(held).filter(|(_, held)| **held > 0) {
                forth[types + kind].push(of);
            }
        }
        let mut back = vec![Vec::new(); types + kinds];
        for (from, to) in forth.iter().enumerate() {
            to.iter().for_each(|&to| back[to].push(from));
        }
        let circle = circles(&forth, &back);
        let round = |of: usize, at: usize, kind: usize| flow[of][at] > 0 || circle[of] == circle[types + kind];
        (0..types)
            .map(|of| {
                let kinds = self.admitted[of].iter().enumerate();
                kinds.filter(|&(at, &kind)| round(of, at, kind)).map(|(_, &kind)| kind).collect()
            })
            .collect()
    }
}

/// Which nodes can be reached from each other: the number of each one's circle (Kosaraju).
fn circles(forth: &[Vec<usize>], back: &[Vec<usize>]) -> Vec<usize> {
    let mut finished = Vec::with_capacity(forth.len());
    let mut seen = vec![false; forth.len()];
    for root in 0..forth.len() {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some((node, at)) = path.pop() {
            match forth[node].get(at) {
                None => finished.push(node),
                Some(&to) => {
                    path.push((node, at + 1));
                    if !std::mem::replace(&mut seen[to], true) {
                        path.push((to, 0));
                    }
                }
            }
        }
    }
    let mut circle = vec![usize::MAX; forth.len()];
    for (number, &root) in finished.iter().rev().enumerate() {
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if circle[node] == usize::MAX {
                circle[node] = number;
                open.extend(back[node].iter().filter(|from| circle[**from] == usize::MAX));
            }
        }
    }
    circle
}
