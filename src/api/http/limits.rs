//! Bounds on what is under way at the same time: whoever comes too many is told so, instead of waiting with everyone without end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::body::drain;
use crate::problem::{Kind, Problem};

/// How long a request waits for its turn.
const QUEUE_WAIT_TIMEOUT: Duration = Duration::from_secs(3);

/// So many places for requests of a kind. Clones share them.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit {
    what: &'static str,
    limit: u32,
    free: Arc<Semaphore>,
}

impl ConcurrencyLimit {
    /// Places for `limit` requests; `what` names them in problems.
    #[must_use]
    pub fn new(what: &'static str, limit: u32) -> Self {
        Self { what, limit, free: Arc::new(Semaphore::new(limit as usize)) }
    }

    /// A place, until it is dropped.
    ///
    /// # Errors
    /// `too-many-requests` when none is free.
    pub(in crate::api) fn take(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.free).try_acquire_owned().map_err(|_none_free| self.full())
    }

    /// A place, until it is dropped; for what is soon over it is waited a little, in turn: a burst of small uploads would
    /// otherwise be sent away again and again while most of the time no place is taken.
    ///
    /// # Errors
    /// `too-many-requests` when none becomes free.
    pub(in crate::api) async fn take_soon(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let turn = tokio::time::timeout(QUEUE_WAIT_TIMEOUT, Arc::clone(&self.free).acquire_owned()).await;
        // never closed
        turn.ok().and_then(Result::ok).ok_or_else(|| self.full())
    }

    fn full(&self) -> Problem {
        let detail = format!("{} {} are under way, as many as may be", self.limit, self.what);
        let problem = Problem::new(Kind::TooManyRequests, detail).with("limit", self.limit);
        problem.with("found", u64::from(self.limit) + 1).retry_after(5)
    }
}

/// What bounds requests of every kind.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimits {
    /// Requests under way, until their answers have been taken.
    pub requests: ConcurrencyLimit,
    /// Callers who wait for jobs.
    pub waiting: ConcurrencyLimit,
    /// Downloads of parts and archives.
    pub downloads: ConcurrencyLimit,
    /// The most bytes of a JSON document.
    pub max_document_bytes: usize,
    /// In how long a body must get on.
    pub idle: Duration,
    /// In how long a whole upload must come.
    pub upload: Duration,
}

/// Lets a request in when there is a place for it, which it has until its answer has been taken to the end.
pub(in crate::api) async fn limit_concurrency(
    State(places): State<ConcurrencyLimit>,
    request: Request,
    next: Next,
) -> Response {
    // who looks after the service must see how it is also when it is full
    if matches!(request.uri().path(), "/healthz" | "/readyz") {
        return next.run(request).await;
    }
    match places.take() {
        Ok(place) => hold_permit(next.run(request).await, place),
        Err(problem) => {
            drain(request.into_body().into_data_stream()).await;
            problem.into_response()
        }
    }
}

/// An answer that has a place until it has been taken to the end, or its client has gone.
pub(in crate::api) fn hold_permit(response: Response, place: OwnedSemaphorePermit) -> Response {
    response.map(|body| Body::new(PermitBody { body, _place: place }))
}

struct PermitBody {
    body: Body,
    _place: OwnedSemaphorePermit,
}

impl HttpBody for PermitBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
