//! Sequential releases: (X,Y)-privacy on the lossy join of a new release with earlier ones.
//!
//! Earlier releases stay as they are. Attributes of the new release in X are generalized by top-down specialization. Every cut starts
//! at its root, and the step of the best score is taken as long as every requirement holds on every join in scope.
//!
//! Each state is checked exactly, although the join is never materialized. Rows with equal cells share one signature, earlier releases
//! are joined once into blocks, and a step changes only the blocks it concerns. Sensitive values decide which steps are allowed, so that
//! the guarantees assume an adversary without minimality.
//!
//! The join says no more than one release alone (the reduction lemma) if three conditions hold: releases are projections of the same
//! rows, Y lies in that release, and X holds every attribute by which it is matched. Such joins are not examined. Otherwise a step may
//! even repair a requirement, as it removes false matches.
//!
//! # Citations
//! - [Wang and Fung 2006], (X,Y)-privacy, lossy joins and top-down specialization on them.
//! - [Fung et al. 2005], top-down specialization.
//! - `docs/spec/sequential.md`: definitions and proofs.

mod builder;
mod cut_state;
mod designed;
mod error;
mod fixed;
mod gain;
mod groups;
mod joined;
mod knowledge;
mod labels;
mod made;
mod method;
mod planned;
mod problem;
mod search;
mod share;
mod signatures;
mod solution;
mod span;
mod tables;
mod weighing;

pub use designed::SequentialDesign;
pub use error::SequentialError;
use error::SequentialJoinError;
pub use method::plan;
pub use problem::{
    EarlierReleaseTable, GroupMeasure, JoinScope, MAX_LINKS, NewTable, NewTableColumn, PublishedLabels,
    ResolvedAttribute, ResolvedConditions, ResolvedExclusion, ResolvedRequirement, ResolvedYElement, SequentialProblem,
    SpecializationGain, SpecializationScore,
};
pub use share::MeasureValue;
pub use solution::{AchievedMeasure, ColumnCut, CutLabel, SequentialSolution, TakenStep};
pub use span::{ColumnScale, Hierarchy, NodeRange, NodeSet};

#[cfg(test)]
mod tests;
