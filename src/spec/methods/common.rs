//! Members that methods have in common. A method has them by the line `include common: CommonMembers` of its document.

use std::collections::{BTreeSet, HashMap};

use super::types::{AssumedKnowledge, AssumedUnknown, DeclaredDependency, DependencySearch};
use crate::microdata::{Attr, AttrSet};
use crate::problem::{Fault, Kind};
use crate::publication::Ratio;
use crate::spec::grammar::dependencies::{DependencyList, DraftDependency};
use crate::spec::grammar::document::{Document, document, scalar};
use crate::spec::grammar::reader::{FaultList, ratio};

/// The largest tolerance.
const MAX_TOLERANCE: Ratio = match Ratio::new(1, 20) {
    Ok(tolerance) => tolerance,
    Err(_) => panic!("a ratio"),
};

/// The tolerance when none is given.
const DEFAULT_TOLERANCE: Ratio = match Ratio::new(1, 100) {
    Ok(tolerance) => tolerance,
    Err(_) => panic!("a ratio"),
};

document! {
    /// What the adversary is assumed to know of the data.
    CommonMembers as "CommonMembers" {
        /// What the adversary knows to determine what, besides what the data shows.
        optional functional_dependencies: DependencyList<false> = DependencyList::default(),
        /// Dependencies that hold in the data and that the adversary is assumed not to know; the manifest has the reasons. Needs the
        /// scope `ledger:override`.
        optional assume_unknown: DependencyList<true> = DependencyList::default(),
        optional dependencies: SearchMembers = SearchMembers::absent("/method/dependencies"),
    }
}

document! {
    /// How the data is searched for dependencies that the adversary is assumed to know.
    SearchMembers as "DependencySearchOptions" {
        optional discover: DependencySearch = DependencySearch::SinglesAndPairs,
        /// The share of rows, from 0 to 1/20, for which a dependency on one attribute may not hold. 0.01 when not given.
        optional tolerance: Tolerance = Tolerance(DEFAULT_TOLERANCE),
    }
}

/// The share of rows for which an approximate dependency may not hold.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) struct Tolerance(Ratio);

scalar! {
    Tolerance: "a fraction from 0 to 1/20, as a text such as \"0.01\"",
    |value| ratio(value).filter(|tolerance| *tolerance <= MAX_TOLERANCE).map(Self),
    |tolerance| serde_json::json!(tolerance.0),
    {"oneOf": [{"const": 0}, {"type": "string", "pattern": "^[0-9]+([./][0-9]+)?$"}]}
}

impl CommonMembers {
    /// Reports what does not go together.
    pub(in crate::spec) fn check(&self, faults: &mut FaultList) {
        let is_unsearched = self.dependencies.discover == DependencySearch::None;
        let unknown = &self.assume_unknown.0;
        if is_unsearched && !unknown.iter().any(DraftDependency::means_all) {
            let allowed = "with discover none, an entry with two empty lists and the reason for it";
            faults.range(self.at("assume_unknown"), allowed);
        }
        for assumed in unknown {
            if assumed.means_all() && !is_unsearched {
                let allowed = "names of attributes; two empty lists only with discover none";
                faults.range(assumed.pointer.as_str(), allowed);
            }
            let is_same = |declared: &&DraftDependency| {
                declared.determinant == assumed.determinant && !declared.dependent.is_disjoint(&assumed.dependent)
            };
            if self.functional_dependencies.0.iter().any(|declared| is_same(&declared)) {
                let detail = "a dependency that is declared is known; leave it out of functional_dependencies or of assume_unknown";
                faults.push(Fault::new(assumed.pointer.as_str(), Kind::BadColumns, detail));
            }
        }
    }

    /// The columns that dependencies name and that are not published, in the order of the dataset.
    pub(in crate::spec) fn unpublished(&self, used: &[usize]) -> Vec<usize> {
        let dependencies = self.functional_dependencies.0.iter().chain(&self.assume_unknown.0);
        let named: BTreeSet<usize> =
            dependencies.flat_map(|dependency| dependency.determinant.union(&dependency.dependent)).copied().collect();
        named.into_iter().filter(|column| used.binary_search(column).is_err()).collect()
    }

    /// What the adversary is assumed to know, over attributes.
    pub(in crate::spec) fn resolve(&self, attrs: &HashMap<usize, Attr>) -> AssumedKnowledge {
        let side = |columns: &BTreeSet<usize>| columns.iter().map(|column| attrs[column]).collect::<AttrSet>();
        let dependency = |draft: &DraftDependency| DeclaredDependency {
            determinant: side(&draft.determinant),
            dependent: side(&draft.dependent),
        };
        let assumed = |draft: &DraftDependency| AssumedUnknown {
            pointer: draft.pointer.clone(),
            dependency: dependency(draft),
            reason: draft.reason.clone().unwrap_or_default(),
        };
        AssumedKnowledge {
            declared: self.functional_dependencies.0.iter().map(dependency).collect(),
            assumed_unknown: self.assume_unknown.0.iter().map(assumed).collect(),
            search: self.dependencies.discover,
            tolerance: self.dependencies.tolerance.0,
        }
    }
}
