//! What a store can answer instead of a result.

use crate::problem::{Kind, Problem};
use crate::vault::VaultError;

/// Why a store did not do what it was asked. Texts name nothing of the data; the source is for the log.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// What the call needs does not exist, or no longer.
    #[error("not found")]
    NotFound,
    /// What is stored stands against it: the id is taken, or the state is another.
    #[error("conflicts with what is stored")]
    Conflict,
    /// No room is left.
    #[error("the store has no room")]
    Full,
    /// The store cannot answer now; later it may.
    #[error("the store cannot answer now")]
    Unavailable(#[source] ErrorSource),
    /// Another process has the store open.
    #[error("another process has the store in {0} open; this needs it for one process alone")]
    InUse(String),
    /// The tables are not of a version that this service knows, or the database is too old for it.
    #[error("the store does not fit this version: {0}")]
    Schema(String),
    /// What was read is not what was written.
    #[error("the store holds something that cannot be read")]
    Corrupt(#[source] ErrorSource),
    /// What was to be kept cannot be read.
    #[error("nothing was kept: {0}")]
    Unread(#[source] std::io::Error),
    /// Any other failure.
    #[error("the store failed")]
    Backend(#[source] ErrorSource),
}

/// The error of a backend.
pub(crate) type ErrorSource = Box<dyn std::error::Error + Send + Sync>;

impl StoreError {
    /// Something stored that does not read as what it should be.
    pub fn corrupt(source: impl Into<ErrorSource>) -> Self {
        Self::Corrupt(source.into())
    }
}

/// What cannot be opened was damaged; what cannot be encrypted had no randomness.
impl From<VaultError> for StoreError {
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::Unwrap | VaultError::Damaged => Self::corrupt(error),
            other => Self::Backend(Box::new(other)),
        }
    }
}

impl From<StoreError> for std::io::Error {
    fn from(error: StoreError) -> Self {
        let kind = match &error {
            StoreError::NotFound => std::io::ErrorKind::NotFound,
            StoreError::Full => std::io::ErrorKind::StorageFull,
            StoreError::Corrupt(_) => std::io::ErrorKind::InvalidData,
            // the kind alone shows what may succeed later
            StoreError::Unavailable(_) => std::io::ErrorKind::ResourceBusy,
            StoreError::Conflict
            | StoreError::InUse(_)
            | StoreError::Schema(_)
            | StoreError::Unread(_)
            | StoreError::Backend(_) => std::io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl StoreError {
    /// Logs the error. Conversion into a [`Problem`] logs too: call this only where no problem is made.
    pub(crate) fn log(&self) {
        match self {
            Self::NotFound | Self::Conflict => {}
            Self::Full => tracing::error!("the store has no room"),
            Self::Unavailable(source) => tracing::error!(error = %source, "the store cannot answer"),
            Self::InUse(_) | Self::Schema(_) | Self::Corrupt(_) | Self::Unread(_) | Self::Backend(_) => {
                let source = std::error::Error::source(self).map(ToString::to_string);
                tracing::error!(error = %self, error.source = source, "the store failed");
            }
        }
    }
}

/// Logs the error once; its text is never sent.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        error.log();
        match error {
            StoreError::NotFound => Self::new(Kind::NotFound, "not found"),
            StoreError::Conflict => Self::new(Kind::Conflict, "conflicts with what is stored"),
            StoreError::Full => Self::new(Kind::StorageFull, "the store has no room; nothing was kept of the request"),
            StoreError::Unavailable(_) => Self::new(Kind::Unavailable, "the store cannot answer now"),
            StoreError::InUse(_)
            | StoreError::Schema(_)
            | StoreError::Corrupt(_)
            | StoreError::Unread(_)
            | StoreError::Backend(_) => Self::new(Kind::Internal, "the store failed"),
        }
    }
}
