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
    tree: Option<&'a dyn Hierarchy>,
    /// The depth of each code's leaf.
    depths: Vec<usize>,
}

impl<'a> Growth<'a> {
    /// An attribute that is generalized as far as can be; `None` where it cannot be generalized at all.
    pub(super) fn new(column: usize, scale: &Scale<'a>, spans: &[Span], cells: Cells) -> Option<Self> {
        let places: Vec<u32> = spans.iter().map(|span| span.first).collect();
        let (root, tree, depths) = match scale {
            Scale::Raw(_) => return None,
            Scale::Tree(tree) => {
                let root = tree.root();
                let depths = (0..spans.len() as u32).map(|code| tree.depth(tree.leaf(code))).collect();
                let node = Node { span: tree.span(root), tree: Some(root), children: None, depth: 0 };
                (node, Some(*tree), depths)
            }
            Scale::Numbers(_) => {
                let (first, last) = cells.ends();
                (Node { span: Span { first, last }, tree: None, children: None, depth: 0 }, None, Vec::new())
            }
        };
        Some(Self { column, places, nodes: vec![root], cut: vec![0], cells, tree, depths })
    }

    /// The nodes right below a node: of a taxonomy all, of an interval its halves.
    pub(super) fn children(&mut self, node: u32) -> Vec<u32> {
        let Node { span, tree: of, ref children, depth } = self.nodes[node as usize];
        if let Some(children) = children {
            return children.clone();
        }
        let below: Vec<(Span, Option<u32>)> = match (self.tree, of) {
            (Some(tree), Some(of)) => {
                tree.children(of).into_iter().map(|child| (tree.span(child), Some(child))).collect()
            }
            _ => self.cells.halves(span).into_iter().flatten().map(|half| (half, None)).collect(),
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
    /// numbers is one step.
    pub(super) fn steps(&self, node: u32, code: u32) -> usize {
        let Node { span, depth, .. } = self.nodes[node as usize];
        match self.depths.get(code as usize) {
            Some(leaf) => leaf.saturating_sub(depth),
            None => usize::from(!span.is_point()),
        }
    }
}
