//! Routes of the OpenAPI document and Swagger UI.

use std::sync::Arc;

use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::order::InOrder;
use crate::api::http::gateway::LinkBase;

/// The routes of the document and its pages.
pub(in crate::api) fn routes(document: Value) -> Router {
    let document = Arc::new(document);
    let serve = move |base: LinkBase| {
        let mut document = Value::clone(&document);
        if !base.as_str().is_empty() {
            document["servers"] = json!([{ "url": base.as_str() }]);
        }
        async move { Json(InOrder::new(&document)).into_response() }
    };
    // relative to the page, for every path prefix
    let config = Config::new(["../openapi.json"]);
    Router::new().route("/openapi.json", get(serve)).merge(SwaggerUi::new("/docs").config(config))
}
