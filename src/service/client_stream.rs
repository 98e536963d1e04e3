//! The bytes of a connection, between the client and the HTTP parser.
//!
//! A client that takes an answer too slowly loses the connection. What the parser itself refuses, it answers without a body; the
//! router's answer goes out in its place.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use bytes::Buf;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use super::activity::ConnectionActivity;
use super::listen::ConnectionLimits;
use crate::api;

/// The longest time in which the rest of a refused request is read, since a client that is cut off while sending misses the answer.
const LINGER_TIME: Duration = Duration::from_secs(2);
/// The most bytes of a refused request that are still read.
const MAX_LINGER_BYTES: usize = 1 << 20;

/// What answers requests that the parser refuses.
#[derive(Clone)]
pub(super) struct RefusedRequests {
    pub(super) router: Router,
    pub(super) from: SocketAddr,
}

/// The answer to a request that the parser refused.
enum Refusal {
    /// There is none.
    None,
    Making(BoxFuture<'static, Option<Bytes>>),
    Sending(Bytes),
    Sent,
    /// The rest of the request is read.
    Lingering(usize),
}

/// A connection of a client.
pub(super) struct ClientStream {
    inner: TcpStream,
    pace: ReadingPace,
    activity: ConnectionActivity,
    /// The requests whose answers have left.
    answered: u64,
    refused: RefusedRequests,
    refusal: Refusal,
}

impl ClientStream {
    pub(super) fn new(
        inner: TcpStream,
        limits: ConnectionLimits,
        activity: ConnectionActivity,
        refused: RefusedRequests,
    ) -> Self {
        let pace = ReadingPace::new(limits);
        Self { inner, pace, activity, answered: 0, refused, refusal: Refusal::None }
    }

    /// Writes with `write`, or the router's answer in place of `head` and what follows it: `len` bytes of the parser.
    fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        head: &[u8],
        len: usize,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let requests = self.activity.requests();
        // no request was read since the last answer: these are words of the parser
        if requests == self.answered
            && matches!(self.refusal, Refusal::None)
            && let Some(status) = status_of(head)
        {
            let RefusedRequests { router, from } = self.refused.clone();
            self.refusal = Refusal::Making(api::refuse_unread(router, from, status).boxed());
        }
        if !ready!(self.poll_refusal(context))? {
            self.pace.begin(requests);
            return self.pace.judge(context, |context| write(Pin::new(&mut self.inner), context));
        }
        Poll::Ready(Ok(len))
    }

    /// Sends the answer to a refused request; whether there is one.
    fn poll_refusal(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        loop {
            match &mut self.refusal {
                Refusal::None => return Poll::Ready(Ok(false)),
                Refusal::Making(answer) => {
                    self.refusal = ready!(answer.as_mut().poll(context)).map_or(Refusal::None, Refusal::Sending);
                }
                Refusal::Sending(answer) if answer.is_empty() => self.refusal = Refusal::Sent,
                Refusal::Sending(answer) => {
                    let inner = &mut self.inner;
                    let sent = self.pace.judge(context, |context| Pin::new(inner).poll_write(context, answer));
                    answer.advance(ready!(sent)?);
                }
                Refusal::Sent | Refusal::Lingering(_) => return Poll::Ready(Ok(true)),
            }
        }
    }

    /// Reads the rest of a refused request.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Refusal::Lingering(left) = &mut self.refusal else { return Poll::Ready(Ok(())) };
        let mut space = [0; 4096];
        while *left > 0 {
            let mut buffer = ReadBuf::new(&mut space);
            match Pin::new(&mut self.inner).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => break,
                Poll::Ready(Ok(())) => *left = left.saturating_sub(buffer.filled().len()),
                // the client has gone
                Poll::Ready(Err(_)) => break,
                Poll::Pending => return self.pace.timer.as_mut().poll(context).map(Ok),
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// The status of the head of an answer.
fn status_of(head: &[u8]) -> Option<u16> {
    let digits = head.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let write = |inner: Pin<&mut TcpStream>, context: &mut Context<'_>| inner.poll_write(context, buffer);
        self.get_mut().poll_send(context, buffer, buffer.len(), write)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let head = buffers.first().map_or(&[][..], |first| first);
        let len = buffers.iter().map(|buffer| buffer.len()).sum();
        let write = |inner: Pin<&mut TcpStream>, context: &mut Context<'_>| inner.poll_write_vectored(context, buffers);
        self.get_mut().poll_send(context, head, len, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_flush(context))?;
        // the parser flushes what it has written whole
        if !self.activity.is_busy() {
            self.answered = self.activity.requests();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match this.refusal {
            Refusal::Lingering(_) => {}
            Refusal::Sent => {
                ready!(Pin::new(&mut this.inner).poll_shutdown(context))?;
                this.pace.timer.as_mut().reset(Instant::now() + LINGER_TIME);
                this.refusal = Refusal::Lingering(MAX_LINGER_BYTES);
            }
            _ => return Pin::new(&mut this.inner).poll_shutdown(context),
        }
        this.poll_linger(context)
    }
}

/// Holds a client to the least speed. Only waiting for the client counts, not waiting for the answer.
struct ReadingPace {
    limit: Duration,
    min_bytes: u64,
    /// The number of the request whose answer is taken.
    request: u64,
    waited: Duration,
    /// The bytes that were taken within `waited`.
    portion: u64,
    /// The begin of the wait, if the client takes nothing now.
    since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl ReadingPace {
    fn new(limits: ConnectionLimits) -> Self {
        Self {
            limit: limits.unread,
            min_bytes: limits.min_bytes,
            request: 0,
            waited: Duration::ZERO,
            portion: 0,
            since: None,
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
        }
    }

    /// Begins with the answer to a request, unless that has begun.
    fn begin(&mut self, request: u64) {
        if self.request != request {
            self.request = request;
            self.forget();
        }
    }

    fn forget(&mut self) {
        (self.waited, self.portion, self.since) = (Duration::ZERO, 0, None);
    }

    /// The outcome of a write, or an error if the client is too slow.
    fn judge(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match write(context) {
            Poll::Pending => {
                if self.since.is_none() {
                    let now = Instant::now();
                    self.since = Some(now);
                    self.timer.as_mut().reset(now + self.limit.saturating_sub(self.waited));
                }
                self.timer.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
            }
            Poll::Ready(Ok(bytes)) => {
                if let Some(since) = self.since.take() {
                    self.waited += since.elapsed();
                }
                self.portion += bytes as u64;
                if self.portion >= self.min_bytes {
                    self.forget();
                }
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }
}
