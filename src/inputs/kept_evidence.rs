//! The evidence of datasets, which an upload, a submission, a reservation and a job read one after the other.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use crate::people::Evidence;
use crate::ports::{DatasetRecord, PeopleStore, StoreError};

/// Datasets whose evidence a process keeps: at most some hundred kilobytes each.
const MAX_KEPT: usize = 16;

/// The evidence of the last datasets of a process, until they are purged. It never changes.
#[derive(Clone, Default)]
pub struct KeptEvidence(Arc<Mutex<VecDeque<DatasetEvidence>>>);

/// A dataset with its evidence.
struct DatasetEvidence(Uuid, Arc<Evidence>);

impl KeptEvidence {
    /// The evidence of a dataset whose record the caller has just read; none of one that is purged, or has none.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn read(
        &self,
        store: &dyn PeopleStore,
        dataset: &DatasetRecord,
    ) -> Result<Option<Arc<Evidence>>, StoreError> {
        if dataset.purged_at.is_some() {
            self.forget(dataset.id);
            return Ok(None);
        }
        if let Some(kept) = self.find(dataset.id) {
            return Ok(Some(kept));
        }
        let Some(evidence) = store.evidence(&dataset.tenant, dataset.id).await?.map(Arc::new) else { return Ok(None) };
        self.keep(dataset.id, Arc::clone(&evidence));
        Ok(Some(evidence))
    }

    /// Keeps the evidence of a dataset no longer.
    pub fn forget(&self, dataset: Uuid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|of| of.0 != dataset);
    }

    /// Keeps the evidence of a dataset that is stored.
    pub fn keep(&self, dataset: Uuid, evidence: Arc<Evidence>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|of| of.0 != dataset);
        kept.push_front(DatasetEvidence(dataset, evidence));
        kept.truncate(MAX_KEPT);
    }

    fn find(&self, dataset: Uuid) -> Option<Arc<Evidence>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|of| of.0 == dataset).map(|of| Arc::clone(&of.1))
    }
}

impl fmt::Debug for KeptEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptEvidence").finish_non_exhaustive()
    }
}
