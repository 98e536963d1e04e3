//! The audit log, for operators and approvers.

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
use crate::ports::{AuditAction, AuditEntry, AuditFilter};
use crate::problem::{Kind, Problem};

/// Filters of the audit log.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct AuditQuery {
    /// Only entries of this time or later.
    since: Option<DateTime<Utc>>,
    /// Only entries of this action, such as `release.approve`.
    action: Option<String>,
    /// The maximum number of items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// Lists the audit log, newest first
///
/// The log is append-only. It contains ids and names of actions, but no value of the data. `key` is null without authentication,
/// for the command line and for actions of the service itself.
#[utoipa::path(get, path = "/v1/audit-log", tag = "operation", params(AuditQuery),
    responses((status = 200, body = ListPage<AuditEntry>)))]
pub(in crate::api) async fn list(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    QueryParameters(query): QueryParameters<AuditQuery>,
) -> Result<Json<ListPage<AuditEntry>>, Problem> {
    let unknown = |_| {
        let names = AuditAction::ALL.map(AuditAction::as_str).join(", ");
        Problem::new(Kind::MalformedRequest, format!("action must be one of {names}"))
    };
    let action = query.action.as_deref().map(AuditAction::try_from).transpose().map_err(unknown)?;
    // the store keeps microseconds
    let filter = AuditFilter { since: query.since.map(|since| since.trunc_subsecs(6)), action };
    let cursor = page::cursor(query.cursor.as_deref())?;
    let page = app.service.store.audit(&caller.tenant, filter, cursor, page::limit(query.limit)?).await;
    Ok(Json(ListPage::new(page?, Ok)?))
}
