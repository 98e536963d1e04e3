//! Policies: named, versioned job specifications.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{JsonDocument, NamePath, QueryParameters};
use crate::api::http::page;
use crate::api::http::page::{ListPage, PageQuery};
use crate::ports::{PolicyRecord, PolicyVersion, problem_of};
use crate::problem::Problem;

/// A specification to be kept.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "the document is read by hand, so that one answer names every fault; this describes its shape"
)]
pub(in crate::api) struct PolicyDocument {
    /// A job document without `dataset`.
    #[schema(value_type = Object)]
    specification: Value,
}

/// A version of a policy, without its specification.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct PolicyItem {
    name: String,
    version: u32,
    /// What a job names it by.
    policy: String,
    created_at: DateTime<Utc>,
}

/// A version of a policy.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct Policy {
    #[serde(flatten)]
    item: PolicyItem,
    /// As it was sent.
    #[schema(value_type = Object)]
    specification: Value,
}

impl From<PolicyVersion> for PolicyItem {
    fn from(version: PolicyVersion) -> Self {
        Self { policy: version.pin(), name: version.name, version: version.version, created_at: version.created_at }
    }
}

impl From<PolicyRecord> for Policy {
    fn from(record: PolicyRecord) -> Self {
        Self { item: record.of.into(), specification: record.specification }
    }
}

/// Writes the next version of a policy
///
/// A version never changes. The specification is judged as far as it can be without a table; when it is equal to the latest
/// version's, no other is made and that one is the answer. A job or plan names a version as `"policy": "NAME-v3"`; what stands
/// beside it replaces the policy's members.
#[utoipa::path(put, path = "/v1/policies/{name}", tag = "policies", params(("name" = String, Path,
        description = "The name of the policy: 1 to 100 of a-z, 0-9, '.', '_' and '-', the first a letter or a digit, not ending like -v3.")),
    request_body = PolicyDocument,
    responses(
        (status = 201, description = "a version was written", body = Policy, headers(("Location" = String))),
        (status = 200, description = "the latest version is equal", body = Policy, headers(("Location" = String)))))]
pub(in crate::api) async fn put(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    JsonDocument(document): JsonDocument,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Policy>), Problem> {
    let (record, made) = app.service.put_policy(&caller, name, &document).await?;
    let status = if made { StatusCode::CREATED } else { StatusCode::OK };
    let location = format!("/v1/policies/{}?version={}", record.of.name, record.of.version);
    Ok((status, [(header::LOCATION, location)], Json(record.into())))
}

/// The policies, the latest version of each
///
/// By name, in pages.
#[utoipa::path(get, path = "/v1/policies", tag = "policies", params(PageQuery),
    responses((status = 200, body = ListPage<PolicyItem>)))]
pub(in crate::api) async fn list(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    QueryParameters(paging): QueryParameters<PageQuery>,
) -> Result<Json<ListPage<PolicyItem>>, Problem> {
    let cursor = page::cursor(paging.cursor.as_deref())?;
    let page = app.service.store.policies(&caller.tenant, cursor, page::limit(paging.limit)?).await;
    Ok(Json(ListPage::new(page.map_err(|error| problem_of(&error))?, |version| Ok(version.into()))?))
}

/// Which version to give.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct VersionQuery {
    /// The version; the latest when not given.
    #[param(minimum = 1)]
    version: Option<u32>,
}

/// A version of a policy
///
/// As it was written; without `version`, the latest.
#[utoipa::path(get, path = "/v1/policies/{name}", tag = "policies", params(("name" = String, Path), VersionQuery),
    responses((status = 200, body = Policy)))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    QueryParameters(query): QueryParameters<VersionQuery>,
) -> Result<Json<Policy>, Problem> {
    Ok(Json(app.service.policy(&caller, &name, query.version).await?.into()))
}

/// The versions of a policy, newest first
///
/// Without their specifications.
#[utoipa::path(get, path = "/v1/policies/{name}/versions", tag = "policies", params(("name" = String, Path), PageQuery),
    responses((status = 200, body = ListPage<PolicyItem>)))]
pub(in crate::api) async fn versions(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    QueryParameters(paging): QueryParameters<PageQuery>,
) -> Result<Json<ListPage<PolicyItem>>, Problem> {
    let cursor = page::cursor(paging.cursor.as_deref())?;
    let page = app.service.policy_versions(&caller, &name, cursor, page::limit(paging.limit)?).await?;
    Ok(Json(ListPage::new(page, |version| Ok(version.into()))?))
}
