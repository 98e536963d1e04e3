use super::remote::port::RemoteError;
use crate::control::Cancelled;
use crate::problem::{Fault, Kind, Problem};
use crate::publish::{PlanError, PlanRefusal, PublishError};
use crate::verifier::VerifierError;

/// The reason why an operation of the engine has no result.
#[derive(Debug)]
pub enum EngineError {
    /// The caller cancelled it.
    Cancelled,
    /// The specification or request is refused.
    Refused(Problem),
    /// A bug or a failing disk: nothing was released.
    Failed {
        /// The problem for the caller.
        problem: Problem,
        /// The cause for the log, without values of the data.
        cause: String,
    },
}

impl From<Cancelled> for EngineError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<PlanRefusal> for EngineError {
    fn from(refusal: PlanRefusal) -> Self {
        Self::Refused(problem_of_faults(refusal.0))
    }
}

impl From<PlanError> for EngineError {
    fn from(unplanned: PlanError) -> Self {
        match unplanned {
            PlanError::Refused(refusal) => refusal.into(),
            PlanError::Cancelled(cancelled) => cancelled.into(),
        }
    }
}

impl From<PublishError> for EngineError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Cancelled(cancelled) => cancelled.into(),
            PublishError::Slicing(_) | PublishError::Generalize(_) | PublishError::NotDrawn => {
                Self::bug(error.to_string())
            }
        }
    }
}

impl From<VerifierError> for EngineError {
    fn from(stopped: VerifierError) -> Self {
        match stopped {
            VerifierError::Cancelled(_) => Self::Cancelled,
            VerifierError::Io(error) => error.into(),
            // a release that cannot be checked is not published
            VerifierError::TooDense => {
                let detail = "the join has too many combinations to check";
                let fault = Fault::new("/method/requirements", Kind::JoinTooDense, detail);
                Self::Refused(Problem::of_faults(vec![fault]))
            }
        }
    }
}

impl From<RemoteError> for EngineError {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Cancelled => Self::Cancelled,
            RemoteError::Unsupported(detail) => {
                PlanRefusal(vec![Fault::new("", Kind::GuaranteeUnsupported, detail)]).into()
            }
            RemoteError::Absent => {
                let detail = "the engine has no such table";
                Self::Refused(Problem::new(Kind::SourceUnreadable, detail).with("reason", "not_found"))
            }
            RemoteError::Unavailable(cause) => {
                let detail = "the engine with the table cannot be reached; nothing was released";
                Self::Failed { problem: Problem::new(Kind::Unavailable, detail), cause }
            }
            RemoteError::Failed(cause) => {
                let detail = "the engine with the table failed; nothing was released";
                Self::Failed { problem: Problem::new(Kind::Internal, detail), cause }
            }
        }
    }
}

impl From<std::io::Error> for EngineError {
    fn from(error: std::io::Error) -> Self {
        let problem = match error.kind() {
            std::io::ErrorKind::StorageFull => Problem::new(Kind::StorageFull, "the parts could not be written"),
            std::io::ErrorKind::ResourceBusy => {
                Problem::new(Kind::Unavailable, "the parts could not be written or read back now; nothing was released")
            }
            _ => Problem::new(Kind::Internal, "the parts could not be written or read back; nothing was released"),
        };
        Self::Failed { problem, cause: error.to_string() }
    }
}

impl EngineError {
    pub(in crate::engine) fn bug(cause: impl Into<String>) -> Self {
        let problem = Problem::new(Kind::Internal, "a check of the service's own work failed; nothing was released");
        Self::Failed { problem, cause: cause.into() }
    }
}

/// The problem of some faults; a violation by earlier releases is a problem of its own.
fn problem_of_faults(faults: Vec<Fault>) -> Problem {
    match &faults[..] {
        [Fault { kind: kind @ Kind::PriorReleaseViolates, pointer, detail, .. }] => {
            Problem::new(*kind, detail.clone()).with("pointer", pointer.as_str())
        }
        _ => Problem::of_faults(faults),
    }
}
