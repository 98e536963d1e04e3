//! Named series of earlier versions become populations, with their keys as key systems.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::clock::Clock;
use crate::identity::Caller;
use crate::microdata::is_shown;
use crate::people::{Fold, Population, PopulationKey, PopulationRegistry};
use crate::ports::{AdoptedSeries, AuditAction, AuditEntry, NamedPopulation, SeriesDataset, Store, StoreError};
use crate::spec;

/// Makes a population of each named series; gives their number. The subject of a dataset, or else its record key,
/// identifies persons: equal columns throughout a series are one key system.
///
/// # Errors
/// The store's.
pub async fn adopt_series(store: &Arc<dyn Store>, clock: &Clock) -> Result<usize, StoreError> {
    let mut series: BTreeMap<(String, String), Vec<SeriesDataset>> = BTreeMap::new();
    for dataset in store.datasets_of_series().await? {
        series.entry((dataset.tenant.clone(), dataset.series.clone())).or_default().push(dataset);
    }
    let found = series.len();
    for ((tenant, name), datasets) in series {
        let registry = store.people_registry(&tenant).await?;
        let population = population_name(&name);
        let caller = Caller::upkeep(tenant.clone());
        let audit_entry = AuditEntry::new(&caller, AuditAction::PutPopulation, &population, clock.now());
        let mut defining = DefinedSeries::new(population, &datasets, &registry);
        let purged = datasets.iter().filter(|of| of.is_purged).map(|of| of.dataset).collect();
        let datasets = datasets.iter().map(|of| (of.dataset, defining.known_person(of))).collect();
        let DefinedSeries { name, population, .. } = defining;
        let population = NamedPopulation { name, population };
        store.adopt_series(&AdoptedSeries { tenant, population, datasets, purged, audit_entry }).await?;
    }
    Ok(found)
}

/// The name of a population for a series, some of whose names no population may have.
fn population_name(series: &str) -> String {
    if spec::is_population_name(series) {
        return series.to_owned();
    }
    let plain: String = series
        .chars()
        .map(|letter| if is_shown(letter.encode_utf8(&mut [0; 4])) { letter } else { ' ' })
        .take(490)
        .collect();
    format!("series:{}", plain.trim())
}

/// The population of a series while its key systems are found.
struct DefinedSeries<'a> {
    name: String,
    population: Population,
    /// Whether it was there before, and stays as it is.
    is_known: bool,
    registry: &'a PopulationRegistry,
}

impl<'a> DefinedSeries<'a> {
    fn new(name: String, datasets: &[SeriesDataset], registry: &'a PopulationRegistry) -> Self {
        let known = registry.populations.get(&name).cloned();
        let is_known = known.is_some();
        let population = known.unwrap_or_else(|| Population {
            description: "a series of an earlier version".to_owned(),
            person: Vec::new(),
            max_rows_per_person: datasets.iter().filter_map(|of| of.max_rows_per_subject).max().unwrap_or(1),
            republication: None,
        });
        Self { name, population, is_known, registry }
    }

    /// The same of a dataset with rows: of others no person can be known, though later ones of the population may have the
    /// key.
    fn known_person(&mut self, dataset: &SeriesDataset) -> BTreeMap<String, Vec<String>> {
        let person = self.person(dataset);
        if dataset.is_purged { BTreeMap::new() } else { person }
    }

    /// The columns of the key of a dataset, by its key system; empty if it has no key, or none of a known population.
    fn person(&mut self, dataset: &SeriesDataset) -> BTreeMap<String, Vec<String>> {
        let subject = dataset.subject.iter().map(|subject| vec![subject.clone()]);
        let Some(mut columns) = subject.chain(dataset.record_key.clone()).next() else { return BTreeMap::new() };
        if !self.is_known {
            // the order in which an upload named them said nothing
            columns.sort_unstable();
        }
        let system = self.population.person.iter().find(|key| key.columns == columns).map(|key| key.key_system.clone());
        let system = system.or_else(|| (!self.is_known).then(|| self.add_system(columns.clone())));
        system.map(|system| (system, columns)).into_iter().collect()
    }

    fn add_system(&mut self, columns: Vec<String>) -> String {
        let key_system = self.unused_name();
        self.population.person.push(PopulationKey { key_system: key_system.clone(), columns, fold: Fold::Standard });
        key_system
    }

    /// The name of a key system that is not there yet.
    fn unused_name(&self) -> String {
        let numbered = |number: usize| match number {
            1 => format!("{}/person", self.name),
            number => format!("{}/person-{number}", self.name),
        };
        let own = self.population.person.iter().map(|key| &key.key_system);
        let used: BTreeSet<&String> = self.registry.systems.keys().chain(own).collect();
        (1..).map(numbered).find(|name| !used.contains(name)).unwrap_or_default()
    }
}
