use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use uuid::Uuid;

use super::populations::shown_statement;
use super::service::AppService;
use crate::identity::Caller;
use crate::ports::{
    AuditAction, ReleaseAction, ReleaseEvent, ReleaseRecord, StoreError, Transition, TransitionOutcome,
};
use crate::problem::{Kind, Problem};
use crate::publication::ReleaseStatus;
use crate::report::{ManifestIdentity, PeopleStatement};

/// What became of a release, and what it rests on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReleaseHistory {
    /// Its transitions, oldest first.
    pub events: Vec<ReleaseEvent>,
    /// The statements about its people that it names, oldest first.
    pub statements: Vec<PeopleStatement>,
}

impl AppService {
    /// Approves, rejects or withdraws a release, and gives it as it then is.
    ///
    /// # Errors
    /// `not-found`, `conflict` when its status is another than the act needs, or the store's problem.
    pub async fn act(
        &self,
        caller: &Caller,
        release: Uuid,
        act: ReleaseAction,
        reason: String,
    ) -> Result<ReleaseRecord, Problem> {
        let transition =
            Transition { release, act, reason, audit_entry: self.audit_entry(caller, act.action(), release) };
        match self.store.transition(&transition).await? {
            TransitionOutcome::Done => {}
            TransitionOutcome::NotFound => return Err(self.no_such_release(caller, release).await),
            TransitionOutcome::WrongState(status) => {
                let detail = format!("the release is {status}; it would have to be {}", act.from());
                return Err(Problem::new(Kind::Conflict, detail));
            }
            TransitionOutcome::NotByAnother => {
                let detail = match &transition.audit_entry.actor {
                    Some(_) => {
                        "a release of this tenant is approved by another key than those that submitted its jobs; this key is one \
                         of them, or it is not known which they are"
                    }
                    None => {
                        "a release of this tenant is approved by another key than those that submitted its jobs; without a key \
                         this is not known"
                    }
                };
                return Err(Problem::new(Kind::Forbidden, detail));
            }
        }
        let record = self.store.release(&caller.tenant, release).await?;
        let record = record.ok_or_else(|| StoreError::corrupt("a release has vanished"))?;
        if act != ReleaseAction::Approve {
            // the parts are no longer served; the sweep removes any that stay
            if let Err(error) = self.store.drop_attempt(record.job, record.attempt).await {
                tracing::warn!(error = %error, "the parts of a release are left to the sweep");
            }
        }
        tracing::info!(release.id = %release, release.status = act.to().as_str(), "the status of a release changed");
        Ok(record)
    }

    /// What became of a release, oldest first, whatever its status is, and the statements that it rests on.
    ///
    /// # Errors
    /// `not-found`, or the store's problem.
    pub async fn history(&self, caller: &Caller, release: Uuid) -> Result<ReleaseHistory, Problem> {
        let found = self.store.release(&caller.tenant, release).await?.ok_or_else(absent_release)?;
        let events = self.store.release_events(&caller.tenant, release).await?;
        // none of releases from before statements were made of populations
        let identity = Option::<ManifestIdentity>::deserialize(&found.manifest["identity"]);
        let named = identity.map_err(StoreError::corrupt)?.map(|identity| identity.statements).unwrap_or_default();
        let mut statements = Vec::new();
        if !named.is_empty() {
            let named: BTreeSet<Uuid> = named.iter().map(|statement| statement.id).collect();
            let records = self.store.separation_records(&caller.tenant).await?;
            let of_release = records.iter().filter(|record| named.contains(&record.statement.id));
            statements.extend(of_release.map(shown_statement));
        }
        Ok(ReleaseHistory { events, statements })
    }

    /// What became of a release, also of a held one; `None` where it is absent or the store does not answer.
    pub async fn release_status(&self, caller: &Caller, release: Uuid) -> Option<ReleaseStatus> {
        let found = self.store.release(&caller.tenant, release).await;
        found.ok().flatten().map(|release| release.status)
    }

    /// Records that a caller is about to read rows of a held release; `false` when it is no longer served.
    ///
    /// # Errors
    /// The store's problem: what cannot be recorded is not answered.
    pub async fn read_held(&self, caller: &Caller, release: Uuid) -> Result<bool, Problem> {
        let audit_entry = self.audit_entry(caller, AuditAction::ReadHeld, release);
        let marked = self.store.mark_read(&caller.tenant, release, audit_entry.at, &audit_entry).await;
        marked.map_err(Problem::from)
    }

    /// The one answer for a release that is absent, or held and not for this caller; of an imported one, that it is in the ledger
    /// alone.
    pub async fn no_such_release(&self, caller: &Caller, release: Uuid) -> Problem {
        match self.store.is_imported(&caller.tenant, release).await {
            Ok(false) => absent_release(),
            Ok(true) => {
                let detail = "the release was made in another store; only the ledger of it was brought here";
                Problem::new(Kind::Gone, detail)
            }
            Err(error) => error.into(),
        }
    }

    /// Withdraws the published releases that were made before a time. The ledger keeps what they disclosed.
    ///
    /// # Errors
    /// The store's problem; what was withdrawn until then stays so.
    pub async fn retire(&self, before: DateTime<Utc>) -> Result<u64, Problem> {
        let old = self.store.old_releases(before).await?;
        let mut retired = 0;
        for (tenant, release) in old {
            let caller = Caller::upkeep(tenant);
            match self.act(&caller, release, ReleaseAction::Withdraw, "retention".to_owned()).await {
                Ok(_) => retired += 1,
                // somebody else withdrew it meanwhile
                Err(problem) if problem.kind == Kind::Conflict => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok(retired)
    }
}

fn absent_release() -> Problem {
    Problem::new(Kind::NotFound, "the release does not exist")
}
