//! Verification of submitted tables or of a release under rules. Reads the request, parts and manifests, but no dataset.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::multipart::Field;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::header;
use serde_json::Value;
use tracing::Span;
use uuid::Uuid;

use super::stored_parts::{FileMemory, engine_problem, open_stored_parts};
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::body::{
    BodyEnd, DRAIN_TIMEOUT, MAX_DRAINED_BYTES, ReadDeadline, body_channel, declared_digest, encoding,
    media_type_essence,
};
use crate::api::http::extract::JsonDocument;
use crate::api::http::form::Form;
use crate::api::openapi::declared::{VerificationForm, VerificationRequest};
use crate::app::read_request;
use crate::app::run_engine;
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

/// Verifies rules on submitted tables or on a release
///
/// Submitted tables come as a form: first the part `request`, a JSON document, then one part for each `file` of the document, in the
/// formats and limits of uploads. A release of this service is given by its id. The answer is 200 also if the rules do not hold. The
/// service stores nothing of the request.
///
/// A table is one part (`bucketed: false`), with the equal values of the known attributes as classes, or several parts with a column
/// `bucket`. Parts may share attributes; their rows match where these agree. With several tables, a rule holds if no path leads from
/// known to sensitive attributes, or if each path passes a table whose classes satisfy the guarantee (Guardian Normal Form). The
/// verifier assumes that tables are shuffled independently. Rows may be in any order, and labels may be any text. A missing value is
/// a value.
///
/// The result states what an adversary with the knowledge of the rules can infer from the tables. It does not depend on how the tables
/// were made.
#[utoipa::path(post, path = "/v1/verifications", tag = "verifications",
    request_body(content((VerificationForm = "multipart/form-data"), (VerificationRequest = "application/json"))),
    responses((status = 200, body = Verification)))]
pub(in crate::api) async fn create(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    mut request: Request,
) -> Result<Json<Verification>, Problem> {
    let _permit = match app.plans.try_acquire(&caller.tenant) {
        Ok(permit) => permit,
        Err(problem) => {
            crate::api::http::body::drain(request.into_body().into_data_stream()).await;
            return Err(problem);
        }
    };
    if media_type_essence(request.headers().get(header::CONTENT_TYPE)).as_deref() != Some("multipart/form-data") {
        let JsonDocument(document) = JsonDocument::from_request(request, &app).await?;
        return match read_request(&document, spec::read_verification).await? {
            VerificationSubject::Release(release) => of_release(&app, &caller, release, document).await,
            subject => Err(Problem::of_faults(subject.files().map(not_sent).collect())),
        };
    }
    // the reader counts the bytes of the form
    DefaultBodyLimit::disable().apply(&mut request);
    let mut form = VerificationFormReader {
        form: Form::read(request, FORM_MISMATCH_DETAIL).await?,
        limits: FormLimits {
            pace: ReadDeadline::new(&app.bounds),
            left: app.max_upload_bytes,
            memory: FileMemory::new(app.service.budget.clone()),
        },
    };
    let outcome = from_form(&app, &caller, &mut form).await;
    if outcome.is_err() {
        form.drain().await;
    }
    outcome
}

const FORM_MISMATCH_DETAIL: &str = "the body is not the form that Content-Type declares";

fn not_sent(file: &SubmittedFile) -> Fault {
    let detail =
        format!("the form has no file with this name: send multipart/form-data with a part named {:?}", file.file);
    Fault::new(file.pointer.as_str(), Kind::BadColumns, detail)
}

/// Reads the parts of a form in order.
struct VerificationFormReader {
    form: Form,
    limits: FormLimits,
}

/// The remaining limits of a form.
struct FormLimits {
    pace: ReadDeadline,
    /// The number of bytes that the form may still contain.
    left: u64,
    memory: FileMemory,
}

impl VerificationFormReader {
    /// Reads the document of the first part.
    async fn document(&mut self, app: &App) -> Result<Value, Problem> {
        let first =
            || Problem::new(Kind::MalformedRequest, "the first part of the form must be `request`, a JSON document");
        let mut part = self.limits.pace.wait(self.form.next_part()).await??.ok_or_else(first)?;
        if part.name() != Some(REQUEST) {
            return Err(first());
        }
        let (mut bytes, limit) = (Vec::new(), app.bounds.max_document_bytes);
        while let Some(piece) = self.limits.pace.next(&mut part).await? {
            let piece = piece.map_err(|_| Problem::new(Kind::MalformedRequest, FORM_MISMATCH_DETAIL))?;
            let found = bytes.len() + piece.len();
            if found > limit {
                let detail = format!("a document has at most {limit} bytes");
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

    /// Reads the declared files in any order.
    async fn files(&mut self, app: &App, subject: &VerificationSubject) -> Result<HashMap<String, ReadFile>, Problem> {
        let mut files = HashMap::new();
        loop {
            let Some(part) = self.limits.pace.wait(self.form.next_part()).await?? else {
                return Ok(files);
            };
            let name = part.name().unwrap_or_default().to_owned();
            let declared = subject.files().find(|file| file.file == name);
            let Some(declared) = declared.filter(|_| !files.contains_key(&name)) else {
                let detail = "the form has an undeclared part, or a file twice";
                return Err(Problem::new(Kind::MalformedRequest, detail).with("part", name));
            };
            let encoding = FileEncoding::new(declared, &part)?;
            // the detail names the file
            let file =
                self.limits.read_file(app, part, encoding).await.map_err(|problem| match problem.kind.status() {
                    413 | 422 | 400 => {
                        Problem { detail: format!("{name}: {}", problem.detail), ..problem }.with("file", name.as_str())
                    }
                    _ => problem,
                })?;
            files.insert(name, file);
        }
    }

    /// Reads the rest of a rejected form, so that the client sees the answer.
    async fn drain(&mut self) {
        let draining = async {
            let mut drained = 0;
            while let Ok(Some(mut part)) = self.form.next_part().await {
                while let Ok(Some(piece)) = part.chunk().await {
                    drained += piece.len();
                    if drained > MAX_DRAINED_BYTES {
                        return;
                    }
                }
            }
        };
        // a slow client is cut off
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, draining).await;
    }
}

impl FormLimits {
    /// Reads the file of a part on a blocking thread.
    async fn read_file(&mut self, app: &App, part: Field<'_>, encoding: FileEncoding) -> Result<ReadFile, Problem> {
        let (sender, meter, body) = body_channel(self.left, encoding.digest.is_some());
        let (limits, spool, span) = (app.limits.clone(), Arc::clone(&app.spool), Span::current());
        let received = meter.clone();
        let mut memory = std::mem::replace(&mut self.memory, FileMemory::new(MemoryBudget::default()));
        let thread = tokio::task::spawn_blocking(move || {
            let _inside = span.entered();
            let read = memory.read(|take| {
                let decoded = decoder(body, encoding.encoding, &limits).map_err(IngestError::from)?;
                let mut reader = formats::open(encoding.format, decoded, CsvOptions::default(), &limits, &spool)?;
                let read = engine::read_file(reader.as_mut(), &limits, take)?;
                meter.finish(encoding.digest.as_deref())?;
                Ok(read)
            });
            (read, memory)
        });
        let fed = sender.feed(part, &mut self.pace).await;
        sender.end(matches!(fed, BodyEnd::Whole)).await;
        let read = match thread.await {
            Ok((read, memory)) => {
                self.memory = memory;
                read
            }
            Err(_panicked) => Err(Problem::new(Kind::Internal, "reading the file stopped unexpectedly")),
        };
        self.left = self.left.saturating_sub(received.bytes());
        match (fed, read) {
            // the thread saw only a truncated body
            (BodyEnd::Late(problem), Err(_)) => Err(problem),
            (_, read) => read,
        }
    }
}

/// Format, compression and digest of a file.
struct FileEncoding {
    format: InputFormat,
    encoding: Encoding,
    digest: Option<Vec<u8>>,
}

impl FileEncoding {
    /// The request precedes the headers of the part, and these precede the file name extension.
    fn new(declared: &SubmittedFile, part: &Field<'_>) -> Result<Self, Problem> {
        let unpacked = |name: &str| match name {
            name if name.ends_with(".gz") => (name.len() - 3, Some(Encoding::Gzip)),
            name if name.ends_with(".zst") => (name.len() - 4, Some(Encoding::Zstd)),
            name => (name.len(), None),
        };
        let (length, packing) = unpacked(&declared.file);
        let by_type = || {
            media_type_essence(part.headers().get(header::CONTENT_TYPE)).and_then(|it| InputFormat::of_media_type(&it))
        };
        let by_name = || InputFormat::of_file_name(&declared.file[..length]);
        Ok(Self {
            format: declared.format.or_else(by_type).or_else(by_name).unwrap_or_default(),
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
    let subject = read_request(&document, spec::read_verification).await?;
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
    run_engine("the computation", move |control| {
        let material = VerificationMaterial::new(&tables, files, original).map_err(engine_problem)?;
        let rules = spec::read_verification_rules(&document, material.names()).map_err(engine_problem)?;
        engine::verify_tables(&material, &rules, control)
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
    let found = run_engine("the computation", move |control| {
        let (material, _memory) = storage.read(control)?;
        let material = material.with_claims_of(&manifest);
        let rules = spec::read_verification_rules(&document, material.names()).map_err(engine_problem)?;
        engine::verify_tables(&material, &rules, control)
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
    async fn computation_ends_with_its_caller() {
        let (begun, begins) = oneshot::channel();
        let (ended, ends) = oneshot::channel();
        let abandoned = Arc::new(AtomicBool::new(false));
        let is_abandoned = Arc::clone(&abandoned);
        let caller = tokio::spawn(run_engine("the computation", move |control| {
            let _ = begun.send(());
            let stopped = loop {
                match control.check() {
                    Err(cancelled) => break Err(crate::engine::EngineError::from(cancelled)),
                    Ok(()) if is_abandoned.load(Ordering::Relaxed) => break Ok(()),
                    Ok(()) => std::thread::yield_now(),
                }
            };
            let _ = ended.send(stopped.is_err());
            stopped
        }));
        begins.await.unwrap();
        caller.abort();
        let stopped = tokio::time::timeout(Duration::from_secs(60), ends).await;
        abandoned.store(true, Ordering::Relaxed);
        assert!(stopped.is_ok_and(|ended| ended == Ok(true)), "the computation continues without a caller");
    }
}
