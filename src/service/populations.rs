//! Populations for the command line.

pub use crate::app::{RelateError, RelatedPlaces};

use super::admin::AdminOps;
use super::error::StartError;
use super::keys::operator;
use crate::app::{populations_of, relate_published};
use crate::ports::{AuditAction, AuditEntry};
use crate::report::PopulationItem;

impl AdminOps {
    /// The populations of a tenant, by name.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn populations(&self, tenant: &str) -> Result<Vec<PopulationItem>, StartError> {
        Ok(populations_of(self.store.shared().as_ref(), tenant).await?)
    }

    /// States that all published populations and tables without one have no person in common, pair by pair.
    ///
    /// # Errors
    /// [`RelateError`]; nothing is recorded then.
    pub async fn relate_published(&self, tenant: &str, reason: &str) -> Result<RelatedPlaces, RelateError> {
        let now = self.clock.now();
        let audit_entry = AuditEntry::new(&operator(tenant), AuditAction::StateOfPopulation, "all", now);
        relate_published(self.store.shared().as_ref(), reason, audit_entry).await
    }
}
