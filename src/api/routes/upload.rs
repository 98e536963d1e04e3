//! Uploads: the body goes through a channel to a blocking thread that parses and stores it.

use std::collections::HashSet;
use std::io;

use axum::Json;
use axum::extract::{DefaultBodyLimit, RawQuery, Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tracing::Span;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::datasets::Dataset;
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::body::{
    BodyEnd, BodyReader, BodySender, ReadDeadline, SharedByteCounter, body_channel, declared_digest, drain, encoding,
    media_type_essence,
};
use crate::api::http::extract::{QueryParameters, idempotency_key};
use crate::api::http::form::Form;
use crate::api::http::limits::RequestPermit;
use crate::app::{
    AppService, IdempotencyClaim, IdempotencyOutcome, KeptContributions, Upload, UploadRequest, identity_warning,
};
use crate::identity::Caller;
use crate::meter;
use crate::meter::UploadOutcome;
use crate::microdata::formats::csv::CsvOptions;
use crate::microdata::formats::{Encoding, IngestError, InputFormat};
use crate::microdata::is_shown;
use crate::ports::{DatasetRecord, IdempotencyRecord};
use crate::problem::{Kind, Problem};
use crate::publication::ContributionChoice;

/// The largest accepted `max_rows_per_subject` and `max_rows_per_person`.
const MAX_ROWS_PER_SUBJECT_LIMIT: u64 = 1_000_000;

/// The most characters of `person`.
const MAX_PERSON_CHARS: usize = 2_000;

/// The query of an upload.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct UploadQuery {
    /// A display name.
    name: Option<String>,
    /// The population whose persons the rows are about; by default the dataset is undeclared.
    population: Option<String>,
    /// The columns of this table that identify persons of the population: `pid`, or with the key system `patient:pid`, with `+`
    /// between columns of one key (`name:first+last`) and `,` between key systems; `none` where no column does. By default the
    /// columns of the population.
    person: Option<String>,
    /// The maximum number of rows of a person; by default that of the population. A table with more rows of a person is refused.
    max_rows_per_person: Option<u64>,
    /// The former name of `population`.
    series: Option<String>,
    /// The columns that identify a record, separated by commas.
    record_key: Option<String>,
    /// The column that identifies data subjects with several rows; guarantees then hold for persons.
    subject: Option<String>,
    /// The maximum number of rows of a data subject; requires `subject`. A table with more rows of a subject is refused.
    max_rows_per_subject: Option<u64>,
    /// Keeps at most this number of rows of each person, who is identified by `subject` or by the person key of the population. The
    /// others are left out before anything else, and never stored.
    keep: Option<u64>,
    /// Keeps the rows with the smallest values of this column, in place of a secret draw. It must say nothing of a sensitive column.
    keep_order: Option<String>,
    /// Refused.
    #[param(ignore)]
    same_people: Option<String>,
    /// Refused with `same_people`.
    #[param(ignore)]
    reason: Option<String>,
    /// The CSV delimiter: one character, or `tab`; by default detected.
    delimiter: Option<String>,
    /// An unquoted CSV text for a missing value, in addition to the empty field.
    null: Option<String>,
    /// Types of columns, such as `age:integer,zip:text`; by default those of the file, or inferred.
    types: Option<String>,
}

/// A form with the file of a table.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes a form that is read as a stream")]
struct UploadForm {
    /// The table. Its content type, or otherwise its file name extension, determines the format.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Uploads a table
///
/// Formats: CSV (RFC 4180) with a header, NDJSON with one flat object per line, Parquet, an Arrow IPC stream, or an Arrow file
/// (Feather, version 2); plain, gzip or zstd. Record batches may be compressed (LZ4, ZSTD). Also a JSON array of flat objects, as
/// `application/json`, which is not listed below because generated clients cannot choose between an array and other bodies.
/// The table is the body, or the part `file` of a form. In CSV, an unquoted empty field is a missing value and a quoted one the empty
/// string. Text is UTF-8. Types of columns come back as they were.
///
/// With an `Idempotency-Key`, a repeated request with the same query, format and bytes returns the dataset of the first request and
/// stores nothing. Another request is `idempotency-conflict`. The service keeps a key for a day, unless the upload failed. A repeat
/// during the first upload is answered 409 `conflict` with `Retry-After`.
#[utoipa::path(post, path = "/v1/datasets", tag = "datasets",
    params(UploadQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request repeatable: 1 to 255 visible ASCII characters."),
        ("Content-Encoding" = Option<String>, Header, description = "The compression of the body; in a form a header of the part."),
        ("Content-Digest" = Option<String>, Header, description = "The SHA-256 of the sent body (RFC 9530), which the service checks; in a form a header of the part.")),
    request_body(content(
        (String = "text/csv"),
        (String = "application/x-ndjson"),
        (Vec<u8> = "application/vnd.apache.parquet"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
        (Vec<u8> = "application/vnd.apache.arrow.file"),
        (UploadForm = "multipart/form-data"))),
    responses(
        (status = 201, body = Dataset, headers(("Location" = String)))))]
pub(in crate::api) async fn create(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    RawQuery(raw_query): RawQuery,
    query: Result<QueryParameters<UploadQuery>, Problem>,
    mut request: Request,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Dataset>), Problem> {
    let admitted = match query.and_then(|QueryParameters(query)| announced(query, request.headers())) {
        Ok(announced) => admit(&app, caller, announced, raw_query.unwrap_or_default()).await,
        Err(problem) => Err(problem),
    };
    let (admitted, packed) = match admitted {
        Ok(admitted) => admitted,
        Err(problem) => {
            drain(request.into_body().into_data_stream()).await;
            return Err(problem);
        }
    };
    let mut pace = ReadDeadline::new(&app.bounds);
    let dataset = match packed {
        None => {
            // the reader counts the bytes of the upload
            DefaultBodyLimit::disable().apply(&mut request);
            let mut waiting = Some(admitted);
            let dataset = match Form::read(request, NOT_A_FORM_DETAIL).await {
                Ok(form) => from_form(&app, &mut waiting, form, pace).await,
                Err(problem) => Err(problem),
            };
            give_up(waiting).await;
            dataset?
        }
        Some(packed) => {
            let body = request.into_body().into_data_stream();
            let task = UploadTask::begin(&app, admitted, packed);
            let fed = task.sender.feed(body, &mut pace).await;
            task.end(fed).await?
        }
    };
    created(&app, dataset).await
}

/// The answer with a new dataset.
pub(super) async fn created(
    app: &App,
    dataset: DatasetRecord,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Dataset>), Problem> {
    let location = format!("/v1/datasets/{}", dataset.id);
    let warnings = identity_warning(&dataset).into_iter().collect();
    let dataset = Dataset::warned(&app.service, dataset, warnings).await?;
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(dataset)))
}

/// Releases the idempotency key of an upload that was not begun.
pub(super) async fn give_up(waiting: Option<AcceptedUpload>) {
    if let Some(AcceptedUpload { begun: Some(IdempotencyOutcome::First(claim)), .. }) = waiting {
        claim.give_up().await;
    }
}

/// An admitted upload before its body.
pub(super) struct AcceptedUpload {
    pub(super) caller: Caller,
    pub(super) request: UploadRequest,
    pub(super) query: String,
    pub(super) begun: Option<IdempotencyOutcome>,
    /// Held while a thread works on the upload, even if the caller has gone.
    pub(super) permit: RequestPermit,
}

pub(super) async fn admit(
    app: &App,
    caller: Caller,
    announced: UploadHeaders,
    query: String,
) -> Result<(AcceptedUpload, Option<UploadEncoding>), Problem> {
    let UploadHeaders { mut request, packed, key } = announced;
    request.limits = app.limits.clone();
    request.spool = app.spool.to_path_buf();
    let permit = app.uploads.acquire(&caller.tenant).await?;
    let begun = match key {
        None => None,
        Some(key) => Some(app.service.begin_upload(&caller, key).await?),
    };
    Ok((AcceptedUpload { caller, request, query, begun, permit }, packed))
}

const NOT_A_FORM_DETAIL: &str = "the body is not the form that Content-Type declares";

/// Reads query and headers; the encoding of a form's file is inside the form.
fn announced(query: UploadQuery, headers: &HeaderMap) -> Result<UploadHeaders, Problem> {
    let key = idempotency_key(headers)?;
    let essence = media_type_essence(headers.get(header::CONTENT_TYPE));
    if essence.as_deref() != Some("multipart/form-data") {
        let format = essence.map_or(Some(InputFormat::Csv), |essence| InputFormat::of_media_type(&essence));
        let format = format.ok_or_else(unsupported)?;
        let upload = requested(query)?;
        csv_alone(&upload, format)?;
        let packed = UploadEncoding { format, encoding: encoding(headers)?, digest: declared_digest(headers)? };
        return Ok(UploadHeaders { request: upload, packed: Some(packed), key });
    }
    let upload = requested(query)?;
    if encoding(headers)?.is_some_and(|encoding| encoding != Encoding::Identity) {
        let detail = "a form itself must not be compressed; declare Content-Encoding in the headers of the file part";
        return Err(Problem::new(Kind::UnsupportedMediaType, detail));
    }
    if headers.contains_key("content-digest") {
        let detail = "a form has no digest of its own; declare Content-Digest in the headers of the file part";
        return Err(Problem::new(Kind::MalformedRequest, detail));
    }
    Ok(UploadHeaders { request: upload, packed: None, key })
}

/// The query and headers of an upload.
pub(super) struct UploadHeaders {
    pub(super) request: UploadRequest,
    /// `None` where it is known later: of forms and of references.
    pub(super) packed: Option<UploadEncoding>,
    pub(super) key: Option<String>,
}

/// Format, compression and digest of an uploaded table.
pub(super) struct UploadEncoding {
    pub(super) format: InputFormat,
    pub(super) encoding: Option<Encoding>,
    pub(super) digest: Option<Vec<u8>>,
}

/// A running upload: the sender of the body and the thread that stores it.
pub(super) struct UploadTask {
    pub(super) sender: BodySender,
    thread: JoinHandle<Result<DatasetRecord, Problem>>,
}

impl UploadTask {
    pub(super) fn begin(app: &App, admitted: AcceptedUpload, packed: UploadEncoding) -> Self {
        let AcceptedUpload { caller, mut request, query, begun, permit } = admitted;
        request.format = packed.format;
        request.encoding = packed.encoding;
        let hashed = packed.digest.is_some() || begun.is_some();
        let (sender, meter, reader) = body_channel(app.max_upload_bytes, hashed);
        let (service, handle) = (app.service.clone(), Handle::current());
        let body = UploadSource { service, caller, handle, query, format: packed.format, digest: packed.digest, meter };
        let (span, format) = (Span::current(), packed.format);
        let thread = tokio::task::spawn_blocking(move || {
            let (_inside, _permit) = (span.entered(), permit);
            let (dataset, success) = match begun {
                None => (body.store(request, reader, None), UploadOutcome::Stored),
                Some(IdempotencyOutcome::First(claim)) => {
                    (body.store(request, reader, Some(claim)), UploadOutcome::Stored)
                }
                Some(IdempotencyOutcome::Repeat(first)) => (body.compare(&first, reader), UploadOutcome::Repeated),
            };
            let outcome = match &dataset {
                Ok(_) => success,
                Err(problem) if problem.kind.status() < 500 => UploadOutcome::Refused,
                Err(_) => UploadOutcome::Failed,
            };
            meter::uploaded(format.media_type(), outcome);
            dataset
        });
        Self { sender, thread }
    }

    pub(super) async fn end(self, fed: BodyEnd) -> Result<DatasetRecord, Problem> {
        self.sender.end(matches!(fed, BodyEnd::Whole)).await;
        let dataset =
            self.thread.await.map_err(|_panicked| Problem::new(Kind::Internal, "the upload stopped unexpectedly"))?;
        match (fed, dataset) {
            // the thread saw only a truncated body
            (BodyEnd::Late(problem), Err(_)) => Err(problem),
            (_, dataset) => dataset,
        }
    }
}

/// The source of an upload on the blocking thread.
struct UploadSource {
    service: AppService,
    caller: Caller,
    handle: Handle,
    query: String,
    format: InputFormat,
    digest: Option<Vec<u8>>,
    meter: SharedByteCounter,
}

impl UploadSource {
    /// The number of received bytes, after a check of the digest, and the hash of the request, if needed.
    fn finish(&self) -> Result<(u64, Option<[u8; 32]>), Problem> {
        let (bytes, hash) = self.meter.finish(self.digest.as_deref())?;
        let pieces = |hash: [u8; 32]| {
            let pieces = [self.query.as_bytes(), self.format.media_type().as_bytes(), &hash];
            self.service.request_hash(&self.caller, &pieces)
        };
        Ok((bytes, hash.map(pieces)))
    }

    /// Stores the table; releases the idempotency key after a failure.
    fn store(
        &self,
        request: UploadRequest,
        reader: BodyReader,
        claim: Option<IdempotencyClaim>,
    ) -> Result<DatasetRecord, Problem> {
        let received = || {
            let (bytes, content) = self.finish()?;
            if let (Some(claim), Some(content)) = (&claim, content) {
                self.handle.block_on(claim.record_content(&content))?;
            }
            Ok(bytes)
        };
        let id = claim.as_ref().map_or_else(Uuid::now_v7, IdempotencyClaim::resource);
        let upload = Upload { service: &self.service, caller: &self.caller, handle: &self.handle, id };
        let dataset = upload.store(request, reader, &received);
        if let (Err(_), Some(claim)) = (&dataset, claim) {
            self.handle.block_on(claim.give_up());
        }
        dataset
    }

    /// Reads a repeated body, compares it with the first one and returns the first dataset.
    fn compare(&self, first: &IdempotencyRecord, mut reader: BodyReader) -> Result<DatasetRecord, Problem> {
        io::copy(&mut reader, &mut io::sink()).map_err(|error| Problem::from(IngestError::from(error)))?;
        let (_, content) = self.finish()?;
        first.check_content(&content.unwrap_or_default())?;
        let dataset = self.handle.block_on(self.service.store.dataset(&self.caller.tenant, first.resource));
        let dataset = dataset?;
        dataset.ok_or_else(|| Problem::new(Kind::NotFound, "the dataset does not exist"))
    }
}

/// Stores the only file of a form.
async fn from_form(
    app: &App,
    waiting: &mut Option<AcceptedUpload>,
    mut form: Form,
    mut pace: ReadDeadline,
) -> Result<DatasetRecord, Problem> {
    let one_file = || Problem::new(Kind::MalformedRequest, "the form must have exactly one part, named `file`");
    let file = pace.wait(form.next_part()).await??.ok_or_else(one_file)?;
    if file.name() != Some("file") {
        return Err(one_file());
    }
    let declared =
        media_type_essence(file.headers().get(header::CONTENT_TYPE)).and_then(|it| InputFormat::of_media_type(&it));
    let (name, packing) = match file.file_name().unwrap_or_default() {
        name if name.ends_with(".gz") => (&name[..name.len() - 3], Some(Encoding::Gzip)),
        name if name.ends_with(".zst") => (&name[..name.len() - 4], Some(Encoding::Zstd)),
        name => (name, None),
    };
    let packed = UploadEncoding {
        format: declared.or_else(|| InputFormat::of_file_name(name)).ok_or_else(unsupported)?,
        encoding: encoding(file.headers())?.or(packing),
        digest: declared_digest(file.headers())?,
    };
    let admitted = waiting.take_if(|admitted| csv_alone(&admitted.request, packed.format).is_ok());
    let admitted = admitted.ok_or_else(misplaced)?;
    let task = UploadTask::begin(app, admitted, packed);
    let mut fed = task.sender.feed(file, &mut pace).await;
    // another part makes the form invalid
    let mut is_only_part = true;
    if matches!(fed, BodyEnd::Whole) {
        match pace.wait(form.next_part()).await {
            Ok(next) => is_only_part = matches!(next, Ok(None)),
            Err(problem) => fed = BodyEnd::Late(problem),
        }
    }
    match task.end(if is_only_part { fed } else { BodyEnd::Broken }).await {
        Err(_) if !is_only_part => Err(one_file()),
        dataset => dataset,
    }
}

fn unsupported() -> Problem {
    let types = InputFormat::accepted_media_types().join(", ");
    let detail = format!("send {types}, with the file as the body or as the part `file` of multipart/form-data");
    Problem::new(Kind::UnsupportedMediaType, detail)
}

/// Rejects CSV options for other formats.
pub(super) fn csv_alone(request: &UploadRequest, format: InputFormat) -> Result<(), Problem> {
    if request.options.are_of_csv() && format != InputFormat::Csv {
        return Err(misplaced());
    }
    Ok(())
}

fn misplaced() -> Problem {
    Problem::new(Kind::MalformedRequest, "delimiter and null belong to text/csv")
}

/// Parses the query; one problem contains all faults.
pub(super) fn requested(query: UploadQuery) -> Result<UploadRequest, Problem> {
    let mut faults = Vec::new();
    note_subject(&query, &mut faults);
    note_sizes(&query, &mut faults);
    if query.same_people.is_some() || query.reason.is_some() {
        faults.push("same_people is no parameter any more: state it with PUT /v1/populations".to_owned());
    }
    let record_key: Option<Vec<String>> =
        query.record_key.map(|list| list.split(',').map(|name| name.trim().to_owned()).collect());
    if record_key.iter().flatten().any(String::is_empty) {
        faults.push("record_key must be a list of columns, separated by commas".to_owned());
    }
    if record_key.as_ref().is_some_and(|names| has_duplicates(names.iter())) {
        faults.push("record_key must name each column once".to_owned());
    }
    let (delimiter, types) = (query.delimiter.as_deref(), query.types.as_deref());
    let options = CsvOptions::from_texts(delimiter, query.null, types);
    let options = options.unwrap_or_else(|wrong| {
        faults.extend(wrong.into_iter().map(str::to_owned));
        CsvOptions::default()
    });
    if !faults.is_empty() {
        return Err(Problem::new(Kind::MalformedRequest, faults.join("; ")));
    }
    let UploadQuery { name, series, population, person, max_rows_per_person, .. } = query;
    let UploadQuery { subject, max_rows_per_subject, keep, keep_order, .. } = query;
    let choice = keep_order.map_or(ContributionChoice::Random, ContributionChoice::First);
    Ok(UploadRequest {
        name,
        population,
        person,
        max_rows_per_person,
        series,
        record_key,
        subject,
        max_rows_per_subject,
        keep: keep.map(|rows| KeptContributions { rows, choice }),
        options,
        ..UploadRequest::default()
    })
}

/// Notes what is said of the rows of a person, where it does not go together.
fn note_subject(query: &UploadQuery, faults: &mut Vec<String>) {
    let UploadQuery { subject, max_rows_per_subject, max_rows_per_person, keep, .. } = query;
    match keep {
        None if subject.is_some() != max_rows_per_subject.is_some() => {
            faults.push("subject and max_rows_per_subject go together".to_owned());
        }
        None if query.keep_order.is_some() => faults.push("keep_order needs keep".to_owned()),
        Some(kept) if [max_rows_per_subject, max_rows_per_person].into_iter().flatten().any(|rows| rows != kept) => {
            let detail = "keep is the maximum number of rows of a person: leave out max_rows_per_subject and max_rows_per_person";
            faults.push(detail.to_owned());
        }
        Some(_) | None => {}
    }
}

/// Notes the numbers and texts that are too small or too large.
fn note_sizes(query: &UploadQuery, faults: &mut Vec<String>) {
    for (name, rows) in [
        ("max_rows_per_subject", query.max_rows_per_subject),
        ("max_rows_per_person", query.max_rows_per_person),
        ("keep", query.keep),
    ] {
        if rows.is_some_and(|rows| !(1..=MAX_ROWS_PER_SUBJECT_LIMIT).contains(&rows)) {
            faults.push(format!("{name} must be 1 to {MAX_ROWS_PER_SUBJECT_LIMIT}"));
        }
    }
    if query.person.as_ref().is_some_and(|person| !(1..=MAX_PERSON_CHARS).contains(&person.chars().count())) {
        faults.push(format!("person must have 1 to {MAX_PERSON_CHARS} characters"));
    }
    let texts = [("name", &query.name), ("series", &query.series), ("population", &query.population)];
    for (name, value) in texts {
        if value.as_ref().is_some_and(|value| !(1..=500).contains(&value.chars().count())) {
            faults.push(format!("{name} must have 1 to 500 characters"));
        }
        if value.as_ref().is_some_and(|value| !is_shown(value)) {
            faults.push(format!("{name} has a character that is not shown"));
        }
    }
}

fn has_duplicates<'a>(mut names: impl Iterator<Item = &'a String>) -> bool {
    let mut known = HashSet::new();
    names.any(|name| !known.insert(name))
}
