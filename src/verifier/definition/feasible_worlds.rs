//! What the parts of a decomposition leave possible, by definition [docs/spec/decompose.md#attacks].
//!
//! A possible world assigns every row of the joint table to a slot with its primary value; each row of a bucket is a
//! slot. The other values of the row must be among those that the bucket publishes. A value is possible in a slot
//! when some world has it there. Buckets that admit the same kinds of rows form a type. A flow of kinds into types
//! fills all slots, and a kind is possible in a type when the flow has a cycle through both.
//!
//! # Citations
//! [Ye et al. 2009, section 3], docs/spec/decompose.md#attacks

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::observed_decomposition::ObservedDecomposition;
use super::share::ShareOfRows;
use crate::control::{Cancelled, Control};
use crate::publication::BreachKind;

/// Maximal number of examined pairs of a bucket and a kind of row with the same primary value.
const MAX_FEASIBILITY_PAIRS: u64 = 1 << 26;

/// Maximal cost of the cover check: the square of the listed values times the primary values.
const MAX_COVER_STEPS: u64 = 1 << 20;

/// Slots of a bucket with the same primary value.
#[derive(Clone, Default)]
struct SlotGroup {
    count: u64,
    /// For each other attribute, the possible values.
    values: Vec<BTreeSet<u32>>,
}

/// Possible values by bucket and primary value.
pub(in crate::verifier) struct PossibleValues {
    places: Vec<BTreeMap<u32, SlotGroup>>,
    rows: Vec<u64>,
}

/// Parameters of the search for exclusions.
#[derive(Clone, Copy)]
pub(in crate::verifier) struct ExclusionLimits {
    /// Number of other attributes.
    pub(in crate::verifier) attributes: usize,
    /// Fewer remaining values than this are an inference.
    pub(in crate::verifier) fewest: usize,
    /// Maximal number of excluded primary values.
    pub(in crate::verifier) excluded: usize,
    /// Maximal number of choices times slot groups.
    pub(in crate::verifier) work: u64,
}

/// Reason why an inference has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::verifier) enum InferenceError {
    /// The caller cancelled the computation.
    Cancelled,
    /// No possible world has these tables.
    Contradiction,
    /// The computation exceeds a limit.
    TooMany {
        /// The largest permitted number of pairs.
        limit: u64,
        /// The number of pairs.
        found: u64,
    },
}

impl From<Cancelled> for InferenceError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// An inference: a bucket whose rows have fewer possible values than allowed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::verifier) struct InferableValue {
    /// The bucket, counted from 0.
    pub(in crate::verifier) bucket: usize,
    /// The index of the other attribute.
    pub(in crate::verifier) attribute: usize,
    /// The kind of inference.
    pub(in crate::verifier) kind: BreachKind,
    /// The primary values that the adversary knows or excludes.
    pub(in crate::verifier) known: Vec<u32>,
    /// The remaining possible values.
    pub(in crate::verifier) values: BTreeSet<u32>,
    /// Number of rows that certainly have the value, and number of candidate rows.
    pub(in crate::verifier) share: ShareOfRows,
}

impl ObservedDecomposition {
    /// Computes the possible values of all slots.
    pub(in crate::verifier) fn possible(&self, control: &Control) -> Result<PossibleValues, InferenceError> {
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
                // the joint table has no row with the value: all published values of the bucket are possible
                for (&bucket, &count) in of {
                    possible.places[bucket].insert(value, SlotGroup { count, values: self.sets[bucket].clone() });
                }
                continue;
            };
            let kinds: Vec<(&[u32], u64)> = kinds.iter().map(|(kind, count)| (*kind, *count)).collect();
            self.fill_slots(value, &kinds, of, &mut possible, control)?;
        }
        for (places, sets) in possible.places.iter_mut().zip(&self.sets) {
            control.check()?;
            for (attribute, set) in sets.iter().enumerate().filter(|(attribute, _)| self.exact[*attribute]) {
                let steps = (set.len() as u64).pow(2).saturating_mul(places.len() as u64);
                if steps <= MAX_COVER_STEPS && !remove_uncovered(places, set, attribute) {
                    return Err(InferenceError::Contradiction);
                }
            }
        }
        Ok(possible)
    }

    /// Computes the possible values of the slots with one primary value.
    ///
    /// `kinds` counts its rows in the joint table by their other values, `buckets` its slots.
    fn fill_slots(
        &self,
        primary: u32,
        kinds: &[(&[u32], u64)],
        buckets: &BTreeMap<usize, u64>,
        possible: &mut PossibleValues,
        control: &Control,
    ) -> Result<(), InferenceError> {
        let mut types: BTreeMap<Vec<usize>, Vec<(usize, u64)>> = BTreeMap::new();
        for (&bucket, &count) in buckets {
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
            let values: Vec<BTreeSet<u32>> = (0..self.exact.len()).map(value_of).collect();
            for &(bucket, count) in of {
                possible.places[bucket].insert(primary, SlotGroup { count, values: values.clone() });
            }
        }
        Ok(())
    }

    /// The largest number of rows of a bucket that can have the same value of an attribute.
    pub(in crate::verifier) fn alike(&self, possible: &PossibleValues, bucket: usize, attribute: usize) -> u64 {
        let mut alike: BTreeMap<u32, u64> = BTreeMap::new();
        for places in possible.places[bucket].values() {
            places.values[attribute].iter().for_each(|value| *alike.entry(*value).or_default() += places.count);
        }
        let most = alike.into_values().max().unwrap_or(0);
        // if each published value belongs to a row, the other values need a row each
        let spare = (possible.rows[bucket] + 1).saturating_sub(self.sets[bucket][attribute].len() as u64);
        if self.exact[attribute] { most.min(spare) } else { most }
    }

    /// Published values that no possible world has in their bucket, as bucket, attribute and value.
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

/// Removes values that a slot cannot have because another listed value would then have no row.
///
/// Returns false where the listed values cannot all have rows.
fn remove_uncovered(places: &mut BTreeMap<u32, SlotGroup>, set: &BTreeSet<u32>, attribute: usize) -> bool {
    let of: Vec<&mut SlotGroup> = places.values_mut().collect();
    let mut rows = JointRows {
        free: of.iter().map(|places| places.count).collect(),
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

/// An assignment of a row to each listed value of a bucket.
#[derive(Clone)]
struct JointRows {
    /// For each primary value, the number of rows without a value.
    free: Vec<u64>,
    /// For each value, the primary values of the rows that may have it.
    may: Vec<Vec<usize>>,
    /// For each value, the primary value of its row.
    at: Vec<Option<usize>>,
}

impl JointRows {
    /// Finds a row for a value; other values may move to other rows.
    fn place(&mut self, value: usize, tried: &mut [bool]) -> bool {
        for at in self.may[value].clone() {
            if std::mem::replace(&mut tried[at], true) {
                continue;
            }
            if self.free[at] > 0 {
                self.free[at] -= 1;
            } else if !(0..self.at.len()).any(|other| self.at[other] == Some(at) && self.place(other, tried)) {
                continue;
            }
            self.at[value] = Some(at);
            return true;
        }
        false
    }

    /// Whether all values have rows while this value has a row with the given primary value.
    fn may_stand(&self, value: usize, at: usize) -> bool {
        if self.at[value] == Some(at) || self.free[at] > 0 {
            return true;
        }
        let mut others = self.clone();
        // releases the row of the value, and takes a row of the given primary value from another value
        if let Some(left) = others.at[value].take() {
            others.free[left] += 1;
        }
        let Some(out) = (0..others.at.len()).find(|other| others.at[*other] == Some(at)) else { return false };
        others.at[out] = None;
        let mut tried = vec![false; others.free.len()];
        others.place(out, &mut tried)
    }
}

impl PossibleValues {
    /// The possible values in the slots of a bucket, in the order of primary values.
    pub(in crate::verifier) fn of_bucket(&self, bucket: usize) -> impl Iterator<Item = &Vec<BTreeSet<u32>>> {
        self.places[bucket].values().map(|places| &places.values)
    }

    /// Inferences from the primary value of a target: fewer than `fewest` values remain.
    pub(in crate::verifier) fn chains(&self, attributes: usize, fewest: usize) -> Vec<InferableValue> {
        let mut found = Vec::new();
        for (bucket, places) in self.places.iter().enumerate() {
            for attribute in 0..attributes {
                let few = places.iter().filter(|(_, of)| of.values[attribute].len() < fewest);
                found.extend(few.map(|(&value, of)| {
                    let left = &of.values[attribute];
                    let share = certain_share(left, of.count);
                    let (kind, known) = (BreachKind::Chain, vec![value]);
                    InferableValue { bucket, attribute, kind, known, values: left.clone(), share }
                }));
            }
        }
        found
    }

    /// Inferences from excluded primary values of a target: fewer than `fewest` values remain.
    ///
    /// Omits choices that contain a listed smaller choice. `None` when the choices exceed `limits.work`.
    pub(in crate::verifier) fn exclusions(
        &self,
        limits: ExclusionLimits,
        control: &Control,
    ) -> Result<Option<Vec<InferableValue>>, Cancelled> {
        let (mut found, mut work) = (Vec::new(), 0_u64);
        for (bucket, places) in self.places.iter().enumerate() {
            let values: Vec<u32> = places.keys().copied().collect();
            // the listed choices of the bucket, with their attributes
            let mut listed: Vec<(usize, Vec<u32>)> = Vec::new();
            for size in 1..=limits.excluded.min(values.len().saturating_sub(1)) {
                let mut choice: Vec<usize> = (0..size).collect();
                loop {
                    control.check()?;
                    work += places.len() as u64;
                    if work > limits.work {
                        return Ok(None);
                    }
                    let excluded: Vec<u32> = choice.iter().map(|&at| values[at]).collect();
                    self.exclude(bucket, &excluded, limits, &mut listed, &mut found);
                    // the next choice of slot groups, in their order
                    let Some(at) = (0..size).rev().find(|&at| choice[at] < values.len() - size + at) else { break };
                    choice[at] += 1;
                    (at + 1..size).for_each(|next| choice[next] = choice[next - 1] + 1);
                }
            }
        }
        Ok(Some(found))
    }

    /// Adds the inferences from one choice of excluded primary values of a bucket.
    fn exclude(
        &self,
        bucket: usize,
        excluded: &[u32],
        limits: ExclusionLimits,
        listed: &mut Vec<(usize, Vec<u32>)>,
        found: &mut Vec<InferableValue>,
    ) {
        let left = || self.places[bucket].iter().filter(|(value, _)| !excluded.contains(value)).map(|(_, of)| of);
        for attribute in 0..limits.attributes {
            let contains = |(of, fewer): &(usize, Vec<u32>)| {
                *of == attribute && fewer.iter().all(|value| excluded.contains(value))
            };
            let values: BTreeSet<u32> = left().flat_map(|of| &of.values[attribute]).copied().collect();
            if values.len() < limits.fewest && !listed.iter().any(contains) {
                listed.push((attribute, excluded.to_vec()));
                let count = left().map(|of| of.count).sum();
                let share = certain_share(&values, count);
                let (kind, known) = (BreachKind::Exclusion, excluded.to_vec());
                found.push(InferableValue { bucket, attribute, kind, known, values, share });
            }
        }
    }

    /// Values that more than 1/l of a bucket's rows have in every possible world.
    ///
    /// `l` has one entry for each attribute.
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
                        found.push(InferableValue {
                            bucket,
                            attribute,
                            kind: BreachKind::Forced,
                            known: Vec::new(),
                            values: BTreeSet::from([value]),
                            share: ShareOfRows::new(count, self.rows[bucket]),
                        });
                    }
                }
            }
        }
        found
    }
}

/// Number of rows that certainly have the remaining value, and number of candidate rows.
fn certain_share(values: &BTreeSet<u32>, count: u64) -> ShareOfRows {
    // a single remaining value is certain for all rows; several values are not
    ShareOfRows::new(if values.len() <= 1 { count } else { 0 }, count)
}

/// Bipartite flow network: kinds of rows supply types of slots.
struct AssignmentNetwork {
    /// Number of rows of each kind.
    supply: Vec<u64>,
    /// Number of slots of each type.
    demand: Vec<u64>,
    /// For each type, the kinds that it admits.
    admitted: Vec<Vec<usize>>,
}

/// A kind that a type admits.
#[derive(Clone, Copy)]
struct AdmittedKind {
    /// The type.
    of: usize,
    /// The index of the kind among those that the type admits.
    at: usize,
}

/// A flow that may leave slots empty.
struct Flow {
    /// For each kind, the number of rows without a slot.
    left: Vec<u64>,
    /// For each type, the number of empty slots.
    wanted: Vec<u64>,
    /// For each type and admitted kind, the number of rows.
    rows: Vec<Vec<u64>>,
}

/// A change of a flow that fills slots of a type.
struct AugmentingPath {
    /// The kind whose rows have no slot yet.
    end: usize,
    steps: Vec<AugmentingStep>,
}

/// A type on a path: it takes rows of one kind, and gives rows of another one.
struct AugmentingStep {
    of: usize,
    /// The indexes of the kinds among those that the type admits.
    taken: usize,
    given: Option<usize>,
}

impl Flow {
    /// Moves as many rows along a path to a type as it admits.
    fn augment(&mut self, to: usize, path: &AugmentingPath) {
        let spare = path.steps.iter().filter_map(|step| Some(self.rows[step.of][step.given?])).min();
        let more = self.left[path.end].min(self.wanted[to]).min(spare.unwrap_or(u64::MAX));
        for step in &path.steps {
            self.rows[step.of][step.taken] += more;
            if let Some(given) = step.given {
                self.rows[step.of][given] -= more;
            }
        }
        self.left[path.end] -= more;
        self.wanted[to] -= more;
    }
}

impl AssignmentNetwork {
    /// The flow of each admitted kind into each type that fills all slots; `None` when none does.
    fn filled(&self, control: &Control) -> Result<Option<Vec<Vec<u64>>>, Cancelled> {
        if self.supply.iter().sum::<u64>() != self.demand.iter().sum::<u64>() {
            return Ok(None);
        }
        let mut flow = Flow {
            left: self.supply.clone(),
            wanted: self.demand.clone(),
            rows: self.admitted.iter().map(|kinds| vec![0; kinds.len()]).collect(),
        };
        // types with few kinds first
        let mut order: Vec<usize> = (0..self.admitted.len()).collect();
        order.sort_by_key(|of| self.admitted[*of].len());
        for &of in &order {
            for (at, &kind) in self.admitted[of].iter().enumerate() {
                let more = flow.left[kind].min(flow.wanted[of]);
                flow.rows[of][at] += more;
                flow.left[kind] -= more;
                flow.wanted[of] -= more;
            }
        }
        let holders = self.holders();
        while let Some(from) = (0..flow.wanted.len()).find(|&of| flow.wanted[of] > 0) {
            control.check()?;
            let Some(path) = self.augmenting_path(from, &flow, &holders) else { return Ok(None) };
            flow.augment(from, &path);
        }
        Ok(Some(flow.rows))
    }

    /// The shortest augmenting path to a type: it takes a row of a kind from a type that can take another kind.
    ///
    /// `None` when the type cannot be filled.
    fn augmenting_path(&self, from: usize, flow: &Flow, holders: &[Vec<AdmittedKind>]) -> Option<AugmentingPath> {
        let mut before: Vec<Option<AdmittedKind>> = vec![None; self.supply.len()];
        let mut given: Vec<Option<usize>> = vec![None; self.admitted.len()];
        let (mut next, mut end) = (VecDeque::from([from]), None);
        'search: while let Some(of) = next.pop_front() {
            for (at, &kind) in self.admitted[of].iter().enumerate() {
                if before[kind].is_some() {
                    continue;
                }
                before[kind] = Some(AdmittedKind { of, at });
                if flow.left[kind] > 0 {
                    end = Some(kind);
                    break 'search;
                }
                for holder in &holders[kind] {
                    if holder.of != from && given[holder.of].is_none() && flow.rows[holder.of][holder.at] > 0 {
                        given[holder.of] = Some(holder.at);
                        next.push_back(holder.of);
                    }
                }
            }
        }
        let end = end?;
        let mut steps = Vec::new();
        let mut kind = end;
        while let Some(AdmittedKind { of, at }) = before[kind] {
            steps.push(AugmentingStep { of, taken: at, given: given[of] });
            let Some(place) = given[of] else { break };
            kind = self.admitted[of][place];
        }
        Some(AugmentingPath { end, steps })
    }

    /// For each kind, the types that admit it, with its index among their kinds.
    fn holders(&self) -> Vec<Vec<AdmittedKind>> {
        let mut holders = vec![Vec::new(); self.supply.len()];
        for (of, kinds) in self.admitted.iter().enumerate() {
            kinds.iter().enumerate().for_each(|(at, &kind)| holders[kind].push(AdmittedKind { of, at }));
        }
        holders
    }

    /// For each type, the kinds that some complete flow assigns to it.
    fn exchangeable(&self, flow: &[Vec<u64>]) -> Vec<Vec<usize>> {
        let (types, kinds) = (self.admitted.len(), self.supply.len());
        // edges lead from types to admitted kinds, and from kinds to types that hold a row of them
        let mut edges: Vec<Vec<usize>> =
            self.admitted.iter().map(|of| of.iter().map(|k| types + k).collect()).collect();
        edges.resize(types + kinds, Vec::new());
        for (of, held) in flow.iter().enumerate() {
            for (&kind, _) in self.admitted[of].iter().zip(held).filter(|(_, held)| **held > 0) {
                edges[types + kind].push(of);
            }
        }
        let mut reversed = vec![Vec::new(); types + kinds];
        for (from, to) in edges.iter().enumerate() {
            to.iter().for_each(|&to| reversed[to].push(from));
        }
        let component = components(&edges, &reversed);
        let is_exchangeable =
            |of: usize, at: usize, kind: usize| flow[of][at] > 0 || component[of] == component[types + kind];
        (0..types)
            .map(|of| {
                let kinds = self.admitted[of].iter().enumerate();
                kinds.filter(|&(at, &kind)| is_exchangeable(of, at, kind)).map(|(_, &kind)| kind).collect()
            })
            .collect()
    }
}

/// The strongly connected component of each node, by number (algorithm of Kosaraju).
fn components(edges: &[Vec<usize>], reversed: &[Vec<usize>]) -> Vec<usize> {
    let mut finished = Vec::with_capacity(edges.len());
    let mut seen = vec![false; edges.len()];
    for root in 0..edges.len() {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some((node, at)) = path.pop() {
            match edges[node].get(at) {
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
    let mut component = vec![usize::MAX; edges.len()];
    for (number, &root) in finished.iter().rev().enumerate() {
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if component[node] == usize::MAX {
                component[node] = number;
                open.extend(reversed[node].iter().filter(|from| component[**from] == usize::MAX));
            }
        }
    }
    component
}
