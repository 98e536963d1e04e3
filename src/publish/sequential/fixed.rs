//! The earlier releases, joined once for one requirement: equal tuples form one block.

use ahash::RandomState;
use hashbrown::HashMap;

use super::signatures::{RowSignatures, TupleInterner};
use super::span::{NodeRange, NodeSet};
use super::tables::{ColumnRange, ColumnRef, IndexedRequirement, JoinTables};
use super::{GroupMeasure, SequentialJoinError};
use crate::control::Control;

/// A column of the new release, paired with labels of earlier blocks.
pub(super) struct ColumnPairing {
    /// The column of the new release.
    pub(super) column: usize,
    /// Distinct labels of the blocks, as node sets.
    pub(super) places: Vec<NodeSet>,
    /// Index of the label of each block.
    pub(super) labels: Vec<u32>,
}

impl ColumnPairing {
    fn new(column: usize, of_blocks: Vec<NodeSet>) -> Self {
        let mut places = of_blocks.clone();
        places.sort_unstable();
        places.dedup();
        let label = |of: &NodeSet| places.partition_point(|other| other < of) as u32;
        Self { column, labels: of_blocks.iter().map(label).collect(), places }
    }

    /// Node set of the label of a block.
    pub(super) fn places_of(&self, block: u32) -> &NodeSet {
        &self.places[self.labels[block as usize] as usize]
    }
}

/// An exclusion between the new release and an earlier one.
pub(super) struct ExclusionPairing {
    /// Columns of the new release with the node ranges that the exclusion names.
    pub(super) within: Vec<ColumnRange>,
    /// Whether each block satisfies the other side.
    pub(super) applies: Vec<bool>,
}

/// Blocks of tuples of earlier releases.
#[derive(Default)]
pub(super) struct JoinedEarlier {
    /// Numbers of the X and Y values of each block.
    pub(super) x: Vec<u32>,
    pub(super) y: Vec<u32>,
    /// Number of tuples of each block.
    pub(super) weights: Vec<u128>,
    /// Number of distinct keys that each Y value stands for.
    pub(super) y_weights: Vec<u128>,
    /// Sensitive values that each Y value may be.
    pub(super) y_meets: Vec<SensitiveMask>,
    pub(super) pairings: Vec<ColumnPairing>,
    pub(super) barriers: Vec<ExclusionPairing>,
}

/// Sensitive values of a requirement that a part of Y does not rule out, as bits.
pub(super) type SensitiveMask = Box<[u64]>;

/// Sensitive values that `labels`, the Y values at `places`, do not rule out; all if no value is sensitive.
pub(super) fn meets(measure: &GroupMeasure, labels: impl Iterator<Item = (usize, NodeSet)> + Clone) -> SensitiveMask {
    let GroupMeasure::Linkability { sensitive: Some(values), .. } = measure else { return Box::default() };
    let mut bits = vec![0; values.len().div_ceil(64)];
    for (at, value) in values.iter().enumerate() {
        if labels.clone().all(|(at, label)| label.meets(&value[at].into())) {
            bits[at / 64] |= 1 << (at % 64);
        }
    }
    bits.into()
}

/// A part of a tuple under construction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TupleSlot {
    /// Code of a column.
    Cell(ColumnRef),
    /// Signature of the rows of a release, which represents all equal rows.
    Rows(usize),
}

struct PartialTuple {
    slots: Vec<TupleSlot>,
    tuples: Vec<WeightedTuple>,
}

/// A tuple, and how often it occurs.
struct WeightedTuple {
    tuple: Box<[u32]>,
    weight: u128,
}

impl JoinedEarlier {
    /// No earlier release: one block that matches everything.
    pub(super) fn none(measure: &GroupMeasure) -> Self {
        Self {
            x: vec![0],
            y: vec![0],
            weights: vec![1],
            y_weights: vec![1],
            y_meets: vec![meets(measure, std::iter::empty())],
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.weights.len()
    }

    /// Joins the releases of `joined` without the new one, with at most `most` kinds of tuples.
    pub(super) fn join(
        tables: &JoinTables,
        sought: &IndexedRequirement,
        joined: &[usize],
        most: u64,
        control: &Control,
    ) -> Result<Self, SequentialJoinError> {
        let earlier: Vec<usize> = joined.iter().copied().filter(|&release| release != 0).collect();
        let with_new = earlier.len() < joined.len();
        if earlier.is_empty() {
            return Ok(Self::none(&sought.measure));
        }
        let mut classes: HashMap<usize, RowSignatures, RandomState> = HashMap::default();
        let mut partial =
            PartialTuple { slots: Vec::new(), tuples: vec![WeightedTuple { tuple: Box::default(), weight: 1 }] };
        for (at, &release) in earlier.iter().enumerate() {
            let used = used(tables, sought, release, joined);
            let signatures = tables.views[release].signatures.project(&used, control)?;
            let step = EarlierJoinStep { tables, sought, release, used: &used, later: &earlier[at + 1..], with_new };
            partial = step.join(&partial, &signatures, most, control)?;
            if sought.keys.contains(&release) {
                classes.insert(release, signatures);
            }
        }
        Ok(Self::new(tables, sought, partial, &classes, with_new))
    }

    fn new(
        tables: &JoinTables,
        sought: &IndexedRequirement,
        mut partial: PartialTuple,
        classes: &HashMap<usize, RowSignatures, RandomState>,
        with_new: bool,
    ) -> Self {
        let place = |slot: TupleSlot| partial.slots.iter().position(|&other| other == slot);
        let places = |cells: &[ColumnRef]| -> Vec<usize> {
            cells.iter().filter_map(|&cell| place(TupleSlot::Cell(cell))).collect()
        };
        let x_places = places(&sought.x);
        let y_places = places(&sought.y);
        let rows_places: Vec<(usize, usize)> =
            sought.keys.iter().filter_map(|&release| Some((release, place(TupleSlot::Rows(release))?))).collect();
        let of_x = |tuple: &[u32]| x_places.iter().map(|&at| tuple[at]).collect::<Vec<u32>>();
        let of_y = |tuple: &[u32]| {
            let rows = rows_places.iter().map(|&(_, at)| tuple[at]);
            y_places.iter().map(|&at| tuple[at]).chain(rows).collect::<Vec<u32>>()
        };
        partial.tuples.sort_by_cached_key(|of| (of_x(&of.tuple), of_y(&of.tuple), of.tuple.clone()));

        // positions of earlier releases in Y
        let y_element: Vec<(usize, ColumnRef)> =
            sought.y.iter().copied().enumerate().filter(|(_, cell)| cell.release != 0).collect();
        let mut fixed = Self::default();
        let (mut xs, mut ys) = (TupleInterner::default(), TupleInterner::default());
        for WeightedTuple { tuple, weight } in &partial.tuples {
            fixed.x.push(xs.number(&of_x(tuple)).0);
            let (y, is_new) = ys.number(&of_y(tuple));
            if is_new {
                let rows = |&(release, at): &(usize, usize)| u128::from(classes[&release].count(tuple[at] as usize));
                fixed.y_weights.push(rows_places.iter().map(rows).product());
                let label =
                    |(&(in_y, cell), &at): (&(usize, ColumnRef), &usize)| (in_y, tables.label(cell, tuple[at]).clone());
                fixed.y_meets.push(meets(&sought.measure, y_element.iter().zip(&y_places).map(label)));
            }
            fixed.y.push(y);
            fixed.weights.push(*weight);
        }
        if with_new {
            fixed.match_new(tables, &partial);
        }
        fixed
    }

    /// Columns of the new release that match labels of the blocks.
    fn match_new(&mut self, tables: &JoinTables, partial: &PartialTuple) {
        let places = |at: usize, cell: ColumnRef| -> Vec<NodeSet> {
            partial.tuples.iter().map(|of| tables.label(cell, of.tuple[at]).clone()).collect()
        };
        let mut releases: Vec<usize> = Vec::new();
        for (at, slot) in partial.slots.iter().enumerate() {
            let TupleSlot::Cell(cell) = *slot else { continue };
            if !releases.contains(&cell.release) {
                releases.push(cell.release);
            }
            if let Some(own) = tables.views[0].column(tables.attribute(cell)) {
                self.pairings.push(ColumnPairing::new(own, places(at, cell)));
            }
        }
        for &release in &releases {
            for (own, other) in tables.barred.iter().filter_map(|barred| barred.between(0, release)) {
                let mut applies = vec![true; partial.tuples.len()];
                for &ColumnRange { column, span } in &other.within {
                    let cell = ColumnRef { release, column };
                    // present, because an exclusion names it
                    let Some(at) = partial.slots.iter().position(|&other| other == TupleSlot::Cell(cell)) else {
                        continue;
                    };
                    for (applies, label) in applies.iter_mut().zip(places(at, cell)) {
                        *applies &= label.within(span);
                    }
                }
                self.barriers.push(ExclusionPairing { within: own.within.clone(), applies });
            }
        }
    }
}

/// Columns of a release that a requirement needs in a join.
pub(super) fn used(tables: &JoinTables, sought: &IndexedRequirement, release: usize, joined: &[usize]) -> Vec<usize> {
    let y_element = sought.x.iter().chain(&sought.y).filter(|cell| cell.release == release).map(|cell| cell.column);
    let mut used: Vec<usize> = tables.matched(release, joined).into_iter().chain(y_element).collect();
    used.sort_unstable();
    used.dedup();
    used
}

/// The join of one release with those before it.
struct EarlierJoinStep<'a> {
    tables: &'a JoinTables,
    sought: &'a IndexedRequirement,
    release: usize,
    /// Needed columns of the release.
    used: &'a [usize],
    /// Releases of the later steps.
    later: &'a [usize],
    /// Whether the new release comes last.
    with_new: bool,
}

/// A part of joined tuples, and the used column of a release that must be compatible.
#[derive(Clone, Copy)]
struct CellPair {
    slot: usize,
    cell: ColumnRef,
    /// Index of the used column.
    here: usize,
}

/// A condition on a part of a tuple, or on a used column of a release.
#[derive(Clone, Copy)]
struct CellRange {
    at: usize,
    cell: ColumnRef,
    span: NodeRange,
}

/// An exclusion between joined tuples and a release.
struct ExclusionTest {
    before: Vec<CellRange>,
    here: Vec<CellRange>,
}

impl ExclusionTest {
    /// Whether no record has both.
    fn forbids(&self, tables: &JoinTables, tuple: &[u32], signature: &[u32]) -> bool {
        let within = |codes: &[u32], of: &CellRange| tables.label(of.cell, codes[of.at]).within(of.span);
        self.before.iter().all(|of| within(tuple, of)) && self.here.iter().all(|of| within(signature, of))
    }
}

impl EarlierJoinStep<'_> {
    fn join(
        &self,
        partial: &PartialTuple,
        signatures: &RowSignatures,
        most: u64,
        control: &Control,
    ) -> Result<PartialTuple, SequentialJoinError> {
        let Self { tables, release, used, .. } = *self;
        let pairs = self.pairs(partial);
        let inconsistent = self.inconsistent(partial);
        let own = used.iter().map(|&column| TupleSlot::Cell(ColumnRef { release, column }));
        let all: Vec<TupleSlot> = partial.slots.iter().copied().chain(own).chain([TupleSlot::Rows(release)]).collect();
        let kept: Vec<usize> = (0..all.len()).filter(|&at| self.is_needed(all[at])).collect();

        let agrees = |pair: &CellPair, code: u32, signature: &[u32]| {
            let here = ColumnRef { release, column: used[pair.here] };
            tables.label(pair.cell, code).meets(tables.label(here, signature[pair.here]))
        };
        // signatures that are compatible with the label of the first pair
        let mut meeting: HashMap<u32, Vec<u32>, RandomState> = HashMap::default();
        let everything: Vec<u32> = (0..signatures.len() as u32).collect();
        let mut joined: HashMap<Box<[u32]>, u128, RandomState> = HashMap::default();
        for WeightedTuple { tuple, weight } in &partial.tuples {
            control.check()?;
            let candidates = match pairs.first() {
                None => &everything,
                Some(first) => &*meeting.entry(tuple[first.slot]).or_insert_with(|| {
                    let meets = |&at: &u32| agrees(first, tuple[first.slot], signatures.get(at as usize));
                    everything.iter().copied().filter(meets).collect()
                }),
            };
            for &at in candidates {
                let signature = signatures.get(at as usize);
                if !pairs.iter().skip(1).all(|pair| agrees(pair, tuple[pair.slot], signature))
                    || inconsistent.iter().any(|test| test.forbids(tables, tuple, signature))
                {
                    continue;
                }
                let value = |&place: &usize| match place.checked_sub(tuple.len()) {
                    None => tuple[place],
                    Some(here) => signature.get(here).copied().unwrap_or(at),
                };
                let tuple: Box<[u32]> = kept.iter().map(value).collect();
                *joined.entry(tuple).or_default() += weight * u128::from(signatures.count(at as usize));
            }
            if joined.len() as u64 > most {
                return Err(SequentialJoinError::TooDense);
            }
        }
        let tuples = joined.into_iter().map(|(tuple, weight)| WeightedTuple { tuple, weight }).collect();
        Ok(PartialTuple { slots: kept.iter().map(|&at| all[at]).collect(), tuples })
    }

    /// The parts of tuples with a column of this release that must be compatible.
    fn pairs(&self, partial: &PartialTuple) -> Vec<CellPair> {
        let view = &self.tables.views[self.release];
        let pair = |(slot, kept): (usize, &TupleSlot)| {
            let TupleSlot::Cell(cell) = *kept else { return None };
            let own = view.column(self.tables.attribute(cell))?;
            let here = self.used.iter().position(|&column| column == own)?;
            Some(CellPair { slot, cell, here })
        };
        partial.slots.iter().enumerate().filter_map(pair).collect()
    }

    fn inconsistent(&self, partial: &PartialTuple) -> Vec<ExclusionTest> {
        let mut found = Vec::new();
        let mut before: Vec<usize> = Vec::new();
        for slot in &partial.slots {
            if let TupleSlot::Cell(cell) = *slot
                && !before.contains(&cell.release)
            {
                before.push(cell.release);
            }
        }
        for other in before {
            for (there, here) in self.tables.barred.iter().filter_map(|barred| barred.between(other, self.release)) {
                let slot = |&ColumnRange { column, span }: &ColumnRange| {
                    let cell = ColumnRef { release: other, column };
                    let at = partial.slots.iter().position(|&slot| slot == TupleSlot::Cell(cell))?;
                    Some(CellRange { at, cell, span })
                };
                let own = |&ColumnRange { column, span }: &ColumnRange| {
                    let at = self.used.iter().position(|&used| used == column)?;
                    Some(CellRange { at, cell: ColumnRef { release: self.release, column }, span })
                };
                let before: Option<Vec<_>> = there.within.iter().map(slot).collect();
                let here: Option<Vec<_>> = here.within.iter().map(own).collect();
                // all parts are present, because exclusions name them
                found.extend(before.zip(here).map(|(before, here)| ExclusionTest { before, here }));
            }
        }
        found
    }

    /// Whether a later step needs a part.
    fn is_needed(&self, slot: TupleSlot) -> bool {
        let Self { tables, sought, .. } = *self;
        match slot {
            TupleSlot::Rows(release) => sought.keys.contains(&release),
            TupleSlot::Cell(cell) => {
                let matched =
                    |other: usize| tables.matched(cell.release, &[cell.release, other]).contains(&cell.column);
                let waits = self.later.iter().any(|&other| matched(other)) || (self.with_new && matched(0));
                waits || sought.x.contains(&cell) || sought.y.contains(&cell)
            }
        }
    }
}
