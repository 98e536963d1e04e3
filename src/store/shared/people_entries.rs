//! Populations and statements about them, entered in the place of a ticket.
//!
//! Of coverages that stand, groups and numbers are read, and the documents of those alone that have no group.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::FromRow;

use crate::people::{CoverageGroup, CoverageId, KeyedHash, Place, PopulationError, Separation, SeparationStatement};
use crate::ports::{
    CoverageRecord, CoverageState, NamedPopulation, PeopleEntry, PeopleEntryOutcome, SeparationRecord, SeriesStatement,
    StoreError,
};
use crate::store::rows::{CoverageRow, SeparationRow};
use crate::store::sql::{disclosures, people as sql, series as series_sql};

/// What the definition of a population changes.
pub(in crate::store) enum Definition {
    New,
    Changed,
    Equal,
}

#[derive(FromRow)]
struct GroupedRow {
    id: i64,
    state: String,
    people_group: String,
}

/// A coverage that stands, by what statements are judged with.
struct PlacedCoverage {
    id: i64,
    state: CoverageState,
    places: BTreeSet<Place>,
    systems: BTreeSet<String>,
    /// The marks of its tables, where they are not listed by its number.
    tables: BTreeSet<KeyedHash>,
}

impl PlacedCoverage {
    fn is_in(&self, places: &BTreeSet<Place>) -> bool {
        self.places.iter().any(|place| places.contains(place))
    }
}

impl From<CoverageRecord> for PlacedCoverage {
    fn from(record: CoverageRecord) -> Self {
        let places = record.coverage.places();
        let CoverageRecord { id, state, coverage, .. } = record;
        Self { id: id.0, state, places, systems: coverage.systems.into_keys().collect(), tables: coverage.tables }
    }
}

fn group_of(text: &str) -> Result<CoverageGroup, StoreError> {
    CoverageGroup::read(text).ok_or_else(|| StoreError::corrupt("a coverage has an unreadable group"))
}

fn populations_of(group: CoverageGroup) -> impl Iterator<Item = Place> {
    group.populations.into_iter().map(Place::Population)
}

/// Coverages by the places that statements name them by.
fn by_place(placed: &[PlacedCoverage]) -> BTreeMap<&Place, Vec<&PlacedCoverage>> {
    let mut places: BTreeMap<&Place, Vec<&PlacedCoverage>> = BTreeMap::new();
    for coverage in placed {
        for place in &coverage.places {
            places.entry(place).or_default().push(coverage);
        }
    }
    places
}

/// Whether a coverage stands on both sides, or an equal table of coverages without a group.
fn have_common_table(one: &[&PlacedCoverage], other: &[&PlacedCoverage]) -> bool {
    let ids: BTreeSet<i64> = one.iter().map(|coverage| coverage.id).collect();
    let tables: BTreeSet<&KeyedHash> = one.iter().flat_map(|coverage| &coverage.tables).collect();
    let is_common = |coverage: &&PlacedCoverage| {
        ids.contains(&coverage.id) || coverage.tables.iter().any(|table| tables.contains(table))
    };
    other.iter().any(is_common)
}

fn have_common_system(one: &[&PlacedCoverage], other: &[&PlacedCoverage]) -> bool {
    let systems: BTreeSet<&String> = one.iter().flat_map(|coverage| &coverage.systems).collect();
    other.iter().any(|coverage| coverage.systems.iter().any(|name| systems.contains(name)))
}

/// The announced coverage that has to end before a statement is judged: one of a place that the statement names.
fn awaited(statements: &[&SeparationStatement], placed: &[PlacedCoverage]) -> Option<CoverageId> {
    let named: BTreeSet<Place> = statements.iter().flat_map(|statement| statement.of.iter().cloned()).collect();
    let pending = placed.iter().filter(|coverage| coverage.state == CoverageState::Pending);
    pending.filter(|coverage| coverage.is_in(&named)).map(|coverage| CoverageId(coverage.id)).next()
}

both_stores! {
    impl Backend {
        pub(in crate::store) async fn try_enter_people(
            &self,
            entry: &PeopleEntry,
        ) -> Result<PeopleEntryOutcome, TransactionError> {
            let mut tx = self.begin().await?;
            // who draws a ticket from now on sees what is entered
            let ticket = next_ticket(&mut tx, &entry.tenant).await?;
            let mut is_new = false;
            let mut is_changed = entry.attributes.is_some();
            if let Some(named) = &entry.population {
                let places = BTreeSet::from([Place::Population(named.name.clone())]);
                let is_live = !placed_coverages(&mut tx, &entry.tenant, ticket, &places).await?.is_empty();
                match define(&mut tx, &entry.tenant, named, is_live).await? {
                    Ok(Definition::New) => (is_new, is_changed) = (true, true),
                    Ok(Definition::Changed) => is_changed = true,
                    Ok(Definition::Equal) => {}
                    Err(refused) => return Ok(PeopleEntryOutcome::Refused(refused)),
                }
            }
            let separations = unknown_separations(&mut tx, entry).await?;
            let named = separations.iter().flat_map(|statement| statement.of.iter().cloned()).collect();
            let placed = placed_coverages(&mut tx, &entry.tenant, ticket, &named).await?;
            if let Some(id) = awaited(&separations, &placed) {
                return Ok(PeopleEntryOutcome::Waits(id));
            }
            let (places, mut wrong) = (by_place(&placed), Vec::new());
            for statement in &separations {
                if statement.kind == Separation::Disjoint && contradicts(&mut tx, statement, &places).await? {
                    wrong.push(statement.id);
                }
                let (id, body) = (statement.id, Json(*statement));
                run_sql!(query.execute, &mut *tx, sql::INSERT_SEPARATION, id, &entry.tenant, body, entry.at)?;
            }
            if !wrong.is_empty() {
                return Ok(PeopleEntryOutcome::Contradicted(wrong));
            }
            if let Some(SeriesStatement { series, statement }) = &entry.attributes {
                let (id, body, at) = (statement.id, Json(&statement.body), statement.recorded_at);
                run_sql!(query.execute, &mut *tx, disclosures::INSERT_STATEMENT, id, &entry.tenant, series, body, at)?;
                run_sql!(query.execute, &mut *tx, series_sql::BUMP_SERIES, &entry.tenant, series)?;
            }
            if is_changed || !separations.is_empty() {
                log(&mut tx, &entry.audit_entry).await?;
                tx.commit().await?;
            }
            Ok(PeopleEntryOutcome::Recorded { is_new })
        }
    }

    /// The coverages that stand before a ticket, of some places.
    async fn placed_coverages(
        connection: &mut Connection,
        tenant: &str,
        ticket: i64,
        named: &BTreeSet<Place>,
    ) -> Result<Vec<PlacedCoverage>, TransactionError> {
        if named.is_empty() {
            return Ok(Vec::new());
        }
        let mut of_datasets: BTreeMap<i64, BTreeSet<Place>> = BTreeMap::new();
        for place in named {
            let Place::Dataset(dataset) = place else { continue };
            let ids: Vec<i64> = run_sql!(query_scalar.fetch_all, &mut *connection, sql::LISTED_OF_DATASET, dataset)?;
            for id in ids {
                of_datasets.entry(id).or_default().insert(place.clone());
            }
        }
        let rows: Vec<GroupedRow> =
            run_sql!(query_as.fetch_all, &mut *connection, sql::GROUPED_COVERAGES, tenant, ticket)?;
        let mut groups: BTreeMap<String, CoverageGroup> = BTreeMap::new();
        let mut found = Vec::new();
        for GroupedRow { id, state, people_group } in rows {
            if !groups.contains_key(&people_group) {
                groups.insert(people_group.clone(), group_of(&people_group)?);
            }
            let CoverageGroup { populations, systems } = groups[&people_group].clone();
            let populations = populations.into_iter().map(Place::Population).filter(|place| named.contains(place));
            let places: BTreeSet<Place> = populations.chain(of_datasets.remove(&id).unwrap_or_default()).collect();
            if !places.is_empty() {
                let state = CoverageState::from_name(&state)?;
                found.push(PlacedCoverage { id, state, places, systems, tables: BTreeSet::new() });
            }
        }
        let rest: Vec<CoverageRow> =
            run_sql!(query_as.fetch_all, connection, sql::UNGROUPED_COVERAGES, tenant, ticket)?;
        let rest = rest.into_iter().map(|row| PlacedCoverage::from(CoverageRecord::from(row)));
        found.extend(rest.filter(|coverage| coverage.is_in(named)));
        Ok(found)
    }

    /// The populations of which something is published, and the tables without one, each by one of its datasets.
    pub(in crate::store) async fn live_places(
        connection: &mut Connection,
        tenant: &str,
    ) -> Result<BTreeSet<Place>, StoreError> {
        let groups: Vec<String> =
            run_sql!(query_scalar.fetch_all, &mut *connection, sql::LIVE_GROUPS, tenant).map_err(failed)?;
        let mut places = BTreeSet::new();
        for group in groups {
            places.extend(populations_of(group_of(&group)?));
        }
        // no pending one has a ticket that low
        let rest: Vec<CoverageRow> =
            run_sql!(query_as.fetch_all, connection, sql::UNGROUPED_COVERAGES, tenant, i64::MIN).map_err(failed)?;
        for CoverageRecord { coverage, .. } in rest.into_iter().map(CoverageRecord::from) {
            let dataset = coverage.datasets.first().filter(|_| coverage.populations.is_empty()).copied();
            places.extend(coverage.populations.into_iter().map(Place::Population));
            places.extend(dataset.map(Place::Dataset));
        }
        Ok(places)
    }

    /// Defines a population within a transaction that has drawn a ticket.
    pub(in crate::store) async fn define(
        connection: &mut Connection,
        tenant: &str,
        named: &NamedPopulation,
        is_live: bool,
    ) -> Result<Result<Definition, PopulationError>, sqlx::Error> {
        let NamedPopulation { name, population } = named;
        let mut registry = registry_of(connection, tenant).await?;
        let definition = match registry.populations.get(name) {
            None => Definition::New,
            Some(known) if known == population => return Ok(Ok(Definition::Equal)),
            Some(_) => Definition::Changed,
        };
        if let Err(refused) = registry.define(name, population.clone(), is_live) {
            return Ok(Err(refused));
        }
        for key in &population.person {
            let system = &registry.systems[&key.key_system];
            run_sql!(query.execute, &mut *connection, sql::INSERT_KEY_SYSTEM, tenant, &key.key_system, Json(system))?;
        }
        run_sql!(query.execute, connection, sql::PUT_POPULATION, tenant, name, Json(population))?;
        Ok(Ok(definition))
    }

    /// The statements that were not made before, each once.
    async fn unknown_separations<'a>(
        connection: &mut Connection,
        entry: &'a PeopleEntry,
    ) -> Result<Vec<&'a SeparationStatement>, sqlx::Error> {
        if entry.separations.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<SeparationRow> = run_sql!(query_as.fetch_all, connection, sql::SEPARATIONS, &entry.tenant)?;
        let known: Vec<SeparationStatement> =
            rows.into_iter().map(|row| SeparationRecord::from(row).statement).collect();
        let mut made: BTreeSet<(Separation, &[Place; 2])> =
            known.iter().map(|statement| (statement.kind, &statement.of)).collect();
        let mut unknown = Vec::new();
        for statement in &entry.separations {
            if made.insert((statement.kind, &statement.of)) {
                unknown.push(statement);
            }
        }
        Ok(unknown)
    }

    /// Whether coverages have persons or tables in common that a statement denies.
    async fn contradicts(
        connection: &mut Connection,
        statement: &SeparationStatement,
        places: &BTreeMap<&Place, Vec<&PlacedCoverage>>,
    ) -> Result<bool, sqlx::Error> {
        let [one, other] = statement.of.each_ref().map(|place| places.get(place).map_or(&[][..], Vec::as_slice));
        if one.is_empty() || other.is_empty() {
            return Ok(false);
        }
        let numbers = |coverages: &[&PlacedCoverage]| coverages.iter().map(|coverage| coverage.id).collect::<Vec<_>>();
        let (first, second) = (numbers(one), numbers(other));
        if have_common_table(one, other) || share_tables(connection, &first, &second).await? {
            return Ok(true);
        }
        if !have_common_system(one, other) {
            return Ok(false);
        }
        share_persons(connection, &first, &second).await
    }
}
