//! The linked view of a bucketized table. Reads parts and manifests, but no dataset.

use std::io;
use std::ops::Range;

use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt, stream};

use super::download::{Download, DownloadRequest};
use super::part_query::{Format, PartQuery, chunk_at, cursor_problem, etag, etag_matches, not_modified, set_etag};
use super::part_stream::{PartPosition, blocking, cut, storage_problem, unpacked};
use super::served;
use crate::api::http::app::App;
use crate::api::http::negotiation::MediaOffer;
use crate::api::http::page;
use crate::engine::{BucketJoiner, LinkedViewError, bucket_labels, linked_part};
use crate::identity::Caller;
use crate::inputs::decompress;
use crate::microdata::formats::DecimalScales;
use crate::ports::{ReleaseRecord, StoreError};
use crate::problem::{Kind, Problem};
use crate::report::{ManifestPart, ManifestTable, PartFormat, PartRows, PartView, Rendering};

/// Marks the answer as a random linkage of rows.
const LINKAGE: HeaderName = HeaderName::from_static("guardian-linkage");

const SYNTHETIC: &str = "synthetic";

/// A request for the linked view of a table.
pub(in crate::api) struct LinkedViewRequest<'a> {
    pub(in crate::api) release: ReleaseRecord,
    pub(in crate::api) table: ManifestTable,
    pub(in crate::api) offer: MediaOffer<Format>,
    pub(in crate::api) query: &'a PartQuery,
    pub(in crate::api) request: &'a DownloadRequest,
}

/// The whole view in a format, or a page of JSON.
pub(in crate::api) async fn get(
    app: &App,
    caller: &Caller,
    request: LinkedViewRequest<'_>,
) -> Result<Response, Problem> {
    let LinkedViewRequest { release, table, offer: (suffix, media_type, format), query, request } = request;
    let headers = &request.headers;
    let part = linked_part(&table).map_err(unlinkable_problem)?;
    served::record_read(app, caller, &release).await?;
    let streamed = match format {
        Format::Json => {
            let (first, limit) = (query.first()?, u64::from(page::limit(query.limit)?));
            let etag = etag(&part, &format!("{suffix}-{first}-{limit}"));
            if etag_matches(headers, &etag) {
                return Ok(synthetic(not_modified(etag)));
            }
            let mut response = page(app, &release, &table, &part, first..first.saturating_add(limit)).await?;
            set_etag(&mut response, [(header::CONTENT_TYPE, media_type), (header::ETAG, &etag)]);
            return Ok(synthetic(response));
        }
        Format::Streamed(streamed) => streamed,
    };
    query.is_whole()?;
    // another version may render the rows as other bytes
    let etag = etag(&part, &format!("{suffix}-{}", env!("CARGO_PKG_VERSION")));
    if etag_matches(headers, &etag) {
        return Ok(synthetic(not_modified(etag)));
    }
    let source = || {
        async {
            let scales = scales(app, &release, &table, &part, streamed).await?;
            let rendering = Rendering::new(&part, streamed, PartView::Rows, scales.as_ref())
                .map_err(|error| storage_problem(&error))?;
            let rendering = rendering.ok_or_else(|| Problem::new(Kind::Internal, "the view cannot be rendered"))?;
            let view = LinkedViewStream::new(app, &release, &table, 1).map_err(|error| storage_problem(&error))?;
            Ok(rendered(view, rendering).boxed())
        }
        .boxed()
    };
    let attachment = format!("attachment; filename=\"{}.linked.{suffix}\"", table.name);
    let media_type = if streamed == PartFormat::Csv { "text/csv; charset=utf-8; header=present" } else { media_type };
    let (file, attachment) = (attachment.as_str(), attachment.as_str());
    let download = Download { app, release: &release, file, etag: &etag, media_type, attachment };
    Ok(synthetic(download.answer(request, source).await?))
}

fn synthetic(mut response: Response) -> Response {
    set_etag(&mut response, [(LINKAGE, SYNTHETIC)]);
    response
}

fn unlinkable_problem(why: LinkedViewError) -> Problem {
    let detail = match why {
        LinkedViewError::Whole => "the table is not bucketized: its part already contains whole tuples",
        LinkedViewError::NotTuples => "the rows of a part are not tuples of the original and cannot be linked",
        LinkedViewError::Single => "the table has one attribute: its view has nothing to link",
        LinkedViewError::Circle => {
            "the parts of the table share attributes in a cycle and cannot be linked one after another"
        }
    };
    Problem::new(Kind::GuaranteeUnsupported, detail)
}

/// The state of a streamed view.
struct LinkedViewStream {
    app: App,
    release: ReleaseRecord,
    places: Vec<PartPosition>,
    linker: BucketJoiner,
    done: bool,
}

impl LinkedViewStream {
    fn new(app: &App, release: &ReleaseRecord, table: &ManifestTable, from: u32) -> io::Result<Self> {
        Ok(Self {
            app: app.clone(),
            release: release.clone(),
            places: table.parts.iter().map(PartPosition::begin).collect(),
            linker: BucketJoiner::new(table, from)?,
            done: false,
        })
    }

    /// The next rows of the view as CSV, possibly empty; `None` after the last row.
    async fn next(mut self) -> Result<(Self, Option<Vec<u8>>), StoreError> {
        let Some(part) = self.linker.wanted() else {
            if std::mem::replace(&mut self.done, true) {
                return Ok((self, None));
            }
            return blocking(move || {
                let rows = self.linker.take()?;
                Ok((self, Some(rows)))
            })
            .await;
        };
        let place = &mut self.places[part];
        let ReleaseRecord { tenant, job, attempt, .. } = &self.release;
        let found = self.app.service.store.part_chunk(tenant, *job, *attempt, &place.file, place.number).await?;
        place.step(found.as_ref())?;
        blocking(move || {
            match found {
                Some(chunk) => self.linker.chunk(part, &decompress(&chunk.payload)?, chunk.number == 0)?,
                None => self.linker.ended(part),
            }
            let rows = self.linker.take()?;
            Ok((self, Some(rows)))
        })
        .await
    }
}

/// Renders a view in a format.
fn rendered(view: LinkedViewStream, rendering: Rendering) -> impl Stream<Item = Result<Bytes, StoreError>> + use<> {
    stream::try_unfold((view, Some(rendering)), |(mut view, rendering)| async move {
        let Some(mut rendering) = rendering else { return Ok(None) };
        loop {
            let rows;
            (view, rows) = view.next().await.map_err(cut)?;
            let last = rows.is_none();
            let bytes;
            (rendering, bytes) = blocking(move || {
                let bytes = match rows {
                    Some(rows) if rows.is_empty() => rows,
                    Some(rows) => rendering.chunk(rows)?,
                    None => rendering.finish()?,
                };
                Ok((rendering, bytes))
            })
            .await
            .map_err(cut)?;
            if last {
                return Ok(Some((bytes.into(), (view, None))));
            }
            if !bytes.is_empty() {
                return Ok(Some((bytes.into(), (view, Some(rendering)))));
            }
        }
    })
}

/// Scans the whole view for its decimal scales, if the format needs them.
async fn scales(
    app: &App,
    release: &ReleaseRecord,
    table: &ManifestTable,
    part: &ManifestPart,
    format: PartFormat,
) -> Result<Option<DecimalScales>, Problem> {
    let Some(mut scales) = crate::report::scales(part, format) else { return Ok(None) };
    let mut view = LinkedViewStream::new(app, release, table, 1).map_err(|error| storage_problem(&error))?;
    let mut first = true;
    loop {
        let rows;
        (view, rows) = view.next().await?;
        let Some(rows) = rows else { return Ok(Some(scales)) };
        if rows.is_empty() {
            continue;
        }
        let header = std::mem::take(&mut first);
        let looked = blocking(move || {
            scales.look(&rows, header)?;
            Ok(scales)
        });
        scales = looked.await?;
    }
}

/// A page of the view: these rows, counted from 0.
async fn page(
    app: &App,
    release: &ReleaseRecord,
    table: &ManifestTable,
    part: &ManifestPart,
    range: Range<u64>,
) -> Result<Response, Problem> {
    let first = range.start;
    if first > 0 && first >= part.rows {
        return Err(cursor_problem());
    }
    let (begin, from) = begins(app, release, table, first).await?;
    let mut view = LinkedViewStream::new(app, release, table, from).map_err(|error| storage_problem(&error))?;
    // rows before the bucket are not fetched
    for (place, of) in view.places.iter_mut().zip(&table.parts) {
        place.skip_to(&chunk_at(app, release, of, begin).await?);
    }
    let rows = PartRows::new(part);
    let end = part.rows.min(range.end);
    let (mut body, mut at, mut header) = (rows.json_head(), begin, from <= 1);
    while at < end {
        let csv;
        (view, csv) = view.next().await?;
        let Some(csv) = csv else {
            return Err(StoreError::corrupt("a part has fewer rows than its manifest").into());
        };
        if csv.is_empty() {
            continue;
        }
        let here = rows.count(&csv, header).map_err(StoreError::corrupt)?;
        let range = first.max(at) - at..end.min(at + here).max(at) - at;
        if !range.is_empty() {
            let written = rows.json_rows(&csv, header, range, at <= first, &mut body);
            written.map_err(StoreError::corrupt)?;
        }
        header = false;
        at += here;
    }
    let cursor = (end < part.rows).then(|| end.to_string());
    rows.json_tail(cursor.as_deref(), &mut body);
    Ok(body.into_response())
}

/// The first row and the label of the bucket that contains row `first`. All parts are sorted by label.
async fn begins(app: &App, release: &ReleaseRecord, table: &ManifestTable, first: u64) -> Result<(u64, u32), Problem> {
    let part = table.parts.first().ok_or_else(cursor_problem)?;
    let corrupt = |what: &str| Problem::from(StoreError::corrupt(what.to_owned()));
    let (mut row, mut label) = (first, None);
    loop {
        let chunk = chunk_at(app, release, part, row).await?;
        let csv = unpacked(&chunk)?;
        let labels = bucket_labels(&csv, chunk.number == 0).map_err(|error| storage_problem(&error))?;
        let at = usize::try_from(row - chunk.first_row).unwrap_or(usize::MAX);
        let here = *labels.get(at).ok_or_else(|| corrupt("a chunk of a part has too few rows"))?;
        let wanted = *label.get_or_insert(here);
        if here != wanted {
            return Ok((row + 1, wanted));
        }
        let begin = labels[..=at].iter().rposition(|of| *of != wanted).map_or(0, |before| before + 1) as u64;
        match (chunk.first_row + begin).checked_sub(1) {
            // the bucket may begin in an earlier chunk
            Some(before) if begin == 0 => row = before,
            _ => return Ok((chunk.first_row + begin, wanted)),
        }
    }
}
