//! Separators against brute force.

use proptest::prelude::*;

use super::super::*;
use super::data::{bits, dependency, known, set};
use crate::microdata::AttrSet;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// All subsets of eight attributes are tried.
    #[test]
    fn the_first_separator_has_the_least_weight(
        elements in prop::collection::vec(any::<u8>(), 0..6),
        protected in 1..=255_u8,
        known in any::<u8>(),
        distinct in prop::collection::vec(1..9_u64, 8),
    ) {
        // of few attributes, so that there are separators
        let elements: Vec<AttrSet> = elements.into_iter().map(|e| bits(e & e.rotate_left(3))).collect();
        let (protected, known) = (bits(protected & protected.rotate_left(1)), bits(known & known.rotate_left(1)));
        let weights = AttributeWeights::from_distinct(distinct);
        let found = separators(&SeparatedSides { protected, known, elements: &elements }, &weights);
        if protected.meets(known) {
            prop_assert!(found.is_empty());
            return Ok(());
        }
        let candidates = (0..=255_u8).map(bits).filter(|k| separates(*k, protected, known, &elements));
        let key = |k: &AttrSet| (weights.total(*k), k.iter().collect::<Vec<_>>());
        prop_assert_eq!(found.first().copied(), candidates.min_by_key(key));
        for separator in &found {
            prop_assert!(separates(*separator, protected, known, &elements), "{separator:?}");
        }
        prop_assert!(found.len() <= 3);
    }
}

#[test]
fn separators_of_many_attributes_are_found() {
    // 127 attributes in a chain of pairs, the middle one coarse
    let chain: Vec<AttrSet> = (0..127).map(|at| set(&[at, at + 1])).collect();
    let weights = AttributeWeights::from_distinct((0..128).map(|at| if at == 77 { 2 } else { 1_000 + at }));
    let sides = SeparatedSides { protected: set(&[0]), known: set(&[127]), elements: &chain };
    assert_eq!(separators(&sides, &weights), [set(&[77]), set(&[127]), set(&[1])]);
    // a wall of known attributes behind a complete element
    let known: AttrSet = (1..128).map(crate::microdata::Attr).collect();
    let sides = SeparatedSides { protected: set(&[0]), known, elements: &[AttrSet::first(128)] };
    assert_eq!(separators(&sides, &weights), [known]);
}

#[test]
fn idle_links_are_dropped_until_none_is_left() {
    let dependencies = known(&[dependency(&[0], 1), dependency(&[1], 2), dependency(&[0, 3], 4)], true);
    let attributes =
        |visible: AttrSet| -> Vec<AttrSet> { dependencies.links(visible).iter().map(|link| link.attributes).collect() };
    assert_eq!(attributes(set(&[0, 3])), []);
    assert_eq!(attributes(set(&[0, 2])), [set(&[0, 1]), set(&[1, 2])]);
    assert_eq!(attributes(set(&[4])), [set(&[0, 3, 4])]);
}

#[test]
fn withdrawn_dependencies_leave_links_of_others() {
    let both =
        [dependency(&[0], 1), dependency(&[1], 0)].map(|dependency| KnownDependency { dependency, is_exact: true });
    let kept = KnownDependencies::new(&both, &[dependency(&[0], 1)]);
    assert!(kept.still_links(&dependency(&[0], 1)));
    assert_eq!(kept.links(set(&[0, 1])).len(), 1);
    assert_eq!((kept.closure(set(&[0])), kept.closure(set(&[1]))), (set(&[0]), set(&[0, 1])));
    let none = KnownDependencies::new(&both, &[dependency(&[0], 1), dependency(&[1], 0)]);
    assert!(!none.still_links(&dependency(&[0], 1)) && none.all().is_empty());
}
