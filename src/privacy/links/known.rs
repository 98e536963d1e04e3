//! The dependencies that the adversary is assumed to know.

use super::super::dependencies::{Dependency, closure};
use super::link::{Link, active_links};
use crate::microdata::AttrSet;

/// A dependency of which the adversary knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownDependency {
    /// The determining attributes and the determined one.
    pub dependency: Dependency,
    /// Whether it holds in all rows; an approximate one has exceptions.
    pub is_exact: bool,
}

/// All dependencies of which the adversary knows, each once.
///
/// # Citations
/// docs/spec/dependencies.md#adversary
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KnownDependencies {
    all: Vec<Dependency>,
    exact: Vec<Dependency>,
}

impl KnownDependencies {
    /// The dependencies of `known` without the `withdrawn` ones.
    #[must_use]
    pub fn new(known: &[KnownDependency], withdrawn: &[Dependency]) -> Self {
        let mut kept = Self::default();
        for KnownDependency { dependency, is_exact } in known {
            if withdrawn.contains(dependency) {
                continue;
            }
            if !kept.all.contains(dependency) {
                kept.all.push(*dependency);
            }
            if *is_exact && !kept.exact.contains(dependency) {
                kept.exact.push(*dependency);
            }
        }
        kept
    }

    /// The dependencies, in the order in which they were given.
    #[must_use]
    pub fn all(&self) -> &[Dependency] {
        &self.all
    }

    /// The dependencies, each with whether it is exact, in the order in which they were given.
    pub fn entries(&self) -> impl Iterator<Item = KnownDependency> {
        let known =
            |&dependency: &Dependency| KnownDependency { dependency, is_exact: self.exact.contains(&dependency) };
        self.all.iter().map(known)
    }

    /// The attributes that `known` determines, by exact and by approximate dependencies.
    #[must_use]
    pub fn closure(&self, known: AttrSet) -> AttrSet {
        closure(known, &self.all)
    }

    /// The attributes that `known` determines in every row.
    #[must_use]
    pub fn exact_closure(&self, known: AttrSet) -> AttrSet {
        closure(known, &self.exact)
    }

    /// The links that constrain a release in which attributes of `visible` are published or known, each once.
    #[must_use]
    pub fn links(&self, visible: AttrSet) -> Vec<Link> {
        active_links(&self.all, visible)
    }

    /// Whether another known dependency has the same attributes as a withdrawn one, so that its link remains.
    #[must_use]
    pub fn still_links(&self, withdrawn: &Dependency) -> bool {
        let link = Link::from(*withdrawn);
        self.all.iter().any(|dependency| Link::from(*dependency).attributes == link.attributes)
    }
}
