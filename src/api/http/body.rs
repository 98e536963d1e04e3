//! A request's body on its way from the async side to a blocking thread.

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

use crate::microdata::formats::{Encoding, LimitExceededError};
use crate::problem::{Kind, Problem};

/// Reads on after a refusal: a client that is cut off while it sends does not get to see the answer.
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
    // whoever sends slowly is not read to the end
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, draining).await;
}

/// What flows to the parsing thread. The end is stated: a channel that merely closes is a cut upload.
enum BodyMessage {
    Bytes(Bytes),
    Broken,
    End,
}

/// The async end of an intake.
pub(in crate::api) struct BodySender(mpsc::Sender<BodyMessage>);

impl BodySender {
    /// Sends all pieces on, as far as they come at a pace. What nobody listens to is read for a while, and counts as broken off
    /// when there is more.
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

    /// States how it ended.
    pub(in crate::api) async fn end(self, complete: bool) {
        // a receiver that has given up need not know
        let _ = self.0.send(if complete { BodyMessage::End } else { BodyMessage::Broken }).await;
    }
}

/// How a body ended.
pub(in crate::api) enum BodyEnd {
    /// With its last byte.
    Whole,
    /// It broke off, or nobody wanted more of it.
    Broken,
    /// It came too slowly.
    Late(Problem),
}

/// In a bounded time so many bytes of a body must come, or its end: who sends less holds a place for nothing.
const MIN_BYTES_PER_INTERVAL: usize = 16 << 10;

/// The pace at which a body must come. Only the waiting for the client counts, not that for the store.
pub(in crate::api) struct ReadDeadline {
    idle: Duration,
    /// For the whole body.
    within: Duration,
    until: Instant,
    waited: Duration,
    portion: usize,
}

impl ReadDeadline {
    /// A portion in every `idle`, all within `within`.
    pub(in crate::api) fn new(idle: Duration, within: Duration) -> Self {
        Self { idle, within, until: Instant::now() + within, waited: Duration::ZERO, portion: 0 }
    }

    /// The next of what comes.
    ///
    /// # Errors
    /// `request-timeout`
    pub(in crate::api) async fn next<E>(
        &mut self,
        body: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
    ) -> Result<Option<Result<Bytes, E>>, Problem> {
        let begun = Instant::now();
        let piece = self.wait(body.next()).await?;
        self.waited += begun.elapsed();
        self.portion += piece.as_ref().and_then(|piece| piece.as_ref().ok()).map_or(0, Bytes::len);
        if self.portion >= MIN_BYTES_PER_INTERVAL {
            (self.waited, self.portion) = (Duration::ZERO, 0);
        }
        Ok(piece)
    }

    /// Waits for something that the client must do.
    ///
    /// # Errors
    /// `request-timeout`
    pub(in crate::api) async fn wait<T>(&self, happening: impl Future<Output = T>) -> Result<T, Problem> {
        let idle = Instant::now() + self.idle.saturating_sub(self.waited);
        match timeout_at(idle.min(self.until), happening).await {
            Ok(happened) => Ok(happened),
            Err(_) if idle < self.until => {
                let seconds = self.idle.as_secs();
                let detail = format!("in {seconds} seconds less than 16 KiB of the body came");
                Err(Problem::new(Kind::RequestTimeout, detail).with("limit", seconds))
            }
            Err(_) => {
                let seconds = self.within.as_secs();
                let detail = format!("the body did not come within {seconds} seconds");
                Err(Problem::new(Kind::RequestTimeout, detail).with("limit", seconds))
            }
        }
    }
}

/// A way for a body to a blocking thread: where it is fed, what was received so far, and where it is read.
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

/// What was received so far.
#[derive(Clone)]
pub(in crate::api) struct SharedByteCounter(Arc<Mutex<ByteCounter>>);

impl SharedByteCounter {
    fn lock(&self) -> MutexGuard<'_, ByteCounter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes received so far.
    pub(in crate::api) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// The bytes received and, where asked for, their hash, when they are those that the client meant to send.
    pub(in crate::api) fn finish(&self, declared: Option<&[u8]>) -> Result<(u64, Option<[u8; 32]>), Problem> {
        let mut meter = self.lock();
        let computed: Option<[u8; 32]> = meter.hash.take().map(|hash| hash.finalize().into());
        match (&computed, declared) {
            (Some(computed), Some(declared)) if computed.as_slice() != declared => Err(Problem::new(
                Kind::DigestMismatch,
                "the SHA-256 of the body is not the one that Content-Digest states",
            )),
            _ => Ok((meter.bytes, computed)),
        }
    }
}

/// The body on the parsing thread.
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
pub(in crate::api) fn media_type_essence(stated: Option<&HeaderValue>) -> Option<String> {
    let stated = stated?.to_str().unwrap_or_default();
    Some(stated.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// How a body, or a part of a form, is compressed, where that is stated.
pub(in crate::api) fn encoding(headers: &HeaderMap) -> Result<Option<Encoding>, Problem> {
    let Some(stated) = headers.get(header::CONTENT_ENCODING) else { return Ok(None) };
    match stated.to_str().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "identity" | "" => Ok(Some(Encoding::Identity)),
        "gzip" | "x-gzip" => Ok(Some(Encoding::Gzip)),
        "zstd" => Ok(Some(Encoding::Zstd)),
        _ => Err(Problem::new(Kind::UnsupportedMediaType, "Content-Encoding may be gzip, zstd or identity")),
    }
}

/// The SHA-256 that `Content-Digest` states (RFC 9530); other algorithms are passed over.
pub(in crate::api) fn stated_digest(headers: &HeaderMap) -> Result<Option<Vec<u8>>, Problem> {
    let malformed = || Problem::new(Kind::MalformedRequest, "Content-Digest must be sha-256=:BASE64:");
    let Some(stated) = headers.get("content-digest") else { return Ok(None) };
    let stated = stated.to_str().map_err(|_| malformed())?;
    for member in stated.split(',') {
        let (algorithm, value) = member.trim().split_once('=').ok_or_else(malformed)?;
        if algorithm.eq_ignore_ascii_case("sha-256") {
            let encoded = value.strip_prefix(':').and_then(|value| value.strip_suffix(':')).ok_or_else(malformed)?;
            let digest = BASE64_STANDARD.decode(encoded).map_err(|_| malformed())?;
            return if digest.len() == 32 { Ok(Some(digest)) } else { Err(malformed()) };
        }
    }
    Ok(None)
}

/// After a refusal so much of the body is still read, and for so long, so that the client gets to see the answer.
pub(in crate::api) const MAX_DRAINED_BYTES: usize = 64 << 20;

pub(in crate::api) const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
