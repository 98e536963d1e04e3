use crate::microdata::AttrSet;

/// A join tree of attribute sets by maximum cardinality search.
///
/// `None` when the sets form no tree [Beeri et al. 1983].
///
/// Each entry is the index of a set, and the attributes it shares with earlier ones; one earlier set holds all of
/// these.
pub(in crate::verifier) fn tree(sets: &[AttrSet]) -> Option<Vec<(usize, AttrSet)>> {
    let (mut left, mut marked) = ((0..sets.len()).collect::<Vec<usize>>(), AttrSet::EMPTY);
    let mut order = Vec::<(usize, AttrSet)>::new();
    while let Some(place) = (0..left.len()).max_by_key(|&at| sets[left[at]].intersection(marked).len()) {
        let next = left.remove(place);
        let shared = sets[next].intersection(marked);
        if !order.is_empty() && !order.iter().any(|(before, _)| shared.is_subset(sets[*before])) {
            return None;
        }
        marked = marked.union(sets[next]);
        order.push((next, shared));
    }
    Some(order)
}
