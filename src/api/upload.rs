//! Uploading a table: the body flows through a channel to a blocking thread that parses and stores it.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::body::{Body, BodyDataStream};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use utoipa::IntoParams;

use super::access::Who;
use super::datasets::Dataset;
use super::extract::{Query, drain};
use super::{App, DRAINED_BYTES};
use crate::jobs::{self, UploadRequest};
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
#[utoipa::path(post, path = "/v1/datasets", tag = "datasets", params(UploadQuery),
    request_body(content = String, content_type = "text/csv"),
    responses(
        (status = 201, body = Dataset, headers(("Location" = String))),
        (status = "4XX", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn create(
    State(app): State<App>,
    Who(caller): Who,
    query: Result<Query<UploadQuery>, Problem>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Dataset>), Problem> {
    let (mut request, digest) = match query.and_then(|Query(query)| announced(query, &headers)) {
        Ok(announced) => announced,
        Err(problem) => {
            drain(body.into_data_stream()).await;
            return Err(problem);
        }
    };
    request.limits = app.limits.clone();

    let (sender, receiver) = mpsc::channel(4);
    let meter = Arc::new(Mutex::new(Meter { bytes: 0, hash: digest.is_some().then(Sha256::new) }));
    let reader = BodyReader {
        receiver,
        current: Bytes::new(),
        ended: false,
        meter: Arc::clone(&meter),
        limit: app.max_upload_bytes,
    };
    let (desk, handle) = (app.desk.clone(), Handle::current());
    let taking = tokio::task::spawn_blocking(move || {
        let received = || meter.lock().unwrap_or_else(PoisonError::into_inner).judge(digest.as_deref());
        jobs::upload(&desk, &caller, &handle, request, reader, &received)
    });
    let (taken, ()) = tokio::join!(taking, pump(body.into_data_stream(), sender));
    let dataset = taken.map_err(|_panicked| Problem::new(Kind::Internal, "the upload stopped unexpectedly"))??;
    let location = format!("/v1/datasets/{}", dataset.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(Dataset::of(dataset)?)))
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
    /// The bytes received, when they are those that the client meant to send.
    fn judge(&mut self, stated: Option<&[u8]>) -> Result<u64, Problem> {
        match (self.hash.take().map(Digest::finalize), stated) {
            (Some(computed), Some(stated)) if computed.as_slice() != stated => Err(Problem::new(
                Kind::DigestMismatch,
                "the SHA-256 of the body is not the one that Content-Digest states",
            )),
            _ => Ok(self.bytes),
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

/// What query and headers say of the body.
fn announced(query: UploadQuery, headers: &HeaderMap) -> Result<(UploadRequest, Option<Vec<u8>>), Problem> {
    must_be_csv(headers)?;
    let mut request = requested(query)?;
    request.encoding = encoding(headers)?;
    Ok((request, stated_digest(headers)?))
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
