//! Jobs: submit, watch, cancel.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{IdPath, JsonDocument, QueryParameters, idempotency_key};
use crate::api::http::gateway::LinkBase;
use crate::api::http::page;
use crate::api::http::page::ListPage;
use crate::control::{Phase, Progress};
use crate::identity::{Caller, Scope};
use crate::ports::{JobFilter, JobRecord, JobStatus, problem_of};
use crate::problem::{Kind, Problem, ProblemDocument, hide_counts};

const MAX_WAIT_SECONDS: u64 = 60;

/// A waiting caller looks again after so long even when nobody told of a change: another process may have made it.
const JOB_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The specification of a job. It is read by hand, so that one answer names every fault; its schema is written by hand too, in
/// `openapi/schemas.json`, and a test holds both against each other.
#[derive(ToSchema)]
#[expect(dead_code, reason = "gives the schema its name")]
pub(in crate::api) struct JobDocument {
    dataset: Uuid,
}

/// A job.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct Job {
    id: Uuid,
    /// `queued`, `running`, `succeeded`, `refused`, `failed` or `cancelled`
    status: &'static str,
    dataset: Uuid,
    method: String,
    priority: i32,
    submitted_at: DateTime<Utc>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
    attempt: u32,
    progress: Option<Progress>,
    /// The document with defaults filled in.
    #[schema(value_type = Object)]
    specification: Value,
    release: Option<Uuid>,
    /// Whether the release was made by an earlier job with an equal specification.
    reused: bool,
    /// Why it was refused or failed.
    #[schema(value_type = Option<ProblemDocument>)]
    problem: Option<Value>,
    links: JobLinks,
}

/// Where to go on from a job.
#[derive(Serialize, ToSchema)]
struct JobLinks {
    #[serde(rename = "self")]
    this: String,
    events: String,
    release: Option<String>,
}

impl Job {
    /// The job as a caller may see it: without counts of the data unless the key opens these.
    pub(in crate::api) fn seen_by(caller: &Caller, base: &LinkBase, record: JobRecord) -> Self {
        let links = JobLinks {
            this: format!("{base}/v1/jobs/{}", record.id),
            events: format!("{base}/v1/jobs/{}/events", record.id),
            release: record.release.map(|release| format!("{base}/v1/releases/{release}")),
        };
        let mut problem = record.problem;
        if !caller.has_scope(Scope::DatasetsInspect) {
            problem.iter_mut().for_each(hide_counts);
        }
        let mut specification = record.specification;
        if let Value::Object(members) = &mut specification {
            members.insert("dataset".to_owned(), record.dataset.to_string().into());
        }
        Self {
            id: record.id,
            status: record.status.name(),
            dataset: record.dataset,
            method: record.method,
            priority: record.priority,
            submitted_at: record.submitted_at,
            started_at: record.started_at,
            finished_at: record.finished_at,
            attempt: record.attempt,
            progress: at_the_end(record.status, record.progress),
            specification,
            release: record.release,
            reused: record.reused,
            problem,
            links,
        }
    }
}

/// A job that succeeded has done everything, whatever its worker last found time to note.
fn at_the_end(status: JobStatus, noted: Option<Progress>) -> Option<Progress> {
    match status {
        JobStatus::Succeeded => Some(Progress { phase: Phase::Commit, done: 1, of: 1 }),
        _ => noted,
    }
}

/// How long to wait for an end.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct Wait {
    /// Waits so many seconds for the job to end before answering, 0 to 60.
    #[param(minimum = 0, maximum = 60, default = 0)]
    wait: Option<u64>,
}

impl Wait {
    fn duration(&self) -> Result<Duration, Problem> {
        match self.wait.unwrap_or(0) {
            seconds @ 0..=MAX_WAIT_SECONDS => Ok(Duration::from_secs(seconds)),
            _ => Err(Problem::new(Kind::MalformedRequest, "wait must be whole seconds from 0 to 60")),
        }
    }
}

pub(in crate::api) async fn read(app: &App, caller: &Caller, id: Uuid) -> Result<JobRecord, Problem> {
    let job = app.service.store.job(&caller.tenant, id).await.map_err(|error| problem_of(&error))?;
    job.ok_or_else(|| Problem::new(Kind::NotFound, "there is no such job"))
}

/// The job once it has ended, or as it is when the time is up.
async fn read_after(app: &App, caller: &Caller, id: Uuid, wait: Duration) -> Result<JobRecord, Problem> {
    let deadline = tokio::time::Instant::now() + wait;
    let mut place = None;
    let mut changes = app.service.signals.changes();
    loop {
        let job = read(app, caller, id).await?;
        let now = tokio::time::Instant::now();
        if job.status.is_terminal() || now >= deadline {
            return Ok(job);
        }
        if place.is_none() {
            place = Some(app.bounds.waiting.try_acquire()?);
        }
        let look_again = deadline.min(now + JOB_POLL_INTERVAL);
        // told, or not told: the job is read again
        let _ = tokio::time::timeout_at(look_again, changes.changed()).await;
        app.service.check_still_valid(caller).await?;
    }
}

type Located = (StatusCode, [(HeaderName, String); 1], Json<Job>);

fn located(caller: &Caller, base: &LinkBase, status: StatusCode, job: JobRecord) -> Located {
    let location = format!("/v1/jobs/{}", job.id);
    (status, [(header::LOCATION, location)], Json(Job::seen_by(caller, base, job)))
}

/// Submits a job
///
/// The document is checked completely: one answer names every fault. An equal job that has a release gives that release.
///
/// With an `Idempotency-Key` a repeat of the same document is answered with the job of the first request, and queues nothing;
/// with another document it is refused (`idempotency-conflict`). A key is remembered for a day, and not at all when its request
/// was refused. While the first request is still being accepted a repeat is answered 409 `conflict` with `Retry-After`.
#[utoipa::path(post, path = "/v1/jobs", tag = "jobs",
    params(Wait, ("Idempotency-Key" = Option<String>, Header, description = "Names the request, so that it can be repeated: 1 to 255 visible ASCII characters.")),
    request_body = JobDocument,
    responses(
        (status = 202, description = "accepted", body = Job, headers(("Location" = String))),
        (status = 200, description = "ended while the caller waited", body = Job, headers(("Location" = String)))))]
pub(in crate::api) async fn submit(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    base: LinkBase,
    QueryParameters(wait): QueryParameters<Wait>,
    headers: HeaderMap,
    JsonDocument(document): JsonDocument,
) -> Result<Located, Problem> {
    let wait = wait.duration()?;
    let job = app.service.submit_once(&caller, document, idempotency_key(&headers)?).await;
    let job = job.map_err(|problem| match caller.has_scope(Scope::DatasetsInspect) {
        true => problem,
        false => problem.without_counts(),
    })?;
    if wait.is_zero() {
        return Ok(located(&caller, &base, StatusCode::ACCEPTED, job));
    }
    let job = match read_after(&app, &caller, job.id, wait).await {
        // the job is accepted, whether or not there is a place to wait for it
        Err(problem) if problem.kind == Kind::TooManyRequests => job,
        read => read?,
    };
    let status = if job.status.is_terminal() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(located(&caller, &base, status, job))
}

/// Which jobs to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct JobQuery {
    /// Only jobs of this status.
    status: Option<String>,
    /// Only jobs of this dataset.
    dataset: Option<Uuid>,
    /// Only jobs of this series.
    series: Option<String>,
    /// Only jobs of this method.
    method: Option<String>,
    /// The most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// The jobs
///
/// Newest first, in pages. Jobs that have ended stay in the list.
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs", params(JobQuery),
    responses((status = 200, body = ListPage<Job>)))]
pub(in crate::api) async fn list(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    base: LinkBase,
    QueryParameters(query): QueryParameters<JobQuery>,
) -> Result<Json<ListPage<Job>>, Problem> {
    let unknown = |_| Problem::new(Kind::MalformedRequest, "status is none that a job can have");
    let status = query.status.as_deref().map(str::parse).transpose().map_err(unknown)?;
    let filter = JobFilter { status, dataset: query.dataset, series: query.series, method: query.method };
    let cursor = page::cursor(query.cursor.as_deref())?;
    let page = app.service.store.jobs(&caller.tenant, &filter, cursor, page::limit(query.limit)?).await;
    Ok(Json(ListPage::new(page.map_err(|error| problem_of(&error))?, |job| Ok(Job::seen_by(&caller, &base, job)))?))
}

/// One job
///
/// With `wait`, as soon as it has ended, or as it is when the time is up: a loop of such calls follows a job without asking often.
#[utoipa::path(get, path = "/v1/jobs/{id}", tag = "jobs", params(("id" = Uuid, Path), Wait),
    responses((status = 200, body = Job)))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    base: LinkBase,
    IdPath(id): IdPath,
    QueryParameters(wait): QueryParameters<Wait>,
) -> Result<Json<Job>, Problem> {
    Ok(Json(Job::seen_by(&caller, &base, read_after(&app, &caller, id, wait.duration()?).await?)))
}

/// Asks a job to stop
///
/// A job that waits is cancelled at once; one that runs stops at its next step, unless it ends before. A job that has ended is
/// answered 409.
#[utoipa::path(delete, path = "/v1/jobs/{id}", tag = "jobs", params(("id" = Uuid, Path)),
    responses(
        (status = 202, description = "asked to stop", body = Job, headers(("Location" = String)))))]
pub(in crate::api) async fn cancel(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    base: LinkBase,
    IdPath(id): IdPath,
) -> Result<Located, Problem> {
    app.service.cancel(&caller, id).await?;
    Ok(located(&caller, &base, StatusCode::ACCEPTED, read(&app, &caller, id).await?))
}
