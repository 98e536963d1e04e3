//! The ledger as it is stored. What an entry means is the ledger's business; here its body is opaque.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::StoreError;

/// A published table, for ever.
#[derive(Clone, PartialEq, Debug)]
pub struct DisclosureRecord {
    /// UUIDv7.
    pub id: Uuid,
    /// The release it belongs to.
    pub release: Uuid,
    /// The published table's name.
    pub table: String,
    /// Attributes, standing, seals.
    pub body: Value,
    /// When it was entered.
    pub recorded_at: DateTime<Utc>,
}

/// A rule that a release promised to keep.
#[derive(Clone, PartialEq, Debug)]
pub struct StandingRuleRecord {
    /// The release.
    pub release: Uuid,
    /// The rule.
    pub body: Value,
}

/// All that was disclosed of one content, at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LedgerSnapshot {
    /// Rises with every entry; 0 before the first. A commit states the version it was judged by.
    pub version: i64,
    /// The disclosures, oldest first.
    pub entries: Vec<DisclosureRecord>,
    /// The rules that stand, oldest release first.
    pub rules: Vec<StandingRuleRecord>,
}

/// Reads the ledger. It is written by [`super::Releases::commit`] alone.
#[async_trait]
pub trait Disclosures: Send + Sync {
    /// What was disclosed of a content in a tenant's series.
    async fn disclosures(
        &self,
        tenant: &str,
        series: &str,
        content_hash: &[u8; 32],
    ) -> Result<LedgerSnapshot, StoreError>;
}
