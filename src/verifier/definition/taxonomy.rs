//! Values as leaves of a taxonomy, by this audit's own search: the way of each from its leaf up to the root.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::thresholds::ThresholdBounds;
use crate::microdata::{AttributeType, Taxonomy};

/// What is stated of the values of a column.
#[derive(Clone, Default)]
pub(in crate::verifier) struct DeclaredValues {
    /// The codes of values that an insider can rule out, rising.
    pub(in crate::verifier) excluded: Vec<u32>,
    /// Where values stand in a tree; none where no tree is stated, or where a value is no leaf of it, or several.
    pub(in crate::verifier) ways: Option<Arc<TaxonomyPaths>>,
    /// What each value may take of a bucket, under each map of thresholds that is stated.
    pub(in crate::verifier) bounds: Vec<Arc<ThresholdBounds>>,
}

/// The ways of all values of a column.
pub(in crate::verifier) struct TaxonomyPaths {
    /// Per code, the nodes from its leaf to the root.
    way: Vec<Vec<u32>>,
    /// Per node of a way, the one above, and how many steps lead to the farthest leaf below.
    nodes: Vec<(Option<u32>, u64)>,
}

impl TaxonomyPaths {
    /// The ways of `values`, in the order of their codes; `None` when one of them is no leaf.
    pub(in crate::verifier) fn new<'v>(
        tree: &Taxonomy,
        kind: Option<AttributeType>,
        values: impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Option<Self> {
        let mut nodes: Vec<(Option<u32>, u64)> = (0..tree.len() as u32).map(|node| (tree.parent(node), 0)).collect();
        let leaves = leaves_of(tree);
        for &leaf in &leaves {
            let (mut node, mut steps) = (leaf as usize, 0);
            while let Some(above) = nodes[node].0 {
                (node, steps) = (above as usize, steps + 1);
                nodes[node].1 = nodes[node].1.max(steps);
            }
        }
        Some(Self::within(climbed(tree, &leaves, kind, values)?, &nodes))
    }

    /// The ways with the nodes that are on one: each comparison looks at all of these.
    fn within(mut way: Vec<Vec<u32>>, nodes: &[(Option<u32>, u64)]) -> Self {
        let met: BTreeSet<u32> = way.iter().flatten().copied().collect();
        let number: BTreeMap<u32, u32> = met.iter().copied().zip(0..).collect();
        way.iter_mut().flatten().for_each(|node| *node = number[node]);
        let renumbered = |node: &u32| {
            let (above, height) = nodes[*node as usize];
            (above.map(|above| number[&above]), height)
        };
        Self { way, nodes: met.iter().map(renumbered).collect() }
    }

    /// Earth mover's distance of shares, as a fraction, from how much each value has too much: two leaves are as far from each other
    /// as the lowest node above both is high, of the height of the root. So what goes up from a node to the one above goes
    /// half of what that is higher.
    pub(in crate::verifier) fn distance(&self, gaps: impl Iterator<Item = (u32, i128)>) -> Option<(u128, u128)> {
        let mut up = vec![0_i128; self.nodes.len()];
        let mut root = None;
        for (code, gap) in gaps {
            let way = self.way.get(code as usize)?;
            way.iter().for_each(|&node| up[node as usize] += gap);
            root = way.last();
        }
        let mut work = 0;
        for ((above, height), gap) in self.nodes.iter().zip(&up) {
            let Some(above) = above else { continue };
            work += gap.unsigned_abs() * u128::from(self.nodes[*above as usize].1 - height);
        }
        Some((work, 2 * u128::from(self.nodes[*root? as usize].1)))
    }
}

/// The nodes of a tree without any below.
fn leaves_of(tree: &Taxonomy) -> Vec<u32> {
    let mut has_children = vec![false; tree.len()];
    (0..tree.len() as u32).filter_map(|node| tree.parent(node)).for_each(|above| has_children[above as usize] = true);
    (0..).zip(&has_children).filter(|(_, inner)| !**inner).map(|(leaf, _)| leaf).collect()
}

/// Of each value the nodes from its leaf to the root; `None` when one of them is no leaf.
fn climbed<'v>(
    tree: &Taxonomy,
    leaves: &[u32],
    kind: Option<AttributeType>,
    values: impl Iterator<Item = Option<&'v [u8]>>,
) -> Option<Vec<Vec<u32>>> {
    let of_label = LeafIndex::new(tree, kind, leaves);
    let up = |leaf: u32| std::iter::successors(Some(leaf), |node| tree.parent(*node)).collect::<Vec<u32>>();
    values.map(|value| of_label.find(value).map(up)).collect()
}

/// The tree whose nodes stand in the cells of a column.
pub(in crate::verifier) struct CellTree {
    labels: BTreeMap<Option<Vec<u8>>, u32>,
    /// Per code, the nodes from its leaf to the root.
    way: Vec<Vec<u32>>,
}

impl CellTree {
    /// The tree above `values`, in the order of their codes; `None` when one of them is no leaf.
    pub(in crate::verifier) fn new<'v>(
        tree: &Taxonomy,
        kind: Option<AttributeType>,
        values: impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Option<Self> {
        let labels = (0..tree.len() as u32).map(|node| (tree.label(node).map(|label| label.as_bytes().to_vec()), node));
        Some(Self { labels: labels.collect(), way: climbed(tree, &leaves_of(tree), kind, values)? })
    }

    /// The node of a label; of an empty cell, the leaf that is the missing value.
    pub(in crate::verifier) fn find(&self, label: Option<&[u8]>) -> Option<u32> {
        self.labels.get(&label.map(<[u8]>::to_vec)).copied()
    }

    /// Whether a value is below a node, or it.
    pub(in crate::verifier) fn covers(&self, node: u32, code: u32) -> bool {
        self.way.get(code as usize).is_some_and(|way| way.contains(&node))
    }

    /// Whether no node farther down is above all of these values.
    pub(in crate::verifier) fn is_lowest(&self, node: u32, codes: &[u32]) -> bool {
        let shared = |at: &u32| codes.iter().all(|&code| self.covers(*at, code));
        let first = codes.first().and_then(|&code| self.way.get(code as usize));
        first.is_some_and(|way| way.iter().find(|at| shared(at)) == Some(&node))
    }

    /// How many rows have a value that no cell is left for, however rows are dealt to cells: `held` says how many rows show a node,
    /// `counts` how many have a value. Cells are filled from the leaves up: those farther down serve fewer values.
    pub(in crate::verifier) fn unplaced(&self, held: impl Iterator<Item = (u32, u64)>, counts: &[u64]) -> u64 {
        // per node, by how far it is from the root: the one above, and rows and cells that wait there
        let mut waiting: BTreeMap<(usize, u32), (Option<u32>, u64, u64)> = BTreeMap::new();
        let mut depth: BTreeMap<u32, usize> = BTreeMap::new();
        for (way, &rows) in self.way.iter().zip(counts) {
            for (at, &node) in way.iter().enumerate() {
                depth.insert(node, way.len() - at);
                let place = waiting.entry((way.len() - at, node)).or_insert((way.get(at + 1).copied(), 0, 0));
                place.1 += if at == 0 { rows } else { 0 };
            }
        }
        // a node above no value has cells that no row can have
        for (node, cells) in held {
            if let Some(place) = depth.get(&node).and_then(|depth| waiting.get_mut(&(*depth, node))) {
                place.2 += cells;
            }
        }
        let mut short = 0;
        while let Some(((depth, _), (above, rows, cells))) = waiting.pop_last() {
            let left = rows.saturating_sub(cells);
            match above.and_then(|above| waiting.get_mut(&(depth - 1, above))) {
                Some(place) => place.1 += left,
                None => short += left,
            }
        }
        short
    }
}

/// Leaves by what they are.
struct LeafIndex<'t> {
    by_text: BTreeMap<Option<&'t [u8]>, u32>,
    /// Those that are decimals, in the order of numbers, where the values are such.
    numbers: Option<Vec<(&'t [u8], u32)>>,
}

const DECIMAL: AttributeType = AttributeType::Decimal;

impl<'t> LeafIndex<'t> {
    fn new(tree: &'t Taxonomy, kind: Option<AttributeType>, leaves: &[u32]) -> Self {
        let text = |leaf: &u32| tree.label(*leaf).map(str::as_bytes);
        let by_text = leaves.iter().map(|leaf| (text(leaf), *leaf)).collect();
        let numbers = (kind == Some(DECIMAL)).then(|| {
            let decimals = leaves.iter().filter_map(|leaf| Some((text(leaf)?, *leaf)));
            let mut decimals: Vec<(&[u8], u32)> = decimals.filter(|(text, _)| DECIMAL.admits(text)).collect();
            decimals.sort_by(|a, b| DECIMAL.compare_by_value(a.0, b.0));
            decimals
        });
        Self { by_text, numbers }
    }

    /// The one leaf that a value is. One number may be spelled in several ways.
    fn find(&self, value: Option<&[u8]>) -> Option<u32> {
        let (Some(numbers), Some(value)) = (&self.numbers, value) else { return self.by_text.get(&value).copied() };
        let first = numbers.partition_point(|(text, _)| DECIMAL.compare_by_value(text, value) == Ordering::Less);
        let mut same = numbers[first..].iter().take_while(|(text, _)| DECIMAL.compare_by_value(text, value).is_eq());
        let found = same.next().map(|(_, leaf)| *leaf);
        found.filter(|_| same.next().is_none())
    }
}
