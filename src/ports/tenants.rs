//! What an operator decides for a tenant.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::api_keys::AuditEntry;
use super::error::StoreError;
pub use crate::people::UnrelatedPolicy;

/// The settings of a tenant; the default where nothing was decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantSettings {
    /// Whether a held release is approved by another key only than those that submitted its jobs.
    pub approval_by_another: bool,
    /// What happens where nothing is known of two populations with person keys.
    #[serde(rename = "beside_unrelated")]
    pub unrelated: UnrelatedPolicy,
}

/// What is decided anew; the rest stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TenantChange {
    /// See [`TenantSettings::approval_by_another`].
    pub approval_by_another: Option<bool>,
    /// See [`TenantSettings::unrelated`].
    pub unrelated: Option<UnrelatedPolicy>,
}

impl TenantChange {
    /// The settings after it.
    #[must_use]
    pub fn applied(self, to: TenantSettings) -> TenantSettings {
        TenantSettings {
            approval_by_another: self.approval_by_another.unwrap_or(to.approval_by_another),
            unrelated: self.unrelated.unwrap_or(to.unrelated),
        }
    }

    /// In words for the audit log.
    #[must_use]
    pub fn in_words(self) -> String {
        let approval = self.approval_by_another.map(|wanted| format!("approval_by_another {wanted}"));
        let unrelated = self.unrelated.map(|policy| format!("beside_unrelated {}", policy.name()));
        approval.into_iter().chain(unrelated).collect::<Vec<_>>().join(", ")
    }
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
