//! What an operator decides for a tenant.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::api_keys::AuditEntry;
use super::error::StoreError;

/// The settings of a tenant; the default where nothing was decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantSettings {
    /// Whether a held release is approved by another key only than those that submitted its jobs.
    pub approval_by_another: bool,
}

/// Keeps the settings of tenants.
#[async_trait]
pub trait TenantStore: Send + Sync {
    /// A tenant's settings.
    async fn tenant_settings(&self, tenant: &str) -> Result<TenantSettings, StoreError>;

    /// Every tenant that has a key or settings, by name.
    async fn tenants(&self) -> Result<Vec<(String, TenantSettings)>, StoreError>;

    /// Decides a tenant's settings.
    async fn set_tenant(
        &self,
        tenant: &str,
        settings: TenantSettings,
        audit_entry: &AuditEntry,
    ) -> Result<(), StoreError>;
}
