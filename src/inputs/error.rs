use crate::control::Cancelled;
use crate::engine::EngineError;
use crate::microdata::DictionaryError;
use crate::ports::StoreError;
use crate::problem::{Kind, Problem};

/// An error of reading the inputs of a job, plan or check.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The computation was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The rows of the dataset were destroyed.
    #[error("the dataset was purged")]
    Purged,
    /// A column exceeds a limit that its profile did not exceed.
    #[error(transparent)]
    Dictionary(#[from] DictionaryError),
    /// The request cannot be served with these inputs.
    #[error("refused")]
    Refused(Problem),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Cancelled> for InputError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<InputError> for Problem {
    fn from(error: InputError) -> Self {
        match error {
            InputError::Cancelled => Self::new(Kind::Unavailable, "the loading was stopped"),
            InputError::Purged => Self::new(Kind::Gone, "the dataset was purged meanwhile"),
            InputError::Dictionary(error) => dictionary_problem(error),
            InputError::Refused(problem) => problem,
            InputError::Store(error) => error.into(),
        }
    }
}

impl From<InputError> for EngineError {
    fn from(error: InputError) -> Self {
        match error {
            InputError::Cancelled => Self::Cancelled,
            other => Self::Refused(other.into()),
        }
    }
}

/// The problem of a column that exceeds a limit.
pub(crate) fn dictionary_problem(error: DictionaryError) -> Problem {
    Problem::new(Kind::WorkLimit, error.to_string()).with("limit", error.limit).with("found", error.found)
}

/// An error of reading the rows of an external table.
pub(crate) enum ExternalRowsError {
    /// No dataset has the rows, or not these attributes; the detail of the problem.
    Absent(String),
    /// The rows were destroyed.
    Purged,
    /// The store failed, or the dataset is damaged.
    Failed(InputError),
}

impl From<InputError> for ExternalRowsError {
    fn from(error: InputError) -> Self {
        match error {
            InputError::Purged => Self::Purged,
            other => Self::Failed(other),
        }
    }
}
