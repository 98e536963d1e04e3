//! Verifications: tables that anybody published, or a release, held against rules. Reaches what the request holds, parts and
//! manifests, and no dataset. Nothing is kept.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::multipart::Field;
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request, State};
use axum::http::header;
use serde_json::Value;
use tracing::Span;
use utoipa::ToSchema;
use uuid::Uuid;

use super::stored_parts::{FileMemory, engine_problem, open_stored_parts, run_blocking};
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::body::{
    BodyEnd, DRAIN_TIMEOUT, MAX_DRAINED_BYTES, ReadDeadline, body_channel, declared_digest, encoding,
    media_type_essence,
};
use crate::api::http::extract::JsonDocument;
use crate::engine::{ReadFile, Verification, VerificationMaterial};
use crate::identity::{Caller, Scope};
use crate::inputs::MemoryBudget;
use crate::microdata::formats;
use crate::microdata::formats::compression::decoder;
use crate::microdata::formats::csv::CsvOptions;
use crate::microdata::formats::{Encoding, IngestError, InputFormat};
use crate::problem::{Fault, Kind, Problem};
use crate::spec::{REQUEST, SubmittedFile, VerificationSubject, parse_json};
use crate::{engine, spec};

/// What is to be verified against which rules. It is read by hand, so that one answer names every fault; its schema is written by
/// hand too.
#[derive(ToSchema)]
#[expect(dead_code, reason = "gives the schema its name")]
pub(in crate::api) struct VerificationRequest {
    rules: Vec<Value>,
}

/// A form with the request and its files.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes a form that is read as a stream")]
struct VerificationForm {
    request: VerificationRequest,
}

/// Whether tables keep rules: true or false, what they achieve, and what breaks them
///
/// Tables that anybody published come as a form: first the part `request`, a JSON document, then one part for each `file` that it
/// names, in the formats of uploads and under their limits. A release of this service is named by its id. The answer is 200 also
/// when the rules do not hold. Nothing is kept of what was sent.
///
/// A table is one part (`bucketed: false`), whose classes are the equal values of what a rule takes for known, or several parts that
/// a column `bucket` ties; parts may share attributes, and their rows then go together where they agree. With several tables, a rule
/// holds when nothing known reaches what is sensitive, or when one table stands between and each of its classes keeps the guarantee
/// (Guardian Normal Form); tables are taken to have been shuffled independently. Rows need not be in any order, and labels may be
/// any text. A missing value is a value.
///
/// What is found is a statement about what a reader can conclude from the tables with the rules' knowledge, not about how they
/// were made.
#[utoipa::path(post, path = "/v1/verifications", tag = "verifications",
    request_body(content((VerificationForm = "multipart/form-data"), (VerificationRequest = "application/json"))),
    responses((status = 200, body = Verification)))]
pub(in crate::api) async fn create(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    mut request: Request,
) -> Result<Json<Verification>, Problem> {
    let _place = match app.plans.try_acquire() {
        Ok(place) => place,
        Err(problem) => {
            crate::api::http::body::drain(request.into_body().into_data_stream()).await;
            return Err(problem);
        }
    };
    if media_type_essence(request.headers().get(header::CONTENT_TYPE)).as_deref() != Some("multipart/form-data") {
        let JsonDocument(document) = JsonDocument::from_request(request, &app).await?;
        return match spec::read_verification(&document).map_err(Problem::of_faults)? {
            VerificationSubject::Release(release) => of_release(&app, &caller, release, document).await,
            subject => Err(Problem::of_faults(subject.files().map(not_sent).collect())),
        };
    }
    // what a form may hold is counted as it is read
    DefaultBodyLimit::disable().apply(&mut request);
    let form = Multipart::from_request(request, &()).await;
    let mut form = VerificationFormReader {
        form: form.map_err(|_| Problem::new(Kind::MalformedRequest, FORM_MISMATCH_DETAIL))?,
        pace: ReadDeadline::new(app.bounds.idle, app.bounds.upload),
        left: app.max_upload_bytes,
        held: FileMemory::new(app.service.budget.clone()),
    };
    let outcome = from_form(&app, &caller, &mut form).await;
    if outcome.is_err() {
        form.drain().await;
    }
    outcome
}

const FORM_MISMATCH_DETAIL: &str = "the body is not the form that Content-Type states";

fn not_sent(file: &SubmittedFile) -> Fault {
    let detail = format!("no file came under this name: send multipart/form-data with a part named {:?}", file.file);
    Fault::new(file.pointer.as_str(), Kind::BadColumns, detail)
}

/// A form under way.
struct VerificationFormReader {
    form: Multipart,
    pace: ReadDeadline,
    /// Bytes that may still come.
    left: u64,
    held: FileMemory,
}

impl VerificationFormReader {
    /// The document of the first part.
    async fn document(&mut self, app: &App) -> Result<Value, Problem> {
        let first =
            || Problem::new(Kind::MalformedRequest, "the first part of the form must be `request`, a JSON document");
        let malformed = |_| Problem::new(Kind::MalformedRequest, FORM_MISMATCH_DETAIL);
        let mut part = self.pace.wait(self.form.next_field()).await?.map_err(malformed)?.ok_or_else(first)?;
        if part.name() != Some(REQUEST) {
            return Err(first());
        }
        let (mut bytes, limit) = (Vec::new(), app.bounds.max_document_bytes);
        while let Some(piece) = self.pace.next(&mut part).await? {
            let piece = piece.map_err(|_| Problem::new(Kind::MalformedRequest, FORM_MISMATCH_DETAIL))?;
            let found = bytes.len() + piece.len();
            if found > limit {
                let detail = format!("a document may have {limit} bytes");
                return Err(Problem::new(Kind::TooLarge, detail).with("limit", limit).with("found", found));
            }
            bytes.extend_from_slice(&piece);
        }
        let document = parse_json(&bytes)?;
        if document.is_object() {
            Ok(document)
        } else {
            Err(Problem::new(Kind::MalformedBody, "the request must be one JSON object"))
        }
    }

    /// Reads the files that are stated, in whatever order they come.
    async fn files(&mut self, app: &App, subject: &VerificationSubject) -> Result<HashMap<String, ReadFile>, Problem> {
        let mut files = HashMap::new();
        loop {
            let malformed = |_| Problem::new(Kind::MalformedRequest, FORM_MISMATCH_DETAIL);
            let Some(part) = self.pace.wait(self.form.next_field()).await?.map_err(malformed)? else {
                return Ok(files);
            };
            let name = part.name().unwrap_or_default().to_owned();
            let stated = subject.files().find(|file| file.file == name);
            let Some(stated) = stated.filter(|_| !files.contains_key(&name)) else {
                let detail = "the form has a part that is no file of the request, or a file twice";
                return Err(Problem::new(Kind::MalformedRequest, detail).with("part", name));
            };
            let packing = FileEncoding::new(stated, &part)?;
            let room = std::mem::replace(&mut self.held, FileMemory::new(MemoryBudget::default()));
            let (file, room, read) = Self::file(app, part, packing, (self.left, room), &mut self.pace).await;
            (self.held, self.left) = (room, self.left.saturating_sub(read));
            // so that of several files it is known which
            let file = file.map_err(|problem| match problem.kind.status() {
                413 | 422 | 400 => {
                    Problem { detail: format!("{name}: {}", problem.detail), ..problem }.with("file", name.as_str())
                }
                _ => problem,
            })?;
            files.insert(name, file);
        }
    }

    async fn file(
        app: &App,
        part: Field<'_>,
        packing: FileEncoding,
        (left, mut room): (u64, FileMemory),
        pace: &mut ReadDeadline,
    ) -> (Result<ReadFile, Problem>, FileMemory, u64) {
        let (feeder, meter, body) = body_channel(left, packing.digest.is_some());
        let (limits, spool, span) = (app.limits.clone(), Arc::clone(&app.spool), Span::current());
        let received = meter.clone();
        let thread = tokio::task::spawn_blocking(move || {
            let _inside = span.entered();
            let read = room.read(|take| {
                let decoded = decoder(body, packing.encoding, &limits).map_err(IngestError::from)?;
                let mut reader = formats::open(packing.format, decoded, CsvOptions::default(), &limits, &spool)?;
                let read = engine::read_file(reader.as_mut(), &limits, take)?;
                meter.finish(packing.digest.as_deref())?;
                Ok(read)
            });
            (read, room)
        });
        let fed = feeder.feed(part, pace).await;
        feeder.end(matches!(fed, BodyEnd::Whole)).await;
        let (read, room) = thread.await.unwrap_or_else(|_panicked| {
            (
                Err(Problem::new(Kind::Internal, "the reading stopped unexpectedly")),
                FileMemory::new(MemoryBudget::default()),
            )
        });
        let read = match (fed, read) {
            // what the thread saw is a body that broke off
            (BodyEnd::Late(problem), Err(_)) => Err(problem),
            (_, read) => read,
        };
        (read, room, received.bytes())
    }

    /// Reads on after a refusal, so that the client gets to see the answer.
    async fn drain(&mut self) {
        let draining = async {
            let mut drained = 0;
            while let Ok(Some(mut part)) = self.form.next_field().await {
                while let Ok(Some(piece)) = part.chunk().await {
                    drained += piece.len();
                    if drained > MAX_DRAINED_BYTES {
                        return;
                    }
                }
            }
        };
        // whoever sends slowly is not read to the end
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, draining).await;
    }
}

/// How the bytes of a file are packed.
struct FileEncoding {
    format: InputFormat,
    encoding: Encoding,
    digest: Option<Vec<u8>>,
}

impl FileEncoding {
    /// What the request states goes before what the part states, and that before the end of the name.
    fn new(stated: &SubmittedFile, part: &Field<'_>) -> Result<Self, Problem> {
        let unpacked = |name: &str| match name {
            name if name.ends_with(".gz") => (name.len() - 3, Some(Encoding::Gzip)),
            name if name.ends_with(".zst") => (name.len() - 4, Some(Encoding::Zstd)),
            name => (name.len(), None),
        };
        let (length, packing) = unpacked(&stated.file);
        let by_type = || {
            media_type_essence(part.headers().get(header::CONTENT_TYPE)).and_then(|it| InputFormat::of_media_type(&it))
        };
        let by_name = || InputFormat::of_file_name(&stated.file[..length]);
        Ok(Self {
            format: stated.format.or_else(by_type).or_else(by_name).unwrap_or_default(),
            encoding: encoding(part.headers())?.or(packing).unwrap_or(Encoding::Identity),
            digest: declared_digest(part.headers())?,
        })
    }
}

async fn from_form(
    app: &App,
    caller: &Caller,
    form: &mut VerificationFormReader,
) -> Result<Json<Verification>, Problem> {
    let document = form.document(app).await?;
    let subject = spec::read_verification(&document).map_err(Problem::of_faults)?;
    let mut files = form.files(app, &subject).await?;
    let (tables, original) = match &subject {
        VerificationSubject::Release(release) => return of_release(app, caller, *release, document).await,
        VerificationSubject::Tables(tables, original) => (tables.clone(), original.is_some()),
    };
    let absent: Vec<Fault> = subject.files().filter(|file| !files.contains_key(&file.file)).map(not_sent).collect();
    if !absent.is_empty() {
        return Err(Problem::of_faults(absent));
    }
    let files: Vec<ReadFile> = subject.files().filter_map(|file| files.remove(&file.file)).collect();
    run_blocking(move |control| {
        let material = VerificationMaterial::new(&tables, files, original).map_err(engine_problem)?;
        let asked = spec::read_asked_of(&document, material.names()).map_err(engine_problem)?;
        engine::verify_tables(&material, &asked, control)
    })
    .await
    .map(Json)
}

async fn of_release(app: &App, caller: &Caller, release: Uuid, document: Value) -> Result<Json<Verification>, Problem> {
    if !caller.has_scope(Scope::ReleasesRead) {
        let scope = Scope::ReleasesRead.name();
        let detail = format!("the key lacks the scope {scope}, which reading a release requires");
        return Err(Problem::new(Kind::Forbidden, detail).with("scope", scope));
    }
    let (manifest, storage) = open_stored_parts(app, caller, release).await?;
    let found = run_blocking(move |control| {
        let (material, _room) = storage.read(control)?;
        let material = material.told_by(&manifest);
        let asked = spec::read_asked_of(&document, material.names()).map_err(engine_problem)?;
        engine::verify_tables(&material, &asked, control)
    });
    found.await.map(Json)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_computation_ends_when_its_caller_goes_away() {
        let (begun, begins) = oneshot::channel();
        let (ended, ends) = oneshot::channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let also = Arc::clone(&given_up);
        let caller = tokio::spawn(run_blocking(move |control| {
            let _ = begun.send(());
            let stopped = loop {
                match control.check() {
                    Err(cancelled) => break Err(crate::engine::EngineError::from(cancelled)),
                    Ok(()) if also.load(Ordering::Relaxed) => break Ok(()),
                    Ok(()) => std::thread::yield_now(),
                }
            };
            let _ = ended.send(stopped.is_err());
            stopped
        }));
        begins.await.unwrap();
        caller.abort();
        let stopped = tokio::time::timeout(Duration::from_secs(60), ends).await;
        given_up.store(true, Ordering::Relaxed);
        assert!(stopped.is_ok_and(|ended| ended == Ok(true)), "it goes on for nobody");
    }
}
