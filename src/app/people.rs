//! Whose rows an upload holds, and what is published of these persons.

use std::collections::{BTreeMap, BTreeSet};

use super::service::AppService;
use super::upload::UploadRequest;
use crate::identity::Caller;
use crate::inputs::declared_datasets;
use crate::people::{
    Evidence, JudgedRows, KeyLayout, KeyedHash, LiveCoverage, NamedColumns, PersonColumns, Place, PopulationRegistry,
    Relation, SeparationStatement, SystemColumns, UnrelatedPolicy, UploadPersonError, relate,
};
use crate::ports::{CoverageRecord, CoverageSelection, DatasetRecord, HASHES_PER_CALL, StoreError};
use crate::problem::{Kind, Problem, nearest_names};
use crate::publication::NoticeKind;
use crate::report::{SpecificationNotice, unrelated_in_words};

/// Populations that a problem names.
const NAMED_POPULATIONS: usize = 3;

/// Persons of a dataset that are looked up for one answer: those with the lowest hashes.
const MAX_COUNTED_PERSONS: u64 = 1 << 17;

/// Places that an answer names.
const MAX_NAMED_PLACES: usize = 100;

/// Whose rows an upload holds, as it says; its columns are not known yet.
pub(super) struct UploadPeople {
    registry: PopulationRegistry,
    /// The population, which the registry has.
    pub(super) population: Option<String>,
    person: PersonColumns,
    max_rows_per_person: Option<u64>,
}

/// How many of some persons were published before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommonPersonCount {
    /// Persons with a release.
    pub count: u64,
    /// Persons that were looked up.
    pub of: u64,
}

/// What was published before of the rows of a dataset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EarlierPublication {
    /// Its persons by the key system that finds most of them; none if no person is identified.
    pub persons: Option<CommonPersonCount>,
    /// Whether a release was made of an equal table.
    pub has_same_table: bool,
    /// Populations and datasets with releases of which it is unknown whether they share persons with this one.
    pub unknown_places: BTreeSet<String>,
}

impl AppService {
    /// Whose rows an upload holds. Nothing of it is read.
    ///
    /// # Errors
    /// `malformed-request`, `unknown-population`, or the store's problem.
    pub(super) async fn upload_people(
        &self,
        caller: &Caller,
        request: &UploadRequest,
    ) -> Result<UploadPeople, Problem> {
        let registry = self.store.people_registry(&caller.tenant).await?;
        let malformed = |detail: &str| Err(Problem::new(Kind::MalformedRequest, detail));
        let population = match (&request.population, &request.series) {
            (Some(population), Some(series)) if population != series => {
                return malformed("series is the former name of population; leave out one of them");
            }
            (population, series) => population.clone().or_else(|| series.clone()),
        };
        check_population_of_key(caller, population.as_deref())?;
        let Some(name) = population else {
            if request.person.is_some() {
                return malformed("person needs a population: a key identifies persons of a population");
            }
            if request.max_rows_per_person.is_some() {
                return malformed("max_rows_per_person needs a population; otherwise use max_rows_per_subject");
            }
            let person = PersonColumns::Inherited;
            return Ok(UploadPeople { registry, population: None, person, max_rows_per_person: None });
        };
        let Some(known) = registry.populations.get(&name) else { return Err(unknown_population(&name, &registry)) };
        let person = match (&request.person, &request.subject) {
            (Some(person), subject) => {
                let person = PersonColumns::parse(person);
                if subject.is_some() && person != PersonColumns::Keyless {
                    return malformed("subject is the former name of person; leave out one of them");
                }
                person
            }
            (None, Some(subject)) if !known.person.is_empty() => {
                PersonColumns::Columns(vec![NamedColumns { system: None, columns: vec![subject.clone()] }])
            }
            (None, _) => PersonColumns::Inherited,
        };
        let is_keyless = known.person.is_empty() || person == PersonColumns::Keyless;
        let most = match (request.max_rows_per_person.or(request.kept_rows()), request.max_rows_per_subject) {
            (Some(_), _) if is_keyless && request.keep.is_none() => {
                return malformed(
                    "max_rows_per_person needs a person key; without one, rows of a person are not counted",
                );
            }
            (Some(one), Some(other)) if one != other && request.keep.is_none() => {
                return malformed("max_rows_per_subject is the former name of max_rows_per_person; leave out one");
            }
            (one, other) => one.or(other),
        };
        Ok(UploadPeople { registry, population: Some(name), person, max_rows_per_person: most })
    }

    /// What was published before of the rows of a dataset, at this moment; `None` of a dataset without evidence.
    ///
    /// # Errors
    /// The store's problem.
    pub async fn published_before(&self, dataset: &DatasetRecord) -> Result<Option<EarlierPublication>, Problem> {
        let kept = &self.readings.evidence;
        let Some(evidence) = kept.read(self.store.as_ref(), dataset).await? else { return Ok(None) };
        let statements = self.store.separations(&dataset.tenant).await?;
        let datasets = declared_datasets(&statements);
        let selection = CoverageSelection { table: evidence.table, datasets, ..CoverageSelection::default() };
        // live coverages alone: no ticket is that low
        let live = self.store.select_coverages(&dataset.tenant, i64::MIN, &selection).await?.records;
        let tables = live.iter().flat_map(|record| &record.coverage.tables);
        let has_same_table = evidence.table.is_some_and(|table| tables.into_iter().any(|other| *other == table));
        let mut persons = None;
        for (system, known) in &evidence.systems {
            let found = self.published_persons(dataset, system, known.persons).await?;
            if persons.is_none_or(|most: CommonPersonCount| found.count > most.count) {
                persons = Some(found);
            }
        }
        let unknown_places = unknown_places(dataset, &evidence, live, &statements);
        Ok(Some(EarlierPublication { persons, has_same_table, unknown_places }))
    }

    /// How many persons of a key system were published.
    async fn published_persons(
        &self,
        dataset: &DatasetRecord,
        system: &str,
        persons: u64,
    ) -> Result<CommonPersonCount, StoreError> {
        let mut found = CommonPersonCount { count: 0, of: 0 };
        for piece in 0.. {
            let hashes = self.store.person_piece(&dataset.tenant, dataset.id, system, piece).await?;
            let Some(hashes) = hashes else { break };
            for some in hashes.chunks(HASHES_PER_CALL) {
                if found.of >= MAX_COUNTED_PERSONS.min(persons) {
                    return Ok(found);
                }
                let published: BTreeSet<KeyedHash> =
                    self.store.published_persons(&dataset.tenant, system, some).await?;
                found.of += some.len() as u64;
                found.count += published.len() as u64;
            }
        }
        Ok(found)
    }
}

/// The places of which it is unknown whether they have persons of the dataset.
fn unknown_places(
    dataset: &DatasetRecord,
    evidence: &Evidence,
    live: Vec<CoverageRecord>,
    statements: &[SeparationStatement],
) -> BTreeSet<String> {
    let publishes = BTreeSet::new();
    let rows = JudgedRows {
        dataset: dataset.id,
        population: dataset.population.as_deref(),
        evidence,
        publishes: &publishes,
        is_republication: false,
    };
    let mut places = BTreeSet::new();
    for CoverageRecord { id, coverage, published, .. } in live {
        // what is unknown depends neither on common persons nor on alike cells
        let live = LiveCoverage { id, coverage, published, common: BTreeMap::new(), resemblance: None };
        if relate(&rows, &live, statements, UnrelatedPolicy::Refuse) == Relation::Unknown {
            let names = live.coverage.places();
            let is_population = |place: &Place| matches!(place, Place::Population(_));
            let has_population = names.iter().any(is_population);
            places.extend(names.into_iter().filter(|place| !has_population || is_population(place)));
        }
    }
    places.iter().take(MAX_NAMED_PLACES).map(Place::to_string).collect()
}

impl UploadPeople {
    /// The keys of a file with these columns.
    ///
    /// # Errors
    /// `person-key-missing`, or `malformed-request` for key systems that the population has not.
    pub(super) fn layout(&self, names: &[String], record_key: Option<&[String]>) -> Result<KeyLayout, Problem> {
        let population = self.population.as_deref();
        let systems = self.registry.layout(population, &self.person, names).map_err(|error| self.problem(error))?;
        let place = |name: &String| names.iter().position(|column| column == name);
        Ok(KeyLayout {
            names: names.to_vec(),
            systems,
            record_key: record_key.into_iter().flatten().filter_map(place).collect(),
            max_rows_per_person: self.max_rows(),
        })
    }

    /// The most rows of a person.
    pub(super) fn max_rows(&self) -> u64 {
        let population = self.population.as_ref().and_then(|name| self.registry.populations.get(name));
        self.max_rows_per_person.or(population.map(|population| population.max_rows_per_person)).unwrap_or(1)
    }

    fn problem(&self, error: UploadPersonError) -> Problem {
        let name = self.population.as_deref().unwrap_or_default();
        let keys = self.registry.populations.get(name).map_or(&[][..], |population| &population.person);
        let systems: Vec<String> = keys.iter().map(|key| key.key_system.clone()).collect();
        match error {
            UploadPersonError::MissingColumns(columns) => {
                let listed = columns.iter().map(|column| format!("{column:?}")).collect::<Vec<_>>().join(", ");
                let detail = match self.person {
                    PersonColumns::Inherited => format!(
                        "the table has the columns of no key system of the population {name:?}; missing are columns \
                         among {listed}: add them, name the key columns of this table with person, or state \
                         person=none"
                    ),
                    _ => format!("person names columns that the table does not have: {listed}"),
                };
                Problem::new(Kind::PersonKeyMissing, detail).with("columns", columns).with("key_systems", systems)
            }
            UploadPersonError::UnknownPopulation(name) => unknown_population(&name, &self.registry),
            UploadPersonError::UnknownSystem(_) => {
                let described = keys.iter().map(|key| format!("{}:{}", key.key_system, key.columns.join("+")));
                let listed = described.collect::<Vec<_>>().join(", ");
                let detail = match listed.as_str() {
                    "" => format!("the population {name:?} has no key system; leave out person"),
                    listed => format!(
                        "person names no key system of the population {name:?}, or another number of columns; its key \
                         systems are {listed}"
                    ),
                };
                Problem::new(Kind::MalformedRequest, detail).with("key_systems", systems)
            }
            error @ (UploadPersonError::NoPopulation | UploadPersonError::SystemTwice(_)) => {
                Problem::new(Kind::MalformedRequest, format!("person is malformed: {error}"))
            }
        }
    }
}

/// Refuses rows that the caller's key is not for.
///
/// # Errors
/// `forbidden`, which names the populations of the key.
pub(super) fn check_population_of_key(caller: &Caller, population: Option<&str>) -> Result<(), Problem> {
    if caller.may_handle_rows_of(population) {
        return Ok(());
    }
    let names = caller.populations.join(", ");
    let detail = format!(
        "the key uploads into and publishes of the population {names} alone: name one with population=, or use a key for \
         these rows"
    );
    Err(Problem::new(Kind::Forbidden, detail).with("populations", caller.populations.clone()))
}

/// The problem of a population that does not exist, with the nearest names.
pub(super) fn unknown_population(name: &str, registry: &PopulationRegistry) -> Problem {
    let nearest = nearest_names(name, registry.populations.keys().map(String::as_str), NAMED_POPULATIONS);
    let detail = match &nearest[..] {
        [] => format!("there is no population {name:?}; PUT /v1/populations/NAME defines one"),
        nearest => {
            let listed = nearest.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            format!("there is no population {name:?}; the nearest names are {listed}")
        }
    };
    Problem::new(Kind::UnknownPopulation, detail).with("nearest", nearest)
}

/// Sets what the record of an upload says of its persons. Where persons have several rows, guarantees hold of persons.
/// Without a person key, the subject is what the upload says.
///
/// # Errors
/// `guarantee-unsupported` when no single column identifies the persons that have several rows.
pub(super) fn describe_people(
    dataset: &mut DatasetRecord,
    people: &UploadPeople,
    systems: &[SystemColumns],
    evidence: &Evidence,
) -> Result<(), Problem> {
    let Some(population) = &people.population else { return Ok(()) };
    dataset.population = Some(population.clone());
    dataset.series.clone_from(population);
    let names = |system: &SystemColumns| system.columns.iter().map(|&column| evidence.names[column].clone()).collect();
    dataset.person = systems.iter().map(|system| (system.system.clone(), names(system))).collect();
    if systems.is_empty() {
        return Ok(());
    }
    dataset.subject = None;
    dataset.max_rows_per_subject = Some(people.max_rows());
    if dataset.contributions.is_some() {
        // its person key is one column
        dataset.subject = systems.iter().find_map(|system| names(system).into_iter().next());
        return Ok(());
    }
    let has_several = |system: &&SystemColumns| {
        evidence.systems.get(&system.system).is_some_and(|known| known.persons < evidence.rows)
    };
    if people.max_rows() == 1 || !systems.iter().any(|system| has_several(&system)) {
        return Ok(());
    }
    let single = systems.iter().filter(has_several).find(|system| system.columns.len() == 1);
    let Some(single) = single else {
        let detail = "persons have several rows, and a key of several columns identifies them; add a column with one \
                      number for each person and state it with person, or set max_rows_per_person to 1";
        return Err(Problem::new(Kind::GuaranteeUnsupported, detail));
    };
    dataset.subject = single.columns.first().map(|&column| evidence.names[column].clone());
    Ok(())
}

/// The warning that other populations may have persons of a release, if there are such.
pub(super) fn unrelated_warning(populations: &BTreeSet<String>) -> Option<SpecificationNotice> {
    let populations: Vec<String> = populations.iter().cloned().collect();
    let detail = unrelated_in_words(&populations);
    let notice = SpecificationNotice { r#type: NoticeKind::PopulationsUnrelated, pointer: None, detail };
    (!populations.is_empty()).then_some(notice)
}

/// The warning that the persons of a dataset are not identified, if they are not.
#[must_use]
pub fn identity_warning(dataset: &DatasetRecord) -> Option<SpecificationNotice> {
    if !dataset.person.is_empty() {
        return None;
    }
    let detail = match &dataset.population {
        Some(population) => format!(
            "no column of the dataset identifies persons of {population}: other tables of these persons cannot be recognized; \
             upload it with person=COLUMN if there is one"
        ),
        None => "the persons of the dataset are not identified: a job is refused while it is unknown whether other published \
                 tables are about them; upload it with a population and a person key"
            .to_owned(),
    };
    Some(SpecificationNotice { r#type: NoticeKind::IdentityContentOnly, pointer: None, detail })
}
