//! The OpenAPI document, made from the handlers. A copy stands in `openapi/openapi.json`; a test holds them equal.

pub(super) mod complete;
mod examples;
pub(super) mod hoist;
mod problem_lists;
pub(super) mod ui;

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, ResponseBuilder};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;

use super::http::access::{RouteAccess, either};
use super::http::app::App;
use super::routes::table;
use crate::identity::Scope;
use crate::problem::{FaultDocument, ProblemDocument};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Guardian",
        description = "Publishes microdata tables under privacy rules: many rules, one provable release, and a ledger so that the next release does not undo it.\n\n\
            Upload a table (`upload_dataset`), look at what would come out (`plan_job`), publish (`submit_job`), download \
            (`get_release`, `download_part`, `download_archive`).\n\n\
            Every refusal is a problem document (RFC 9457, `application/problem+json`); each operation lists those that it can \
            answer. Beside them, a path that does not exist is answered 404 `not-found`, and a method that a path does not have 405 \
            `method-not-allowed`. No problem holds a value of the data.\n\n\
            Every answer has an `X-Request-Id`: the one that was sent, or a new one. Ids are UUIDs, times RFC 3339 in UTC. Lists \
            come in pages: `next` of one is `cursor` of the following. Unknown members are refused. Every operation that \
            answers GET answers HEAD too.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(ProblemDocument, FaultDocument)),
    tags(
        (name = "analyses", description = "Calculators"),
        (name = "datasets", description = "Uploaded tables"),
        (name = "plans", description = "Dry runs"),
        (name = "jobs", description = "Publishing"),
        (name = "releases", description = "What was published"),
        (name = "policies", description = "Specifications under a name"),
        (name = "taxonomies", description = "Trees over the values of attributes"),
        (name = "verifications", description = "What tables keep, whoever published them"),
        (name = "ledger", description = "What was published before"),
        (name = "operation", description = "Health, and who did what"),
    ),
)]
struct Description;

/// Every route with its description.
pub(super) fn routes() -> OpenApiRouter<App> {
    let mut routes = table::with_handlers(OpenApiRouter::with_openapi(Description::openapi()));
    SecurityScopes.modify(routes.get_openapi_mut());
    routes
}

/// Says of every operation which scope it needs, from the table that the service goes by.
struct SecurityScopes;

impl Modify for SecurityScopes {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("An API key, or where the service takes them a JSON web token of its issuer. Only a service with `--auth` asks for one."));
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("key", SecurityScheme::Http(scheme.build()));
        for (path, item) in &mut document.paths.paths {
            let operations = [
                ("GET", &mut item.get),
                ("POST", &mut item.post),
                ("PUT", &mut item.put),
                ("DELETE", &mut item.delete),
            ];
            for (method, operation) in operations {
                let asked = table::access(method, path);
                let scopes = asked.as_ref().map(RouteAccess::scopes).unwrap_or_default();
                if let (Some(operation), false) = (operation, scopes.is_empty()) {
                    let needs = format!("the key lacks the scope {}", either(scopes, "`"));
                    let requirement = |scope: &Scope| SecurityRequirement::new("key", [scope.name()]);
                    operation.security = Some(scopes.iter().map(requirement).collect());
                    for (status, what) in [("401", "no key, or one that does not work"), ("403", &needs)] {
                        let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
                        let response = ResponseBuilder::new().description(what);
                        let response = response.content("application/problem+json", problem).build();
                        operation.responses.responses.insert(status.to_owned(), response.into());
                    }
                }
            }
        }
    }
}

/// The document of routes, completed.
///
/// # Errors
/// When the document cannot be written as JSON.
pub(super) fn completed(document: &utoipa::openapi::OpenApi) -> Result<serde_json::Value, serde_json::Error> {
    serde_json::to_value(document).map(complete::complete)
}

/// The OpenAPI document as pretty JSON with a final line feed.
///
/// # Errors
/// When the document cannot be written as JSON.
pub fn document() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&completed(&routes().to_openapi())?)?;
    text.push('\n');
    Ok(text)
}
