//! Coverages of releases from before coverages existed, and of those of another store.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::composition::earlier_of;
use super::error::InputError;
use super::people::{JobPeople, JobPersons, announce};
use crate::people::{Coverage, Evidence};
use crate::ports::{AnnouncementEnd, CoverageRecord, DatasetRecord, NewCoverage, Store, StoreError};

/// Makes coverages of all datasets of a tenant of which something is published and that have none. A dataset whose rows
/// are gone is known by its id and content alone.
///
/// # Errors
/// Those of the store.
pub(crate) async fn cover_earlier_datasets(store: &dyn Store, tenant: &str) -> Result<(), InputError> {
    loop {
        let uncovered = store.uncovered_datasets(tenant).await?;
        if uncovered.is_empty() {
            return Ok(());
        }
        let live = store.standing_coverages(tenant, 0).await?;
        let covered: BTreeSet<Uuid> = live.iter().flat_map(|of| of.coverage.datasets.iter().copied()).collect();
        for dataset in uncovered {
            if !covered.contains(&dataset) {
                let record = store.dataset(tenant, dataset).await?;
                let record = record.ok_or_else(|| StoreError::corrupt("releases are of an unknown dataset"))?;
                cover(store, &record, &live).await?;
            }
            store.mark_covered(tenant, dataset).await?;
        }
    }
}

async fn cover(store: &dyn Store, dataset: &DatasetRecord, live: &[CoverageRecord]) -> Result<(), InputError> {
    let evidence = store.evidence(&dataset.tenant, dataset.id).await?.unwrap_or_default();
    match cover_rows(store, dataset, evidence, live).await {
        // destroyed since: it is known like one whose rows were gone before
        Err(InputError::Purged) => cover_rows(store, dataset, Evidence::default(), live).await,
        covered => covered,
    }
}

async fn cover_rows(
    store: &dyn Store,
    dataset: &DatasetRecord,
    // none of rows that are gone or cannot be read: to all but an equal table it is unknown whose they are
    evidence: Evidence,
    live: &[CoverageRecord],
) -> Result<(), InputError> {
    let DatasetRecord { id, tenant, series, content_hash, .. } = dataset;
    let recorded = store.disclosures(tenant, series, content_hash).await?;
    let earlier = earlier_of(recorded.entries.iter(), recorded.rules.iter())?;
    let published = earlier.disclosures.iter().flat_map(|(_, disclosure)| disclosure.attributes.iter().cloned());
    let new = NewCoverage {
        tenant: tenant.clone(),
        // of many jobs, none of which runs
        job: Uuid::nil(),
        coverage: Coverage::new(*id, dataset.population.as_deref(), &evidence),
        published: published.collect(),
        cuts: evidence.signatures.iter().map(|sample| sample.is_cut).collect(),
    };
    let end = end_of(&new, &evidence, live);
    let people = JobPeople { evidence: evidence.into(), persons: JobPersons::OfDataset(*id) };
    let coverage = announce(store, &new, &people).await?;
    store.draw_ticket(tenant, coverage).await?;
    match store.end_announcement(tenant, coverage, &end).await {
        // a job that met it found that nothing runs that could end it
        Err(StoreError::Conflict) => {
            Err(StoreError::Unavailable("a coverage is made by another process".into()).into())
        }
        ended => Ok(ended?),
    }
}

/// It joins what is known of an equal table of its population, whose rows are gone.
fn end_of(new: &NewCoverage, evidence: &Evidence, live: &[CoverageRecord]) -> AnnouncementEnd {
    let Coverage { populations, datasets, tables, .. } = &new.coverage;
    let is_equal = |record: &&CoverageRecord| {
        !record.coverage.tables.is_disjoint(tables) && !record.coverage.populations.is_disjoint(populations)
    };
    let (Some(equal), Some(dataset)) = (live.iter().find(is_equal), datasets.first()) else {
        return AnnouncementEnd::Live;
    };
    let (mut coverage, mut published) = (equal.coverage.clone(), equal.published.clone());
    let learned = coverage.adopt(*dataset, populations.first().map(String::as_str), evidence, &published);
    published.extend(new.published.iter().cloned());
    AnnouncementEnd::Joined { target: equal.id, coverage: Box::new(coverage), published, learned }
}
