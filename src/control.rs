//! How a long computation is watched and stopped from outside: a cancellation token and a progress sink.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

/// The steps of a job, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Reading the columns the job uses.
    Load,
    /// Reducing rules and choosing the schema.
    Plan,
    /// Assigning rows to buckets.
    Publish,
    /// Writing the parts.
    Write,
    /// Verifying the written parts.
    Verify,
    /// Judging the release together with earlier ones.
    Compose,
    /// Making the release visible.
    Commit,
}

impl Phase {
    const ALL: [Self; 7] =
        [Self::Load, Self::Plan, Self::Publish, Self::Write, Self::Verify, Self::Compose, Self::Commit];

    /// The name used in the contract.
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

/// How far a job has come: a phase, and `done` of `of` steps of work in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Progress {
    /// The phase under way.
    pub phase: Phase,
    /// Steps done in the phase.
    pub done: u64,
    /// Steps of the phase.
    pub of: u64,
}

/// The computation was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

#[derive(Debug, Default)]
struct ControlState {
    cancelled: AtomicBool,
    phase: AtomicU8,
    done: AtomicU64,
    of: AtomicU64,
    watcher: OnceLock<PhaseListener>,
}

/// Told of every phase that begins.
struct PhaseListener(Box<dyn Fn(Phase) + Send + Sync>);

impl fmt::Debug for PhaseListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher(..)")
    }
}

/// Shared by a computation and whoever watches it. Cloning gives another handle of the same control.
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<ControlState>);

impl Control {
    /// How many rows an inner loop may process between two calls of [`Control::check`].
    pub const STRIDE: usize = 1 << 14;

    /// Tells the computation to stop at its next check.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Fails when the computation has been told to stop. Cheap; inner loops call it every [`Control::STRIDE`] rows.
    ///
    /// # Errors
    /// [`Cancelled`] once [`Control::cancel`] was called.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.0.cancelled.load(Ordering::Relaxed) { Err(Cancelled) } else { Ok(()) }
    }

    /// Tells the computation to stop when what is given back is dropped: for callers that may go away.
    #[must_use]
    pub fn stop_when_dropped(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }

    /// Has `told` called with every phase that begins, on the thread that begins it. The first watcher stays.
    pub fn watch(&self, told: impl Fn(Phase) + Send + Sync + 'static) {
        let _ = self.0.watcher.set(PhaseListener(Box::new(told)));
    }

    /// Begins a phase of `of` steps.
    ///
    /// # Errors
    /// [`Cancelled`] once [`Control::cancel`] was called.
    pub fn begin(&self, phase: Phase, of: u64) -> Result<(), Cancelled> {
        self.0.done.store(0, Ordering::Relaxed);
        self.0.of.store(of, Ordering::Relaxed);
        self.0.phase.store(phase as u8, Ordering::Relaxed);
        if let Some(PhaseListener(told)) = self.0.watcher.get() {
            told(phase);
        }
        self.check()
    }

    /// Reports further steps done in the phase under way.
    ///
    /// # Errors
    /// [`Cancelled`] once [`Control::cancel`] was called.
    pub fn advance(&self, steps: u64) -> Result<(), Cancelled> {
        self.0.done.fetch_add(steps, Ordering::Relaxed);
        self.check()
    }

    /// How far the computation has come.
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

/// Tells a computation to stop when it is dropped.
#[derive(Debug)]
pub struct CancelOnDrop(Control);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
