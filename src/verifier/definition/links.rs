//! Guardians beside dependencies, by literal search of paths over tables and links.
//!
//! # Citations
//! docs/spec/dependencies.md#guardians-and-links; without links, [Jin et al. 2010, Definition 4]

use super::gnf::connected;
use super::guarantee::at_least;
use crate::microdata::AttrSet;
use crate::publication::{Guarantee, Protected, PublishedTable, TableGuard, TableProtection};

/// Dependencies, as determinants and dependents.
pub(in crate::verifier) type Dependencies = Vec<(AttrSet, AttrSet)>;

/// A published table: the attributes of its parts, and its guards.
pub(in crate::verifier) struct LinkedTable<'a> {
    pub(in crate::verifier) parts: Vec<AttrSet>,
    pub(in crate::verifier) guards: &'a [TableGuard],
}

/// All tables of a release, and what an adversary knows of their attributes.
pub(in crate::verifier) struct LinkedTables<'a> {
    pub(in crate::verifier) tables: Vec<LinkedTable<'a>>,
    /// The attributes of each dependency that is not idle.
    pub(in crate::verifier) links: Vec<AttrSet>,
    /// The dependencies that hold in every row.
    pub(in crate::verifier) exact: Dependencies,
}

impl<'a> LinkedTable<'a> {
    pub(in crate::verifier) fn from_published(table: &'a PublishedTable) -> Self {
        let guards = match &table.protection {
            TableProtection::Guarding(guards) => guards.as_slice(),
            TableProtection::Plain | TableProtection::Exclusive => &[],
        };
        let columns = table.parts.iter().map(|part| part.columns.iter().map(|column| column.attribute).collect());
        Self { parts: columns.collect(), guards }
    }

    fn attributes(&self) -> AttrSet {
        self.parts.iter().fold(AttrSet::EMPTY, |all, part| all.union(*part))
    }

    /// The attributes, and those in which every bucket is constant.
    fn learned(&self) -> AttrSet {
        self.guards.iter().fold(self.attributes(), |all, guard| all.union(guard.constant))
    }

    /// The attributes in the parts of protected attributes that a guard does not take as known.
    ///
    /// All others stand on the row side, whatever the guard says.
    pub(in crate::verifier) fn protected_part(&self, guard: &TableGuard) -> AttrSet {
        let protects = self.guards.iter().fold(AttrSet::EMPTY, |all, guard| all.union(guard.protects.attributes()));
        let parts = self.parts.iter().filter(|part| part.meets(protects));
        parts.fold(AttrSet::EMPTY, |all, part| all.union(part.minus(guard.known)))
    }
}

impl LinkedTables<'_> {
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
        let bounds_rule = |guard: &&TableGuard| {
            guard.protects == protects && guard.guarantees.iter().any(|&held| at_least(held, guarantee))
        };
        (0..self.tables.len())
            .any(|at| self.tables[at].guards.iter().filter(bounds_rule).any(|guard| self.guards(at, guard, known)))
    }

    /// Whether a guard of table `at` is a guardian of a rule with these known attributes.
    fn guards(&self, at: usize, guard: &TableGuard, known: AttrSet) -> bool {
        let table = &self.tables[at];
        let (protected, constant) = (table.protected_part(guard), guard.constant);
        let row_side = table.attributes().minus(protected);
        // (i)
        if !guard.protects.attributes().is_subset(protected) || known.meets(protected) || constant.meets(protected) {
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

/// Whether a path over the elements leads from one set of attributes to another.
fn is_path(from: AttrSet, to: AttrSet, elements: &[AttrSet]) -> bool {
    from.iter().any(|from| to.iter().any(|to| connected(from, to, elements)))
}

/// The attributes that some attributes determine.
fn closure(from: AttrSet, dependencies: &[(AttrSet, AttrSet)]) -> AttrSet {
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
