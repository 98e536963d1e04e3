//! Named taxonomies, in versions that never change.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::api_keys::AuditEntry;
use super::error::StoreError;
use super::page::{Cursor, Page};
use crate::problem::{Kind, Problem};
use crate::spec::VersionedName;

/// The most bytes of a stored taxonomy.
pub(crate) const MAX_TAXONOMY_BYTES: usize = 4 << 20;

/// A version to be written, unless the latest one is equal.
#[derive(Clone, PartialEq, Debug)]
pub struct NewTaxonomy {
    /// UUIDv7, of the version.
    pub id: Uuid,
    /// The taxonomy.
    pub name: String,
    /// The tree, in its one spelling.
    pub tree: Value,
    /// By whom, when, and whose it is.
    pub audit_entry: AuditEntry,
}

impl NewTaxonomy {
    /// What the audit log tells of it, once it is known which version it is.
    #[must_use]
    pub fn audit_entry_for(&self, made: &TaxonomyVersion) -> AuditEntry {
        AuditEntry { object: made.pin(), ..self.audit_entry.clone() }
    }
}

/// A version without its tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaxonomyVersion {
    /// The version's; in the list of taxonomies, the taxonomy's.
    pub id: Uuid,
    /// The taxonomy.
    pub name: String,
    /// Counted from 1.
    pub version: u32,
    /// When it was written.
    pub created_at: DateTime<Utc>,
}

impl TaxonomyVersion {
    /// What a job names it by.
    #[must_use]
    pub fn pin(&self) -> String {
        VersionedName { name: self.name.clone(), version: self.version }.to_string()
    }
}

/// A version of a taxonomy.
#[derive(Clone, PartialEq, Debug)]
pub struct TaxonomyRecord {
    /// Which.
    pub of: TaxonomyVersion,
    /// The tree.
    pub tree: Value,
}

/// Keeps taxonomies.
#[async_trait]
pub trait TaxonomyStore: Send + Sync {
    /// Writes the next version of a taxonomy, and logs it; or gives the latest one back when its tree is equal. Whether one was
    /// written. No version has the number of an earlier one, also of one that was deleted.
    async fn put_taxonomy(&self, taxonomy: &NewTaxonomy) -> Result<(TaxonomyRecord, bool), StoreError>;

    /// A version of a tenant's taxonomy, the latest when none is given.
    async fn taxonomy(
        &self,
        tenant: &str,
        name: &str,
        version: Option<u32>,
    ) -> Result<Option<TaxonomyRecord>, StoreError>;

    /// A page of a tenant's taxonomies, the latest version of each; those that were first written last come first.
    async fn taxonomies(
        &self,
        tenant: &str,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<TaxonomyVersion>, StoreError>;

    /// Deletes all versions of a taxonomy of the entry of the audit log's tenant, and logs it; the latest one, where there was any.
    async fn delete_taxonomy(
        &self,
        name: &str,
        audit_entry: &AuditEntry,
    ) -> Result<Option<TaxonomyVersion>, StoreError>;
}

pub(crate) fn no_such_taxonomy() -> Problem {
    Problem::new(Kind::NotFound, "there is no such taxonomy, or no such version of it")
}
