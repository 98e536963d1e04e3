//! Populations, statements about them, and coverages with their persons and marks.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use uuid::Uuid;

use crate::people::{Coverage, CoverageId, Evidence, KeyedHash, Place, PopulationRegistry, SignatureSample};
use crate::ports::{
    AlikeMark, AnnouncementEnd, CommonMark, CoverageRecord, CoverageSelection, CoverageState, CoveragesAt, LeaseToken,
    LedgerMoment, NewCoverage, PeopleEntry, PeopleEntryOutcome, PeopleStore, SampleId, SeparationRecord, StoreError,
};
use crate::store::rows::{
    CoverageRow, CutsRow, EvidenceRow, KeptSamples, KeySystemRow, PopulationRow, SeparationRow, common_marks, joined,
    number, parted, records as read_all, registry,
};
use crate::store::sql::people as sql;

fn records(rows: Vec<CoverageRow>) -> Vec<CoverageRecord> {
    let mut records: Vec<CoverageRecord> = rows.into_iter().map(CoverageRow::into).collect();
    records.sort_by_key(|record| (record.ticket, record.id));
    records
}

/// Persons that are removed in one transaction: others who write wait for it.
const PERSONS_AT_ONCE: i64 = 20_000;

both_stores! {
    #[async_trait]
    impl PeopleStore for Backend {
        async fn people_registry(&self, tenant: &str) -> Result<PopulationRegistry, StoreError> {
            let mut connection = self.reader().acquire().await.map_err(failed)?;
            registry_of(&mut connection, tenant).await.map_err(failed)
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
                let continued = announced(&mut tx, tenant, coverage).await?.coverage.continues.map(|id| id.0);
                insert_persons(&mut tx, number, coverage.0, continued, persons).await?;
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
                enter_marks(&mut tx, tenant, coverage.0, marks).await?;
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

        async fn published_places(&self, tenant: &str) -> Result<BTreeSet<Place>, StoreError> {
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            live_places(&mut tx, tenant).await
        }

        async fn standing_coverages(&self, tenant: &str, ticket: i64) -> Result<Vec<CoverageRecord>, StoreError> {
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            standing(&mut tx, tenant, ticket).await.map_err(failed)
        }

        async fn ledger_moment(&self, tenant: &str) -> Result<LedgerMoment, StoreError> {
            let mut connection = self.reader().acquire().await.map_err(failed)?;
            moment(&mut connection, tenant).await.map_err(failed)
        }

        async fn select_coverages(
            &self,
            tenant: &str,
            ticket: i64,
            selection: &CoverageSelection,
        ) -> Result<CoveragesAt, StoreError> {
            let mut connection = self.reader().acquire().await.map_err(failed)?;
            let rows = selected_coverages(&mut connection, tenant, ticket, selection).await.map_err(failed)?;
            let samples = read_samples(&mut connection, tenant, &selection.sampled).await?;
            // last: if the caller knows it from before, nothing has changed in between
            let moment = moment(&mut connection, tenant).await.map_err(failed)?;
            Ok(CoveragesAt { moment, records: records(rows), samples })
        }

        async fn common_persons(
            &self,
            tenant: &str,
            system: &str,
            persons: &[KeyedHash],
            except: Option<CoverageId>,
        ) -> Result<BTreeMap<CoverageId, u64>, StoreError> {
            let found = self.find_common_persons(tenant, system, persons, except.map(|id| id.0)).await?;
            found.into_iter().map(|(id, common)| Ok((CoverageId(id), number(common)?))).collect()
        }

        async fn published_persons(
            &self,
            tenant: &str,
            system: &str,
            persons: &[KeyedHash],
        ) -> Result<BTreeSet<KeyedHash>, StoreError> {
            self.find_published_persons(tenant, system, persons, None).await
        }

        async fn persons_of_job(
            &self,
            tenant: &str,
            job: Uuid,
            system: &str,
            persons: &[KeyedHash],
        ) -> Result<BTreeSet<KeyedHash>, StoreError> {
            self.find_published_persons(tenant, system, persons, Some(job)).await
        }

        async fn common_marks(
            &self,
            tenant: &str,
            hashes: &[KeyedHash],
            except: Option<CoverageId>,
        ) -> Result<Vec<CommonMark>, StoreError> {
            common_marks(self.find_common_marks(tenant, hashes, except.map(|id| id.0)).await?)
        }

        async fn sample_cuts(&self, tenant: &str, coverage: CoverageId) -> Result<Vec<bool>, StoreError> {
            let found: Option<CutsRow> =
                run_sql!(query_as.fetch_optional, self.reader(), sql::COVERAGE_CUTS, tenant, coverage.0)
                    .map_err(failed)?;
            Ok(found.ok_or(StoreError::NotFound)?.cuts)
        }

        async fn end_announcement(
            &self,
            tenant: &str,
            coverage: CoverageId,
            end: &AnnouncementEnd,
        ) -> Result<(), StoreError> {
            let end = || async {
                let mut tx = self.begin().await?;
                if !end_announced(&mut tx, tenant, coverage, end).await? {
                    return Err(StoreError::Conflict.into());
                }
                Ok(tx.commit().await?)
            };
            run_transaction("end_announcement", end).await
        }

        async fn void_announcements(
            &self,
            tenant: &str,
            job: Uuid,
            held: Option<LeaseToken>,
        ) -> Result<u64, StoreError> {
            let held = held.map(|token| token.0);
            let end = || async {
                let mut tx = self.begin().await?;
                let ended =
                    run_sql!(query.execute, &mut *tx, sql::VOID_ANNOUNCEMENTS, tenant, job, held)?.rows_affected();
                if ended > 0 {
                    people_changed(&mut tx, tenant).await?;
                }
                tx.commit().await?;
                Ok(ended)
            };
            run_transaction("void_announcements", end).await
        }

        async fn sweep_void_coverages(&self) -> Result<u64, StoreError> {
            let end = || async {
                let mut tx = self.begin().await?;
                let ended: Vec<String> = run_sql!(query_scalar.fetch_all, &mut *tx, sql::VOID_LOST)?;
                for tenant in ended.into_iter().collect::<BTreeSet<String>>() {
                    people_changed(&mut tx, &tenant).await?;
                }
                Ok(tx.commit().await?)
            };
            run_transaction("sweep_void_coverages", end).await?;
            let mut gone = 0;
            loop {
                let ids: Vec<i64> =
                    run_sql!(query_scalar.fetch_all, self.reader(), sql::VOID_COVERAGES).map_err(failed)?;
                if ids.is_empty() {
                    return Ok(gone);
                }
                for id in ids {
                    gone += self.empty_coverage(id).await?;
                }
            }
        }
    }

    impl Backend {
        /// Removes the persons and marks of a coverage, with pauses for others who write.
        async fn empty_coverage(&self, id: i64) -> Result<u64, StoreError> {
            let mut gone = 0;
            loop {
                let remove = || async {
                    let mut tx = self.begin().await?;
                    let persons = run_sql!(query.execute, &mut *tx, DELETE_PERSONS, id, PERSONS_AT_ONCE)?.rows_affected();
                    let marks = delete_marks(&mut tx, id).await?;
                    tx.commit().await?;
                    Ok((persons, marks))
                };
                let (persons, marks) = run_transaction("sweep_void_coverages", remove).await?;
                gone += persons + marks;
                if persons < PERSONS_AT_ONCE.unsigned_abs() {
                    return Ok(gone);
                }
            }
        }
    }

    /// Samples of signatures of those coverages that there are.
    async fn read_samples(
        connection: &mut Connection,
        tenant: &str,
        samples: &BTreeSet<SampleId>,
    ) -> Result<BTreeMap<CoverageId, Vec<SignatureSample>>, StoreError> {
        let mut found: BTreeMap<CoverageId, Vec<SignatureSample>> = BTreeMap::new();
        if samples.is_empty() {
            return Ok(found);
        }
        // of the last coverage whose marks all have rows
        let mut former: Option<(i64, Vec<AlikeMark>)> = None;
        for row in samples_of(connection, tenant, samples).await.map_err(failed)? {
            if row.signatures.is_none() && former.as_ref().is_none_or(|(id, _)| *id != row.id) {
                let marks = marks_of(connection, tenant, row.id).await.map_err(failed)?;
                former = Some((row.id, read_all(marks)?));
            }
            let indexed = former.as_ref().map_or(&[][..], |(_, marks)| marks);
            found.entry(CoverageId(row.id)).or_default().extend(row.sample(indexed)?);
        }
        Ok(found)
    }

    /// All marks of a coverage, by kind and hash.
    pub(in crate::store) async fn all_marks(
        connection: &mut Connection,
        tenant: &str,
        coverage: CoverageId,
    ) -> Result<Vec<AlikeMark>, StoreError> {
        let indexed = read_all(marks_of(connection, tenant, coverage.0).await.map_err(failed)?)?;
        let samples = run_sql!(query_as.fetch_all, connection, sql::SAMPLES, tenant, coverage.0).map_err(failed)?;
        KeptSamples::from_rows(samples)?.with_indexed(indexed)
    }

    /// Adds marks to a coverage, which the transaction holds.
    pub(in crate::store) async fn enter_marks(
        connection: &mut Connection,
        tenant: &str,
        coverage: i64,
        marks: &[AlikeMark],
    ) -> Result<(), TransactionError> {
        let known = run_sql!(query_as.fetch_all, &mut *connection, sql::SAMPLES, tenant, coverage)?;
        let mut samples = KeptSamples::from_rows(known)?;
        samples.add(marks);
        put_samples(connection, coverage, &samples).await?;
        let mut indexed: Vec<AlikeMark> = marks.iter().filter(|mark| mark.is_indexed()).copied().collect();
        indexed.sort_by_key(|mark| (mark.hash, mark.kind));
        indexed.dedup_by_key(|mark| (mark.hash, mark.kind));
        insert_marks(connection, coverage, &indexed).await?;
        Ok(())
    }

    /// Removes the marks of a coverage, and says how many rows they had.
    pub(in crate::store) async fn delete_marks(connection: &mut Connection, coverage: i64) -> Result<u64, sqlx::Error> {
        run_sql!(query.execute, &mut *connection, sql::DELETE_SIGNATURES, coverage)?;
        Ok(run_sql!(query.execute, connection, sql::DELETE_INDEXED_MARKS, coverage)?.rows_affected())
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
                people_changed(connection, tenant).await?;
            }
        }
        Ok(())
    }

    /// Ends an announcement within the transaction of what ends it; says whether it may. It may not if it has ended
    /// otherwise, has no ticket to become live, its target is not live, or it continues another one.
    pub(in crate::store) async fn end_announced(
        connection: &mut Connection,
        tenant: &str,
        coverage: CoverageId,
        end: &AnnouncementEnd,
    ) -> Result<bool, TransactionError> {
        let own = locked(connection, tenant, coverage).await?;
        let state = match end {
            AnnouncementEnd::Void if own.state == CoverageState::Void => return Ok(true),
            AnnouncementEnd::Live => CoverageState::Live,
            AnnouncementEnd::Void | AnnouncementEnd::Joined { .. } => CoverageState::Void,
        };
        let is_ended = own.state != CoverageState::Pending || *end != AnnouncementEnd::Void && own.ticket.is_none();
        let target = if let AnnouncementEnd::Joined { target, .. } = end { Some(*target) } else { None };
        // whom that one has are not listed
        let is_apart = *end != AnnouncementEnd::Void && own.coverage.continues.is_some_and(|id| Some(id) != target);
        if is_ended || is_apart || !join_coverage(connection, tenant, coverage, end).await? {
            return Ok(false);
        }
        run_sql!(query.execute, &mut *connection, sql::SET_STATE, tenant, coverage.0, state.name())?;
        // what becomes live has the persons and marks that it was announced with
        if state == CoverageState::Void {
            people_changed(connection, tenant).await?;
        }
        Ok(true)
    }

    /// Raises the number of changes of persons and marks. No other transaction of the tenant does so until this one ends.
    pub(in crate::store) async fn people_changed(
        connection: &mut Connection,
        tenant: &str,
    ) -> Result<(), sqlx::Error> {
        run_sql!(query.execute, connection, sql::PEOPLE_CHANGED, tenant)?;
        Ok(())
    }

    async fn moment(connection: &mut Connection, tenant: &str) -> Result<LedgerMoment, sqlx::Error> {
        let (ticket, changes) = run_sql!(query_as.fetch_one, connection, sql::LEDGER_MOMENT, tenant)?;
        Ok(LedgerMoment { ticket, changes })
    }

    /// Draws a ticket. No other one of the tenant is drawn until the transaction ends.
    pub(in crate::store) async fn next_ticket(connection: &mut Connection, tenant: &str) -> Result<i64, sqlx::Error> {
        run_sql!(query_scalar.fetch_one, connection, sql::NEXT_TICKET, tenant)
    }

    /// Populations first: the key systems that they name are there.
    pub(in crate::store) async fn registry_of(connection: &mut Connection, tenant: &str) -> Result<PopulationRegistry, sqlx::Error> {
        let populations: Vec<PopulationRow> =
            run_sql!(query_as.fetch_all, &mut *connection, sql::POPULATIONS, tenant)?;
        let systems: Vec<KeySystemRow> = run_sql!(query_as.fetch_all, connection, sql::KEY_SYSTEMS, tenant)?;
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
    ) -> Result<CoverageRecord, TransactionError> {
        let record = locked(connection, tenant, coverage).await?;
        match (record.state, record.ticket) {
            (CoverageState::Pending, None) => Ok(record),
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

}
