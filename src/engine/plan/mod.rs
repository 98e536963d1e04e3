//! Plans: the tables of a dry run, the reason each rule holds, and the problems of the job.

pub(super) mod dry_run;
pub(super) mod exposure;
pub(super) mod night;
pub(crate) mod profile;
pub(super) mod proposal;
pub(super) mod types;
