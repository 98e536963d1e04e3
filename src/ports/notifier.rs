//! Notifications inside one process. Only speed depends on them: a waiter also looks again after a while, because
//! another process may have written.

use tokio::sync::{Notify, watch};

/// Notifies workers of new jobs, running jobs of cancellations, and all waiters of changes.
#[derive(Debug, Default)]
pub struct Notifier {
    work: Notify,
    cancels: watch::Sender<u64>,
    changes: watch::Sender<u64>,
}

impl Notifier {
    /// A job was queued.
    pub fn job_queued(&self) {
        // a permit is kept without a waiter, so that none is lost between a look and a wait
        self.work.notify_one();
        self.job_changed();
    }

    /// A running job was asked to stop.
    pub fn cancel_requested(&self) {
        self.cancels.send_modify(|count| *count += 1);
        self.job_changed();
    }

    /// A job's status changed.
    pub fn job_changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Changes of any job from now on: subscribe, read the job, then await [`watch::Receiver::changed`], and read it again.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(crate) const fn work(&self) -> &Notify {
        &self.work
    }

    pub(crate) fn cancels(&self) -> watch::Receiver<u64> {
        self.cancels.subscribe()
    }
}
