//! Spark as an engine of a service.

use std::path::PathBuf;

use super::address::{EngineAddress, EngineAddressError};
use super::connect::ConnectSession;
use super::copy::SparkCopy;
use super::files::SharedFolders;
use super::source::SparkSource;
use crate::control::Control;
use crate::engine::{CopiedTable, RemoteEngine, RemoteError};

/// A server of Spark Connect.
#[derive(Clone, Debug)]
pub struct SparkEngine {
    /// Where it is.
    pub address: EngineAddress,
    /// The folder for copies, buckets and parts, which the engine reaches under the same path.
    pub scratch: PathBuf,
}

impl RemoteEngine for SparkEngine {
    fn copy(&self, table: &str, control: &Control) -> Result<Box<dyn CopiedTable>, RemoteError> {
        let source = SparkSource::parse(table).map_err(|error| RemoteError::Unsupported(error.to_string()))?;
        let unread = |error: EngineAddressError| RemoteError::Unavailable(error.to_string());
        let url = self.address.with_token().map_err(unread)?;
        let folders = SharedFolders::from_scratch(&self.scratch);
        let folders = folders.map_err(|error| RemoteError::Failed(format!("the scratch folder: {error}")))?;
        Ok(Box::new(SparkCopy::begin(ConnectSession::connect(&url, control)?, &source, folders)?))
    }
}
