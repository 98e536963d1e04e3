use std::process::ExitCode;

use crate::engine::EngineError;
use crate::problem::Problem;

/// The outcome of a command, which determines its exit code.
#[derive(Debug)]
pub enum CommandOutcome {
    /// The command succeeded.
    Done,
    /// The verifier rejected the release or the tables.
    NotVerified,
    /// The service is not ready.
    NotReady(String),
    /// The arguments are invalid.
    Usage(String),
    /// The request was refused with a problem.
    Refused(Box<Problem>),
    /// Reading or writing a file failed.
    InputOutput(String),
    /// A bug of the program.
    Internal(String),
}

impl From<EngineError> for CommandOutcome {
    fn from(stopped: EngineError) -> Self {
        match stopped {
            EngineError::Cancelled => Self::interrupted(),
            EngineError::Refused(problem) => Self::Refused(Box::new(problem)),
            EngineError::Failed { problem, cause } => match problem.kind {
                crate::problem::Kind::StorageFull => Self::InputOutput(cause),
                crate::problem::Kind::Unavailable => Self::InputOutput(format!("{}: {cause}", problem.detail)),
                _ => Self::Internal(format!("{}: {cause}", problem.detail)),
            },
        }
    }
}

impl CommandOutcome {
    pub(in crate::cli) fn interrupted() -> Self {
        Self::InputOutput("interrupted; temporary files are removed".to_owned())
    }

    pub(super) fn io(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::InputOutput(format!("{}: {error}", path.display()))
    }
}

impl From<CommandOutcome> for ExitCode {
    fn from(end: CommandOutcome) -> Self {
        Self::from(match end {
            CommandOutcome::Done => 0,
            CommandOutcome::NotVerified | CommandOutcome::NotReady(_) => 1,
            CommandOutcome::Usage(_) => 2,
            CommandOutcome::Refused(_) => 3,
            CommandOutcome::InputOutput(_) => 4,
            CommandOutcome::Internal(_) => 5,
        })
    }
}
