//! From a table to a first specification: a role for each column, a reason for each role, and guarantees that the data can hold.
//!
//! `words` and `shape` say what a column may be, `roles` decides on one, `place` on all together. `guarantees` lists what may be promised
//! of a sensitive column. `trial` plans the specification with the engine and mends it until a job would publish.

mod draft;
mod guarantees;
pub(super) mod place;
mod roles;
pub(super) mod shape;
pub(super) mod suggestion;
mod trial;
pub(super) mod undeclared;
mod words;
