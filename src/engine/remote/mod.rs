//! Releases of tables whose rows stay in another engine: planned here from counts, written and audited there.
//!
//! # Citations
//! docs/spec/ranked.md

mod carried;
pub(super) mod classes;
mod coded;
pub(super) mod counted;
pub(super) mod counts;
pub(super) mod dependencies;
pub(super) mod distinct_rows;
pub(super) mod limits;
pub(super) mod members;
pub(super) mod plan;
mod planned_classes;
mod planned_rows;
mod planned_slices;
mod planned_tables;
pub(super) mod port;
pub(super) mod published;
pub(super) mod release;
pub(super) mod sample;
pub(super) mod slices;

#[cfg(test)]
mod tests;
