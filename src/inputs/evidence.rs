//! The evidence of the rows of a dataset, kept with its persons, and why there is none.

use std::collections::BTreeMap;

use tokio::runtime::Handle;
use uuid::Uuid;

use crate::control::Control;
use crate::microdata::formats::IngestError;
use crate::people::{ContributionError, Evidence, EvidenceCollector, EvidenceError, KeyedHash};
use crate::ports::{Store, StoreError};
use crate::problem::{Kind, Problem};
use crate::vault::ContentHasher;

/// Ends a collection: keeps the persons in pieces, and then the evidence.
///
/// # Errors
/// Those of the collector. A failure of the store is [`EvidenceError::Put`].
pub(crate) fn keep_evidence(
    handle: &Handle,
    store: &dyn Store,
    dataset: Uuid,
    collector: EvidenceCollector<ContentHasher>,
    control: &Control,
) -> Result<Evidence, EvidenceError> {
    let failed = |error: StoreError| EvidenceError::Put(Box::new(error));
    let mut pieces: BTreeMap<String, u32> = BTreeMap::new();
    let put = |system: &str, persons: &[KeyedHash]| {
        let piece = pieces.entry(system.to_owned()).or_default();
        handle.block_on(store.put_person_piece(dataset, system, *piece, persons)).map_err(failed)?;
        *piece += 1;
        Ok(())
    };
    let evidence = collector.finish(control, put)?;
    handle.block_on(store.put_evidence(dataset, &evidence)).map_err(failed)?;
    Ok(evidence)
}

/// The problem of a table of which rows cannot be chosen.
pub(crate) fn contribution_problem(error: ContributionError) -> Problem {
    let detail = error.to_string();
    match error {
        ContributionError::Ingest(error) => error.into(),
        ContributionError::Keyless { row, column } => {
            Problem::new(Kind::UploadMalformed, detail).with("row", row).with("column", column)
        }
        ContributionError::UnknownOrder(column) => Problem::new(Kind::MalformedRequest, detail).with("column", column),
        ContributionError::Cancelled(_) => Problem::new(Kind::Unavailable, "the choice of rows was stopped"),
    }
}

/// The answer where the evidence of a table cannot be collected.
pub(crate) fn evidence_problem(error: EvidenceError) -> Problem {
    let detail = error.to_string();
    match error {
        EvidenceError::MissingKey { row, column, rows } => {
            Problem::new(Kind::UploadMalformed, detail).with("row", row).with("column", column).with("missing", rows)
        }
        EvidenceError::TooManyRows { row, limit, found } => {
            Problem::new(Kind::UploadMalformed, detail).with("row", row).with("limit", limit).with("found", found)
        }
        EvidenceError::Spool(error) => IngestError::Spool(error).into(),
        EvidenceError::Cancelled(_) => Problem::new(Kind::Unavailable, "the collection of evidence was stopped"),
        EvidenceError::Put(error) => match error.downcast::<StoreError>() {
            Ok(error) => Problem::from(*error),
            Err(_) => Problem::new(Kind::Internal, "the evidence cannot be kept"),
        },
    }
}
