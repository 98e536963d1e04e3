//! Transfer of a request's body from the async runtime to a blocking thread.

use std::io;
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::BodyDataStream;
use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::limits::ConcurrencyLimits;
use crate::microdata::formats::{Encoding, LimitExceededError};
use crate::problem::{Kind, Problem};

/// Reads the rest of a rejected body, since a client that is cut off while sending misses the answer.
pub(in crate::api) async fn drain(mut body: BodyDataStream) {
    let draining = async {
        let mut drained = 0;
        while let Some(Ok(piece)) = body.next().await {
            drained += piece.len();
            if drained > MAX_DRAINED_BYTES {
                return;
            }
        }
    };
    // a slow client is cut off
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, draining).await;
}

/// A message to the parsing thread. The end is explicit: a closed channel means a truncated upload.
enum BodyMessage {
    Bytes(Bytes),
    Broken,
    End,
}

/// The async end of a body channel.
pub(in crate::api) struct BodySender(mpsc::Sender<BodyMessage>);

impl BodySender {
    /// Forwards all pieces of a body that arrive in time.
    ///
    /// After the receiver has gone, reads up to [`MAX_DRAINED_BYTES`] and then reports a broken body.
    pub(in crate::api) async fn feed<E>(
        &self,
        mut body: impl Stream<Item = Result<Bytes, E>> + Unpin,
        pace: &mut ReadDeadline,
    ) -> BodyEnd {
        let mut drained = 0;
        loop {
            let piece = match pace.next(&mut body).await {
                Ok(Some(Ok(piece))) => piece,
                Ok(Some(Err(_))) => return BodyEnd::Broken,
                Ok(None) => return BodyEnd::Whole,
                Err(problem) => return BodyEnd::Late(problem),
            };
            let len = piece.len();
            if self.0.send(BodyMessage::Bytes(piece)).await.is_err() {
                drained += len;
                if drained > MAX_DRAINED_BYTES {
                    return BodyEnd::Broken;
                }
            }
        }
    }

    /// Sends the end of the body.
    pub(in crate::api) async fn end(self, complete: bool) {
        // the receiver may have gone
        let _ = self.0.send(if complete { BodyMessage::End } else { BodyMessage::Broken }).await;
    }
}

/// The end of a body.
pub(in crate::api) enum BodyEnd {
    /// The body is complete.
    Whole,
    /// The body was truncated, or the receiver has gone.
    Broken,
    /// The body arrived too slowly.
    Late(Problem),
}

/// Deadlines of a body. Only waiting for the client counts, not waiting for the store.
pub(in crate::api) struct ReadDeadline {
    idle: Duration,
    /// The bytes that must arrive within `idle`.
    min_bytes: u64,
    /// Time for the whole body.
    within: Duration,
    until: Instant,
    waited: Duration,
    portion: u64,
}

impl ReadDeadline {
    /// Requires the least speed of the limits, and the whole body within their time.
    pub(in crate::api) fn new(limits: &ConcurrencyLimits) -> Self {
        let &ConcurrencyLimits { idle, min_bytes, upload: within, .. } = limits;
        Self { idle, min_bytes, within, until: Instant::now() + within, waited: Duration::ZERO, portion: 0 }
    }

    /// The next piece of the body.
    ///
    /// # Errors
    /// `request-timeout`
    pub(in crate::api) async fn next<E, S>(&mut self, body: &mut S) -> Result<Option<Result<Bytes, E>>, Problem>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin,
    {
        let begun = Instant::now();
        let piece = self.wait(body.next()).await?;
        self.waited += begun.elapsed();
        self.portion += piece.as_ref().and_then(|piece| piece.as_ref().ok()).map_or(0, Bytes::len) as u64;
        if self.portion >= self.min_bytes {
            (self.waited, self.portion) = (Duration::ZERO, 0);
        }
        Ok(piece)
    }

    /// Waits for an action of the client.
    ///
    /// # Errors
    /// `request-timeout`
    pub(in crate::api) async fn wait<T>(&self, action: impl Future<Output = T>) -> Result<T, Problem> {
        let idle = Instant::now() + self.idle.saturating_sub(self.waited);
        match timeout_at(idle.min(self.until), action).await {
            Ok(output) => Ok(output),
            Err(_) if idle < self.until => {
                let seconds = self.idle.as_secs();
                let detail = format!("less than {} bytes of the body arrived within {seconds} seconds", self.min_bytes);
                Err(Problem::new(Kind::RequestTimeout, detail).with("limit", seconds))
            }
            Err(_) => {
                let seconds = self.within.as_secs();
                let detail = format!("the body did not arrive within {seconds} seconds");
                Err(Problem::new(Kind::RequestTimeout, detail).with("limit", seconds))
            }
        }
    }
}

/// A channel for a body: its sender, a counter of received bytes and the blocking reader.
pub(in crate::api) fn body_channel(limit: u64, hashed: bool) -> (BodySender, SharedByteCounter, BodyReader) {
    let (sender, receiver) = mpsc::channel(4);
    let meter = SharedByteCounter(Arc::new(Mutex::new(ByteCounter { bytes: 0, hash: hashed.then(Sha256::new) })));
    let reader = BodyReader { receiver, current: Bytes::new(), ended: false, meter: meter.clone(), limit };
    (BodySender(sender), meter, reader)
}

struct ByteCounter {
    bytes: u64,
    hash: Option<Sha256>,
}

/// Counts and hashes received bytes; clones share the count.
#[derive(Clone)]
pub(in crate::api) struct SharedByteCounter(Arc<Mutex<ByteCounter>>);

impl SharedByteCounter {
    fn lock(&self) -> MutexGuard<'_, ByteCounter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of received bytes.
    pub(in crate::api) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// The number of received bytes and their hash, if hashed.
    ///
    /// # Errors
    /// `digest-mismatch` if the hash differs from the declared one.
    pub(in crate::api) fn finish(&self, declared: Option<&[u8]>) -> Result<(u64, Option<[u8; 32]>), Problem> {
        let mut meter = self.lock();
        let computed: Option<[u8; 32]> = meter.hash.take().map(|hash| hash.finalize().into());
        match (&computed, declared) {
            (Some(computed), Some(declared)) if computed.as_slice() != declared => {
                Err(Problem::new(Kind::DigestMismatch, "the SHA-256 of the body differs from Content-Digest"))
            }
            _ => Ok((meter.bytes, computed)),
        }
    }
}

/// Blocking reader of a body on the parsing thread.
pub(in crate::api) struct BodyReader {
    receiver: mpsc::Receiver<BodyMessage>,
    current: Bytes,
    ended: bool,
    meter: SharedByteCounter,
    limit: u64,
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.ended {
            match self.receiver.blocking_recv() {
                Some(BodyMessage::Bytes(bytes)) => {
                    let mut meter = self.meter.lock();
                    meter.bytes += bytes.len() as u64;
                    if meter.bytes > self.limit {
                        let found = meter.bytes;
                        return Err(io::Error::other(LimitExceededError {
                            what: "bytes of the body",
                            limit: self.limit,
                            found,
                        }));
                    }
                    if let Some(hash) = &mut meter.hash {
                        hash.update(&bytes);
                    }
                    self.current = bytes;
                }
                Some(BodyMessage::End) => self.ended = true,
                Some(BodyMessage::Broken) | None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let len = buffer.len().min(self.current.len());
        self.current.copy_to_slice(&mut buffer[..len]);
        Ok(len)
    }
}

/// A media type without its parameters, in lower case.
pub(in crate::api) fn media_type_essence(declared: Option<&HeaderValue>) -> Option<String> {
    let declared = declared?.to_str().unwrap_or_default();
    Some(declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// The declared compression of a body or of a part of a form.
///
/// # Errors
/// `unsupported-media-type`
pub(in crate::api) fn encoding(headers: &HeaderMap) -> Result<Option<Encoding>, Problem> {
    let Some(declared) = headers.get(header::CONTENT_ENCODING) else { return Ok(None) };
    match declared.to_str().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "identity" | "" => Ok(Some(Encoding::Identity)),
        "gzip" | "x-gzip" => Ok(Some(Encoding::Gzip)),
        "zstd" => Ok(Some(Encoding::Zstd)),
        _ => Err(Problem::new(Kind::UnsupportedMediaType, "Content-Encoding must be gzip, zstd or identity")),
    }
}

/// The SHA-256 of `Content-Digest` (RFC 9530); ignores other algorithms.
///
/// # Errors
/// `malformed-request`
pub(in crate::api) fn declared_digest(headers: &HeaderMap) -> Result<Option<Vec<u8>>, Problem> {
    let malformed = || Problem::new(Kind::MalformedRequest, "Content-Digest must be sha-256=:BASE64:");
    let Some(declared) = headers.get("content-digest") else { return Ok(None) };
    let declared = declared.to_str().map_err(|_| malformed())?;
    for member in declared.split(',') {
        let (algorithm, value) = member.trim().split_once('=').ok_or_else(malformed)?;
        if algorithm.eq_ignore_ascii_case("sha-256") {
            let encoded = value.strip_prefix(':').and_then(|value| value.strip_suffix(':')).ok_or_else(malformed)?;
            let digest = BASE64_STANDARD.decode(encoded).map_err(|_| malformed())?;
            return if digest.len() == 32 { Ok(Some(digest)) } else { Err(malformed()) };
        }
    }
    Ok(None)
}

/// The maximum of a rejected body that is still read, so that the client sees the answer.
pub(in crate::api) const MAX_DRAINED_BYTES: usize = 64 << 20;

/// The longest time to read a rejected body.
pub(in crate::api) const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
