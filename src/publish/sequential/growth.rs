//! The way down of one attribute: nodes that may stand in cells, and the cut of those that do.

use super::gain::Cells;
use super::span::{Hierarchy, Scale, Span};

/// A node of an attribute that is being specialized.
pub(super) struct Node {
    pub(super) span: Span,
    /// Its number in the taxonomy.
    pub(super) tree: Option<u32>,
    /// The nodes below it, once somebody asked, their spans rising.
    children: Option<Vec<u32>>,
    /// How many steps below the root it is.
    depth: usize,
}

/// An attribute that is being specialized.
pub(super) struct Growth<'a> {
    /// Its column in the new release.
    pub(super) column: usize,
    /// The place of each code.
    pub(super) places: Vec<u32>,
    pub(super) nodes: Vec<Node>,
    /// The nodes that stand in cells.
    pub(super) cut: Vec<u32>,
    pub(super) cells: Cells,
    way: Way<'a>,
}

/// What is below what.
enum Way<'a> {
    /// A taxonomy, and the depth of each code's leaf.
    Tree(&'a dyn Hierarchy, Vec<usize>),
    /// Single values, below what may be any of them.
    Values,
    /// The halves of intervals.
    Halves,
}

impl<'a> Growth<'a> {
    /// An attribute that is generalized as far as can be; `None` where it cannot be generalized at all.
    pub(super) fn new(column: usize, scale: &Scale<'a>, places: Vec<u32>, cells: Cells) -> Option<Self> {
        let (span, tree, way) = match scale {
            Scale::Raw(_) => return None,
            Scale::Tree(tree) => {
                let root = tree.root();
                let depths = (0..places.len() as u32).map(|code| tree.depth(tree.leaf(code))).collect();
                (tree.span(root), Some(root), Way::Tree(*tree, depths))
            }
            Scale::Values(_, anything) => (*anything, None, Way::Values),
            Scale::Numbers(_) => {
                let (first, last) = cells.ends();
                (Span { first, last }, None, Way::Halves)
            }
        };
        let root = Node { span, tree, children: None, depth: 0 };
        Some(Self { column, places, nodes: vec![root], cut: vec![0], cells, way })
    }

    /// The nodes right below a node: of a taxonomy all, of what may be any value those that occur, of an interval its halves.
    pub(super) fn children(&mut self, node: u32) -> Vec<u32> {
        let Node { span, tree: of, ref children, depth } = self.nodes[node as usize];
        if let Some(children) = children {
            return children.clone();
        }
        let below: Vec<(Span, Option<u32>)> = match (&self.way, of) {
            (Way::Tree(tree, _), Some(of)) => {
                tree.children(of).into_iter().map(|child| (tree.span(child), Some(child))).collect()
            }
            (Way::Tree(..), None) => Vec::new(),
            (Way::Values, _) if depth > 0 => Vec::new(),
            (Way::Values, _) => self.cells.places().map(|place| (Span::point(place), None)).collect(),
            (Way::Halves, _) => self.cells.halves(span).into_iter().flatten().map(|half| (half, None)).collect(),
        };
        let first = self.nodes.len() as u32;
        let children: Vec<u32> = (first..).take(below.len()).collect();
        let nodes = below.into_iter().map(|(span, tree)| Node { span, tree, children: None, depth: depth + 1 });
        self.nodes.extend(nodes);
        self.nodes[node as usize].children = Some(children.clone());
        children
    }

    pub(super) fn span(&self, node: u32) -> Span {
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
        let Node { span, depth, .. } = self.nodes[node as usize];
        match &self.way {
            Way::Tree(_, depths) => depths[code as usize].saturating_sub(depth),
            Way::Values => usize::from(depth == 0),
            Way::Halves => usize::from(!span.is_point()),
        }
    }
}
