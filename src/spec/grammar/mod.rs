//! Readers of the values inside documents: names, rules, guarantees, taxonomies, thresholds.

pub(super) mod attributes;
pub(super) mod columns;
pub(super) mod dependencies;
pub(super) mod document;
pub(crate) mod duration;
pub(super) mod general;
pub(super) mod guarantee;
pub(super) mod ineligible_strata;
pub(super) mod json;
pub(super) mod known_and_sensitive;
pub(super) mod proposed_tables;
pub(super) mod reader;
pub(super) mod republish;
pub(super) mod rules;
pub(super) mod schema;
pub(super) mod shorthand;
pub(crate) mod taxonomy;
pub(super) mod thresholds;
pub(super) mod utility;
pub(super) mod versioned_name;
