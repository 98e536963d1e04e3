//! Join tree of published tables: the tables that add information, and whether they form a tree.
//!
//! On a tree, the model is the product over tables divided by the product over shared attributes.
//!
//! # Citations
//! - [Beeri et al. 1983], acyclic schemes and join trees.
//! - [Lauritzen 1996], decomposable models.

use crate::microdata::{Attr, AttrSet};

/// The attributes of each part of a published table. One part is a plain table. Several parts are linked by buckets, so that the
/// rows of a bucket may belong together in any way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TableView {
    parts: Vec<AttrSet>,
}

impl TableView {
    /// A plain table of these attributes.
    #[must_use]
    pub fn plain(attributes: AttrSet) -> Self {
        Self { parts: vec![attributes] }
    }

    /// A table of `attributes` with `sensitive` in a part of its own.
    #[must_use]
    pub fn bucketized(attributes: AttrSet, sensitive: Attr) -> Self {
        Self::tied([attributes.without(sensitive), AttrSet::one(sensitive)])
    }

    /// A table of parts that buckets link.
    #[must_use]
    pub fn tied(parts: impl IntoIterator<Item = AttrSet>) -> Self {
        Self { parts: parts.into_iter().collect() }
    }

    /// All attributes of the table.
    #[must_use]
    pub fn attributes(&self) -> AttrSet {
        self.parts.iter().fold(AttrSet::EMPTY, |all, part| all.union(*part))
    }

    /// Attributes of each part.
    #[must_use]
    pub fn parts(&self) -> &[AttrSet] {
        &self.parts
    }

    /// Whether it shows the joint frequencies of `shared`: one part must hold all of them.
    #[must_use]
    pub fn shows(&self, shared: AttrSet) -> bool {
        self.parts.iter().any(|part| shared.is_subset(*part))
    }

    /// Whether it is a plain table. A part without attributes hides nothing.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.shows(self.attributes())
    }
}

/// Indexes of the maximal views: of equal ones a plain one stays, else the first.
#[must_use]
pub fn maximal(views: &[TableView]) -> Vec<usize> {
    let goes_before = |other: usize, this: usize| match (views[other].is_plain(), views[this].is_plain()) {
        (true, false) => true,
        (false, true) => false,
        _ => other < this,
    };
    let covered = |this: usize| {
        let attributes = views[this].attributes();
        attributes.is_empty()
            || (0..views.len()).filter(|&other| other != this).any(|other| {
                let all = views[other].attributes();
                attributes.is_subset(all) && (attributes != all || goes_before(other, this))
            })
    };
    (0..views.len()).filter(|&this| !covered(this)).collect()
}

/// The first two views of which the one links by bucket what the other shows jointly. The first then lacks the joint frequencies
/// of shared attributes.
#[must_use]
pub fn mixed_separator(views: &[TableView]) -> Option<(usize, usize)> {
    mixed_among(views, |_| true)
}

fn mixed_among(views: &[TableView], counts: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
    let pairs = (0..views.len()).flat_map(|tied| (0..views.len()).map(move |other| (tied, other)));
    let mut pairs = pairs.filter(|&(tied, other)| tied != other && counts(tied) && counts(other));
    pairs.find(|&(tied, other)| !views[tied].shows(views[tied].attributes().intersection(views[other].attributes())))
}

/// Two neighbours in a join tree, by index, and their shared attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeEdge {
    /// The neighbour nearer to the root.
    pub parent: usize,
    /// The other neighbour.
    pub child: usize,
    /// Shared attributes; empty if the two are independent.
    pub separator: AttrSet,
}

/// A tree over the maximal views whose neighbours share as many attributes as possible.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinTree {
    /// Indexes of the maximal views; the first is the root.
    pub members: Vec<usize>,
    /// The edges, each after the one that leads to its parent.
    pub edges: Vec<TreeEdge>,
    /// Whether the views of every attribute are connected: the views are alpha-acyclic.
    pub acyclic: bool,
    /// Two views of which one links by bucket what the other shows jointly.
    pub mixed: Option<(usize, usize)>,
}

impl JoinTree {
    /// The join tree of these views. The first view wins ties.
    #[must_use]
    pub fn from_views(views: &[TableView]) -> Self {
        let members = maximal(views);
        let sets: Vec<AttrSet> = members.iter().map(|&view| views[view].attributes()).collect();
        let mut joined: Vec<usize> = (0..members.len()).take(1).collect();
        let mut edges = Vec::with_capacity(members.len().saturating_sub(1));
        let mut weight = 0;
        while let Some((parent, child)) = heaviest(&sets, &joined) {
            let separator = sets[parent].intersection(sets[child]);
            weight += separator.len();
            edges.push(TreeEdge { parent: members[parent], child: members[child], separator });
            joined.push(child);
        }
        // an attribute in k views is in at most k - 1 separators of a tree, and in exactly k - 1 if they are connected
        let union = sets.iter().fold(AttrSet::EMPTY, |all, set| all.union(*set));
        let acyclic = weight + union.len() == sets.iter().map(|set| set.len()).sum::<usize>();
        // no bucket hides what a plain view shows
        let stands_in_plain = |view: usize| {
            let attributes = views[view].attributes();
            members.iter().any(|&m| m != view && views[m].is_plain() && attributes.is_subset(views[m].attributes()))
        };
        let mixed = mixed_among(views, |view| members.contains(&view) || !stands_in_plain(view));
        Self { members, edges, acyclic, mixed }
    }

    /// Whether the model is the product over the members divided by the product over the separators.
    #[must_use]
    pub const fn is_decomposable(&self) -> bool {
        self.acyclic && self.mixed.is_none()
    }

    /// Neighbours of a member away from the root, with the shared attributes.
    pub fn children(&self, parent: usize) -> impl Iterator<Item = TreeEdge> + '_ {
        self.edges.iter().copied().filter(move |edge| edge.parent == parent)
    }
}

/// The pair of a joined view and another that share most; the first of equal ones.
fn heaviest(sets: &[AttrSet], joined: &[usize]) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize, usize)> = None;
    for parent in (0..sets.len()).filter(|set| joined.contains(set)) {
        for child in (0..sets.len()).filter(|set| !joined.contains(set)) {
            let weight = sets[parent].intersection(sets[child]).len();
            if best.is_none_or(|(heaviest, ..)| weight > heaviest) {
                best = Some((weight, parent, child));
            }
        }
    }
    best.map(|(_, parent, child)| (parent, child))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn set(attrs: &[u8]) -> AttrSet {
        attrs.iter().map(|&attr| Attr(attr)).collect()
    }

    fn plain(attrs: &[u8]) -> TableView {
        TableView::plain(set(attrs))
    }

    /// A table of the vectors; attributes are letters.
    fn view(table: &Value) -> TableView {
        let attr = |name: &Value| Attr(name.as_str().unwrap().as_bytes()[0] - b'A');
        let attributes: AttrSet = table["attrs"].as_array().unwrap().iter().map(attr).collect();
        if table["sa"].is_null() {
            TableView::plain(attributes)
        } else {
            TableView::bucketized(attributes, attr(&table["sa"]))
        }
    }

    fn vectors() -> Value {
        serde_json::from_str(include_str!("../../tests/vectors/gnf.json")).unwrap()
    }

    fn views(tables: &Value) -> Vec<TableView> {
        tables.as_array().unwrap().iter().map(view).collect()
    }

    #[test]
    fn the_vectors_are_acyclic_and_mixed_as_they_say() {
        let vectors = vectors();
        let cases = vectors["gnf"].as_array().unwrap();
        assert_eq!(cases.len(), 100);
        let (mut cyclic, mut mixed) = (0, 0);
        for (at, case) in cases.iter().enumerate() {
            let views = views(&case["tables"]);
            assert_eq!(JoinTree::from_views(&views).acyclic, case["acyclic"], "acyclic, case {at}");
            assert_eq!(mixed_separator(&views).is_some(), case["mixed"], "mixed, case {at}");
            cyclic += u32::from(case["acyclic"] == false);
            mixed += u32::from(case["mixed"] == true);
        }
        assert!(cyclic > 5 && mixed > 5, "{cyclic} {mixed}");
    }

    #[test]
    fn schemas_of_the_algorithms_are_decomposable() {
        for (at, case) in vectors()["schema"].as_array().unwrap().iter().enumerate() {
            for algorithm in ["uad", "uad_saturate", "gd_final"] {
                let views = views(&case[algorithm]);
                assert!(JoinTree::from_views(&views).is_decomposable(), "{algorithm}, case {at}: {views:?}");
            }
        }
    }

    #[test]
    fn smaller_tables_say_nothing_more() {
        let tied = TableView::bucketized(set(&[0, 1]), Attr(1));
        assert_eq!(maximal(&[plain(&[0]), plain(&[0, 1]), plain(&[1, 0]), plain(&[]), plain(&[2])]), [1, 4]);
        assert_eq!(maximal(&[tied.clone(), plain(&[0, 1])]), [1]);
        assert_eq!(maximal(&[plain(&[0, 1]), tied.clone()]), [0]);
        assert_eq!(maximal(&[tied.clone(), TableView::bucketized(set(&[0, 1]), Attr(0))]), [0]);
        // a plain copy shows what the buckets hide, and no less
        assert!(JoinTree::from_views(&[tied.clone(), plain(&[0, 1, 2])]).is_decomposable());
        assert!(
            !JoinTree::from_views(&[TableView::bucketized(set(&[0, 1, 2]), Attr(1)), plain(&[0, 1])]).is_decomposable()
        );
        assert!(!JoinTree::from_views(&[tied, TableView::bucketized(set(&[0, 1, 2]), Attr(1))]).is_decomposable());
    }

    #[test]
    fn a_circle_and_a_triangle_are_not_trees() {
        let circle = [plain(&[0, 1]), plain(&[1, 2]), plain(&[2, 3]), plain(&[3, 0])];
        assert!(!JoinTree::from_views(&circle).acyclic);
        // chordal, but the triangle stands in no table
        let triangle = [plain(&[0, 1]), plain(&[1, 2]), TableView::bucketized(set(&[0, 2, 3]), Attr(3))];
        assert!(!JoinTree::from_views(&triangle).acyclic);
        let covered = [plain(&[0, 1]), plain(&[1, 2]), plain(&[0, 2]), plain(&[0, 1, 2, 3])];
        let tree = JoinTree::from_views(&covered);
        assert!(tree.is_decomposable() && tree.edges.is_empty() && tree.members == [3]);
        assert!(JoinTree::from_views(&[]).is_decomposable());
    }

    #[test]
    fn unrelated_neighbours_share_an_empty_separator() {
        let tree = JoinTree::from_views(&[plain(&[0, 1]), plain(&[4]), plain(&[1, 2]), plain(&[2, 3])]);
        let edge = |parent, child, separator: &[u8]| TreeEdge { parent, child, separator: set(separator) };
        assert_eq!(tree.edges, [edge(0, 2, &[1]), edge(2, 3, &[2]), edge(0, 1, &[])]);
        assert_eq!(tree.children(0).map(|edge| edge.child).collect::<Vec<_>>(), [2, 1]);
        assert!(tree.is_decomposable());
    }

    #[test]
    fn several_parts_may_share_with_others_what_one_of_them_holds() {
        let tied = TableView::tied([set(&[0, 1]), set(&[2, 3]), set(&[4])]);
        assert!(JoinTree::from_views(&[tied.clone(), plain(&[2, 3, 5]), plain(&[1, 6])]).is_decomposable());
        assert_eq!(JoinTree::from_views(&[tied.clone(), plain(&[2, 4])]).mixed, Some((0, 1)));
        assert_eq!(JoinTree::from_views(&[plain(&[1, 3, 5]), tied]).mixed, Some((1, 0)));
    }

    /// Whether a hypergraph can be emptied by removing attributes of one set and sets within others (Graham, Yu, Ozsoyoglu).
    fn can_be_emptied(sets: &[AttrSet]) -> bool {
        let mut sets = sets.to_vec();
        loop {
            let before = sets.clone();
            for attr in (0..8).map(Attr) {
                if sets.iter().filter(|set| set.contains(attr)).count() == 1 {
                    sets = sets.iter().map(|set| set.without(attr)).collect();
                }
            }
            for at in (0..sets.len()).rev() {
                if (0..sets.len()).any(|other| other != at && sets[at].is_subset(sets[other])) {
                    sets.remove(at);
                }
            }
            if sets == before {
                return sets.iter().all(|set| set.is_empty());
            }
        }
    }

    proptest! {
        #[test]
        fn the_weight_of_the_tree_finds_acyclic_schemas(tables in prop::collection::vec(prop::collection::vec(0u8..7, 1..4), 0..6)) {
            let sets: Vec<AttrSet> = tables.iter().map(|table| set(table)).collect();
            let views: Vec<TableView> = sets.iter().map(|&set| TableView::plain(set)).collect();
            let tree = JoinTree::from_views(&views);
            prop_assert_eq!(tree.acyclic, can_be_emptied(&sets));
            // a parent comes before its children
            let mut seen: Vec<usize> = tree.members.iter().copied().take(1).collect();
            for edge in &tree.edges {
                prop_assert!(seen.contains(&edge.parent) && !seen.contains(&edge.child));
                seen.push(edge.child);
            }
            prop_assert_eq!(seen.len(), tree.members.len());
        }
    }
}
