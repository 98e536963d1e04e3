//! The checks of a release against its claims.

pub(super) mod claims;
pub(super) mod closed;
pub(super) mod content;
pub(super) mod contents;
pub(super) mod covered;
pub(super) mod decomposed;
pub(super) mod dependencies;
pub(super) mod generalized;
mod mixtures;
pub(super) mod noise;
pub(super) mod overlapping;
pub(super) mod placement;
pub(super) mod posteriors;
pub(super) mod reference;
pub(super) mod republished;
pub(super) mod rules;
pub(super) mod sequential;
pub(super) mod slicing;
pub(super) mod tables;
pub(super) mod tables_report;
pub(super) mod unpublished;
