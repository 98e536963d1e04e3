//! The dependencies that the adversary of a job is assumed to know, with their evidence in the rows.

use crate::control::{Cancelled, Control};
use crate::microdata::Table;
use crate::privacy;
use crate::privacy::links::{KnownDependencies, KnownDependency};
use crate::privacy::{Dependency, DiscoveredDependency, DiscoveryOptions, DiscoveryScope, SearchedScope};
use crate::problem::{Fault, Kind};
use crate::publication::SearchedDependencies;
use crate::spec::{AssumedUnknown, DeclaredDependency, DependencySearch, Specification};

/// The published names of the attributes, then the names of dropped attributes in dependencies.
pub(in crate::engine) fn attribute_names(specification: &Specification) -> Vec<String> {
    specification.published_names.iter().chain(&specification.dropped_names).cloned().collect()
}

/// How the data of a job is searched for dependencies.
pub(in crate::engine) const fn discovery_options(specification: &Specification) -> DiscoveryOptions {
    let scope = match specification.knowledge.search {
        DependencySearch::SinglesAndPairs => DiscoveryScope::SinglesAndPairs,
        DependencySearch::Singles => DiscoveryScope::Singles,
        DependencySearch::None => DiscoveryScope::None,
    };
    DiscoveryOptions { scope, tolerance: specification.knowledge.tolerance }
}

/// The statement by which the adversary is assumed not to know a dependency.
pub(in crate::engine) fn withdrawal<'a>(
    specification: &'a Specification,
    of: &Dependency,
) -> Option<&'a AssumedUnknown> {
    let withdraws = |assumed: &&AssumedUnknown| {
        let DeclaredDependency { determinant, dependent } = assumed.dependency;
        determinant == of.determinant && dependent.contains(of.dependent)
    };
    specification.assumed_unknown().iter().find(withdraws)
}

/// The dependencies that the adversary is assumed to know.
#[derive(Clone, Default)]
pub(in crate::engine) struct JobDependencies {
    /// The declared dependencies, then those of the series, then the discovered ones.
    pub(in crate::engine) all: Vec<Dependency>,
    /// The same, with those that hold in all rows.
    pub(in crate::engine) known: KnownDependencies,
    /// The discovered ones that the rules of the release assume unknown.
    pub(in crate::engine) withdrawn: Vec<KnownDependency>,
    /// The number of declared ones.
    pub(super) declared: usize,
    /// The number of those that only the series knows.
    pub(super) recorded: usize,
    /// The names of attributes that only the series has, behind those of the job.
    pub(super) names_of_series: Vec<String>,
    /// The evidence of each; `None` where rows were not read.
    pub(super) evidence: Vec<Option<DiscoveredDependency>>,
    /// Dependencies within the tolerance that may be accidents.
    pub(super) rejected: Vec<DiscoveredDependency>,
    /// What the data was searched for; `None` where rows were not read.
    pub(super) searched: Option<SearchedDependencies>,
}

impl JobDependencies {
    pub(in crate::engine) fn declared(specification: &Specification) -> Self {
        let single = |&DeclaredDependency { determinant, dependent }: &DeclaredDependency| {
            dependent.iter().map(move |dependent| Dependency { determinant, dependent }).collect::<Vec<_>>()
        };
        let all: Vec<Dependency> = specification.declared().iter().flat_map(single).collect();
        let known: Vec<KnownDependency> =
            all.iter().map(|&dependency| KnownDependency { dependency, is_exact: false }).collect();
        Self {
            declared: all.len(),
            known: KnownDependencies::new(&known, &[]),
            evidence: vec![None; all.len()],
            all,
            ..Self::default()
        }
    }

    /// Declared dependencies, and those of the data that the adversary is not assumed to miss.
    pub(in crate::engine) fn new(
        specification: &Specification,
        table: &Table,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let mut known = Self::declared(specification);
        known.evidence = known.all.iter().map(|&declared| privacy::measure_dependency(table, declared)).collect();
        let discovery = privacy::discover_dependencies(table, &discovery_options(specification), control)?;
        discovery.found.into_iter().for_each(|found| known.add_found(specification, found));
        known.settle();
        known.rejected = discovery.rejected;
        known.searched = Some(match discovery.searched {
            SearchedScope::SinglesAndPairs => SearchedDependencies::SinglesAndPairs,
            SearchedScope::SinglesAndSomePairs => SearchedDependencies::SinglesAndSomePairs,
            SearchedScope::Singles => SearchedDependencies::Singles,
            SearchedScope::None => SearchedDependencies::None,
        });
        Ok(known)
    }

    /// Declared dependencies, and those that counts show in a table whose rows are elsewhere.
    pub(in crate::engine) fn of_counts(
        specification: &Specification,
        found: Vec<DiscoveredDependency>,
        rejected: Vec<DiscoveredDependency>,
        searched: SearchedDependencies,
    ) -> Self {
        let mut known = Self { rejected, searched: Some(searched), ..Self::declared(specification) };
        found.into_iter().for_each(|found| known.add_found(specification, found));
        known.settle();
        known
    }

    /// Adds a dependency of the data; it counts once the dependencies are settled.
    pub(super) fn add_found(&mut self, specification: &Specification, found: DiscoveredDependency) {
        let dependency = found.dependency;
        if self.all.contains(&dependency) {
            return;
        }
        if withdrawal(specification, &dependency).is_some() {
            self.withdrawn.push(KnownDependency { dependency, is_exact: found.errors == 0 });
        } else {
            self.all.push(dependency);
            self.evidence.push(Some(found));
        }
    }

    /// Makes the known dependencies those of `all`; exact are those that hold in every row.
    pub(super) fn settle(&mut self) {
        let is_exact = |(&dependency, evidence): (&Dependency, &Option<DiscoveredDependency>)| KnownDependency {
            dependency,
            is_exact: evidence.is_some_and(|evidence| evidence.errors == 0),
        };
        let all: Vec<KnownDependency> = self.all.iter().zip(&self.evidence).map(is_exact).collect();
        self.known = KnownDependencies::new(&all, &[]);
    }

    /// Adds the dependencies that earlier releases of the series or statements know, also those that the job withdraws.
    pub(super) fn add_recorded(&mut self, recorded: &[KnownDependency], rows: Option<&Table>) {
        for KnownDependency { dependency, .. } in recorded {
            if !self.all.contains(dependency) {
                let at = self.declared + self.recorded;
                self.all.insert(at, *dependency);
                self.evidence.insert(at, rows.and_then(|table| privacy::measure_dependency(table, *dependency)));
                self.recorded += 1;
            }
        }
        self.settle();
    }

    /// Adds dependencies of the series on attributes that the job lacks; `names` are those of all attributes.
    ///
    /// They have no evidence in the rows of the job, and so count as inexact.
    pub(super) fn add_hidden(&mut self, hidden: &[KnownDependency], names: &[String]) {
        for KnownDependency { dependency, .. } in hidden {
            if !self.all.contains(dependency) {
                let at = self.declared + self.recorded;
                self.all.insert(at, *dependency);
                self.evidence.insert(at, None);
                self.recorded += 1;
            }
        }
        self.names_of_series = names.to_vec();
        self.settle();
    }

    /// The published names of the attributes of the job, those that its dependencies name, and those of the series.
    pub(in crate::engine) fn names(&self, specification: &Specification) -> Vec<String> {
        [attribute_names(specification), self.names_of_series.clone()].concat()
    }

    /// The discovered dependencies.
    pub(in crate::engine) fn found(&self) -> &[Dependency] {
        &self.all[self.declared + self.recorded..]
    }

    /// The dependencies that the job itself knows, for the ledger; the series has the others.
    pub(super) fn of_job(&self) -> Vec<KnownDependency> {
        let series = self.declared..self.declared + self.recorded;
        let of_job = self.known.entries().enumerate().filter(|(at, _)| !series.contains(at));
        of_job.map(|(_, known)| known).collect()
    }

    /// The faults of withdrawals of dependencies that the series knows.
    pub(super) fn known_to_series(&self, specification: &Specification, recorded: &[KnownDependency]) -> Vec<Fault> {
        let names = attribute_names(specification);
        let mut faults = Vec::new();
        for AssumedUnknown { pointer, dependency: DeclaredDependency { determinant, dependent }, .. } in
            specification.assumed_unknown()
        {
            for attr in dependent.iter() {
                let named = Dependency { determinant: *determinant, dependent: attr };
                if recorded.iter().any(|recorded| recorded.dependency == named) {
                    let detail = "an earlier release or a statement of the series knows this dependency, so no release can withdraw it";
                    let fault = Fault::new(pointer.as_str(), Kind::BadColumns, detail);
                    faults.push(fault.with("attribute", names[attr.index()].as_str()));
                }
            }
        }
        faults
    }

    /// The faults of withdrawals that name no dependency of the data, nor one of `across`, with earlier releases.
    pub(in crate::engine) fn misnamed(&self, specification: &Specification, across: &[KnownDependency]) -> Vec<Fault> {
        let names = attribute_names(specification);
        let mut faults = Vec::new();
        for AssumedUnknown { pointer, dependency: DeclaredDependency { determinant, dependent }, .. } in
            specification.assumed_unknown()
        {
            // of some pairs it is not known whether they determine anything
            let is_searched =
                self.searched != Some(SearchedDependencies::SinglesAndSomePairs) || determinant.len() == 1;
            for attr in dependent.iter().filter(|_| is_searched) {
                let named = Dependency { determinant: *determinant, dependent: attr };
                if self.withdrawn.iter().chain(across).all(|withdrawn| withdrawn.dependency != named) {
                    let detail = "no known dependency has this determinant and dependent";
                    let fault = Fault::new(pointer.as_str(), Kind::UnknownDependency, detail);
                    faults.push(fault.with("attribute", names[attr.index()].as_str()));
                }
            }
        }
        faults
    }
}
