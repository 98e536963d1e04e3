//! What a job or a plan is made from: columns, earlier releases, external rows, the memory that they need.

mod chain;
mod columns;
mod composition;
mod context;
mod earlier_coverages;
mod earlier_releases;
mod env;
mod error;
mod evidence;
mod external_rows;
mod job_inputs;
mod kept_rows;
mod memory;
mod memory_estimate;
mod originals;
mod part_storage;
mod people;
mod people_audit;
mod people_conflict;
mod profiles;
mod record_match;

pub use chain::{ChainAttempt, ChainPlace, ChainReadError, LoadedChain, night_end};
pub(crate) use columns::{column_of, load};
pub(crate) use composition::{CompositionConflict, CompositionContext, JudgedAt, JudgedPeople, LedgerLook, earlier_of};
pub(crate) use context::JobContext;
pub(crate) use earlier_releases::read_earlier_releases;
pub(crate) use env::{ColumnSelection, InputEnv};
pub(crate) use error::{InputError, dictionary_problem};
pub(crate) use evidence::{StoredRows, contribution_problem, evidence_problem, keep_evidence};
pub(crate) use external_rows::{ExternalAttributes, ExternalRows, NO_SINGLE_COLUMN_DETAIL};
pub use memory::{MemoryBudget, MemoryPermit};
pub(crate) use memory_estimate::{columns_memory, job_memory};
pub(crate) use originals::external_rows_problem;
pub use originals::{ExternalRowsSource, ReleaseOriginal};
pub use part_storage::{PartStorage, decompress};
pub(crate) use people::declared_datasets;
pub use people::{
    JobPeople, JobPersons, PersonKeys, RowChoice, StandingCoverages, announce, chosen_rows, marks, standing,
};
pub(crate) use people_audit::{AuditedEntry, PeopleAudit, PeopleAuditError};
pub(crate) use profiles::{ProfileCounts, column_facts, encrypt_profiles, specification_of};
