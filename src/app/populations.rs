//! Populations, and statements about their people.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::remedies::read_request;
use super::republication::{declared, terms_of};
use super::series::{LedgerPlace, written};
use super::service::AppService;
use super::unknown_names::unknown_dataset;
use crate::identity::Caller;
use crate::people::{
    Fold, Place, Population, PopulationError, PopulationKey, PopulationRegistry, Separation, SeparationStatement,
};
use crate::ports::{
    AuditAction, AuditEntry, ChainRecord, Cursor, NamedPopulation, PeopleEntry, PeopleEntryOutcome, SeparationRecord,
    SeriesStatement, Statement, StoreError,
};
use crate::problem::{Fault, FaultRemedy, Kind, Problem, nearest_names, similar_name};
use crate::report::{
    DefinedPopulation, PeopleStatement, PopulationDetails, PopulationItem, PopulationKeyForm, RepublicationProgress,
};
use crate::spec;
use crate::spec::{DisjointPlaces, NamedPlace, PersonFold, PersonKeyRequest, PopulationRequest, child};

/// Most populations of a tenant: every upload reads them all.
const MAX_POPULATIONS: usize = 1_000;

/// Most statements about places that are made at once.
const MAX_STATEMENTS: usize = 10_000;

/// Statements that the answer to a definition has.
const SHOWN_STATEMENTS: u32 = 100;

/// Names that an unknown one may have been meant to be.
const NEAREST_NAMES: usize = 3;

/// How often, and after which pauses, a statement asks again whether a job about the same people has ended.
const MAX_POLLS: u32 = 30;
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// What a contradicted statement leaves.
const NOTHING: &str = "nothing was recorded";

/// A page of populations, by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PopulationPage {
    /// The populations.
    pub items: Vec<PopulationItem>,
    /// The name after which the next page begins; none on the last one.
    pub next: Option<String>,
}

/// What is said of a population, in the order of ids.
struct SaidOfPopulation {
    item: PopulationItem,
    statements: Vec<PeopleStatement>,
    datasets: Vec<Uuid>,
}

/// Statements as they were recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedStatements {
    /// About places.
    pub statements: Vec<PeopleStatement>,
    /// The disclosures of external tables.
    pub disclosures: Vec<Uuid>,
}

impl AppService {
    /// Defines a population, or defines it again, with the statements that its document makes, and says whether it is
    /// new.
    ///
    /// # Errors
    /// `malformed-request`, `invalid-specification` with every fault, `conflict` for what cannot change,
    /// `statement-contradicted`, `work-limit`, or the store's problem. Nothing is entered then.
    pub async fn put_population(
        &self,
        caller: &Caller,
        name: String,
        document: &Value,
    ) -> Result<(DefinedPopulation, bool), Problem> {
        if !spec::is_population_name(&name) {
            let detail = format!("a population's name must be {}", spec::POPULATION_NAME);
            return Err(Problem::new(Kind::MalformedRequest, detail));
        }
        let request = read_request(document, spec::read_population).await?;
        let registry = self.store.people_registry(&caller.tenant).await?;
        let found = registry.populations.len();
        if found >= MAX_POPULATIONS && !registry.populations.contains_key(&name) {
            let detail = format!("there are {found} populations; a tenant has at most {MAX_POPULATIONS}");
            return Err(Problem::new(Kind::WorkLimit, detail).with("limit", MAX_POPULATIONS).with("found", found));
        }
        let separations = match &request.disjoint_from {
            Some(places) => self.separations_from(caller, &name, places, &request.reason).await?,
            None => Vec::new(),
        };
        let audit_entry = self.audit_entry(caller, AuditAction::PutPopulation, name.as_str());
        let entry = PeopleEntry {
            tenant: caller.tenant.clone(),
            population: Some(NamedPopulation { name: name.clone(), population: population_of(request) }),
            separations: made_by(separations, &audit_entry),
            attributes: None,
            at: audit_entry.at,
            audit_entry,
        };
        let is_new = self.enter_people(&entry).await?;
        Ok((self.defined_population(caller, &name).await?, is_new))
    }

    /// Records statements about a population.
    ///
    /// # Errors
    /// `not-found`, `invalid-specification` with every fault, `malformed-body`, `gone` for a dataset, `conflict` or
    /// `statement-contradicted` for what is known otherwise, `work-limit`, or the store's problem. Nothing is entered
    /// then.
    pub async fn state_of_population(
        &self,
        caller: &Caller,
        name: &str,
        document: &Value,
    ) -> Result<RecordedStatements, Problem> {
        known_population(&self.store.people_registry(&caller.tenant).await?, name)?;
        let request = read_request(document, spec::read_population_statements).await?;
        let mut separations = match &request.disjoint_from {
            Some(places) => self.separations_from(caller, name, places, &request.reason).await?,
            None => Vec::new(),
        };
        if let Some(datasets) = request.others {
            separations.push(self.others(caller, datasets, &request.reason).await?);
        }
        let (mut attributes, mut disclosures) = (None, Vec::new());
        if let Some(document) = request.attributes {
            let detail = "a table has name, attributes, protection, and optionally cuts and dataset";
            let statement: Statement =
                serde_json::from_value(document).map_err(|_| Problem::new(Kind::MalformedBody, detail))?;
            let statement = self.checked_statement(caller, name, statement).await?;
            disclosures.extend(statement.tables.iter().map(|table| table.id));
            let statement = self.statement_record(&statement)?;
            attributes = Some(SeriesStatement { series: name.to_owned(), statement });
        }
        let audit_entry = self.audit_entry(caller, AuditAction::StateOfPopulation, name);
        let (tenant, at) = (caller.tenant.clone(), audit_entry.at);
        let separations = made_by(separations, &audit_entry);
        let entry = PeopleEntry { tenant, population: None, separations, attributes, at, audit_entry };
        self.enter_people(&entry).await?;
        // what was declared before counts as it was declared then
        let made: BTreeSet<_> = entry.separations.iter().map(|made| (made.kind, &made.of)).collect();
        let records = self.store.separation_records(&caller.tenant).await?;
        let is_made = |record: &&SeparationRecord| made.contains(&(record.statement.kind, &record.statement.of));
        let statements = records.iter().filter(is_made).map(shown_statement).collect();
        Ok(RecordedStatements { statements, disclosures })
    }

    /// A page of the populations of the caller's tenant.
    ///
    /// # Errors
    /// The store's problem.
    pub async fn populations(
        &self,
        caller: &Caller,
        after: Option<String>,
        limit: u32,
    ) -> Result<PopulationPage, Problem> {
        let registry = self.store.people_registry(&caller.tenant).await?;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = registry.populations.range((from, Bound::Unbounded)).peekable();
        let items: Vec<PopulationItem> =
            rest.by_ref().take(limit as usize).map(|(name, population)| shown_population(name, population)).collect();
        let next = rest.peek().and_then(|_| items.last().map(|last| last.name.clone()));
        Ok(PopulationPage { items, next })
    }

    /// A population of the caller's tenant with a page of what was said and published of it: at most `limit` statements
    /// and datasets together, in the order of their ids.
    ///
    /// # Errors
    /// `not-found`, or the store's problem.
    pub async fn population(
        &self,
        caller: &Caller,
        name: &str,
        after: Option<Cursor>,
        limit: u32,
    ) -> Result<PopulationDetails, Problem> {
        let SaidOfPopulation { item, statements, datasets } = self.said_of(caller, name).await?;
        let mut ids: Vec<Uuid> = statements.iter().map(|statement| statement.id).chain(datasets).collect();
        ids.sort_unstable();
        let place = LedgerPlace::new(&ids, after, limit);
        let ledger = self.ledger_page(caller, name.to_owned(), &place).await?;
        let datasets = ledger.as_ref().map(|ledger| ledger.datasets.clone()).unwrap_or_default();
        let disclosures = ledger.iter().flat_map(|ledger| &ledger.disclosures);
        let mut releases: Vec<Uuid> = disclosures.filter_map(|disclosure| disclosure.release).collect();
        let mut seen = BTreeSet::new();
        releases.retain(|release| seen.insert(*release));
        let statements = statements.into_iter().filter(|statement| place.has(statement.id)).collect();
        let next = place.next.map(|cursor| cursor.to_string());
        let progress = self.republication_progress(caller, name).await?;
        Ok(PopulationDetails { item, statements, datasets, releases, ledger, progress, next })
    }

    /// Destroys the state of a republished population, with the key that it is encrypted under. Its persons cannot be published
    /// in it again. A second time changes nothing.
    ///
    /// # Errors
    /// `not-found` where nothing was republished, or the store's problem.
    pub async fn end_republication(&self, caller: &Caller, name: &str) -> Result<ChainRecord, Problem> {
        known_population(&self.store.people_registry(&caller.tenant).await?, name)?;
        let audit_entry = self.audit_entry(caller, AuditAction::EndChain, name);
        let ended = self.store.end_chain(&caller.tenant, name, audit_entry.at, &audit_entry).await;
        ended.map_err(|error| match error {
            StoreError::NotFound => {
                Problem::new(Kind::NotFound, "nothing of the population was published night after night")
            }
            other => other.into(),
        })
    }

    /// How far a population is that is published night after night; none of one of which nothing was.
    pub(super) async fn republication_progress(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<Option<RepublicationProgress>, StoreError> {
        let chain = self.store.chain(&caller.tenant, name).await?;
        Ok(chain.map(|chain| RepublicationProgress {
            nights: chain.current.map(|state| state.version),
            release: chain.current.map(|state| state.release),
            pending: chain.pending.map(|state| state.release),
            ended_at: chain.ended_at.map(written),
        }))
    }

    /// A population with the first statements about it and its datasets.
    async fn defined_population(&self, caller: &Caller, name: &str) -> Result<DefinedPopulation, Problem> {
        let SaidOfPopulation { item, mut statements, .. } = self.said_of(caller, name).await?;
        let ids: Vec<Uuid> = statements.iter().map(|statement| statement.id).collect();
        let place = LedgerPlace::new(&ids, None, SHOWN_STATEMENTS);
        statements.truncate(SHOWN_STATEMENTS as usize);
        Ok(DefinedPopulation { item, statements, next: place.next.map(|cursor| cursor.to_string()) })
    }

    /// A population with all statements about it and its datasets, and with these.
    async fn said_of(&self, caller: &Caller, name: &str) -> Result<SaidOfPopulation, Problem> {
        let registry = self.store.people_registry(&caller.tenant).await?;
        let item = shown_population(name, known_population(&registry, name)?);
        let datasets = self.store.series_datasets(&caller.tenant, name).await?;
        let mut places: BTreeSet<Place> = datasets.iter().copied().map(Place::Dataset).collect();
        places.insert(Place::Population(name.to_owned()));
        let records = self.store.separation_records(&caller.tenant).await?;
        let is_about = |record: &&SeparationRecord| record.statement.of.iter().any(|place| places.contains(place));
        let statements = records.iter().filter(is_about).map(shown_statement).collect();
        Ok(SaidOfPopulation { item, statements, datasets })
    }

    /// One statement for each place that has no person in common with a population.
    async fn separations_from(
        &self,
        caller: &Caller,
        name: &str,
        places: &DisjointPlaces,
        reason: &str,
    ) -> Result<Vec<SeparationStatement>, Problem> {
        let registry = self.store.people_registry(&caller.tenant).await?;
        let places = match places {
            DisjointPlaces::All => {
                let published = self.store.published_places(&caller.tenant).await?;
                let populations = registry.populations.keys().filter(|other| *other != name);
                let populations = populations.cloned().map(Place::Population);
                let is_table = |place: &Place| matches!(place, Place::Dataset(_));
                populations.chain(published.into_iter().filter(is_table)).collect()
            }
            DisjointPlaces::Named(named) => self.named_places(caller, name, named, &registry).await?,
        };
        must_be_few(places.len())?;
        let own = Place::Population(name.to_owned());
        Ok(disjoint(places.into_iter().map(|place| [own.clone(), place]), reason))
    }

    /// The places of a list, each known and another than the population.
    async fn named_places(
        &self,
        caller: &Caller,
        name: &str,
        named: &[NamedPlace],
        registry: &PopulationRegistry,
    ) -> Result<BTreeSet<Place>, Problem> {
        let (mut places, mut faults) = (BTreeSet::new(), Vec::new());
        for (index, place) in named.iter().enumerate() {
            let pointer = child("/disjoint_from", &index.to_string());
            let itself = "its persons are those of the population itself: name another place";
            match place {
                NamedPlace::Population(other) if other == name => {
                    faults.push(Fault::new(pointer, Kind::ParameterRange, itself));
                }
                NamedPlace::Population(other) => match registry.populations.contains_key(other) {
                    true => drop(places.insert(Place::Population(other.clone()))),
                    false => faults.push(unknown_population(pointer, other, registry)),
                },
                NamedPlace::Dataset(id) => match self.store.dataset(&caller.tenant, *id).await? {
                    None => faults.push(unknown_dataset(pointer, *id)),
                    Some(dataset) if dataset.series == name => {
                        faults.push(Fault::new(pointer, Kind::ParameterRange, itself));
                    }
                    Some(_) => drop(places.insert(Place::Dataset(*id))),
                },
            }
        }
        if faults.is_empty() { Ok(places) } else { Err(Problem::of_faults(faults)) }
    }

    /// The statement that two datasets are of other people although they are alike.
    async fn others(&self, caller: &Caller, datasets: [Uuid; 2], reason: &str) -> Result<SeparationStatement, Problem> {
        let mut faults = Vec::new();
        for (member, id) in ["dataset", "than"].into_iter().zip(datasets) {
            if self.store.dataset(&caller.tenant, id).await?.is_none() {
                faults.push(unknown_dataset(child("/others", member), id));
            }
        }
        let places = datasets.map(Place::Dataset);
        let statement = SeparationStatement::new(Uuid::now_v7(), Separation::Others, places, reason.to_owned());
        match statement {
            Some(statement) if faults.is_empty() => Ok(statement),
            _ => Err(Problem::of_faults(faults)),
        }
    }

    /// Enters a population and statements, and says whether the population is new. Waits a while for jobs that are about
    /// to publish something of the same people.
    async fn enter_people(&self, entry: &PeopleEntry) -> Result<bool, Problem> {
        for _ in 0..MAX_POLLS {
            match self.store.enter_people(entry).await? {
                PeopleEntryOutcome::Recorded { is_new } => return Ok(is_new),
                PeopleEntryOutcome::Refused(refused) => return Err(refused_problem(&refused)),
                PeopleEntryOutcome::Contradicted(ids) => {
                    return Err(contradicted_problem(&entry.separations, &ids, NOTHING));
                }
                PeopleEntryOutcome::Waits(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
        let detail = "a job that speaks of these people is about to end; nothing was recorded";
        Err(Problem::new(Kind::Unavailable, detail).retry_after(5))
    }
}

/// A statement for each pair of different places.
pub(super) fn disjoint(pairs: impl Iterator<Item = [Place; 2]>, reason: &str) -> Vec<SeparationStatement> {
    let made = |places| SeparationStatement::new(Uuid::now_v7(), Separation::Disjoint, places, reason.to_owned());
    pairs.filter_map(made).collect()
}

/// The same statements with who makes them.
pub(super) fn made_by(separations: Vec<SeparationStatement>, entry: &AuditEntry) -> Vec<SeparationStatement> {
    separations.into_iter().map(|statement| statement.by(entry.actor.clone())).collect()
}

/// Refuses what is too much for one transaction.
pub(super) fn must_be_few(found: usize) -> Result<(), Problem> {
    if found <= MAX_STATEMENTS {
        return Ok(());
    }
    let detail = format!(
        "these are {found} statements, and at most {MAX_STATEMENTS} are made at once: upload tables of the same people \
         into one population, or name fewer places"
    );
    Err(Problem::new(Kind::WorkLimit, detail).with("limit", MAX_STATEMENTS).with("found", found))
}

/// A population that is there.
pub(super) fn known_population<'a>(registry: &'a PopulationRegistry, name: &str) -> Result<&'a Population, Problem> {
    registry.populations.get(name).ok_or_else(|| {
        let detail = format!("there is no such population{}", meant(name, registry));
        Problem::new(Kind::NotFound, detail)
    })
}

/// The names that an unknown one may have been meant to be, in words.
fn meant(name: &str, registry: &PopulationRegistry) -> String {
    let nearest = nearest_names(name, registry.populations.keys().map(String::as_str), NEAREST_NAMES);
    if nearest.is_empty() { String::new() } else { format!("; the nearest are {}", nearest.join(", ")) }
}

fn unknown_population(pointer: String, name: &str, registry: &PopulationRegistry) -> Fault {
    let nearest = nearest_names(name, registry.populations.keys().map(String::as_str), NEAREST_NAMES);
    let detail = format!("there is no population {name:?}{}", meant(name, registry));
    let named = |name: &str| FaultRemedy {
        title: format!("name {name}"),
        patch: json!([{"op": "replace", "path": pointer, "value": name}]),
    };
    let known = registry.populations.keys().map(String::as_str);
    let remedies = similar_name(name, known).map(named).into_iter().collect();
    let fault = Fault::new(pointer, Kind::UnknownPopulation, detail).with("nearest", nearest);
    Fault { remedies, ..fault }
}

/// The problem of a population that cannot be as it is asked for.
fn refused_problem(refused: &PopulationError) -> Problem {
    let (kind, repair) = match refused {
        PopulationError::SystemChanged(_) => {
            (Kind::Conflict, "a key system never changes: give keys of another form a key system with another name")
        }
        PopulationError::PopulationChanged => {
            (Kind::Conflict, "name the earlier key systems first, in their order, and add others after them")
        }
        PopulationError::RepublicationChanged => {
            (Kind::Conflict, "define a population with a new name, of people of whom nothing is published")
        }
        PopulationError::SystemTwice(_) | PopulationError::Columns(_) | PopulationError::NoRows => {
            (Kind::MalformedRequest, "correct the document")
        }
    };
    Problem::new(kind, format!("{refused}; {repair}"))
}

/// The problem of statements that published tables show to be wrong.
pub(super) fn contradicted_problem(statements: &[SeparationStatement], wrong: &[Uuid], rest: &str) -> Problem {
    let wrong: BTreeSet<&Uuid> = wrong.iter().collect();
    let of: Vec<&[Place; 2]> =
        statements.iter().filter(|statement| wrong.contains(&statement.id)).map(|statement| &statement.of).collect();
    let named = of.iter().take(NEAREST_NAMES).map(|[a, b]| format!("{a} and {b}")).collect::<Vec<_>>().join("; ");
    let more =
        if of.len() > NEAREST_NAMES { format!("; and {} more pairs", of.len() - NEAREST_NAMES) } else { String::new() };
    let detail = format!(
        "these cannot be declared to have no person in common, as persons or whole tables are in both: {named}{more}; \
         {rest}"
    );
    let remedies = json!([
        {"words": "from now on, upload files into the population that their people belong to",
            "call": "POST /v1/datasets?population=NAME", "body": null, "needs": "datasets:write"},
        {"words": "state the other pairs alone: what is in both is published, and remains so",
            "call": "POST /v1/populations/NAME/statements", "body": null, "needs": "ledger:override"},
    ]);
    Problem::new(Kind::StatementContradicted, detail).with("of", json!(of)).with("remedies", remedies)
}

fn population_of(request: PopulationRequest) -> Population {
    let key =
        |PersonKeyRequest { key_system, columns, fold }| PopulationKey { key_system, columns, fold: fold_of(fold) };
    let first = request.person.first().map(|key| key.key_system.clone()).unwrap_or_default();
    Population {
        republication: request.republication.map(|asked| declared(asked, &first)),
        description: request.description,
        person: request.person.into_iter().map(key).collect(),
        max_rows_per_person: request.max_rows_per_person,
    }
}

const fn fold_of(fold: PersonFold) -> Fold {
    match fold {
        PersonFold::Standard => Fold::Standard,
        PersonFold::Alphanumeric => Fold::Alphanumeric,
        PersonFold::Digits => Fold::Digits,
        PersonFold::Exact => Fold::Exact,
    }
}

const fn fold_name(fold: Fold) -> &'static str {
    match fold {
        Fold::Standard => PersonFold::Standard.as_str(),
        Fold::Alphanumeric => PersonFold::Alphanumeric.as_str(),
        Fold::Digits => PersonFold::Digits.as_str(),
        Fold::Exact => PersonFold::Exact.as_str(),
    }
}

/// A population for readers.
pub(super) fn shown_population(name: &str, population: &Population) -> PopulationItem {
    let key = |key: &PopulationKey| PopulationKeyForm {
        key_system: key.key_system.clone(),
        columns: key.columns.clone(),
        fold: fold_name(key.fold).to_owned(),
    };
    PopulationItem {
        name: name.to_owned(),
        description: population.description.clone(),
        person: population.person.iter().map(key).collect(),
        max_rows_per_person: population.max_rows_per_person,
        republication: terms_of(population),
    }
}

/// A statement for readers.
pub(super) fn shown_statement(record: &SeparationRecord) -> PeopleStatement {
    let SeparationStatement { id, kind, of, reason, actor } = &record.statement;
    PeopleStatement {
        id: *id,
        kind: match kind {
            Separation::Disjoint => "disjoint".to_owned(),
            Separation::Others => "others".to_owned(),
        },
        of: of.iter().map(Place::to_string).collect(),
        reason: reason.clone(),
        recorded_at: written(record.recorded_at),
        actor: actor.clone(),
    }
}
