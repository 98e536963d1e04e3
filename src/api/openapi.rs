//! The OpenAPI document, made from the handlers. A copy stands in `openapi/openapi.json`; a test holds them equal.

use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{App, archive, datasets, events, health, jobs, parts, plans, releases, upload};
use crate::problem::{FaultDocument, ProblemDocument};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Guardian",
        description = "Publishes microdata tables under privacy rules: many rules, one provable release, and a ledger so that the next release does not undo it.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(ProblemDocument, FaultDocument)),
    tags(
        (name = "datasets", description = "Uploaded tables"),
        (name = "plans", description = "Dry runs"),
        (name = "jobs", description = "Publishing"),
        (name = "releases", description = "What was published"),
        (name = "operation", description = "Health"),
    ),
)]
struct Description;

/// Every route with its description.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(upload::create, datasets::list))
        .routes(routes!(datasets::get, datasets::purge))
        .routes(routes!(plans::create))
        .routes(routes!(jobs::submit, jobs::list))
        .routes(routes!(jobs::get, jobs::cancel))
        .routes(routes!(events::stream_events))
        .routes(routes!(releases::list))
        .routes(routes!(releases::get))
        .routes(routes!(releases::report))
        .routes(routes!(parts::get))
        .routes(routes!(archive::get))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
}

/// The OpenAPI document as pretty JSON with a final line feed.
///
/// # Errors
/// When the document cannot be written as JSON.
pub fn document() -> Result<String, serde_json::Error> {
    let mut text = routes().to_openapi().to_pretty_json()?;
    text.push('\n');
    Ok(text)
}
