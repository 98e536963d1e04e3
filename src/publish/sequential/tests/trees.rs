//! Taxonomies of columns as paths from the root.

use std::sync::Arc;

use super::*;
use crate::microdata::taxonomy::TaxonomyBuilder;
use crate::microdata::{Arena, AttributeType, Domain};

#[test]
fn nodes_on_one_way_to_the_root_meet() {
    let mut growing = TaxonomyBuilder::from_root("Any");
    let office = growing.add(0, Some("Office")).unwrap();
    let field = growing.add(0, Some("Field")).unwrap();
    for (parent, leaf) in [(field, "Driver"), (office, "Clerk"), (field, "Engineer"), (office, "Banker")] {
        growing.add(parent, Some(leaf)).unwrap();
    }
    // a node with one child is another label than the child
    let retired = growing.add(0, Some("Retired")).unwrap();
    growing.add(retired, Some("Pensioner")).unwrap();
    let tree = Arc::new(growing.finish().unwrap());
    let mut arena = Arena::default();
    ["Banker", "Clerk", "Pensioner"].iter().for_each(|value| arena.push(value.as_bytes()));
    let bound = tree.bind(&Domain::from_sorted(AttributeType::Text, false, arena)).unwrap();
    let nodes = 0..tree.len() as u32;
    for (a, b) in nodes.clone().flat_map(|a| nodes.clone().map(move |b| (a, b))) {
        assert_eq!(bound.span(b).within(bound.span(a)), tree.covers(a, b), "{a} {b}");
        assert_eq!(bound.span(a).meets(bound.span(b)), tree.covers(a, b) || tree.covers(b, a), "{a} {b}");
    }
    let children: Vec<NodeRange> = Hierarchy::children(&bound, 0).into_iter().map(|child| bound.span(child)).collect();
    assert!(children.is_sorted() && children.len() == 3);
    let scale = ColumnScale::Tree(&bound);
    let labels: Vec<Option<&str>> = scale.spans(3).iter().map(|span| tree.label(span.first)).collect();
    assert_eq!(labels, [Some("Banker"), Some("Clerk"), Some("Pensioner")]);
    assert_eq!((0..3).map(|code| bound.depth(Hierarchy::leaf(&bound, code))).collect::<Vec<_>>(), [2, 2, 2]);
}
