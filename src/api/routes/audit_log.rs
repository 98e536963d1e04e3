//! The audit log, for those who run the service and those who answer for its releases.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, SubsecRound, Utc};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::QueryParameters;
use crate::api::http::page;
use crate::api::http::page::ListPage;
use crate::ports::{AuditAction, AuditEntry, AuditFilter, problem_of};
use crate::problem::{Kind, Problem};

/// Which lines to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct AuditQuery {
    /// Only what was done at this time or later.
    since: Option<DateTime<Utc>>,
    /// Only this action, such as `release.approve`.
    action: Option<String>,
    /// The most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Who did what, newest first
///
/// The log only grows. It holds ids and names of actions, never a value of the data. `key` is null without authentication, from
/// the command line and for what the service does by itself.
#[utoipa::path(get, path = "/v1/audit-log", tag = "operation", params(AuditQuery),
    responses((status = 200, body = ListPage<AuditEntry>)))]
pub(in crate::api) async fn list(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    QueryParameters(query): QueryParameters<AuditQuery>,
) -> Result<Json<ListPage<AuditEntry>>, Problem> {
    let named = |name: &str| AuditAction::ALL.into_iter().find(|action| action.name() == name);
    let unknown = || {
        let names = AuditAction::ALL.map(AuditAction::name).join(", ");
        Problem::new(Kind::MalformedRequest, format!("action must be one of {names}"))
    };
    let action = query.action.as_deref().map(|name| named(name).ok_or_else(unknown)).transpose()?;
    // times are kept in whole microseconds
    let filter = AuditFilter { since: query.since.map(|since| since.trunc_subsecs(6)), action };
    let cursor = page::cursor(query.cursor.as_deref())?;
    let page = app.service.store.audit(&caller.tenant, filter, cursor, page::limit(query.limit)?).await;
    Ok(Json(ListPage::new(page.map_err(|error| problem_of(&error))?, Ok)?))
}
