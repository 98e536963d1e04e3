//! Readers of the documents of requests that submit no job.

pub(super) mod analysis;
pub(super) mod attacks;
pub(super) mod policy;
pub(super) mod populations;
pub(super) mod queries;
pub(super) mod releases_of_policies;
pub(super) mod submitted;
pub(super) mod suggestion;
pub(super) mod verification;
