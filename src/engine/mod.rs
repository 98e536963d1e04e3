//! One release from start to end: plan, publish, write, verify, describe; and the attacks on releases.
//!
//! Jobs, plans and the command line use it. It has no HTTP, SQL, clock or async runtime.

mod attack;
mod error;
mod memory;
mod plan;
mod practitioner;
mod prepare;
mod read_back;
mod release;
mod remote;
mod sequential;
mod suggest;
mod verification;

pub use attack::corruption::Corruption;
pub use attack::dependency::dependency_attack;
pub use attack::inference::inference_attack;
pub use attack::intersection::{
    Intersection, IntersectionFault, IntersectionReport, NightOriginal, ReleasedNight, previous_night,
};
pub use attack::join::JoinableRelease;
pub use attack::membership::membership;
pub use attack::negative_association::negative_association;
pub use attack::play::attack_tables;
pub use attack::report::{
    AttackFinding, AttackFindings, AttackReport, FindingValue, JoinAttackMeasure, JoinAttackResult, MembershipClass,
    MembershipSummary, RuledOutValues, TupleCount,
};
pub use attack::target::AttackTarget;
pub use error::EngineError;
pub use memory::{
    ColumnSize, choice_memory, join_memory, measurement_memory, night_memory, profile_memory, release_memory,
};
pub use plan::dry_run::{DryRunInput, TablePair, check, check_and_repair, dry_run, dry_run_from_counts};
pub use plan::night::PlannedNight;
pub use plan::profile::{AttributeAssociation, DependencyProfile, ExactDependency, ProfiledColumn, profile};
pub use plan::types::{
    CompositionCounts, ExposedTo, Plan, PlanComposition, PlanExposures, PlanProxy, PlanRule, PlanTable,
};
pub use prepare::annotations::{annotate, annotate_with_unknown, faults_of_values};
pub use prepare::unused_thresholds::Inspection;
pub use read_back::contributions::{WholeOriginal, verify_contributions};
pub use read_back::external::{
    ReadFile, ReserveMemory, VerificationMaterial, read_file, read_published, rules_of, submitted_tables,
    tables_with_counterfeits,
};
pub use read_back::linked::{BucketJoiner, LinkedViewError, labels as bucket_labels, linked_part};
pub use read_back::measures::{AchievedMeasures, RecursiveC, TableMeasures};
pub use read_back::night::{LastNight, last_night, shows_night};
pub use read_back::published_value::{NamedValues, PublishedValue};
pub use read_back::query::{ErrorModelName, QueryAnswer, QuerySet};
pub use read_back::verify::{VerificationInput, verify};
pub use release::input::{ReleaseInput, RepublishInput, VerifiedRelease};
pub use release::run::release;
pub use release::write::PartStore;
pub use remote::classes::{CoveredCells, RemoteClasses};
pub use remote::counted::RemoteOrder;
pub use remote::distinct_rows::DistinctRows;
pub use remote::limits::{
    MOST_DISTINCT_ROWS, MOST_HELD_ROWS, are_limits_there, are_parts_read, chooses_by_rows, needs_rows_here,
    remote_conflict, remote_faults,
};
pub use remote::members::{RemoteMembers, RowTexts};
pub use remote::plan::plan_remotely;
pub use remote::port::{
    CopiedTable, CountedGroups, CountedValue, InferredRows, RemoteAudit, RemoteBuckets, RemoteCheck, RemoteColumn,
    RemoteEngine, RemoteError, RemoteForm, RemotePart, RemoteTable, RemoteTablePlan, WrittenRemotePart,
};
pub use remote::published::{ProtectedRemoteColumn, PublishedRemoteColumn};
pub use remote::release::{AuditedRelease, RemoteOutput, RemoteParts, release_remotely};
pub use remote::sample::RowSample;
pub use remote::slices::RemoteSlices;
pub use sequential::earlier::{against, earlier_of, external_releases, tuples_of};
pub use sequential::external::{ExternalTableRows, JoinContext, external_release};
pub use suggest::place::{SuggestionInput, columns_to_load, suggest};
pub use suggest::suggestion::{ColumnQuestion, SuggestedColumn, SuggestedSubject, Suggestion};
pub use suggest::undeclared::undeclared_subject;
pub use verification::report::{BrokenClass, BrokenClasses, Verification, VerifiedRule, VerifiedTable};
pub use verification::run::verify_tables;
