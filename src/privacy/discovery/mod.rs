//! Discovery of the dependencies that an adversary is assumed to know: exact and approximate ones, without accidents.
//!
//! Integers only, so that every platform decides alike.

mod counted;
mod dropped;
mod logarithm;
mod measure;
mod pairs;
mod rows;
mod search;
mod significance;
mod singles;

#[cfg(test)]
mod tests;

pub use counted::{CountedColumns, CountedEvidence, ValueFrequency};
pub use dropped::{DeterminingEnd, EndColumn, TyingColumn, discover_tying_columns};
pub(in crate::privacy) use logarithm::log2_down;
pub use measure::measure_dependency;
pub use search::{
    DiscoveredDependency, Discovery, DiscoveryOptions, DiscoveryScope, SearchedScope, discover_dependencies,
    discover_dependencies_across,
};
