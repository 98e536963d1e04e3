//! Measure of a requirement after a step, without taking it.
//!
//! Groups are read from the blocks that the step divides, one X value after the other, and only their levels are kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::RandomState;
use hashbrown::HashMap;

use super::SequentialJoinError;
use super::cut_state::CutState;
use super::groups::{MeasureTally, NO_BLOCK, YIndex, YKey};
use super::joined::{CutNodeRef, RequirementJoin, SpecializationStep};
use super::share::MeasureValue;
use crate::control::Control;

/// Weight of a step.
#[derive(Clone, Copy)]
pub(super) struct StepWeight {
    /// The worst level of the new groups, and of those that vanish.
    made: Option<MeasureValue>,
    gone: Option<MeasureValue>,
    /// Number of links of the divided blocks.
    removed_links: u64,
    /// Number of links of their parts.
    added_links: u64,
    /// Whether the step certainly breaks the requirement, so that the rest is skipped.
    is_broken: bool,
}

/// Rows of the new release with equal labels, and their links.
struct LinkedRows {
    rows: u64,
    /// Number of the labels on Y.
    y: u32,
    links: Arc<[u32]>,
}

impl RequirementJoin {
    /// The measure after replacing a node by its children; `None` without tuples. With `strict`, any forbidden level may be
    /// returned for a broken requirement.
    pub(super) fn weigh(
        &mut self,
        node: CutNodeRef,
        children: &[u32],
        cut_states: &[CutState<'_>],
        strict: bool,
        control: &Control,
    ) -> Result<Option<MeasureValue>, SequentialJoinError> {
        let weighed = match self.weighed.get(&node) {
            Some(weighed) => *weighed,
            None => {
                let Some(descent) = self.descent(node.cut_state, children, cut_states) else { return Ok(self.level()) };
                let weighed = self.look(node, &descent, strict, control)?;
                // otherwise its groups hold unchanged blocks of other nodes, too
                if self.is_on_x(node.cut_state) {
                    self.weighed.insert(node, weighed);
                }
                weighed
            }
        };
        let StepWeight { made, gone, removed_links, added_links, is_broken } = weighed;
        if is_broken {
            return Ok(made);
        }
        if self.links - removed_links + added_links > self.most {
            return Err(SequentialJoinError::TooDense);
        }
        let now = self.level();
        let worst = |a: Option<MeasureValue>, b: Option<MeasureValue>| self.measure.worst(a.into_iter().chain(b));
        // no level is worse than the worst possible one
        if made.is_some() && worst(made, now) == made {
            return Ok(made);
        }
        if gone != now {
            return Ok(worst(made, now));
        }
        // the worst group may vanish
        let mut levels: BTreeMap<MeasureValue, usize> = BTreeMap::new();
        for blocks in self.batches(node) {
            control.check()?;
            let before: Vec<LinkedRows> = blocks.iter().filter_map(|&number| self.rows_of(number)).collect();
            self.levels(&before, |level| {
                if made.is_none_or(|made| level != made && self.measure.worst([level, made]) == Some(level)) {
                    *levels.entry(level).or_default() += 1;
                }
            });
        }
        Ok(worst(made, self.groups.level_without(&levels, &self.measure)))
    }

    fn look(
        &mut self,
        node: CutNodeRef,
        descent: &SpecializationStep<'_>,
        strict: bool,
        control: &Control,
    ) -> Result<StepWeight, SequentialJoinError> {
        let mut weighed = StepWeight { made: None, gone: None, removed_links: 0, added_links: 0, is_broken: false };
        let divided = self.divided(node);
        // an attribute that is not on X divides blocks within one group
        let groups = if self.is_on_x(node.cut_state) { descent.children.len() } else { 1 };
        weighed.removed_links =
            divided.iter().filter_map(|&number| self.blocks.get(number)).map(|block| block.links.len() as u64).sum();
        // too many tuples are reported before a broken requirement
        let most_links =
            self.links - weighed.removed_links + weighed.removed_links.saturating_mul(descent.children.len() as u64);
        let may_end = strict && most_links <= self.most;
        for blocks in self.batches(node) {
            control.check()?;
            let mut after: BTreeMap<usize, Vec<LinkedRows>> = BTreeMap::new();
            for &number in &blocks {
                if divided.binary_search(&number).is_err() {
                    after.entry(0).or_default().extend(self.rows_of(number));
                    continue;
                }
                let Some(block) = self.blocks.get(number) else { continue };
                for part in self.parts(block, descent) {
                    weighed.added_links += part.links.len() as u64;
                    let y = self.number_y(&part.labels, descent.cut_states);
                    let rows = LinkedRows { rows: part.rows, y, links: part.links };
                    after.entry(part.child.min(groups - 1)).or_default().push(rows);
                }
            }
            let worst = |levels: Option<MeasureValue>, level| self.measure.worst(levels.into_iter().chain([level]));
            for rows in after.values() {
                self.levels(rows, |level| weighed.made = worst(weighed.made, level));
            }
            if may_end && weighed.made.is_some_and(|made| !self.measure.allows(made)) {
                return Ok(StepWeight { is_broken: true, ..weighed });
            }
            let before: Vec<LinkedRows> = blocks.iter().filter_map(|&number| self.rows_of(number)).collect();
            self.levels(&before, |level| weighed.gone = worst(weighed.gone, level));
        }
        Ok(weighed)
    }

    fn rows_of(&self, number: u32) -> Option<LinkedRows> {
        let block = self.blocks.get(number)?;
        Some(LinkedRows { rows: self.blocks.rows[number as usize], y: block.y, links: Arc::clone(&block.links) })
    }

    /// Blocks whose groups a step changes, grouped by their labels on X. Small groups come first: they reveal a broken
    /// requirement soonest.
    fn batches(&self, node: CutNodeRef) -> Vec<Vec<u32>> {
        let of = |number: u32| self.blocks.get(number).map_or(0, |block| block.x);
        let mut batches: HashMap<u32, Vec<u32>, RandomState> = HashMap::default();
        for number in self.divided(node) {
            batches.entry(of(number)).or_default().push(number);
        }
        if !self.is_on_x(node.cut_state) {
            // rows that the step does not divide
            let divided = self.of_node.get(&node);
            let others = self.blocks.numbers().filter(|number| divided.is_none_or(|divided| !divided.contains(number)));
            for number in others {
                if let Some(batch) = batches.get_mut(&of(number)) {
                    batch.push(number);
                }
            }
        }
        let mut batches: Vec<Vec<u32>> = batches.into_values().collect();
        let fewest = |batch: &Vec<u32>| batch.iter().map(|&number| (self.blocks.rows[number as usize], number)).min();
        batches.sort_by_cached_key(fewest);
        batches
    }

    /// Yields the level of each group of blocks with equal labels on X.
    fn levels(&self, blocks: &[LinkedRows], mut each: impl FnMut(MeasureValue)) {
        let (lexicon, fixed) = (self.lexicon(), &self.fixed);
        let mut end = |tally: &MeasureTally| tally.level(lexicon.measure).into_iter().for_each(&mut each);
        if let [LinkedRows { rows, y, links }] = blocks {
            // links with equal values are adjacent
            let x = |link: u32| fixed.x[link as usize];
            let y_of = |link: u32| fixed.y[link as usize];
            for group in links.chunk_by(|&a, &b| x(a) == x(b)) {
                let mut tally = MeasureTally::default();
                for alike in group.chunk_by(|&a, &b| y_of(a) == y_of(b)) {
                    let value = YKey { new: *y, earlier: y_of(alike[0]), block: NO_BLOCK };
                    let weight: u128 = alike.iter().map(|&link| fixed.weights[link as usize]).sum();
                    self.count(&mut tally, value, *rows, u128::from(*rows) * weight, &lexicon);
                }
                end(&tally);
            }
            return;
        }
        let mut values: Vec<(u32, YKey, u64, u128)> = Vec::new();
        for (LinkedRows { rows, y, links }, number) in blocks.iter().zip(0..) {
            for &link in &**links {
                let block = if self.has_key { number } else { NO_BLOCK };
                let value = YKey { new: *y, earlier: fixed.y[link as usize], block };
                values.push((fixed.x[link as usize], value, *rows, u128::from(*rows) * fixed.weights[link as usize]));
            }
        }
        values.sort_unstable();
        for group in values.chunk_by(|a, b| a.0 == b.0) {
            let mut tally = MeasureTally::default();
            for alike in group.chunk_by(|a, b| a.1 == b.1) {
                let (_, value, rows, _) = alike[0];
                self.count(&mut tally, value, rows, alike.iter().map(|of| of.3).sum(), &lexicon);
            }
            end(&tally);
        }
    }

    /// Counts a Y value of some rows of the new release.
    fn count(&self, tally: &mut MeasureTally, y: YKey, rows: u64, tuples: u128, lexicon: &YIndex<'_>) {
        let rows = if self.has_key { u128::from(rows) } else { 1 };
        tally.count(y, rows * self.fixed.y_weights[y.earlier as usize], tuples, lexicon);
    }
}
