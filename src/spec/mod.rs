//! Request documents: types, rule grammar, and readers that report every fault with its JSON pointer.
//!
//! The macro `document!` declares an object once: its reader, its normal form and its JSON schema. A document with three faults gets
//! three, each with a pointer and a kind of the catalogue. [`read`] checks a job document against the columns of its dataset. Checks
//! that need more than the counts of one column are left to the job.
//!
//! A member that is null counts as absent.

mod check;
mod document;
mod grammar;
mod methods;
mod offered;
mod remedies;
mod requests;
mod schemas;

#[cfg(test)]
mod tests;

pub use check::specification::{ParsedDocument, ProposedTable, SpecWarning, Specification};
pub use check::values::{path_segment, values_missing, values_pointer};
pub use document::read;
pub use grammar::duration::parse as duration;
pub use grammar::general::{PeopleChoice, dataset_of};
pub use grammar::json::parse as parse_json;
pub use grammar::reader::{FaultList, child};
pub use grammar::republish::RepublishSpec;
pub use grammar::schema::{ColumnFacts, DatasetSchema, DocumentSource};
pub use grammar::shorthand::{RuleName, parse, write};
pub use grammar::taxonomy::{TaxonomyName, expand_taxonomies, read_levels, read_taxonomy, taxonomies_named, taxonomy};
pub use grammar::utility::{CountWorkload, InternalUtility, PredicateWidthChoice};
pub use grammar::versioned_name::{POLICY_NAME, VersionedName, is_policy_name};
pub use methods::bucketize::{BucketSizeChoice, BucketizeSpec};
pub use methods::decompose::{BreachPolicy, DecomposeSpec};
pub use methods::method::{METHOD_NAMES, MethodSpec};
pub use methods::sequential::{SequentialSpec, StepGain, StepScore};
pub use methods::slicing::{SlicedColumns, SlicingSpec};
pub use methods::types::{
    Algorithm, AnatomySpec, AssumedKnowledge, AssumedUnknown, AutoGoal, CellKind, ClassSplit, CorrelatedPolicy,
    DeclaredDependency, DecompositionScore, DependencySearch, GeneralizeSpec, UadColoring, UadSettings, VersatileSpec,
};
pub use offered::{OFFERED_K, OFFERED_PERCENTS, OFFERED_T, OfferedGuarantee};
pub use remedies::{fitted, in_whole_members, read_or_remedy, with_remedies};
pub use requests::analysis::{DifferentialInference, read_differential_inference};
pub use requests::attacks::{Attack, AttackOptions, AttackRequest, read_attack_request};
pub use requests::policy::{expand_policy, faults_on_any_table, policy_of, read_policy};
pub use requests::populations::{
    DisjointPlaces, NamedPlace, POPULATION_NAME, PersonFold, PersonKeyRequest, PopulationRequest, PopulationStatements,
    is_population_name, read_population, read_population_statements,
};
pub use requests::queries::{MAX_QUERIES, ResolvedCountQuery, read_queries};
pub use requests::releases_of_policies::{PolicyEntry, ReleaseOfPolicy, policies_joined, with_releases};
pub use requests::submitted::{REQUEST, SubmittedFile, SubmittedPart, SubmittedTable};
pub use requests::suggestion::{ColumnRole, DeclaredRoles, read_suggestion_request};
pub use requests::verification::{VerificationRules, VerificationSubject, read_verification, read_verification_rules};
pub use schemas::schemas;
