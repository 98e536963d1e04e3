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
pub use datasets::{DatasetRecord, Datasets, Seal};
pub use desk::{Desk, KeySource, refused};
pub use disclosures::{
    DisclosureRecord, Disclosures, LedgerSnapshot, SeriesEntry, SeriesRecord, StandingRuleRecord, StatementRecord,
};
pub use error::{StoreError, problem_of};
pub use inspect::ValueCount;
pub use keys::{Action, AuditEntry, AuditFilter, Keys};
pub use life::{Act, Lives, ReleaseEvent, Transition, Transitioned, by_another};
pub use originals::{EnteredRows, Original};
pub use page::{Cursor, MalformedCursor, Page};
pub use people::{KnownBy, Mark, NewPeople, Overlap, People, PeopleRecord, Peoples, Piece, Share};
pub use pins::{HASHING_KEY_PIN, MASTER_KEY_PIN, Pins, Rewrap, Rotated, Rotation};
pub use policies::{NewPolicy, Policies, PolicyRecord, PolicyVersion};
pub use portable::{
    Content, ImportConflict, ImportPlan, Imported, LedgerCopy, LedgerHere, Ledgers, PortableDataset,
    PortableDisclosure, PortablePiece, PortableRelease, PortableRule, PortableStatement, PortableVersion,
};
pub use publish::Publisher;
pub use pulse::{Backlog, Pulse};
pub use queue::{
    CancelOutcome, ClaimTerms, ClaimedJob, Heartbeat, JobEnd, JobFilter, JobRecord, JobStatus, LeaseToken, NewJob,
    Queue, ReapProblems, Reaped, UnknownStatus, Written, back_off,
};
pub use releases::{
    Commit, CommitOutcome, NewDisclosure, NewRelease, PartChunkRecord, ReleaseFilter, ReleaseRecord, Releases, Swept,
};
pub use repeat::{Begun, Claim, KEYS_KEPT};
pub use repeats::{NewRepeat, RepeatRecord, Repeats};
pub use seal::seal_datasets;
pub use shelf::{PartShelf, decompress};
pub use signals::Signals;
pub use statements::{StatedStanding, StatedTable, Statement};
pub use taxonomies::{NewTaxonomy, Taxonomies, TaxonomyRecord, TaxonomyVersion};
pub use tenants::{TenantSettings, Tenants};
pub use upload::{UploadRequest, upload};
pub use worker::{Assignment, Completion, MemoryBudget, Runner, Stop, Taken, WorkerConfig, Workers, WorkersHandle};

/// What the service keeps. One backend implements all of it, because a commit spans jobs, releases and the ledger.
pub trait Store:
    Datasets
    + Peoples
    + Queue
    + Releases
    + Disclosures
    + Ledgers
    + Keys
    + Repeats
    + Lives
    + Policies
    + Taxonomies
    + Tenants
    + Pulse
    + Pins
{
}

impl<T> Store for T where
    T: Datasets
        + Peoples
        + Queue
        + Releases
        + Disclosures
        + Ledgers
        + Keys
        + Repeats
        + Lives
        + Policies
        + Taxonomies
        + Tenants
        + Pulse
        + Pins
{
}

/// A store as it is shared.
pub type SharedStore = Arc<dyn Store>;

/// The `instance` of a problem that a job ends with.
#[must_use]
pub fn instance(job: Uuid) -> String {
    job.urn().to_string()
}
