//! A request's body on its way from the async side to a blocking thread.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::DRAINED_BYTES;
use crate::microdata::formats::LimitExceeded;
use crate::problem::{Kind, Problem};

/// What flows to the parsing thread. The end is stated: a channel that merely closes is a cut upload.
enum Flow {
    Bytes(Bytes),
    Broken,
    End,
}

/// The async end of an intake.
pub(super) struct Feeder(mpsc::Sender<Flow>);

impl Feeder {
    /// Sends all pieces on; false when the body broke off, or when nobody listens and it is too long to be read for nothing.
    pub(super) async fn feed<E>(&self, mut body: impl Stream<Item = Result<Bytes, E>> + Unpin) -> bool {
        let mut drained = 0;
        while let Some(piece) = body.next().await {
            let Ok(piece) = piece else { return false };
            let len = piece.len();
            if self.0.send(Flow::Bytes(piece)).await.is_err() {
                drained += len;
                if drained > DRAINED_BYTES {
                    return false;
                }
            }
        }
        true
    }

    /// States how it ended.
    pub(super) async fn end(self, complete: bool) {
        // a receiver that has given up need not know
        let _ = self.0.send(if complete { Flow::End } else { Flow::Broken }).await;
    }
}

/// A way for a body to a blocking thread: where it is fed, what was received so far, and where it is read.
pub(super) fn intake(limit: u64, hashed: bool) -> (Feeder, SharedMeter, BodyReader) {
    let (sender, receiver) = mpsc::channel(4);
    let meter = SharedMeter(Arc::new(Mutex::new(Meter { bytes: 0, hash: hashed.then(Sha256::new) })));
    let reader = BodyReader { receiver, current: Bytes::new(), ended: false, meter: meter.clone(), limit };
    (Feeder(sender), meter, reader)
}

struct Meter {
    bytes: u64,
    hash: Option<Sha256>,
}

/// What was received so far.
#[derive(Clone)]
pub(super) struct SharedMeter(Arc<Mutex<Meter>>);

impl SharedMeter {
    fn lock(&self) -> MutexGuard<'_, Meter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes received and, where asked for, their hash, when they are those that the client meant to send.
    pub(super) fn judge(&self, stated: Option<&[u8]>) -> Result<(u64, Option<[u8; 32]>), Problem> {
        let mut meter = self.lock();
        let computed: Option<[u8; 32]> = meter.hash.take().map(|hash| hash.finalize().into());
        match (&computed, stated) {
            (Some(computed), Some(stated)) if computed.as_slice() != stated => Err(Problem::new(
                Kind::DigestMismatch,
                "the SHA-256 of the body is not the one that Content-Digest states",
            )),
            _ => Ok((meter.bytes, computed)),
        }
    }
}

/// The body on the parsing thread.
pub(super) struct BodyReader {
    receiver: mpsc::Receiver<Flow>,
    current: Bytes,
    ended: bool,
    meter: SharedMeter,
    limit: u64,
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.ended {
            match self.receiver.blocking_recv() {
                Some(Flow::Bytes(bytes)) => {
                    let mut meter = self.meter.lock();
                    meter.bytes += bytes.len() as u64;
                    if meter.bytes > self.limit {
                        let found = meter.bytes;
                        return Err(io::Error::other(LimitExceeded {
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
                Some(Flow::End) => self.ended = true,
                Some(Flow::Broken) | None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let len = buffer.len().min(self.current.len());
        self.current.copy_to_slice(&mut buffer[..len]);
        Ok(len)
    }
}
