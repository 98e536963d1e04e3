//! Coverages: the evidence of rows of which releases were made, with the names under which they are known.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::evidence::{Evidence, Resemblance, SystemEvidence};
use super::hash::KeyedHash;
use super::statement::Place;

/// The number of a coverage in its tenant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct CoverageId(pub i64);

/// What is known of the rows of a coverage. The hashes of its persons are kept apart.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Coverage {
    /// The populations that its persons belong to.
    pub populations: BTreeSet<String>,
    /// The datasets that have these rows.
    pub datasets: BTreeSet<Uuid>,
    /// The marks of their tables.
    pub tables: BTreeSet<KeyedHash>,
    /// Per column of these tables what stands in it of which row.
    #[serde(default)]
    pub contents: BTreeMap<String, BTreeSet<KeyedHash>>,
    /// Per key system by which its persons are known, how many there are, and the column marks.
    pub systems: BTreeMap<String, SystemEvidence>,
    /// The population whose persons it republishes, if it is a chain.
    pub chain: Option<String>,
    /// While it is announced, the coverage of its chain: who stands in that one is not listed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<CoverageId>,
}

impl Coverage {
    /// Of the rows of a dataset.
    #[must_use]
    pub fn new(dataset: Uuid, population: Option<&str>, evidence: &Evidence) -> Self {
        Self {
            populations: population.into_iter().map(str::to_owned).collect(),
            datasets: BTreeSet::from([dataset]),
            tables: evidence.table.into_iter().collect(),
            contents: evidence.contents.iter().map(|(name, mark)| (name.clone(), BTreeSet::from([*mark]))).collect(),
            systems: evidence.systems.clone(),
            chain: None,
            continues: None,
        }
    }

    /// The places by which statements name it.
    #[must_use]
    pub fn places(&self) -> BTreeSet<Place> {
        let populations = self.populations.iter().cloned().map(Place::Population);
        populations.chain(self.datasets.iter().copied().map(Place::Dataset)).collect()
    }

    /// What makes coverages stand alike to rows that share neither people nor cells with them: populations and key
    /// systems. None of a coverage that stands by itself: undeclared, of rows that are gone, or a chain.
    #[must_use]
    pub fn group(&self) -> Option<String> {
        let is_alone = self.populations.is_empty() || self.tables.is_empty() || self.chain.is_some();
        let systems: Vec<&String> = self.systems.keys().collect();
        if is_alone { None } else { serde_json::to_string(&(&self.populations, systems)).ok() }
    }

    /// Takes over what a dataset of the same rows knows of them, unless it is of another population. The answer names
    /// the key systems by which the persons were not known before: their hashes have to be added.
    ///
    /// Marks of published columns stay those of the published values. Of others the last dataset's are kept.
    pub fn adopt(
        &mut self,
        dataset: Uuid,
        population: Option<&str>,
        evidence: &Evidence,
        published: &BTreeSet<String>,
    ) -> Vec<String> {
        let is_of_another = population.is_none_or(|name| !self.populations.contains(name));
        if !self.populations.is_empty() && is_of_another {
            return Vec::new();
        }
        self.populations.extend(population.map(str::to_owned));
        self.datasets.insert(dataset);
        self.tables.extend(evidence.table);
        for (name, mark) in &evidence.contents {
            self.contents.entry(name.clone()).or_default().insert(*mark);
        }
        let mut learned = Vec::new();
        for (name, system) in &evidence.systems {
            let known = self.systems.entry(name.clone()).or_insert_with(|| {
                learned.push(name.clone());
                SystemEvidence { persons: system.persons, columns: BTreeMap::new() }
            });
            known.learn(&system.columns, published);
        }
        learned
    }

    /// Takes over what else is known of the same rows, of which these columns are published.
    pub fn absorb(&mut self, other: Self, published: &BTreeSet<String>) {
        self.populations.extend(other.populations);
        self.datasets.extend(other.datasets);
        self.tables.extend(other.tables);
        for (name, marks) in other.contents {
            self.contents.entry(name).or_default().extend(marks);
        }
        let is_chain = self.chain.is_some();
        for (name, system) in other.systems {
            // persons of a chain are counted as they come
            let persons = if is_chain { 0 } else { system.persons };
            let unknown = || SystemEvidence { persons, columns: BTreeMap::new() };
            self.systems.entry(name).or_insert_with(unknown).learn(&system.columns, published);
        }
    }

    /// Counts persons that come into a chain. Other coverages are of the same persons for ever.
    pub fn count_new_persons(&mut self, system: &str, persons: u64) {
        let is_chain = self.chain.is_some();
        if let Some(of) = self.systems.get_mut(system).filter(|_| is_chain) {
            of.persons += persons;
        }
    }
}

/// The populations and key systems of coverages that stand alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CoverageGroup {
    /// The populations.
    pub populations: BTreeSet<String>,
    /// The key systems.
    pub systems: BTreeSet<String>,
}

impl CoverageGroup {
    /// Reads a [`Coverage::group`].
    #[must_use]
    pub fn read(group: &str) -> Option<Self> {
        let (populations, systems) = serde_json::from_str(group).ok()?;
        Some(Self { populations, systems })
    }
}

/// A live coverage as it stands to the rows that are judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveCoverage {
    /// Its number.
    pub id: CoverageId,
    /// What is known of its rows.
    pub coverage: Coverage,
    /// The attributes that its releases published, by the names of the ledger.
    pub published: BTreeSet<String>,
    /// Per shared key system, how many persons are in both.
    pub common: BTreeMap<String, u64>,
    /// Whether their cells say that they are of the same people.
    pub resemblance: Option<Resemblance>,
}
