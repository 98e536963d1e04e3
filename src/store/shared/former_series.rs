//! Named series of earlier versions become populations.

use async_trait::async_trait;
use uuid::Uuid;

use crate::people::{Coverage, CoverageId};
use crate::ports::{AdoptedSeries, CoverageRecord, CoverageState, FormerSeriesStore, SeriesDataset, StoreError};
use crate::store::rows::{SeriesDatasetRow, records};
use crate::store::sql::former_series as sql;

both_stores! {
    #[async_trait]
    impl FormerSeriesStore for Backend {
        async fn datasets_of_series(&self) -> Result<Vec<SeriesDataset>, StoreError> {
            let rows: Vec<SeriesDatasetRow> =
                run_sql!(query_as.fetch_all, self.reader(), sql::UNDECLARED_DATASETS).map_err(failed)?;
            let found: Vec<SeriesDataset> = records(rows)?;
            // the ledger knows an undeclared dataset by its id
            Ok(found.into_iter().filter(|of| of.series != of.dataset.to_string()).collect())
        }

        async fn adopt_series(&self, series: &AdoptedSeries) -> Result<(), StoreError> {
            run_transaction("adopt_series", || self.try_adopt_series(series)).await
        }
    }

    impl Backend {
        async fn try_adopt_series(&self, series: &AdoptedSeries) -> Result<(), TransactionError> {
            let AdoptedSeries { tenant, population, datasets, audit_entry, .. } = series;
            let mut tx = self.begin().await?;
            let ticket = next_ticket(&mut tx, tenant).await?;
            let standing = standing(&mut tx, tenant, ticket).await?;
            let is_live = standing.iter().any(|record| record.coverage.populations.contains(&population.name));
            if define(&mut tx, tenant, population, is_live).await?.is_err() {
                return Err(StoreError::Conflict.into());
            }
            for (dataset, person) in datasets {
                run_sql!(query.execute, &mut *tx, sql::SET_POPULATION, tenant, dataset, &population.name, Json(person))?;
                run_sql!(query.execute, &mut *tx, sql::FORGET_EVIDENCE, dataset)?;
                run_sql!(query.execute, &mut *tx, sql::FORGET_PERSONS, dataset)?;
            }
            let is_adopted = |record: &&CoverageRecord| {
                record.coverage.datasets.iter().any(|dataset| datasets.contains_key(dataset))
            };
            for record in standing.iter().filter(is_adopted) {
                match kept_coverage(record, series) {
                    Some(kept) => keep_coverage(&mut tx, tenant, record, &kept).await?,
                    None => begin_coverage_anew(&mut tx, tenant, record).await?,
                }
            }
            // evidence is collected anew
            people_changed(&mut tx, tenant).await?;
            log(&mut tx, audit_entry).await?;
            Ok(tx.commit().await?)
        }
    }

    /// Makes a live coverage void, and has the coverages of its datasets made anew.
    async fn begin_coverage_anew(
        connection: &mut Connection,
        tenant: &str,
        record: &CoverageRecord,
    ) -> Result<(), TransactionError> {
        let CoverageId(id) = record.id;
        if run_sql!(query.execute, &mut *connection, sql::VOID_LIVE, tenant, id)?.rows_affected() > 0 {
            let datasets: Vec<Uuid> = record.coverage.datasets.iter().copied().collect();
            for dataset in datasets {
                run_sql!(query.execute, &mut *connection, sql::UNCOVER_DATASET, tenant, dataset)?;
            }
        }
        Ok(())
    }

    /// Describes a coverage that stays, and has those of its datasets covered that it no longer names.
    async fn keep_coverage(
        connection: &mut Connection,
        tenant: &str,
        record: &CoverageRecord,
        kept: &Coverage,
    ) -> Result<(), TransactionError> {
        let (CoverageId(id), body, published) = (record.id, Json(kept), Json(&record.published));
        run_sql!(query.execute, &mut *connection, sql::DESCRIBE_COVERAGE, tenant, id, body, published)?;
        list_coverage(connection, id, kept).await?;
        for dataset in record.coverage.datasets.difference(&kept.datasets) {
            run_sql!(query.execute, &mut *connection, sql::UNCOVER_DATASET, tenant, dataset)?;
        }
        Ok(())
    }
}

/// What stays of a live coverage of which some rows are gone: nothing else knows their cells. Its other datasets of the
/// series are covered anew, and join it as equal tables.
fn kept_coverage(record: &CoverageRecord, series: &AdoptedSeries) -> Option<Coverage> {
    let is_gone = record.coverage.datasets.iter().any(|dataset| series.purged.contains(dataset));
    if record.state != CoverageState::Live || !is_gone || record.coverage.tables.is_empty() {
        return None;
    }
    let mut kept = record.coverage.clone();
    kept.populations.insert(series.population.name.clone());
    kept.datasets.retain(|dataset| series.purged.contains(dataset) || !series.datasets.contains_key(dataset));
    Some(kept)
}
