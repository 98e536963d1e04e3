//! Named, versioned job specifications.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{JsonDocument, NamePath, QueryParameters};
use crate::api::http::page::{self, ListPage, PageQuery, VersionQuery};
use crate::api::openapi::declared::{PolicyDocument, PolicySpecification};
use crate::ports::{DocumentKind, DocumentVersion, NamedDocument};
use crate::problem::Problem;

/// A version of a policy, without its specification.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct PolicyItem {
    /// The name of the policy.
    name: String,
    /// The version, from 1; versions are immutable.
    #[schema(minimum = 1)]
    version: u32,
    /// The name and version for the member `policy` of a job.
    policy: String,
    /// The time of the version.
    created_at: DateTime<Utc>,
}

/// A version of a policy with its specification.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct Policy {
    #[serde(flatten)]
    item: PolicyItem,
    /// The specification as submitted.
    #[schema(value_type = PolicySpecification)]
    specification: Value,
}

impl From<DocumentVersion> for PolicyItem {
    fn from(version: DocumentVersion) -> Self {
        Self { policy: version.pin(), name: version.name, version: version.version, created_at: version.created_at }
    }
}

impl From<NamedDocument> for Policy {
    fn from(record: NamedDocument) -> Self {
        Self { item: record.version.into(), specification: record.content }
    }
}

/// Adds a version of a policy
///
/// Versions are immutable. The service checks the specification as far as possible without a dataset. If it equals the latest
/// version, the answer is that version. A job or plan refers to a version as `"policy": "NAME-v3"`; its own members replace those of
/// the policy.
#[utoipa::path(put, path = "/v1/policies/{name}", tag = "policies", params(("name" = String, Path,
        description = "The name of the policy: 1 to 100 characters of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit, without an ending like -v3.")),
    request_body = PolicyDocument,
    responses(
        (status = 201, description = "a new version", body = Policy, headers(("Location" = String))),
        (status = 200, description = "the latest version is equal", body = Policy, headers(("Location" = String)))))]
pub(in crate::api) async fn put(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    JsonDocument(document): JsonDocument,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Policy>), Problem> {
    let (record, made) = app.service.put_policy(&caller, name, &document).await?;
    let status = if made { StatusCode::CREATED } else { StatusCode::OK };
    let location = format!("/v1/policies/{}?version={}", record.version.name, record.version.version);
    Ok((status, [(header::LOCATION, location)], Json(record.into())))
}

/// Lists the latest version of each policy
///
/// The list is sorted by name.
#[utoipa::path(get, path = "/v1/policies", tag = "policies", params(PageQuery),
    responses((status = 200, body = ListPage<PolicyItem>)))]
pub(in crate::api) async fn list(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    QueryParameters(paging): QueryParameters<PageQuery>,
) -> Result<Json<ListPage<PolicyItem>>, Problem> {
    let cursor = page::cursor(paging.cursor.as_deref())?;
    let page =
        app.service.store.documents(DocumentKind::Policy, &caller.tenant, cursor, page::limit(paging.limit)?).await;
    Ok(Json(ListPage::new(page?, |version| Ok(version.into()))?))
}

/// Returns a version of a policy
///
/// The default is the latest version.
#[utoipa::path(get, path = "/v1/policies/{name}", tag = "policies", params(("name" = String, Path), VersionQuery),
    responses((status = 200, body = Policy)))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    QueryParameters(query): QueryParameters<VersionQuery>,
) -> Result<Json<Policy>, Problem> {
    Ok(Json(app.service.document(&caller, DocumentKind::Policy, &name, query.version).await?.into()))
}

/// Lists the versions of a policy, newest first
///
/// The list omits the specifications.
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
