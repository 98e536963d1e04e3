//! COUNT queries. Reaches parts and manifests only, never a dataset.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Handle;
use tracing::Span;
use utoipa::ToSchema;

use super::served;
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{IdPath, JsonDocument};
use crate::control::Control;
use crate::engine::{EngineError, QueryAnswer, QuerySet};
use crate::inputs::PartStorage;
use crate::problem::{Kind, Problem};

/// What to count.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "the document is read by hand, so that one answer names every fault; this describes its shape"
)]
pub(in crate::api) struct QueryDocument {
    /// At most 1,000 queries.
    queries: Vec<CountQuery>,
}

/// Counts the rows that meet every condition.
#[derive(ToSchema)]
#[expect(dead_code, reason = "as above")]
pub(in crate::api) struct CountQuery {
    /// The conditions; without any, all rows are counted.
    r#where: Vec<Condition>,
}

/// What the value of an attribute must be. Whatever is stated must hold.
#[derive(ToSchema)]
#[expect(dead_code, reason = "as above")]
pub(in crate::api) struct Condition {
    /// The published name of the attribute.
    attribute: String,
    /// One of these; null is a missing value. A value that does not occur counts nothing.
    #[schema(value_type = Option<Vec<Object>>)]
    r#in: Option<Vec<Value>>,
    /// This or more, in the order of the attribute; never a missing value.
    #[schema(value_type = Option<Object>)]
    from: Option<Value>,
    /// This or less, in the order of the attribute; never a missing value.
    #[schema(value_type = Option<Object>)]
    to: Option<Value>,
}

/// The answers.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct QueryAnswers {
    /// One to each query, in their order.
    answers: Vec<QueryAnswer>,
}

/// Counts rows, from the published parts alone
///
/// An answer is what a reader of the parts must expect, with the standard deviation of that: `exact` where one part shows all
/// attributes of the query together; `matching` where they stand in several parts of one table, whose rows of a bucket may belong
/// together in every way alike; `multinomial` where several tables are needed, as of a sample from the estimate that they allow, and
/// where cells stand for several values, each as likely as any other. An interval of whole numbers or dates stands for all of them
/// between its ends, one of texts for the values that some cell names.
#[utoipa::path(post, path = "/v1/releases/{id}/queries", tag = "releases", params(("id" = Uuid, Path)),
    request_body = QueryDocument, responses((status = 200, body = QueryAnswers)))]
pub(in crate::api) async fn answer(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    JsonDocument(document): JsonDocument,
) -> Result<Json<QueryAnswers>, Problem> {
    let (release, manifest) = served::read(&app, &caller, id).await?;
    let asked = QuerySet::new(&manifest, &document)?;
    let place = app.plans.try_acquire()?;
    let room = app.service.budget.try_acquire(asked.memory())?;
    // an answer tells of rows, as a part does
    served::open(&app, &caller, &release).await?;
    let store = Arc::clone(&app.service.store);
    let storage = PartStorage::new(Handle::current(), store, release.tenant.clone(), release.job, release.attempt);
    let (control, span) = (Control::default(), Span::current());
    // a caller that goes away stops the computation
    let stop_when_dropped = control.stop_when_dropped();
    let counted = tokio::task::spawn_blocking(move || {
        let _held = (place, room);
        span.in_scope(|| asked.answer(&storage, &control))
    });
    let counted =
        counted.await.map_err(|_panicked| Problem::new(Kind::Internal, "the queries stopped unexpectedly"))?;
    drop(stop_when_dropped);
    match counted {
        Ok(answers) => Ok(Json(QueryAnswers { answers })),
        Err(EngineError::Refused(problem)) => Err(problem),
        Err(EngineError::Cancelled) => Err(Problem::new(Kind::Unavailable, "the queries were stopped")),
        Err(EngineError::Failed { problem, cause }) => {
            // parts go with their release
            served::still_served(&app, &release).await?;
            tracing::error!(cause, "queries could not be answered");
            Err(problem)
        }
    }
}
