//! An independent re-check of written parts, from definitions. Shares types, no functions, with what it checks.
//!
//! The verifier reads the bytes of every part through the reader that will serve them and holds them against the original,
//! the secret witness and the rules as they were submitted. Integers only. It fails closed: what it cannot check is a
//! failure, and a check is left out of the answer only where its premise (the original) was not given.
//!
//! Details name tables, parts, row numbers of parts, attributes and counts, never a value.

mod attack;
mod contract;
mod definition;
mod external;
mod read;
mod release;
mod verify;

#[cfg(test)]
mod tests;

pub use attack::error::AttackError;
pub use attack::inference::{InferenceQuestion, InferenceReport, InferredValue, infer_values};
pub use attack::membership::joined::{MembershipError, MembershipReport, TupleEstimate};
pub use attack::membership::members;
pub use attack::negative_association::{
    NegativeAssociationFinding, NegativeAssociationReport, find_negative_associations,
};
pub use attack::possible_worlds::{PossibleWorldsReport, PosteriorFinding, count_worlds};
pub use attack::proxy::{ProxyFinding, infer_by_proxy};
pub use contract::checks::{Check, CheckName, Linkage, PosteriorSummary, TableFigures, VerifierReport};
pub use contract::evidence::{Evidence, VerifierError};
pub use definition::measure::BucketMeasure;
pub use external::decomposition_view::DecompositionView;
pub use external::evaluate::evaluate;
pub use external::submission::{
    ClassMeasures, EvaluationReport, ExternalEnforcement, ExternalTableFigures, RuleOutcome, Submission,
    ViolatingClass, ViolatingClasses,
};
pub use external::table::{CellText, ExternalPart, ExternalTable};
pub use release::sequential::groups::JoinError;
pub use release::sequential::join::{JoinMeasures, ReleaseJoin};
pub use release::sequential::observed::ObservedRelease;
pub use verify::verify;
