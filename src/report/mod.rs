//! Documents of a release: manifest, reports, archive, and parts in every format.

mod archive;
mod counts;
mod dependencies;
mod exposures;
mod identity;
mod internal;
mod manifest;
mod manifest_part;
mod method_details;
mod page;
mod part_files;
mod population;
mod public;
mod ratio;
mod reading;
mod readme;
mod rendering;
mod republish;
mod results;
mod rows;
mod rule_figures;
mod sequence;
mod series;

pub use archive::{Archive, data_package};
pub use counts::{CountsPage, RowCursorError, counted};
pub use dependencies::{
    AssumedUnknownForm, ClosedStrataForm, ClosingReasonForm, DependencyForm, ManifestDependencies, RuleDerivationForm,
    UsedDependencyForm,
};
pub use exposures::{ExposedRows, ExposedValues, ManifestExposures, PractitionerExposures, PractitionerValues};
pub use identity::{ManifestIdentity, ManifestStatement, unrelated_in_words};
pub use internal::{
    Classification, CountReport, Generalization, InternalReport, KlReport, LeftOutContributions, NightCounts,
    OriginalColumn,
};
pub use manifest::{
    Manifest, ManifestAchieved, ManifestClosed, ManifestEnforcedBy, ManifestGuard, ManifestInput, ManifestRule,
    ManifestTable, MethodName, Provenance, SpecificationNotice, manifest, thresholds_of,
};
pub use manifest_part::{ManifestPart, PartFile, WritingEngine, WrittenPart};
pub use method_details::MethodDetailsForm;
pub use page::{ChartError, PAGE_POLICY, internal_report_page, report_page};
pub use part_files::{PartFilesReader, PartRendering};
pub use population::{
    AutoNewcomers, DefinedPopulation, NewcomersThreshold, PeopleStatement, PopulationDetails, PopulationItem,
    PopulationKeyForm, RepublicationProgress, RepublicationTerms,
};
pub use public::{Certainty, PublicReport, public_report};
pub use ratio::ManifestRatio;
pub use reading::publication_of;
pub use readme::readme;
pub use rendering::{PartFormat, PartView, Rendering, scales};
pub use republish::{BucketFillForm, PastNightForm, PreviousNightForm, RepublishForm};
pub use results::{BucketSizes, CheckResult, ColumnFigures, Utility, VerificationSummary};
pub use rows::PartRows;
pub use rule_figures::{OVER_BUCKETS, RuleFigures, RuleMeasure};
pub use series::{
    Series, SeriesAttribute, SeriesDisclosure, SeriesPage, SeriesRule, SharedAttributes, Unproven, WeakenedRule,
    WeakenedRuleReference,
};
