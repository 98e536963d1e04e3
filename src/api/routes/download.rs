//! Whole downloads and ranges of them (RFC 9110).

use std::convert::Infallible;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::part_query::set_etag;
use super::part_stream::{blocking, cut};
use super::served;
use crate::api::http::app::App;
use crate::api::http::limits::hold_until_sent;
use crate::api::http::renderings::{RenderedFile, RenderingKey};
use crate::ports::{ReleaseRecord, StoreError};
use crate::problem::{Kind, Problem};

/// The number of bytes that are read from a rendering at once.
const PIECE_BYTES: u64 = 1 << 20;
/// The number of bytes after which the status of the release is read again.
const STATUS_INTERVAL_BYTES: u64 = 16 << 20;

/// The bytes of a download in order.
pub(super) type DownloadStream = BoxStream<'static, Result<Bytes, StoreError>>;

/// Headers of a request, and whether it is a HEAD.
pub(in crate::api) struct DownloadRequest {
    pub(super) headers: HeaderMap,
    is_head: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for DownloadRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self { headers: parts.headers.clone(), is_head: parts.method == Method::HEAD })
    }
}

impl DownloadRequest {
    /// The requested range of a content with `etag`.
    ///
    /// A malformed range, several ranges, or a range of another content are requests of the whole.
    fn range(&self, etag: &str) -> Option<ByteRange> {
        let header = |name| self.headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default());
        if self.is_head || header(header::IF_RANGE).is_some_and(|known| known != etag) {
            return None;
        }
        ByteRange::parse(header(header::RANGE)?)
    }
}

/// A range as it is requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ByteRange {
    /// From a first byte to a last one.
    Between(u64, u64),
    /// The last bytes of a number.
    Last(u64),
}

impl ByteRange {
    fn parse(text: &str) -> Option<Self> {
        let (unit, range) = text.split_once('=')?;
        let (first, last) = range.trim().split_once('-')?;
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            // more than fits is behind the end too
            digits.then(|| text.parse().unwrap_or(u64::MAX))
        };
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        match (first, last) {
            ("", last) => number(last).map(Self::Last),
            (first, "") => number(first).map(|first| Self::Between(first, u64::MAX)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::Between(first, last))
            }
        }
    }

    /// The bytes of a content of this length; `None` if it has none of them.
    fn of(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::Between(first, last) => first..length.min(last.saturating_add(1)),
            Self::Last(number) => length.saturating_sub(number)..length,
        };
        (!range.is_empty()).then_some(range)
    }
}

/// A download of a release.
pub(super) struct Download<'a> {
    pub(super) app: &'a App,
    pub(super) release: &'a ReleaseRecord,
    /// Together with the tag, identifies the content in the release.
    pub(super) file: &'a str,
    /// Strong.
    pub(super) etag: &'a str,
    pub(super) media_type: &'a str,
    pub(super) attachment: &'a str,
}

impl Download<'_> {
    /// Answers with the content of `source`, or the requested range of it.
    ///
    /// A range or a length requires the finished content, which is then kept for a while.
    pub(super) async fn answer<'s>(
        &self,
        request: &DownloadRequest,
        source: impl Fn() -> BoxFuture<'s, Result<DownloadStream, Problem>>,
    ) -> Result<Response, Problem> {
        let permit = self.app.bounds.downloads.try_acquire(&self.release.tenant)?;
        let range = request.range(self.etag);
        let key = RenderingKey {
            tenant: self.release.tenant.clone(),
            release: self.release.id,
            file: self.file.to_owned(),
            etag: self.etag.to_owned(),
        };
        let requires_length = request.is_head || range.is_some();
        let rendered =
            if requires_length { self.rendered(&key, source()).await? } else { self.app.renderings.finished(&key) };
        let mut accepted = "bytes";
        let mut response = match rendered {
            Some(file) => self.of_file(file, range),
            None => {
                if requires_length {
                    accepted = "none";
                }
                let whole = if request.is_head { stream::empty().boxed() } else { source().await? };
                Response::new(Body::from_stream(whole))
            }
        };
        set_etag(&mut response, [(header::ACCEPT_RANGES, accepted)]);
        if !response.status().is_client_error() {
            let fields = [
                (header::CONTENT_TYPE, self.media_type),
                (header::ETAG, self.etag),
                (header::CONTENT_DISPOSITION, self.attachment),
            ];
            set_etag(&mut response, fields);
        }
        Ok(hold_until_sent(response, permit))
    }

    async fn rendered(
        &self,
        key: &RenderingKey,
        source: BoxFuture<'_, Result<DownloadStream, Problem>>,
    ) -> Result<Option<Arc<RenderedFile>>, Problem> {
        match self.app.renderings.get_or_make(key, source).await {
            Err(problem) if problem.kind != Kind::TooManyRequests => {
                // chunks are missing when the release was withdrawn meanwhile
                served::still_served(self.app, self.release).await?;
                Err(problem)
            }
            found => found,
        }
    }

    fn of_file(&self, file: Arc<RenderedFile>, range: Option<ByteRange>) -> Response {
        let length = file.length();
        let (range, content_range) = match range.map(|range| range.of(length)) {
            None => (0..length, None),
            Some(Some(range)) => {
                let said = format!("bytes {}-{}/{length}", range.start, range.end - 1);
                (range, Some((StatusCode::PARTIAL_CONTENT, said)))
            }
            Some(None) => {
                let detail = format!("the content has {length} bytes");
                let problem = Problem::new(Kind::RangeUnsatisfiable, detail).with("limit", length);
                let mut response = problem.into_response();
                set_etag(&mut response, [(header::CONTENT_RANGE, &format!("bytes */{length}"))]);
                return response;
            }
        };
        let left = range.end - range.start;
        let bytes = file_bytes(self.app.clone(), self.release.clone(), file, range);
        let mut response = Response::new(Body::new(SizedBody { bytes, left }));
        if let Some((status, said)) = content_range {
            *response.status_mut() = status;
            set_etag(&mut response, [(header::CONTENT_RANGE, &said)]);
        }
        response
    }
}

/// Streams a range of a rendering, as long as the release is served.
fn file_bytes(app: App, release: ReleaseRecord, file: Arc<RenderedFile>, range: Range<u64>) -> DownloadStream {
    let begun = (app, release, file, range.start);
    stream::try_unfold(begun, move |(app, release, file, at)| {
        let range = range.clone();
        async move {
            if at >= range.end {
                return Ok(None);
            }
            let sent = at - range.start;
            if sent > 0
                && sent.is_multiple_of(STATUS_INTERVAL_BYTES)
                && served::still_served(&app, &release).await.is_err()
            {
                app.renderings.remove_release(release.id);
                return Err(cut(StoreError::NotFound));
            }
            let number = PIECE_BYTES.min(range.end - at);
            let read = Arc::clone(&file);
            let bytes = blocking(move || read.read(at, number as usize)).await.map_err(cut)?;
            Ok(Some((Bytes::from(bytes), (app, release, file, at + number))))
        }
    })
    .boxed()
}

/// A body of known size.
struct SizedBody {
    bytes: DownloadStream,
    left: u64,
}

impl HttpBody for SizedBody {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        let polled = self.bytes.poll_next_unpin(cx);
        if let Poll::Ready(Some(Ok(bytes))) = &polled {
            self.left = self.left.saturating_sub(bytes.len() as u64);
        }
        polled.map_ok(Frame::data)
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_rfc_9110() {
        for (text, range) in [
            ("bytes=0-0", Some(0..1)),
            ("bytes=0-9", Some(0..10)),
            ("bytes=2-", Some(2..10)),
            ("Bytes=9-99999999999999999999999", Some(9..10)),
            ("bytes=-3", Some(7..10)),
            ("bytes=-30", Some(0..10)),
            ("bytes=10-", None),
            ("bytes=99999999999999999999999-", None),
            ("bytes=-0", None),
        ] {
            assert_eq!(ByteRange::parse(text).unwrap().of(10), range, "{text}");
        }
        assert_eq!(ByteRange::parse("bytes=-5").unwrap().of(0), None);
        for text in
            ["", "bytes", "bytes=", "bytes=-", "rows=0-1", "bytes=2-1", "bytes=0-1,3-4", "bytes=+1-2", "bytes=a-"]
        {
            assert_eq!(ByteRange::parse(text), None, "{text}");
        }
    }
}
