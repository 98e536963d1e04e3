//! Checks of a sequential release: labels, cuts, joins and requirements.

pub(in crate::verifier) mod check;
mod cuts;
pub(in crate::verifier) mod details;
mod exact;
pub(in crate::verifier) mod groups;
pub(in crate::verifier) mod join;
mod knowledge;
pub(in crate::verifier) mod label;
pub(in crate::verifier) mod links;
pub(in crate::verifier) mod observed;
pub(in crate::verifier) mod premise;
mod rows;
