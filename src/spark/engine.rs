//! Spark as an engine of a service.

use std::io;
use std::path::{Path, PathBuf};

use super::address::{EngineAddress, EngineAddressError};
use super::connect::ConnectSession;
use super::copy::SparkCopy;
use super::encryption::EngineEncryption;
use super::files::{SharedFolders, overlaps, sweep};
use super::source::SparkSource;
use crate::control::Control;
use crate::engine::{CopiedTable, RemoteEngine, RemoteError};

/// A server of Spark Connect.
#[derive(Clone, Debug)]
pub struct SparkEngine {
    address: EngineAddress,
    scratch: PathBuf,
    encryption: EngineEncryption,
}

impl SparkEngine {
    /// With a folder for copies, buckets and parts, which the engine reaches under the same path. What attempts left there that were
    /// killed goes.
    ///
    /// # Errors
    /// When the folder is not there or cannot be cleared.
    pub fn open(address: EngineAddress, scratch: &Path, encryption: EngineEncryption) -> io::Result<Self> {
        let scratch = scratch.canonicalize()?;
        sweep(&scratch)?;
        Ok(Self { address, scratch, encryption })
    }
}

impl RemoteEngine for SparkEngine {
    fn copy(&self, table: &str, control: &Control) -> Result<Box<dyn CopiedTable>, RemoteError> {
        // who reads the scratch of others learns which row is in which bucket
        if overlaps(&self.scratch, table) {
            return Err(RemoteError::Absent);
        }
        let source = SparkSource::parse(table).map_err(|error| RemoteError::Unsupported(error.to_string()))?;
        let unread = |error: EngineAddressError| RemoteError::Unavailable(error.to_string());
        let url = self.address.with_token().map_err(unread)?;
        let folders = SharedFolders::from_scratch(&self.scratch);
        let folders = folders.map_err(|error| RemoteError::Failed(format!("the scratch folder: {error}")))?;
        let session = ConnectSession::connect(&url, self.encryption, control)?;
        Ok(Box::new(SparkCopy::begin(session, &source, folders)?))
    }
}
