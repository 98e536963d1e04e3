//! A publication as data: the shape that every method returns.
//!
//! A [`Publication`] describes tables and parts; [`PublicationCells`] holds the cells until they are written. The same
//! description serves methods, the verifier and manifests that are read back.

mod breach;
mod contents;
mod contributions;
mod guarantee;
mod notice_kind;
mod ratio;
mod republish;
mod rule;
mod sequence;
mod table;
mod thresholds;
mod thresholds_name;
mod unit;
mod vocabulary;
mod witness;

pub use breach::BreachKind;
pub use contents::{BucketColumn, PartContents, Publication, PublicationCells, PublishedBytes, ReadColumn, ReadPart};
pub use contributions::ContributionChoice;
pub use guarantee::{Divergence, Guarantee, PriorDistribution, Reference, RhoMode, ValueDistance};
pub use notice_kind::NoticeKind;
pub use ratio::{Ratio, RatioError};
pub use republish::{
    BucketFill, BucketMerging, ChangedValues, NightDigest, PastNight, PreviousNight, RepublishDetails, RepublishFigures,
};
pub use rule::{
    DeclaredInputs, DeclaredTaxonomy, DeclaredThresholds, EnforcedBy, EnforcedRule, ExcludedValues, RuleDerivation,
    SubmittedRule,
};
pub use sequence::{
    Conditions, EarlierColumn, EarlierRelease, EarlierReleases, Exclusion, JoinAttribute, JoinResult, KEY as ROW_KEY,
    NEW as NEW_RELEASE, RecordMatches, RowCorrespondence, SensitiveValue, SequentialDetails, XyMeasure, XyRequirement,
    YElement, reference_parts, reference_text,
};
pub use table::{
    CellContent, DecompositionDetails, InferableBucket, MethodDetails, Part, Protected, PublishedColumn,
    PublishedTable, RowMeaning, SizeCount, TableGuard, TableName, TableProtection, kind_of_guarding,
};
pub use thresholds::{DigestedThresholds, Thresholds};
pub use thresholds_name::ThresholdsDigest;
pub use unit::{Unit, UnitGuarantees};
pub(crate) use vocabulary::vocabulary;
pub use vocabulary::{
    AdversaryModel, Algorithm, AssumedAssociations, AttackInput, CheckName, CompositionMode, CompositionVerdict,
    DependencyUse, DisclosureStatus, IdentityScope, JoinSelection, Linkage, MethodKind, ModelKind, PersonLink,
    PersonsKnown, PlanRuleStatus, ProtectionKind, PublishedPeople, ReleaseStatus, RowKind, RuleOrigin,
    SearchedDependencies, SlicedDiversity, StatementKind, TableKind, VocabularyError,
};
pub use witness::{TableWitness, Witness};
