//! Labels of releases as ranges and sets of leaves.

use std::cmp::Ordering;
use std::slice;
use std::sync::Arc;

use crate::microdata::{BoundTaxonomy, Taxonomy};

/// A published label as the leaves it may stand for, both ends included. Leaves are numbered equally in all releases.
///
/// A taxonomy node covers its own number, depth first, and those of its descendants. Two nodes are on one path to the root
/// exactly if their ranges intersect. An interval of numbers covers the ranks of its values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeRange {
    /// The first leaf.
    pub first: u32,
    /// The last leaf.
    pub last: u32,
}

impl NodeRange {
    /// The range of one leaf.
    #[must_use]
    pub const fn point(place: u32) -> Self {
        Self { first: place, last: place }
    }

    /// Whether one value may be behind both labels.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Whether `other` covers all leaves.
    #[must_use]
    pub const fn within(self, other: Self) -> bool {
        other.first <= self.first && self.last <= other.last
    }

    /// Whether the range is a single leaf.
    #[must_use]
    pub const fn is_point(self) -> bool {
        self.first == self.last
    }
}

/// A published label as all leaves it may stand for: one range, or the ranges of a set of values.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NodeSet {
    /// One range of leaves.
    Range(NodeRange),
    /// At least two ranges, rising, with gaps between them.
    Several(Arc<[NodeRange]>),
}

impl From<NodeRange> for NodeSet {
    fn from(span: NodeRange) -> Self {
        Self::Range(span)
    }
}

impl NodeSet {
    /// The set of single leaves in any order; `None` without leaves.
    #[must_use]
    pub fn from_leaves(mut places: Vec<u32>) -> Option<Self> {
        places.sort_unstable();
        places.dedup();
        let runs = places.chunk_by(|a, b| a + 1 == *b);
        let spans: Vec<NodeRange> = runs.map(|run| NodeRange { first: run[0], last: run[run.len() - 1] }).collect();
        match &spans[..] {
            [] => None,
            [only] => Some(Self::Range(*only)),
            _ => Some(Self::Several(spans.into())),
        }
    }

    /// The ranges, rising.
    #[must_use]
    pub fn spans(&self) -> &[NodeRange] {
        match self {
            Self::Range(span) => slice::from_ref(span),
            Self::Several(spans) => spans,
        }
    }

    /// The first leaf.
    #[must_use]
    pub fn first(&self) -> u32 {
        self.spans().first().map_or(0, |span| span.first)
    }

    /// Whether one value may be behind both labels.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        let (mut own, mut others) = (self.spans().iter().peekable(), other.spans().iter().peekable());
        while let (Some(a), Some(b)) = (own.peek(), others.peek()) {
            if a.meets(**b) {
                return true;
            }
            match a.last.cmp(&b.first) {
                Ordering::Less => own.next(),
                Ordering::Equal | Ordering::Greater => others.next(),
            };
        }
        false
    }

    /// Whether `span` covers all leaves.
    #[must_use]
    pub fn within(&self, span: NodeRange) -> bool {
        self.spans().iter().all(|own| own.within(span))
    }
}

/// Index of labels for compatibility queries that avoid pairwise comparisons.
pub(super) struct CompatibilityIndex<'a> {
    places: Vec<&'a NodeSet>,
    /// Labels of one leaf, rising, and the other labels.
    points: Vec<u32>,
    wide: Vec<u32>,
}

impl<'a> CompatibilityIndex<'a> {
    pub(super) fn from_labels(places: Vec<&'a NodeSet>) -> Self {
        let is_point = |at: &u32| matches!(places[*at as usize], NodeSet::Range(span) if span.is_point());
        let (mut points, wide): (Vec<u32>, Vec<u32>) = (0..places.len() as u32).partition(is_point);
        points.sort_unstable_by_key(|at| places[*at as usize].first());
        Self { points, wide, places }
    }

    /// Numbers of the labels that are compatible with one.
    pub(super) fn meeting(&self, label: &NodeSet) -> Vec<u32> {
        let first = |at: u32| self.places[at as usize].first();
        let within = |span: &NodeRange| {
            let begin = self.points.partition_point(|at| first(*at) < span.first);
            let end = self.points.partition_point(|at| first(*at) <= span.last);
            &self.points[begin..end]
        };
        let wide = self.wide.iter().filter(|at| self.places[**at as usize].meets(label));
        label.spans().iter().flat_map(within).chain(wide).copied().collect()
    }
}

/// A taxonomy over the values of a column, for top-down specialization.
pub trait Hierarchy: Sync {
    /// The root node.
    fn root(&self) -> u32;
    /// Children of a node, in order.
    fn children(&self, node: u32) -> Vec<u32>;
    /// Leaves of a node. Those of its children are disjoint, and rise.
    fn span(&self, node: u32) -> NodeRange;
    /// Number of steps from the root to a node.
    fn depth(&self, node: u32) -> usize;
    /// Leaf of a code of the column.
    fn leaf(&self, code: u32) -> u32;
}

impl Hierarchy for BoundTaxonomy {
    fn root(&self) -> u32 {
        0
    }

    fn children(&self, node: u32) -> Vec<u32> {
        self.tree().children(node).collect()
    }

    fn span(&self, node: u32) -> NodeRange {
        below(self.tree(), node)
    }

    fn depth(&self, node: u32) -> usize {
        self.tree().depth(node)
    }

    fn leaf(&self, code: u32) -> u32 {
        Self::leaf(self, code)
    }
}

/// Node range of a taxonomy node and its descendants, numbered depth first.
pub(super) fn below(tree: &Taxonomy, node: u32) -> NodeRange {
    let below = std::iter::successors(Some(node), |&node| tree.children(node).last());
    NodeRange { first: node, last: below.last().unwrap_or(node) }
}

/// Leaves of the values of a column of the new release, and how they are generalized.
#[derive(Clone)]
pub enum ColumnScale<'a> {
    /// Not generalized: the range of each code.
    Raw(Vec<NodeRange>),
    /// By a taxonomy.
    Tree(&'a dyn Hierarchy),
    /// Exact or suppressed: the leaf of each code, and the range of any value.
    Values(Vec<u32>, NodeRange),
    /// By intervals, halved by the data: the leaf of each code.
    Numbers(Vec<u32>),
}

impl ColumnScale<'_> {
    /// Ranges of `codes` codes, ungeneralized.
    pub(super) fn spans(&self, codes: usize) -> Vec<NodeRange> {
        match self {
            Self::Raw(spans) => spans.clone(),
            Self::Tree(tree) => (0..codes as u32).map(|code| tree.span(tree.leaf(code))).collect(),
            Self::Values(places, _) | Self::Numbers(places) => {
                places.iter().map(|&place| NodeRange::point(place)).collect()
            }
        }
    }
}
