//! What stands in the cells of releases, as places.

use std::cmp::Ordering;
use std::slice;
use std::sync::Arc;

use crate::microdata::{BoundTaxonomy, Taxonomy};

/// A published label as the range of places that it may stand for, both ends included. All releases place an attribute alike:
/// a node of a taxonomy covers its own number, depth first, and those of the nodes below it, so that two nodes are on one way
/// to the root exactly if their ranges meet; an interval of numbers covers the ranks of its values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeRange {
    /// The first place.
    pub first: u32,
    /// The last place.
    pub last: u32,
}

impl NodeRange {
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

/// A published label as all that it may stand for: a range, or of a set of values the ranges that these make up.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NodeSet {
    /// One range.
    Range(NodeRange),
    /// At least two, rising, with places between them that it does not stand for.
    Several(Arc<[NodeRange]>),
}

impl From<NodeRange> for NodeSet {
    fn from(span: NodeRange) -> Self {
        Self::Range(span)
    }
}

impl NodeSet {
    /// Single places, in any order; `None` of no place.
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

    /// The first place.
    #[must_use]
    pub fn first(&self) -> u32 {
        self.spans().first().map_or(0, |span| span.first)
    }

    /// Whether one value may be behind both.
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

    /// Whether everything that it stands for is covered by `span`.
    #[must_use]
    pub fn within(&self, span: NodeRange) -> bool {
        self.spans().iter().all(|own| own.within(span))
    }
}

/// Labels, to be asked which of them meet another. Values may be many, and are not compared one by one.
pub(super) struct CompatibilityIndex<'a> {
    places: Vec<&'a NodeSet>,
    /// Those of one place, rising, and the others.
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

    /// The labels that meet one, by their numbers.
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

/// A taxonomy over the values of a column, from which a release climbs down.
pub trait Hierarchy: Sync {
    /// The node above all.
    fn root(&self) -> u32;
    /// The nodes right below a node, in order.
    fn children(&self, node: u32) -> Vec<u32>;
    /// The places of a node and of all below it. Those of its children are disjoint, and rise.
    fn span(&self, node: u32) -> NodeRange;
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

/// The places of a node of a taxonomy and of all below it, which are numbered depth first.
pub(super) fn below(tree: &Taxonomy, node: u32) -> NodeRange {
    let below = std::iter::successors(Some(node), |&node| tree.children(node).last());
    NodeRange { first: node, last: below.last().unwrap_or(node) }
}

/// How the values of a column of the new release are placed, and how they can be generalized.
#[derive(Clone)]
pub enum ColumnScale<'a> {
    /// They cannot be generalized: the label of each code.
    Raw(Vec<NodeRange>),
    /// By a taxonomy.
    Tree(&'a dyn Hierarchy),
    /// Not at all, or to what may be any value: the place of each code, and what the latter covers.
    Values(Vec<u32>, NodeRange),
    /// By intervals, halved where the rows suggest it: the place of each code.
    Numbers(Vec<u32>),
}

impl ColumnScale<'_> {
    /// The label of each of `codes` codes, ungeneralized.
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
