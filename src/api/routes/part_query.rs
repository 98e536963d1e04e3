use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api::http::app::App;
use crate::api::http::negotiation::MediaOffer;
use crate::ports::{PartChunkRecord, ReleaseRecord, StoreError};
use crate::problem::{Kind, Problem};
use crate::report::{ManifestPart, PartFormat};

use super::served;

/// The requested form of the rows.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct PartQuery {
    /// `csv`, `ndjson`, `json`, `parquet` or `arrow`; precedes the Accept header.
    pub(super) format: Option<String>,
    /// `counts`: distinct rows with their number in a last column `count`. `linked`: all attributes of a bucketized table in one view,
    /// without buckets. `spreadsheet`: CSV in which an apostrophe precedes each cell that a spreadsheet would take for a formula.
    pub(super) view: Option<String>,
    /// The maximum number of rows of a JSON page, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub(in crate::api) limit: Option<u32>,
    /// `next` of the previous page; JSON only.
    pub(super) cursor: Option<String>,
}

impl PartQuery {
    /// The first row of the page, counted from 0.
    pub(in crate::api) fn first(&self) -> Result<u64, Problem> {
        self.cursor.as_deref().map_or(Ok(0), str::parse).map_err(|_| cursor_problem())
    }

    /// Rejects page parameters for streamed formats.
    pub(in crate::api) fn is_whole(&self) -> Result<(), Problem> {
        if self.limit.is_some() || self.cursor.is_some() {
            return Err(Problem::new(Kind::MalformedRequest, "limit and cursor belong to format=json"));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum Format {
    Streamed(PartFormat),
    /// Served in pages.
    Json,
}

/// The formats: parameter and file name extension, media type. The first is the default.
pub(in crate::api) const FORMATS: [MediaOffer<Format>; 5] = [
    ("csv", "text/csv", Format::Streamed(PartFormat::Csv)),
    ("json", "application/json", Format::Json),
    ("ndjson", "application/x-ndjson", Format::Streamed(PartFormat::Ndjson)),
    ("parquet", "application/vnd.apache.parquet", Format::Streamed(PartFormat::Parquet)),
    ("arrow", "application/vnd.apache.arrow.stream", Format::Streamed(PartFormat::Arrow)),
];

pub(in crate::api) fn etag(part: &ManifestPart, representation: &str) -> String {
    format!("\"{}-{representation}\"", part.digest())
}

/// Whether `If-None-Match` contains `etag`.
pub(in crate::api) fn etag_matches(headers: &HeaderMap, etag: &str) -> bool {
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut candidates = known.split(',').map(str::trim);
    candidates.any(|candidate| candidate.strip_prefix("W/").unwrap_or(candidate) == etag || candidate == "*")
}

/// A response with status 304.
pub(in crate::api) fn not_modified(etag: String) -> Response {
    (StatusCode::NOT_MODIFIED, [(header::ETAG, etag)]).into_response()
}

/// Sets the headers of a response, the `ETag` among them.
pub(in crate::api) fn set_etag<const N: usize>(response: &mut Response, fields: [(HeaderName, &str); N]) {
    for (name, value) in fields {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
}

/// The chunk that contains a row.
pub(in crate::api) async fn chunk_at(
    app: &App,
    release: &ReleaseRecord,
    part: &ManifestPart,
    row: u64,
) -> Result<PartChunkRecord, Problem> {
    let found =
        app.service.store.part_chunk_at_row(&release.tenant, release.job, release.attempt, &part.csv(), row).await;
    match found.and_then(|found| found.ok_or(StoreError::NotFound)) {
        Err(StoreError::NotFound) => {
            served::still_served(app, release).await?;
            Err(StoreError::corrupt("a chunk of a part is missing").into())
        }
        found => found.map_err(Problem::from),
    }
}

pub(in crate::api) fn cursor_problem() -> Problem {
    Problem::new(Kind::MalformedRequest, "the cursor does not belong to this list")
}
