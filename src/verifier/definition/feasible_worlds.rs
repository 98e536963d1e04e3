//! What the parts of a decomposition leave possible, by definition [docs/spec/decompose.md#attacks].
//!
//! A possible world assigns every row of the joint table to a slot with its primary value; each row of a bucket is a
//! slot. The other values of the row must be among those that the bucket publishes. A value is possible in a slot
//! when some world has it there. Buckets with the same lists form a type. A flow of kinds into types
//! fills all slots ([`AssignmentNetwork`]), and a kind is possible in a type when the flow has a cycle through both.
//!
//! # Citations
//! [Ye et al. 2009, section 3], docs/spec/decompose.md#attacks

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use ahash::AHashMap;
use rayon::prelude::*;

use super::assignment_network::AssignmentNetwork;
use super::observed_decomposition::ObservedDecomposition;
use super::share::ShareOfRows;
use crate::control::{Cancelled, Control};
use crate::publication::BreachKind;

/// Maximal number of examined pairs of a bucket and a kind of row with the same primary value.
const MAX_FEASIBILITY_PAIRS: u64 = 1 << 26;

/// Maximal cost of the cover check: the square of the listed values times the primary values.
const MAX_COVER_STEPS: u64 = 1 << 20;

/// PrimarySlots of a bucket with the same primary value.
struct SlotGroup {
    primary: u32,
    count: u64,
    /// For each other attribute, the possible values, rising.
    values: Arc<[Vec<u32>]>,
}

/// Possible values by bucket and primary value.
pub(in crate::verifier) struct PossibleValues {
    /// For each bucket, its slots; primary values rising.
    places: Vec<Vec<SlotGroup>>,
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
        let kinds = self.kinds();
        let slots = self.slots();
        let primaries: Vec<&[PrimarySlots]> = slots.chunk_by(|a, b| a.primary == b.primary).collect();
        let has_slots = |value: &u32| primaries.binary_search_by_key(value, |of| of[0].primary).is_ok();
        if !kinds.keys().all(has_slots) || self.sets.len() != self.primary.len() {
            return Err(InferenceError::Contradiction);
        }
        let kinds_of = |of: &[PrimarySlots]| kinds.get(&of[0].primary).map(|kinds| &kinds[..]);
        let pairs = primaries.iter().map(|of| of.len() as u64 * kinds_of(of).map_or(0, |kinds| kinds.len() as u64));
        let found = pairs.fold(0, u64::saturating_add);
        if found > MAX_FEASIBILITY_PAIRS {
            return Err(InferenceError::TooMany { limit: MAX_FEASIBILITY_PAIRS, found });
        }
        let values = |of: &&[PrimarySlots]| match kinds_of(of) {
            Some(kinds) => self.values_of_slots(kinds, of, control),
            // the joint table has no row with the value: all published values of the bucket are possible
            None => Ok(of.iter().map(|slots| self.sets[slots.bucket].clone().into()).collect()),
        };
        let values: Vec<Vec<Arc<[Vec<u32>]>>> = primaries.par_iter().map(values).collect::<Result<_, _>>()?;
        let mut places: Vec<Vec<SlotGroup>> = self.sets.iter().map(|_| Vec::new()).collect();
        for (slots, values) in slots.iter().zip(values.into_iter().flatten()) {
            places[slots.bucket].push(SlotGroup { primary: slots.primary, count: slots.count, values });
        }
        let rows = self.primary.iter().map(|rows| rows.len() as u64).collect();
        places.par_iter_mut().zip(&self.sets).try_for_each(|(places, sets)| self.cover(places, sets, control))?;
        Ok(PossibleValues { places, rows })
    }

    /// For each primary value of the joint table, its kinds of rows: their other values, rising, with their number.
    fn kinds(&self) -> BTreeMap<u32, Vec<(&[u32], u64)>> {
        let mut counts: AHashMap<(u32, &[u32]), u64> = AHashMap::new();
        for (primary, values) in &self.joint {
            *counts.entry((*primary, values)).or_default() += 1;
        }
        let mut kinds: BTreeMap<u32, Vec<(&[u32], u64)>> = BTreeMap::new();
        for ((primary, values), count) in counts {
            kinds.entry(primary).or_default().push((values, count));
        }
        kinds.values_mut().for_each(|kinds| kinds.sort_unstable());
        kinds
    }

    /// The slots of all buckets, by primary value and bucket.
    fn slots(&self) -> Vec<PrimarySlots> {
        let rows = self.primary.iter().enumerate().flat_map(|(bucket, rows)| rows.iter().map(move |v| (*v, bucket)));
        let mut rows: Vec<(u32, usize)> = rows.collect();
        rows.sort_unstable();
        let slots = |of: &[(u32, usize)]| PrimarySlots { primary: of[0].0, bucket: of[0].1, count: of.len() as u64 };
        rows.chunk_by(|a, b| a == b).map(slots).collect()
    }

    /// Computes the possible values of the slots with one primary value.
    ///
    /// `kinds` counts its rows in the joint table by their other values.
    fn values_of_slots(
        &self,
        kinds: &[(&[u32], u64)],
        slots: &[PrimarySlots],
        control: &Control,
    ) -> Result<Vec<Arc<[Vec<u32>]>>, InferenceError> {
        // kinds stand in the order of their first other value
        let mut by_first: AHashMap<Option<u32>, Range<usize>> = AHashMap::new();
        for (at, (values, _)) in kinds.iter().enumerate() {
            by_first.entry(values.first().copied()).or_insert(at..at).end = at + 1;
        }
        let (mut admitted, mut ends, mut demand): (Vec<u32>, Vec<usize>, Vec<u64>) = Default::default();
        let mut numbers: AHashMap<&[Vec<u32>], usize> = AHashMap::new();
        let mut types = Vec::with_capacity(slots.len());
        for &PrimarySlots { bucket, count, .. } in slots {
            control.check()?;
            let sets = &self.sets[bucket][..];
            let number = *numbers.entry(sets).or_insert_with(|| {
                let fits = |kind: &usize| {
                    let mut values = kinds[*kind].0.iter().zip(sets).skip(1);
                    values.all(|(value, set)| set.binary_search(value).is_ok())
                };
                let mut admit = |first: Option<u32>| {
                    let of_first = by_first.get(&first).cloned().unwrap_or_default();
                    admitted.extend(of_first.filter(fits).map(|kind| kind as u32));
                };
                match sets.first() {
                    Some(set) => set.iter().for_each(|value| admit(Some(*value))),
                    None => admit(None),
                }
                ends.push(admitted.len());
                demand.push(0);
                demand.len() - 1
            });
            demand[number] += count;
            types.push(number);
        }
        let network = AssignmentNetwork::new(kinds.iter().map(|(_, count)| *count).collect(), demand, admitted, ends);
        let flow = network.filled(control)?.ok_or(InferenceError::Contradiction)?;
        let value_of = |of: &[u32], at: usize| {
            let mut values: Vec<u32> = of.iter().map(|&kind| kinds[kind as usize].0[at]).collect();
            if !values.is_sorted() {
                values.sort_unstable();
            }
            values.dedup();
            values
        };
        let values_of = |of: Vec<u32>| (0..self.exact.len()).map(|at| value_of(&of, at)).collect();
        let values: Vec<Arc<[Vec<u32>]>> = network.exchangeable(&flow).into_iter().map(values_of).collect();
        Ok(types.into_iter().map(|number| values[number].clone()).collect())
    }

    /// Removes from a bucket the values that its complete lists exclude.
    fn cover(&self, places: &mut [SlotGroup], sets: &[Vec<u32>], control: &Control) -> Result<(), InferenceError> {
        control.check()?;
        for (attribute, set) in sets.iter().enumerate().filter(|(attribute, _)| self.exact[*attribute]) {
            let steps = (set.len() as u64).pow(2).saturating_mul(places.len() as u64);
            if steps <= MAX_COVER_STEPS && !remove_uncovered(places, set, attribute) {
                return Err(InferenceError::Contradiction);
            }
        }
        Ok(())
    }

    /// The largest number of rows of a bucket that can have the same value of an attribute.
    pub(in crate::verifier) fn alike(&self, possible: &PossibleValues, bucket: usize, attribute: usize) -> u64 {
        let set = &self.sets[bucket][attribute];
        let mut alike = vec![0_u64; set.len()];
        for slots in &possible.places[bucket] {
            // possible values are published, and both lists rise
            let mut at = 0;
            for value in &slots.values[attribute] {
                while set[at] < *value {
                    at += 1;
                }
                alike[at] += slots.count;
            }
        }
        let most = alike.into_iter().max().unwrap_or(0);
        // if each published value belongs to a row, the other values need a row each
        let spare = (possible.rows[bucket] + 1).saturating_sub(self.sets[bucket][attribute].len() as u64);
        if self.exact[attribute] { most.min(spare) } else { most }
    }

    /// Published values that no possible world has in their bucket, as bucket, attribute and value.
    pub(in crate::verifier) fn excludable(&self, possible: &PossibleValues) -> Vec<(usize, usize, u32)> {
        let mut found = Vec::new();
        for (bucket, sets) in self.sets.iter().enumerate() {
            for (attribute, set) in sets.iter().enumerate() {
                let has = |value: &u32| {
                    possible.places[bucket].iter().any(|of| of.values[attribute].binary_search(value).is_ok())
                };
                found.extend(set.iter().filter(|value| !has(value)).map(|value| (bucket, attribute, *value)));
            }
        }
        found
    }
}

/// PrimarySlots of one bucket and primary value.
struct PrimarySlots {
    primary: u32,
    bucket: usize,
    count: u64,
}

/// Removes values that a slot cannot have because another listed value would then have no row.
///
/// Returns false where the listed values cannot all have rows.
fn remove_uncovered(places: &mut [SlotGroup], set: &[u32], attribute: usize) -> bool {
    let mut may = vec![Vec::new(); set.len()];
    for (at, of) in places.iter().enumerate() {
        let listed = of.values[attribute].iter().filter_map(|value| set.binary_search(value).ok());
        listed.for_each(|value| may[value].push(at));
    }
    let free = places.iter().map(|places| places.count).collect();
    let mut rows = JointRows { free, at: vec![None; set.len()] };
    if !(0..set.len()).all(|value| rows.place(value, &may, &mut vec![false; places.len()])) {
        return false;
    }
    for (at, of) in places.iter_mut().enumerate() {
        let stands = |value: &u32| set.binary_search(value).is_ok_and(|value| rows.may_stand(value, at, &may));
        let left: Vec<u32> = of.values[attribute].iter().copied().filter(stands).collect();
        if left.len() < of.values[attribute].len() {
            let other =
                |(number, values): (usize, &Vec<u32>)| if number == attribute { left.clone() } else { values.clone() };
            of.values = of.values.iter().enumerate().map(other).collect();
        }
    }
    true
}

/// An assignment of a row to each listed value of a bucket.
#[derive(Clone)]
struct JointRows {
    /// For each primary value, the number of rows without a value.
    free: Vec<u64>,
    /// For each value, the primary value of its row.
    at: Vec<Option<usize>>,
}

impl JointRows {
    /// Finds a row for a value; other values may move to other rows.
    ///
    /// `may` has the primary values of the rows that may have each value.
    fn place(&mut self, value: usize, may: &[Vec<usize>], tried: &mut [bool]) -> bool {
        for &at in &may[value] {
            if std::mem::replace(&mut tried[at], true) {
                continue;
            }
            if self.free[at] > 0 {
                self.free[at] -= 1;
            } else if !(0..self.at.len()).any(|other| self.at[other] == Some(at) && self.place(other, may, tried)) {
                continue;
            }
            self.at[value] = Some(at);
            return true;
        }
        false
    }

    /// Whether all values have rows while this value has a row with the given primary value.
    fn may_stand(&self, value: usize, at: usize, may: &[Vec<usize>]) -> bool {
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
        others.place(out, may, &mut tried)
    }
}

impl PossibleValues {
    /// The possible values in the slots of a bucket, in the order of primary values.
    pub(in crate::verifier) fn of_bucket(&self, bucket: usize) -> impl Iterator<Item = &[Vec<u32>]> {
        self.places[bucket].iter().map(|places| &places.values[..])
    }

    /// Inferences from the primary value of a target: fewer than `fewest` values remain.
    pub(in crate::verifier) fn chains(&self, attributes: usize, fewest: usize) -> Vec<InferableValue> {
        let mut found = Vec::new();
        for (bucket, places) in self.places.iter().enumerate() {
            for attribute in 0..attributes {
                let few = places.iter().filter(|of| of.values[attribute].len() < fewest);
                found.extend(few.map(|of| {
                    let left: BTreeSet<u32> = of.values[attribute].iter().copied().collect();
                    let share = certain_share(&left, of.count);
                    let (kind, known) = (BreachKind::Chain, vec![of.primary]);
                    InferableValue { bucket, attribute, kind, known, values: left, share }
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
            let values: Vec<u32> = places.iter().map(|of| of.primary).collect();
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
        let left = || self.places[bucket].iter().filter(|of| !excluded.contains(&of.primary));
        for attribute in 0..limits.attributes {
            let contains = |(of, fewer): &(usize, Vec<u32>)| {
                *of == attribute && fewer.iter().all(|value| excluded.contains(value))
            };
            let Some(values) = fewer_than(left().map(|of| &of.values[attribute]), limits.fewest) else { continue };
            if !listed.iter().any(contains) {
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
                for of in places {
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

/// All values of some lists; `None` if there are at least `fewest`.
fn fewer_than<'a>(lists: impl Iterator<Item = &'a Vec<u32>>, fewest: usize) -> Option<BTreeSet<u32>> {
    let mut all = BTreeSet::new();
    for values in lists {
        if values.len() >= fewest {
            return None;
        }
        all.extend(values);
        if all.len() >= fewest {
            return None;
        }
    }
    (all.len() < fewest).then_some(all)
}

/// Number of rows that certainly have the remaining value, and number of candidate rows.
fn certain_share(values: &BTreeSet<u32>, count: u64) -> ShareOfRows {
    // a single remaining value is certain for all rows; several values are not
    ShareOfRows::new(if values.len() <= 1 { count } else { 0 }, count)
}
