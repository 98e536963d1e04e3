//! Concurrency limits: a request above the limit gets 429 with `Retry-After` instead of waiting without bound.

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

/// The longest wait for a permit.
const QUEUE_WAIT_TIMEOUT: Duration = Duration::from_secs(3);

/// A limit of concurrent requests of one kind, shared by its clones.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit {
    what: &'static str,
    limit: u32,
    free: Arc<Semaphore>,
}

impl ConcurrencyLimit {
    /// A limit of `limit` requests; `what` names their kind in problems.
    #[must_use]
    pub fn new(what: &'static str, limit: u32) -> Self {
        Self { what, limit, free: Arc::new(Semaphore::new(limit as usize)) }
    }

    /// Takes a permit.
    ///
    /// # Errors
    /// `too-many-requests` if no permit is free.
    pub(in crate::api) fn try_acquire(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.free).try_acquire_owned().map_err(|_none_free| self.full())
    }

    /// Takes a permit, in turn and after a short wait, so that the service accepts bursts of small uploads.
    ///
    /// # Errors
    /// `too-many-requests` if no permit becomes free within 3 seconds.
    pub(in crate::api) async fn acquire(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let turn = tokio::time::timeout(QUEUE_WAIT_TIMEOUT, Arc::clone(&self.free).acquire_owned()).await;
        // the semaphore is never closed
        turn.ok().and_then(Result::ok).ok_or_else(|| self.full())
    }

    fn full(&self) -> Problem {
        let detail = format!("the limit of {} concurrent {} is reached", self.limit, self.what);
        let problem = Problem::new(Kind::TooManyRequests, detail).with("limit", self.limit);
        problem.with("found", u64::from(self.limit) + 1).retry_after(5)
    }
}

/// Limits of all requests.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimits {
    /// Requests with an unfinished answer.
    pub requests: ConcurrencyLimit,
    /// Requests that wait for a job.
    pub waiting: ConcurrencyLimit,
    /// Concurrent downloads of parts and archives.
    pub downloads: ConcurrencyLimit,
    /// The most bytes of a JSON document.
    pub max_document_bytes: usize,
    /// The longest time for the next 16 KiB of a body.
    pub idle: Duration,
    /// The longest time for a whole body.
    pub upload: Duration,
}

/// Admits a request if a permit is free; the permit is held until the answer ends.
pub(in crate::api) async fn limit_concurrency(
    State(limit): State<ConcurrencyLimit>,
    request: Request,
    next: Next,
) -> Response {
    // health checks must succeed under full load
    if matches!(request.uri().path(), "/healthz" | "/readyz") {
        return next.run(request).await;
    }
    match limit.try_acquire() {
        Ok(permit) => hold_permit(next.run(request).await, permit),
        Err(problem) => {
            drain(request.into_body().into_data_stream()).await;
            problem.into_response()
        }
    }
}

/// Holds a permit until the answer ends or the client disconnects.
pub(in crate::api) fn hold_permit(response: Response, permit: OwnedSemaphorePermit) -> Response {
    response.map(|body| Body::new(PermitBody { body, _permit: permit }))
}

struct PermitBody {
    body: Body,
    _permit: OwnedSemaphorePermit,
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
