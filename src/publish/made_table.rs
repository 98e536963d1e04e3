//! A finished table.

use crate::publication::{Part, PartContents, TableProtection, TableWitness};

/// A finished table.
pub(super) struct MadeTable {
    pub(super) parts: Vec<(Part, PartContents)>,
    pub(super) protection: TableProtection,
    pub(super) witness: TableWitness,
}
