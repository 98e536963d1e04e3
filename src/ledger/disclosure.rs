//! Entries of the ledger: disclosures and active rules.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::AttributeIdentities;
use crate::publication::{EarlierReleases, Guarantee};

/// Record of a published table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Disclosure {
    /// The name of the table in its release.
    pub table: String,
    /// The attributes, by their dataset names.
    pub attributes: Vec<String>,
    /// The protection of the table.
    pub protection: RecordedProtection,
    /// Whether rows may be missing from the table; a table with all rows would reveal which ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The reason for publishing without proof, where a release has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unproven: Option<String>,
    /// The dependencies of which its release knew; recorded with its first table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<RecordedDependency>,
    /// The dependencies that its release assumed unknown; recorded with its first table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawn: Vec<RecordedDependency>,
}

/// Dependency of which a release knew, or that it assumed unknown.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct RecordedDependency {
    /// The determining attributes, by their dataset names.
    pub determinant: Vec<String>,
    /// The determined attribute.
    pub dependent: String,
    /// Whether it held in all rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
}

/// Protection of a disclosed table.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedProtection {
    /// Exact tuples without a guard.
    Plain,
    /// A table that bounds posteriors by itself.
    Guarding(Vec<RecordedGuard>),
    /// A table that keeps its guarantee while no other table shares an attribute.
    Exclusive,
}

/// Guard of a disclosed table.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct RecordedGuard {
    /// The attributes that may be known.
    pub quasi_identifiers: Vec<String>,
    /// The protected attributes.
    pub sensitive: Vec<String>,
    /// Whether only the joint value of the protected attributes is protected.
    pub joint: bool,
    /// The guarantees of the guard.
    pub guarantees: Vec<Guarantee>,
    /// The attributes in which every bucket is constant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constant: Vec<String>,
    /// Whether buckets may break a guarantee that are all rows with their values of `constant`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closes: bool,
    /// Excluded values of protected attributes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub excludable: BTreeMap<String, Vec<Option<String>>>,
    /// Digests of the taxonomies of protected attributes, where a guarantee uses them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub taxonomies: BTreeMap<String, String>,
}

/// Rule that a release promised.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ActiveRule {
    /// The pointer into its specification; `None` for a rule that follows from a dependency.
    pub pointer: Option<String>,
    /// The quasi-identifiers.
    pub quasi_identifiers: Vec<String>,
    /// The sensitive attribute; for a combination one of its attributes.
    pub sensitive: String,
    /// The attributes of a combination whose joint value is protected; empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub combination: Vec<String>,
    /// The bound on the inference.
    pub guarantee: Guarantee,
    /// Excluded values of the sensitive attribute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excludable: Vec<Option<String>>,
    /// The digest of the taxonomy, where the bound uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy: Option<String>,
    /// Whether its bound leaves out rows of strata that no publication bounds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closes: bool,
}

/// Location of the rows of an external table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExternalRowsRef {
    /// The dataset with the rows, if there is one.
    pub dataset: Option<Uuid>,
    /// The labels of each generalized attribute; `None` is the missing value.
    pub cuts: BTreeMap<String, Vec<Option<String>>>,
}

/// All disclosures and active rules of the same data subjects.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EarlierDisclosures {
    /// Disclosures, each with its release.
    pub disclosures: Vec<(Uuid, Disclosure)>,
    /// Active rules, each with the release that promised it.
    pub rules: Vec<(Uuid, ActiveRule)>,
    /// Locations of the rows of external tables, by release.
    pub external: BTreeMap<Uuid, ExternalRowsRef>,
    /// The earlier releases that a sequential release names, as they were read back.
    pub releases: EarlierReleases,
    /// The declared identities of attributes.
    pub identities: AttributeIdentities,
}

impl EarlierDisclosures {
    /// The names of attributes in disclosures and rules, in any order, with repetitions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let of_disclosures = self.disclosures.iter().flat_map(|(_, disclosure)| &disclosure.attributes);
        let of_rules = self
            .rules
            .iter()
            .flat_map(|(_, rule)| rule.quasi_identifiers.iter().chain([&rule.sensitive]).chain(&rule.combination));
        of_disclosures.chain(of_rules).map(String::as_str)
    }

    /// The dependencies that releases assumed unknown, without releases that assumed none.
    pub(super) fn withdrawals(&self) -> HashMap<Uuid, Vec<&RecordedDependency>> {
        let mut withdrawals: HashMap<Uuid, Vec<&RecordedDependency>> = HashMap::new();
        for (release, disclosure) in &self.disclosures {
            for withdrawn in &disclosure.withdrawn {
                withdrawals.entry(*release).or_default().push(withdrawn);
            }
        }
        withdrawals
    }

    /// The names of attributes that only dependencies and guards mention, in any order, with repetitions.
    pub(super) fn mentioned(&self) -> impl Iterator<Item = &str> {
        let of_dependencies = self
            .disclosures
            .iter()
            .flat_map(|(_, disclosure)| disclosure.dependencies.iter().chain(&disclosure.withdrawn));
        let of_dependencies = of_dependencies.flat_map(|known| known.determinant.iter().chain([&known.dependent]));
        let of_guards = self.disclosures.iter().flat_map(|(_, disclosure)| match &disclosure.protection {
            RecordedProtection::Guarding(guards) => guards.as_slice(),
            RecordedProtection::Plain | RecordedProtection::Exclusive => &[],
        });
        of_dependencies.chain(of_guards.flat_map(|guard| &guard.constant)).map(String::as_str)
    }
}
