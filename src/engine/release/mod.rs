//! One release: plan, publish, write, verify, describe.

pub(super) mod input;
pub(super) mod internal_report;
pub(super) mod ledger_entries;
pub(super) mod night;
mod night_terms;
pub(super) mod run;
pub(super) mod write;
