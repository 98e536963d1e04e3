//! Computations on blocking threads.

use tracing::Span;

use crate::control::{Control, with_own_threads};
use crate::engine::EngineError;
use crate::problem::{Kind, Problem};

/// Runs work on a blocking thread and in the span of the caller; cancels it when the caller is dropped.
///
/// # Errors
/// `internal` when the work panics; `subject` names the work in the detail.
pub(crate) async fn run_blocking<T: Send + 'static>(
    subject: &'static str,
    work: impl FnOnce(&Control) -> T + Send + 'static,
) -> Result<T, Problem> {
    let (control, span) = (Control::default(), Span::current());
    let cancel_on_drop = control.stop_when_dropped();
    let done = tokio::task::spawn_blocking(move || span.in_scope(|| work(&control))).await;
    drop(cancel_on_drop);
    // the payload of a panic may quote the data: it is dropped unread
    done.map_err(|_panicked| Problem::new(Kind::Internal, format!("{subject} stopped unexpectedly")))
}

/// Runs a computation of the engine as [`run_blocking`] does.
///
/// # Errors
/// The problem of [`EngineError`], or `internal` when the work panics.
pub(crate) async fn run_engine<T: Send + 'static>(
    subject: &'static str,
    work: impl FnOnce(&Control) -> Result<T, EngineError> + Send + 'static,
) -> Result<T, Problem> {
    run_blocking(subject, |control| with_own_threads(|| work(control)))
        .await?
        .map_err(|error| engine_problem(subject, error))
}

/// The problem of an error of the engine; logs the cause of a failure.
pub(crate) fn engine_problem(subject: &'static str, error: EngineError) -> Problem {
    match error {
        EngineError::Refused(problem) => problem,
        EngineError::Cancelled => Problem::new(Kind::Unavailable, format!("{subject} was cancelled")),
        EngineError::Failed { problem, cause } => {
            tracing::error!(cause, computation = subject, "a computation failed");
            problem
        }
    }
}
