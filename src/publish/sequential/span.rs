//! What stands in the cells of releases, as ranges of places.

use crate::microdata::{BoundTaxonomy, Taxonomy};

/// A published label as the range of places that it may stand for, both ends included. All releases place an attribute alike:
/// a node of a taxonomy covers its own number, depth first, and those of the nodes below it, so that two nodes are on one way
/// to the root exactly if their ranges meet; an interval of numbers covers the ranks of its values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Span {
    /// The first place.
    pub first: u32,
    /// The last place.
    pub last: u32,
}

impl Span {
    /// What a suppressed cell, a set of values, or an unknown label may stand for.
    pub const ANYTHING: Self = Self { first: 0, last: u32::MAX };

    /// The range of one place.
    #[must_use]
    pub const fn point(place: u32) -> Self {
        Self { first: place, last: place }
    }

    /// Whether one value may be behind both.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Whether everything that it stands for is covered by `other`.
    #[must_use]
    pub const fn within(self, other: Self) -> bool {
        other.first <= self.first && self.last <= other.last
    }

    /// Whether it stands for a single place.
    #[must_use]
    pub const fn is_point(self) -> bool {
        self.first == self.last
    }
}

/// A taxonomy over the values of a column, from which a release climbs down.
pub trait Hierarchy: Sync {
    /// The node above all.
    fn root(&self) -> u32;
    /// The nodes right below a node, in order.
    fn children(&self, node: u32) -> Vec<u32>;
    /// The places of a node and of all below it. Those of its children are disjoint, and rise.
    fn span(&self, node: u32) -> Span;
    /// How many steps lead from the root to a node.
    fn depth(&self, node: u32) -> usize;
    /// The leaf of a code of the column.
    fn leaf(&self, code: u32) -> u32;
}

impl Hierarchy for BoundTaxonomy {
    fn root(&self) -> u32 {
        0
    }

    fn children(&self, node: u32) -> Vec<u32> {
        self.tree().children(node).collect()
    }

    fn span(&self, node: u32) -> Span {
        below(self.tree(), node)
    }

    fn depth(&self, node: u32) -> usize {
        self.tree().depth(node)
    }

    fn leaf(&self, code: u32) -> u32 {
        Self::leaf(self, code)
    }
}

/// The places of a node of a taxonomy and of all below it, which are numbered depth first.
pub(super) fn below(tree: &Taxonomy, node: u32) -> Span {
    let below = std::iter::successors(Some(node), |&node| tree.children(node).last());
    Span { first: node, last: below.last().unwrap_or(node) }
}

/// How the values of a column of the new release are placed, and how they can be generalized.
#[derive(Clone)]
pub enum Scale<'a> {
    /// They cannot be generalized: the label of each code.
    Raw(Vec<Span>),
    /// By a taxonomy.
    Tree(&'a dyn Hierarchy),
    /// By intervals, halved where the rows suggest it: the place of each code.
    Numbers(Vec<u32>),
}

impl Scale<'_> {
    /// The label of each of `codes` codes, ungeneralized.
    pub(super) fn spans(&self, codes: usize) -> Vec<Span> {
        match self {
            Self::Raw(spans) => spans.clone(),
            Self::Tree(tree) => (0..codes as u32).map(|code| tree.span(tree.leaf(code))).collect(),
            Self::Numbers(places) => places.iter().map(|&place| Span::point(place)).collect(),
        }
    }
}
