//! The ledger of a series.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{JsonDocument, NamePath, QueryParameters};
use crate::api::http::page::{self, PageQuery};
use crate::ports::Statement;
use crate::problem::{Kind, Problem};
use crate::report::{SeriesDisclosure, SeriesPage};
use crate::spec::path_segment;

/// Returns the ledger of a series
///
/// The answer contains the disclosures, the active rules, the joinable disclosures, and the pairs of attributes that no later
/// release can publish together. Composition checks compare disclosures of the same content and external tables. A page lists at most
/// `limit` datasets, oldest first, with what was published of them; external tables are on each page.
#[utoipa::path(get, path = "/v1/series/{name}", tag = "ledger", params(("name" = String, Path), PageQuery),
    responses((status = 200, body = SeriesPage)))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    QueryParameters(paging): QueryParameters<PageQuery>,
) -> Result<Json<SeriesPage>, Problem> {
    let (after, limit) = (page::cursor(paging.cursor.as_deref())?, page::limit(paging.limit)?);
    let _permit = app.plans.try_acquire(&caller.tenant)?;
    app.service.series(&caller, name, after, limit).await.map(Json)
}

/// The recorded disclosures of a statement.
#[derive(Serialize, ToSchema)]
#[schema(as = Entered)]
pub(in crate::api) struct RecordedDisclosures {
    /// In the order of the request.
    disclosures: Vec<SeriesDisclosure>,
}

/// Records a statement about a population
///
/// The name is that of a population, or the id of a dataset without one. A statement declares external tables, aliases and computed
/// attributes. Every later release of these people must compose with it. A table that is not `plain` tolerates no table with a shared
/// attribute. An alias is another name of an attribute; an alias of itself declares a new attribute. A computed attribute counts as
/// the attributes that determine it. Statements are immutable. `against` of `sequential` can name an external table by the id of its
/// disclosure until its dataset is purged.
#[utoipa::path(post, path = "/v1/series/{name}/disclosures", tag = "ledger", params(("name" = String, Path)),
    request_body = Statement,
    responses((status = 201, body = RecordedDisclosures, headers(("Location" = String)))))]
pub(in crate::api) async fn declare(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    JsonDocument(document): JsonDocument,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<RecordedDisclosures>), Problem> {
    let detail = "send {\"reason\": \"…\", \"tables\": […], \"aliases\": {…}, \"functions\": {…}}, where only the reason is required";
    let statement: Statement =
        serde_json::from_value(document).map_err(|_| Problem::new(Kind::MalformedBody, detail))?;
    let _permit = app.plans.try_acquire(&caller.tenant)?;
    let recorded = app.service.state(&caller, &name, statement).await?;
    let location = format!("/v1/series/{}", path_segment(&name));
    // external tables stand on every page
    let page = app.service.series(&caller, name, None, 1).await?;
    let disclosures = page.series.disclosures.into_iter().filter(|shown| recorded.contains(&shown.id)).collect();
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(RecordedDisclosures { disclosures })))
}
