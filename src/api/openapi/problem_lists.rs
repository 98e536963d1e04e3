//! Problems that many operations or documents have in common.

use crate::problem::Kind;
use Kind::{
    BadColumns, CompositionUndecidable, CompositionViolated, DependencyExpansionLimit, Forbidden, ForeignOrigin, Gone,
    GuaranteeUnsupported, HostRefused, IdentifierPublished, InfeasibleRoot, Internal, InvalidSpecification,
    MultiSaEmpty, NotGnf, OverlappingRowSets, ParameterRange, ReservedName, RuleImpossible, RuleIneligible,
    RuleMalformed, SeriesUndeclared, StorageFull, TooManyAttributes, TooManyRequests, Unauthenticated, Unavailable,
    UnclassifiedAttributes, UnknownAttribute, UnknownField, UnknownPolicy, UnknownPopulation, VacuousGuarantee,
    WorkLimit,
};

/// Problems of every operation.
pub(super) const COMMON_PROBLEMS: &[Kind] =
    &[ForeignOrigin, HostRefused, Kind::UriTooLong, Kind::HeadersTooLarge, Internal];
/// Additional problems of operations with a key.
pub(super) const AUTH_PROBLEMS: &[Kind] = &[Unauthenticated, Forbidden, TooManyRequests, Unavailable];
/// Additional problems of operations with a body.
pub(super) const BODY_PROBLEMS: &[Kind] = &[Kind::RequestTimeout];
/// The types of faults of an `invalid-specification`.
pub(super) const FAULT_KINDS: &[Kind] = &[
    UnknownField,
    ParameterRange,
    ReservedName,
    UnknownAttribute,
    UnknownPolicy,
    UnknownPopulation,
    Kind::UnknownTaxonomy,
    Kind::TaxonomyConflict,
    Kind::TaxonomyValueMissing,
    Kind::UnknownRelease,
    UnclassifiedAttributes,
    IdentifierPublished,
    RuleMalformed,
    RuleIneligible,
    InfeasibleRoot,
    Kind::ExclusionContradicted,
    Kind::JoinTooDense,
    RuleImpossible,
    Kind::ThresholdMissing,
    Kind::ThresholdUnused,
    Kind::InfeasibleSizes,
    Kind::DomainTooSmall,
    Kind::NoNoise,
    Kind::CanBeConcluded,
    Kind::UnknownDependency,
    MultiSaEmpty,
    NotGnf,
    DependencyExpansionLimit,
    VacuousGuarantee,
    GuaranteeUnsupported,
    Kind::RepublishUnsupported,
    Kind::RepublishNeedsRecordKey,
    Kind::RepublishSpecificationChanged,
    BadColumns,
    TooManyAttributes,
    WorkLimit,
];
/// Problems that end a job.
pub(super) const JOB_PROBLEMS: &[Kind] = &[
    InvalidSpecification,
    CompositionViolated,
    Kind::PriorReleaseViolates,
    OverlappingRowSets,
    Kind::PopulationUndeclared,
    Kind::PeopleUnknown,
    Kind::OverlappingPeople,
    Kind::PeopleAlike,
    Kind::StatementContradicted,
    Kind::NoNewPeople,
    Kind::RepublishNotStarted,
    Kind::RepublishPending,
    Kind::RepublishStateLost,
    Kind::RepublishValueChanged,
    Kind::EmptyTable,
    Kind::SourceRefused,
    Kind::SourceUnreadable,
    Kind::RowsElsewhere,
    CompositionUndecidable,
    SeriesUndeclared,
    Gone,
    WorkLimit,
    Kind::Deadline,
    Kind::AttemptsExhausted,
    Unavailable,
    StorageFull,
    Internal,
];
