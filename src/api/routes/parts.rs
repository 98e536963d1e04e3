//! Downloads of parts. Reads parts and manifests, but no dataset.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::{FutureExt, StreamExt};

use super::download::{Download, DownloadRequest};
use super::linked::LinkedViewRequest;
use super::part_query::etag;
use super::part_query::{FORMATS, Format, PartQuery, chunk_at, cursor_problem, etag_matches, not_modified, set_etag};
use super::part_stream::{storage_problem, unpacked};
use super::{linked, part_stream, served};
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{PartPath, QueryParameters, no_such_part};
use crate::api::http::negotiation::{MediaOffer, negotiate};
use crate::api::http::page;
use crate::api::openapi::declared::PartPage;
use crate::ports::{ReleaseRecord, StoreError};
use crate::problem::{Kind, Problem};
use crate::report::{
    CountsPage, ManifestPart, ManifestTable, PartFormat, PartRows, PartView, Rendering, RowCursorError, counted,
};

/// Downloads a part
///
/// CSV, NDJSON, Parquet and Arrow are streamed; JSON comes in pages. The format is that of the ending of the path, as in `qi.parquet`,
/// or else of `format`, or else of the Accept header. In Parquet and Arrow, `bucket` is INT32 and integers are INT64.
/// Decimals are DECIMAL with the places that the part needs, or text above 38 digits. Dates are DATE, timestamps are microseconds in
/// UTC, text has a dictionary in each row group or batch, and a missing value is null. The files contain no metadata except the
/// schema.
///
/// A range of bytes and `HEAD` require a length: the service renders the part once and keeps the bytes for ten minutes after their last
/// use. So tools that read Parquet by ranges work on the address of a part. Several ranges, and ranges of a part that is too large to be
/// kept, are answered whole.
///
/// `view=linked` returns one table with all attributes of a bucketized table. It links the rows of a bucket at random: it shows one of
/// the equally likely matchings. The view is synthetic, as the header `Guardian-Linkage` says. It is a function of the parts alone and
/// reveals nothing else. Its combinations of attributes from different parts describe no person.
#[utoipa::path(get, path = "/v1/releases/{id}/tables/{table}/parts/{part}", tag = "releases",
    params(("id" = Uuid, Path), ("table" = String, Path), ("part" = String, Path), PartQuery,
        ("If-None-Match" = Option<String>, Header, description = "ETags of the client; an unchanged part is answered 304."),
        ("Range" = Option<String>, Header, description = "One range of bytes of a streamed format."),
        ("If-Range" = Option<String>, Header, description = "The ETag of the part that the range belongs to; another part is answered whole.")),
    responses(
        (status = 200, headers(("ETag" = String), ("Accept-Ranges" = String), ("Guardian-Linkage" = String)), content(
            (String = "text/csv"),
            (String = "application/x-ndjson"),
            (PartPage = "application/json"),
            (Vec<u8> = "application/vnd.apache.parquet"),
            (Vec<u8> = "application/vnd.apache.arrow.stream"))),
        (status = 206, headers(("ETag" = String), ("Content-Range" = String)), content(
            (String = "text/csv"),
            (String = "application/x-ndjson"),
            (Vec<u8> = "application/vnd.apache.parquet"),
            (Vec<u8> = "application/vnd.apache.arrow.stream"))),
        (status = 304, description = "the part has an ETag of If-None-Match")))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PartPath { release, table, part }: PartPath,
    QueryParameters(query): QueryParameters<PartQuery>,
    request: DownloadRequest,
) -> Result<Response, Problem> {
    let offer = negotiated(query.format.as_deref(), &request.headers);
    let (view, is_linked) = match query.view.as_deref() {
        None => (PartView::Rows, false),
        Some("counts") => (PartView::Counts, false),
        Some("spreadsheet") => (PartView::Spreadsheet, false),
        Some("linked") => (PartView::Rows, true),
        Some(_) => return Err(Problem::new(Kind::MalformedRequest, "view must be counts, linked or spreadsheet")),
    };
    let (release, manifest) = served::read(&app, &caller, release).await?;
    let table = manifest.tables.into_iter().find(|candidate| candidate.name == table).ok_or_else(no_such_part)?;
    let FoundPart { index, offer: by_name } = FoundPart::new(&table, &part).ok_or_else(no_such_part)?;
    let offer = match (by_name, &query.format) {
        (None, _) => offer?,
        (Some(offer), Some(other)) if other != offer.0 => {
            return Err(Problem::new(Kind::MalformedRequest, "format and the end of the path name two formats"));
        }
        (Some(offer), _) => offer,
    };
    if is_linked {
        let linked = LinkedViewRequest { release, table, offer, query: &query, request: &request };
        return linked::get(&app, &caller, linked).await;
    }
    let part = table.parts[index].clone();
    if view == PartView::Spreadsheet && offer.2 != Format::Streamed(PartFormat::Csv) {
        return Err(Problem::new(Kind::MalformedRequest, "view=spreadsheet belongs to format=csv"));
    }
    if view == PartView::Counts && counted(&part).is_none() {
        let detail = "the part already has a column named count, so that view=counts cannot add it";
        return Err(Problem::new(Kind::ReservedName, detail).with("attribute", "count"));
    }
    served::record_read(&app, &caller, &release).await?;
    let (suffix, media_type, format) = offer;
    let download = PartDownload { app: &app, release, part: &part, suffix, media_type, view };
    match format {
        Format::Json => download.page(&query, &request.headers).await,
        Format::Streamed(streamed) => {
            query.is_whole()?;
            download.stream(streamed, &request).await
        }
    }
}

/// A part that a path names, alone or with the ending of a format.
struct FoundPart {
    index: usize,
    offer: Option<MediaOffer<Format>>,
}

impl FoundPart {
    fn new(table: &ManifestTable, name: &str) -> Option<Self> {
        let place = |name: &str| table.parts.iter().position(|part| part.name == name);
        if let Some(index) = place(name) {
            return Some(Self { index, offer: None });
        }
        let (stem, ending) = name.rsplit_once('.')?;
        let offer = FORMATS.into_iter().find(|(format, ..)| *format == ending)?;
        Some(Self { index: place(stem)?, offer: Some(offer) })
    }
}

/// A part in a requested form.
struct PartDownload<'a> {
    app: &'a App,
    release: ReleaseRecord,
    part: &'a ManifestPart,
    /// Of the name of the file.
    suffix: &'static str,
    media_type: &'static str,
    view: PartView,
}

impl PartDownload<'_> {
    const fn view(&self) -> &'static str {
        match self.view {
            PartView::Rows => "",
            PartView::Counts => "-counts",
            PartView::Spreadsheet => "-spreadsheet",
        }
    }

    async fn page(&self, query: &PartQuery, headers: &HeaderMap) -> Result<Response, Problem> {
        let (suffix, view, cursor) = (self.suffix, self.view(), query.cursor.as_deref().unwrap_or("0"));
        let etag = etag(self.part, &format!("{suffix}{view}-{cursor}-{}", page::limit(query.limit)?));
        if etag_matches(headers, &etag) {
            return Ok(not_modified(etag));
        }
        let mut response = page_of(self.app, &self.release, self.part, self.view == PartView::Counts, query).await?;
        set_etag(&mut response, [(header::CONTENT_TYPE, self.media_type), (header::ETAG, &etag)]);
        Ok(response)
    }

    async fn stream(self, format: PartFormat, request: &DownloadRequest) -> Result<Response, Problem> {
        let view_name = self.view();
        let Self { app, release, part, suffix, media_type, view } = self;
        let (etag, media_type) = match format {
            PartFormat::Csv => (etag(part, &format!("csv{view_name}")), "text/csv; charset=utf-8; header=present"),
            PartFormat::Ndjson => (etag(part, &format!("ndjson{view_name}")), media_type),
            // another version may render the rows as other bytes
            PartFormat::Parquet | PartFormat::Arrow => {
                (etag(part, &format!("{suffix}{view_name}-{}", env!("CARGO_PKG_VERSION"))), media_type)
            }
        };
        if etag_matches(&request.headers, &etag) {
            return Ok(not_modified(etag));
        }
        let file = part.csv();
        let stem = file.strip_suffix(".csv").unwrap_or(&file);
        let attachment = format!("attachment; filename=\"{stem}{}.{suffix}\"", view_name.replace('-', "."));
        let source = || {
            async {
                let scales = part_stream::scales(app, &release, part, format).await?;
                let rendering =
                    Rendering::new(part, format, view, scales.as_ref()).map_err(|error| storage_problem(&error))?;
                let rendering = rendering.ok_or_else(no_such_part)?;
                Ok(part_stream::part(app.clone(), release.clone(), part, rendering).boxed())
            }
            .boxed()
        };
        let download =
            Download { app, release: &release, file: &file, etag: &etag, media_type, attachment: &attachment };
        download.answer(request, source).await
    }
}

/// The requested format.
fn negotiated(parameter: Option<&str>, headers: &HeaderMap) -> Result<MediaOffer<Format>, Problem> {
    let unacceptable =
        || Problem::new(Kind::NotAcceptable, "the formats of parts are csv, ndjson, json, parquet and arrow");
    negotiate(&FORMATS, parameter, headers).ok_or_else(unacceptable)
}

/// A JSON page. The cursor is a row number of the part.
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
        let csv = unpacked(&found)?;
        let chunk_end = found.first_row + u64::from(found.rows);
        let range = next - found.first_row..end.min(chunk_end) - found.first_row;
        let written = rows.json_rows(&csv, found.number == 0, range, next == first, &mut body);
        written.map_err(StoreError::corrupt)?;
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
        let csv = unpacked(&found)?;
        let looked = page.chunk(&csv, found.first_row).map_err(|error| storage_problem(&error))?;
        looked.map_err(|RowCursorError| cursor_problem())?;
    }
    let (csv, written, next) = page.finish();
    let rows = PartRows::new(&shown);
    let mut body = rows.json_head();
    let rendered = rows.json_rows(&csv, false, 0..written, true, &mut body);
    rendered.map_err(StoreError::corrupt)?;
    rows.json_tail(next.map(|next| next.to_string()).as_deref(), &mut body);
    Ok(body.into_response())
}
