//! The OpenAPI document as it is served, and Swagger UI over it.

use std::sync::Arc;

use axum::routing::get;
use axum::{Json, Router};
use utoipa::openapi::{OpenApi, Server};
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::gateway::Base;

/// The routes of both.
pub(super) fn routes(document: OpenApi) -> Router {
    let document = Arc::new(document);
    let serve = move |base: Base| {
        let mut document = OpenApi::clone(&document);
        if !base.as_str().is_empty() {
            document.servers = Some(vec![Server::new(base.as_str())]);
        }
        async move { Json(document) }
    };
    // relative to the page, so that it is found under every prefix
    let config = Config::new(["../openapi.json"]);
    Router::new().route("/openapi.json", get(serve)).merge(SwaggerUi::new("/docs").config(config))
}
