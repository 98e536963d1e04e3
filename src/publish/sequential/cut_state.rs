//! The way down of one attribute: nodes that may stand in cells, and the cut of those that do.

use super::gain::ClassHistogram;
use super::span::{ColumnScale, Hierarchy, NodeRange};

/// A node of an attribute that is being specialized.
pub(super) struct CutNode {
    pub(super) span: NodeRange,
    /// Its number in the taxonomy.
    pub(super) tree: Option<u32>,
    /// The nodes below it, once somebody asked, their spans rising.
    children: Option<Vec<u32>>,
    /// How many steps below the root it is.
    depth: usize,
}

/// An attribute that is being specialized.
pub(super) struct CutState<'a> {
    /// Its column in the new release.
    pub(super) column: usize,
    /// The place of each code.
    pub(super) places: Vec<u32>,
    pub(super) nodes: Vec<CutNode>,
    /// The nodes that stand in cells.
    pub(super) cut: Vec<u32>,
    pub(super) cells: ClassHistogram,
    way: ChildRelation<'a>,
}

/// What is below what.
enum ChildRelation<'a> {
    /// A taxonomy, and the depth of each code's leaf.
    Tree(&'a dyn Hierarchy, Vec<usize>),
    /// Single values, below what may be any of them.
    Values,
    /// The halves of intervals.
    Halves,
}

impl<'a> CutState<'a> {
    /// An attribute that is generalized as far as can be; `None` where it cannot be generalized at all.
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

    /// The nodes right below a node: of a taxonomy all, of what may be any value those that occur, of an interval its halves.
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

    /// Which of some children, their spans rising, is above a code.
    pub(super) fn child_of(&self, children: &[u32], code: u32) -> usize {
        let place = self.places[code as usize];
        children.partition_point(|&child| self.span(child).first <= place).saturating_sub(1)
    }

    /// Puts the children of a node in its place.
    pub(super) fn specialize(&mut self, node: u32) {
        let children = self.children(node);
        self.cut.retain(|&other| other != node);
        self.cut.extend(children);
    }

    /// How many steps of generalization a code is published above itself when `node` stands for it. An interval of several
    /// numbers is one step, and so is what may be any value.
    pub(super) fn steps(&self, node: u32, code: u32) -> usize {
        let CutNode { span, depth, .. } = self.nodes[node as usize];
        match &self.way {
            ChildRelation::Tree(_, depths) => depths[code as usize].saturating_sub(depth),
            ChildRelation::Values => usize::from(depth == 0),
            ChildRelation::Halves => usize::from(!span.is_point()),
        }
    }
}
