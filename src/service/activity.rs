//! What a connection is doing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Whether a connection has a request, or since when it rests.
#[derive(Clone)]
pub(super) struct ConnectionActivity {
    started: Instant,
    /// The end of the last answer, in milliseconds since the start; [`Self::BUSY`] while there is a request.
    since: Arc<AtomicU64>,
    /// Requests so far.
    requests: Arc<AtomicU64>,
}

impl ConnectionActivity {
    const BUSY: u64 = u64::MAX;

    /// Of a new connection; `started` is any instant before it.
    pub(super) fn new(started: Instant) -> Self {
        let activity = Self { started, since: Arc::default(), requests: Arc::default() };
        activity.end();
        activity
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(Self::BUSY - 1)
    }

    /// Begins a request, whose answer was given to the connection when the value is dropped.
    pub(super) fn begin(&self) -> BusyConnection {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.since.store(Self::BUSY, Ordering::Relaxed);
        BusyConnection(self.clone())
    }

    fn end(&self) {
        self.since.store(self.now(), Ordering::Relaxed);
    }

    /// Requests so far, the one that is not answered yet among them.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Whether there is a request whose answer was not given to the connection.
    pub(super) fn is_busy(&self) -> bool {
        self.since.load(Ordering::Relaxed) == Self::BUSY
    }

    /// How long it has rested; nothing while it has a request.
    pub(super) fn rest(&self) -> Duration {
        Duration::from_millis(self.now().saturating_sub(self.since.load(Ordering::Relaxed)))
    }
}

/// A connection with a request, until its answer was given to the connection.
pub(super) struct BusyConnection(ConnectionActivity);

impl Drop for BusyConnection {
    fn drop(&mut self) {
        self.0.end();
    }
}
