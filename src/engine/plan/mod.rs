//! The answer to a dry run: which tables would come out, which rule holds why, and what stands in the way.

pub(super) mod dry_run;
pub(super) mod exposure;
pub(crate) mod profile;
pub(super) mod proposal;
pub(super) mod types;
