//! Jobs that publish a population night after night: by whose terms, by which keys, and whose rows.

use serde::Deserialize;
use serde_json::{Value, json};

use super::context::JobContext;
use super::env::InputEnv;
use super::error::InputError;
use crate::control::Control;
use crate::engine;
use crate::microdata::Chunk;
use crate::people::{PopulationRegistry, SystemColumns, person_hashes};
use crate::ports::{DatasetRecord, StoreError};
use crate::problem::{Fault, FaultRemedy, Kind, Problem};
use crate::report::RepublicationTerms;
use crate::spec::{RepublishSpec, Specification};

/// What a job republishes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RepublishedPopulation {
    /// The population.
    pub(crate) name: String,
    /// The key system by which its persons are known from night to night.
    pub(crate) key_system: String,
    /// The key system with the columns that have it in this dataset, as a term of the population: with other columns, known persons
    /// would be newcomers.
    pub(crate) key: String,
}

/// What a specification republishes of a dataset; none if it publishes once.
///
/// # Errors
/// Every fault: the population has to declare republication, with these terms, and the dataset needs its keys.
pub(crate) fn republished_population(
    dataset: &DatasetRecord,
    specification: &Specification,
    registry: &PopulationRegistry,
) -> Result<Option<RepublishedPopulation>, Vec<Fault>> {
    let Some(asked) = specification.republish else { return Ok(None) };
    let fault = |kind, detail: String| vec![Fault::new("/republish", kind, detail)];
    let Some(name) = dataset.population.as_ref() else {
        let detail = "a population is published night after night: upload the dataset into one".to_owned();
        return Err(fault(Kind::RepublishNeedsRecordKey, detail));
    };
    let declared = registry.populations.get(name).and_then(|population| population.republication.as_ref());
    let Some(declared) = declared else {
        let detail = format!(
            "the population {name} is published once: declare its republication with PUT /v1/populations before anything of it \
             is published"
        );
        return Err(fault(Kind::RepublishUnsupported, detail));
    };
    let Ok(terms) = RepublicationTerms::deserialize(declared) else {
        return Err(fault(Kind::RepublishUnsupported, format!("what the population {name} declares cannot be read")));
    };
    let faults = differences(&asked, &terms);
    if !faults.is_empty() {
        return Err(faults);
    }
    let Some(columns) = dataset.person.get(&terms.key_system) else {
        let detail = format!(
            "persons of the population {name} are known by the key system {}: upload the dataset with its columns",
            terms.key_system
        );
        return Err(fault(Kind::RepublishNeedsRecordKey, detail));
    };
    let key = json!([terms.key_system, columns]).to_string();
    Ok(Some(RepublishedPopulation { name: name.clone(), key_system: terms.key_system, key }))
}

/// The terms that differ from those of the population.
fn differences(asked: &RepublishSpec, terms: &RepublicationTerms) -> Vec<Fault> {
    let pairs = [
        ("changes", json!(asked.changes), json!(terms.changes)),
        ("merge", json!(asked.merge), json!(terms.merge)),
        ("grace", json!(asked.grace), json!(terms.grace)),
    ];
    let fault = |(member, asked, declared): (&str, Value, Value)| {
        let pointer = format!("/republish/{member}");
        let detail = format!("the population declares {declared}, where {asked} is asked for");
        let patch = json!([{"op": "add", "path": pointer, "value": declared}]);
        let fault = Fault::new(pointer, Kind::RepublishSpecificationChanged, detail);
        let mut fault = fault.with("member", member).with("begun", declared);
        fault.remedies.push(FaultRemedy { title: format!("keep the {member} of the population"), patch });
        fault
    };
    pairs.into_iter().filter(|(_, asked, declared)| asked != declared).map(fault).collect()
}

impl JobContext {
    /// What the job republishes; none if it publishes once.
    ///
    /// # Errors
    /// [`InputError::Refused`] with every fault, or the store's.
    pub(crate) async fn republished(&self, env: &InputEnv) -> Result<Option<RepublishedPopulation>, InputError> {
        if self.specification.republish.is_none() {
            return Ok(None);
        }
        let registry = env.store.people_registry(&self.dataset.tenant).await?;
        let found = republished_population(&self.dataset, &self.specification, &registry);
        found.map_err(|faults| InputError::Refused(Problem::of_faults(faults)))
    }

    /// The keyed hash of the person of each row, in the order of the dataset; on a blocking thread.
    ///
    /// # Errors
    /// [`InputError`]
    pub(crate) fn persons_of_rows(
        &self,
        env: &InputEnv,
        system: &str,
        control: &Control,
    ) -> Result<Vec<[u8; 16]>, InputError> {
        let registry = env.handle.block_on(env.store.people_registry(&self.dataset.tenant))?;
        let rows = self.stored_rows(env)?;
        let layout = rows.key_layout(&registry)?;
        let key = layout.systems.iter().find(|key| key.system == system);
        let key = key.ok_or_else(|| StoreError::corrupt("a republished dataset has no key of its persons"))?;
        let read = SystemColumns { columns: (0..key.columns.len()).collect(), ..key.clone() };
        let hasher = env.vault.content_hasher(&self.dataset.tenant);
        let mut persons = Vec::with_capacity(self.dataset.rows as usize);
        for number in 0..rows.chunks() {
            control.check()?;
            let chunk: Chunk = rows.columns(number, &key.columns)?;
            for person in person_hashes(&hasher, &read, &chunk) {
                let person = person.ok_or_else(|| StoreError::corrupt("a row has no key of its person"))?;
                persons.push(person.to_bytes());
            }
        }
        if persons.len() as u64 != self.dataset.rows {
            return Err(StoreError::corrupt("a dataset has other rows than persons").into());
        }
        Ok(persons)
    }

    /// The bytes of memory that the night takes in addition to a release.
    pub(super) async fn night_memory(&self, env: &InputEnv) -> Result<u64, StoreError> {
        let Some(name) = self.dataset.population.as_ref().filter(|_| self.specification.republish.is_some()) else {
            return Ok(0);
        };
        let chain = env.store.chain(&self.dataset.tenant, name).await?;
        let state = chain.and_then(|chain| chain.current).map_or(0, |state| state.bytes);
        Ok(engine::night_memory(self.dataset.rows, state))
    }
}
