//! The rows of a part, streamed a chunk at a time. Reaches parts and manifests only, never a dataset.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

use super::part_query::etag;
use super::part_query::{FORMATS, Format, PartQuery, chunk_at, cursor_problem, etag_matches, not_modified, set_etag};
use super::part_stream::{storage_problem, unpacked};
use super::{linked, part_stream, served};
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{PartPath, QueryParameters, no_such_part};
use crate::api::http::limits::hold_permit;
use crate::api::http::negotiation::{MediaOffer, negotiate};
use crate::api::http::page;
use crate::ports::{ReleaseRecord, StoreError, problem_of};
use crate::problem::{Kind, Problem};
use crate::report::{CountsPage, ManifestPart, PartFormat, PartRows, Rendering, RowCursorError, counted};

/// The rows of a part
///
/// CSV, NDJSON, Parquet and Arrow are streamed whole; JSON comes in pages. In Parquet and Arrow, `bucket` is INT32, integers are
/// INT64, decimals are DECIMAL with as many places as the part needs (text when that is more than 38 digits), dates are DATE,
/// timestamps are in microseconds UTC, text has a dictionary in each row group or batch, and a missing value is null. There is
/// no metadata beside the schema.
///
/// `view=linked` gives, for any part of a table that is tied by bucket, one table of all its attributes, in which the rows of a bucket
/// stand side by side at random: of all ways to match them, which a reader cannot tell apart, it shows one. It is synthetic, as the
/// header `Guardian-Linkage` says, and tells nothing that the parts do not tell: it is made from them alone, and the same for
/// everybody. What its rows say of attributes in different parts is true of no person.
#[utoipa::path(get, path = "/v1/releases/{id}/tables/{table}/parts/{part}", tag = "releases",
    params(("id" = Uuid, Path), ("table" = String, Path), ("part" = String, Path), PartQuery,
        ("If-None-Match" = Option<String>, Header, description = "ETags that the client has: what bears one of them is answered 304.")),
    responses(
        (status = 200, headers(("ETag" = String), ("Guardian-Linkage" = String)), content(
            (String = "text/csv"),
            (String = "application/x-ndjson"),
            (serde_json::Value = "application/json"),
            (Vec<u8> = "application/vnd.apache.parquet"),
            (Vec<u8> = "application/vnd.apache.arrow.stream"))),
        (status = 304, description = "the part has the ETag that If-None-Match names")))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PartPath { release, table, part }: PartPath,
    QueryParameters(query): QueryParameters<PartQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (suffix, media_type, format) = negotiated(query.format.as_deref(), &headers)?;
    let (counts, is_linked) = match query.view.as_deref() {
        None => (false, false),
        Some("counts") => (true, false),
        Some("linked") => (false, true),
        Some(_) => return Err(Problem::new(Kind::MalformedRequest, "view may be counts or linked")),
    };
    let (release, manifest) = served::read(&app, &caller, release).await?;
    let table = manifest.tables.into_iter().find(|candidate| candidate.name == table).ok_or_else(no_such_part)?;
    let place = table.parts.iter().position(|candidate| candidate.name == part).ok_or_else(no_such_part)?;
    if is_linked {
        return linked::get(&app, &caller, release, table, (suffix, media_type, format), &query, &headers).await;
    }
    let part = table.parts[place].clone();
    if counts && counted(&part).is_none() {
        let detail = "the part has a column named count, so that its distinct rows cannot be counted in one";
        return Err(Problem::new(Kind::ReservedName, detail).with("attribute", "count"));
    }
    served::open(&app, &caller, &release).await?;
    let view = if counts { "-counts" } else { "" };
    let streamed = match format {
        Format::Json => {
            let page =
                format!("{suffix}{view}-{}-{}", query.cursor.as_deref().unwrap_or("0"), page::limit(query.limit)?);
            let etag = etag(&part, &page);
            if etag_matches(&headers, &etag) {
                return Ok(not_modified(etag));
            }
            let mut response = page_of(&app, &release, &part, counts, &query).await?;
            set_etag(&mut response, [(header::CONTENT_TYPE, media_type), (header::ETAG, &etag)]);
            return Ok(response);
        }
        Format::Streamed(streamed) => streamed,
    };
    query.is_whole()?;
    let (etag, media_type) = match streamed {
        PartFormat::Csv => (etag(&part, &format!("csv{view}")), "text/csv; charset=utf-8; header=present"),
        PartFormat::Ndjson => (etag(&part, &format!("ndjson{view}")), media_type),
        // another version may write the same rows in other bytes
        PartFormat::Parquet | PartFormat::Arrow => {
            (etag(&part, &format!("{suffix}{view}-{}", env!("CARGO_PKG_VERSION"))), media_type)
        }
    };
    if etag_matches(&headers, &etag) {
        return Ok(not_modified(etag));
    }
    let place = app.bounds.downloads.try_acquire()?;
    let stem = part.file.strip_suffix(".csv").unwrap_or(&part.file);
    let attachment = format!("attachment; filename=\"{stem}{}.{suffix}\"", view.replace('-', "."));
    let scales = part_stream::scales(&app, &release, &part, streamed).await?;
    let rendering =
        Rendering::new(&part, streamed, counts, scales.as_ref()).map_err(|error| storage_problem(&error))?;
    let body = part_stream::part(app, release, &part, rendering.ok_or_else(no_such_part)?);
    let mut response = Response::new(Body::from_stream(body));
    let stated =
        [(header::CONTENT_TYPE, media_type), (header::ETAG, &etag), (header::CONTENT_DISPOSITION, &attachment)];
    set_etag(&mut response, stated);
    Ok(hold_permit(response, place))
}

/// The format asked for.
fn negotiated(parameter: Option<&str>, headers: &HeaderMap) -> Result<MediaOffer<Format>, Problem> {
    let unacceptable = || Problem::new(Kind::NotAcceptable, "parts are served as csv, ndjson, json, parquet and arrow");
    negotiate(&FORMATS, parameter, headers).ok_or_else(unacceptable)
}

/// One page of JSON. The cursor is the number of a row of the part.
async fn page_of(
    app: &App,
    release: &ReleaseRecord,
    part: &ManifestPart,
    counts: bool,
    query: &PartQuery,
) -> Result<Response, Problem> {
    let limit = u64::from(page::limit(query.limit)?);
    let first = query.first()?;
    if first > 0 && first >= part.rows {
        return Err(cursor_problem());
    }
    if counts {
        counts_page(app, release, part, first, limit).await
    } else {
        page(app, release, part, first, limit).await
    }
}

async fn page(
    app: &App,
    release: &ReleaseRecord,
    part: &ManifestPart,
    first: u64,
    limit: u64,
) -> Result<Response, Problem> {
    let end = part.rows.min(first + limit);
    let rows = PartRows::new(part);
    let mut body = rows.json_head();
    let mut next = first;
    while next < end {
        let found = chunk_at(app, release, part, next).await?;
        let csv = unpacked(&found).map_err(|error| problem_of(&error))?;
        let chunk_end = found.first_row + u64::from(found.rows);
        let range = next - found.first_row..end.min(chunk_end) - found.first_row;
        let written = rows.json_rows(&csv, found.number == 0, range, next == first, &mut body);
        written.map_err(|error| problem_of(&StoreError::corrupt(error)))?;
        next = end.min(chunk_end).max(next + 1);
    }
    let cursor = (end < part.rows).then(|| end.to_string());
    rows.json_tail(cursor.as_deref(), &mut body);
    Ok(body.into_response())
}

async fn counts_page(
    app: &App,
    release: &ReleaseRecord,
    part: &ManifestPart,
    first: u64,
    limit: u64,
) -> Result<Response, Problem> {
    let shown = counted(part).ok_or_else(cursor_problem)?;
    let mut page = CountsPage::new(part, first, limit);
    while let Some(row) = page.wanted().filter(|row| *row < part.rows) {
        let found = chunk_at(app, release, part, row).await?;
        let csv = unpacked(&found).map_err(|error| problem_of(&error))?;
        let looked = page.chunk(&csv, found.first_row).map_err(|error| storage_problem(&error))?;
        looked.map_err(|RowCursorError| cursor_problem())?;
    }
    let (csv, written, next) = page.finish();
    let rows = PartRows::new(&shown);
    let mut body = rows.json_head();
    let rendered = rows.json_rows(&csv, false, 0..written, true, &mut body);
    rendered.map_err(|error| problem_of(&StoreError::corrupt(error)))?;
    rows.json_tail(next.map(|next| next.to_string()).as_deref(), &mut body);
    Ok(body.into_response())
}
