//! Attacks: simulations of adversaries on releases and on submitted tables.

pub(super) mod bucket;
pub(super) mod corruption;
pub(super) mod dependency;
pub(super) mod inference;
pub(super) mod intersection;
pub(super) mod join;
pub(crate) mod membership;
pub(super) mod negative_association;
pub(super) mod play;
pub(super) mod report;
pub(super) mod target;
