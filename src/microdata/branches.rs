//! Sets of attributes that share some: whether they form a tree, and in which order.

use super::attrs::AttrSet;

/// A set of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JoinTreeNode {
    /// Which of the sets it is.
    pub set: usize,
    /// An earlier one that has all that is shared; of the first set itself.
    pub on: usize,
    /// What it shares with all that come before it.
    pub shared: AttrSet,
}

/// The sets in an order in which what each shares with those before it stands in one of these, the first set first; `None` where there is
/// no such order, as they go round in a circle. No set contains another.
#[must_use]
pub fn branches(sets: &[AttrSet]) -> Option<Vec<JoinTreeNode>> {
    let mut left: Vec<usize> = (0..sets.len()).collect();
    let mut order = Vec::with_capacity(sets.len());
    while left.len() > 1 {
        // a tree of several has two ends: the one that is not the first goes
        let cut = left.iter().enumerate().rev().find_map(|(place, &set)| {
            let others = || left.iter().copied().filter(|&other| other != set);
            let all = others().fold(AttrSet::EMPTY, |all, other| all.union(sets[other]));
            let shared = sets[set].intersection(all);
            let on = others().find(|&other| shared.is_subset(sets[other]))?;
            (place > 0).then_some((place, JoinTreeNode { set, on, shared }))
        });
        let (place, branch) = cut?;
        left.remove(place);
        order.push(branch);
    }
    order.extend(left.first().map(|&set| JoinTreeNode { set, on: set, shared: AttrSet::EMPTY }));
    order.reverse();
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::Attr;

    fn sets(sets: &[&[u8]]) -> Vec<AttrSet> {
        sets.iter().map(|set| set.iter().map(|&attr| Attr(attr)).collect()).collect()
    }

    #[test]
    fn a_tree_has_an_order_and_a_circle_has_none() {
        let order = |of: &[&[u8]]| branches(&sets(of));
        let branch = |set, on, shared: &[u8]| JoinTreeNode { set, on, shared: sets(&[shared])[0] };
        assert_eq!(order(&[]), Some(vec![]));
        assert_eq!(order(&[&[0, 1]]), Some(vec![branch(0, 0, &[])]));
        assert_eq!(order(&[&[0], &[1]]), Some(vec![branch(0, 0, &[]), branch(1, 0, &[])]));
        let path = order(&[&[1, 2], &[2, 3], &[0, 1]]);
        assert_eq!(path, Some(vec![branch(0, 0, &[]), branch(1, 0, &[2]), branch(2, 0, &[1])]));
        assert_eq!(order(&[&[0, 1], &[1, 2], &[0, 2]]), None);
        assert_eq!(order(&[&[0, 1], &[1, 2], &[2, 3], &[3, 0], &[7, 8]]), None);
        // the circle is closed by one that has it all
        let filled = order(&[&[0, 1, 5], &[1, 2, 6], &[0, 2, 7], &[0, 1, 2, 8]]);
        assert_eq!(filled.map(|order| order.len()), Some(4));
        let star = order(&[&[0, 9], &[1, 9], &[2, 9]]);
        assert_eq!(star, Some(vec![branch(0, 0, &[]), branch(1, 0, &[9]), branch(2, 0, &[9])]));
    }
}
