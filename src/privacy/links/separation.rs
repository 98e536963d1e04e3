//! Connection and separation of attributes by attribute sets [Jin et al. 2010, Definition 3].
//!
//! An element is the attribute set of a table or of a link.

use crate::microdata::AttrSet;

/// The attributes that elements with common attributes connect to `start`, with `start` itself.
#[must_use]
pub fn connected(start: AttrSet, elements: &[AttrSet]) -> AttrSet {
    let mut reached = start;
    loop {
        let wider = elements.iter().filter(|element| element.meets(reached)).fold(reached, |all, e| all.union(*e));
        if wider == reached {
            return reached;
        }
        reached = wider;
    }
}

/// Whether every path through `elements` from `protected` to `known` passes an attribute of `separator`.
///
/// A separator with a protected attribute separates nothing.
#[must_use]
pub fn separates(separator: AttrSet, protected: AttrSet, known: AttrSet, elements: &[AttrSet]) -> bool {
    let rest: Vec<AttrSet> = elements.iter().map(|element| element.minus(separator)).collect();
    !separator.meets(protected) && !connected(protected, &rest).meets(known.minus(separator))
}
