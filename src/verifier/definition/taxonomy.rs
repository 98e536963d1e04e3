//! Values as leaves of a taxonomy, with their paths to the root, by the verifier's own search.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::thresholds::ThresholdBounds;
use crate::microdata::{AttributeType, Taxonomy};

/// What the caller declares about the values of a column.
#[derive(Clone, Default)]
pub(in crate::verifier) struct DeclaredValues {
    /// The codes of excluded values, rising.
    pub(in crate::verifier) excluded: Vec<u32>,
    /// The paths of the values; `None` without a taxonomy, or where a value is not exactly one leaf.
    pub(in crate::verifier) paths: Option<Arc<TaxonomyPaths>>,
    /// The bounds of each map of declared thresholds.
    pub(in crate::verifier) bounds: Vec<Arc<ThresholdBounds>>,
}

/// The taxonomy paths of all values of a column.
pub(in crate::verifier) struct TaxonomyPaths {
    /// For each code, the nodes from its leaf to the root.
    path: Vec<Vec<u32>>,
    /// For each node of a path, its parent, and the number of steps to its farthest leaf.
    nodes: Vec<(Option<u32>, u64)>,
}

impl TaxonomyPaths {
    /// The paths of `values`, in the order of their codes; `None` when a value is no leaf.
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

    /// Keeps the nodes on a path alone, since each comparison visits all nodes.
    fn within(mut path: Vec<Vec<u32>>, nodes: &[(Option<u32>, u64)]) -> Self {
        let met: BTreeSet<u32> = path.iter().flatten().copied().collect();
        let number: BTreeMap<u32, u32> = met.iter().copied().zip(0..).collect();
        path.iter_mut().flatten().for_each(|node| *node = number[node]);
        let renumbered = |node: &u32| {
            let (above, height) = nodes[*node as usize];
            (above.map(|above| number[&above]), height)
        };
        Self { path, nodes: met.iter().map(renumbered).collect() }
    }

    /// The hierarchical earth mover's distance, as a fraction, from the excess of each value in the bucket.
    ///
    /// The distance of two leaves is the height of their lowest common ancestor divided by the height of the root. So
    /// mass that moves from a node to its parent costs half the difference of their heights.
    pub(in crate::verifier) fn distance(&self, gaps: impl Iterator<Item = (u32, i128)>) -> Option<(u128, u128)> {
        let mut up = vec![0_i128; self.nodes.len()];
        let mut root = None;
        for (code, gap) in gaps {
            let path = self.path.get(code as usize)?;
            path.iter().for_each(|&node| up[node as usize] += gap);
            root = path.last();
        }
        let mut work = 0;
        for ((above, height), gap) in self.nodes.iter().zip(&up) {
            let Some(above) = above else { continue };
            work += gap.unsigned_abs() * u128::from(self.nodes[*above as usize].1 - height);
        }
        Some((work, 2 * u128::from(self.nodes[*root? as usize].1)))
    }
}

/// The nodes without children.
fn leaves_of(tree: &Taxonomy) -> Vec<u32> {
    let mut has_children = vec![false; tree.len()];
    (0..tree.len() as u32).filter_map(|node| tree.parent(node)).for_each(|above| has_children[above as usize] = true);
    (0..).zip(&has_children).filter(|(_, inner)| !**inner).map(|(leaf, _)| leaf).collect()
}

/// For each value, the nodes from its leaf to the root; `None` when a value is no leaf.
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

/// The taxonomy whose nodes are the cells of a column.
pub(in crate::verifier) struct CellTree {
    labels: BTreeMap<Option<Vec<u8>>, u32>,
    /// For each code, the nodes from its leaf to the root.
    path: Vec<Vec<u32>>,
}

impl CellTree {
    /// The taxonomy over `values`, in the order of their codes; `None` when a value is no leaf.
    pub(in crate::verifier) fn new<'v>(
        tree: &Taxonomy,
        kind: Option<AttributeType>,
        values: impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Option<Self> {
        let labels = (0..tree.len() as u32).map(|node| (tree.label(node).map(|label| label.as_bytes().to_vec()), node));
        Some(Self { labels: labels.collect(), path: climbed(tree, &leaves_of(tree), kind, values)? })
    }

    /// The node of a label; for an empty cell, the leaf of the missing value.
    pub(in crate::verifier) fn find(&self, label: Option<&[u8]>) -> Option<u32> {
        self.labels.get(&label.map(<[u8]>::to_vec)).copied()
    }

    /// Whether a node is the leaf of a value or an ancestor of it.
    pub(in crate::verifier) fn covers(&self, node: u32, code: u32) -> bool {
        self.path.get(code as usize).is_some_and(|path| path.contains(&node))
    }

    /// Whether a node is the lowest common ancestor of all these values.
    pub(in crate::verifier) fn is_lowest(&self, node: u32, codes: &[u32]) -> bool {
        let shared = |at: &u32| codes.iter().all(|&code| self.covers(*at, code));
        let first = codes.first().and_then(|&code| self.path.get(code as usize));
        first.is_some_and(|path| path.iter().find(|at| shared(at)) == Some(&node))
    }

    /// The minimal number of rows without a cell, over all assignments of rows to cells.
    ///
    /// `cells` counts the cells of each node, `counts` the rows of each value. The assignment fills cells from the
    /// leaves up, since lower cells serve fewer values.
    pub(in crate::verifier) fn uncovered_rows(&self, cells: impl Iterator<Item = (u32, u64)>, counts: &[u64]) -> u64 {
        // by depth and node: the parent, and the rows and cells without a partner
        let mut waiting: BTreeMap<(usize, u32), (Option<u32>, u64, u64)> = BTreeMap::new();
        let mut depth: BTreeMap<u32, usize> = BTreeMap::new();
        for (path, &rows) in self.path.iter().zip(counts) {
            for (at, &node) in path.iter().enumerate() {
                depth.insert(node, path.len() - at);
                let place = waiting.entry((path.len() - at, node)).or_insert((path.get(at + 1).copied(), 0, 0));
                place.1 += if at == 0 { rows } else { 0 };
            }
        }
        // a node above no value has cells that no row can have
        for (node, count) in cells {
            if let Some(place) = depth.get(&node).and_then(|depth| waiting.get_mut(&(*depth, node))) {
                place.2 += count;
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

/// Leaves by their labels.
struct LeafIndex<'t> {
    by_text: BTreeMap<Option<&'t [u8]>, u32>,
    /// The leaves that are decimals, in the order of numbers, where the values are decimals.
    numbers: Option<Vec<(&'t [u8], u32)>>,
}

const DECIMAL: AttributeType = AttributeType::Decimal;

impl<'t> LeafIndex<'t> {
    fn new(tree: &'t Taxonomy, kind: Option<AttributeType>, leaves: &[u32]) -> Self {
        let text = |leaf: &u32| tree.label(*leaf).map(str::as_bytes);
        let by_text = leaves.iter().map(|leaf| (text(leaf), *leaf)).collect();
        let numbers = kind.is_some_and(AttributeType::has_spellings).then(|| {
            let decimals = leaves.iter().filter_map(|leaf| Some((text(leaf)?, *leaf)));
            let mut decimals: Vec<(&[u8], u32)> = decimals.filter(|(text, _)| DECIMAL.admits(text)).collect();
            decimals.sort_by(|a, b| DECIMAL.compare_by_value(a.0, b.0));
            decimals
        });
        Self { by_text, numbers }
    }

    /// The leaf of a value; `None` unless exactly one leaf matches.
    ///
    /// A number can have several spellings.
    fn find(&self, value: Option<&[u8]>) -> Option<u32> {
        let (Some(numbers), Some(value)) = (&self.numbers, value) else { return self.by_text.get(&value).copied() };
        let first = numbers.partition_point(|(text, _)| DECIMAL.compare_by_value(text, value) == Ordering::Less);
        let mut same = numbers[first..].iter().take_while(|(text, _)| DECIMAL.compare_by_value(text, value).is_eq());
        let found = same.next().map(|(_, leaf)| *leaf);
        found.filter(|_| same.next().is_none())
    }
}
