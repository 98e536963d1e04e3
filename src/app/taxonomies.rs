use serde_json::Value;
use uuid::Uuid;

use super::service::AppService;
use crate::identity::Caller;
use crate::microdata::Taxonomy;
use crate::ports::{
    AuditAction, MAX_TAXONOMY_BYTES, NewTaxonomy, TaxonomyRecord, TaxonomyVersion, no_such_taxonomy, problem_of,
};
use crate::problem::{Fault, Kind, Problem};
use crate::spec;
use crate::spec::child;

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
        let audit_entry = self.audit_entry(caller, AuditAction::PutTaxonomy, name.as_str());
        let taxonomy = NewTaxonomy { id: Uuid::now_v7(), name, tree, audit_entry };
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
                let audit_entry = self.audit_entry(caller, AuditAction::DeleteTaxonomy, name);
                self.store.delete_taxonomy(name, &audit_entry).await.map_err(|error| problem_of(&error))?
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
