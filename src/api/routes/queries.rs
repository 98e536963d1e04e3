//! COUNT queries. Reads parts and manifests, but no dataset.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tokio::runtime::Handle;
use utoipa::ToSchema;

use super::served;
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{IdPath, JsonDocument};
use crate::api::openapi::declared::QueryDocument;
use crate::app::{engine_problem, run_blocking};
use crate::engine::{EngineError, QueryAnswer, QuerySet};
use crate::inputs::PartStorage;
use crate::problem::Problem;

/// The answers to the queries of a request.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct QueryAnswers {
    /// One answer per query, in the order of the request.
    answers: Vec<QueryAnswer>,
}

/// Answers COUNT queries from the published parts
///
/// An answer is the expected count given the parts, with its standard deviation. `exact`: one part contains all attributes of the
/// query. `matching`: the attributes are in several parts of one table, and all matchings of the rows of a bucket are equally likely.
/// `multinomial`: the query needs several tables or generalized cells; the count is that of a sample from the estimated distribution,
/// and all values of a cell are equally likely. An interval of integers or dates covers all values between its ends, an interval of
/// texts the values that some cell contains.
#[utoipa::path(post, path = "/v1/releases/{id}/queries", tag = "releases", params(("id" = Uuid, Path)),
    request_body = QueryDocument, responses((status = 200, body = QueryAnswers)))]
pub(in crate::api) async fn answer(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    JsonDocument(document): JsonDocument,
) -> Result<Json<QueryAnswers>, Problem> {
    let (release, manifest) = served::read(&app, &caller, id).await?;
    let queries = QuerySet::new(&manifest, &document)?;
    let permit = app.plans.try_acquire(&caller.tenant)?;
    let memory = app.service.budget.try_acquire(queries.memory())?;
    // an answer discloses rows, like a part
    served::record_read(&app, &caller, &release).await?;
    let store = Arc::clone(&app.service.store);
    let storage = PartStorage::new(Handle::current(), store, release.tenant.clone(), release.job, release.attempt);
    let counted = run_blocking("the counting of rows", move |control| {
        let _held = (permit, memory);
        queries.answer(&storage, control)
    });
    match counted.await? {
        Ok(answers) => Ok(Json(QueryAnswers { answers })),
        Err(error @ (EngineError::Refused(_) | EngineError::Cancelled)) => {
            Err(engine_problem("the counting of rows", error))
        }
        Err(EngineError::Failed { problem, cause }) => {
            // a withdrawn release has no parts
            served::still_served(&app, &release).await?;
            tracing::error!(cause, "queries failed");
            Err(problem)
        }
    }
}
