//! How long the phases of a job take, for metrics and traces.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tracing::Span;

use crate::control::{Control, Phase};
use crate::meter;

/// Takes the time of a job's phases.
pub(super) struct Phases {
    method: String,
    current: Mutex<Option<CurrentPhase>>,
}

/// The phase under way; its span ends with it.
struct CurrentPhase {
    phase: Phase,
    since: Instant,
    _span: Span,
}

impl Phases {
    /// Watches a job's control.
    pub(super) fn watch(method: &str, control: &Control) -> Arc<Self> {
        let phases = Arc::new(Self { method: method.to_owned(), current: Mutex::new(None) });
        let watching = Arc::clone(&phases);
        control.watch(move |phase| {
            let span = tracing::info_span!("phase", phase = phase.name());
            watching.turn_to(Some(CurrentPhase { phase, since: Instant::now(), _span: span }));
        });
        phases
    }

    /// The last phase has ended.
    pub(super) fn finish(&self) {
        self.turn_to(None);
    }

    fn turn_to(&self, next: Option<CurrentPhase>) {
        // what is there stays whole wherever a holder might panic
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(CurrentPhase { phase, since, .. }) = std::mem::replace(&mut *current, next) {
            meter::phase(&self.method, phase.name(), since.elapsed());
        }
    }
}
