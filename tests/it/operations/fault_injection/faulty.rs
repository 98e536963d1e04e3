//! A store that fails once, at a chosen call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use guardian::control::Progress;
use guardian::identity::ApiKey;
use guardian::people::{CoverageId, Evidence, KeyedHash, Place, PopulationRegistry};
use guardian::ports::{
    AdoptedSeries, AlikeMark, AnnouncementEnd, ApiKeyStore, AuditEntry, AuditFilter, Backlog, CancelOutcome,
    ChainRecord, ChainStore, ChunkEncryptor, ClaimTerms, ClaimedJob, CommitOutcome, CommonMark, CoverageRecord,
    CoverageSelection, CoveragesAt, Cursor, DatasetRecord, DatasetStore, DisclosureStore, DocumentKind,
    DocumentVersion, FormerSeriesStore, Heartbeat, IdempotencyRecord, IdempotencyStore, ImportConflict, ImportSummary,
    JobEnd, JobFilter, JobQueue, JobRecord, KeyedReleases, LeaseToken, LedgerCopy, LedgerMoment, LedgerSnapshot,
    LedgerTransferStore, LifecycleStore, ListedDataset, ListedJob, ListedRelease, MetadataStore, NamedDocument,
    NamedDocumentStore, NewChain, NewCoverage, NewDocument, NewIdempotencyKey, NewJob, Page, PartChunkRecord,
    PartChunkStore, PartObjectRecord, PeopleEntry, PeopleEntryOutcome, PeopleStore, QueueStatsStore, ReapProblems,
    Reaped, ReleaseCommit, ReleaseEvent, ReleaseFilter, ReleaseRecord, ReleaseStore, Rotation, RotationCounts,
    SeparationRecord, SeriesDataset, SeriesRecord, SeriesStatements, SharedStore, StatementRecord, StoreError,
    StoredChainState, SweepCounts, TenantSettings, TenantStore, Transition, TransitionOutcome, WriteOutcome,
};
use guardian::vault::Ciphertext;
use uuid::Uuid;

/// What workers call by themselves, in no order that a test could know.
pub(super) const BACKGROUND: &[&str] = &["claim", "heartbeat", "lease", "reap", "job", "renew_idempotency_key"];

/// When a call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Before it was done.
    Refused,
    /// After it was done: the answer is lost.
    AnswerLost,
}

/// What a call fails with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum How {
    Unavailable,
    Full,
    Corrupt,
}

impl How {
    fn error(self) -> StoreError {
        match self {
            Self::Unavailable => StoreError::Unavailable("injected".into()),
            Self::Full => StoreError::Full,
            Self::Corrupt => StoreError::corrupt("injected"),
        }
    }

    /// What a caller may be answered.
    pub(super) const fn status(self) -> u16 {
        match self {
            Self::Unavailable => 503,
            Self::Full => 507,
            Self::Corrupt => 500,
        }
    }
}

/// Which call fails, and what was called.
pub(super) struct Faults {
    fault: Option<(&'static str, usize, Mode, How)>,
    seen: Mutex<(BTreeMap<&'static str, usize>, bool)>,
}

impl Faults {
    /// Counts only.
    pub(super) fn none() -> Arc<Self> {
        Arc::new(Self { fault: None, seen: Mutex::default() })
    }

    /// The `call`-th call of `method` fails.
    pub(super) fn at(method: &'static str, call: usize, mode: Mode, how: How) -> Arc<Self> {
        Arc::new(Self { fault: Some((method, call, mode, how)), seen: Mutex::default() })
    }

    pub(super) fn how(&self) -> Option<How> {
        self.fault.map(|(.., how)| how)
    }

    /// Whether the call came.
    pub(super) fn fired(&self) -> bool {
        self.seen.lock().unwrap().1
    }

    pub(super) fn calls(&self) -> Vec<(&'static str, usize)> {
        self.seen.lock().unwrap().0.iter().map(|(method, count)| (*method, *count)).collect()
    }

    /// Counts a call; how it is to fail.
    fn count(&self, method: &'static str) -> Option<(Mode, How)> {
        let mut seen = self.seen.lock().unwrap();
        let count = seen.0.entry(method).or_default();
        *count += 1;
        let now = *count;
        let (_, _, mode, how) = self.fault.filter(|(of, call, ..)| *of == method && *call == now)?;
        seen.1 = true;
        Some((mode, how))
    }
}

/// A store that fails once.
pub(super) struct Faulty {
    pub(super) store: SharedStore,
    pub(super) faults: Arc<Faults>,
}

/// Passes every method on to the store within.
macro_rules! faulty {
    ($(impl $trait:ident { $(fn $method:ident($($argument:ident: $type:ty),* $(,)?) -> $answer:ty;)* })*) => {$(
        #[async_trait]
        impl $trait for Faulty {
            $(async fn $method(&self, $($argument: $type),*) -> Result<$answer, StoreError> {
                let fault = self.faults.count(stringify!($method));
                if let Some((Mode::Refused, how)) = fault {
                    return Err(how.error());
                }
                let answer = self.store.$method($($argument),*).await;
                match fault {
                    Some((_, how)) => answer.and(Err(how.error())),
                    None => answer,
                }
            })*
        }
    )*};
}

faulty! {
    impl DatasetStore {
        fn begin_upload(dataset: Uuid, wrapped_key: &[u8]) -> ();
        fn put_column_chunks(dataset: Uuid, chunk_no: u32, columns: &[(u32, Ciphertext)]) -> ();
        fn get_columns(dataset: Uuid, chunk_no: u32, columns: &[u32]) -> Vec<Option<Ciphertext>>;
        fn insert_dataset(dataset: &DatasetRecord, audit_entry: &AuditEntry) -> ();
        fn discard_upload(id: Uuid) -> ();
        fn dataset(tenant: &str, id: Uuid) -> Option<DatasetRecord>;
        fn datasets(tenant: &str, cursor: Option<Cursor>, limit: u32) -> Page<ListedDataset>;
        fn purge_dataset(tenant: &str, id: Uuid, at: DateTime<Utc>, audit_entry: &AuditEntry) -> DatasetRecord;
        fn unencrypted_datasets() -> Vec<Uuid>;
        fn encrypt_dataset(dataset: Uuid, wrapped_key: &[u8], encrypt: ChunkEncryptor<'_>) -> ();
    }
    impl ChainStore {
        fn chain(tenant: &str, population: &str) -> Option<ChainRecord>;
        fn is_chain_lost(tenant: &str, population: &str) -> bool;
        fn begin_chain(new: &NewChain) -> ChainRecord;
        fn put_chain_piece(chain: Uuid, job: Uuid, attempt: u32, piece: u32, payload: &Ciphertext) -> ();
        fn chain_piece(chain: Uuid, state: &StoredChainState, piece: u32) -> Option<Ciphertext>;
        fn end_chain(tenant: &str, population: &str, at: DateTime<Utc>, audit_entry: &AuditEntry) -> ChainRecord;
    }
    impl JobQueue {
        fn enqueue(job: NewJob) -> JobRecord;
        fn claim(token: LeaseToken, terms: ClaimTerms, now: DateTime<Utc>) -> Option<ClaimedJob>;
        fn heartbeat(
            id: Uuid, token: LeaseToken, progress: Option<Progress>, lease: Duration, now: DateTime<Utc>,
        ) -> Heartbeat;
        fn lease(id: Uuid, token: LeaseToken, now: DateTime<Utc>) -> Heartbeat;
        fn finish(id: Uuid, token: LeaseToken, end: JobEnd, now: DateTime<Utc>) -> WriteOutcome;
        fn succeed_with_reused(id: Uuid, token: LeaseToken, release: Uuid, now: DateTime<Utc>) -> WriteOutcome;
        fn release_lease(id: Uuid, token: LeaseToken, now: DateTime<Utc>) -> WriteOutcome;
        fn request_cancel(tenant: &str, id: Uuid, now: DateTime<Utc>, audit_entry: &AuditEntry) -> CancelOutcome;
        fn reap(now: DateTime<Utc>, max_attempts: u32, problems: &ReapProblems) -> Reaped;
        fn expire_all_leases(now: DateTime<Utc>) -> u64;
        fn queued_jobs(tenant: &str) -> u64;
        fn job(tenant: &str, id: Uuid) -> Option<JobRecord>;
        fn jobs(tenant: &str, filter: &JobFilter, cursor: Option<Cursor>, limit: u32) -> Page<ListedJob>;
    }
    impl PartChunkStore {
        fn put_part_chunk(job: Uuid, attempt: u32, chunk: &PartChunkRecord) -> ();
        fn part_chunk(tenant: &str, job: Uuid, attempt: u32, file: &str, number: u32) -> Option<PartChunkRecord>;
        fn part_chunk_at_row(tenant: &str, job: Uuid, attempt: u32, file: &str, row: u64) -> Option<PartChunkRecord>;
        fn drop_attempt(job: Uuid, attempt: u32) -> ();
        fn part_objects(tenant: &str, job: Uuid, attempt: u32, file: &str, from: u32) -> Vec<PartObjectRecord>;
        fn any_part_object() -> Option<PartObjectRecord>;
    }
    impl ReleaseStore {
        fn commit(commit: ReleaseCommit) -> CommitOutcome;
        fn release(tenant: &str, id: Uuid) -> Option<ReleaseRecord>;
        fn release_of_policy(tenant: &str, series: &str, policy: &str) -> Option<Uuid>;
        fn internal_report(tenant: &str, release: Uuid) -> Option<Ciphertext>;
        fn releases(tenant: &str, filter: &ReleaseFilter, cursor: Option<Cursor>, limit: u32) -> Page<ListedRelease>;
        fn sweep(now: DateTime<Utc>, grace: Duration) -> SweepCounts;
    }
    impl DisclosureStore {
        fn disclosures(tenant: &str, series: &str, content_hash: &[u8; 32]) -> LedgerSnapshot;
        fn series_statements(tenant: &str, series: &str) -> SeriesStatements;
        fn series_datasets(tenant: &str, series: &str) -> Vec<Uuid>;
        fn series(tenant: &str, series: &str) -> SeriesRecord;
        fn series_between(tenant: &str, series: &str, from: Uuid, to: Uuid) -> SeriesRecord;
        fn enter_statement(tenant: &str, series: &str, statement: &StatementRecord, audit_entry: &AuditEntry) -> ();
    }
    impl FormerSeriesStore {
        fn datasets_of_series() -> Vec<SeriesDataset>;
        fn adopt_series(series: &AdoptedSeries) -> ();
    }
    impl PeopleStore {
        fn people_registry(tenant: &str) -> PopulationRegistry;
        fn enter_people(entry: &PeopleEntry) -> PeopleEntryOutcome;
        fn separation_records(tenant: &str) -> Vec<SeparationRecord>;
        fn put_person_piece(dataset: Uuid, system: &str, piece: u32, persons: &[KeyedHash]) -> ();
        fn put_evidence(dataset: Uuid, evidence: &Evidence) -> ();
        fn datasets_without_evidence() -> Vec<(String, Uuid)>;
        fn evidence(tenant: &str, dataset: Uuid) -> Option<Evidence>;
        fn person_piece(tenant: &str, dataset: Uuid, system: &str, piece: u32) -> Option<Vec<KeyedHash>>;
        fn uncovered_datasets(tenant: &str) -> Vec<Uuid>;
        fn mark_covered(tenant: &str, dataset: Uuid) -> ();
        fn announce_coverage(new: &NewCoverage) -> CoverageId;
        fn cover_persons(tenant: &str, coverage: CoverageId, system: &str, persons: &[KeyedHash]) -> ();
        fn add_alike_marks(tenant: &str, coverage: CoverageId, marks: &[AlikeMark]) -> ();
        fn draw_ticket(tenant: &str, coverage: CoverageId) -> i64;
        fn standing_coverages(tenant: &str, ticket: i64) -> Vec<CoverageRecord>;
        fn ledger_moment(tenant: &str) -> LedgerMoment;
        fn published_places(tenant: &str) -> BTreeSet<Place>;
        fn select_coverages(tenant: &str, ticket: i64, selection: &CoverageSelection) -> CoveragesAt;
        fn common_persons(tenant: &str, system: &str, persons: &[KeyedHash], except: Option<CoverageId>) -> BTreeMap<CoverageId, u64>;
        fn published_persons(tenant: &str, system: &str, persons: &[KeyedHash]) -> BTreeSet<KeyedHash>;
        fn persons_of_job(tenant: &str, job: Uuid, system: &str, persons: &[KeyedHash]) -> BTreeSet<KeyedHash>;
        fn common_marks(tenant: &str, hashes: &[KeyedHash], except: Option<CoverageId>) -> Vec<CommonMark>;
        fn sample_cuts(tenant: &str, coverage: CoverageId) -> Vec<bool>;
        fn end_announcement(tenant: &str, coverage: CoverageId, end: &AnnouncementEnd) -> ();
        fn void_announcements(tenant: &str, job: Uuid, held: Option<LeaseToken>) -> u64;
        fn sweep_void_coverages() -> u64;
    }
    impl ApiKeyStore {
        fn insert_key(key: &ApiKey, audit_entry: &AuditEntry) -> ();
        fn insert_first_key(key: &ApiKey, audit_entry: &AuditEntry) -> bool;
        fn key(id: Uuid) -> Option<ApiKey>;
        fn keys(tenant: Option<&str>) -> Vec<ApiKey>;
        fn revoke_key(id: Uuid, at: DateTime<Utc>, audit_entry: &AuditEntry) -> ApiKey;
        fn append_audit(entry: &AuditEntry) -> ();
        fn audit(tenant: &str, filter: AuditFilter, cursor: Option<Cursor>, limit: u32) -> Page<AuditEntry>;
    }
    impl IdempotencyStore {
        fn claim_idempotency_key(key: &NewIdempotencyKey) -> Option<IdempotencyRecord>;
        fn drop_idempotency_key(resource: Uuid) -> ();
        fn renew_idempotency_key(resource: Uuid, until: DateTime<Utc>) -> bool;
        fn note_content(resource: Uuid, content_hash: &[u8; 32]) -> bool;
        fn expire_idempotency_keys(before: DateTime<Utc>) -> u64;
        fn lapse_idempotency_keys(now: DateTime<Utc>) -> ();
    }
    impl LifecycleStore {
        fn transition(transition: &Transition) -> TransitionOutcome;
        fn mark_read(tenant: &str, release: Uuid, at: DateTime<Utc>, audit_entry: &AuditEntry) -> bool;
        fn releases_of_key(tenant: &str, reuse_key: &[u8; 32]) -> KeyedReleases;
        fn old_releases(before: DateTime<Utc>) -> Vec<(String, Uuid)>;
        fn release_events(tenant: &str, release: Uuid) -> Vec<ReleaseEvent>;
    }
    impl MetadataStore {
        fn pin(name: &str, value: &[u8]) -> Vec<u8>;
        fn pinned(name: &str) -> Option<Vec<u8>>;
        fn rotate(rotation: Rotation<'_>) -> RotationCounts;
    }
    impl NamedDocumentStore {
        fn put_document(document: &NewDocument) -> (NamedDocument, bool);
        fn document(kind: DocumentKind, tenant: &str, name: &str, version: Option<u32>) -> Option<NamedDocument>;
        fn documents(kind: DocumentKind, tenant: &str, cursor: Option<Cursor>, limit: u32) -> Page<DocumentVersion>;
        fn policy_versions(tenant: &str, name: &str, cursor: Option<Cursor>, limit: u32) -> Page<DocumentVersion>;
        fn delete_taxonomy(name: &str, audit_entry: &AuditEntry) -> Option<DocumentVersion>;
    }
    impl LedgerTransferStore {
        fn copy_ledger(tenant: Option<&str>) -> LedgerCopy;
        fn import_ledger(copy: &LedgerCopy, at: DateTime<Utc>) -> Result<ImportSummary, ImportConflict>;
        fn coverage_persons(tenant: &str, coverage: CoverageId, system: &str, after: Option<KeyedHash>) -> Vec<KeyedHash>;
        fn coverage_marks(tenant: &str, coverage: CoverageId) -> Vec<AlikeMark>;
        fn is_imported(tenant: &str, release: Uuid) -> bool;
    }
    impl TenantStore {
        fn tenant_settings(tenant: &str) -> TenantSettings;
        fn tenants() -> Vec<(String, TenantSettings)>;
        fn set_tenant(tenant: &str, settings: TenantSettings, audit_entry: &AuditEntry) -> ();
    }
    impl QueueStatsStore {
        fn check() -> ();
        fn backlog() -> Backlog;
    }
}
