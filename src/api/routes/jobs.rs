//! Submitting, listing and cancelling jobs.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{IdPath, QueryParameters, RepeatableDocument};
use crate::api::http::gateway::LinkBase;
use crate::api::http::page;
use crate::api::http::page::ListPage;
use crate::api::openapi::declared::JobDocument;
use crate::app::AppService;
use crate::control::{Phase, Progress};
use crate::identity::{Caller, Scope};
use crate::ports::{JobFilter, JobRecord, JobStatus, ListedJob};
use crate::problem::{Kind, Problem, ProblemDocument, hide_counts};
use crate::publication::ReleaseStatus;

const MAX_WAIT_SECONDS: u64 = 60;

/// The polling interval of a waiting caller, since another process may change the job.
const JOB_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// A job with its status and links.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct Job {
    /// The job.
    id: Uuid,
    /// Its status.
    status: JobStatus,
    /// The dataset that it publishes.
    dataset: Uuid,
    /// Its method: `versatile`, `anatomy`, `bucketize`, `decompose`, `generalize`, `slicing` or `sequential`.
    method: String,
    /// -100 to 100; the higher, the earlier.
    priority: i32,
    /// The time of its submission.
    submitted_at: DateTime<Utc>,
    /// The start of its latest attempt.
    started_at: Option<DateTime<Utc>>,
    /// The time of its end.
    finished_at: Option<DateTime<Utc>>,
    /// The number of attempts; a job whose process was killed starts again.
    attempt: u32,
    /// Its progress; null before it starts.
    progress: Option<Progress>,
    /// The submitted document with defaults.
    #[schema(value_type = JobDocument)]
    specification: Value,
    /// Its release, after success.
    release: Option<Uuid>,
    /// What became of the release. A held one cannot be read before its approval, and this says that it waits.
    release_status: Option<ReleaseStatus>,
    /// Whether an earlier job with an equal specification made the release.
    reused: bool,
    /// The reason why the job was refused or failed.
    #[schema(value_type = Option<ProblemDocument>)]
    problem: Option<Value>,
    links: JobLinks,
}

/// A job as an item of a list, without its document.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct JobItem {
    /// The job.
    id: Uuid,
    /// Its status.
    status: JobStatus,
    /// The dataset that it publishes.
    dataset: Uuid,
    /// Its method.
    method: String,
    /// -100 to 100; the higher, the earlier.
    priority: i32,
    /// The time of its submission.
    submitted_at: DateTime<Utc>,
    /// The start of its latest attempt.
    started_at: Option<DateTime<Utc>>,
    /// The time of its end.
    finished_at: Option<DateTime<Utc>>,
    /// The number of attempts.
    attempt: u32,
    /// Its progress; null before it starts.
    progress: Option<Progress>,
    /// Its release, after success.
    release: Option<Uuid>,
    /// Whether an earlier job with an equal specification made the release.
    reused: bool,
    /// The type of the problem with which the job was refused or failed; the job has all of it.
    problem_type: Option<String>,
    links: JobLinks,
}

impl JobItem {
    fn new(base: &LinkBase, job: ListedJob) -> Self {
        Self {
            id: job.id,
            status: job.status,
            dataset: job.dataset,
            method: job.method,
            priority: job.priority,
            submitted_at: job.submitted_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
            attempt: job.attempt,
            progress: final_progress(job.status, job.progress),
            release: job.release,
            reused: job.reused,
            problem_type: job.problem_type,
            links: JobLinks::new(base, job.id, job.release),
        }
    }
}

/// Links of a job.
#[derive(Serialize, ToSchema)]
struct JobLinks {
    /// The job.
    #[serde(rename = "self")]
    this: String,
    /// Its events, as a stream.
    events: String,
    /// The manifest of its release, after success.
    release: Option<String>,
}

impl JobLinks {
    fn new(base: &LinkBase, job: Uuid, release: Option<Uuid>) -> Self {
        Self {
            this: format!("{base}/v1/jobs/{job}"),
            events: format!("{base}/v1/jobs/{job}/events"),
            release: release.map(|release| format!("{base}/v1/releases/{release}")),
        }
    }
}

impl Job {
    /// The job for a caller; where the caller may not see what the table says, it omits counts of the data.
    pub(in crate::api) async fn seen_by(
        service: &AppService,
        caller: &Caller,
        base: &LinkBase,
        record: JobRecord,
    ) -> Self {
        let links = JobLinks::new(base, record.id, record.release);
        let mut problem = record.problem;
        if let Some(problem) = &mut problem
            && !service.sees_counts(caller, record.dataset).await
        {
            hide_counts(problem);
        }
        let release_status = match record.release {
            Some(release) => service.release_status(caller, release).await,
            None => None,
        };
        let mut specification = record.specification;
        if let Value::Object(members) = &mut specification {
            members.insert("dataset".to_owned(), record.dataset.to_string().into());
        }
        Self {
            id: record.id,
            status: record.status,
            dataset: record.dataset,
            method: record.method,
            priority: record.priority,
            submitted_at: record.submitted_at,
            started_at: record.started_at,
            finished_at: record.finished_at,
            attempt: record.attempt,
            progress: final_progress(record.status, record.progress),
            specification,
            release: record.release,
            release_status,
            reused: record.reused,
            problem,
            links,
        }
    }
}

/// The progress of a job; complete for a succeeded job, whose last reports may be missing.
fn final_progress(status: JobStatus, reported: Option<Progress>) -> Option<Progress> {
    match status {
        JobStatus::Succeeded => Some(Progress { phase: Phase::Commit, done: 1, of: 1 }),
        _ => reported,
    }
}

/// The time to wait for the end of a job.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct Wait {
    /// Seconds to wait for the end of the job before answering, 0 to 60.
    #[param(minimum = 0, maximum = 60, default = 0)]
    wait: Option<u64>,
}

impl Wait {
    fn duration(&self) -> Result<Duration, Problem> {
        match self.wait.unwrap_or(0) {
            seconds @ 0..=MAX_WAIT_SECONDS => Ok(Duration::from_secs(seconds)),
            _ => Err(Problem::new(Kind::MalformedRequest, "wait must be an integer number of seconds from 0 to 60")),
        }
    }
}

pub(in crate::api) async fn read(app: &App, caller: &Caller, id: Uuid) -> Result<JobRecord, Problem> {
    let job = app.service.store.job(&caller.tenant, id).await?;
    job.ok_or_else(|| Problem::new(Kind::NotFound, "the job does not exist"))
}

/// The job after its end or after the wait.
async fn read_after(app: &App, caller: &Caller, id: Uuid, wait: Duration) -> Result<JobRecord, Problem> {
    let deadline = tokio::time::Instant::now() + wait;
    let mut permit = None;
    let mut changes = app.service.signals.changes();
    loop {
        let job = read(app, caller, id).await?;
        let now = tokio::time::Instant::now();
        if job.status.is_terminal() || now >= deadline {
            return Ok(job);
        }
        if permit.is_none() {
            permit = Some(app.bounds.waiting.try_acquire(&caller.tenant)?);
        }
        let look_again = deadline.min(now + JOB_POLL_INTERVAL);
        // with or without a signal, read the job again
        let _ = tokio::time::timeout_at(look_again, changes.changed()).await;
        app.service.check_still_valid(caller).await?;
    }
}

type Located = (StatusCode, [(HeaderName, String); 1], Json<Job>);

fn located(status: StatusCode, job: Job) -> Located {
    let location = format!("/v1/jobs/{}", job.id);
    (status, [(header::LOCATION, location)], Json(job))
}

/// Submits a job
///
/// One answer reports all faults of the document. If an equal job already has a release, the new job returns that release.
///
/// With an `Idempotency-Key`, a repeated request with the same document returns the job of the first request and queues nothing.
/// Another document is `idempotency-conflict`. The service keeps a key for a day, unless it refused the request. A repeat during the
/// first request is answered 409 `conflict` with `Retry-After`.
#[utoipa::path(post, path = "/v1/jobs", tag = "jobs",
    params(Wait, ("Idempotency-Key" = Option<String>, Header, description = "Makes the request repeatable: 1 to 255 visible ASCII characters.")),
    request_body = ref("#/components/schemas/JobDocument"),
    responses(
        (status = 202, description = "accepted", body = Job, headers(("Location" = String))),
        (status = 200, description = "the job ended during the wait", body = Job, headers(("Location" = String)))))]
pub(in crate::api) async fn submit(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    base: LinkBase,
    QueryParameters(wait): QueryParameters<Wait>,
    RepeatableDocument { document, key }: RepeatableDocument,
) -> Result<Located, Problem> {
    let wait = wait.duration()?;
    let dataset: Option<Uuid> = document["dataset"].as_str().and_then(|id| id.parse().ok());
    let job = match app.service.submit_once(&caller, document, key).await {
        Ok(job) => job,
        Err(problem) => {
            // what names no dataset has no counts, and hides them all the same
            let shown = match dataset {
                Some(dataset) => app.service.sees_counts(&caller, dataset).await,
                None => caller.has_scope(Scope::DatasetsInspect),
            };
            return Err(if shown { problem } else { problem.without_counts() });
        }
    };
    let seen = async |job| Job::seen_by(&app.service, &caller, &base, job).await;
    if wait.is_zero() {
        return Ok(located(StatusCode::ACCEPTED, seen(job).await));
    }
    let job = match read_after(&app, &caller, job.id, wait).await {
        // the job is accepted even without a permit to wait
        Err(problem) if problem.kind == Kind::TooManyRequests => job,
        read => read?,
    };
    let status = if job.status.is_terminal() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(located(status, seen(job).await))
}

/// Filters of the list of jobs.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct JobQuery {
    /// Only jobs with this status.
    status: Option<String>,
    /// Only jobs of this dataset.
    dataset: Option<Uuid>,
    /// Only jobs of this series.
    series: Option<String>,
    /// Only jobs of this method.
    method: Option<String>,
    /// The maximum number of items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// Lists the jobs, newest first
///
/// The list includes finished jobs. An item has neither the document of its job nor the whole problem.
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs", params(JobQuery),
    responses((status = 200, body = ListPage<JobItem>)))]
pub(in crate::api) async fn list(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    base: LinkBase,
    QueryParameters(query): QueryParameters<JobQuery>,
) -> Result<Json<ListPage<JobItem>>, Problem> {
    let unknown = |_| Problem::new(Kind::MalformedRequest, "the status is unknown");
    let status = query.status.as_deref().map(str::parse).transpose().map_err(unknown)?;
    let filter = JobFilter { status, dataset: query.dataset, series: query.series, method: query.method };
    let cursor = page::cursor(query.cursor.as_deref())?;
    let page = app.service.store.jobs(&caller.tenant, &filter, cursor, page::limit(query.limit)?).await;
    Ok(Json(ListPage::new(page?, |job| Ok(JobItem::new(&base, job)))?))
}

/// Returns a job
///
/// With `wait`, the answer comes at the end of the job, or after that time with its current state.
#[utoipa::path(get, path = "/v1/jobs/{id}", tag = "jobs", params(("id" = Uuid, Path), Wait),
    responses((status = 200, body = Job)))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    base: LinkBase,
    IdPath(id): IdPath,
    QueryParameters(wait): QueryParameters<Wait>,
) -> Result<Json<Job>, Problem> {
    let job = read_after(&app, &caller, id, wait.duration()?).await?;
    Ok(Json(Job::seen_by(&app.service, &caller, &base, job).await))
}

/// Cancels a job
///
/// A queued job is cancelled immediately. A running job stops at its next step, unless it ends first. A finished job is answered 409.
#[utoipa::path(delete, path = "/v1/jobs/{id}", tag = "jobs", params(("id" = Uuid, Path)),
    responses(
        (status = 202, description = "the cancellation is requested", body = Job, headers(("Location" = String)))))]
pub(in crate::api) async fn cancel(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    base: LinkBase,
    IdPath(id): IdPath,
) -> Result<Located, Problem> {
    app.service.cancel(&caller, id).await?;
    let job = read(&app, &caller, id).await?;
    Ok(located(StatusCode::ACCEPTED, Job::seen_by(&app.service, &caller, &base, job).await))
}
