use crate::control::Cancelled;
use crate::problem::Fault;

/// Why nothing was planned.
#[derive(Debug)]
pub enum PlanError {
    /// The caller's answer.
    Refused(PlanRefusal),
    /// It was told to stop.
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

/// The caller's answer: why nothing can be published.
#[derive(Debug)]
pub struct PlanRefusal(pub Vec<Fault>);
