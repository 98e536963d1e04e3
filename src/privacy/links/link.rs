//! Links: the attributes that a dependency ties together.

use super::super::dependencies::Dependency;
use super::separation::connected;
use crate::microdata::AttrSet;

/// The attributes of a dependency, which ties them in whatever direction it points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The determining attributes and the determined one.
    pub attributes: AttrSet,
    /// The first dependency with these attributes.
    pub because: Dependency,
}

impl From<Dependency> for Link {
    fn from(dependency: Dependency) -> Self {
        Self { attributes: dependency.determinant.with(dependency.dependent), because: dependency }
    }
}

/// The links of dependencies that are not idle, each once.
///
/// A dependency is idle while its dependent attribute is not among `visible` and no other dependency mentions it: it
/// constrains nothing. Idle ones are dropped until none is left.
pub(super) fn active_links(dependencies: &[Dependency], visible: AttrSet) -> Vec<Link> {
    let mut active = dependencies.to_vec();
    loop {
        let mentions = |other: &Dependency, dependency: &Dependency| {
            other != dependency && Link::from(*other).attributes.contains(dependency.dependent)
        };
        let is_active = |dependency: &&Dependency| {
            visible.contains(dependency.dependent) || active.iter().any(|other| mentions(other, dependency))
        };
        let kept: Vec<Dependency> = active.iter().filter(is_active).copied().collect();
        if kept.len() == active.len() {
            break;
        }
        active = kept;
    }
    let mut links: Vec<Link> = Vec::new();
    for link in active.into_iter().map(Link::from) {
        if links.iter().all(|other| other.attributes != link.attributes) {
            links.push(link);
        }
    }
    links
}

/// The attributes that links tie to `known` without the protected ones; a design treats them as known.
///
/// It steers a design only: [`super::judge()`] decides.
#[must_use]
pub fn design_side(known: AttrSet, protects: AttrSet, links: &[Link]) -> AttrSet {
    let elements: Vec<AttrSet> =
        links.iter().map(|link| link.attributes).filter(|link| !link.meets(protects)).collect();
    connected(known, &elements).minus(protects)
}
