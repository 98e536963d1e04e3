//! Simulations of adversaries on published tables.

pub(super) mod bucket;
pub(super) mod dependency;
pub(super) mod error;
pub(super) mod inference;
pub(super) mod membership;
pub(super) mod negative_association;
pub(super) mod possible_worlds;
pub(super) mod proxy;
