//! Observability of requests: id, span, one log line and metrics.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tracing::{Instrument, Span};
use uuid::Uuid;

use super::error::ProblemInstance;
use super::gateway::ClientAddress;
use crate::{meter, telemetry};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The route of a path without handler.
const UNMATCHED_ROUTE: &str = "unmatched";

/// Traces a request from its head to the end of its answer.
pub(in crate::api) async fn trace_request(mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let method = known(request.method());
    let path = request.extensions().get::<MatchedPath>();
    let route = path.map_or_else(|| UNMATCHED_ROUTE.to_owned(), |path| path.as_str().to_owned());
    let client = request.extensions().get::<ClientAddress>().and_then(|ClientAddress(address)| *address);
    // a query may contain names of attributes; a route's path contains ids only.
    // error level, so that no log filter removes the span with the id
    let span = tracing::error_span!(
        "request",
        otel.kind = "server",
        request.id = %id,
        method,
        route,
        path = path.map(|_| request.uri().path()),
        client.address = client.map(tracing::field::display),
    );
    let headers = request.headers();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    telemetry::continue_trace(&span, &format!("{method} {route}"), header("traceparent"), header("tracestate"));
    let quiet = matches!(route.as_str(), "/healthz" | "/readyz");
    let mut watch = RequestTrace {
        span,
        method,
        route,
        quiet,
        since: Instant::now(),
        status: None,
        occurrence: None,
        sent: 0,
        complete: false,
        _in_flight: meter::InFlight::begin(),
    };
    let id = HeaderValue::try_from(id.as_str()).ok();
    let is_read = Arc::new(AtomicBool::new(request.body().is_end_stream()));
    let received = RequestBodyBytes { method, route: watch.route.clone(), is_read: Arc::clone(&is_read) };
    request = request.map(|body| Body::new(CountedBody { body, span: watch.span.clone(), of: received }));
    let span = watch.span.clone();
    let mut response = next.run(request).instrument(span.clone()).await;
    watch.begun(&mut response);
    if let Some(id) = id {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    if !is_read.load(Ordering::Relaxed) {
        // the rest of the body is in the way of a next request, which the client must not begin
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response.map(|body| {
        watch.complete = body.is_end_stream();
        Body::new(CountedBody { body, span, of: watch })
    })
}

/// The `X-Request-Id` of the caller if it is safe to log, otherwise a new id.
fn request_id(headers: &HeaderMap) -> String {
    let is_safe = |id: &&str| {
        (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok()).filter(is_safe);
    given.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned)
}

/// The name of a method; `other` for unusual methods.
fn known(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
    KNOWN.into_iter().find(|name| *name == method.as_str()).unwrap_or("other")
}

/// A request in progress; logs and records it when dropped.
struct RequestTrace {
    span: Span,
    method: &'static str,
    route: String,
    quiet: bool,
    since: Instant,
    status: Option<StatusCode>,
    occurrence: Option<ProblemInstance>,
    sent: u64,
    complete: bool,
    _in_flight: meter::InFlight,
}

impl RequestTrace {
    fn begun(&mut self, response: &mut Response) {
        self.status = Some(response.status());
        self.occurrence = response.extensions_mut().remove();
        meter::answered(self.method, &self.route, self.status.map(|status| status.as_u16()), self.since.elapsed());
        telemetry::note_status(&self.span, response.status().as_u16());
    }
}

impl Drop for RequestTrace {
    fn drop(&mut self) {
        let elapsed = self.since.elapsed();
        if self.status.is_none() {
            meter::answered(self.method, &self.route, None, elapsed);
        }
        let status = self.status.map(|status| status.as_u16());
        let problem = self.occurrence.as_ref();
        macro_rules! log_answer {
            ($level:ident) => {
                tracing::$level!(
                    status,
                    latency_ms = elapsed.as_secs_f64() * 1000.0,
                    bytes = self.sent,
                    complete = self.complete,
                    problem.kind = problem.map(|problem| problem.kind),
                    problem.instance = problem.map(|problem| problem.instance.as_str()),
                    "request answered"
                )
            };
        }
        let _inside = self.span.enter();
        match status {
            Some(500..) if self.quiet => log_answer!(warn),
            Some(500..) => log_answer!(error),
            _ if self.quiet => log_answer!(debug),
            _ => log_answer!(info),
        }
    }
}

/// A body that counts its bytes and enters the request's span.
struct CountedBody<T> {
    body: Body,
    span: Span,
    of: T,
}

trait CountBytes: Unpin {
    fn bytes(&mut self, number: u64);

    fn end(&mut self);
}

/// Counts the body of a request.
struct RequestBodyBytes {
    method: &'static str,
    route: String,
    /// Whether the body was read to its end.
    is_read: Arc<AtomicBool>,
}

impl CountBytes for RequestBodyBytes {
    fn bytes(&mut self, number: u64) {
        meter::received(self.method, &self.route, number);
    }

    fn end(&mut self) {
        self.is_read.store(true, Ordering::Relaxed);
    }
}

impl CountBytes for RequestTrace {
    fn bytes(&mut self, number: u64) {
        self.sent += number;
        meter::sent(self.method, &self.route, number);
    }

    fn end(&mut self) {
        self.complete = true;
    }
}

impl<T: CountBytes> HttpBody for CountedBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, span, of } = &mut *self;
        let _inside = span.enter();
        let polled = Pin::new(&mut *body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                of.bytes(frame.data_ref().map_or(0, Bytes::len) as u64);
                if body.is_end_stream() {
                    of.end();
                }
            }
            Poll::Ready(None) => of.end(),
            _ => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_request_id_is_replaced() {
        let taken = |id: &[u8]| {
            let headers = HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_bytes(id).unwrap())]);
            request_id(&headers).as_bytes() == id
        };
        let longest = "a".repeat(128);
        for id in ["a", "018f-x_y.Z", longest.as_str()] {
            assert!(taken(id.as_bytes()), "{id}");
        }
        let too_long = "a".repeat(129);
        for id in ["", "a b", "a\tb", "\"a\"", "{}", "a,b", too_long.as_str()] {
            assert!(!taken(id.as_bytes()), "{id}");
        }
        assert!(!taken(b"\xff"));
        assert_eq!(request_id(&HeaderMap::new()).len(), 36);
    }
}
