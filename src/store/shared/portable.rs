//! Export and import of the ledger.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::de::IgnoredAny;
use uuid::Uuid;

use crate::people::{CoverageId, KeyedHash};
use crate::ports::{
    AlikeMark, CARRIED_HASHES, CarriedChain, CarriedCoverage, CoverageRecord, DatasetRecord, DestinationLedger,
    HASHES_PER_CALL, ImportConflict, ImportPlan, ImportSummary, LedgerCopy, LedgerTransferStore, PortableChain,
    PortableChainPiece, PortableChainState, PortableCoverage, PortableDataset, PortableDisclosure, PortableHashes,
    PortableKeySystem, PortablePopulation, PortableRelease, PortableSeparation, PortableStatement, PortableVersion,
    ReleaseEntry, SeriesName, StoreError,
};
use crate::store::rows::{
    ChainRow, DatasetRow, DisclosureRow, PersonRange, PortableCoverageRow, PortableKeySystemRow, PortablePopulationRow,
    PortableReleaseRow, PortableRuleRow, PortableSeparationRow, PortableStatementRow, PortableVersionRow, records,
    stored,
};
use crate::store::sql::{chains, datasets, disclosures, people, portable as sql, series as series_sql};

/// The dataset of a release, from a file that has no datasets: nothing is known of it but its content. It is not carried
/// on.
fn dataset_of(release: &PortableRelease) -> PortableDataset {
    PortableDataset {
        id: release.id,
        tenant: release.tenant.clone(),
        name: None,
        series: release.series.clone(),
        same_people: None,
        same_people_reason: None,
        population: None,
        person: BTreeMap::new(),
        record_key: None,
        subject: None,
        max_rows_per_subject: None,
        created_at: release.created_at,
        rows: 0,
        bytes: 0,
        format: "unknown".to_owned(),
        content_hash: release.content_hash,
        overlaps: IgnoredAny,
        fingerprint: IgnoredAny,
    }
}

both_stores! {
    #[async_trait]
    impl LedgerTransferStore for Backend {
        async fn copy_ledger(&self, tenant: Option<&str>) -> Result<LedgerCopy, StoreError> {
            // a transaction, so that all reads are of one moment
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            Ok(read(&mut tx, tenant).await?.copy)
        }

        async fn coverage_persons(
            &self,
            tenant: &str,
            coverage: CoverageId,
            system: &str,
            after: Option<KeyedHash>,
        ) -> Result<Vec<KeyedHash>, StoreError> {
            // the number of a key system never changes
            let mut connection = self.reader().acquire().await.map_err(failed)?;
            let system: Option<i64> =
                run_sql!(query_scalar.fetch_optional, &mut *connection, people::SYSTEM_NUMBER, tenant, system)
                    .map_err(failed)?;
            let system = system.ok_or(StoreError::NotFound)?;
            let range = PersonRange { after, most: CARRIED_HASHES as i64 };
            persons_of(&mut connection, tenant, coverage.0, system, range).await
        }

        async fn coverage_marks(&self, tenant: &str, coverage: CoverageId) -> Result<Vec<AlikeMark>, StoreError> {
            // of one moment: those of a chain are replaced by those of its next night
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            all_marks(&mut tx, tenant, coverage).await
        }

        async fn import_ledger(
            &self,
            copy: &LedgerCopy,
            at: DateTime<Utc>,
        ) -> Result<Result<ImportSummary, ImportConflict>, StoreError> {
            run_transaction("import_ledger", || self.try_import(copy, at)).await
        }

        async fn is_imported(&self, tenant: &str, release: Uuid) -> Result<bool, StoreError> {
            let found: i64 =
                run_sql!(query_scalar.fetch_one, self.reader(), sql::IS_IMPORTED, tenant, release).map_err(failed)?;
            Ok(found > 0)
        }
    }

    impl Backend {
        /// Compares the copy with the ledger here and records what is missing, under the locks of all its series.
        async fn try_import(
            &self,
            copy: &LedgerCopy,
            at: DateTime<Utc>,
        ) -> Result<Result<ImportSummary, ImportConflict>, TransactionError> {
            let mut tx = self.begin().await?;
            // it brings wrapped keys
            self.check_master_key(&mut tx).await?;
            lock_for_import(&mut tx, copy).await?;
            let here = read(&mut tx, None).await?;
            let plan = match copy.plan_for(&here) {
                Ok(plan) => plan,
                Err(conflict) => return Ok(Err(conflict)),
            };
            record(&mut tx, &plan, at).await?;
            tx.commit().await?;
            Ok(Ok(plan.counts()))
        }
    }

    async fn read(connection: &mut Connection, tenant: Option<&str>) -> Result<DestinationLedger, StoreError> {
        let releases: Vec<PortableReleaseRow> =
            run_sql!(query_as.fetch_all, &mut *connection, sql::ALL_RELEASES, tenant).map_err(failed)?;
        let imported = releases.iter().filter(|row| row.imported).map(|row| row.id).collect();
        let disclosures: Vec<DisclosureRow> =
            run_sql!(query_as.fetch_all, &mut *connection, sql::ALL_DISCLOSURES, tenant).map_err(failed)?;
        let rules: Vec<PortableRuleRow> =
            run_sql!(query_as.fetch_all, &mut *connection, sql::ALL_RULES, tenant).map_err(failed)?;
        let versions: Vec<PortableVersionRow> =
            run_sql!(query_as.fetch_all, &mut *connection, sql::ALL_VERSIONS, tenant).map_err(failed)?;
        let datasets: Vec<DatasetRow> =
            run_sql!(query_as.fetch_all, &mut *connection, datasets::ALL_DATASETS, tenant).map_err(failed)?;
        let statements: Vec<PortableStatementRow> =
            run_sql!(query_as.fetch_all, &mut *connection, sql::ALL_STATEMENTS, tenant).map_err(failed)?;
        let copy = LedgerCopy {
            releases: records(releases)?,
            disclosures: disclosures.into_iter().map(PortableDisclosure::from).collect(),
            rules: records(rules)?,
            versions: records(versions)?,
            datasets: records::<_, DatasetRecord>(datasets)?.into_iter().map(PortableDataset::from).collect(),
            statements: statements.into_iter().map(PortableStatement::from).collect(),
            ..LedgerCopy::default()
        };
        let copy = read_people(connection, tenant, copy).await?;
        Ok(DestinationLedger { copy, imported })
    }

    /// Adds key systems, populations, statements about people and coverages.
    async fn read_people(
        connection: &mut Connection,
        tenant: Option<&str>,
        copy: LedgerCopy,
    ) -> Result<LedgerCopy, StoreError> {
        let systems: Vec<PortableKeySystemRow> =
            run_sql!(query_as.fetch_all, &mut *connection, sql::ALL_KEY_SYSTEMS, tenant).map_err(failed)?;
        let populations: Vec<PortablePopulationRow> =
            run_sql!(query_as.fetch_all, &mut *connection, sql::ALL_POPULATIONS, tenant).map_err(failed)?;
        let separations: Vec<PortableSeparationRow> =
            run_sql!(query_as.fetch_all, &mut *connection, sql::ALL_SEPARATIONS, tenant).map_err(failed)?;
        let coverages: Vec<PortableCoverageRow> =
            run_sql!(query_as.fetch_all, &mut *connection, sql::ALL_COVERAGES, tenant).map_err(failed)?;
        let rows: Vec<ChainRow> =
            run_sql!(query_as.fetch_all, &mut *connection, chains::ALL_CHAINS, tenant).map_err(failed)?;
        let mut begun: Vec<PortableChain> = Vec::new();
        for row in rows {
            let chain = chain_of(connection, row).await?;
            // one that has only a key was never used
            if chain.ended_at.is_some() || chain.current.or(chain.pending).is_some() {
                begun.push(chain.into());
            }
        }
        Ok(LedgerCopy {
            chains: begun,
            systems: systems.into_iter().map(PortableKeySystem::from).collect(),
            populations: populations.into_iter().map(PortablePopulation::from).collect(),
            separations: separations.into_iter().map(PortableSeparation::from).collect(),
            coverages: coverages.into_iter().map(PortableCoverage::from).collect(),
            ..copy
        })
    }

    async fn record(
        connection: &mut Connection,
        plan: &ImportPlan<'_>,
        at: DateTime<Utc>,
    ) -> Result<(), TransactionError> {
        record_releases(connection, plan, at).await?;
        record_entries(connection, plan).await?;
        for dataset in &plan.datasets {
            record_dataset(connection, dataset, at).await?;
        }
        for release in &plan.releases {
            let PortableRelease { tenant, series, content_hash, .. } = release;
            let content = content_hash.as_slice();
            let is_known: bool =
                run_sql!(query_scalar.fetch_one, &mut *connection, people::HAS_CONTENT, tenant, series, content)?;
            if !is_known {
                record_dataset(connection, &dataset_of(release), at).await?;
            }
            run_sql!(query.execute, &mut *connection, people::UNCOVER_CONTENT, tenant, series, content)?;
        }
        record_people(connection, plan).await?;
        for statement in &plan.statements {
            let PortableStatement { id, tenant, series, body, recorded_at } = statement;
            run_sql!(
                query.execute, &mut *connection, disclosures::INSERT_STATEMENT, id, tenant, series, Json(body),
                recorded_at
            )?;
        }
        // releases in progress are checked again
        for SeriesName { tenant, series } in &plan.series {
            run_sql!(query.execute, &mut *connection, series_sql::BUMP_SERIES, tenant, series)?;
        }
        Ok(())
    }

    async fn record_people(connection: &mut Connection, plan: &ImportPlan<'_>) -> Result<(), TransactionError> {
        for PortableKeySystem { tenant, name, system } in &plan.systems {
            run_sql!(query.execute, &mut *connection, people::INSERT_KEY_SYSTEM, tenant, name, Json(system))?;
        }
        for PortablePopulation { tenant, name, population } in &plan.populations {
            run_sql!(query.execute, &mut *connection, people::PUT_POPULATION, tenant, name, Json(population))?;
        }
        for PortableSeparation { tenant, statement, recorded_at } in &plan.separations {
            let (id, body) = (statement.id, Json(statement));
            run_sql!(query.execute, &mut *connection, people::INSERT_SEPARATION, id, tenant, body, recorded_at)?;
        }
        for coverage in &plan.coverages {
            record_coverage(connection, coverage).await?;
        }
        let tenants: BTreeSet<&String> = plan.coverages.iter().map(|of| &of.coverage.tenant).collect();
        for tenant in tenants {
            people_changed(connection, tenant).await?;
        }
        for chain in &plan.chains {
            record_chain(connection, chain).await?;
        }
        Ok(())
    }

    /// Records the chain of another store with its state, which replaces an earlier one.
    async fn record_chain(connection: &mut Connection, carried: &CarriedChain<'_>) -> Result<(), TransactionError> {
        let PortableChain { id, tenant, population, wrapped_key, ended_at, state, .. } = carried.chain;
        if carried.is_known {
            lock_chain(connection, *id).await?;
            run_sql!(query.execute, &mut *connection, chains::DELETE_CHAIN_STATES, id)?;
        } else {
            // a job here may have begun one, without a release
            for forget in chains::FORGET_CHAIN {
                run_sql!(query.execute, &mut *connection, forget, tenant, population)?;
            }
            run_sql!(query.execute, &mut *connection, chains::INSERT_CHAIN, id, tenant, population, ended_at)?;
            if ended_at.is_none() {
                run_sql!(query.execute, &mut *connection, chains::INSERT_CHAIN_KEY, id, wrapped_key)?;
            }
        }
        if let Some(at) = ended_at {
            run_sql!(query.execute, &mut *connection, chains::SET_CHAIN_ENDED, id, at)?;
            run_sql!(query.execute, connection, chains::DELETE_CHAIN_KEY, id)?;
            return Ok(());
        }
        let Some(PortableChainState { version, job, attempt, pieces, bytes, release }) = state else { return Ok(()) };
        let attempt = i64::from(*attempt);
        for PortableChainPiece { piece, payload, .. } in &carried.pieces {
            let payload = payload.read_ciphertext().map_err(StoreError::Unread)?;
            run_sql!(
                query.execute, &mut *connection, chains::IMPORT_CHAIN_PIECE, id, job, attempt, i64::from(*piece),
                &payload[..]
            )?;
        }
        run_sql!(
            query.execute, connection, chains::INSERT_CHAIN_STATE, id, false, stored(*version)?, job, attempt,
            i64::from(*pieces), stored(*bytes)?, release
        )?;
        Ok(())
    }

    /// Records a coverage of another store, or adds it to that of the same dataset.
    async fn record_coverage(
        connection: &mut Connection,
        carried: &CarriedCoverage<'_>,
    ) -> Result<(), TransactionError> {
        let PortableCoverage { tenant, coverage, published, cuts, .. } = carried.coverage;
        let ticket = next_ticket(connection, tenant).await?;
        let mut described: Option<CoverageRecord> = None;
        let number = match carried.target {
            Some(target) => {
                let mut known = locked(connection, tenant, target).await?;
                known.coverage.absorb(coverage.clone(), &known.published);
                known.published.extend(published.iter().cloned());
                described = Some(known);
                target.0
            }
            None => {
                // of jobs that do not run here
                let (job, body, published, cuts) = (Uuid::nil(), Json(coverage), Json(published), Json(cuts));
                let id: i64 = run_sql!(
                    query_scalar.fetch_one, &mut *connection, sql::IMPORT_COVERAGE, tenant, job, ticket, body,
                    published, cuts
                )?;
                list_coverage(connection, id, coverage).await?;
                id
            }
        };
        for PortableHashes { system, hashes, .. } in &carried.hashes {
            match system {
                Some(system) => {
                    let of_system = system_number(connection, tenant, system).await?;
                    for some in hashes.read_persons().map_err(StoreError::Unread)?.chunks(HASHES_PER_CALL) {
                        let new = insert_persons(connection, of_system, number, None, some).await?;
                        if let Some(known) = &mut described {
                            known.coverage.count_new_persons(system, new);
                        }
                    }
                }
                None if carried.target.is_none() => {
                    for some in hashes.read_marks().map_err(StoreError::Unread)?.chunks(HASHES_PER_CALL) {
                        enter_marks(connection, tenant, number, some).await?;
                    }
                }
                // marks of the same rows are there
                None => {}
            }
        }
        if let Some(known) = described {
            let (body, published) = (Json(&known.coverage), Json(&known.published));
            run_sql!(query.execute, &mut *connection, people::DESCRIBE_COVERAGE, tenant, number, body, published)?;
            list_coverage(connection, number, &known.coverage).await?;
        }
        for dataset in &coverage.datasets {
            run_sql!(query.execute, &mut *connection, people::COVERED_DATASET, tenant, dataset)?;
        }
        Ok(())
    }

    async fn record_releases(
        connection: &mut Connection,
        plan: &ImportPlan<'_>,
        at: DateTime<Utc>,
    ) -> Result<(), TransactionError> {
        for release in &plan.releases {
            run_sql!(
                query.execute, &mut *connection, sql::IMPORT_RELEASE, release.id, &release.tenant, &release.series,
                release.content_hash.as_slice(), release.reuse_key.as_slice(), &release.method, release.created_at,
                release.status.as_str(), release.was_read, at
            )?;
        }
        for PortableRelease { id, status, was_read, .. } in &plan.advanced {
            run_sql!(query.execute, &mut *connection, sql::ADVANCE_RELEASE, id, status.as_str(), was_read)?;
        }
        Ok(())
    }

    /// Records disclosures and rules of releases, and the versions of their contents.
    async fn record_entries(connection: &mut Connection, plan: &ImportPlan<'_>) -> Result<(), TransactionError> {
        for ReleaseEntry { release, entry } in &plan.disclosures {
            run_sql!(
                query.execute, &mut *connection, sql::IMPORT_DISCLOSURE, entry.id, release.id, &release.tenant,
                &release.series, release.content_hash.as_slice(), &entry.table, Json(&entry.body), entry.recorded_at
            )?;
        }
        for ReleaseEntry { release, entry } in &plan.rules {
            run_sql!(
                query.execute, &mut *connection, sql::IMPORT_RULE, release.id, i64::from(entry.number),
                &release.tenant, &release.series, release.content_hash.as_slice(), Json(&entry.body)
            )?;
        }
        for PortableVersion { tenant, series, content_hash, version } in &plan.versions {
            run_sql!(
                query.execute, &mut *connection, sql::SET_VERSION, tenant, series, content_hash.as_slice(), version
            )?;
        }
        Ok(())
    }

    /// Records a dataset of another store as a purged one.
    async fn record_dataset(
        connection: &mut Connection,
        dataset: &PortableDataset,
        at: DateTime<Utc>,
    ) -> Result<(), TransactionError> {
        run_sql!(
            query.execute, &mut *connection, datasets::IMPORT_DATASET, dataset.id, &dataset.tenant, &dataset.name,
            &dataset.series, dataset.same_people, &dataset.same_people_reason, dataset.record_key.as_ref().map(Json),
            &dataset.subject, dataset.max_rows_per_subject.map(stored).transpose()?, dataset.created_at,
            stored(dataset.rows)?, stored(dataset.bytes)?, &dataset.format, dataset.content_hash.as_slice(), at,
            &dataset.population, Json(&dataset.person)
        )?;
        Ok(())
    }
}
