use serde_json::Value;
use uuid::Uuid;

use super::remedies::read_request;
use super::service::AppService;
use super::unknown_names::UnknownNames;
use crate::identity::Caller;
use crate::ports::{
    AuditAction, Cursor, DatasetRecord, DocumentKind, DocumentVersion, NamedDocument, NewDocument, Page,
};
use crate::problem::{Fault, Kind, Problem};
use crate::spec;
use crate::spec::{ReleaseOfPolicy, VersionedName, child};

impl AppService {
    /// Writes the next version of a policy, or reports every fault of its specification.
    ///
    /// # Errors
    /// `malformed-request` for an invalid name, `invalid-specification` with every fault, `too-large`, or the store's problem.
    pub async fn put_policy(
        &self,
        caller: &Caller,
        name: String,
        document: &Value,
    ) -> Result<(NamedDocument, bool), Problem> {
        check_name(DocumentKind::Policy, &name)?;
        let specification = read_request(document, spec::read_policy).await?;
        self.put_document(caller, DocumentKind::Policy, name, specification).await
    }

    /// Writes the next version of a document whose content is in normal form.
    ///
    /// # Errors
    /// `malformed-request` for an invalid name, `too-large`, or the store's problem.
    pub async fn put_document(
        &self,
        caller: &Caller,
        kind: DocumentKind,
        name: String,
        content: Value,
    ) -> Result<(NamedDocument, bool), Problem> {
        check_name(kind, &name)?;
        let (found, limit) = (content.to_string().len(), kind.max_bytes());
        if found > limit {
            let detail = format!("a {} that is kept may have {limit} bytes", kind.content_noun());
            return Err(Problem::new(Kind::TooLarge, detail).with("limit", limit).with("found", found));
        }
        let audit_entry = self.audit_entry(caller, kind.put_action(), name.as_str());
        let document = NewDocument { kind, id: Uuid::now_v7(), name, content, audit_entry };
        self.store.put_document(&document).await.map_err(Problem::from)
    }

    /// A version of a document, the latest when none is given.
    ///
    /// # Errors
    /// `not-found`, or the store's problem.
    pub async fn document(
        &self,
        caller: &Caller,
        kind: DocumentKind,
        name: &str,
        version: Option<u32>,
    ) -> Result<NamedDocument, Problem> {
        let found = match spec::is_policy_name(name) {
            true => {
                let found = self.store.document(kind, &caller.tenant, name, version).await;
                found?
            }
            false => None,
        };
        found.ok_or_else(|| not_found(kind))
    }

    /// A page of the versions of a policy.
    ///
    /// # Errors
    /// `not-found`, or the store's problem.
    pub async fn policy_versions(
        &self,
        caller: &Caller,
        name: &str,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<DocumentVersion>, Problem> {
        self.document(caller, DocumentKind::Policy, name, None).await?;
        let page = self.store.policy_versions(&caller.tenant, name, cursor, limit).await;
        page.map_err(Problem::from)
    }

    /// Deletes all versions of a taxonomy. Jobs and releases contain it in full.
    ///
    /// # Errors
    /// `not-found`, or the store's problem.
    pub async fn delete_taxonomy(&self, caller: &Caller, name: &str) -> Result<DocumentVersion, Problem> {
        let deleted = match spec::is_policy_name(name) {
            true => {
                let audit_entry = self.audit_entry(caller, AuditAction::DeleteTaxonomy, name);
                self.store.delete_taxonomy(name, &audit_entry).await?
            }
            false => None,
        };
        deleted.ok_or_else(|| not_found(DocumentKind::Taxonomy))
    }

    /// The document with the members of its policy; `None` when it names no policy, or an unknown one.
    ///
    /// # Errors
    /// The store's problem.
    pub(super) async fn expand_policy(
        &self,
        caller: &Caller,
        document: &Value,
        unknown: &mut UnknownNames,
    ) -> Result<Option<Value>, Problem> {
        let kind = DocumentKind::Policy;
        let (fault, named) = match spec::policy_of(document) {
            Ok(None) => return Ok(None),
            // the name alone may be that of a policy
            Err(fault) => (fault, document["policy"].as_str().unwrap_or_default().to_owned()),
            Ok(Some(VersionedName { name, version })) => {
                let policy = self.store.document(kind, &caller.tenant, &name, Some(version)).await?;
                if let Some(policy) = policy {
                    return Ok(Some(spec::expand_policy(&policy.content, document)));
                }
                let detail = format!("there is no version {version} of a policy {name}");
                (Fault::new("/policy", Kind::UnknownPolicy, detail).with("policy", name.as_str()), name)
            }
        };
        unknown.add_policy(self.unknown_name(caller, kind, fault, &named).await?);
        // the rest of the document is read as it stands
        let mut rest = document.clone();
        rest.as_object_mut().map(|members| members.remove("policy"));
        Ok(Some(rest))
    }

    /// The document with the releases of the policies that it is to be joined with; `None` when it names none. Where a policy has
    /// no published release in the series of the dataset, an id stands for it that no release has.
    ///
    /// # Errors
    /// The store's problem.
    pub(super) async fn expand_releases(
        &self,
        dataset: &DatasetRecord,
        document: &Value,
        unknown: &mut UnknownNames,
    ) -> Result<Option<Value>, Problem> {
        let mut releases = Vec::new();
        for entry in spec::policies_joined(document) {
            let (tenant, policy) = (&dataset.tenant, entry.policy.as_str());
            if let Some(release) = self.store.release_of_policy(tenant, &dataset.series, policy).await? {
                releases.push(ReleaseOfPolicy { entry, release });
                continue;
            }
            let known = self.store.document(DocumentKind::Policy, tenant, policy, None).await?;
            let (kind, detail) = match known {
                None => (Kind::UnknownPolicy, format!("there is no policy {policy}")),
                Some(_) => (
                    Kind::UnknownRelease,
                    format!(
                        "no published release of series {} comes from a job with policy {policy}: run such a job on the \
                         dataset first, or name a release by its id",
                        dataset.series
                    ),
                ),
            };
            let pointer = format!("/method/against/{}", entry.index);
            unknown.add(Fault::new(pointer, kind, detail).with("policy", policy));
            releases.push(ReleaseOfPolicy::unknown(entry));
        }
        Ok((!releases.is_empty()).then(|| spec::with_releases(document, &releases)))
    }

    /// The document with the trees of the stored taxonomies that it names; `None` when it names none. Unknown ones are left as they
    /// stand.
    ///
    /// # Errors
    /// The store's problem.
    pub(super) async fn expand_taxonomies(
        &self,
        caller: &Caller,
        document: &Value,
        unknown: &mut UnknownNames,
    ) -> Result<Option<Value>, Problem> {
        let named = spec::taxonomies_named(document);
        if named.is_empty() {
            return Ok(None);
        }
        let (mut expanded, kind) = (document.clone(), DocumentKind::Taxonomy);
        for (attribute, named) in named {
            let found = self.store.document(kind, &caller.tenant, &named.name, named.version).await;
            match found? {
                Some(found) => spec::expand_taxonomies(&mut expanded, &attribute, found.content),
                None => {
                    let pointer = child(&child("/attributes", &attribute), "taxonomy");
                    let fault = Fault::new(pointer, Kind::UnknownTaxonomy, format!("there is no {named}"));
                    let fault = fault.with("taxonomy", named.name.as_str());
                    unknown.add(self.unknown_name(caller, kind, fault, &named.name).await?);
                }
            }
        }
        Ok(Some(expanded))
    }
}

fn check_name(kind: DocumentKind, name: &str) -> Result<(), Problem> {
    if spec::is_policy_name(name) {
        return Ok(());
    }
    let detail = format!("a {}'s name must be {}", kind.noun(), spec::POLICY_NAME);
    Err(Problem::new(Kind::MalformedRequest, detail))
}

fn not_found(kind: DocumentKind) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no such {}, or no such version of it", kind.noun()))
}
