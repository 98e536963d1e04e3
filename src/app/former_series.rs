//! Named series of earlier versions become populations, with their keys as key systems.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use crate::clock::Clock;
use crate::identity::Caller;
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
        let (population, datasets) = identified(population, &datasets, &registry);
        store.adopt_series(&AdoptedSeries { tenant, population, datasets, audit_entry }).await?;
    }
    Ok(found)
}

/// The name of a population for a series, some of whose names no population may have.
fn population_name(series: &str) -> String {
    if spec::is_population_name(series) {
        return series.to_owned();
    }
    let plain: String = series.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(490).collect();
    format!("series:{}", plain.trim())
}

/// A population, and per dataset the columns of its keys.
fn identified(
    name: String,
    datasets: &[SeriesDataset],
    registry: &PopulationRegistry,
) -> (NamedPopulation, BTreeMap<Uuid, BTreeMap<String, Vec<String>>>) {
    let mut population = registry.populations.get(&name).cloned().unwrap_or_else(|| Population {
        description: "a series of an earlier version".to_owned(),
        person: Vec::new(),
        max_rows_per_person: datasets.iter().filter_map(|of| of.max_rows_per_subject).max().unwrap_or(1),
        is_republished: false,
    });
    let is_known = registry.populations.contains_key(&name);
    let mut persons = BTreeMap::new();
    for dataset in datasets {
        let columns = dataset.subject.clone().map(|subject| vec![subject]).or_else(|| dataset.record_key.clone());
        let mut person = BTreeMap::new();
        if let Some(columns) = columns {
            let known = population.person.iter().find(|key| key.columns == columns).map(|key| key.key_system.clone());
            let system = match known {
                None if is_known => None,
                None => {
                    let key_system = unused_name(&name, &population, registry);
                    let key = PopulationKey {
                        key_system: key_system.clone(),
                        columns: columns.clone(),
                        fold: Fold::Standard,
                    };
                    population.person.push(key);
                    Some(key_system)
                }
                known => known,
            };
            person.extend(system.map(|system| (system, columns)));
        }
        persons.insert(dataset.dataset, person);
    }
    (NamedPopulation { name, population }, persons)
}

/// The name of a key system that is not there yet.
fn unused_name(population: &str, defined: &Population, registry: &PopulationRegistry) -> String {
    let is_used =
        |name: &String| registry.systems.contains_key(name) || defined.person.iter().any(|key| key.key_system == *name);
    let numbered = |number: usize| match number {
        1 => format!("{population}/person"),
        number => format!("{population}/person-{number}"),
    };
    (1..).map(numbered).find(|name| !is_used(name)).unwrap_or_default()
}
