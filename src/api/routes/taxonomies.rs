//! Taxonomies: trees over the values of attributes, under names and in versions.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{DocumentOrCsv, NamePath, QueryParameters};
use crate::api::http::page;
use crate::api::http::page::{ListPage, PageQuery};
use crate::ports::{TaxonomyRecord, TaxonomyVersion, problem_of};
use crate::problem::Problem;
use crate::spec;

/// A tree to be kept.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "the document is read by hand, so that one answer names every fault; this describes its shape"
)]
pub(in crate::api) struct TaxonomyDocument {
    /// The tree.
    #[schema(value_type = Object)]
    taxonomy: Value,
}

/// A version of a taxonomy, without its tree.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct TaxonomyItem {
    name: String,
    version: u32,
    /// What a job names this version by.
    reference: String,
    created_at: DateTime<Utc>,
}

/// A version of a taxonomy.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct StoredTaxonomy {
    #[serde(flatten)]
    item: TaxonomyItem,
    /// The tree, in the one spelling in which equal trees are written.
    #[schema(value_type = Object)]
    taxonomy: Value,
}

impl From<TaxonomyVersion> for TaxonomyItem {
    fn from(version: TaxonomyVersion) -> Self {
        Self { reference: version.pin(), name: version.name, version: version.version, created_at: version.created_at }
    }
}

impl From<TaxonomyRecord> for StoredTaxonomy {
    fn from(record: TaxonomyRecord) -> Self {
        Self { item: record.of.into(), taxonomy: record.tree }
    }
}

/// Writes the next version of a taxonomy
///
/// A version never changes; when the tree is equal to the latest version's, no other is made and that one is the answer. A job
/// names it for an attribute as `"taxonomy": "NAME-v3"`, or the latest version as `"NAME"`; what it names then is written out in
/// the job. As CSV it has a header and one row for each value: the value, then the nodes above it, the nearest first. Where
/// the rows end in several nodes, a root `*` stands above these.
#[utoipa::path(put, path = "/v1/taxonomies/{name}", tag = "taxonomies", params(("name" = String, Path,
        description = "The name of the taxonomy: 1 to 100 of a-z, 0-9, '.', '_' and '-', the first a letter or a digit, not ending like -v3.")),
    request_body(content((TaxonomyDocument = "application/json"), (String = "text/csv"))),
    responses(
        (status = 201, description = "a version was written", body = StoredTaxonomy, headers(("Location" = String))),
        (status = 200, description = "the latest version is equal", body = StoredTaxonomy, headers(("Location" = String)))))]
pub(in crate::api) async fn put(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    body: DocumentOrCsv,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<StoredTaxonomy>), Problem> {
    // tens of thousands of nodes are read in milliseconds
    let tree = match &body {
        DocumentOrCsv::Document(document) => spec::read_taxonomy(document).map_err(Problem::of_faults)?,
        DocumentOrCsv::Csv(bytes) => spec::read_levels(bytes)?,
    };
    let (record, made) = app.service.put_taxonomy(&caller, name, &tree).await?;
    let status = if made { StatusCode::CREATED } else { StatusCode::OK };
    let location = format!("/v1/taxonomies/{}?version={}", record.of.name, record.of.version);
    Ok((status, [(header::LOCATION, location)], Json(record.into())))
}

/// The taxonomies, the latest version of each
///
/// By name, in pages.
#[utoipa::path(get, path = "/v1/taxonomies", tag = "taxonomies", params(PageQuery),
    responses((status = 200, body = ListPage<TaxonomyItem>)))]
pub(in crate::api) async fn list(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    QueryParameters(paging): QueryParameters<PageQuery>,
) -> Result<Json<ListPage<TaxonomyItem>>, Problem> {
    let cursor = page::cursor(paging.cursor.as_deref())?;
    let page = app.service.store.taxonomies(&caller.tenant, cursor, page::limit(paging.limit)?).await;
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

/// A version of a taxonomy
///
/// Without `version`, the latest.
#[utoipa::path(get, path = "/v1/taxonomies/{name}", tag = "taxonomies", params(("name" = String, Path), VersionQuery),
    responses((status = 200, body = StoredTaxonomy)))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    QueryParameters(query): QueryParameters<VersionQuery>,
) -> Result<Json<StoredTaxonomy>, Problem> {
    Ok(Json(app.service.taxonomy(&caller, &name, query.version).await?.into()))
}

/// Deletes a taxonomy
///
/// All its versions. Jobs and releases that named it have it written out and go on; later versions go on counting.
#[utoipa::path(delete, path = "/v1/taxonomies/{name}", tag = "taxonomies", params(("name" = String, Path)),
    responses((status = 200, description = "the version that was the latest", body = TaxonomyItem)))]
pub(in crate::api) async fn delete(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
) -> Result<Json<TaxonomyItem>, Problem> {
    Ok(Json(app.service.delete_taxonomy(&caller, &name).await?.into()))
}
