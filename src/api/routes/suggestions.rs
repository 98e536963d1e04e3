//! First specifications for datasets.

use axum::Json;
use axum::extract::State;

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{IdPath, OptionalDocument};
use crate::engine::Suggestion;
use crate::problem::Problem;

/// Suggests a specification for a dataset
///
/// `specification` is the document of a job that would be published, and that waits for approval. Every column is placed, by its name,
/// the shape of its values, counts and dependencies; `columns` has a reason for each. `questions` are for people: the specification
/// assumes an answer of each, and a request with `roles` gives another. The body may be left out.
///
/// Sensitive columns get the strongest guarantee that the data holds: l-diversity with l from 5 to 2, else t-closeness, else
/// (alpha,k)-anonymity. Without sensitive columns, rows are 5-anonymous. A column for which nothing holds is dropped, and its reason
/// says so. The suggestion looks at no earlier releases. `subject` is not null where persons have several rows: upload the dataset with
/// this column and number, so that guarantees hold for persons. The audit log records every answer.
#[utoipa::path(post, path = "/v1/datasets/{id}/suggestion", tag = "datasets", params(("id" = Uuid, Path)),
    request_body = ref("#/components/schemas/SuggestionRequest"), responses((status = 200, body = Suggestion)))]
pub(in crate::api) async fn create(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    OptionalDocument(request): OptionalDocument,
) -> Result<Json<Suggestion>, Problem> {
    let _permit = app.plans.try_acquire(&caller.tenant)?;
    app.service.suggest(&caller, id, &request).await.map(Json)
}
