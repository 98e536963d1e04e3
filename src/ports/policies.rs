//! Named job specifications, in versions that never change.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::api_keys::AuditEntry;
use super::error::StoreError;
use super::page::{Cursor, Page};
use crate::spec::VersionedName;

/// The most bytes of a specification: every version is kept for ever.
pub(crate) const MAX_POLICY_BYTES: usize = 1 << 20;

/// A version to be written, unless the latest one is equal.
#[derive(Clone, PartialEq, Debug)]
pub struct NewPolicy {
    /// UUIDv7, of the version.
    pub id: Uuid,
    /// The policy.
    pub name: String,
    /// A job document without dataset.
    pub specification: Value,
    /// By whom, when, and whose the policy is.
    pub audit_entry: AuditEntry,
}

impl NewPolicy {
    /// What the audit log tells of it, once it is known which version it is.
    #[must_use]
    pub fn audit_entry_for(&self, version: u32) -> AuditEntry {
        AuditEntry { object: pin(&self.name, version), ..self.audit_entry.clone() }
    }
}

/// A version without its specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyVersion {
    /// The version's; in the list of policies, the policy's.
    pub id: Uuid,
    /// The policy.
    pub name: String,
    /// Counted from 1.
    pub version: u32,
    /// When it was written.
    pub created_at: DateTime<Utc>,
}

impl PolicyVersion {
    /// What a job names it by.
    #[must_use]
    pub fn pin(&self) -> String {
        pin(&self.name, self.version)
    }
}

/// A version of a policy.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicyRecord {
    /// Which.
    pub of: PolicyVersion,
    /// A job document without dataset.
    pub specification: Value,
}

fn pin(name: &str, version: u32) -> String {
    VersionedName { name: name.to_owned(), version }.to_string()
}

/// Keeps policies.
#[async_trait]
pub trait PolicyStore: Send + Sync {
    /// Writes the next version of a policy, and logs it; or gives the latest one back when its specification is equal. Whether one
    /// was written.
    async fn put_policy(&self, policy: &NewPolicy) -> Result<(PolicyRecord, bool), StoreError>;

    /// A version of a tenant's policy, the latest when none is given.
    async fn policy(&self, tenant: &str, name: &str, version: Option<u32>) -> Result<Option<PolicyRecord>, StoreError>;

    /// A page of a tenant's policies, the latest version of each; those that were first written last come first.
    async fn policies(
        &self,
        tenant: &str,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<PolicyVersion>, StoreError>;

    /// A page of the versions of a tenant's policy, newest first.
    async fn policy_versions(
        &self,
        tenant: &str,
        name: &str,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<PolicyVersion>, StoreError>;
}
