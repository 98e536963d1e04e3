//! The durable queue and its workers: leases, progress, cancellation; and the storage they need, as traits that a backend in
//! `store` implements.
//!
//! A job moves `queued -> running -> succeeded | refused | failed | cancelled`. Running means that a worker holds a lease: a
//! random token with an end. Every write of a worker carries the token, or its attempt, and is refused once the lease is lost, so
//! that of two workers that believe they have a job only one can end it. An expired lease puts the job back into the queue, a
//! bounded number of times and each time for longer. A job's wrapped key exists exactly until the job ends.

mod beside;
mod datasets;
mod desk;
mod disclosures;
mod entered;
mod error;
mod inspect;
mod keys;
pub mod ledger_file;
mod life;
mod load;
mod originals;
mod page;
mod people;
mod pins;
mod policies;
mod portable;
mod publish;
mod pulse;
mod queue;
mod releases;
mod repeat;
mod repeats;
mod seal;
mod sequence;
mod series;
mod shelf;
mod signals;
mod statements;
mod taxonomies;
mod tenants;
mod upload;
mod worker;

use std::sync::Arc;

use uuid::Uuid;

pub use crate::spec::METHODS;
pub use datasets::{ChunkEncryptor, DatasetRecord, DatasetStore};
pub use desk::{AppService, ReleaseKeySource, unauthenticated};
pub use disclosures::{
    ActiveRuleRecord, DisclosureRecord, DisclosureStore, LedgerSnapshot, SeriesEntry, SeriesRecord, StatementRecord,
};
pub use error::{StoreError, problem_of};
pub use inspect::ValueCount;
pub use keys::{ApiKeyStore, AuditAction, AuditEntry, AuditFilter};
pub use life::{LifecycleStore, ReleaseAction, ReleaseEvent, Transition, TransitionOutcome, approved_by_another};
pub use originals::{ExternalRowsSource, ReleaseOriginal};
pub use page::{Cursor, CursorError, Page};
pub use people::{
    FingerprintPiece, FingerprintRecord, FingerprintStore, KeyedHash, NewFingerprint, OverlapShare, RecordIdentity,
    SubjectFingerprint, SubjectOverlap,
};
pub use pins::{HASHING_KEY_PIN, MASTER_KEY_PIN, MetadataStore, RewrapKey, Rotation, RotationCounts};
pub use policies::{NewPolicy, PolicyRecord, PolicyStore, PolicyVersion};
pub use portable::{
    DestinationLedger, ImportConflict, ImportPlan, ImportSummary, LedgerContent, LedgerCopy, LedgerTransferStore,
    PortableDataset, PortableDisclosure, PortablePiece, PortableRelease, PortableRule, PortableStatement,
    PortableVersion,
};
pub use publish::Publisher;
pub use pulse::{Backlog, QueueStatsStore};
pub use queue::{
    CancelOutcome, ClaimTerms, ClaimedJob, Heartbeat, JobEnd, JobFilter, JobQueue, JobRecord, JobStatus, LeaseToken,
    NewJob, ReapProblems, Reaped, UnknownStatusError, WriteOutcome, back_off,
};
pub use releases::{
    CommitOutcome, NewDisclosure, NewRelease, PartChunkRecord, ReleaseCommit, ReleaseFilter, ReleaseRecord,
    ReleaseStore, SweepCounts,
};
pub use repeat::{IDEMPOTENCY_KEY_LIFETIME, IdempotencyClaim, IdempotencyOutcome};
pub use repeats::{IdempotencyRecord, IdempotencyStore, NewIdempotencyKey};
pub use seal::encrypt_datasets;
pub use shelf::{PartStorage, decompress};
pub use signals::Notifier;
pub use statements::{DeclaredProtection, ExternalDisclosure, Statement};
pub use taxonomies::{NewTaxonomy, TaxonomyRecord, TaxonomyStore, TaxonomyVersion};
pub use tenants::{TenantSettings, TenantStore};
pub use upload::{UploadRequest, upload};
pub use worker::{
    JobAssignment, JobRunner, MemoryBudget, MemoryPermit, RunCompletion, RunError, WorkerConfig, Workers, WorkersHandle,
};

/// What the service keeps. One backend implements all of it, because a commit spans jobs, releases and the ledger.
pub trait Store:
    DatasetStore
    + FingerprintStore
    + JobQueue
    + ReleaseStore
    + DisclosureStore
    + LedgerTransferStore
    + ApiKeyStore
    + IdempotencyStore
    + LifecycleStore
    + PolicyStore
    + TaxonomyStore
    + TenantStore
    + QueueStatsStore
    + MetadataStore
{
}

impl<T> Store for T where
    T: DatasetStore
        + FingerprintStore
        + JobQueue
        + ReleaseStore
        + DisclosureStore
        + LedgerTransferStore
        + ApiKeyStore
        + IdempotencyStore
        + LifecycleStore
        + PolicyStore
        + TaxonomyStore
        + TenantStore
        + QueueStatsStore
        + MetadataStore
{
}

/// A store as it is shared.
pub type SharedStore = Arc<dyn Store>;

/// The `instance` of a problem that a job ends with.
#[must_use]
pub fn instance(job: Uuid) -> String {
    job.urn().to_string()
}
