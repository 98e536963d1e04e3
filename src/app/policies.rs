use serde_json::Value;
use uuid::Uuid;

use super::service::AppService;
use crate::identity::Caller;
use crate::ports::{AuditAction, Cursor, MAX_POLICY_BYTES, NewPolicy, Page, PolicyRecord, PolicyVersion, problem_of};
use crate::problem::{Fault, Kind, Problem};
use crate::spec;
use crate::spec::VersionedName;

impl AppService {
    /// Writes the next version of a policy, or says everything that is wrong with it.
    ///
    /// # Errors
    /// `malformed-request` for a name that no policy can have, `invalid-specification` with every fault, `too-large`, or the store's
    /// problem.
    pub async fn put_policy(
        &self,
        caller: &Caller,
        name: String,
        document: &Value,
    ) -> Result<(PolicyRecord, bool), Problem> {
        if !spec::is_policy_name(&name) {
            return Err(Problem::new(Kind::MalformedRequest, format!("a policy's name must be {}", spec::POLICY_NAME)));
        }
        let specification = spec::read_policy(document).map_err(Problem::of_faults)?;
        let found = specification.to_string().len();
        if found > MAX_POLICY_BYTES {
            let detail = format!("a specification that is kept may have {MAX_POLICY_BYTES} bytes");
            return Err(Problem::new(Kind::TooLarge, detail).with("limit", MAX_POLICY_BYTES).with("found", found));
        }
        let audit_entry = self.audit_entry(caller, AuditAction::PutPolicy, name.as_str());
        let policy = NewPolicy { id: Uuid::now_v7(), name, specification: specification.clone(), audit_entry };
        self.store.put_policy(&policy).await.map_err(|error| problem_of(&error))
    }

    /// A version of a policy, the latest when none is given.
    ///
    /// # Errors
    /// `not-found`, or the store's problem.
    pub async fn policy(&self, caller: &Caller, name: &str, version: Option<u32>) -> Result<PolicyRecord, Problem> {
        let found = match spec::is_policy_name(name) {
            true => self.store.policy(&caller.tenant, name, version).await.map_err(|error| problem_of(&error))?,
            false => None,
        };
        found.ok_or_else(|| Problem::new(Kind::NotFound, "there is no such policy, or no such version of it"))
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
    ) -> Result<Page<PolicyVersion>, Problem> {
        self.policy(caller, name, None).await?;
        let page = self.store.policy_versions(&caller.tenant, name, cursor, limit).await;
        page.map_err(|error| problem_of(&error))
    }

    /// A document as if its policy were written out in it; `None` when it names none.
    ///
    /// # Errors
    /// `invalid-specification` when the policy is unknown or not pinned to a version, or the store's problem.
    pub(super) async fn on_policy(&self, caller: &Caller, document: &Value) -> Result<Option<Value>, Problem> {
        let refused = |fault: Fault| Problem::of_faults(vec![fault]);
        let Some(VersionedName { name, version }) = spec::policy_of(document).map_err(refused)? else {
            return Ok(None);
        };
        let policy = self.store.policy(&caller.tenant, &name, Some(version)).await;
        let policy = policy.map_err(|error| problem_of(&error))?.ok_or_else(|| {
            let detail = format!("there is no version {version} of a policy {name}");
            refused(Fault::new("/policy", Kind::UnknownPolicy, detail).with("policy", name.as_str()))
        })?;
        Ok(Some(spec::expand_policy(&policy.specification, document)))
    }
}
