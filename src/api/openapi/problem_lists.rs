//! Problems that many operations or documents have in common.

use crate::problem::Kind;
use Kind::{
    BadColumns, CompositionUndecidable, CompositionViolated, DependencyExpansionLimit, Forbidden, ForeignOrigin, Gone,
    GuaranteeUnsupported, HostRefused, IdentifierPublished, InfeasibleRoot, Internal, InvalidSpecification,
    MultiSaEmpty, NotGnf, OverlappingRowSets, ParameterRange, ReservedName, RuleImpossible, RuleIneligible,
    RuleMalformed, SeriesUndeclared, StorageFull, TooManyAttributes, TooManyRequests, Unauthenticated, Unavailable,
    UnclassifiedAttributes, UnknownAttribute, UnknownField, UnknownPolicy, VacuousGuarantee, WorkLimit,
};

/// Every operation can answer these.
pub(super) const COMMON_PROBLEMS: &[Kind] = &[ForeignOrigin, HostRefused, Internal];
/// Every operation that needs a key can answer these too.
pub(super) const AUTH_PROBLEMS: &[Kind] = &[Unauthenticated, Forbidden, TooManyRequests, Unavailable];
/// Every operation with a body can answer this.
pub(super) const BODY_PROBLEMS: &[Kind] = &[Kind::RequestTimeout];
/// What the faults of an `invalid-specification` can be.
pub(super) const FAULT_KINDS: &[Kind] = &[
    UnknownField,
    ParameterRange,
    ReservedName,
    UnknownAttribute,
    UnknownPolicy,
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
    Kind::InfeasibleSizes,
    Kind::DomainTooSmall,
    Kind::NoNoise,
    MultiSaEmpty,
    NotGnf,
    DependencyExpansionLimit,
    VacuousGuarantee,
    GuaranteeUnsupported,
    BadColumns,
    TooManyAttributes,
    WorkLimit,
];
/// What can end a job.
pub(super) const JOB_PROBLEMS: &[Kind] = &[
    InvalidSpecification,
    CompositionViolated,
    Kind::PriorReleaseViolates,
    OverlappingRowSets,
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
