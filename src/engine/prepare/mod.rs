//! The input of planning: known dependencies, the ledger, annotations of columns.

pub(super) mod annotations;
pub(super) mod cross_dependencies;
pub(super) mod known;
pub(super) mod known_forms;
pub(super) mod losses;
mod prepared;
pub(super) mod repairs;
pub(super) mod unpublished;
pub(super) mod unused_thresholds;
pub(super) mod wording;

pub(super) use prepared::{
    PrepareInput, PreparedRelease, feasible, ledger_union, prepare, secret_order, standing_by_tables,
};
