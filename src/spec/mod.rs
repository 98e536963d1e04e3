//! The job document: types, rule grammar, and a check that names every fault with its pointer.
//!
//! A document is walked by hand, not deserialized: a caller who made three mistakes hears of three, each with a JSON
//! pointer and a kind of the catalogue. [`read`] judges a document against the columns of its dataset; what needs more
//! than one column's counts is left to the job.
//!
//! A member that is null is taken as absent.

mod analysis;
mod attacks;
mod attributes;
mod bucketize;
mod check;
mod decompose;
mod dependencies;
mod document;
mod duration;
mod generalize;
pub mod grammar;
mod guarantee;
mod json;
mod method;
mod normalize;
mod policy;
mod queries;
pub mod reader;
mod rules;
mod schema;
mod sequential;
mod sides;
mod slicing;
mod taxonomy;
mod types;
mod unit;
mod utility;
mod verification;

#[cfg(test)]
mod tests;

pub use analysis::{DifferentialInference, read_differential_inference};
pub use attacks::{Attack, AttackOptions, read_audit};
pub use bucketize::{BucketSizeChoice, BucketizeSpec};
pub use check::{path_segment, values_missing, values_pointer};
pub use decompose::DecomposeSpec;
pub use document::{dataset_of, read};
pub use duration::parse as duration;
pub use generalize::ClassSplit;
pub use guarantee::guarantee;
pub use json::parse as parse_json;
pub use method::METHOD_NAMES as METHODS;
pub use policy::{POLICY_NAME, VersionedName, expand_policy, is_policy_name, policy_of, read_policy};
pub use queries::{MAX_QUERIES, ResolvedCountQuery, read_queries};
pub use sequential::{SequentialSpec, StepGain, StepScore};
pub use slicing::{SlicedColumns, SlicingSpec};
pub use taxonomy::{TaxonomyName, expand_taxonomies, read_levels, read_taxonomy, taxonomies_named, taxonomy};
pub use types::{
    Algorithm, AnatomySpec, CellKind, ColumnFacts, CorrelatedPolicy, DatasetSchema, DeclaredDependency,
    DecompositionScore, DocumentSource, GeneralizeSpec, MethodSpec, ParsedDocument, ProposedTable, SpecWarning,
    Specification, VersatileSpec,
};
pub use utility::{CountWorkload, InternalUtility, PredicateWidthChoice};
pub use verification::{
    REQUEST, SubmittedFile, SubmittedPart, SubmittedTable, VerificationRules, VerificationSubject, read_asked_of,
    read_verification,
};
