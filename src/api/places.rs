//! A bound on what is under way at the same time: whoever comes too many is told so at once, instead of waiting with everyone.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{Kind, Problem};

/// So many places for requests of a kind. Clones share them.
#[derive(Clone, Debug)]
pub struct Places {
    what: &'static str,
    limit: u32,
    free: Arc<Semaphore>,
}

impl Places {
    /// Places for `limit` requests; `what` names them in problems.
    #[must_use]
    pub fn new(what: &'static str, limit: u32) -> Self {
        Self { what, limit, free: Arc::new(Semaphore::new(limit as usize)) }
    }

    /// A place, until it is dropped.
    ///
    /// # Errors
    /// `too-many-requests` when none is free.
    pub(super) fn take(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.free).try_acquire_owned().map_err(|_none_free| {
            let detail = format!("{} {} are under way, as many as may be", self.limit, self.what);
            Problem::new(Kind::TooManyRequests, detail).with("limit", self.limit).retry_after(5)
        })
    }
}
