//! Values as leaves of a taxonomy, by this audit's own search: the way of each from its leaf up to the root.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::thresholds::Bound;
use crate::microdata::{AttributeType, Taxonomy};

/// What is stated of the values of a column.
#[derive(Clone, Default)]
pub(super) struct Stated {
    /// The codes of values that an insider can rule out, rising.
    pub(super) ruled_out: Vec<u32>,
    /// Where values stand in a tree; none where no tree is stated, or where a value is no leaf of it, or several.
    pub(super) ways: Option<Arc<Ways>>,
    /// What each value may take of a bucket, under each map of thresholds that is stated.
    pub(super) bounds: Vec<Arc<Bound>>,
}

/// The ways of all values of a column.
pub(super) struct Ways {
    /// Per code, the nodes from its leaf to the root.
    way: Vec<Vec<u32>>,
    /// Per node of a way, the one above, and how many steps lead to the farthest leaf below.
    nodes: Vec<(Option<u32>, u64)>,
}

impl Ways {
    /// The ways of `values`, in the order of their codes; `None` when one of them is no leaf.
    pub(super) fn of<'v>(
        tree: &Taxonomy,
        kind: Option<AttributeType>,
        values: impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Option<Self> {
        let mut nodes: Vec<(Option<u32>, u64)> = (0..tree.len() as u32).map(|node| (tree.parent(node), 0)).collect();
        let mut has_children = vec![false; nodes.len()];
        nodes.iter().filter_map(|(above, _)| *above).for_each(|above| has_children[above as usize] = true);
        let leaves: Vec<u32> = (0..).zip(&has_children).filter(|(_, inner)| !**inner).map(|(leaf, _)| leaf).collect();
        for &leaf in &leaves {
            let (mut node, mut steps) = (leaf as usize, 0);
            while let Some(above) = nodes[node].0 {
                (node, steps) = (above as usize, steps + 1);
                nodes[node].1 = nodes[node].1.max(steps);
            }
        }
        let of_label = Leaves::of(tree, kind, &leaves);
        let up = |leaf: u32| std::iter::successors(Some(leaf), |node| tree.parent(*node)).collect::<Vec<u32>>();
        let way: Option<Vec<Vec<u32>>> = values.map(|value| of_label.find(value).map(up)).collect();
        Some(Self::within(way?, &nodes))
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
    pub(super) fn distance(&self, gaps: impl Iterator<Item = (u32, i128)>) -> Option<(u128, u128)> {
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

/// Leaves by what they are.
struct Leaves<'t> {
    by_text: BTreeMap<Option<&'t [u8]>, u32>,
    /// Those that are decimals, in the order of numbers, where the values are such.
    numbers: Option<Vec<(&'t [u8], u32)>>,
}

const DECIMAL: AttributeType = AttributeType::Decimal;

impl<'t> Leaves<'t> {
    fn of(tree: &'t Taxonomy, kind: Option<AttributeType>, leaves: &[u32]) -> Self {
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
