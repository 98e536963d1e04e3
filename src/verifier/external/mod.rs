//! Evaluation of tables without claims: which rules hold, from the tables alone.

pub(super) mod classes;
pub(super) mod consistency;
pub(super) mod decomposition;
pub(super) mod decomposition_view;
pub(super) mod evaluate;
pub(super) mod overlapping;
pub(super) mod submission;
pub(super) mod table;
