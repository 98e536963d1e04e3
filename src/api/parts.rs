//! The rows of a part, streamed a chunk at a time. Reaches parts and manifests only, never a dataset.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, stream};
use serde::Deserialize;
use utoipa::IntoParams;

use super::access::Who;
use super::extract::{PartPath, Query, no_such_part};
use super::listing;
use super::{App, releases};
use crate::jobs::{PartChunkRecord, ReleaseRecord, StoreError, decompress, problem_of};
use crate::problem::{Kind, Problem, ProblemDocument};
use crate::report::{ManifestPart, PartRows};

/// How to give the rows.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct PartQuery {
    /// `csv`, `ndjson` or `json`; goes before the Accept header.
    format: Option<String>,
    /// The most rows of a page of JSON, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next` of the page before; JSON only.
    cursor: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Ndjson,
    Json,
}

/// The rows of a part
///
/// CSV and NDJSON are streamed whole; JSON comes in pages.
#[utoipa::path(get, path = "/v1/releases/{id}/tables/{table}/parts/{part}", tag = "releases",
    params(("id" = Uuid, Path), ("table" = String, Path), ("part" = String, Path), PartQuery),
    responses(
        (status = 200, content(
            (String = "text/csv"),
            (String = "application/x-ndjson"),
            (serde_json::Value = "application/json"))),
        (status = 304, description = "the part has the ETag that If-None-Match names"),
        (status = "4XX", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn get(
    State(app): State<App>,
    Who(caller): Who,
    PartPath { release, table, part }: PartPath,
    Query(query): Query<PartQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let format = negotiate(query.format.as_deref(), &headers)?;
    let (release, manifest) = releases::read(&app, &caller, release).await?;
    let table = manifest.tables.into_iter().find(|candidate| candidate.name == table).ok_or_else(no_such_part)?;
    let part = table.parts.into_iter().find(|candidate| candidate.name == part).ok_or_else(no_such_part)?;
    if format == Format::Json {
        return page(&app, &release, &part, &query).await;
    }
    if query.limit.is_some() || query.cursor.is_some() {
        return Err(Problem::new(Kind::MalformedRequest, "limit and cursor belong to format=json"));
    }
    let suffix = if format == Format::Csv { "csv" } else { "ndjson" };
    let etag = format!("\"{}-{suffix}\"", part.sha256);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if known.split(',').any(|candidate| candidate.trim() == etag || candidate.trim() == "*") {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, etag)]).into_response());
    }
    let media_type = match format {
        Format::Csv => "text/csv; charset=utf-8; header=present",
        _ => "application/x-ndjson",
    };
    let attachment = format!("attachment; filename=\"{}\"", part.file.replace(".csv", &format!(".{suffix}")));
    let mut response = Response::new(Body::from_stream(rows(app, release, part, format)));
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, media_type),
        (header::ETAG, etag.as_str()),
        (header::CONTENT_DISPOSITION, attachment.as_str()),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    Ok(response)
}

/// The format asked for: the parameter, else the most preferred of the Accept header that is served, else CSV.
fn negotiate(parameter: Option<&str>, headers: &HeaderMap) -> Result<Format, Problem> {
    let unacceptable = || Problem::new(Kind::NotAcceptable, "parts are served as csv, ndjson and json");
    if let Some(parameter) = parameter {
        return match parameter {
            "csv" => Ok(Format::Csv),
            "ndjson" => Ok(Format::Ndjson),
            "json" => Ok(Format::Json),
            _ => Err(unacceptable()),
        };
    }
    let Some(accept) = headers.get(header::ACCEPT) else { return Ok(Format::Csv) };
    let accept = accept.to_str().unwrap_or_default().to_ascii_lowercase();
    let mut best: Option<(u32, Format)> = None;
    for range in accept.split(',') {
        let mut members = range.split(';').map(str::trim);
        let format = match members.next().unwrap_or_default() {
            "text/csv" | "text/*" | "*/*" => Format::Csv,
            "application/x-ndjson" => Format::Ndjson,
            "application/json" | "application/*" => Format::Json,
            _ => continue,
        };
        let weight = members.find_map(|member| member.strip_prefix("q=")).and_then(|q| q.parse::<f32>().ok());
        let weight = (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u32;
        if weight > 0 && best.is_none_or(|(other, _)| weight > other) {
            best = Some((weight, format));
        }
    }
    best.map(|(_, format)| format).ok_or_else(unacceptable)
}

/// A chunk, decompressed, under the row it begins with.
async fn chunk(app: &App, release: &ReleaseRecord, file: &str, number: u32) -> Result<Option<Bytes>, StoreError> {
    let found = app.desk.store.part_chunk(&release.tenant, release.job, release.attempt, file, number).await?;
    found.map(|found| unpacked(&found)).transpose()
}

fn unpacked(chunk: &PartChunkRecord) -> Result<Bytes, StoreError> {
    decompress(&chunk.payload).map(Bytes::from).map_err(StoreError::corrupt)
}

/// All rows. An error in the middle cuts the body, so that no client takes what it has for the whole.
fn rows(
    app: App,
    release: ReleaseRecord,
    part: ManifestPart,
    format: Format,
) -> impl Stream<Item = Result<Bytes, StoreError>> {
    stream::try_unfold((app, release, part, 0u32), move |(app, release, part, number)| async move {
        let Some(csv) = chunk(&app, &release, &part.file, number).await.inspect_err(|error| {
            // logged here: the answer is under way and can only be cut
            let _ = problem_of(error);
        })?
        else {
            return Ok(None);
        };
        let bytes = match format {
            Format::Csv => csv,
            _ => Bytes::from(PartRows::new(&part).ndjson(&csv, number == 0).map_err(StoreError::corrupt)?),
        };
        Ok(Some((bytes, (app, release, part, number + 1))))
    })
}

/// One page of JSON. The cursor is the number of the page's first row.
async fn page(app: &App, release: &ReleaseRecord, part: &ManifestPart, query: &PartQuery) -> Result<Response, Problem> {
    let limit = u64::from(listing::limit(query.limit)?);
    let foreign = || Problem::new(Kind::MalformedRequest, "cursor is not one of this list");
    let first: u64 = query.cursor.as_deref().map_or(Ok(0), str::parse).map_err(|_| foreign())?;
    if first > 0 && first >= part.rows {
        return Err(foreign());
    }
    let end = part.rows.min(first + limit);
    let rows = PartRows::new(part);
    let mut body = rows.json_head();
    let mut next = first;
    while next < end {
        let found =
            app.desk.store.part_chunk_at_row(&release.tenant, release.job, release.attempt, &part.file, next).await;
        let found = found.and_then(|found| found.ok_or(StoreError::NotFound)).map_err(|error| match error {
            StoreError::NotFound => problem_of(&StoreError::corrupt("a chunk of a part is missing")),
            other => problem_of(&other),
        })?;
        let csv = unpacked(&found).map_err(|error| problem_of(&error))?;
        let chunk_end = found.first_row + u64::from(found.rows);
        let range = next - found.first_row..end.min(chunk_end) - found.first_row;
        let written = rows.json_rows(&csv, found.number == 0, range, next == first, &mut body);
        written.map_err(|error| problem_of(&StoreError::corrupt(error)))?;
        next = end.min(chunk_end).max(next + 1);
    }
    let cursor = (end < part.rows).then(|| end.to_string());
    rows.json_tail(cursor.as_deref(), &mut body);
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}
