use super::generalize::GeneralizeError;
use super::slicing::SlicingError;
use crate::control::Cancelled;
use crate::problem::{Fault, Kind};

/// Why there is no plan.
#[derive(Debug)]
pub enum PlanError {
    /// The specification or the data has faults.
    Refused(PlanRefusal),
    /// The job was cancelled.
    Cancelled(Cancelled),
}

impl From<PlanRefusal> for PlanError {
    fn from(refusal: PlanRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Cancelled> for PlanError {
    fn from(cancelled: Cancelled) -> Self {
        Self::Cancelled(cancelled)
    }
}

/// The refusal of columns that the data does not allow.
impl From<SlicingError> for PlanError {
    fn from(error: SlicingError) -> Self {
        let kind = match error {
            SlicingError::Cancelled(cancelled) => return Self::Cancelled(cancelled),
            SlicingError::TooDense => Kind::JoinTooDense,
            _ => Kind::BadColumns,
        };
        PlanRefusal(vec![Fault::new("/method/columns", kind, error.to_string())]).into()
    }
}

/// The faults for which nothing can be published.
#[derive(Debug)]
pub struct PlanRefusal(pub Vec<Fault>);

/// Why the tables of a feasible design were not made. All but a cancellation are bugs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PublishError {
    /// The job was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// A sliced table has no valid buckets.
    #[error("a sliced table cannot be made: {0}")]
    Slicing(SlicingError),
    /// A generalized table has no valid classes.
    #[error("a generalized table cannot be made: {0}")]
    Generalize(GeneralizeError),
    /// The plan drew no buckets for a decomposition.
    #[error("a decomposition has no buckets")]
    NotDrawn,
}

impl From<SlicingError> for PublishError {
    fn from(error: SlicingError) -> Self {
        match error {
            SlicingError::Cancelled(cancelled) => Self::Cancelled(cancelled),
            other => Self::Slicing(other),
        }
    }
}

impl From<GeneralizeError> for PublishError {
    fn from(error: GeneralizeError) -> Self {
        match error {
            GeneralizeError::Cancelled(cancelled) => Self::Cancelled(cancelled),
            other => Self::Generalize(other),
        }
    }
}
