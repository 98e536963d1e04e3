//! What is published, as data: the one shape that every method returns. No functions of methods.
//!
//! A [`Publication`] describes the tables and their parts; the cells stand in [`PublicationCells`] until they are written. So the
//! same description serves the method that makes a release, the verifier that re-reads it, and a manifest read back.

mod contents;
mod guarantee;
mod ratio;
mod rule;
mod sequence;
mod table;
mod thresholds;
mod thresholds_name;
mod unit;
mod vocabulary;
mod witness;

pub use contents::{BucketColumn, PartContents, PublicationCells, PublishedBytes};
pub use guarantee::{Divergence, Guarantee, PriorDistribution, RhoMode, ValueDistance};
pub use ratio::{Ratio, RatioError};
pub use rule::{
    DeclaredInputs, DeclaredTaxonomy, DeclaredThresholds, EnforcedBy, EnforcedRule, ExcludedValues, RuleDerivation,
    SubmittedRule,
};
pub use sequence::{
    Conditions, EarlierColumn, EarlierRelease, EarlierReleases, Exclusion, JoinAttribute, JoinResult, KEY as ROW_KEY,
    RecordMatches, RowCorrespondence, SensitiveValue, SequentialDetails, XyMeasure, XyRequirement, YElement,
    reference_parts, reference_text,
};
pub use table::{
    CellContent, DecompositionDetails, InferableBucket, MethodDetails, Part, Protected, PublishedColumn,
    PublishedTable, RowMeaning, TableGuard, TableName, TableProtection, kind_of_guarding,
};
pub use thresholds::{DigestedThresholds, Thresholds};
pub use thresholds_name::ThresholdsDigest;
pub use unit::{Unit, UnitGuarantees};
pub use vocabulary::{
    AdversaryModel, Algorithm, AttackInput, BreachKind, CheckName, CompositionMode, CompositionVerdict,
    DisclosureStatus, JoinSelection, Linkage, MethodKind, ModelKind, NoticeKind, PlanRuleStatus, ProtectionKind,
    ReleaseStatus, RowKind, RuleOrigin, SlicedDiversity, TableKind, VocabularyError,
};
pub use witness::{TableWitness, Witness};

/// The outcome of a method: the published tables and how each rule stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The published tables, in the order of their names.
    pub tables: Vec<PublishedTable>,
    /// How each rule stands, the submitted ones in their order.
    pub rules: Vec<EnforcedRule>,
    /// What only some methods have to say.
    pub method_details: MethodDetails,
    /// Rows that appear in no table. Internal: never in a manifest.
    pub suppressed: u64,
}
