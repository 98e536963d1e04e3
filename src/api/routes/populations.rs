//! Populations, and statements about their people.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{JsonDocument, NamePath, QueryParameters};
use crate::api::http::page::{self, ListPage, PageQuery};
use crate::api::openapi::declared::{PopulationDocument, PopulationStatementDocument};
use crate::problem::Problem;
use crate::report::{DefinedPopulation, PeopleStatement, PopulationDetails, PopulationItem, SeriesDisclosure};
use crate::spec::path_segment;

/// Defines a population
///
/// A population is a named set of persons, with the key systems that identify them. Uploads name it. Defining it again
/// replaces the definition; an equal one changes nothing. A key system never changes its components or fold, and as soon
/// as a table of the population is published, key systems are only added at the end. `disjoint_from` makes one statement
/// for each place; statements are never taken back. The population and its statements are recorded together or not at all.
#[utoipa::path(put, path = "/v1/populations/{name}", tag = "populations", params(("name" = String, Path)),
    request_body = PopulationDocument,
    responses(
        (status = 201, body = DefinedPopulation, headers(("Location" = String))),
        (status = 200, body = DefinedPopulation, headers(("Location" = String)))))]
pub(in crate::api) async fn put(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    JsonDocument(document): JsonDocument,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<DefinedPopulation>), Problem> {
    let (population, is_new) = app.service.put_population(&caller, name, &document).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let location = location(&population.item.name);
    Ok((status, [(header::LOCATION, location)], Json(population)))
}

/// Lists the populations, by name
///
/// The list omits statements and ledgers.
#[utoipa::path(get, path = "/v1/populations", tag = "populations", params(PageQuery),
    responses((status = 200, body = ListPage<PopulationItem>)))]
pub(in crate::api) async fn list(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    QueryParameters(paging): QueryParameters<PageQuery>,
) -> Result<Json<ListPage<PopulationItem>>, Problem> {
    let after = page::name_cursor(paging.cursor.as_deref())?;
    let page = app.service.populations(&caller, after, page::limit(paging.limit)?).await?;
    let next = page.next.map(|name| page::after_name(&name));
    Ok(Json(ListPage { items: page.items, next }))
}

/// Returns a population with what was said and published of it, oldest first
///
/// A page has statements about the population and its datasets, and datasets: at most `limit` of both together, by their
/// time. With the datasets come their releases, and their ledger: disclosures, active rules, attributes, and the pairs of
/// attributes that no later release can publish together. The answer never has keys of persons or their number.
#[utoipa::path(get, path = "/v1/populations/{name}", tag = "populations", params(("name" = String, Path), PageQuery),
    responses((status = 200, body = PopulationDetails)))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    QueryParameters(paging): QueryParameters<PageQuery>,
) -> Result<Json<PopulationDetails>, Problem> {
    let (after, limit) = (page::cursor(paging.cursor.as_deref())?, page::limit(paging.limit)?);
    let _permit = app.plans.try_acquire(&caller.tenant)?;
    app.service.population(&caller, &name, after, limit).await.map(Json)
}

/// A receipt for the end of a republication.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct RepublicationReceipt {
    /// The population.
    population: String,
    /// The time of the end.
    ended_at: Option<DateTime<Utc>>,
    /// Whether the key of its state is destroyed, so that no copy of its bytes in the store is readable.
    key_destroyed: bool,
}

/// Ends the republication of a population
///
/// The service destroys the state that the next night would go on from, and its key: nothing then says which value a person has.
/// Releases and ledger remain, and persons who were published cannot be published again in this population or elsewhere. A second
/// call gives the same receipt.
#[utoipa::path(delete, path = "/v1/populations/{name}/republication", tag = "populations", params(("name" = String, Path)),
    responses((status = 200, body = RepublicationReceipt)))]
pub(in crate::api) async fn end_republication(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
) -> Result<Json<RepublicationReceipt>, Problem> {
    let ended = app.service.end_republication(&caller, &name).await?;
    let key_destroyed = ended.wrapped_key.is_none();
    Ok(Json(RepublicationReceipt { population: name, ended_at: ended.ended_at, key_destroyed }))
}

/// The statements that now stand.
#[derive(Serialize, ToSchema)]
#[schema(as = PopulationStatementsRecorded)]
pub(in crate::api) struct RecordedPeopleStatements {
    /// Those about places, oldest first. What was declared before of two places stands as it was declared then.
    statements: Vec<PeopleStatement>,
    /// The recorded disclosures of external tables.
    disclosures: Vec<SeriesDisclosure>,
}

/// Records statements about a population
///
/// `disjoint_from`: the population has no person in common with these places. `others`: two tables that are alike speak of
/// different people. `tables`, `aliases`, `functions` and `new`: external tables, other names of attributes, computed
/// attributes, and attributes that no earlier table has. Statements are immutable, and are recorded together or not at
/// all. One that published tables show to be wrong is refused.
#[utoipa::path(post, path = "/v1/populations/{name}/statements", tag = "populations", params(("name" = String, Path)),
    request_body = PopulationStatementDocument,
    responses((status = 201, body = RecordedPeopleStatements, headers(("Location" = String)))))]
pub(in crate::api) async fn declare(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    JsonDocument(document): JsonDocument,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<RecordedPeopleStatements>), Problem> {
    let _permit = app.plans.try_acquire(&caller.tenant)?;
    let recorded = app.service.state_of_population(&caller, &name, &document).await?;
    let mut disclosures = Vec::new();
    if !recorded.disclosures.is_empty() {
        // external tables stand on every page
        let page = app.service.series(&caller, name.clone(), None, 1).await?;
        disclosures
            .extend(page.series.disclosures.into_iter().filter(|shown| recorded.disclosures.contains(&shown.id)));
    }
    let answer = RecordedPeopleStatements { statements: recorded.statements, disclosures };
    Ok((StatusCode::CREATED, [(header::LOCATION, location(&name))], Json(answer)))
}

fn location(name: &str) -> String {
    format!("/v1/populations/{}", path_segment(name))
}
