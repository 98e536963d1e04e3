//! The queue of jobs.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::api_keys::AuditEntry;
use super::error::StoreError;
use super::page::{Cursor, Page};
use crate::control::Progress;
use crate::problem::Problem;

/// The `instance` of a problem that a job ends with.
#[must_use]
pub fn instance(job: Uuid) -> String {
    job.urn().to_string()
}

/// The state of a job. `succeeded`, `refused`, `failed` and `cancelled` are final. A refused job would break a rule; a failed job met an
/// error or a limit. Both state it in `problem`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// Waits for a worker.
    Queued,
    /// A worker has it.
    Running,
    /// Ended with a release.
    Succeeded,
    /// Ended with the caller's answer: what was asked for cannot be done.
    Refused,
    /// Ended by a bug, a limit or a crash.
    Failed,
    /// Ended by request.
    Cancelled,
}

impl JobStatus {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::Succeeded, Self::Refused, Self::Failed, Self::Cancelled];

    /// The name used in the contract and in stores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the job has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no such status")]
pub struct UnknownStatusError;

impl FromStr for JobStatus {
    type Err = UnknownStatusError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|status| status.name() == text).ok_or(UnknownStatusError)
    }
}

/// A job to be queued, with what no [`JobRecord`] gives back: its key and its entry of the audit log.
///
/// No `Debug`: it carries a key, though wrapped.
#[derive(Clone)]
pub struct NewJob {
    /// UUIDv7.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: String,
    /// The dataset.
    pub dataset: Uuid,
    /// The dataset's series.
    pub series: String,
    /// The method's name.
    pub method: String,
    /// The normalized specification.
    pub specification: Value,
    /// Equal for jobs that must have the same release.
    pub reuse_key: [u8; 32],
    /// Higher runs earlier.
    pub priority: i32,
    /// Reason of the submission, if given.
    pub reason: Option<String>,
    /// The policy that the document named, without its version.
    pub policy: Option<String>,
    /// When it was accepted.
    pub submitted_at: DateTime<Utc>,
    /// When it must have ended.
    pub deadline_at: Option<DateTime<Utc>>,
    /// The release key, wrapped.
    pub wrapped_key: Vec<u8>,
    /// Entry of the audit log for the submission.
    pub audit_entry: AuditEntry,
}

/// A job.
#[derive(Clone, PartialEq, Debug)]
pub struct JobRecord {
    /// UUIDv7.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: String,
    /// The dataset.
    pub dataset: Uuid,
    /// The dataset's series.
    pub series: String,
    /// The method's name.
    pub method: String,
    /// The normalized specification.
    pub specification: Value,
    /// Equal for jobs that must have the same release.
    pub reuse_key: [u8; 32],
    /// Higher runs earlier.
    pub priority: i32,
    /// Reason of the submission, if given.
    pub reason: Option<String>,
    /// Where it stands.
    pub status: JobStatus,
    /// When it was accepted.
    pub submitted_at: DateTime<Utc>,
    /// When its present or last attempt began.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// When it must have ended.
    pub deadline_at: Option<DateTime<Utc>>,
    /// How many attempts were begun. Names the attempt's parts, so it never falls.
    pub attempt: u32,
    /// How far the present attempt has come.
    pub progress: Option<Progress>,
    /// Whether it was asked to stop.
    pub cancel_requested: bool,
    /// The release it ended with.
    pub release: Option<Uuid>,
    /// Whether an earlier, equal job made that release.
    pub reused: bool,
    /// The problem it ended with.
    pub problem: Option<Value>,
}

/// A job as an item of a list: its columns without its documents, which can be of any length.
#[derive(Clone, PartialEq, Debug)]
pub struct ListedJob {
    /// UUIDv7.
    pub id: Uuid,
    /// The dataset.
    pub dataset: Uuid,
    /// The method's name.
    pub method: String,
    /// Higher runs earlier.
    pub priority: i32,
    /// Where it stands.
    pub status: JobStatus,
    /// When it was accepted.
    pub submitted_at: DateTime<Utc>,
    /// When its present or last attempt began.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// How many attempts were begun.
    pub attempt: u32,
    /// How far the present attempt has come.
    pub progress: Option<Progress>,
    /// The release it ended with.
    pub release: Option<Uuid>,
    /// Whether that release was made by another job.
    pub reused: bool,
    /// The type of the problem it ended with.
    pub problem_type: Option<String>,
}

/// Proves that a worker still has a job. Random, so that no other worker's can be equal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LeaseToken(pub Uuid);

impl LeaseToken {
    /// A new token from the system's randomness.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn draw() -> Result<Self, StoreError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| StoreError::Unavailable(error.to_string().into()))?;
        Ok(Self(uuid::Builder::from_random_bytes(bytes).into_uuid()))
    }
}

/// On what terms a worker takes a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClaimTerms {
    /// How long the job stays with a worker that says nothing.
    pub lease: Duration,
    /// Most running jobs of one tenant, also while workers are free.
    pub max_running_per_tenant: Option<u32>,
    /// Most running jobs on tables of one engine, of all tenants.
    pub max_running_per_engine: Option<u32>,
}

impl ClaimTerms {
    /// A lease, and no other terms.
    #[must_use]
    pub const fn from_lease(lease: Duration) -> Self {
        Self { lease, max_running_per_tenant: None, max_running_per_engine: None }
    }
}

/// The longest that a job waits after its worker vanished.
const MAX_BACK_OFF: Duration = Duration::from_secs(300);

/// How long a job waits after `lapses` expired leases: two seconds, then twice as long each time. What killed its worker
/// may kill the next one too; others get the time between.
#[must_use]
pub fn back_off(lapses: u32) -> Duration {
    1_u64.checked_shl(lapses).map_or(MAX_BACK_OFF, Duration::from_secs).min(MAX_BACK_OFF)
}

/// A job that a worker now has. No `Debug`: it carries a key, though wrapped.
#[derive(Clone)]
pub struct ClaimedJob {
    /// The job.
    pub job: JobRecord,
    /// The release key, wrapped.
    pub wrapped_key: Vec<u8>,
}

/// Whether a worker still has its job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heartbeat {
    /// It does.
    Alive {
        /// Whether the job was asked to stop.
        cancel_requested: bool,
    },
    /// It does not: whatever it does from now on is refused.
    Lost,
}

/// Whether a worker's write was accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum WriteOutcome {
    /// It was.
    Done,
    /// The worker no longer has the job; nothing was written.
    LeaseLost,
}

/// How a job ends without a release.
#[derive(Clone, PartialEq, Debug)]
pub enum JobEnd {
    /// With the caller's answer, a problem document.
    Refused(Value),
    /// By a bug, a limit or a crash, with a problem document.
    Failed(Value),
    /// By request.
    Cancelled,
}

impl JobEnd {
    /// The status it leaves.
    #[must_use]
    pub const fn status(&self) -> JobStatus {
        match self {
            Self::Refused(_) => JobStatus::Refused,
            Self::Failed(_) => JobStatus::Failed,
            Self::Cancelled => JobStatus::Cancelled,
        }
    }

    /// The problem document it leaves.
    #[must_use]
    pub const fn problem(&self) -> Option<&Value> {
        match self {
            Self::Refused(problem) | Self::Failed(problem) => Some(problem),
            Self::Cancelled => None,
        }
    }
}

/// What became of a request to cancel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CancelOutcome {
    /// The job runs; its worker will learn of it.
    Requested,
    /// The job was waiting and has ended.
    CancelledAtOnce,
    /// The job had ended before.
    Terminal(JobStatus),
    /// There is no such job.
    NotFound,
}

/// The problems that the reaper ends jobs with; each job's document names the job as its instance.
#[derive(Clone, Debug)]
pub struct ReapProblems {
    /// Too many attempts ended without a word.
    pub exhausted: Problem,
    /// The deadline passed before a worker was free.
    pub deadline: Problem,
}

/// What the reaper did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reaped {
    /// Attempts whose lease had expired, `(job, attempt)`: their parts are of no use any more.
    pub lapsed: Vec<(Uuid, u32)>,
    /// Jobs that wait again.
    pub requeued: Vec<Uuid>,
    /// Jobs that failed after too many attempts.
    pub exhausted: Vec<Uuid>,
    /// Jobs that were to be cancelled when their worker vanished.
    pub cancelled: Vec<Uuid>,
    /// Jobs that waited past their deadline.
    pub overdue: Vec<Uuid>,
}

impl Reaped {
    /// Whether no job changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lapsed.is_empty() && self.overdue.is_empty()
    }
}

/// Which jobs a list holds.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// Of this status.
    pub status: Option<JobStatus>,
    /// Of this dataset.
    pub dataset: Option<Uuid>,
    /// Of this series.
    pub series: Option<String>,
    /// Of this method.
    pub method: Option<String>,
}

/// Keeps jobs and hands them to workers. Times are the caller's clock.
#[async_trait]
pub trait JobQueue: Send + Sync {
    /// Queues a job; or, where a protection release has its reuse key, records it as succeeded with that release.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the id is taken, [`StoreError::NotFound`] when the tenant has no such dataset.
    async fn enqueue(&self, job: NewJob) -> Result<JobRecord, StoreError>;

    /// Hands out a waiting job. Whose it is goes by turns: the tenant with the fewest running jobs, of these the one that was
    /// served least recently. Within the tenant the job of the highest priority goes first, of these the oldest: a priority
    /// orders a tenant's own jobs and gives it no advantage over others. Never handed out is a job whose reuse key a running job has,
    /// whose deadline has passed, or that still waits after its worker vanished.
    async fn claim(
        &self,
        token: LeaseToken,
        terms: ClaimTerms,
        now: DateTime<Utc>,
    ) -> Result<Option<ClaimedJob>, StoreError>;

    /// Extends the lease to `now + lease` and notes the progress. An expired lease is not revived.
    async fn heartbeat(
        &self,
        id: Uuid,
        token: LeaseToken,
        progress: Option<Progress>,
        lease: Duration,
        now: DateTime<Utc>,
    ) -> Result<Heartbeat, StoreError>;

    /// What a heartbeat would answer, writing nothing.
    async fn lease(&self, id: Uuid, token: LeaseToken, now: DateTime<Utc>) -> Result<Heartbeat, StoreError>;

    /// Ends a running job without a release and erases its key.
    async fn finish(
        &self,
        id: Uuid,
        token: LeaseToken,
        end: JobEnd,
        now: DateTime<Utc>,
    ) -> Result<WriteOutcome, StoreError>;

    /// Ends a running job with a release that another job made, and erases its key.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such release.
    async fn succeed_with_reused(
        &self,
        id: Uuid,
        token: LeaseToken,
        release: Uuid,
        now: DateTime<Utc>,
    ) -> Result<WriteOutcome, StoreError>;

    /// Puts a running job back into the queue, without counting it against the job; a job that was to be cancelled is
    /// cancelled.
    async fn release_lease(&self, id: Uuid, token: LeaseToken, now: DateTime<Utc>) -> Result<WriteOutcome, StoreError>;

    /// Asks a tenant's job to stop. One that has ended is left alone, and nothing is logged.
    async fn request_cancel(
        &self,
        tenant: &str,
        id: Uuid,
        now: DateTime<Utc>,
        audit_entry: &AuditEntry,
    ) -> Result<CancelOutcome, StoreError>;

    /// Puts jobs of expired leases back into the queue, where they wait for [`back_off`], fails them after `max_attempts` expired
    /// leases, and fails waiting jobs past their deadline.
    async fn reap(&self, now: DateTime<Utc>, max_attempts: u32, problems: &ReapProblems) -> Result<Reaped, StoreError>;

    /// Lets every lease end now. For the start of a store that one process alone uses: every earlier lease holder is gone.
    async fn expire_all_leases(&self, now: DateTime<Utc>) -> Result<u64, StoreError>;

    /// How many jobs of a tenant wait.
    async fn queued_jobs(&self, tenant: &str) -> Result<u64, StoreError>;

    /// A tenant's job by its id.
    async fn job(&self, tenant: &str, id: Uuid) -> Result<Option<JobRecord>, StoreError>;

    /// A page of a tenant's jobs, newest first.
    async fn jobs(
        &self,
        tenant: &str,
        filter: &JobFilter,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<ListedJob>, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_up_to_a_bound() {
        assert_eq!([1, 2, 3, 8].map(|lapses| back_off(lapses).as_secs()), [2, 4, 8, 256]);
        assert_eq!([9, 63, 64, u32::MAX].map(back_off), [MAX_BACK_OFF; 4]);
    }
}
