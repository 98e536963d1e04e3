//! The plan of a release of a table in another engine.

use super::counted::{RemoteOrder, clearing};
use super::port::RemoteTable;
use super::release::PlannedRemotely;
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::engine::plan::dry_run::assess;
use crate::engine::plan::types::Plan;
use crate::ledger::EarlierDisclosures;

/// Plans a release from counts, up to what would be judged before anything is written.
///
/// # Errors
/// [`EngineError`]: cancelled, failed, or refused before there are tables.
pub fn plan_remotely(
    order: &RemoteOrder<'_>,
    table: &mut dyn RemoteTable,
    control: &Control,
) -> Result<Plan, EngineError> {
    clearing(table, |table| planned(order, table, control))
}

fn planned(order: &RemoteOrder<'_>, table: &mut dyn RemoteTable, control: &Control) -> Result<Plan, EngineError> {
    let mut counted = order.counted(table, control)?;
    let mut faults = std::mem::take(&mut counted.faults);
    let prepared = if faults.is_empty() {
        let planned = PlannedRemotely::new(order, counted)?;
        faults = planned.faults(control)?;
        planned.prepared
    } else {
        counted.prepared
    };
    Ok(assess(order.specification, &EarlierDisclosures::default(), &prepared, faults, Vec::new()))
}
