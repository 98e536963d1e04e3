//! Forms whose parts have bounded heads. The parser keeps the head of a part in memory and searches it for its end each time bytes come.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::multipart::Field;
use axum::extract::{FromRequest, Multipart, Request};
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::problem::{Kind, Problem};

/// The bytes of a body after which the parser must have found the next part, but for those that came together with them.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// A form, part by part.
pub(in crate::api) struct Form {
    parts: Multipart,
    head: Arc<Mutex<HeadProgress>>,
    mismatch: &'static str,
}

/// How far the parser is in the head of a part.
#[derive(Default)]
struct HeadProgress {
    is_reading: bool,
    bytes: usize,
    /// Whether the parser had to look at what it has.
    is_paused: bool,
    is_too_long: bool,
}

impl Form {
    /// The form of a request; `mismatch` is the detail of the problem of a body that is none.
    ///
    /// # Errors
    /// `malformed-request`
    pub(in crate::api) async fn read(request: Request, mismatch: &'static str) -> Result<Self, Problem> {
        let head = Arc::new(Mutex::new(HeadProgress::default()));
        let shared = Arc::clone(&head);
        let request = request.map(|body| Body::new(HeadBoundedBody { body, head: shared }));
        let parts = Multipart::from_request(request, &()).await;
        let parts = parts.map_err(|_| Problem::new(Kind::MalformedRequest, mismatch))?;
        Ok(Self { parts, head, mismatch })
    }

    /// The next part.
    ///
    /// # Errors
    /// `malformed-request`, also for a head of more than [`MAX_HEAD_BYTES`].
    pub(in crate::api) async fn next_part(&mut self) -> Result<Option<Field<'_>>, Problem> {
        *locked(&self.head) = HeadProgress { is_reading: true, ..HeadProgress::default() };
        let part = self.parts.next_field().await;
        let is_too_long = {
            let mut head = locked(&self.head);
            head.is_reading = false;
            head.is_too_long
        };
        part.map_err(|_| match is_too_long {
            true => {
                let detail = format!("the head of a part of the form has more than {MAX_HEAD_BYTES} bytes");
                Problem::new(Kind::MalformedRequest, detail).with("limit", MAX_HEAD_BYTES)
            }
            false => Problem::new(Kind::MalformedRequest, self.mismatch),
        })
    }
}

fn locked(head: &Mutex<HeadProgress>) -> MutexGuard<'_, HeadProgress> {
    head.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The head of a part is too long.
#[derive(Debug, thiserror::Error)]
#[error("the head of a part is too long")]
struct LongHeadError;

/// A body that ends with an error when the parser asks for more than a head may have.
struct HeadBoundedBody {
    body: Body,
    head: Arc<Mutex<HeadProgress>>,
}

impl HttpBody for HeadBoundedBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        {
            let mut head = locked(&self.head);
            if head.is_reading && head.bytes > MAX_HEAD_BYTES {
                if head.is_paused {
                    head.is_too_long = true;
                    return Poll::Ready(Some(Err(LongHeadError.into())));
                }
                // the parser takes whatever is there before it looks at it
                head.is_paused = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            locked(&self.head).bytes += data.len();
        }
        polled.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
