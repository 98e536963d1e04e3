use crate::engine::EngineError;
use crate::problem::Problem;

/// How a command ended.
#[derive(Debug)]
pub enum CommandOutcome {
    /// Done, or verified.
    Done,
    /// The release is not what it claims to be.
    NotVerified,
    /// The service that was asked cannot serve.
    NotReady(String),
    /// The arguments are wrong.
    Usage(String),
    /// The caller's answer.
    Refused(Box<Problem>),
    /// A file cannot be read or written.
    InputOutput(String),
    /// A bug.
    Internal(String),
}

impl From<EngineError> for CommandOutcome {
    fn from(stopped: EngineError) -> Self {
        match stopped {
            EngineError::Cancelled => Self::interrupted(),
            EngineError::Refused(problem) => Self::Refused(Box::new(problem)),
            EngineError::Failed { problem, cause } => match problem.kind {
                crate::problem::Kind::StorageFull => Self::InputOutput(cause),
                _ => Self::Internal(format!("{}: {cause}", problem.detail)),
            },
        }
    }
}

impl CommandOutcome {
    pub(in crate::cli) fn interrupted() -> Self {
        Self::InputOutput("interrupted; nothing was left behind".to_owned())
    }

    pub(super) fn io(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::InputOutput(format!("{}: {error}", path.display()))
    }
}
