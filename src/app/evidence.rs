//! The evidence of datasets that are stored: of those of earlier versions it is computed anew.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;

use super::blocking::run_blocking;
use crate::control::Control;
use crate::inputs::{Engines, InputEnv, KeptReadings, StoredRows, evidence_problem, keep_evidence};
use crate::microdata::formats::IngestLimits;
use crate::people::{Evidence, EvidenceCollector};
use crate::ports::{DatasetRecord, Store, StoreError};
use crate::problem::{Kind, Problem};
use crate::vault::Vault;

/// Collects the evidence of the datasets that have none; gives the number of datasets that have it now. A dataset that
/// cannot be read is logged and stays without.
///
/// # Errors
/// The store's.
pub async fn collect_missing_evidence(
    store: &Arc<dyn Store>,
    vault: &Arc<Vault>,
    spool: &Path,
) -> Result<u64, StoreError> {
    let mut collected = 0;
    for (tenant, id) in store.datasets_without_evidence().await? {
        let Some(dataset) = store.dataset(&tenant, id).await? else { continue };
        match evidence_of(store, vault, spool, &dataset).await {
            Ok(_) => collected += 1,
            // purged meanwhile
            Err(problem) if problem.kind == Kind::Gone => {}
            Err(problem) => {
                tracing::error!(dataset.id = %id, problem = problem.detail, "a dataset has no evidence of its rows");
            }
        }
    }
    Ok(collected)
}

/// The evidence of a dataset, with its persons in the store. It is collected from the rows if it is not there yet.
///
/// # Errors
/// `gone` when the dataset is purged, or the problem of the store or the spool.
pub async fn evidence_of(
    store: &Arc<dyn Store>,
    vault: &Arc<Vault>,
    spool: &Path,
    dataset: &DatasetRecord,
) -> Result<Evidence, Problem> {
    if let Some(known) = store.evidence(&dataset.tenant, dataset.id).await? {
        return Ok(known);
    }
    let env = InputEnv {
        handle: Handle::current(),
        store: Arc::clone(store),
        vault: Arc::clone(vault),
        limits: IngestLimits::default(),
        readings: KeptReadings::default(),
        spool: spool.to_owned(),
        engines: Engines::default(),
    };
    let (spool, of): (PathBuf, DatasetRecord) = (spool.to_owned(), dataset.clone());
    let collected =
        run_blocking("the collection of evidence", move |control| collect(&env, &of, &spool, control)).await?;
    match collected {
        // another process was first
        Err(problem) if problem.kind == Kind::Conflict => {
            let known = store.evidence(&dataset.tenant, dataset.id).await?;
            known.ok_or_else(|| Problem::new(Kind::Gone, "the dataset was purged meanwhile"))
        }
        collected => collected,
    }
}

fn collect(env: &InputEnv, dataset: &DatasetRecord, spool: &Path, control: &Control) -> Result<Evidence, Problem> {
    let rows = StoredRows::open(env, dataset, None)?;
    let registry = env.handle.block_on(env.store.people_registry(&dataset.tenant))?;
    let hasher = env.vault.content_hasher(&dataset.tenant);
    let mut collector = EvidenceCollector::new(hasher, rows.key_layout(&registry)?, spool);
    for number in 0..dataset.chunks {
        control.check().map_err(|cancelled| evidence_problem(cancelled.into()))?;
        collector.add(&rows.chunk(number)?, |_| true).map_err(evidence_problem)?;
    }
    keep_evidence(&env.handle, env.store.as_ref(), dataset.id, collector, control).map_err(evidence_problem)
}
