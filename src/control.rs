//! Cancellation, progress and threads of long computations.

mod threads;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
#[cfg(test)]
pub(crate) use threads::while_shared_threads_are_busy;
pub use threads::{fewest_at_once, with_own_threads};

/// Phases of a job, in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Reading the columns of the job.
    Load,
    /// Reducing the rules and choosing the schema.
    Plan,
    /// Assigning rows to buckets.
    Publish,
    /// Writing the parts.
    Write,
    /// Verifying the written parts.
    Verify,
    /// Checking the release together with earlier ones.
    Compose,
    /// Making the release visible.
    Commit,
}

impl Phase {
    const ALL: [Self; 7] =
        [Self::Load, Self::Plan, Self::Publish, Self::Write, Self::Verify, Self::Compose, Self::Commit];

    /// The name of the phase in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Plan => "plan",
            Self::Publish => "publish",
            Self::Write => "write",
            Self::Verify => "verify",
            Self::Compose => "compose",
            Self::Commit => "commit",
        }
    }
}

/// Progress of a job: a phase, and `done` of its `of` steps of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// Number of completed steps of the phase.
    pub done: u64,
    /// Number of all steps of the phase.
    pub of: u64,
}

/// Error of a cancelled computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cancelled")
    }
}

impl std::error::Error for Cancelled {}

#[derive(Debug, Default)]
struct ControlState {
    cancelled: AtomicBool,
    phase: AtomicU8,
    done: AtomicU64,
    of: AtomicU64,
    watcher: OnceLock<PhaseListener>,
}

/// Callback for every phase that begins.
struct PhaseListener(Box<dyn Fn(Phase) + Send + Sync>);

impl fmt::Debug for PhaseListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PhaseListener(..)")
    }
}

/// Handle of a computation and its observers; clones share the same state.
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<ControlState>);

impl Control {
    /// Maximal number of rows that an inner loop may process between two calls of [`Control::check`].
    pub const STRIDE: usize = 1 << 14;

    /// Cancels the computation, which stops at its next check.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Fails when the computation is cancelled.
    ///
    /// Cheap enough for inner loops, every [`Control::STRIDE`] rows.
    ///
    /// # Errors
    /// [`Cancelled`] once [`Control::cancel`] was called.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.0.cancelled.load(Ordering::Relaxed) { Err(Cancelled) } else { Ok(()) }
    }

    /// A guard that cancels the computation when it is dropped, for callers that may go away.
    #[must_use]
    pub fn stop_when_dropped(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }

    /// Calls `on_phase` with every phase that begins, on the thread that begins it.
    ///
    /// Only the first listener is kept.
    pub fn watch(&self, on_phase: impl Fn(Phase) + Send + Sync + 'static) {
        let _ = self.0.watcher.set(PhaseListener(Box::new(on_phase)));
    }

    /// Begins a phase of `of` steps.
    ///
    /// # Errors
    /// [`Cancelled`] once [`Control::cancel`] was called.
    pub fn begin(&self, phase: Phase, of: u64) -> Result<(), Cancelled> {
        self.0.done.store(0, Ordering::Relaxed);
        self.0.of.store(of, Ordering::Relaxed);
        self.0.phase.store(phase as u8, Ordering::Relaxed);
        if let Some(PhaseListener(on_phase)) = self.0.watcher.get() {
            on_phase(phase);
        }
        self.check()
    }

    /// Adds completed steps of the current phase.
    ///
    /// # Errors
    /// [`Cancelled`] once [`Control::cancel`] was called.
    pub fn advance(&self, steps: u64) -> Result<(), Cancelled> {
        self.0.done.fetch_add(steps, Ordering::Relaxed);
        self.check()
    }

    /// The current progress.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let of = self.0.of.load(Ordering::Relaxed);
        Progress {
            phase: Phase::ALL[self.0.phase.load(Ordering::Relaxed) as usize],
            done: self.0.done.load(Ordering::Relaxed).min(of),
            of,
        }
    }
}

/// Guard that cancels a computation when it is dropped.
#[derive(Debug)]
pub struct CancelOnDrop(Control);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
