use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::engines::Engines;
use super::people_reading::KeptReadings;
use crate::microdata::formats::IngestLimits;
use crate::ports::Store;
use crate::vault::Vault;

/// The services that inputs are read with. Functions that load rows block and belong on a blocking thread.
#[derive(Clone)]
pub(crate) struct InputEnv {
    /// Runs the requests to the store.
    pub(crate) handle: Handle,
    /// Holds the encrypted chunks.
    pub(crate) store: Arc<dyn Store>,
    /// Decrypts them.
    pub(crate) vault: Arc<Vault>,
    /// Bounds what a column may hold.
    pub(crate) limits: IngestLimits,
    /// What was read of the people of the ledger before.
    pub(crate) readings: KeptReadings,
    /// The folder of files without names for what memory cannot hold.
    pub(crate) spool: PathBuf,
    /// The engines that have the rows of some datasets.
    pub(crate) engines: Engines,
}

/// Columns of a dataset.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ColumnSelection {
    /// Names that the loaded columns get.
    pub(crate) names: Vec<String>,
    /// Positions in the dataset.
    pub(crate) indexes: Vec<usize>,
}

/// Columns that a job reads in addition to those of its specification.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct OtherSelections {
    /// Columns that are compared with columns of earlier releases.
    pub(crate) extra: ColumnSelection,
    /// Columns that no release publishes, and that published ones may determine.
    pub(crate) dropped: ColumnSelection,
}
