//! Named, versioned taxonomies of attribute values.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{DocumentOrCsv, NamePath, QueryParameters};
use crate::api::http::page::{self, ListPage, PageQuery, VersionQuery};
use crate::app::read_request;
use crate::microdata::Taxonomy;
use crate::ports::{DocumentKind, DocumentVersion, NamedDocument};
use crate::problem::Problem;
use crate::spec;

/// A version of a taxonomy, without its tree.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct TaxonomyItem {
    /// The name of the taxonomy.
    name: String,
    /// The version, from 1; versions are immutable.
    #[schema(minimum = 1)]
    version: u32,
    /// The name and version for the member `taxonomy` of an attribute.
    reference: String,
    /// The time of the version.
    created_at: DateTime<Utc>,
}

/// A version of a taxonomy with its tree.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct StoredTaxonomy {
    #[serde(flatten)]
    item: TaxonomyItem,
    /// The tree in canonical form.
    #[schema(value_type = Taxonomy)]
    taxonomy: Value,
}

impl From<DocumentVersion> for TaxonomyItem {
    fn from(version: DocumentVersion) -> Self {
        Self { reference: version.pin(), name: version.name, version: version.version, created_at: version.created_at }
    }
}

impl From<NamedDocument> for StoredTaxonomy {
    fn from(record: NamedDocument) -> Self {
        Self { item: record.version.into(), taxonomy: record.content }
    }
}

/// Adds a version of a taxonomy
///
/// Versions are immutable. If the tree equals the latest version, the answer is that version. A job refers to a version for an
/// attribute as `"taxonomy": "NAME-v3"`, or to the latest as `"NAME"`; the stored job contains the tree itself. A CSV taxonomy has a
/// header and one row for each value: the value, then its ancestors, nearest first. If the rows end in several nodes, a root `*`
/// joins them.
#[utoipa::path(put, path = "/v1/taxonomies/{name}", tag = "taxonomies", params(("name" = String, Path,
        description = "The name of the taxonomy: 1 to 100 characters of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit, without an ending like -v3.")),
    request_body(content((ref("#/components/schemas/TaxonomyDocument") = "application/json"), (String = "text/csv"))),
    responses(
        (status = 201, description = "a new version", body = StoredTaxonomy, headers(("Location" = String))),
        (status = 200, description = "the latest version is equal", body = StoredTaxonomy, headers(("Location" = String)))))]
pub(in crate::api) async fn put(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    body: DocumentOrCsv,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<StoredTaxonomy>), Problem> {
    // reading tens of thousands of nodes takes milliseconds
    let tree = match &body {
        DocumentOrCsv::Document(document) => read_request(document, spec::read_taxonomy).await?,
        DocumentOrCsv::Csv(bytes) => spec::read_levels(bytes)?,
    };
    let (record, made) = app.service.put_document(&caller, DocumentKind::Taxonomy, name, tree.written()).await?;
    let status = if made { StatusCode::CREATED } else { StatusCode::OK };
    let location = format!("/v1/taxonomies/{}?version={}", record.version.name, record.version.version);
    Ok((status, [(header::LOCATION, location)], Json(record.into())))
}

/// Lists the latest version of each taxonomy
///
/// The list is sorted by name.
#[utoipa::path(get, path = "/v1/taxonomies", tag = "taxonomies", params(PageQuery),
    responses((status = 200, body = ListPage<TaxonomyItem>)))]
pub(in crate::api) async fn list(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    QueryParameters(paging): QueryParameters<PageQuery>,
) -> Result<Json<ListPage<TaxonomyItem>>, Problem> {
    let cursor = page::cursor(paging.cursor.as_deref())?;
    let page =
        app.service.store.documents(DocumentKind::Taxonomy, &caller.tenant, cursor, page::limit(paging.limit)?).await;
    Ok(Json(ListPage::new(page?, |version| Ok(version.into()))?))
}

/// Returns a version of a taxonomy
///
/// The default is the latest version.
#[utoipa::path(get, path = "/v1/taxonomies/{name}", tag = "taxonomies", params(("name" = String, Path), VersionQuery),
    responses((status = 200, body = StoredTaxonomy)))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    QueryParameters(query): QueryParameters<VersionQuery>,
) -> Result<Json<StoredTaxonomy>, Problem> {
    Ok(Json(app.service.document(&caller, DocumentKind::Taxonomy, &name, query.version).await?.into()))
}

/// Deletes all versions of a taxonomy
///
/// Jobs and releases contain the trees that they use and remain valid. Version numbers continue after a deletion.
#[utoipa::path(delete, path = "/v1/taxonomies/{name}", tag = "taxonomies", params(("name" = String, Path)),
    responses((status = 200, description = "the version that was the latest", body = TaxonomyItem)))]
pub(in crate::api) async fn delete(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
) -> Result<Json<TaxonomyItem>, Problem> {
    Ok(Json(app.service.delete_taxonomy(&caller, &name).await?.into()))
}
