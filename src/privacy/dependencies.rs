//! Functional dependencies; the adversary is assumed to know them.
//!
//! # Citations
//! [Jin et al. 2010, Theorem 3.2]; docs/security/threat-model.md#dependencies

use crate::microdata::{Attr, AttrSet};

/// A functional dependency: `determinant` determines `dependent`, in all rows or in nearly all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dependency {
    /// The determining attributes; one or two where the dependency was discovered.
    pub determinant: AttrSet,
    /// The determined attribute.
    pub dependent: Attr,
}

/// The closure of `known` under dependencies [Armstrong 1974].
pub(super) fn closure(known: AttrSet, dependencies: &[Dependency]) -> AttrSet {
    let mut determined = known;
    loop {
        let wider = dependencies
            .iter()
            .filter(|dependency| dependency.determinant.is_subset(determined))
            .fold(determined, |all, dependency| all.with(dependency.dependent));
        if wider == determined {
            return determined;
        }
        determined = wider;
    }
}
