//! API keys and the audit log, as they are stored.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::StoreError;
use super::page::{Cursor, Page};
use crate::identity::{ApiKey, Caller};
use crate::publication::vocabulary;

vocabulary! {
    /// What is written to the audit log.
    AuditAction: "action" {
        /// A table was uploaded.
        Upload = "dataset.upload",
        /// A dataset's rows were destroyed.
        Purge = "dataset.purge",
        /// The dependency profile of a dataset was read.
        ReadProfile = "dataset.read_profile",
        /// Values of a dataset were given out.
        ReadValues = "dataset.read_values",
        /// A dry run was answered, which reveals counts of the data.
        Plan = "plan",
        /// A job was submitted.
        Submit = "job.submit",
        /// A job was asked to stop.
        Cancel = "job.cancel",
        /// A held release was published.
        Approve = "release.approve",
        /// A held release was given up.
        Reject = "release.reject",
        /// A published release was ended.
        Withdraw = "release.withdraw",
        /// Rows of a held release were given out for the first time.
        ReadHeld = "release.read_held",
        /// What the original says of a release was given out.
        ReadInternal = "release.read_internal",
        /// A version of a policy was written.
        PutPolicy = "policy.put",
        /// A version of a taxonomy was written.
        PutTaxonomy = "taxonomy.put",
        /// A taxonomy was deleted.
        DeleteTaxonomy = "taxonomy.delete",
        /// A statement about a series was recorded: external tables, aliases of attributes.
        State = "series.state",
        /// A population was defined, with or without statements.
        PutPopulation = "population.put",
        /// Statements about populations were recorded.
        StateOfPopulation = "population.state",
        /// The state of a republished population was destroyed.
        EndChain = "population.end_republication",
        /// A tenant's settings were decided.
        SetTenant = "tenant.set",
        /// A key was made.
        CreateKey = "key.create",
        /// A key was revoked.
        RevokeKey = "key.revoke",
    }
}

/// One line of the audit log: ids and names of actions, never a value of the data. It is written in the transaction of what it
/// records, so that neither is there without the other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct AuditEntry {
    /// UUIDv7.
    pub id: Uuid,
    /// When.
    pub at: DateTime<Utc>,
    /// Whose data it was about.
    pub tenant: String,
    /// The key that did it; none without authentication and from the command line.
    pub key: Option<Uuid>,
    /// Who did it, as `key:ID` or, with a token of an issuer, `sub:SUBJECT`; none where there is no key.
    pub actor: Option<String>,
    /// What was done.
    pub action: String,
    /// What it was done to: an id, a policy's version, a tenant.
    pub object: String,
    /// More, such as the scopes of a new key.
    pub detail: Option<String>,
}

impl AuditEntry {
    /// What `caller` did.
    #[must_use]
    pub fn new(caller: &Caller, action: AuditAction, object: impl Into<String>, at: DateTime<Utc>) -> Self {
        Self {
            id: Uuid::now_v7(),
            at,
            tenant: caller.tenant.clone(),
            key: caller.actor.key(),
            actor: caller.actor.name(),
            action: action.as_str().to_owned(),
            object: object.into(),
            detail: None,
        }
    }
}

/// Which lines of the audit log a list holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditFilter {
    /// Not before this time.
    pub since: Option<DateTime<Utc>>,
    /// Of this action.
    pub action: Option<AuditAction>,
}

/// Keeps API keys, and an audit log that only grows.
#[async_trait]
pub trait ApiKeyStore: Send + Sync {
    /// Keeps a key.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the id is taken.
    async fn insert_key(&self, key: &ApiKey, audit_entry: &AuditEntry) -> Result<(), StoreError>;

    /// Keeps a key when there is none at all, and says whether it did. Of processes that try together one does.
    async fn insert_first_key(&self, key: &ApiKey, audit_entry: &AuditEntry) -> Result<bool, StoreError>;

    /// A key by its id, working or not.
    async fn key(&self, id: Uuid) -> Result<Option<ApiKey>, StoreError>;

    /// The keys of a tenant, or of all, oldest first.
    async fn keys(&self, tenant: Option<&str>) -> Result<Vec<ApiKey>, StoreError>;

    /// Ends a key; a second time changes nothing and is not logged.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such key.
    async fn revoke_key(&self, id: Uuid, at: DateTime<Utc>, audit_entry: &AuditEntry) -> Result<ApiKey, StoreError>;

    /// Writes a line of the audit log, for what changes nothing else.
    async fn append_audit(&self, entry: &AuditEntry) -> Result<(), StoreError>;

    /// A page of a tenant's audit log, newest first.
    async fn audit(
        &self,
        tenant: &str,
        filter: AuditFilter,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<AuditEntry>, StoreError>;
}
