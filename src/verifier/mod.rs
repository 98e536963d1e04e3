//! Independent verification of written parts, by definition.
//!
//! Shares types, but no functions, with the code it checks.
//!
//! The verifier reads the bytes of every part through the reader that serves them. It compares them with the
//! original, the secret witness and the submitted rules, in integers. It fails closed: what it cannot check is a
//! failure. It omits a check only when its premise, the original, is not given.
//!
//! Details name tables, parts, row numbers of parts, attributes and counts, never a value.
//!
//! # Citations
//! docs/security/threat-model.md#verifier

mod attack;
mod carried;
mod contract;
mod contributions;
mod definition;
mod external;
mod people;
mod read;
mod release;
mod republication;
mod verify;

#[cfg(test)]
mod tests;

pub use attack::bucket::{BucketAttackFinding, BucketAttackReport};
pub use attack::dependency::find_by_dependencies;
pub use attack::error::AttackError;
pub use attack::inference::{InferenceQuestion, InferenceReport, InferredValue, infer_values};
pub use attack::membership::members::members;
pub use attack::membership::report::{MembershipError, MembershipReport, TupleEstimate};
pub use attack::negative_association::find_negative_associations;
pub use attack::possible_worlds::{PossibleWorldsReport, PosteriorFinding, count_worlds};
pub use attack::proxy::infer::{ProxyFinding, infer_by_proxy};
pub use carried::{CarriedPart, CarriedPartError};
pub use contract::checks::{Check, CheckName, ClosedBuckets, Linkage, PosteriorSummary, TableFigures, VerifierReport};
pub use contract::input::{DeclaredSearch, PartsReader, VerifierError, VerifierInput};
pub use contributions::{ContributionClaim, check_contributions};
pub use definition::measure::BucketMeasure;
pub use definition::share::ShareOfRows;
pub use external::decomposition_view::DecompositionView;
pub use external::evaluate::evaluate;
pub use external::submission::{
    ClassMeasures, EvaluationReport, ExternalEnforcement, ExternalTableFigures, RuleOutcome, Submission,
    ViolatingClass, ViolatingClasses,
};
pub use external::table::{CellText, ExternalPart, ExternalTable};
pub use people::{
    AuditedMark, AuditedRows, AuditedSample, AuditedSystem, ClaimedPeople, ContinuedRows, KeyFold, KnownSystem,
    MarkKind, OtherCoverage, OtherCoverageError, PeopleClaimError, PeopleFacts, RecordedPersons, RecordedRows,
    RecordedStatement, RowsLayout, SortedHashes, SystemFacts, audit_claim, audit_recorded, decisive_marks,
    derive_facts,
};
pub use release::contents::{AttributeContents, CountedTables, OriginalValues, TableContents};
pub use release::covered::CoveredColumn;
pub use release::sequential::groups::JoinError;
pub use release::sequential::join::{JoinMeasures, ReleaseJoin};
pub use release::sequential::observed::ObservedRelease;
pub use republication::{
    AuditedNight, ChainAudit, ChainBucket, ChainFault, ChainNight, ChainReport, NightParts, ShownSignatures, ShownSlot,
    SignatureReader, audit_night, link_by_cells, night_digest, shown_signatures,
};
pub use verify::{verify, verify_and_read, verify_contents};
