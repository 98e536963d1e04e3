use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::microdata::{Arena, AttributeType, Axis, Domain};

fn jobs() -> Taxonomy {
    let mut growing = TaxonomyBuilder::from_root("Any");
    let office = growing.add(0, Some("Office")).unwrap();
    let field = growing.add(0, Some("Field")).unwrap();
    // leaves of one node need not come one after the other
    growing.add(field, Some("Driver")).unwrap();
    growing.add(office, Some("Clerk")).unwrap();
    growing.add(field, None).unwrap();
    growing.add(office, Some("Banker")).unwrap();
    growing.add(0, Some("Retired")).unwrap();
    growing.finish().unwrap()
}

fn domain(kind: AttributeType, missing: bool, values: &[&str]) -> Domain {
    let mut arena = Arena::default();
    values.iter().for_each(|value| arena.push(value.as_bytes()));
    Domain::from_sorted(kind, missing, arena)
}

#[test]
fn nodes_are_numbered_depth_first() {
    let tree = jobs();
    let labels: Vec<_> = (0..tree.len() as u32).map(|node| tree.label(node).unwrap_or("-")).collect();
    assert_eq!(labels, ["Any", "Office", "Clerk", "Banker", "Field", "Driver", "-", "Retired"]);
    assert_eq!(tree.leaves(), [2, 3, 5, 6, 7]);
    assert_eq!((0..8).map(|node| tree.depth(node)).collect::<Vec<_>>(), [0, 1, 2, 2, 1, 2, 2, 1]);
    assert_eq!((0..8).map(|node| tree.height(node)).collect::<Vec<_>>(), [2, 1, 0, 0, 1, 0, 0, 0]);
    assert_eq!(tree.children(0).collect::<Vec<_>>(), [1, 4, 7]);
    assert_eq!(tree.children(4).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(tree.children(7).count(), 0);
    assert_eq!((tree.parent(0), tree.parent(6)), (None, Some(4)));
    assert_eq!((tree.leaf_range(0), tree.leaf_range(4), tree.leaf_range(7)), (0..5, 2..4, 4..5));
    assert_eq!((tree.lowest_above(2, 3), tree.lowest_above(6, 2), tree.lowest_above(5, 5)), (1, 0, 5));
    assert!(tree.covers(1, 3) && tree.covers(3, 3) && !tree.covers(1, 4) && !tree.covers(3, 1));
    assert!(tree.is_cut(&[0]) && tree.is_cut(&[7, 4, 1]) && tree.is_cut(&[1, 5, 6, 7]));
    assert!(!tree.is_cut(&[1, 4]) && !tree.is_cut(&[0, 7]) && !tree.is_cut(&[]) && !tree.is_cut(&[1, 2, 3, 4, 7]));
}

#[test]
fn no_two_nodes_have_one_label() {
    let mut growing = TaxonomyBuilder::from_root("Any");
    let office = growing.add(0, Some("Office")).unwrap();
    growing.add(office, Some("Clerk")).unwrap();
    assert_eq!(growing.add(0, Some("Clerk")), Err(TaxonomyError::Repeated));
    assert_eq!(growing.add(office, Some("Any")), Err(TaxonomyError::Repeated));
    assert_eq!(growing.add(0, Some("Clerk")), Err(TaxonomyError::Repeated));
    assert_eq!(growing.repeated(), 2);
    assert_eq!(growing.finish(), None);
    assert_eq!(TaxonomyBuilder::from_root("Any").finish(), None, "nothing is below");
}

#[test]
fn size_and_depth_are_bounded() {
    let mut growing = TaxonomyBuilder::from_root("r");
    let mut last = 0;
    for depth in 1..=MAX_DEPTH {
        last = growing.add(last, Some(&depth.to_string())).unwrap();
    }
    assert_eq!(growing.add(last, Some("deeper")), Err(TaxonomyError::TooDeep));
    let nodes = (0..MAX_NODES - 1 - MAX_DEPTH).map(|node| growing.add(0, Some(&format!("n{node}"))));
    assert!(nodes.into_iter().all(|added| added.is_ok()));
    assert_eq!(growing.add(0, Some("more")), Err(TaxonomyError::TooLarge));
    assert_eq!(growing.finish().unwrap().height(0), MAX_DEPTH);
}

#[test]
fn values_are_leaves_or_holes() {
    let tree = Arc::new(jobs());
    let bound = tree.bind(&domain(AttributeType::Text, true, &["Banker", "Clerk", "Retired"])).unwrap();
    assert_eq!((0..4).map(|code| bound.leaf(code)).collect::<Vec<_>>(), [6, 3, 2, 7]);
    assert_eq!(bound.places(), [3, 1, 0, 4]);
    assert_eq!(Axis::from_places(&bound.places()).ordinal(0), 2, "by the leaves that occur");
    assert_eq!((bound.lowest_above(&[1, 2]), bound.lowest_above(&[2]), bound.lowest_above(&[0, 1])), (1, 2, 0));
    // the driver does not occur
    let branches: Vec<_> = bound.branches().iter().map(|branch| (branch.parent, branch.height)).collect();
    assert_eq!(branches, [(0, 2), (0, 1), (1, 0), (1, 0), (0, 1), (4, 0), (0, 0)]);
    assert_eq!((0..4).map(|code| bound.branch(code)).collect::<Vec<_>>(), [5, 3, 2, 6]);
    let holes = tree.bind(&domain(AttributeType::Text, true, &["Banker", "Nurse", "Office"])).unwrap_err();
    assert_eq!(holes, UncoveredValues { missing: 2, twice: 0 }, "a node that is no leaf is no value");
    let mut numbers = TaxonomyBuilder::from_root("*");
    for number in ["1.5", "0", "-0.0", "7"] {
        numbers.add(0, Some(number)).unwrap();
    }
    let numbers = Arc::new(numbers.finish().unwrap());
    let decimals = domain(AttributeType::Decimal, false, &["1.50", "9"]);
    assert_eq!(numbers.bind(&decimals), Err(UncoveredValues { missing: 1, twice: 1 }));
    assert!(numbers.bind(&domain(AttributeType::Integer, false, &["0", "7"])).is_ok(), "-0.0 is no integer");
}

proptest! {
    /// Against definitions that walk up from nodes.
    #[test]
    fn ranges_are_what_is_below(parents in prop::collection::vec(any::<prop::sample::Index>(), 1..40)) {
        let mut growing = TaxonomyBuilder::from_root("0");
        for (node, parent) in (1usize..).zip(&parents) {
            let added = growing.add(parent.index(node), Some(&node.to_string()));
            prop_assume!(added.is_ok());
        }
        let tree = growing.finish().unwrap();
        let above = |node: u32| std::iter::successors(Some(node), |node| tree.parent(*node)).collect::<Vec<_>>();
        let nodes = 0..tree.len() as u32;
        for node in nodes.clone() {
            prop_assert_eq!(tree.depth(node), above(node).len() - 1);
            for other in nodes.clone() {
                prop_assert_eq!(tree.covers(node, other), above(other).contains(&node));
                let common = above(node).into_iter().find(|up| above(other).contains(up));
                prop_assert_eq!(Some(tree.lowest_above(node, other)), common);
            }
            let below: Vec<u32> = tree.leaves().iter().copied().filter(|leaf| above(*leaf).contains(&node)).collect();
            let range = tree.leaf_range(node);
            prop_assert_eq!(&tree.leaves()[range.start as usize..range.end as usize], &below[..]);
            let farthest = below.iter().map(|leaf| tree.depth(*leaf) - tree.depth(node)).max();
            prop_assert_eq!(Some(tree.height(node)), farthest);
        }
    }
}
