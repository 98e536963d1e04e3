//! The terms of populations whose table is published night after night.

use serde_json::{Value, json};

use crate::inputs::republished_population;
use crate::people::{Population, PopulationRegistry};
use crate::ports::DatasetRecord;
use crate::problem::Fault;
use crate::report::{AutoNewcomers, NewcomersThreshold, RepublicationTerms};
use crate::spec::{RepublishSpec, Specification};

/// The terms of a population, as it declares them.
pub(super) fn terms_of(population: &Population) -> Option<RepublicationTerms> {
    population.republication.as_ref().and_then(|declared| serde_json::from_value(declared.clone()).ok())
}

/// The terms that are asked for a population with a key system, as they are stored.
pub(super) fn declared(asked: RepublishSpec, key_system: &str) -> Value {
    let RepublishSpec { changes, merge, min_newcomers, grace, forget_after } = asked;
    json!(RepublicationTerms {
        key_system: key_system.to_owned(),
        changes,
        merge,
        min_newcomers: min_newcomers.map_or(NewcomersThreshold::Auto(AutoNewcomers::Auto), NewcomersThreshold::Number),
        grace,
        forget_after,
    })
}

/// The document of a job, where what its `republish` leaves out is as the population declares it.
pub(super) fn with_terms(document: &Value, dataset: &DatasetRecord, registry: &PopulationRegistry) -> Option<Value> {
    document["republish"].as_object()?;
    let terms = terms_of(registry.populations.get(dataset.population.as_ref()?)?)?;
    let mut document = document.clone();
    let Value::Object(terms) = json!(terms) else { return None };
    let asked = document["republish"].as_object_mut()?;
    for (member, term) in terms.into_iter().filter(|(member, term)| member != "key_system" && !term.is_null()) {
        asked.entry(member).or_insert(term);
    }
    Some(document)
}

/// What is wrong with the republication of a dataset.
pub(super) fn republication_faults(
    dataset: &DatasetRecord,
    specification: &Specification,
    registry: &PopulationRegistry,
) -> Vec<Fault> {
    republished_population(dataset, specification, registry).err().unwrap_or_default()
}
