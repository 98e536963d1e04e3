//! Administration of a store from the command line: the audit log and the options of tenants.

use std::path::Path;

use chrono::{DateTime, SubsecRound, Utc};

use super::error::StartError;
use super::keys::operator;
use super::open::open_store_without_key;
use crate::clock::Clock;
use crate::config::StoreOptions;
use crate::ports::{AuditAction, AuditEntry, AuditFilter, Cursor, Page};
pub use crate::ports::{TenantChange, TenantSettings, UnrelatedPolicy};
use crate::store::OpenStore;

/// The page size of the audit log.
const LOG_PAGE_LINES: u32 = 1000;

/// Administration of a store for a command.
pub struct AdminOps {
    pub(super) store: OpenStore,
    pub(super) clock: Clock,
}

impl AdminOps {
    /// Opens the store of the options.
    ///
    /// # Errors
    /// [`StartError`]; also while another process has the embedded store open.
    pub async fn open(options: &StoreOptions, data: &Path) -> Result<Self, StartError> {
        let store = open_store_without_key(options, data).await?;
        Ok(Self { store, clock: Clock::system() })
    }

    /// Every tenant with a key or options.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn tenants(&self) -> Result<Vec<(String, TenantSettings)>, StartError> {
        Ok(self.store.shared().tenants().await?)
    }

    /// Changes the options of a tenant.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn set_tenant(&self, tenant: &str, change: TenantChange) -> Result<TenantSettings, StartError> {
        let store = self.store.shared();
        let settings = change.applied(store.tenant_settings(tenant).await?);
        let mut audit_entry = AuditEntry::new(&operator(tenant), AuditAction::SetTenant, tenant, self.clock.now());
        audit_entry.detail = Some(change.in_words());
        store.set_tenant(tenant, settings, &audit_entry).await?;
        Ok(settings)
    }

    /// A page of a tenant's audit log, newest first.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn audit_log(
        &self,
        tenant: &str,
        since: Option<DateTime<Utc>>,
        cursor: Option<Cursor>,
    ) -> Result<Page<AuditEntry>, StartError> {
        let filter = AuditFilter { since: since.map(|since| since.trunc_subsecs(6)), action: None };
        Ok(self.store.shared().audit(tenant, filter, cursor, LOG_PAGE_LINES).await?)
    }

    /// Closes all connections of the store.
    pub async fn close(self) {
        self.store.close().await;
    }
}
