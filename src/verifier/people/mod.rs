//! Who the rows of a release speak of, derived again: evidence from the submitted rows, and the claim of the manifest
//! from evidence, live coverages and statements.
//!
//! Shares no function with the module that collects evidence and judges jobs.

mod claim;
mod counts;
mod facts;
mod fault;
mod fold;
mod marks;
mod surprise;
#[cfg(test)]
mod tests;

pub use claim::{
    ClaimedPeople, ContinuedRows, KnownSystem, OtherCoverage, RecordedPersons, RecordedRows, RecordedStatement,
    audit_claim, audit_recorded, decisive_marks,
};
pub use counts::SortedHashes;
pub use facts::{AuditedRows, AuditedSystem, PeopleFacts, RowsLayout, SystemFacts, derive_facts};
pub use fault::{OtherCoverageError, PeopleClaimError};
pub use fold::KeyFold;
pub use marks::{AuditedMark, AuditedSample, MarkKind};
