//! Audits of republished tables: of a night against the states before and after it, and of all nights from their parts.
//!
//! # Citations
//! - `docs/spec/republication.md#audit`

mod chain;
mod chain_state;
mod joined;
mod night;
mod parts;
#[cfg(test)]
mod tests;

pub use chain::{ChainAudit, ChainBucket, ChainFault, ChainNight, ChainReport};
pub use night::{AuditedNight, audit_night};
pub use parts::{
    NightParts, ShownSignatures, ShownSlot, SignatureReader, link_by_cells, night_digest, shown_signatures,
};
