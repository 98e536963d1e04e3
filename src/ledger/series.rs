//! Dependencies known in a series: those that its releases recorded, and those of statements.
//!
//! # Citations
//! docs/spec/dependencies.md#algorithm

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::union::AttributePositions;
use super::{EarlierDisclosures, RecordedDependency};
use crate::microdata::{Attr, AttrSet};
use crate::privacy::Dependency;
use crate::privacy::links::{KnownDependencies, KnownDependency, Link};

/// Dependencies of which a new release knows, in the attributes of its job and of the ledger.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReleaseDependencies<'a> {
    /// Dependencies among attributes of the release.
    pub own: &'a [KnownDependency],
    /// Dependencies on attributes that the release lacks.
    pub across: &'a [KnownDependency],
    /// Dependencies that its own rules assume unknown; the rules of other releases do not.
    pub withdrawn: &'a [KnownDependency],
}

/// Dependencies known in a series.
#[derive(Clone, Debug, Default)]
pub(super) struct SeriesDependencies {
    /// Those that earlier releases recorded, then those of declared identities.
    pub(super) recorded: Vec<KnownDependency>,
    /// The earlier release that recorded each first.
    recorded_by: HashMap<Dependency, Uuid>,
    /// Those of which the new release knows.
    pub(super) own: Vec<KnownDependency>,
    /// Those that the rules of the new release assume unknown.
    pub(super) withdrawn: Vec<KnownDependency>,
    /// Those among attributes that the new release lacks, where an earlier release withdrew them.
    elsewhere: Vec<KnownDependency>,
    /// Those that the rules of an earlier release assume unknown.
    withdrawn_by: HashMap<Uuid, HashSet<Dependency>>,
    /// The number of attributes of the new release.
    attributes: usize,
}

impl SeriesDependencies {
    /// The dependencies of the ledger, without those of a new release of the first `attributes`.
    pub(super) fn new(places: &AttributePositions, attributes: usize, earlier: &EarlierDisclosures) -> Self {
        let mut seen = HashSet::new();
        let all = earlier.disclosures.iter().flat_map(|(_, disclosure)| &disclosure.dependencies);
        let recorded = all.filter(|recorded| seen.insert(*recorded)).flat_map(|recorded| known(places, recorded));
        let mut series =
            Self { recorded: recorded.chain(of_identities(places)).collect(), attributes, ..Self::default() };
        for (release, disclosure) in &earlier.disclosures {
            for known in disclosure.dependencies.iter().flat_map(|recorded| known(places, recorded)) {
                series.recorded_by.entry(known.dependency).or_insert(*release);
            }
            let withdrawn = disclosure.withdrawn.iter().flat_map(|withdrawn| known(places, withdrawn));
            let mut withdrawn = withdrawn.map(|withdrawn| withdrawn.dependency).peekable();
            if withdrawn.peek().is_some() {
                series.withdrawn_by.entry(*release).or_default().extend(withdrawn);
            }
        }
        series
    }

    /// Adds the dependencies of a new release.
    ///
    /// What an earlier release withdrew, and no release knows, does not become known by a release without any of its
    /// attributes.
    pub(super) fn add(&mut self, release: ReleaseDependencies<'_>) {
        let attributes = AttrSet::first(self.attributes);
        let is_withdrawn =
            |dependency: &Dependency| self.withdrawn_by.values().any(|withdrawn| withdrawn.contains(dependency));
        let is_recorded =
            |known: &KnownDependency| self.recorded.iter().any(|recorded| recorded.dependency == known.dependency);
        let is_elsewhere = |known: &KnownDependency| {
            !Link::from(known.dependency).attributes.meets(attributes)
                && is_withdrawn(&known.dependency)
                && !is_recorded(known)
        };
        let (elsewhere, across): (Vec<_>, Vec<_>) = release.across.iter().copied().partition(is_elsewhere);
        self.own = [release.own, &across].concat();
        self.elsewhere = elsewhere;
        self.withdrawn = release.withdrawn.to_vec();
    }

    /// The attributes of the new release.
    pub(super) fn own_attributes(&self) -> AttrSet {
        AttrSet::first(self.attributes)
    }

    /// All knowledge of the series, whatever any release withdraws.
    pub(super) fn all(&self) -> KnownDependencies {
        KnownDependencies::new(&self.whole(), &[])
    }

    fn whole(&self) -> Vec<KnownDependency> {
        [self.recorded.as_slice(), &self.own, &self.withdrawn, &self.elsewhere].concat()
    }

    /// The earlier release that recorded a dependency first; `None` for one of a statement, and for one that none has.
    pub(super) fn recorded_by(&self, dependency: &Dependency) -> Option<Uuid> {
        self.recorded_by.get(dependency).copied()
    }

    /// Whether an earlier release withdrew a dependency.
    pub(super) fn has_withdrawn(&self, release: Uuid) -> bool {
        self.withdrawn_by.contains_key(&release)
    }

    /// The knowledge against which the rules of an earlier release must hold.
    ///
    /// What it withdrew counts once another release knows of it.
    pub(super) fn against(&self, release: Uuid) -> KnownDependencies {
        let is_known = |dependency: &&Dependency| {
            self.recorded.iter().chain(&self.own).any(|known| known.dependency == **dependency)
        };
        let withdrawn = self.withdrawn_by.get(&release).into_iter().flatten();
        let withdrawn: Vec<Dependency> = withdrawn.filter(|dependency| !is_known(dependency)).copied().collect();
        KnownDependencies::new(&self.whole(), &withdrawn)
    }

    /// The knowledge of earlier releases and of the new one, once it is recorded.
    pub(super) fn once_recorded(&self) -> Vec<KnownDependency> {
        [self.recorded.as_slice(), &self.own].concat()
    }

    /// The knowledge against which the rules of the new release must hold.
    pub(super) fn of_new_release(&self) -> KnownDependencies {
        KnownDependencies::new(&[self.recorded.as_slice(), &self.own, &self.elsewhere].concat(), &[])
    }
}

/// A recorded dependency in the attributes of a union.
fn known(places: &AttributePositions, recorded: &RecordedDependency) -> Vec<KnownDependency> {
    let exact = |all: AttrSet, name: &String| all.union(places.exact(name));
    let determinant = recorded.determinant.iter().fold(AttrSet::EMPTY, exact);
    let dependents = places.exact(&recorded.dependent).minus(determinant);
    let known =
        |dependent| KnownDependency { dependency: Dependency { determinant, dependent }, is_exact: recorded.exact };
    dependents.iter().map(known).collect()
}

/// Aliases as dependencies in both directions, and attributes that are computed from others.
fn of_identities(places: &AttributePositions) -> Vec<KnownDependency> {
    let attributes = (0..places.names.len()).map(Attr::from);
    let of = |attr: Attr| {
        let name = &places.names[attr.index()];
        let aliases = places.exact(name).without(attr);
        let of_alias = move |alias| KnownDependency {
            dependency: Dependency { determinant: AttrSet::one(alias), dependent: attr },
            is_exact: true,
        };
        let computed = places.identities.function_of(places.identities.canonical(name)).is_some();
        let others = places.related(name).minus(places.exact(name));
        let of_others = KnownDependency {
            dependency: Dependency { determinant: others, dependent: attr },
            // others may be computed from the same attribute, and need not determine it
            is_exact: false,
        };
        aliases.iter().map(of_alias).chain((computed && !others.is_empty()).then_some(of_others)).collect::<Vec<_>>()
    };
    attributes.flat_map(of).collect()
}
