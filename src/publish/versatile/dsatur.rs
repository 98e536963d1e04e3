//! DSATUR graph colouring (Brélaz 1979), with the tie-breaks of the specification.
//!
//! Our own, because the tie-breaks decide the schema: the most differently coloured neighbours first, then the most
//! uncoloured neighbours, then the smallest index; always the lowest free colour.

use std::cmp::Reverse;

use crate::microdata::{Attr, AttrSet};

/// The colour classes of `vertices`, each in one set; `neighbours[a]` are the vertices that attribute `a` may not share a
/// colour with.
pub(super) fn colour_classes(vertices: AttrSet, neighbours: &[AttrSet]) -> Vec<AttrSet> {
    let mut classes: Vec<AttrSet> = Vec::new();
    let mut uncoloured = vertices;
    let urgency = |attr: &Attr, uncoloured: AttrSet, classes: &[AttrSet]| {
        let adjacent = neighbours[attr.index()];
        let saturation = classes.iter().filter(|class| class.meets(adjacent)).count();
        (saturation, adjacent.intersection(uncoloured).len(), Reverse(attr.0))
    };
    while let Some(next) = uncoloured.iter().max_by_key(|attr| urgency(attr, uncoloured, &classes)) {
        uncoloured = uncoloured.without(next);
        match classes.iter_mut().find(|class| !class.meets(neighbours[next.index()])) {
            Some(class) => *class = class.with(next),
            None => classes.push(AttrSet::one(next)),
        }
    }
    classes
}
