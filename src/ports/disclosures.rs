//! The ledger as it is stored. What an entry means is the ledger's business; here its body is opaque.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::api_keys::AuditEntry;
use super::error::StoreError;
use crate::publication::ReleaseStatus;

/// A published table, for ever.
#[derive(Clone, PartialEq, Debug)]
pub struct DisclosureRecord {
    /// UUIDv7.
    pub id: Uuid,
    /// The release it belongs to.
    pub release: Uuid,
    /// The published table's name.
    pub table: String,
    /// Attributes, protection, guards.
    pub body: Value,
    /// Time when it was recorded.
    pub recorded_at: DateTime<Utc>,
}

/// A rule that a release promised to keep.
#[derive(Clone, PartialEq, Debug)]
pub struct ActiveRuleRecord {
    /// The release.
    pub release: Uuid,
    /// The rule.
    pub body: Value,
}

/// All that was disclosed of one content, at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LedgerSnapshot {
    /// Rises with every entry; 0 before the first. A commit names the version that it was checked against.
    pub version: i64,
    /// The disclosures, oldest first.
    pub entries: Vec<DisclosureRecord>,
    /// The rules that stand, oldest release first.
    pub rules: Vec<ActiveRuleRecord>,
}

/// A disclosure in a series of several contents.
#[derive(Clone, PartialEq, Debug)]
pub struct SeriesEntry {
    /// The content that it is of.
    pub content_hash: [u8; 32],
    /// The status of its release.
    pub status: ReleaseStatus,
    /// What was disclosed.
    pub entry: DisclosureRecord,
}

/// A statement about a series; it is never removed.
#[derive(Clone, PartialEq, Debug)]
pub struct StatementRecord {
    /// UUIDv7.
    pub id: Uuid,
    /// Tables, other names, and what is computed from what.
    pub body: Value,
    /// Time when it was recorded.
    pub recorded_at: DateTime<Utc>,
}

/// All that a tenant's series has, at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SeriesRecord {
    /// Rises with every entry; 0 before the first. A commit names the version that it was checked against.
    pub version: i64,
    /// Its datasets and when they were uploaded, oldest first; also purged ones.
    pub datasets: Vec<(Uuid, DateTime<Utc>)>,
    /// The disclosures, oldest first.
    pub entries: Vec<SeriesEntry>,
    /// The rules that stand, oldest release first, each with the content that it is of.
    pub rules: Vec<([u8; 32], ActiveRuleRecord)>,
    /// Statements, oldest first.
    pub statements: Vec<StatementRecord>,
}

/// What was declared of a series, at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SeriesStatements {
    /// The version of the series.
    pub version: i64,
    /// The statements, oldest first.
    pub statements: Vec<StatementRecord>,
}

/// Reads the ledger. Only [`super::ReleaseStore::commit`] records releases.
#[async_trait]
pub trait DisclosureStore: Send + Sync {
    /// What was disclosed of a content in a tenant's series.
    async fn disclosures(
        &self,
        tenant: &str,
        series: &str,
        content_hash: &[u8; 32],
    ) -> Result<LedgerSnapshot, StoreError>;

    /// What was declared of a tenant's series; nothing when there is no such series.
    async fn series_statements(&self, tenant: &str, series: &str) -> Result<SeriesStatements, StoreError>;

    /// The datasets of a tenant's series, oldest first.
    async fn series_datasets(&self, tenant: &str, series: &str) -> Result<Vec<Uuid>, StoreError>;

    /// All that was disclosed in a tenant's series; nothing in it when there is no such series.
    async fn series(&self, tenant: &str, series: &str) -> Result<SeriesRecord, StoreError>;

    /// The same, where only contents count whose first dataset in the series has an id from the first to the last.
    async fn series_between(
        &self,
        tenant: &str,
        series: &str,
        from: Uuid,
        to: Uuid,
    ) -> Result<SeriesRecord, StoreError>;

    /// Records a statement about a tenant's series and raises the version of the series.
    async fn enter_statement(
        &self,
        tenant: &str,
        series: &str,
        statement: &StatementRecord,
        audit_entry: &AuditEntry,
    ) -> Result<(), StoreError>;
}
