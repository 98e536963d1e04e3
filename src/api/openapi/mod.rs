//! The OpenAPI document of the routes; a test compares it with `openapi/openapi.json`.

pub(super) mod complete;
pub(super) mod declared;
mod examples;
pub(super) mod hoist;
mod older;
mod order;
mod problem_lists;
mod security;
pub(super) mod ui;

use std::sync::LazyLock;

use serde_json::Value;
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;

use self::order::InOrder;
use self::security::SecurityScopes;
use super::http::app::App;
use super::routes::table;
use crate::problem::{FaultDocument, FaultRemedy, PatchOperationDocument, ProblemDocument};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Guardian",
        description = "Publishes microdata tables under privacy rules: it verifies every release and records it, so that later releases cannot undo it.\n\n\
            Upload a table (`upload_dataset`), plan a release (`plan_job`), publish it (`submit_job`) and download it \
            (`get_release`, `download_part`, `download_archive`).\n\n\
            Every refusal is a problem document (RFC 9457, `application/problem+json`); each operation lists its problems. In \
            addition, an unknown path is answered 404 `not-found`, and an unsupported method 405 `method-not-allowed`. No problem \
            contains a value of the data.\n\n\
            Every answer has an `X-Request-Id`: that of the request, or a new one. Ids are UUIDs, times RFC 3339 in UTC. Lists \
            have pages: `next` of a page is the `cursor` of the following one. Unknown members are refused. Every GET operation \
            also answers HEAD.",
        contact(name = "The maintainers of Guardian"),
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    servers((url = "/", description = "This service")),
    components(schemas(ProblemDocument, FaultDocument, FaultRemedy, PatchOperationDocument)),
    tags(
        (name = "datasets", description = "Uploaded microdata tables"),
        (name = "plans", description = "Dry runs of jobs"),
        (name = "jobs", description = "Publication of releases"),
        (name = "releases", description = "Published releases and attacks on them"),
        (name = "verifications", description = "Verification of releases and external tables"),
        (name = "populations", description = "Named sets of persons, and statements about them"),
        (name = "policies", description = "Named, versioned specifications"),
        (name = "taxonomies", description = "Named, versioned trees over attribute values"),
        (name = "ledger", description = "Disclosures, active rules and statements of series"),
        (name = "analyses", description = "Calculators on given numbers"),
        (name = "operation", description = "Health and audit log"),
    ),
)]
struct Description;

/// The router of all routes with their descriptions.
pub(super) fn routes() -> OpenApiRouter<App> {
    let mut routes = table::with_handlers(OpenApiRouter::with_openapi(Description::openapi()));
    SecurityScopes.modify(routes.get_openapi_mut());
    routes
}

/// The completed document of the routes, made when it is first asked for: no request but those of the document waits for it.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    // writing cannot fail, as the committed copy shows
    complete::complete(serde_json::to_value(routes().to_openapi()).unwrap_or_default())
});

/// The OpenAPI document.
pub fn document() -> &'static Value {
    &DOCUMENT
}

/// The OpenAPI document as pretty JSON with a final line feed.
///
/// # Errors
/// If the document cannot be written as JSON.
pub fn document_text() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&InOrder::new(document()))?;
    text.push('\n');
    Ok(text)
}
