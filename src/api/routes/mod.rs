//! One module for each resource.

pub(super) mod archive;
pub(super) mod attacks;
pub(super) mod attacks_on_original;
pub(super) mod audit_log;
pub(super) mod calculators;
pub(super) mod datasets;
pub(super) mod events;
pub(super) mod health;
pub(super) mod internal_report;
pub(super) mod jobs;
pub(super) mod lifecycle;
pub(super) mod linked;
pub(super) mod part_query;
pub(super) mod part_stream;
pub(super) mod parts;
pub(super) mod plans;
pub(super) mod policies;
pub(super) mod profile;
pub(super) mod queries;
pub(super) mod releases;
pub(super) mod series;
pub(super) mod served;
pub(super) mod stored_parts;
pub(super) mod taxonomies;
pub(super) mod upload;
pub(super) mod verifications;
