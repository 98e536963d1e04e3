use crate::microdata::AttrSet;

/// Sets of attributes in an order in which what each shares with those before stands in one of these, with what that is: always the next
/// that shares most (maximum cardinality search); `None` when that is no such order, as then there is none.
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
