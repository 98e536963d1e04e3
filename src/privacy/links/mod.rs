//! Dependencies known to the adversary: links, separators, strata, the judgement of rules and the place of attributes.
//!
//! # Citations
//! docs/spec/dependencies.md; [Jin et al. 2010, Definitions 3 to 5 and Theorem 3.2]

mod eligibility;
mod flow;
mod judge;
mod known;
mod link;
mod path;
mod place;
mod pools;
mod separation;
mod separators;
mod strata;
mod stratify;
mod weights;

pub use eligibility::{StrataEligibility, StrataTests, StratumCount, StratumDemand};
pub use judge::{LinkedSchema, LinkedStatus, Violation, judge};
pub use known::{KnownDependencies, KnownDependency};
pub use link::{Link, design_side};
pub use path::{Element, LinkedStep};
pub use place::{Placement, TableToPlace, place};
pub use separation::{connected, separates};
pub use separators::{SeparatedSides, separators};
pub use strata::{Strata, StratumRows};
pub use stratify::{LinkContext, StratificationError, TableSides, stratify, stratify_rule};
pub use weights::AttributeWeights;

#[cfg(test)]
mod tests;
