//! Dependencies of a table in another engine: what an adversary is assumed to know, and what ties a protected attribute.

use super::port::{RemoteColumn, RemoteError, RemoteTable};
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::engine::prepare::known::{JobDependencies, withdrawal};
use crate::microdata::{Attr, AttrSet};
use crate::privacy::{CountedColumns, CountedEvidence, Dependency, DiscoveredDependency, ValueFrequency};
use crate::publication::SearchedDependencies;
use crate::spec::{DependencySearch, Specification};

/// The dependencies of a release.
pub(super) struct RemoteDependencies {
    /// Those among the attributes of the job.
    pub(super) job: JobDependencies,
    /// All that the adversary is assumed to know, also of columns that are dropped.
    known: Vec<Dependency>,
}

impl RemoteDependencies {
    /// Searches the columns of a table: those of the job, and the dropped ones behind them.
    ///
    /// # Errors
    /// [`EngineError`]
    pub(super) fn search(
        specification: &Specification,
        table: &mut dyn RemoteTable,
        control: &Control,
    ) -> Result<Self, EngineError> {
        let places = places(specification, table.columns());
        let frequencies = |&place: &usize| table.columns()[place].frequencies.clone();
        let counts: Vec<Vec<ValueFrequency>> = places.iter().map(frequencies).collect();
        let judge = CountedColumns::new(table.rows(), &counts, specification.knowledge.tolerance);
        let mut search =
            RemoteSearch { table, places: &places, judge: &judge, control, found: Vec::new(), rejected: Vec::new() };
        let searched = match specification.knowledge.search {
            DependencySearch::None => SearchedDependencies::None,
            DependencySearch::Singles => {
                search.singles()?;
                SearchedDependencies::Singles
            }
            DependencySearch::SinglesAndPairs => {
                search.singles()?;
                search.pairs()?;
                SearchedDependencies::SinglesAndPairs
            }
        };
        let RemoteSearch { found, rejected, .. } = search;
        let named = AttrSet::first(specification.names.len() + specification.dropped_names.len());
        let attributes = |of: &DiscoveredDependency| of.dependency.determinant.with(of.dependency.dependent);
        let (own, of_dropped): (Vec<_>, Vec<_>) = found.into_iter().partition(|of| attributes(of).is_subset(named));
        let rejected = rejected.into_iter().filter(|of| attributes(of).is_subset(named)).collect();
        let job = JobDependencies::of_counts(specification, own, rejected, searched);
        let dropped = of_dropped.into_iter().map(|of| of.dependency);
        let known =
            job.all.iter().copied().chain(dropped.filter(|of| withdrawal(specification, of).is_none())).collect();
        Ok(Self { job, known })
    }

    /// The attributes that chains of known dependencies tie to `attr`, itself left out; `recorded` are those that the ledger knows, too.
    pub(super) fn tied(&self, attr: Attr, recorded: &[Dependency]) -> AttrSet {
        let mut tied = AttrSet::one(attr);
        loop {
            let sides = self.known.iter().chain(recorded).map(|of| of.determinant.with(of.dependent));
            let more = sides.filter(|sides| sides.meets(tied)).fold(tied, AttrSet::union);
            if more == tied {
                return tied.without(attr);
            }
            tied = more;
        }
    }
}

/// The positions of the searched columns: by attribute, then dropped ones that dependencies name, then the other dropped ones.
fn places(specification: &Specification, columns: &[RemoteColumn]) -> Vec<usize> {
    let named = specification.dropped_names.iter().filter_map(|name| columns.iter().position(|of| of.name == *name));
    let mut places: Vec<usize> = specification.used.iter().copied().chain(named).collect();
    let others = (0..columns.len()).filter(|at| !places.contains(at));
    places.extend(others.collect::<Vec<_>>());
    places
}

/// Two attributes, and others that they may determine together.
struct PairCandidate {
    pair: [usize; 2],
    dependents: Vec<usize>,
}

struct RemoteSearch<'a> {
    table: &'a mut dyn RemoteTable,
    /// The column of each attribute.
    places: &'a [usize],
    judge: &'a CountedColumns,
    control: &'a Control,
    found: Vec<DiscoveredDependency>,
    rejected: Vec<DiscoveredDependency>,
}

impl RemoteSearch<'_> {
    /// Dependencies with one determinant, exact and approximate.
    fn singles(&mut self) -> Result<(), EngineError> {
        for determinant in 0..self.places.len() {
            let judge = self.judge;
            let dependents = (0..self.places.len()).filter(|&to| judge.may_determine(determinant, to)).collect();
            self.ask(&[determinant], dependents)?;
        }
        Ok(())
    }

    /// Exact dependencies of two columns, neither of which determines the third one alone.
    fn pairs(&mut self) -> Result<(), EngineError> {
        let open = self.open_pairs();
        if open.is_empty() {
            return Ok(());
        }
        let sample = self.table.sample()?;
        for PairCandidate { pair, dependents } in open {
            self.control.check()?;
            let refuted = sample.refuted(pair.map(|at| self.places[at]), &self.columns(&dependents));
            let left = dependents.into_iter().zip(refuted).filter(|(_, refuted)| !refuted);
            self.ask(&pair, left.map(|(dependent, _)| dependent).collect())?;
        }
        Ok(())
    }

    /// The pairs that may determine something that neither member does.
    fn open_pairs(&self) -> Vec<PairCandidate> {
        let exact = self.found.iter().chain(&self.rejected).filter(|of| of.errors == 0).map(|of| of.dependency);
        let exact: Vec<Dependency> = exact.collect();
        let holds = |from: usize, to: usize| {
            exact.contains(&Dependency { determinant: AttrSet::one(Attr::from(from)), dependent: Attr::from(to) })
        };
        let attributes = self.places.len();
        let pairs = (0..attributes).flat_map(|second| (0..second).map(move |first| [first, second]));
        // what one of the two determines, the other one adds nothing to
        let pairs = pairs.filter(|&[first, second]| !holds(first, second) && !holds(second, first));
        let candidate = |pair: [usize; 2]| {
            let may_follow =
                |&to: &usize| self.judge.may_determine_together(pair, to) && !holds(pair[0], to) && !holds(pair[1], to);
            PairCandidate { pair, dependents: (0..attributes).filter(may_follow).collect() }
        };
        pairs.map(candidate).filter(|of| !of.dependents.is_empty()).collect()
    }

    fn columns(&self, attributes: &[usize]) -> Vec<usize> {
        attributes.iter().map(|&at| self.places[at]).collect()
    }

    /// Counts what follows from `determinant` in all rows, and judges it.
    fn ask(&mut self, determinant: &[usize], dependents: Vec<usize>) -> Result<(), EngineError> {
        self.control.check()?;
        if dependents.is_empty() {
            return Ok(());
        }
        let (from, to) = (self.columns(determinant), self.columns(&dependents));
        let counted = self.table.determined(&from, &to)?;
        if counted.len() != dependents.len() {
            return Err(RemoteError::Failed("an answer lacks columns".to_owned()).into());
        }
        let side: AttrSet = determinant.iter().map(|&at| Attr::from(at)).collect();
        for (dependent, counted) in dependents.into_iter().zip(counted) {
            // approximate dependencies have one determinant
            if determinant.len() > 1 && counted.errors > 0 {
                continue;
            }
            let dependency = Dependency { determinant: side, dependent: Attr::from(dependent) };
            match self.judge.judge(dependency, dependent, counted.groups, counted.errors) {
                CountedEvidence::Known(found) => self.found.push(found),
                CountedEvidence::Accident(found) if determinant.len() == 1 => self.rejected.push(found),
                CountedEvidence::Accident(_) | CountedEvidence::Absent => {}
            }
        }
        Ok(())
    }
}
