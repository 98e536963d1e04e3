//! Rooted trees over values.

use std::ops::Range;

/// The most nodes of a taxonomy.
pub const MAX_NODES: usize = 1 << 16;

/// The most steps from a root to a leaf.
pub const MAX_DEPTH: usize = 32;

/// A rooted tree over values. Nodes are numbered depth first, the root being 0, so that what is below a node is a range of
/// numbers behind it, and of leaves. No two nodes have one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taxonomy {
    pub(super) nodes: Vec<TaxonomyNode>,
    /// The nodes without children, in order.
    pub(super) leaves: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TaxonomyNode {
    /// `None`: the missing value, as a leaf.
    pub(super) label: Option<Box<str>>,
    /// Its own for the root.
    pub(super) parent: u32,
    pub(super) depth: u8,
    pub(super) height: u8,
    /// The first node that is not below.
    pub(super) end: u32,
    /// How many leaves come before it.
    pub(super) first_leaf: u32,
}

impl Taxonomy {
    /// How many nodes there are, at least a root and a leaf.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Never: there is a root.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn node(&self, node: u32) -> &TaxonomyNode {
        &self.nodes[node as usize]
    }

    /// The label of a node; `None` where it is the missing value.
    #[must_use]
    pub fn label(&self, node: u32) -> Option<&str> {
        self.node(node).label.as_deref()
    }

    /// The node above; `None` of the root.
    #[must_use]
    pub fn parent(&self, node: u32) -> Option<u32> {
        (node != 0).then(|| self.node(node).parent)
    }

    /// How many steps lead from the root to a node.
    #[must_use]
    pub fn depth(&self, node: u32) -> usize {
        usize::from(self.node(node).depth)
    }

    /// How many steps lead from a node to the farthest leaf below it.
    #[must_use]
    pub fn height(&self, node: u32) -> usize {
        usize::from(self.node(node).height)
    }

    /// Whether nothing is below a node.
    #[must_use]
    pub fn is_leaf(&self, node: u32) -> bool {
        self.node(node).end == node + 1
    }

    /// The nodes without children, in order.
    #[must_use]
    pub fn leaves(&self) -> &[u32] {
        &self.leaves
    }

    /// The leaves below a node, by their rank among all leaves; of a leaf, itself.
    #[must_use]
    pub fn leaf_range(&self, node: u32) -> Range<u32> {
        let end = self.node(node).end as usize;
        let after = self.nodes.get(end).map_or(self.leaves.len() as u32, |next| next.first_leaf);
        self.node(node).first_leaf..after
    }

    /// Whether `node` is `above`, or below it: whether `above` covers it.
    #[must_use]
    pub fn covers(&self, above: u32, node: u32) -> bool {
        (above..self.node(above).end).contains(&node)
    }

    /// The children of a node, in order.
    pub fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let end = self.node(node).end;
        let first = Some(node + 1).filter(|first| *first < end);
        std::iter::successors(first, move |child| Some(self.node(*child).end).filter(|next| *next < end))
    }

    /// The lowest node that covers both.
    #[must_use]
    pub fn lowest_above(&self, a: u32, b: u32) -> u32 {
        let mut node = a;
        while !self.covers(node, b) {
            node = self.node(node).parent;
        }
        node
    }

    /// Whether `nodes` are a cut: exactly one of them stands on the way from the root to every leaf.
    #[must_use]
    pub fn is_cut(&self, nodes: &[u32]) -> bool {
        let mut ranges: Vec<Range<u32>> = nodes.iter().map(|node| self.leaf_range(*node)).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut covered = 0;
        ranges.into_iter().all(|range| std::mem::replace(&mut covered, range.end) == range.start)
            && covered as usize == self.leaves.len()
    }
}
