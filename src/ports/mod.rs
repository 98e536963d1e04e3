//! Storage as traits that a backend in `store` implements, and the records that they carry.
mod api_keys;
mod datasets;
mod disclosures;
mod error;
mod fingerprints;
mod idempotency;
mod lifecycle;
mod notifier;
mod page;
mod policies;
pub mod portable;
mod queue;
mod queue_stats;
mod releases;
mod statements;
mod store_metadata;
mod taxonomies;
mod tenants;

use std::sync::Arc;

pub use api_keys::{ApiKeyStore, AuditAction, AuditEntry, AuditFilter};
pub use datasets::{ChunkEncryptor, DatasetRecord, DatasetStore};
pub use disclosures::{
    ActiveRuleRecord, DisclosureRecord, DisclosureStore, LedgerSnapshot, SeriesEntry, SeriesRecord, StatementRecord,
};
pub use error::{StoreError, problem_of};
pub use fingerprints::{
    FingerprintPiece, FingerprintRecord, FingerprintStore, KeyedHash, NewFingerprint, OverlapShare, RecordIdentity,
    SubjectFingerprint, SubjectOverlap,
};
pub(crate) use fingerprints::{HASHES_PER_PIECE, MIN_SAMPLED_ROWS, cut, hashed, packed, unpacked};
pub use idempotency::{IdempotencyRecord, IdempotencyStore, NewIdempotencyKey};
pub(crate) use lifecycle::release_ended_problem;
pub use lifecycle::{LifecycleStore, ReleaseAction, ReleaseEvent, Transition, TransitionOutcome, approved_by_another};
pub use notifier::Notifier;
pub use page::{Cursor, CursorError, Page};
pub(crate) use policies::MAX_POLICY_BYTES;
pub use policies::{NewPolicy, PolicyRecord, PolicyStore, PolicyVersion};
pub use portable::file::{LedgerFileError, LedgerHeader, LedgerWriter, read};
pub use portable::records::{
    LedgerContent, PortableDataset, PortableDisclosure, PortablePiece, PortableRelease, PortableRule,
    PortableStatement, PortableVersion,
};
pub use portable::{DestinationLedger, ImportConflict, ImportPlan, ImportSummary, LedgerCopy, LedgerTransferStore};
pub use queue::{
    CancelOutcome, ClaimTerms, ClaimedJob, Heartbeat, JobEnd, JobFilter, JobQueue, JobRecord, JobStatus, LeaseToken,
    NewJob, ReapProblems, Reaped, UnknownStatusError, WriteOutcome, back_off, instance,
};
pub use queue_stats::{Backlog, QueueStatsStore};
pub use releases::{
    CommitOutcome, NewDisclosure, NewRelease, PartChunkRecord, ReleaseCommit, ReleaseFilter, ReleaseRecord,
    ReleaseStore, SweepCounts,
};
pub use statements::{DeclaredProtection, ExternalDisclosure, Statement};
pub use store_metadata::{HASHING_KEY_PIN, MASTER_KEY_PIN, MetadataStore, RewrapKey, Rotation, RotationCounts};
pub(crate) use taxonomies::{MAX_TAXONOMY_BYTES, no_such_taxonomy};
pub use taxonomies::{NewTaxonomy, TaxonomyRecord, TaxonomyStore, TaxonomyVersion};
pub use tenants::{TenantSettings, TenantStore};

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
