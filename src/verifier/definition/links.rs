//! Guardians beside dependencies, by literal search of paths over tables and links.
//!
//! # Citations
//! docs/spec/dependencies.md#guardians-and-links; without links, [Jin et al. 2010, Definition 4]

use super::gnf::connected;
use super::guarantee::at_least;
use crate::microdata::AttrSet;
use crate::publication::{Guarantee, Protected, TableGuard};

/// Dependencies, as determinants and dependents.
pub(in crate::verifier) type Dependencies = Vec<(AttrSet, AttrSet)>;

/// A protection of a table: the two sides of its buckets, and what every bucket keeps.
pub(in crate::verifier) struct LinkedGuard {
    pub(in crate::verifier) row_side: AttrSet,
    pub(in crate::verifier) protected: AttrSet,
    /// The attributes in which every bucket is constant.
    pub(in crate::verifier) constant: AttrSet,
    pub(in crate::verifier) keeps: Vec<(Protected, Guarantee)>,
}

/// A published table: its attributes, and its protections.
pub(in crate::verifier) struct LinkedTable {
    pub(in crate::verifier) attributes: AttrSet,
    pub(in crate::verifier) guards: Vec<LinkedGuard>,
}

/// All tables of a release, and what an adversary knows of their attributes.
pub(in crate::verifier) struct LinkedTables {
    pub(in crate::verifier) tables: Vec<LinkedTable>,
    /// The attributes of each dependency that is not idle.
    pub(in crate::verifier) links: Vec<AttrSet>,
    /// The dependencies that hold in every row.
    pub(in crate::verifier) exact: Dependencies,
}

/// The attributes in the parts of protected attributes that a guard does not take as known.
///
/// All others stand on the row side, whatever the guard says.
pub(in crate::verifier) fn protected_part(parts: &[AttrSet], guards: &[TableGuard], guard: &TableGuard) -> AttrSet {
    let protects = guards.iter().fold(AttrSet::EMPTY, |all, guard| all.union(guard.protects.attributes()));
    let parts = parts.iter().filter(|part| part.meets(protects));
    parts.fold(AttrSet::EMPTY, |all, part| all.union(part.minus(guard.known)))
}

impl LinkedTable {
    /// A table of these parts and guards.
    pub(in crate::verifier) fn new(parts: &[AttrSet], guards: &[TableGuard]) -> Self {
        let attributes = parts.iter().fold(AttrSet::EMPTY, |all, part| all.union(*part));
        let linked = |guard: &TableGuard| {
            let protected = protected_part(parts, guards, guard);
            LinkedGuard {
                row_side: attributes.minus(protected),
                protected,
                constant: guard.constant,
                keeps: guard.guarantees.iter().map(|&guarantee| (guard.protects, guarantee)).collect(),
            }
        };
        Self { attributes, guards: guards.iter().map(linked).collect() }
    }

    /// The attributes, and those in which every bucket is constant.
    fn learned(&self) -> AttrSet {
        self.guards.iter().fold(self.attributes, |all, guard| all.union(guard.constant))
    }
}

impl LinkedTables {
    /// Whether a table guards a rule beside the links, or no path leads to what the rule protects.
    pub(in crate::verifier) fn hold(&self, known: AttrSet, protects: Protected, guarantee: Guarantee) -> bool {
        let mut elements: Vec<AttrSet> = self.tables.iter().map(LinkedTable::learned).collect();
        elements.extend(&self.links);
        let protected = protects.attributes();
        if protected.meets(known) {
            return false;
        }
        if !is_path(protected, known, &elements) {
            return true;
        }
        let keeps_rule = |guard: &&LinkedGuard| {
            guard.keeps.iter().any(|(side, held)| *side == protects && at_least(*held, guarantee))
        };
        (0..self.tables.len()).any(|at| {
            let mut guards = self.tables[at].guards.iter().filter(keeps_rule);
            guards.any(|guard| protected.is_subset(guard.protected) && self.guards(at, guard, known))
        })
    }

    /// Whether a guard of table `at` is a guardian of a rule with these known attributes.
    fn guards(&self, at: usize, guard: &LinkedGuard, known: AttrSet) -> bool {
        let LinkedGuard { row_side, protected, constant, .. } = *guard;
        // (i)
        if known.meets(protected) || constant.meets(protected) {
            return false;
        }
        // (iii)
        let others = self.tables.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, table)| table.learned());
        let far: Vec<AttrSet> = others.chain(self.links.iter().copied()).map(|far| far.minus(constant)).collect();
        let near = known.union(row_side).minus(constant);
        // (iv)
        let seen = constant.intersection(row_side).union(protected);
        !is_path(protected, near, &far) && constant.is_subset(closure(seen, &self.exact))
    }
}

/// Attributes of no one set that links tie together, directly or by attributes that are in none of the sets.
pub(in crate::verifier) fn link_across(sets: &[AttrSet], links: &[AttrSet]) -> Option<AttrSet> {
    let visible = sets.iter().fold(AttrSet::EMPTY, |all, set| all.union(*set));
    let hidden: Vec<AttrSet> = links.iter().map(|link| link.minus(visible)).collect();
    // what links tie together without passing a visible attribute
    let tied = |at: usize| {
        let joins = |other: usize| at == other || is_path(hidden[at], hidden[other], &hidden);
        (0..links.len()).filter(|&other| joins(other)).fold(AttrSet::EMPTY, |all, other| all.union(links[other]))
    };
    let tied = (0..links.len()).map(|at| tied(at).intersection(visible));
    tied.into_iter().find(|tied| !sets.iter().any(|set| tied.is_subset(*set)))
}

/// The attributes that links connect to some attributes, with these.
pub(in crate::verifier) fn tied(from: AttrSet, links: &[AttrSet]) -> AttrSet {
    let wider = links.iter().filter(|link| link.meets(from)).fold(from, |all, link| all.union(*link));
    if wider == from { from } else { tied(wider, links) }
}

/// Whether a path over the elements leads from one set of attributes to another.
fn is_path(from: AttrSet, to: AttrSet, elements: &[AttrSet]) -> bool {
    from.iter().any(|from| to.iter().any(|to| connected(from, to, elements)))
}

/// The attributes that some attributes determine.
pub(in crate::verifier) fn closure(from: AttrSet, dependencies: &[(AttrSet, AttrSet)]) -> AttrSet {
    let next = dependencies.iter().filter(|(determinant, _)| determinant.is_subset(from));
    let wider = next.fold(from, |all, (_, dependent)| all.union(*dependent));
    if wider == from { from } else { closure(wider, dependencies) }
}

/// The links of dependencies that are not idle.
///
/// A dependency is idle while its dependent is not visible and no other dependency mentions it.
pub(in crate::verifier) fn links_of(dependencies: &[(AttrSet, AttrSet)], visible: AttrSet) -> Vec<AttrSet> {
    let mut left: Dependencies = dependencies
        .iter()
        .flat_map(|(determinant, dependent)| dependent.iter().map(|one| (*determinant, AttrSet::one(one))))
        .collect();
    left.sort_unstable_by_key(|(determinant, dependent)| {
        (determinant.iter().collect::<Vec<_>>(), dependent.iter().next())
    });
    left.dedup();
    loop {
        let is_idle = |(at, (_, dependent)): &(usize, &(AttrSet, AttrSet))| {
            let mut others = left.iter().enumerate().filter(|(other, _)| other != at);
            !dependent.is_subset(visible) && !others.any(|(_, (a, b))| a.union(*b).meets(*dependent))
        };
        match left.iter().enumerate().find(is_idle).map(|(at, _)| at) {
            Some(at) => drop(left.remove(at)),
            None => return left.into_iter().map(|(determinant, dependent)| determinant.union(dependent)).collect(),
        }
    }
}
