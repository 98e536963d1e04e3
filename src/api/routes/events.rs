//! Server-sent events of a job.
//!
//! The id of an event encodes the state of the job, so that ids increase without storage. A client resumes from its last id at any
//! process.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, stream};
use tokio::sync::watch;
use uuid::Uuid;

use super::jobs::{Job, read};
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::IdPath;
use crate::api::http::gateway::LinkBase;
use crate::api::http::limits::RequestPermit;
use crate::identity::Caller;
use crate::ports::{JobRecord, JobStatus};
use crate::problem::{Kind, Problem};

/// The store signals no progress, so a listener polls at this interval.
const PROGRESS_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Streams the events of a job
///
/// `event: status` reports a new status, `event: progress` new progress; `data` is the job. The stream ends after a terminal status
/// or when the caller's key expires or is revoked. `Last-Event-ID` resumes a stream.
#[utoipa::path(get, path = "/v1/jobs/{id}/events", tag = "jobs",
    params(("id" = Uuid, Path), ("Last-Event-ID" = Option<u64>, Header, description = "The last received id; the stream resumes after it.")),
    responses(
        (status = 200, description = "events", body = String, content_type = "text/event-stream")))]
pub(in crate::api) async fn stream_events(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    base: LinkBase,
    IdPath(id): IdPath,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let seen = match headers.get("last-event-id") {
        None => None,
        Some(value) => {
            let number = value.to_str().ok().and_then(|text| text.parse::<u64>().ok());
            let foreign = || Problem::new(Kind::MalformedRequest, "Last-Event-ID is not an id of this service");
            Some(number.ok_or_else(foreign)?)
        }
    };
    let changes = app.service.signals.changes();
    read(&app, &caller, id).await?;
    let permit = app.bounds.waiting.try_acquire(&caller.tenant)?;
    let listener = Listener { _permit: permit, app, caller, base, id, seen, status: None, changes, ended: false };
    Ok(Sse::new(stream::unfold(listener, Listener::next)).keep_alive(KeepAlive::default()))
}

struct Listener {
    _permit: RequestPermit,
    app: App,
    caller: Caller,
    base: LinkBase,
    id: Uuid,
    seen: Option<u64>,
    status: Option<JobStatus>,
    changes: watch::Receiver<u64>,
    ended: bool,
}

impl Listener {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if self.ended {
                return None;
            }
            // a caller without access learns the reason when it reconnects
            self.app.service.check_still_valid(&self.caller).await.ok()?;
            // a failing store ends the stream; the client resumes with its last id
            let job = read(&self.app, &self.caller, self.id).await.ok()?;
            let number = event_number(&job);
            let status = job.status;
            self.ended = status.is_terminal();
            if self.seen.is_none_or(|seen| number > seen) {
                let name = if self.status == Some(status) { "progress" } else { "status" };
                self.seen = Some(number);
                self.status = Some(status);
                let job = Job::seen_by(&self.app.service, &self.caller, &self.base, job).await;
                let event = Event::default().event(name).id(number.to_string()).json_data(job).ok()?;
                return Some((Ok(event), self));
            }
            if self.ended {
                return None;
            }
            self.status = Some(status);
            // with or without a signal, read the job again
            let _ = tokio::time::timeout(PROGRESS_POLL_INTERVAL, self.changes.changed()).await;
        }
    }
}

/// Increases with the attempt, then the status, then the phase, then the progress.
fn event_number(job: &JobRecord) -> u64 {
    let within = match (job.status, job.progress) {
        // returned to the queue: after all reports of its attempt
        (JobStatus::Queued, _) if job.attempt > 0 => 98_000,
        (JobStatus::Queued | JobStatus::Running, None) => 1,
        (JobStatus::Queued, Some(_)) => 1,
        (JobStatus::Running, Some(progress)) => {
            let share = (progress.done * 1000).checked_div(progress.of).unwrap_or(0).min(1000);
            10 + (progress.phase as u64) * 10_000 + share
        }
        _ => 99_000,
    };
    u64::from(job.attempt) * 100_000 + within
}
