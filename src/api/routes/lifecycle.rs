//! The life of a release: approve, reject, withdraw.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::served;
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{IdPath, JsonDocument};
use crate::api::http::page::ListPage;
use crate::identity::Caller;
use crate::ports::{ReleaseAction, ReleaseEvent};
use crate::problem::{Kind, Problem};
use crate::report::Manifest;

/// Why it is done.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct Reason {
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
        || Problem::new(Kind::MalformedBody, "send {\"reason\": \"…\"}, a text of 1 to 500 characters, alone");
    let Reason { reason } = serde_json::from_value(document).map_err(|_| malformed())?;
    if reason.trim().is_empty() || reason.chars().count() > 500 || reason.contains('\0') {
        return Err(malformed());
    }
    served::manifest(&app.service.act(caller, id, act, reason).await?).map(Json)
}

/// Publishes a held release
///
/// From then on whoever may read releases can read it. Where the tenant's settings ask for it, by another key only than those that submitted the jobs which the release answers.
#[utoipa::path(post, path = "/v1/releases/{id}/approve", tag = "releases", params(("id" = Uuid, Path)), request_body = Reason,
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

/// Gives up a held release
///
/// Its parts are deleted. When nobody ever read one of them, it is as if it had not been; else what it disclosed stays in the
/// ledger, and an equal job is refused.
#[utoipa::path(post, path = "/v1/releases/{id}/reject", tag = "releases", params(("id" = Uuid, Path)), request_body = Reason,
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

/// Ends the serving of a published release
///
/// Its parts are deleted and it is answered 410 from then on. What it disclosed stays in the ledger, and an equal job is
/// answered `gone`.
#[utoipa::path(post, path = "/v1/releases/{id}/withdraw", tag = "releases", params(("id" = Uuid, Path)), request_body = Reason,
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

/// What became of a release, oldest first
///
/// Each change of its status, with the reason and the key; also of a release that is rejected or withdrawn.
#[utoipa::path(get, path = "/v1/releases/{id}/history", tag = "releases", params(("id" = Uuid, Path)),
    responses((status = 200, body = ListPage<ReleaseEvent>)))]
pub(in crate::api) async fn history(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
) -> Result<Json<ListPage<ReleaseEvent>>, Problem> {
    Ok(Json(ListPage { items: app.service.history(&caller, id).await?, next: None }))
}
