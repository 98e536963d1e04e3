//! The audits against vectors and planted faults.

mod planted;
mod vectors;

use super::chain::{ChainAudit, ChainNight, ChainReport};
use crate::control::{Cancelled, Control};

/// The audit of all nights of a series.
fn audit_chain(nights: &[ChainNight], l: u64, control: &Control) -> Result<ChainReport, Cancelled> {
    let mut audit = ChainAudit::new(l);
    nights.iter().try_for_each(|night| audit.night(night, control))?;
    Ok(audit.report())
}
