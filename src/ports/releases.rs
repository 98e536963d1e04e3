//! Releases and their parts.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::chains::ChainStep;
use super::error::StoreError;
use super::page::{Cursor, Page};
use super::people::AnnouncedCoverage;
use super::queue::LeaseToken;
use crate::publication::ReleaseStatus;
use crate::vault::Ciphertext;

/// A release to be made visible.
#[derive(Clone, PartialEq, Debug)]
pub struct NewRelease {
    /// UUIDv7.
    pub id: Uuid,
    /// The job that made it.
    pub job: Uuid,
    /// The attempt whose parts are its parts.
    pub attempt: u32,
    /// Whose it is.
    pub tenant: String,
    /// The series.
    pub series: String,
    /// The dataset.
    pub dataset: Uuid,
    /// Keyed hash of the dataset's content.
    pub content_hash: [u8; 32],
    /// The job's reuse key.
    pub reuse_key: [u8; 32],
    /// The method's name.
    pub method: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// The manifest.
    pub manifest: Value,
    /// The public report.
    pub report: Value,
    /// Where the release is in its life.
    pub status: ReleaseStatus,
}

/// A release, as it was inserted.
pub type ReleaseRecord = NewRelease;

/// A release as an item of a list: its columns without its documents, which can be of any length.
#[derive(Clone, PartialEq, Debug)]
pub struct ListedRelease {
    /// UUIDv7.
    pub id: Uuid,
    /// The series.
    pub series: String,
    /// The dataset.
    pub dataset: Uuid,
    /// The method's name.
    pub method: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// Where the release is in its life.
    pub status: ReleaseStatus,
}

/// A disclosure to be recorded with a release.
#[derive(Clone, PartialEq, Debug)]
pub struct NewDisclosure {
    /// UUIDv7.
    pub id: Uuid,
    /// The published table's name.
    pub table: String,
    /// Attributes, protection and guards as JSON.
    pub body: Value,
}

/// All that becomes visible at once.
#[derive(Clone, PartialEq, Debug)]
pub struct ReleaseCommit {
    /// The job; the same as the release's.
    pub job: Uuid,
    /// Proves that the caller has the job.
    pub token: LeaseToken,
    /// The release.
    pub release: NewRelease,
    /// What it discloses.
    pub disclosures: Vec<NewDisclosure>,
    /// The rules it promises to keep.
    pub rules: Vec<Value>,
    /// What the original says of the release, encrypted under the key of the dataset.
    pub internal_report: Option<Ciphertext>,
    /// Version of the content's ledger that it was checked against.
    pub ledger_version: i64,
    /// Versions of the series that it was checked against; if there are any, they replace the version of the content.
    pub series_versions: BTreeMap<String, i64>,
    /// The end of the announcement of its rows.
    pub announcement: Option<AnnouncedCoverage>,
    /// The step of its chain, if it republishes a population.
    pub chain: Option<ChainStep>,
    /// The time.
    pub now: DateTime<Utc>,
}

/// What became of a commit. Only the first is a release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum CommitOutcome {
    /// The release is visible.
    Committed,
    /// The caller no longer has the job.
    LeaseLost,
    /// Something was disclosed since the composition check: repeat it.
    LedgerMoved,
    /// The chain is no longer at the version that the release was made from: make it again.
    ChainMoved,
    /// An earlier release has the reuse key; see [`super::JobQueue::succeed_with_reused`].
    AlreadyReleased(Uuid),
}

/// Which releases a list holds.
#[derive(Clone, Debug, Default)]
pub struct ReleaseFilter {
    /// Of this series.
    pub series: Option<String>,
    /// Of this dataset.
    pub dataset: Option<Uuid>,
    /// Of this method.
    pub method: Option<String>,
    /// Of this status.
    pub status: Option<String>,
}

/// What a sweep removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SweepCounts {
    /// Attempts whose parts were removed.
    pub attempts: u64,
    /// Uploads whose chunks were removed.
    pub uploads: u64,
    /// Attempts whose states of chains were removed.
    pub chain_states: u64,
}

/// Keeps releases. Their parts are written first; a commit points at them.
#[async_trait]
pub trait ReleaseStore: Send + Sync {
    /// Makes a release visible, in one short transaction: its entries in the ledger, the job's end, the erasing of its key, and
    /// the end of waiting jobs with the same reuse key, which get this release.
    async fn commit(&self, commit: ReleaseCommit) -> Result<CommitOutcome, StoreError>;

    /// A tenant's release by its id.
    async fn release(&self, tenant: &str, id: Uuid) -> Result<Option<ReleaseRecord>, StoreError>;

    /// The latest published release of a tenant's series that a job with this policy gave, of any version.
    async fn release_of_policy(&self, tenant: &str, series: &str, policy: &str) -> Result<Option<Uuid>, StoreError>;

    /// What the original says of a tenant's release, as it was committed; none once the dataset is purged or the release has ended.
    async fn internal_report(&self, tenant: &str, release: Uuid) -> Result<Option<Ciphertext>, StoreError>;

    /// A page of a tenant's releases, newest first.
    async fn releases(
        &self,
        tenant: &str,
        filter: &ReleaseFilter,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<ListedRelease>, StoreError>;

    /// Removes what no one can reach: parts of attempts that belong to no release and do not run, states that no chain has,
    /// and column chunks of purged
    /// datasets and of uploads that began more than `grace` ago (by the time in their id) and never became a dataset. At the start
    /// of a store that one process alone uses the grace may be zero; else it must exceed the longest upload.
    async fn sweep(&self, now: DateTime<Utc>, grace: Duration) -> Result<SweepCounts, StoreError>;
}
