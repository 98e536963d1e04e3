//! Uploading a table: the body flows through a channel to a blocking thread that parses and stores it.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::body::{Body, BodyDataStream};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use utoipa::IntoParams;
use uuid::Uuid;

use super::datasets::Dataset;
use super::extract::{Query, drain, idempotency_key};
use super::{App, DRAINED_BYTES};
use crate::jobs::{self, Begun, Claim, DatasetRecord, KeyRecord, UploadRequest, problem_of};
use crate::microdata::AttributeType;
use crate::microdata::formats::csv::CsvOptions;
use crate::microdata::formats::{Encoding, LimitExceeded};
use crate::problem::{Kind, Problem, ProblemDocument};

/// What is said of an upload.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct UploadQuery {
    /// A name for people.
    name: Option<String>,
    /// All that speaks of the same people; the dataset's own when not given.
    series: Option<String>,
    /// The columns that identify a record, separated by commas.
    record_key: Option<String>,
    /// Not supported yet: the unit of protection is a row.
    subject: Option<String>,
    /// Not supported yet.
    max_rows_per_subject: Option<u64>,
    /// Whether other series speak of the same people; needs `reason`.
    same_people: Option<bool>,
    /// Why `same_people` is stated, 1 to 500 characters.
    reason: Option<String>,
    /// One character, or `tab`; detected when not given.
    delimiter: Option<String>,
    /// A further text that, unquoted, stands for a missing value.
    null: Option<String>,
    /// Types of columns, such as `age:integer,zip:text`; inferred when not given.
    types: Option<String>,
}

/// Uploads a table
///
/// CSV (RFC 4180) with a header, in UTF-8; plain, gzip or zstd. An unquoted empty field is a missing value, a quoted one the
/// empty string.
///
/// With an `Idempotency-Key` a repeat of the same query and bytes is answered with the dataset of the first request, and
/// stores nothing; with others it is refused (`idempotency-conflict`). A key is remembered for a day, and not at all when its
/// upload failed. While the first upload still runs a repeat is answered 409 `conflict` with `Retry-After`.
#[utoipa::path(post, path = "/v1/datasets", tag = "datasets",
    params(UploadQuery, ("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible ASCII characters")),
    request_body(content = String, content_type = "text/csv"),
    responses(
        (status = 201, body = Dataset, headers(("Location" = String))),
        (status = "4XX", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn create(
    State(app): State<App>,
    RawQuery(raw_query): RawQuery,
    query: Result<Query<UploadQuery>, Problem>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Dataset>), Problem> {
    let admitted = match query.and_then(|Query(query)| announced(query, &headers)) {
        Ok(announced) => admit(&app, announced, raw_query.unwrap_or_default()).await,
        Err(problem) => Err(problem),
    };
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(problem) => {
            drain(body.into_data_stream()).await;
            return Err(problem);
        }
    };
    let dataset = match admitted {
        Admitted::Repeat(repeat) => repeat.compare(&app, body.into_data_stream()).await?,
        Admitted::First(first) => take_in(&app, first, body.into_data_stream()).await?,
    };
    let location = format!("/v1/datasets/{}", dataset.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(Dataset::of(dataset)?)))
}

/// An upload whose body may come.
enum Admitted {
    First(Box<First>),
    Repeat(Repeat),
}

/// An upload to be taken in.
struct First {
    request: UploadRequest,
    digest: Option<Vec<u8>>,
    query: String,
    claim: Option<Claim>,
    place: OwnedSemaphorePermit,
}

/// An upload that was taken in before, as its key says.
struct Repeat {
    first: KeyRecord,
    digest: Option<Vec<u8>>,
    query: String,
    _place: OwnedSemaphorePermit,
}

async fn admit(app: &App, announced: Announced, query: String) -> Result<Admitted, Problem> {
    let Announced { mut request, digest, key } = announced;
    request.limits = app.limits.clone();
    let place = app.uploads.take()?;
    let claim = match key {
        None => None,
        Some(key) => match app.desk.begin_upload(key).await? {
            Begun::First(claim) => Some(claim),
            Begun::Repeat(first) => return Ok(Admitted::Repeat(Repeat { first, digest, query, _place: place })),
        },
    };
    Ok(Admitted::First(Box::new(First { request, digest, query, claim, place })))
}

async fn take_in(app: &App, first: Box<First>, body: BodyDataStream) -> Result<DatasetRecord, Problem> {
    let First { request, digest, query, claim, place } = *first;
    let (sender, receiver) = mpsc::channel(4);
    let hashed = digest.is_some() || claim.is_some();
    let meter = Arc::new(Mutex::new(Meter { bytes: 0, hash: hashed.then(Sha256::new) }));
    let reader = BodyReader {
        receiver,
        current: Bytes::new(),
        ended: false,
        meter: Arc::clone(&meter),
        limit: app.max_upload_bytes,
    };
    let (desk, handle) = (app.desk.clone(), Handle::current());
    let taking = tokio::task::spawn_blocking(move || {
        // as long as the thread works, also when the caller has gone
        let _place = place;
        let received = || {
            let (bytes, hash) = meter.lock().unwrap_or_else(PoisonError::into_inner).judge(digest.as_deref())?;
            if let (Some(claim), Some(hash)) = (&claim, hash) {
                let content = desk.request_hash(&[query.as_bytes(), &hash]);
                handle.block_on(claim.note(&content))?;
            }
            Ok(bytes)
        };
        let id = claim.as_ref().map_or_else(Uuid::now_v7, Claim::resource);
        let taken = jobs::upload(&desk, &handle, id, request, reader, &received);
        if let (Err(_), Some(claim)) = (&taken, claim) {
            handle.block_on(claim.give_up());
        }
        taken
    });
    let (taken, ()) = tokio::join!(taking, pump(body, sender));
    taken.map_err(|_panicked| Problem::new(Kind::Internal, "the upload stopped unexpectedly"))?
}

impl Repeat {
    /// Reads the body to its end, holds it against the first one and gives that one's dataset.
    async fn compare(self, app: &App, mut body: BodyDataStream) -> Result<DatasetRecord, Problem> {
        let mut meter = Meter { bytes: 0, hash: Some(Sha256::new()) };
        while let Some(piece) = body.next().await {
            let broken = |_| Problem::new(Kind::MalformedRequest, "the body ended before it was complete");
            meter.add(&piece.map_err(broken)?);
            if meter.bytes > app.max_upload_bytes {
                drain(body).await;
                let detail = format!("an upload may have {} bytes", app.max_upload_bytes);
                let problem = Problem::new(Kind::TooLarge, detail);
                return Err(problem.with("limit", app.max_upload_bytes).with("found", meter.bytes));
            }
        }
        let (_, hash) = meter.judge(self.digest.as_deref())?;
        self.first.judge(&app.desk.request_hash(&[self.query.as_bytes(), &hash.unwrap_or_default()]))?;
        let dataset = app.desk.store.dataset(self.first.resource).await.map_err(|error| problem_of(&error))?;
        dataset.ok_or_else(|| Problem::new(Kind::NotFound, "there is no such dataset"))
    }
}

/// What flows to the parsing thread. The end is stated: a channel that merely closes is a cut upload.
enum Flow {
    Bytes(Bytes),
    Broken,
    End,
}

async fn pump(mut body: BodyDataStream, sender: mpsc::Sender<Flow>) {
    let mut drained = 0;
    while let Some(piece) = body.next().await {
        let Ok(piece) = piece else {
            // the receiver learns of it, or has given up already
            let _ = sender.send(Flow::Broken).await;
            return;
        };
        let len = piece.len();
        if sender.send(Flow::Bytes(piece)).await.is_err() {
            drained += len;
            if drained > DRAINED_BYTES {
                return;
            }
        }
    }
    let _ = sender.send(Flow::End).await;
}

/// What was received so far.
struct Meter {
    bytes: u64,
    hash: Option<Sha256>,
}

impl Meter {
    fn add(&mut self, bytes: &Bytes) {
        self.bytes += bytes.len() as u64;
        if let Some(hash) = &mut self.hash {
            hash.update(bytes);
        }
    }

    /// The bytes received and, where asked for, their hash, when they are those that the client meant to send.
    fn judge(&mut self, stated: Option<&[u8]>) -> Result<(u64, Option<[u8; 32]>), Problem> {
        let computed: Option<[u8; 32]> = self.hash.take().map(|hash| hash.finalize().into());
        match (&computed, stated) {
            (Some(computed), Some(stated)) if computed.as_slice() != stated => Err(Problem::new(
                Kind::DigestMismatch,
                "the SHA-256 of the body is not the one that Content-Digest states",
            )),
            _ => Ok((self.bytes, computed)),
        }
    }
}

/// The body on the parsing thread.
struct BodyReader {
    receiver: mpsc::Receiver<Flow>,
    current: Bytes,
    ended: bool,
    meter: Arc<Mutex<Meter>>,
    limit: u64,
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.ended {
            match self.receiver.blocking_recv() {
                Some(Flow::Bytes(bytes)) => {
                    let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
                    meter.add(&bytes);
                    if meter.bytes > self.limit {
                        let found = meter.bytes;
                        return Err(io::Error::other(LimitExceeded {
                            what: "bytes of the body",
                            limit: self.limit,
                            found,
                        }));
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

/// What query and headers say of the body.
struct Announced {
    request: UploadRequest,
    digest: Option<Vec<u8>>,
    key: Option<String>,
}

fn announced(query: UploadQuery, headers: &HeaderMap) -> Result<Announced, Problem> {
    must_be_csv(headers)?;
    let mut request = requested(query)?;
    request.encoding = encoding(headers)?;
    Ok(Announced { request, digest: stated_digest(headers)?, key: idempotency_key(headers)? })
}

fn must_be_csv(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(stated) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let essence = stated.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "text/csv" {
        Ok(())
    } else {
        Err(Problem::new(Kind::UnsupportedMediaType, "send Content-Type: text/csv, with the file as the body"))
    }
}

fn encoding(headers: &HeaderMap) -> Result<Option<Encoding>, Problem> {
    let Some(stated) = headers.get(header::CONTENT_ENCODING) else { return Ok(None) };
    match stated.to_str().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "identity" | "" => Ok(Some(Encoding::Identity)),
        "gzip" | "x-gzip" => Ok(Some(Encoding::Gzip)),
        "zstd" => Ok(Some(Encoding::Zstd)),
        _ => Err(Problem::new(Kind::UnsupportedMediaType, "Content-Encoding may be gzip, zstd or identity")),
    }
}

/// The SHA-256 that `Content-Digest` states (RFC 9530); other algorithms are passed over.
fn stated_digest(headers: &HeaderMap) -> Result<Option<Vec<u8>>, Problem> {
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

/// The query understood; every fault in one answer.
fn requested(query: UploadQuery) -> Result<UploadRequest, Problem> {
    if query.subject.is_some() || query.max_rows_per_subject.is_some() {
        let detail = "subjects are not supported yet: the unit of protection is a row";
        return Err(Problem::new(Kind::GuaranteeUnsupported, detail));
    }
    let mut faults = Vec::new();
    let mut text = |name: &str, value: Option<String>| {
        let fits = value.as_deref().is_none_or(|value| (1..=500).contains(&value.chars().count()));
        if !fits {
            faults.push(format!("{name} must have 1 to 500 characters"));
        }
        value
    };
    let (name, series, reason) = (text("name", query.name), text("series", query.series), text("reason", query.reason));
    let same_people = match (query.same_people, reason) {
        (None, None) => None,
        (Some(same), Some(reason)) => Some((same, reason)),
        _ => {
            faults.push("same_people and reason go together".to_owned());
            None
        }
    };
    let delimiter = query.delimiter.and_then(|text| match text.as_bytes() {
        b"tab" | b"\\t" => Some(b'\t'),
        &[byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n') => Some(byte),
        _ => {
            faults.push("delimiter must be one ASCII character other than a quote or a line end, or `tab`".to_owned());
            None
        }
    });
    let names = |list: String| list.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>();
    let record_key = query.record_key.map(names);
    if record_key.iter().flatten().any(String::is_empty) {
        faults.push("record_key must name columns, separated by commas".to_owned());
    }
    let types = query.types.as_deref().map(types).transpose().unwrap_or_else(|fault| {
        faults.push(fault);
        None
    });
    if !faults.is_empty() {
        return Err(Problem::new(Kind::MalformedRequest, faults.join("; ")));
    }
    let options = CsvOptions { delimiter, null: query.null, types: types.unwrap_or_default() };
    Ok(UploadRequest { name, series, record_key, same_people, options, ..UploadRequest::default() })
}

/// `age:integer,zip:text`
fn types(list: &str) -> Result<Vec<(String, AttributeType)>, String> {
    let one = |item: &str| {
        let (name, kind) = item.rsplit_once(':').ok_or("types must be like age:integer,zip:text")?;
        let kind = match kind.trim() {
            "integer" => AttributeType::Integer,
            "decimal" => AttributeType::Decimal,
            "text" => AttributeType::Text,
            _ => return Err("a type must be integer, decimal or text"),
        };
        Ok((name.trim().to_owned(), kind))
    };
    list.split(',').map(one).collect::<Result<_, _>>().map_err(str::to_owned)
}
