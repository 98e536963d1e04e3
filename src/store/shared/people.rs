//! Populations, statements about them, and coverages with their persons and marks.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use uuid::Uuid;

use crate::people::{
    Coverage, CoverageId, Evidence, KeyedHash, Place, PopulationError, PopulationRegistry, Separation,
    SeparationStatement, SignatureSample,
};
use crate::ports::{
    AlikeMark, AnnouncementEnd, CoverageRecord, CoverageSelection, CoverageState, NamedPopulation, NewCoverage,
    PeopleEntry, PeopleEntryOutcome, PeopleStore, SeparationRecord, SeriesStatement, StoreError,
};
use crate::store::rows::{
    CommonMarkRow, CoverageRow, CutsRow, EvidenceRow, KeySystemRow, PopulationRow, SeparationRow, hash_of, joined,
    number, parted, registry, samples,
};
use crate::store::sql::{disclosures, people as sql, series as series_sql};

/// What the definition of a population changes.
pub(in crate::store) enum Definition {
    New,
    Changed,
    Equal,
}

/// Coverages by the places that statements name them by.
fn by_place(standing: &[CoverageRecord]) -> BTreeMap<Place, Vec<&CoverageRecord>> {
    let mut places: BTreeMap<Place, Vec<&CoverageRecord>> = BTreeMap::new();
    for record in standing {
        for place in record.coverage.places() {
            places.entry(place).or_default().push(record);
        }
    }
    places
}

/// Whether a coverage stands on both sides, or an equal table.
fn have_common_table(one: &[&CoverageRecord], other: &[&CoverageRecord]) -> bool {
    let ids: BTreeSet<CoverageId> = one.iter().map(|record| record.id).collect();
    let tables: BTreeSet<&KeyedHash> = one.iter().flat_map(|record| &record.coverage.tables).collect();
    let is_common = |record: &&CoverageRecord| {
        ids.contains(&record.id) || record.coverage.tables.iter().any(|table| tables.contains(table))
    };
    other.iter().any(is_common)
}

fn have_common_system(one: &[&CoverageRecord], other: &[&CoverageRecord]) -> bool {
    let systems: BTreeSet<&String> = one.iter().flat_map(|record| record.coverage.systems.keys()).collect();
    other.iter().any(|record| record.coverage.systems.keys().any(|name| systems.contains(name)))
}

/// The announced coverage that has to end before a statement is judged: one of a place that the statement names.
fn awaited(statements: &[&SeparationStatement], standing: &[CoverageRecord]) -> Option<CoverageId> {
    let named: BTreeSet<&Place> = statements.iter().flat_map(|statement| &statement.of).collect();
    let is_named = |record: &&CoverageRecord| record.coverage.places().iter().any(|place| named.contains(place));
    standing.iter().filter(|record| record.state == CoverageState::Pending).find(is_named).map(|record| record.id)
}

fn records(rows: Vec<CoverageRow>) -> Vec<CoverageRecord> {
    let mut records: Vec<CoverageRecord> = rows.into_iter().map(CoverageRow::into).collect();
    records.sort_by_key(|record| (record.ticket, record.id));
    records
}

/// The kind of marks that signatures begin with, after that of blocks.
const FIRST_SIGNATURE: i64 = 1;

both_stores! {
    #[async_trait]
    impl PeopleStore for Backend {
        async fn people_registry(&self, tenant: &str) -> Result<PopulationRegistry, StoreError> {
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            registry_of(&mut tx, tenant).await.map_err(failed)
        }

        async fn enter_people(&self, entry: &PeopleEntry) -> Result<PeopleEntryOutcome, StoreError> {
            run_transaction("enter_people", || self.try_enter_people(entry)).await
        }

        async fn separation_records(&self, tenant: &str) -> Result<Vec<SeparationRecord>, StoreError> {
            let rows: Vec<SeparationRow> =
                run_sql!(query_as.fetch_all, self.reader(), sql::SEPARATIONS, tenant).map_err(failed)?;
            Ok(rows.into_iter().map(SeparationRecord::from).collect())
        }

        async fn put_person_piece(
            &self,
            dataset: Uuid,
            system: &str,
            piece: u32,
            persons: &[KeyedHash],
        ) -> Result<(), StoreError> {
            let put = || async {
                let mut tx = self.begin().await?;
                share_dataset(&mut tx, dataset).await?;
                let (piece, hashes) = (i64::from(piece), joined(persons));
                let put = run_sql!(query.execute, &mut *tx, sql::PUT_PERSON_PIECE, dataset, system, piece, hashes)?;
                if put.rows_affected() == 0 {
                    return Err(StoreError::Conflict.into());
                }
                Ok(tx.commit().await?)
            };
            run_transaction("put_person_piece", put).await
        }

        async fn put_evidence(&self, dataset: Uuid, evidence: &Evidence) -> Result<(), StoreError> {
            let put = || async {
                let mut tx = self.begin().await?;
                share_dataset(&mut tx, dataset).await?;
                let put = run_sql!(query.execute, &mut *tx, sql::PUT_EVIDENCE, dataset, Json(evidence))?;
                if put.rows_affected() == 0 {
                    return Err(StoreError::Conflict.into());
                }
                Ok(tx.commit().await?)
            };
            run_transaction("put_evidence", put).await
        }

        async fn datasets_without_evidence(&self) -> Result<Vec<(String, Uuid)>, StoreError> {
            run_sql!(query_as.fetch_all, self.reader(), sql::DATASETS_WITHOUT_EVIDENCE).map_err(failed)
        }

        async fn evidence(&self, tenant: &str, dataset: Uuid) -> Result<Option<Evidence>, StoreError> {
            let row: Option<EvidenceRow> =
                run_sql!(query_as.fetch_optional, self.reader(), sql::EVIDENCE, tenant, dataset).map_err(failed)?;
            Ok(row.map(|row| row.body))
        }

        async fn person_piece(
            &self,
            tenant: &str,
            dataset: Uuid,
            system: &str,
            piece: u32,
        ) -> Result<Option<Vec<KeyedHash>>, StoreError> {
            let piece = i64::from(piece);
            let bytes: Option<Vec<u8>> = run_sql!(
                query_scalar.fetch_optional, self.reader(), sql::PERSON_PIECE, tenant, dataset, system, piece
            ).map_err(failed)?;
            bytes.as_deref().map(parted).transpose()
        }

        async fn uncovered_datasets(&self, tenant: &str) -> Result<Vec<Uuid>, StoreError> {
            run_sql!(query_scalar.fetch_all, self.reader(), sql::UNCOVERED_DATASETS, tenant).map_err(failed)
        }

        async fn mark_covered(&self, tenant: &str, dataset: Uuid) -> Result<(), StoreError> {
            let mark = || async {
                let mut tx = self.begin().await?;
                run_sql!(query.execute, &mut *tx, sql::COVERED_DATASET, tenant, dataset)?;
                Ok(tx.commit().await?)
            };
            run_transaction("mark_covered", mark).await
        }

        async fn announce_coverage(&self, new: &NewCoverage) -> Result<CoverageId, StoreError> {
            let announce = || async {
                let mut tx = self.begin().await?;
                let (body, published, cuts) = (Json(&new.coverage), Json(&new.published), Json(&new.cuts));
                let id: i64 = run_sql!(
                    query_scalar.fetch_one, &mut *tx, sql::INSERT_COVERAGE, &new.tenant, new.job, body, published, cuts
                )?;
                list_coverage(&mut tx, id, &new.coverage).await?;
                tx.commit().await?;
                Ok(CoverageId(id))
            };
            run_transaction("announce_coverage", announce).await
        }

        async fn cover_persons(
            &self,
            tenant: &str,
            coverage: CoverageId,
            system: &str,
            persons: &[KeyedHash],
        ) -> Result<(), StoreError> {
            let cover = || async {
                let mut tx = self.begin().await?;
                let number = system_number(&mut tx, tenant, system).await?;
                announced(&mut tx, tenant, coverage).await?;
                insert_persons(&mut tx, number, coverage.0, persons).await?;
                Ok(tx.commit().await?)
            };
            run_transaction("cover_persons", cover).await
        }

        async fn add_alike_marks(
            &self,
            tenant: &str,
            coverage: CoverageId,
            marks: &[AlikeMark],
        ) -> Result<(), StoreError> {
            let add = || async {
                let mut tx = self.begin().await?;
                announced(&mut tx, tenant, coverage).await?;
                insert_marks(&mut tx, coverage.0, marks).await?;
                Ok(tx.commit().await?)
            };
            run_transaction("add_alike_marks", add).await
        }

        async fn draw_ticket(&self, tenant: &str, coverage: CoverageId) -> Result<i64, StoreError> {
            let draw = || async {
                let mut tx = self.begin().await?;
                let ticket = next_ticket(&mut tx, tenant).await?;
                let record = locked(&mut tx, tenant, coverage).await?;
                if record.state != CoverageState::Pending {
                    return Err(StoreError::Conflict.into());
                }
                if let Some(earlier) = record.ticket {
                    return Ok(earlier);
                }
                run_sql!(query.execute, &mut *tx, sql::SET_TICKET, tenant, coverage.0, ticket)?;
                tx.commit().await?;
                Ok(ticket)
            };
            run_transaction("draw_ticket", draw).await
        }

        async fn standing_coverages(&self, tenant: &str, ticket: i64) -> Result<Vec<CoverageRecord>, StoreError> {
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            standing(&mut tx, tenant, ticket).await.map_err(failed)
        }

        async fn select_coverages(
            &self,
            tenant: &str,
            ticket: i64,
            selection: &CoverageSelection,
        ) -> Result<Vec<CoverageRecord>, StoreError> {
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            let rows = selected_coverages(&mut tx, tenant, ticket, selection).await.map_err(failed)?;
            Ok(records(rows))
        }

        async fn common_persons(
            &self,
            tenant: &str,
            system: &str,
            persons: &[KeyedHash],
        ) -> Result<BTreeMap<CoverageId, u64>, StoreError> {
            let found = self.find_common_persons(tenant, system, persons).await?;
            found.into_iter().map(|(id, common)| Ok((CoverageId(id), number(common)?))).collect()
        }

        async fn published_persons(
            &self,
            tenant: &str,
            system: &str,
            persons: &[KeyedHash],
        ) -> Result<BTreeSet<KeyedHash>, StoreError> {
            let found = self.find_published_persons(tenant, system, persons, None).await?;
            found.iter().map(|bytes| hash_of(bytes)).collect()
        }

        async fn persons_of_job(
            &self,
            tenant: &str,
            job: Uuid,
            system: &str,
            persons: &[KeyedHash],
        ) -> Result<BTreeSet<KeyedHash>, StoreError> {
            let found = self.find_published_persons(tenant, system, persons, Some(job)).await?;
            found.iter().map(|bytes| hash_of(bytes)).collect()
        }

        async fn common_marks(
            &self,
            tenant: &str,
            hashes: &[KeyedHash],
        ) -> Result<Vec<(CoverageId, AlikeMark)>, StoreError> {
            let found: Vec<CommonMarkRow> = self.find_common_marks(tenant, hashes).await?;
            found.into_iter().map(CommonMarkRow::mark).collect()
        }

        async fn signature_samples(
            &self,
            tenant: &str,
            coverage: CoverageId,
        ) -> Result<Vec<SignatureSample>, StoreError> {
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            let found: Option<CutsRow> = run_sql!(
                query_as.fetch_optional, &mut *tx, sql::COVERAGE_CUTS, tenant, coverage.0
            ).map_err(failed)?;
            let CutsRow { cuts } = found.ok_or(StoreError::NotFound)?;
            let rows = marks_of(&mut tx, tenant, coverage.0, FIRST_SIGNATURE).await.map_err(failed)?;
            samples(&cuts, rows)
        }

        async fn end_announcement(
            &self,
            tenant: &str,
            coverage: CoverageId,
            end: &AnnouncementEnd,
        ) -> Result<(), StoreError> {
            let end = || async {
                let mut tx = self.begin().await?;
                end_announced(&mut tx, tenant, coverage, end).await?;
                Ok(tx.commit().await?)
            };
            run_transaction("end_announcement", end).await
        }

        async fn void_announcements(&self, tenant: &str, job: Uuid) -> Result<u64, StoreError> {
            let end = || async {
                let mut tx = self.begin().await?;
                let ended = run_sql!(query.execute, &mut *tx, sql::VOID_ANNOUNCEMENTS, tenant, job)?.rows_affected();
                tx.commit().await?;
                Ok(ended)
            };
            run_transaction("void_announcements", end).await
        }

        async fn sweep_void_coverages(&self) -> Result<u64, StoreError> {
            let sweep = || async {
                let mut tx = self.begin().await?;
                run_sql!(query.execute, &mut *tx, sql::VOID_LOST)?;
                let ids: Vec<i64> = run_sql!(query_scalar.fetch_all, &mut *tx, sql::VOID_COVERAGES)?;
                let mut gone = 0;
                for id in ids {
                    gone += run_sql!(query.execute, &mut *tx, sql::DELETE_COVERED, id)?.rows_affected();
                    gone += run_sql!(query.execute, &mut *tx, sql::DELETE_ALIKE, id)?.rows_affected();
                }
                tx.commit().await?;
                Ok(gone)
            };
            run_transaction("sweep_void_coverages", sweep).await
        }
    }

    impl Backend {
        async fn try_enter_people(&self, entry: &PeopleEntry) -> Result<PeopleEntryOutcome, TransactionError> {
            let mut tx = self.begin().await?;
            // who draws a ticket from now on sees what is entered
            let ticket = next_ticket(&mut tx, &entry.tenant).await?;
            let standing = standing(&mut tx, &entry.tenant, ticket).await?;
            let mut is_new = false;
            let mut is_changed = entry.attributes.is_some();
            if let Some(named) = &entry.population {
                match define(&mut tx, &entry.tenant, named, &standing).await? {
                    Ok(Definition::New) => (is_new, is_changed) = (true, true),
                    Ok(Definition::Changed) => is_changed = true,
                    Ok(Definition::Equal) => {}
                    Err(refused) => return Ok(PeopleEntryOutcome::Refused(refused)),
                }
            }
            let separations = unknown_separations(&mut tx, entry).await?;
            if let Some(id) = awaited(&separations, &standing) {
                return Ok(PeopleEntryOutcome::Waits(id));
            }
            let (places, mut wrong) = (by_place(&standing), Vec::new());
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

    /// Defines a population within a transaction that has drawn a ticket.
    pub(in crate::store) async fn define(
        connection: &mut Connection,
        tenant: &str,
        named: &NamedPopulation,
        standing: &[CoverageRecord],
    ) -> Result<Result<Definition, PopulationError>, sqlx::Error> {
        let NamedPopulation { name, population } = named;
        let mut registry = registry_of(connection, tenant).await?;
        let definition = match registry.populations.get(name) {
            None => Definition::New,
            Some(known) if known == population => return Ok(Ok(Definition::Equal)),
            Some(_) => Definition::Changed,
        };
        let is_live = standing.iter().any(|record| record.coverage.populations.contains(name));
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

    /// Makes void the live coverages of a dataset of which nothing is disclosed any more.
    pub(in crate::store) async fn void_unpublished(
        connection: &mut Connection,
        tenant: &str,
        dataset: Uuid,
    ) -> Result<(), TransactionError> {
        let live: Vec<CoverageRow> =
            run_sql!(query_as.fetch_all, &mut *connection, sql::COVERAGES_OF_DATASET, tenant, dataset)?;
        for CoverageRecord { id, .. } in records(live).into_iter().filter(|of| of.coverage.datasets.contains(&dataset)) {
            // what joins it from now on waits for this transaction, and then finds it void
            let record = locked(connection, tenant, id).await?;
            let mut is_disclosed = false;
            for dataset in &record.coverage.datasets {
                let found: bool =
                    run_sql!(query_scalar.fetch_one, &mut *connection, sql::IS_DISCLOSED, tenant, dataset)?;
                is_disclosed |= found;
            }
            if !is_disclosed && record.state == CoverageState::Live {
                run_sql!(query.execute, &mut *connection, sql::VOID_LIVE, tenant, id.0)?;
            }
        }
        Ok(())
    }

    /// Ends an announcement within the transaction of what ends it.
    pub(in crate::store) async fn end_announced(
        connection: &mut Connection,
        tenant: &str,
        coverage: CoverageId,
        end: &AnnouncementEnd,
    ) -> Result<(), TransactionError> {
        let own = locked(connection, tenant, coverage).await?;
        let state = match end {
            AnnouncementEnd::Void if own.state == CoverageState::Void => return Ok(()),
            AnnouncementEnd::Live => CoverageState::Live,
            AnnouncementEnd::Void | AnnouncementEnd::Joined { .. } => CoverageState::Void,
        };
        if own.state != CoverageState::Pending || *end != AnnouncementEnd::Void && own.ticket.is_none() {
            return Err(StoreError::Conflict.into());
        }
        join_coverage(connection, tenant, coverage, end).await?;
        run_sql!(query.execute, connection, sql::SET_STATE, tenant, coverage.0, state.name())?;
        Ok(())
    }

    /// Draws a ticket. No other one of the tenant is drawn until the transaction ends.
    pub(in crate::store) async fn next_ticket(connection: &mut Connection, tenant: &str) -> Result<i64, sqlx::Error> {
        run_sql!(query_scalar.fetch_one, connection, sql::NEXT_TICKET, tenant)
    }

    async fn registry_of(connection: &mut Connection, tenant: &str) -> Result<PopulationRegistry, sqlx::Error> {
        let systems: Vec<KeySystemRow> = run_sql!(query_as.fetch_all, &mut *connection, sql::KEY_SYSTEMS, tenant)?;
        let populations: Vec<PopulationRow> = run_sql!(query_as.fetch_all, connection, sql::POPULATIONS, tenant)?;
        Ok(registry(systems, populations))
    }

    pub(in crate::store) async fn standing(
        connection: &mut Connection,
        tenant: &str,
        ticket: i64,
    ) -> Result<Vec<CoverageRecord>, sqlx::Error> {
        let rows: Vec<CoverageRow> =
            run_sql!(query_as.fetch_all, connection, sql::STANDING_COVERAGES, tenant, ticket)?;
        Ok(records(rows))
    }

    /// Lists a coverage by its group, tables and datasets.
    pub(in crate::store) async fn list_coverage(
        connection: &mut Connection,
        id: i64,
        coverage: &Coverage,
    ) -> Result<(), sqlx::Error> {
        for mark in &coverage.tables {
            run_sql!(query.execute, &mut *connection, sql::LIST_TABLE, mark.to_bytes().to_vec(), id)?;
        }
        for dataset in &coverage.datasets {
            run_sql!(query.execute, &mut *connection, sql::LIST_DATASET, dataset, id)?;
        }
        run_sql!(query.execute, connection, sql::SET_GROUP, id, coverage.group())?;
        Ok(())
    }

    /// A coverage, which no other transaction changes until this one ends.
    pub(in crate::store) async fn locked(
        connection: &mut Connection,
        tenant: &str,
        coverage: CoverageId,
    ) -> Result<CoverageRecord, TransactionError> {
        let row: Option<CoverageRow> =
            run_sql!(query_as.fetch_optional, connection, LOCKED_COVERAGE, tenant, coverage.0)?;
        Ok(row.map(CoverageRow::into).ok_or(StoreError::NotFound)?)
    }

    /// Holds a coverage that is announced and has no ticket.
    async fn announced(
        connection: &mut Connection,
        tenant: &str,
        coverage: CoverageId,
    ) -> Result<(), TransactionError> {
        let record = locked(connection, tenant, coverage).await?;
        match (record.state, record.ticket) {
            (CoverageState::Pending, None) => Ok(()),
            _ => Err(StoreError::Conflict.into()),
        }
    }

    pub(in crate::store) async fn system_number(
        connection: &mut Connection,
        tenant: &str,
        system: &str,
    ) -> Result<i64, TransactionError> {
        let number: Option<i64> =
            run_sql!(query_scalar.fetch_optional, connection, sql::SYSTEM_NUMBER, tenant, system)?;
        Ok(number.ok_or(StoreError::NotFound)?)
    }

    /// Whether coverages have persons or tables in common that a statement denies.
    async fn contradicts(
        connection: &mut Connection,
        statement: &SeparationStatement,
        places: &BTreeMap<Place, Vec<&CoverageRecord>>,
    ) -> Result<bool, sqlx::Error> {
        let [one, other] = statement.of.each_ref().map(|place| places.get(place).map_or(&[][..], Vec::as_slice));
        if have_common_table(one, other) {
            return Ok(true);
        }
        if !have_common_system(one, other) {
            return Ok(false);
        }
        let numbers = |records: &[&CoverageRecord]| records.iter().map(|record| record.id.0).collect::<Vec<_>>();
        share_persons(connection, &numbers(one), &numbers(other)).await
    }
}
