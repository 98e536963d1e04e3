//! Storage as traits that a backend in `store` implements, and the records that they carry.

mod api_keys;
mod chains;
mod datasets;
mod disclosures;
mod error;
mod former_series;
mod hashes;
mod idempotency;
mod lifecycle;
mod named_documents;
mod notifier;
mod page;
mod parts;
mod people;
pub mod portable;
mod queue;
mod queue_stats;
mod releases;
mod statements;
mod store;
mod store_metadata;
mod tenants;

pub use crate::people::KeyedHash;
pub use api_keys::{ApiKeyStore, AuditAction, AuditEntry, AuditFilter};
pub use chains::{CHAIN_PIECE_BYTES, ChainRecord, ChainStep, ChainStore, NewChain, StoredChainState};
pub use datasets::{BoundedContributions, ChunkEncryptor, DatasetRecord, DatasetStore, EngineTable, ListedDataset};
pub use disclosures::{
    ActiveRuleRecord, DisclosureRecord, DisclosureStore, LedgerSnapshot, SeriesEntry, SeriesRecord, SeriesStatements,
    StatementRecord,
};
pub(crate) use error::ErrorSource;
pub use error::StoreError;
pub use former_series::{AdoptedSeries, FormerSeriesStore, SeriesDataset};
pub use idempotency::{IdempotencyRecord, IdempotencyStore, NewIdempotencyKey};
pub(crate) use lifecycle::release_ended_problem;
pub use lifecycle::{
    KeyedReleases, LifecycleStore, ReleaseAction, ReleaseEvent, Transition, TransitionOutcome, approved_by_another,
};
pub use named_documents::{DocumentKind, DocumentVersion, NamedDocument, NamedDocumentStore, NewDocument};
pub use notifier::Notifier;
pub use page::{Cursor, CursorError, Page};
pub use parts::{MAX_LISTED_PART_OBJECTS, PartChunkRecord, PartChunkStore, PartObjectRecord, PartObjects};
pub use people::{
    AlikeKind, AlikeMark, AnnouncedCoverage, AnnouncementEnd, CommonMark, CoverageRecord, CoverageSelection,
    CoverageState, CoveragesAt, HASHES_PER_CALL, LedgerMoment, MARKS_PER_CALL, NamedPopulation, NewCoverage,
    PeopleEntry, PeopleEntryOutcome, PeopleStore, SampleId, SeparationRecord, SeriesStatement,
};
pub use portable::carried_bytes::CarriedBytes;
pub use portable::file::{LedgerFileError, LedgerHeader, LedgerWriter, read};
pub use portable::records::{
    LedgerContent, PortableChain, PortableChainPiece, PortableChainState, PortableCoverage, PortableDataset,
    PortableDisclosure, PortableHashes, PortableKeySystem, PortablePopulation, PortableRelease, PortableRule,
    PortableSeparation, PortableStatement, PortableVersion, SeriesName,
};
pub use portable::{
    CARRIED_HASHES, CarriedChain, CarriedCoverage, DestinationLedger, ImportConflict, ImportPlan, ImportSummary,
    LedgerCopy, LedgerTransferStore, ReleaseEntry,
};
pub use queue::{
    CancelOutcome, ClaimTerms, ClaimedJob, Heartbeat, JobEnd, JobFilter, JobQueue, JobRecord, JobStatus, LeaseToken,
    ListedJob, NewJob, ReapProblems, Reaped, UnknownStatusError, WriteOutcome, back_off, instance,
};
pub use queue_stats::{Backlog, QueueStatsStore};
pub use releases::{
    CommitOutcome, ListedRelease, NewDisclosure, NewRelease, ReleaseCommit, ReleaseFilter, ReleaseRecord, ReleaseStore,
    SweepCounts,
};
pub use statements::{DeclaredProtection, ExternalDisclosure, Statement};
pub use store::{SharedStore, Store};
pub use store_metadata::{HASHING_KEY_PIN, MASTER_KEY_PIN, MetadataStore, RewrapKey, Rotation, RotationCounts};
pub use tenants::{TenantChange, TenantSettings, TenantStore, UnrelatedPolicy};
