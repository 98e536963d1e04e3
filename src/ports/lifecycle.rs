//! The life of a release after its commit: held, published, rejected, withdrawn.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::api_keys::{AuditAction, AuditEntry};
use super::error::StoreError;
use crate::problem::{Kind, Problem};
use crate::publication::ReleaseStatus;

/// What can be done with a release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReleaseAction {
    /// A held release is published.
    Approve,
    /// A held release never is.
    Reject,
    /// A published release is no longer served.
    Withdraw,
}

impl ReleaseAction {
    /// What the audit log calls it.
    pub(crate) const fn action(self) -> AuditAction {
        match self {
            Self::Approve => AuditAction::Approve,
            Self::Reject => AuditAction::Reject,
            Self::Withdraw => AuditAction::Withdraw,
        }
    }

    /// The status that a release must have.
    #[must_use]
    pub const fn from(self) -> ReleaseStatus {
        match self {
            Self::Approve | Self::Reject => ReleaseStatus::Held,
            Self::Withdraw => ReleaseStatus::Published,
        }
    }

    /// The status that it gets.
    #[must_use]
    pub const fn to(self) -> ReleaseStatus {
        match self {
            Self::Approve => ReleaseStatus::Published,
            Self::Reject => ReleaseStatus::Rejected,
            Self::Withdraw => ReleaseStatus::Withdrawn,
        }
    }
}

/// A change of a release's status, to be recorded with its reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transition {
    /// The release.
    pub release: Uuid,
    /// What is done with it.
    pub act: ReleaseAction,
    /// Why.
    pub reason: String,
    /// By whom, when, and whose release it is.
    pub audit_entry: AuditEntry,
}

/// What became of a transition.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum TransitionOutcome {
    /// The release has the new status.
    Done,
    /// It had another one than the act needs: this.
    WrongState(ReleaseStatus),
    /// The tenant wants another key than the submitters' to approve, and this is not known to be one.
    NotByAnother,
    /// There is no such release.
    NotFound,
}

/// A recorded change of status.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ReleaseEvent {
    /// The new status.
    pub status: ReleaseStatus,
    /// Why.
    pub reason: String,
    /// When.
    pub happened_at: DateTime<Utc>,
    /// Who did it, as in the audit log; none without authentication, by retention and from before it was kept.
    pub actor: Option<String>,
}

/// Whether the approver differs from every submitter. An unnamed approver or submitter may be the same.
#[must_use]
pub fn approved_by_another(actor: Option<&str>, submitters: &[Option<String>]) -> bool {
    let other = |submitter: &Option<String>| submitter.is_some() && submitter.as_deref() != actor;
    actor.is_some() && !submitters.is_empty() && submitters.iter().all(other)
}

/// What a reuse key stands for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyedReleases {
    /// The held or published release, which an equal job gets.
    pub standing: Option<Uuid>,
    /// The release for whose sake the key makes no other: one that was withdrawn, or rejected after somebody had read it, or that
    /// was made in another store. With its status, for the last `elsewhere`.
    pub ended: Option<(Uuid, String)>,
}

/// Keeps what becomes of releases.
#[async_trait]
pub trait LifecycleStore: Send + Sync {
    /// Changes the status of a release, records why and by whom, and raises the version of the ledger,
    /// all in one transaction. A rejection removes the release's disclosures and rules unless somebody has read one of its parts.
    /// An approval is checked against the tenant's settings and the submitters of the jobs that the release answers.
    async fn transition(&self, transition: &Transition) -> Result<TransitionOutcome, StoreError>;

    /// Notes that somebody is about to read a part of a held release, and logs it the first time; `false` when the release is
    /// no longer served.
    async fn mark_read(
        &self,
        tenant: &str,
        release: Uuid,
        at: DateTime<Utc>,
        audit_entry: &AuditEntry,
    ) -> Result<bool, StoreError>;

    /// The releases that have a reuse key.
    async fn releases_of_key(&self, tenant: &str, reuse_key: &[u8; 32]) -> Result<KeyedReleases, StoreError>;

    /// The published releases of all tenants that were made before a time, with whose they are. For the service's own upkeep.
    async fn old_releases(&self, before: DateTime<Utc>) -> Result<Vec<(String, Uuid)>, StoreError>;

    /// What became of a tenant's release, oldest first.
    async fn release_events(&self, tenant: &str, release: Uuid) -> Result<Vec<ReleaseEvent>, StoreError>;
}

/// Why a job with the key of a release that ended cannot run.
pub(crate) fn release_ended_problem(status: &str, release: Uuid) -> Problem {
    let detail = match status {
        "elsewhere" => {
            "an equal job has a release in another store; the ledger knows what it disclosed, but its parts are not here"
        }
        "withdrawn" => "an equal job had a release, which was withdrawn; publish under another specification",
        _ => {
            "an equal job had a release, which was rejected after somebody had read it; publish under another specification"
        }
    };
    let kind = if status == "rejected" { Kind::Conflict } else { Kind::Gone };
    Problem::new(kind, detail).with("release", release.to_string())
}
