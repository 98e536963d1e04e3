use crate::control::Cancelled;
use crate::microdata::DictionaryError;
use crate::ports::{StoreError, problem_of};
use crate::problem::{Kind, Problem};

/// What a caller is answered when a dataset cannot be loaded.
pub(crate) fn load_problem(error: LoadError) -> Problem {
    match error {
        LoadError::Cancelled => Problem::new(Kind::Unavailable, "the loading was stopped"),
        LoadError::Purged => Problem::new(Kind::Gone, "the dataset was purged meanwhile"),
        LoadError::Full(full) => too_full(full),
        LoadError::Store(error) => problem_of(&error),
    }
}

/// Why the rows of a table that was entered cannot be read.
pub(crate) enum ExternalRowsError {
    /// No dataset holds them, or not these attributes; in words.
    Absent(String),
    /// They were removed.
    Purged,
    /// The store failed, or the dataset is damaged.
    Failed(LoadError),
}

impl From<LoadError> for ExternalRowsError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Purged => Self::Purged,
            other => Self::Failed(other),
        }
    }
}

/// Why a dataset could not be loaded.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// The computation was told to stop.
    Cancelled,
    /// The rows were removed.
    Purged,
    /// A column exceeds a limit that held less when it was judged.
    Full(DictionaryError),
    /// The store failed.
    Store(StoreError),
}

/// What the caller of a job or plan is told of a column that exceeds a limit.
pub(crate) fn too_full(full: DictionaryError) -> Problem {
    Problem::new(Kind::WorkLimit, full.to_string()).with("limit", full.limit).with("found", full.found)
}

impl From<Cancelled> for LoadError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<StoreError> for LoadError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
