//! Approving, rejecting and withdrawing releases.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::served;
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{IdPath, JsonDocument};
use crate::app::ReleaseHistory;
use crate::identity::Caller;
use crate::ports::{ReleaseAction, ReleaseEvent};
use crate::problem::{Kind, Problem};
use crate::report::{Manifest, PeopleStatement};

/// The reason of a transition.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Reason)]
pub(in crate::api) struct ReasonDocument {
    /// 1 to 500 characters.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

async fn apply_transition(
    app: &App,
    caller: &Caller,
    id: Uuid,
    act: ReleaseAction,
    JsonDocument(document): JsonDocument,
) -> Result<Json<Manifest>, Problem> {
    let malformed =
        || Problem::new(Kind::MalformedBody, "the body must be {\"reason\": \"…\"} with 1 to 500 characters");
    let ReasonDocument { reason } = serde_json::from_value(document).map_err(|_| malformed())?;
    if reason.trim().is_empty() || reason.chars().count() > 500 || reason.contains('\0') {
        return Err(malformed());
    }
    served::manifest(&app.service.act(caller, id, act, reason).await?).map(Json)
}

/// Publishes a held release
///
/// Afterwards every key with the scope `releases:read` can read it. If the tenant requires separate approval, the approving key must
/// differ from the keys that submitted the jobs of the release.
#[utoipa::path(post, path = "/v1/releases/{id}/approve", tag = "releases", params(("id" = Uuid, Path)), request_body = ReasonDocument,
    responses(
        (status = 200, body = Manifest)))]
pub(in crate::api) async fn approve(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    document: JsonDocument,
) -> Result<Json<Manifest>, Problem> {
    apply_transition(&app, &caller, id, ReleaseAction::Approve, document).await
}

/// Rejects a held release
///
/// The service deletes its parts. If no caller has read a part, the disclosures of the release leave the ledger. Otherwise they
/// remain, and an equal job is refused.
#[utoipa::path(post, path = "/v1/releases/{id}/reject", tag = "releases", params(("id" = Uuid, Path)), request_body = ReasonDocument,
    responses(
        (status = 200, body = Manifest)))]
pub(in crate::api) async fn reject(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    document: JsonDocument,
) -> Result<Json<Manifest>, Problem> {
    apply_transition(&app, &caller, id, ReleaseAction::Reject, document).await
}

/// Withdraws a published release
///
/// The service deletes its parts and answers 410 afterwards. Its disclosures remain in the ledger, and an equal job is `gone`.
#[utoipa::path(post, path = "/v1/releases/{id}/withdraw", tag = "releases", params(("id" = Uuid, Path)), request_body = ReasonDocument,
    responses(
        (status = 200, body = Manifest)))]
pub(in crate::api) async fn withdraw(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    document: JsonDocument,
) -> Result<Json<Manifest>, Problem> {
    apply_transition(&app, &caller, id, ReleaseAction::Withdraw, document).await
}

/// The history of a release.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct ReleaseHistoryPage {
    /// The transitions, oldest first.
    items: Vec<ReleaseEvent>,
    /// Always null: there are few.
    next: Option<String>,
    /// The statements about its people that the release rests on, oldest first.
    statements: Vec<PeopleStatement>,
}

/// Lists the transitions of a release, oldest first
///
/// Each transition has a reason and a key. The history remains after a rejection or withdrawal. `statements` are those that the
/// release rests on: who declared what of its people, and why.
#[utoipa::path(get, path = "/v1/releases/{id}/history", tag = "releases", params(("id" = Uuid, Path)),
    responses((status = 200, body = ReleaseHistoryPage)))]
pub(in crate::api) async fn history(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
) -> Result<Json<ReleaseHistoryPage>, Problem> {
    let ReleaseHistory { events, statements } = app.service.history(&caller, id).await?;
    Ok(Json(ReleaseHistoryPage { items: events, next: None, statements }))
}
