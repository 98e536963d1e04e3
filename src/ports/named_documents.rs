//! Policies and taxonomies: named documents in versions that never change.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::api_keys::{AuditAction, AuditEntry};
use super::error::StoreError;
use super::page::{Cursor, Page};
use crate::spec::VersionedName;

/// A kind of named document; each kind has names of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DocumentKind {
    /// A job document without dataset.
    Policy,
    /// A tree over the values of an attribute.
    Taxonomy,
}

impl DocumentKind {
    /// The noun of messages, in the singular.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Taxonomy => "taxonomy",
        }
    }

    /// The noun of messages for the content of a version.
    #[must_use]
    pub const fn content_noun(self) -> &'static str {
        match self {
            Self::Policy => "specification",
            Self::Taxonomy => "taxonomy",
        }
    }

    /// Most bytes of one version, as compact JSON.
    #[must_use]
    pub const fn max_bytes(self) -> usize {
        match self {
            // every version is kept for ever
            Self::Policy => 1 << 20,
            Self::Taxonomy => 4 << 20,
        }
    }

    /// Action of the audit log that records a new version.
    #[must_use]
    pub const fn put_action(self) -> AuditAction {
        match self {
            Self::Policy => AuditAction::PutPolicy,
            Self::Taxonomy => AuditAction::PutTaxonomy,
        }
    }
}

/// A version to be written, unless its content equals the latest.
#[derive(Clone, PartialEq, Debug)]
pub struct NewDocument {
    /// Kind of the document.
    pub kind: DocumentKind,
    /// UUIDv7 of the version.
    pub id: Uuid,
    /// Name of the document.
    pub name: String,
    /// Content in normal form.
    pub content: Value,
    /// Author, time and tenant of the version.
    pub audit_entry: AuditEntry,
}

impl NewDocument {
    /// The audit entry once the version has a number.
    #[must_use]
    pub fn audit_entry_for(&self, version: u32) -> AuditEntry {
        let object = VersionedName { name: self.name.clone(), version }.to_string();
        AuditEntry { object, ..self.audit_entry.clone() }
    }
}

/// A version without its content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DocumentVersion {
    /// Id of the version; in a list of documents, id of the document.
    pub id: Uuid,
    /// Name of the document.
    pub name: String,
    /// Number of the version, counted from 1.
    pub version: u32,
    /// Time when the version was written.
    pub created_at: DateTime<Utc>,
}

impl DocumentVersion {
    /// Name and version as jobs write them.
    #[must_use]
    pub fn pin(&self) -> String {
        VersionedName { name: self.name.clone(), version: self.version }.to_string()
    }
}

/// A version of a named document with its content.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedDocument {
    /// Name, number and time.
    pub version: DocumentVersion,
    /// Specification of a policy, or tree of a taxonomy.
    pub content: Value,
}

/// Storage of policies and taxonomies.
#[async_trait]
pub trait NamedDocumentStore: Send + Sync {
    /// Writes the next version of a document and its audit entry, or returns the latest version if its content is equal. The flag
    /// says whether a version was written. No number is used twice, also not after a deletion.
    async fn put_document(&self, document: &NewDocument) -> Result<(NamedDocument, bool), StoreError>;

    /// A version of a tenant's document; the latest if `version` is `None`.
    async fn document(
        &self,
        kind: DocumentKind,
        tenant: &str,
        name: &str,
        version: Option<u32>,
    ) -> Result<Option<NamedDocument>, StoreError>;

    /// A page of the latest versions of a tenant's documents; documents created last come first.
    async fn documents(
        &self,
        kind: DocumentKind,
        tenant: &str,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<DocumentVersion>, StoreError>;

    /// A page of the versions of a tenant's policy, newest first.
    async fn policy_versions(
        &self,
        tenant: &str,
        name: &str,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<DocumentVersion>, StoreError>;

    /// Deletes all versions of a taxonomy and writes the audit entry; returns the latest version if there was one.
    async fn delete_taxonomy(
        &self,
        name: &str,
        audit_entry: &AuditEntry,
    ) -> Result<Option<DocumentVersion>, StoreError>;
}
