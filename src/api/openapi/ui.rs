//! The OpenAPI document as it is served, and Swagger UI over it.

use std::sync::Arc;

use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::api::http::gateway::LinkBase;

/// The routes of both.
pub(in crate::api) fn routes(document: Value) -> Router {
    let document = Arc::new(document);
    let serve = move |base: LinkBase| {
        let mut document = Value::clone(&document);
        if !base.as_str().is_empty() {
            document["servers"] = json!([{ "url": base.as_str() }]);
        }
        async move { Json(document) }
    };
    // relative to the page, so that it is found under every prefix
    let config = Config::new(["../openapi.json"]);
    Router::new().route("/openapi.json", get(serve)).merge(SwaggerUi::new("/docs").config(config))
}
