//! Named taxonomies, in versions that never change.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::{AppService, AuditAction, AuditEntry, Cursor, Page, StoreError, problem_of};
use crate::identity::Caller;
use crate::microdata::Taxonomy;
use crate::problem::{Fault, Kind, Problem};
use crate::spec::reader::child;
use crate::spec::{self, VersionedName};

/// The most bytes of a stored taxonomy.
const MAX_TAXONOMY_BYTES: usize = 4 << 20;

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
    pub deed: AuditEntry,
}

impl NewTaxonomy {
    /// What the audit log tells of it, once it is known which version it is.
    #[must_use]
    pub fn deed_of(&self, made: &TaxonomyVersion) -> AuditEntry {
        AuditEntry { object: made.pin(), ..self.deed.clone() }
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

    /// Deletes all versions of a taxonomy of the deed's tenant, and logs it; the latest one, where there was any.
    async fn delete_taxonomy(&self, name: &str, deed: &AuditEntry) -> Result<Option<TaxonomyVersion>, StoreError>;
}

fn no_such_taxonomy() -> Problem {
    Problem::new(Kind::NotFound, "there is no such taxonomy, or no such version of it")
}

impl AppService {
    /// Writes the next version of a taxonomy.
    ///
    /// # Errors
    /// `malformed-request` for a name that no taxonomy can have, `too-large`, or the store's problem.
    pub async fn put_taxonomy(
        &self,
        caller: &Caller,
        name: String,
        tree: &Taxonomy,
    ) -> Result<(TaxonomyRecord, bool), Problem> {
        if !spec::is_policy_name(&name) {
            let detail = format!("a taxonomy's name must be {}", spec::POLICY_NAME);
            return Err(Problem::new(Kind::MalformedRequest, detail));
        }
        let tree = tree.written();
        let found = tree.to_string().len();
        if found > MAX_TAXONOMY_BYTES {
            let detail = format!("a taxonomy that is kept may have {MAX_TAXONOMY_BYTES} bytes");
            return Err(Problem::new(Kind::TooLarge, detail).with("limit", MAX_TAXONOMY_BYTES).with("found", found));
        }
        let deed = self.deed(caller, AuditAction::PutTaxonomy, name.as_str());
        let taxonomy = NewTaxonomy { id: Uuid::now_v7(), name, tree, deed };
        self.store.put_taxonomy(&taxonomy).await.map_err(|error| problem_of(&error))
    }

    /// A version of a taxonomy, the latest when none is given.
    ///
    /// # Errors
    /// `not-found`, or the store's problem.
    pub async fn taxonomy(&self, caller: &Caller, name: &str, version: Option<u32>) -> Result<TaxonomyRecord, Problem> {
        let found = match spec::is_policy_name(name) {
            true => self.store.taxonomy(&caller.tenant, name, version).await.map_err(|error| problem_of(&error))?,
            false => None,
        };
        found.ok_or_else(no_such_taxonomy)
    }

    /// Deletes all versions of a taxonomy. Jobs and releases have it written out.
    ///
    /// # Errors
    /// `not-found`, or the store's problem.
    pub async fn delete_taxonomy(&self, caller: &Caller, name: &str) -> Result<TaxonomyVersion, Problem> {
        let deleted = match spec::is_policy_name(name) {
            true => {
                let deed = self.deed(caller, AuditAction::DeleteTaxonomy, name);
                self.store.delete_taxonomy(name, &deed).await.map_err(|error| problem_of(&error))?
            }
            false => None,
        };
        deleted.ok_or_else(no_such_taxonomy)
    }

    /// A document as if the stored taxonomies that it names were written out in it; `None` when it names none.
    ///
    /// # Errors
    /// `invalid-specification` with every one that is not there, or the store's problem.
    pub(super) async fn on_taxonomies(&self, caller: &Caller, document: &Value) -> Result<Option<Value>, Problem> {
        let named = spec::taxonomies_named(document);
        if named.is_empty() {
            return Ok(None);
        }
        let (mut written, mut faults) = (document.clone(), Vec::new());
        for (attribute, named) in named {
            let found = self.store.taxonomy(&caller.tenant, &named.name, named.version).await;
            match found.map_err(|error| problem_of(&error))? {
                Some(found) => spec::expand_taxonomies(&mut written, &attribute, found.tree),
                None => {
                    let pointer = child(&child("/attributes", &attribute), "taxonomy");
                    let fault = Fault::new(pointer, Kind::UnknownTaxonomy, format!("there is no {named}"));
                    faults.push(fault.with("taxonomy", named.name));
                }
            }
        }
        if faults.is_empty() { Ok(Some(written)) } else { Err(Problem::of_faults(faults)) }
    }
}
