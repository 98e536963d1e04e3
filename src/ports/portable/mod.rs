//! The ledger as it is carried from one store to another: what was published, without the parts; of whom, as populations and
//! coverages, without the rows; and statements.
//!
//! What is carried here stands in the way of new releases as what was published here does. It is never served: the parts are where they
//! were made. Nothing that is here is changed or removed by what is carried here, except that a carried release goes on to the
//! status that it has got meanwhile. An upload is carried as one that was purged: nothing can be published of it.

pub(super) mod carried_bytes;
mod copy;
pub mod file;
mod hex;
mod import;
pub(super) mod records;

pub use copy::{CARRIED_HASHES, DestinationLedger, LedgerCopy, LedgerTransferStore};
pub use import::{CarriedChain, CarriedCoverage, ImportConflict, ImportPlan, ImportSummary, ReleaseEntry};
