//! The scopes that operations require.

use utoipa::Modify;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, ResponseBuilder};

use crate::api::http::access::{RouteAccess, either};
use crate::api::routes::table;
use crate::identity::Scope;

/// Adds the required scopes of the route table to every operation.
pub(super) struct SecurityScopes;

impl Modify for SecurityScopes {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(
            "An API key, or a JSON web token of the accepted issuer. Only a service with `--auth` requires it.",
        ));
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
                    for (status, what) in [("401", "no valid key"), ("403", &needs)] {
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
