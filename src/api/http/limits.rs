//! Concurrency limits: a request above the limit gets 429 with `Retry-After` instead of waiting without bound.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use ahash::AHashMap;
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
/// The pause before a tenant with its share asks again.
const SHARE_INTERVAL: Duration = Duration::from_millis(50);

/// A limit of concurrent requests of one kind, shared by its clones.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit {
    what: &'static str,
    limit: u32,
    /// The most of them for one tenant.
    share: u32,
    free: Arc<Semaphore>,
    held: Arc<Mutex<AHashMap<String, u32>>>,
}

impl ConcurrencyLimit {
    /// A limit of `limit` requests; `what` names their kind in problems.
    #[must_use]
    pub fn new(what: &'static str, limit: u32) -> Self {
        Self { what, limit, share: limit, free: Arc::new(Semaphore::new(limit as usize)), held: Arc::default() }
    }

    /// The same limit, of which one tenant takes at most half, so that it never keeps the others out.
    #[must_use]
    pub fn shared_by_tenants(self) -> Self {
        Self { share: self.limit.div_ceil(2), ..self }
    }

    /// Takes a permit for a tenant.
    ///
    /// # Errors
    /// `too-many-requests` if no permit is free, or the tenant has its share.
    pub(in crate::api) fn try_acquire(&self, tenant: &str) -> Result<RequestPermit, Problem> {
        let share = self.share(tenant)?;
        let place = Arc::clone(&self.free).try_acquire_owned().map_err(|_none_free| self.full())?;
        Ok(RequestPermit { _place: place, _share: Some(share) })
    }

    /// Takes a permit for a caller who is not known yet.
    ///
    /// # Errors
    /// `too-many-requests` if no permit is free.
    pub(in crate::api) fn try_acquire_unknown(&self) -> Result<RequestPermit, Problem> {
        let place = Arc::clone(&self.free).try_acquire_owned().map_err(|_none_free| self.full())?;
        Ok(RequestPermit { _place: place, _share: None })
    }

    /// Takes a permit for a tenant, in turn and after a short wait, so that the service accepts bursts of small uploads.
    ///
    /// # Errors
    /// `too-many-requests` if no permit becomes free within 3 seconds.
    pub(in crate::api) async fn acquire(&self, tenant: &str) -> Result<RequestPermit, Problem> {
        let turn = async {
            loop {
                match self.share(tenant) {
                    Ok(share) => break (share, Arc::clone(&self.free).acquire_owned().await),
                    Err(_has_its_share) => tokio::time::sleep(SHARE_INTERVAL).await,
                }
            }
        };
        match tokio::time::timeout(QUEUE_WAIT_TIMEOUT, turn).await {
            // the semaphore is never closed
            Ok((share, Ok(place))) => Ok(RequestPermit { _place: place, _share: Some(share) }),
            Ok((_, Err(_))) => Err(self.full()),
            Err(_elapsed) => Err(self.share(tenant).err().unwrap_or_else(|| self.full())),
        }
    }

    /// Counts a request for its tenant; the permit of the request is another matter.
    ///
    /// # Errors
    /// `too-many-requests` if the tenant has its share.
    pub(in crate::api) fn share(&self, tenant: &str) -> Result<TenantShare, Problem> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = held.get(tenant).copied().unwrap_or(0);
        if taken >= self.share && self.share < self.limit {
            return Err(self.exceeded(self.share, &format!("{} of one tenant", self.what)));
        }
        held.insert(tenant.to_owned(), taken + 1);
        Ok(TenantShare { held: Arc::clone(&self.held), tenant: tenant.to_owned() })
    }

    fn full(&self) -> Problem {
        self.exceeded(self.limit, self.what)
    }

    fn exceeded(&self, limit: u32, what: &str) -> Problem {
        let detail = format!("the limit of {limit} concurrent {what} is reached");
        let problem = Problem::new(Kind::TooManyRequests, detail).with("limit", limit);
        problem.with("found", u64::from(limit) + 1).retry_after(5)
    }
}

/// A place among concurrent requests, until it is dropped.
#[derive(Debug)]
pub(in crate::api) struct RequestPermit {
    _place: OwnedSemaphorePermit,
    _share: Option<TenantShare>,
}

/// A request in the count of its tenant.
#[derive(Debug)]
pub(in crate::api) struct TenantShare {
    held: Arc<Mutex<AHashMap<String, u32>>>,
    tenant: String,
}

impl Drop for TenantShare {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        // tenants without requests are forgotten
        if let Some(left) = held.remove(&self.tenant).and_then(|taken| taken.checked_sub(1)).filter(|left| *left > 0) {
            held.insert(std::mem::take(&mut self.tenant), left);
        }
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
    /// The longest wait for the next `min_bytes` of a body.
    pub idle: Duration,
    /// The bytes of a body that must arrive within `idle`.
    pub min_bytes: u64,
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
    match limit.try_acquire_unknown() {
        Ok(permit) => hold_until_sent(next.run(request).await, permit),
        Err(problem) => {
            drain(request.into_body().into_data_stream()).await;
            problem.into_response()
        }
    }
}

/// Holds something, such as a permit, until the answer ends or the client disconnects.
pub fn hold_until_sent<T: Send + Unpin + 'static>(response: Response, held: T) -> Response {
    response.map(|body| Body::new(HoldingBody { body, _held: held }))
}

struct HoldingBody<T> {
    body: Body,
    _held: T,
}

impl<T: Unpin> HttpBody for HoldingBody<T> {
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
