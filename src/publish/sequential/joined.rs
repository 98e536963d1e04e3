//! One requirement on one join, during specialization.
//!
//! Rows of the new release with equal labels form a block, which is linked to the earlier blocks that it matches. No tuple of the
//! join is ever made.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::RandomState;
use hashbrown::{HashMap, HashSet};

use super::cut_state::CutState;
use super::fixed::{ColumnPairing, JoinedEarlier, SensitiveMask, meets, used};
use super::groups::{ChangeBatch, NO_BLOCK, TupleChange, XGroups, YIndex, YKey};
use super::share::MeasureValue;
use super::signatures::{RowSignatures, TupleInterner};
use super::span::{CompatibilityIndex, NodeSet};
use super::tables::{ColumnRange, ColumnRef, IndexedRequirement, JoinTables};
use super::weighing::StepWeight;
use super::{GroupMeasure, SequentialJoinError};
use crate::control::Control;

/// Rows of the new release with equal labels.
pub(super) struct RowBlock {
    /// Node by used column; the code of a column that is not specialized.
    labels: Box<[u32]>,
    /// Signatures of the rows.
    members: Vec<u32>,
    /// Matching blocks of earlier releases, rising.
    pub(super) links: Arc<[u32]>,
    /// Numbers of the labels on X, and on Y.
    pub(super) x: u32,
    pub(super) y: u32,
}

/// The rows of a block below one of the children of a node.
pub(super) struct BlockPart {
    /// Index of the child.
    pub(super) child: usize,
    pub(super) labels: Box<[u32]>,
    members: Vec<u32>,
    pub(super) rows: u64,
    pub(super) links: Arc<[u32]>,
}

/// A node of an attribute under specialization.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct CutNodeRef {
    /// Index of the attribute.
    pub(super) cut_state: usize,
    pub(super) node: u32,
}

/// A specialization step: a node of a used column, and its children.
pub(super) struct SpecializationStep<'a> {
    at: usize,
    cut_state: usize,
    pub(super) children: &'a [u32],
    pub(super) cut_states: &'a [CutState<'a>],
    /// By pairing of the column and by child, the compatible labels.
    meeting: Vec<(usize, Vec<CompatibleLabels>)>,
}

/// The labels of a column that are compatible with one label of another column.
enum CompatibleLabels {
    /// For each label of the column, whether it is compatible: where many are.
    Each(Vec<bool>),
    /// The numbers of the compatible labels, rising: where few are.
    These(Vec<u32>),
}

impl CompatibleLabels {
    /// Largest number of answers that are stored one by one.
    const MOST: usize = 1 << 22;

    fn has(&self, label: u32) -> bool {
        match self {
            Self::Each(meets) => meets[label as usize],
            Self::These(labels) => labels.binary_search(&label).is_ok(),
        }
    }
}

/// Blocks by number.
#[derive(Default)]
pub(super) struct BlockTable {
    blocks: Vec<Option<RowBlock>>,
    pub(super) rows: Vec<u64>,
    free: Vec<u32>,
}

impl BlockTable {
    fn add(&mut self, block: RowBlock, rows: u64) -> u32 {
        let number = self.free.pop().unwrap_or(self.blocks.len() as u32);
        if number as usize == self.blocks.len() {
            self.blocks.push(None);
            self.rows.push(0);
        }
        self.blocks[number as usize] = Some(block);
        self.rows[number as usize] = rows;
        number
    }

    fn remove(&mut self, number: u32) {
        self.blocks[number as usize] = None;
        self.free.push(number);
    }

    pub(super) fn get(&self, number: u32) -> Option<&RowBlock> {
        self.blocks[number as usize].as_ref()
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.blocks).filter(|(_, block)| block.is_some()).map(|(number, _)| number)
    }
}

/// A requirement and the releases on whose join it is checked, the new one included.
#[derive(Clone, Copy)]
pub(super) struct SoughtJoin<'a> {
    /// The index of the requirement.
    pub(super) requirement: usize,
    pub(super) sought: &'a IndexedRequirement,
    pub(super) releases: &'a [usize],
}

/// A requirement on a join.
pub(super) struct RequirementJoin {
    pub(super) requirement: usize,
    /// The joins that it represents, by their releases.
    pub(super) joins: Vec<Vec<usize>>,
    /// Whether the new release is the only one.
    pub(super) is_alone: bool,
    /// Whether specialization never repairs the requirement.
    pub(super) is_monotone: bool,
    pub(super) measure: GroupMeasure,
    pub(super) fixed: JoinedEarlier,
    /// Needed columns of the new release.
    columns: Vec<usize>,
    /// Attribute under specialization, by used column.
    cut_state_of: Vec<Option<usize>>,
    /// Used columns on X, and those on Y with their positions in it.
    x: Vec<usize>,
    y: Vec<(usize, usize)>,
    /// Whether Y holds the key of the new release.
    pub(super) has_key: bool,
    raw: RowSignatures,
    raw_places: Vec<Vec<NodeSet>>,
    pub(super) blocks: BlockTable,
    /// Blocks by attribute and node.
    pub(super) of_node: HashMap<CutNodeRef, HashSet<u32, RandomState>, RandomState>,
    /// Weights of steps by attribute and node, valid until a block of the node changes.
    pub(super) weighed: HashMap<CutNodeRef, StepWeight, RandomState>,
    xs: TupleInterner,
    ys: TupleInterner,
    y_meets: Vec<SensitiveMask>,
    pub(super) groups: XGroups,
    pub(super) links: u64,
    pub(super) most: u64,
}

impl RequirementJoin {
    /// The join at the root of every attribute.
    pub(super) fn begin(
        tables: &JoinTables,
        join: SoughtJoin<'_>,
        cut_states: &[CutState<'_>],
        most: u64,
        control: &Control,
    ) -> Result<Self, SequentialJoinError> {
        let SoughtJoin { requirement, sought, releases: joined } = join;
        let fixed = JoinedEarlier::join(tables, sought, joined, most, control)?;
        let columns = used(tables, sought, 0, joined);
        let cut_state = |column: usize| cut_states.iter().position(|cut_state| cut_state.column == column);
        let cut_state_of: Vec<Option<usize>> = columns
            .iter()
            .map(|column| if sought.exact.contains(column) { None } else { cut_state(*column) })
            .collect();
        let place = |cell: &ColumnRef| columns.iter().position(|&used| cell.release == 0 && used == cell.column);
        let x: Vec<usize> = sought.x.iter().filter_map(place).collect();
        let y: Vec<(usize, usize)> =
            sought.y.iter().enumerate().filter_map(|(in_y, cell)| Some((in_y, place(cell)?))).collect();
        let matched = tables.matched(0, joined);
        let grows = |at: usize| cut_state_of[at].is_some();
        // a step that only divides groups never repairs a requirement
        let is_monotone = (0..columns.len()).filter(|&at| grows(at)).all(|at| !matched.contains(&columns[at]))
            && !y.iter().any(|&(_, at)| grows(at));
        let mut begun = Self {
            requirement,
            joins: vec![joined.to_vec()],
            is_alone: joined == [0],
            is_monotone,
            measure: sought.measure.clone(),
            raw: tables.views[0].signatures.project(&columns, control)?,
            raw_places: columns.iter().map(|&column| tables.views[0].places[column].clone()).collect(),
            has_key: sought.keys.contains(&0),
            fixed,
            columns,
            cut_state_of,
            x,
            y,
            blocks: BlockTable::default(),
            of_node: HashMap::default(),
            weighed: HashMap::default(),
            xs: TupleInterner::default(),
            ys: TupleInterner::default(),
            y_meets: Vec::new(),
            groups: XGroups::default(),
            links: 0,
            most,
        };
        begun.link(cut_states, control)?;
        Ok(begun)
    }

    /// Makes the blocks of the roots: all rows, divided by exact columns, and linked to earlier blocks.
    fn link(&mut self, cut_states: &[CutState<'_>], control: &Control) -> Result<(), SequentialJoinError> {
        type Begun = (Vec<u32>, Vec<u32>, Arc<[u32]>);
        let everything: Arc<[u32]> = (0..self.fixed.len() as u32).collect();
        let mut begun: Vec<Begun> = vec![(Vec::new(), (0..self.raw.len() as u32).collect(), everything)];
        for at in 0..self.columns.len() {
            let mut next: Vec<Begun> = Vec::new();
            let mut links = 0;
            for (labels, members, linked) in begun {
                control.check()?;
                let mut by_label: HashMap<u32, Vec<u32>, RandomState> = HashMap::default();
                for member in members {
                    let label = if self.cut_state_of[at].is_some() { 0 } else { self.raw.get(member as usize)[at] };
                    by_label.entry(label).or_default().push(member);
                }
                let mut parts: Vec<(u32, Vec<u32>)> = by_label.into_iter().collect();
                parts.sort_unstable();
                let spans: Vec<NodeSet> = parts.iter().map(|&(label, _)| self.places(at, label, cut_states)).collect();
                for ((label, members), linked) in parts.into_iter().zip(self.meeting(at, &spans, &linked)) {
                    links += linked.len() as u64;
                    if links > self.most {
                        return Err(SequentialJoinError::TooDense);
                    }
                    if !linked.is_empty() {
                        let labels = labels.iter().copied().chain([label]).collect();
                        next.push((labels, members, linked));
                    }
                }
            }
            begun = next;
        }
        let mut changes = ChangeBatch::default();
        for (labels, members, links) in begun {
            control.check()?;
            let links = self.unbarred(&labels, None, links, cut_states);
            let Some(number) = self.add(labels.into(), members, links, cut_states) else { continue };
            self.links += self.blocks.get(number).map_or(0, |block| block.links.len() as u64);
            self.contribute(number, 1, &mut changes);
            self.enter(number);
        }
        if self.links > self.most {
            return Err(SequentialJoinError::TooDense);
        }
        changes.sum();
        let mut groups = std::mem::take(&mut self.groups);
        groups.apply(&changes, &self.lexicon());
        self.groups = groups;
        Ok(())
    }

    /// Node range of a label of a used column.
    fn places(&self, at: usize, label: u32, cut_states: &[CutState<'_>]) -> NodeSet {
        match self.cut_state_of[at] {
            Some(cut_state) => cut_states[cut_state].span(label).into(),
            None => self.raw_places[at][label as usize].clone(),
        }
    }

    /// Compatible links of each of some labels of a used column.
    fn meeting(&self, at: usize, labels: &[NodeSet], links: &Arc<[u32]>) -> Vec<Arc<[u32]>> {
        let mut meeting: Vec<Arc<[u32]>> = labels.iter().map(|_| Arc::clone(links)).collect();
        for pairing in self.fixed.pairings.iter().filter(|pairing| pairing.column == self.columns[at]) {
            // labels are few, links are many
            let mut by_label: HashMap<&NodeSet, Vec<u32>, RandomState> = HashMap::default();
            links.iter().for_each(|&link| by_label.entry(pairing.places_of(link)).or_default().push(link));
            let (others, of_others): (Vec<&NodeSet>, Vec<Vec<u32>>) = by_label.into_iter().unzip();
            let index = CompatibilityIndex::from_labels(others);
            for (label, met) in labels.iter().zip(&mut meeting) {
                let found = index.meeting(label);
                // mostly all links are compatible, and need no copy
                if found.len() == of_others.len() {
                    continue;
                }
                if Arc::ptr_eq(met, links) {
                    let mut linked: Vec<u32> =
                        found.into_iter().flat_map(|of| &of_others[of as usize]).copied().collect();
                    linked.sort_unstable();
                    *met = linked.into();
                } else {
                    *met = met.iter().copied().filter(|&link| pairing.places_of(link).meets(label)).collect();
                }
            }
        }
        meeting
    }

    /// Links that no exclusion forbids for these labels; only exclusions on the column `naming` if it is given.
    fn unbarred(
        &self,
        labels: &[u32],
        naming: Option<usize>,
        mut links: Arc<[u32]>,
        cut_states: &[CutState<'_>],
    ) -> Arc<[u32]> {
        for barrier in &self.fixed.barriers {
            let names = |column: usize| barrier.within.iter().any(|range| range.column == column);
            let holds = |range: &ColumnRange| {
                let at = self.columns.iter().position(|&used| used == range.column);
                at.is_some_and(|at| self.places(at, labels[at], cut_states).within(range.span))
            };
            if naming.is_none_or(names) && barrier.within.iter().all(holds) {
                links = links.iter().copied().filter(|&link| !barrier.applies[link as usize]).collect();
            }
        }
        links
    }

    /// Stores a block that is not yet counted. A block without links has no tuples and is dropped.
    fn add(
        &mut self,
        labels: Box<[u32]>,
        members: Vec<u32>,
        links: Arc<[u32]>,
        cut_states: &[CutState<'_>],
    ) -> Option<u32> {
        if links.is_empty() {
            return None;
        }
        let on_x: Vec<u32> = self.x.iter().map(|&at| labels[at]).collect();
        let (x, _) = self.xs.number(&on_x);
        let y = self.number_y(&labels, cut_states);
        let rows = members.iter().map(|&member| self.raw.count(member as usize)).sum();
        Some(self.blocks.add(RowBlock { labels, members, links, x, y }, rows))
    }

    /// Number of the Y value in the new release.
    pub(super) fn number_y(&mut self, labels: &[u32], cut_states: &[CutState<'_>]) -> u32 {
        let on_y: Vec<u32> = self.y.iter().map(|&(_, at)| labels[at]).collect();
        let (y, is_new) = self.ys.number(&on_y);
        if is_new {
            let y_element = self.y.iter().map(|&(in_y, at)| (in_y, self.places(at, labels[at], cut_states)));
            let meets = meets(&self.measure, y_element);
            self.y_meets.push(meets);
        }
        y
    }

    /// Adds or removes the tuples of a block.
    fn contribute(&self, number: u32, sign: i128, changes: &mut ChangeBatch) {
        let Some(block) = self.blocks.get(number) else { return };
        let rows = sign * i128::from(self.blocks.rows[number as usize]);
        let values = |link: &u32| (self.fixed.x[*link as usize], self.fixed.y[*link as usize]);
        for links in block.links.chunk_by(|a, b| values(a) == values(b)) {
            let (x, earlier) = values(&links[0]);
            let weight: u128 = links.iter().map(|&link| self.fixed.weights[link as usize]).sum();
            let own = if self.has_key { number } else { NO_BLOCK };
            let y = YKey { new: block.y, earlier, block: own };
            // at most the product of all rows, which was checked
            changes.push(TupleChange { x: (block.x, x), y, tuples: rows * weight as i128 });
        }
    }

    /// Indexes a block by its nodes.
    fn enter(&mut self, number: u32) {
        let Some(block) = self.blocks.get(number) else { return };
        for (cut_state, &label) in self.cut_state_of.iter().zip(&block.labels) {
            if let Some(cut_state) = *cut_state {
                self.of_node.entry(CutNodeRef { cut_state, node: label }).or_default().insert(number);
                self.weighed.remove(&CutNodeRef { cut_state, node: label });
            }
        }
    }

    fn leave(&mut self, number: u32) {
        let Some(block) = self.blocks.get(number) else { return };
        for (cut_state, &label) in self.cut_state_of.iter().zip(&block.labels) {
            let Some(cut_state) = *cut_state else { continue };
            self.weighed.remove(&CutNodeRef { cut_state, node: label });
            if let Some(blocks) = self.of_node.get_mut(&CutNodeRef { cut_state, node: label }) {
                blocks.remove(&number);
            }
        }
    }

    pub(super) fn lexicon(&self) -> YIndex<'_> {
        YIndex { measure: &self.measure, fixed: &self.fixed, new_meets: &self.y_meets, block_rows: &self.blocks.rows }
    }

    /// The current measure; `None` without tuples.
    pub(super) fn level(&self) -> Option<MeasureValue> {
        self.groups.level(&self.measure)
    }

    /// Number of tuples of the join.
    #[cfg(test)]
    pub(super) fn tuples(&self) -> u128 {
        self.groups.tuples()
    }

    /// Whether the column is on X.
    pub(super) fn is_on_x(&self, cut_state: usize) -> bool {
        self.x.iter().any(|&at| self.cut_state_of[at] == Some(cut_state))
    }

    /// A step of an attribute; `None` if the requirement does not depend on it.
    pub(super) fn descent<'a>(
        &self,
        cut_state: usize,
        children: &'a [u32],
        cut_states: &'a [CutState<'a>],
    ) -> Option<SpecializationStep<'a>> {
        let at = self.cut_state_of.iter().position(|&other| other == Some(cut_state))?;
        let of_column = |(_, pairing): &(usize, &ColumnPairing)| pairing.column == self.columns[at];
        let met = |(place, pairing): (usize, &ColumnPairing)| {
            let index = CompatibilityIndex::from_labels(pairing.places.iter().collect());
            // values without a taxonomy may be as many as labels
            let is_few = children.len().saturating_mul(pairing.places.len()) <= CompatibleLabels::MOST;
            let by_child = children.iter().map(|&child| {
                let mut labels = index.meeting(&cut_states[cut_state].span(child).into());
                if is_few {
                    let mut meets = vec![false; pairing.places.len()];
                    labels.into_iter().for_each(|label| meets[label as usize] = true);
                    return CompatibleLabels::Each(meets);
                }
                labels.sort_unstable();
                CompatibleLabels::These(labels)
            });
            (place, by_child.collect())
        };
        let meeting = self.fixed.pairings.iter().enumerate().filter(of_column).map(met).collect();
        Some(SpecializationStep { at, cut_state, children, cut_states, meeting })
    }

    /// Parts of a block after a step.
    pub(super) fn parts(&self, block: &RowBlock, descent: &SpecializationStep<'_>) -> Vec<BlockPart> {
        let SpecializationStep { at, cut_state, children, cut_states, .. } = *descent;
        let mut members: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for &member in &block.members {
            let code = self.raw.get(member as usize)[at];
            members.entry(cut_states[cut_state].child_of(children, code)).or_default().push(member);
        }
        let of_child = |(child, members): (usize, Vec<u32>)| {
            let mut links = Arc::clone(&block.links);
            for (place, by_child) in &descent.meeting {
                let (labels, meets) = (&self.fixed.pairings[*place].labels, &by_child[child]);
                let found: Vec<u32> = links.iter().copied().filter(|&link| meets.has(labels[link as usize])).collect();
                // mostly all links stay, and need no copy
                if found.len() < links.len() {
                    links = found.into();
                }
            }
            let mut labels = block.labels.clone();
            labels[at] = children[child];
            let links = self.unbarred(&labels, Some(self.columns[at]), links, cut_states);
            let rows = members.iter().map(|&member| self.raw.count(member as usize)).sum();
            BlockPart { child, labels, members, rows, links }
        };
        members.into_iter().map(of_child).collect()
    }

    /// Blocks that a step divides, rising.
    pub(super) fn divided(&self, node: CutNodeRef) -> Vec<u32> {
        let mut divided: Vec<u32> = self.of_node.get(&node).into_iter().flatten().copied().collect();
        divided.sort_unstable();
        divided
    }

    /// Replaces a node by its children.
    pub(super) fn make(
        &mut self,
        node: CutNodeRef,
        children: &[u32],
        cut_states: &[CutState<'_>],
        control: &Control,
    ) -> Result<(), SequentialJoinError> {
        let divided = self.divided(node);
        let mut parts = Vec::new();
        let Some(descent) = self.descent(node.cut_state, children, cut_states) else { return Ok(()) };
        for &number in &divided {
            control.check()?;
            parts.extend(self.blocks.get(number).into_iter().flat_map(|block| self.parts(block, &descent)));
        }
        let mut changes = ChangeBatch::default();
        for &number in &divided {
            control.check()?;
            self.contribute(number, -1, &mut changes);
        }
        let mut added = Vec::new();
        for BlockPart { labels, members, links, .. } in parts {
            control.check()?;
            let Some(number) = self.add(labels, members, links, cut_states) else { continue };
            self.contribute(number, 1, &mut changes);
            self.links += self.blocks.get(number).map_or(0, |block| block.links.len() as u64);
            added.push(number);
        }
        changes.sum();
        let mut groups = std::mem::take(&mut self.groups);
        groups.apply(&changes, &self.lexicon());
        self.groups = groups;
        for number in divided {
            self.links -= self.blocks.get(number).map_or(0, |block| block.links.len() as u64);
            self.leave(number);
            self.blocks.remove(number);
        }
        added.into_iter().for_each(|number| self.enter(number));
        Ok(())
    }
}
