//! State of top-down specialization for one attribute: candidate nodes and the current cut [Fung et al. 2005].

use super::gain::ClassHistogram;
use super::span::{ColumnScale, Hierarchy, NodeRange};

/// A node of an attribute under specialization.
pub(super) struct CutNode {
    pub(super) span: NodeRange,
    /// Its number in the taxonomy.
    pub(super) tree: Option<u32>,
    /// Its children, spans rising, once they are computed.
    children: Option<Vec<u32>>,
    /// Number of steps below the root.
    depth: usize,
}

/// An attribute under specialization.
pub(super) struct CutState<'a> {
    /// Column of the attribute in the new release.
    pub(super) column: usize,
    /// Leaf of each code.
    pub(super) places: Vec<u32>,
    pub(super) nodes: Vec<CutNode>,
    /// The nodes of the current cut.
    pub(super) cut: Vec<u32>,
    pub(super) cells: ClassHistogram,
    way: ChildRelation<'a>,
}

/// Relation of a node to its children.
enum ChildRelation<'a> {
    /// A taxonomy, with the depth of each code's leaf.
    Tree(&'a dyn Hierarchy, Vec<usize>),
    /// Single values below a root that stands for any value.
    Values,
    /// Halves of intervals.
    Halves,
}

impl<'a> CutState<'a> {
    /// The attribute at its root; `None` if it cannot be generalized.
    pub(super) fn new(column: usize, scale: &ColumnScale<'a>, places: Vec<u32>, cells: ClassHistogram) -> Option<Self> {
        let (span, tree, way) = match scale {
            ColumnScale::Raw(_) => return None,
            ColumnScale::Tree(tree) => {
                let root = tree.root();
                let depths = (0..places.len() as u32).map(|code| tree.depth(tree.leaf(code))).collect();
                (tree.span(root), Some(root), ChildRelation::Tree(*tree, depths))
            }
            ColumnScale::Values(_, anything) => (*anything, None, ChildRelation::Values),
            ColumnScale::Numbers(_) => {
                let (first, last) = cells.ends();
                (NodeRange { first, last }, None, ChildRelation::Halves)
            }
        };
        let root = CutNode { span, tree, children: None, depth: 0 };
        Some(Self { column, places, nodes: vec![root], cut: vec![0], cells, way })
    }

    /// Children of a node: all of a taxonomy, the occurring values of a root, the halves of an interval.
    pub(super) fn children(&mut self, node: u32) -> Vec<u32> {
        let CutNode { span, tree: of, ref children, depth } = self.nodes[node as usize];
        if let Some(children) = children {
            return children.clone();
        }
        let below: Vec<(NodeRange, Option<u32>)> = match (&self.way, of) {
            (ChildRelation::Tree(tree, _), Some(of)) => {
                tree.children(of).into_iter().map(|child| (tree.span(child), Some(child))).collect()
            }
            (ChildRelation::Tree(..), None) => Vec::new(),
            (ChildRelation::Values, _) if depth > 0 => Vec::new(),
            (ChildRelation::Values, _) => self.cells.places().map(|place| (NodeRange::point(place), None)).collect(),
            (ChildRelation::Halves, _) => {
                self.cells.halves(span).into_iter().flatten().map(|half| (half, None)).collect()
            }
        };
        let first = self.nodes.len() as u32;
        let children: Vec<u32> = (first..).take(below.len()).collect();
        let nodes = below.into_iter().map(|(span, tree)| CutNode { span, tree, children: None, depth: depth + 1 });
        self.nodes.extend(nodes);
        self.nodes[node as usize].children = Some(children.clone());
        children
    }

    pub(super) fn span(&self, node: u32) -> NodeRange {
        self.nodes[node as usize].span
    }

    /// Index of the child that covers a leaf, child spans rising.
    pub(super) fn child_of(&self, children: &[u32], code: u32) -> usize {
        let place = self.places[code as usize];
        children.partition_point(|&child| self.span(child).first <= place).saturating_sub(1)
    }

    /// Replaces a node by its children.
    pub(super) fn specialize(&mut self, node: u32) {
        let children = self.children(node);
        self.cut.retain(|&other| other != node);
        self.cut.extend(children);
    }

    /// Steps of generalization of a code that `node` stands for. An interval of several numbers is one step, and so is a
    /// suppressed value.
    pub(super) fn steps(&self, node: u32, code: u32) -> usize {
        let CutNode { span, depth, .. } = self.nodes[node as usize];
        match &self.way {
            ChildRelation::Tree(_, depths) => depths[code as usize].saturating_sub(depth),
            ChildRelation::Values => usize::from(depth == 0),
            ChildRelation::Halves => usize::from(!span.is_point()),
        }
    }
}
