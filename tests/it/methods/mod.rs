//! Releases by each method, over HTTP and in process.

pub(crate) mod bucketize;
mod closed_strata;
pub(crate) mod correlated;
pub(crate) mod decompose;
pub(crate) mod decompose_breaches;
pub(crate) mod dependencies;
pub(crate) mod excluded_values;
pub(crate) mod exposures;
pub(crate) mod generalize;
pub(crate) mod generalize_nodes;
pub(crate) mod guarantees;
mod known_dependencies;
pub(crate) mod manifest_figures;
pub(crate) mod multiple_sensitive;
pub(crate) mod planted;
mod planted_worlds;
pub(crate) mod proposed_tables;
pub(crate) mod randomness;
pub(crate) mod real_data;
mod repairs;
pub(crate) mod slicing;
pub(crate) mod slicing_generalized;
pub(crate) mod slicing_overlapping;
pub(crate) mod strata;
pub(crate) mod subjects;
pub(crate) mod thresholds;
pub(crate) mod versatile_data_driven;
