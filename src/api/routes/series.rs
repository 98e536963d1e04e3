//! What the ledger holds of a series.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{JsonDocument, NamePath};
use crate::ports::Statement;
use crate::problem::{Kind, Problem};
use crate::report::{Series, SeriesDisclosure};
use crate::spec::path_segment;

/// What was published of a series
///
/// Disclosures, the rules that stand, which disclosures can be joined, and which pairs of attributes cannot be published side by side
/// any more. Held against each other are disclosures of the same people, and what was entered; the lists show those of all contents.
#[utoipa::path(get, path = "/v1/series/{name}", tag = "ledger", params(("name" = String, Path)),
    responses((status = 200, body = Series)))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
) -> Result<Json<Series>, Problem> {
    let _place = app.plans.try_acquire()?;
    app.service.series(&caller, name).await.map(Json)
}

/// What is stated of a series.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the shape of what is read by the jobs' own type")]
pub(in crate::api) struct StatementDocument {
    /// Why, 1 to 500 characters.
    reason: String,
    /// Tables that were published before or elsewhere.
    tables: Vec<TableDocument>,
    /// Other names of attributes, each with the attribute; a name for itself is a new attribute.
    aliases: BTreeMap<String, String>,
    /// Attributes that are computed from others, each with these.
    functions: BTreeMap<String, Vec<String>>,
}

/// What an entered table is worth beside others: exact tuples, or anything else, beside which no other table may share an attribute.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "describes the shape of what is read by the jobs' own type")]
pub(in crate::api) enum ExternalProtection {
    Plain,
    Exclusive,
}

/// A table that was published before or elsewhere.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the shape of what is read by the jobs' own type")]
pub(in crate::api) struct TableDocument {
    /// What it is called.
    name: String,
    /// Its attributes, by the names of the series.
    attributes: Vec<String>,
    /// What it is worth beside other tables.
    protection: ExternalProtection,
    /// The labels of each attribute that it publishes generalized, null for the missing value: nodes of a taxonomy, or intervals such as
    /// `17..24`. A plain table has none.
    cuts: BTreeMap<String, Vec<Option<String>>>,
    /// The dataset that holds its rows, as they were published: its attributes are columns of that, by their names or aliases. Without
    /// it, nothing by `sequential` can be made against the table.
    dataset: Option<Uuid>,
}

/// The disclosures that were entered.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct Entered {
    /// In the order of the request.
    disclosures: Vec<SeriesDisclosure>,
}

/// States what was published before or elsewhere, and what attributes are called
///
/// Every further release of the series is held to it, whatever its content. A table that is not `plain` tolerates no other that
/// shares an attribute. An alias is another name of an attribute; a name that is stated to be its own alias is a new attribute. What is
/// computed from an attribute counts as that attribute. Nothing that was stated is changed or taken back. A table whose rows a dataset
/// holds can be named in `against` of `sequential` by the id of its disclosure, for as long as the dataset is not purged.
#[utoipa::path(post, path = "/v1/series/{name}/disclosures", tag = "ledger", params(("name" = String, Path)),
    request_body = StatementDocument,
    responses((status = 201, body = Entered, headers(("Location" = String)))))]
pub(in crate::api) async fn state(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    NamePath(name): NamePath,
    JsonDocument(document): JsonDocument,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Entered>), Problem> {
    let detail = "send {\"reason\": \"…\", \"tables\": […], \"aliases\": {…}, \"functions\": {…}}, of which only the reason is needed";
    let statement: Statement =
        serde_json::from_value(document).map_err(|_| Problem::new(Kind::MalformedBody, detail))?;
    let _place = app.plans.try_acquire()?;
    let entered = app.service.state(&caller, &name, statement).await?;
    let location = format!("/v1/series/{}", path_segment(&name));
    let series = app.service.series(&caller, name).await?;
    let disclosures = series.disclosures.into_iter().filter(|shown| entered.contains(&shown.id)).collect();
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(Entered { disclosures })))
}
