//! Routes of the OpenAPI document and Swagger UI.

use std::sync::LazyLock;

use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};
use axum::{Json, Router};
use serde_json::{Value, json};
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::document;
use super::older::for_3_0;
use super::order::InOrder;
use crate::api::http::gateway::LinkBase;

/// The document in the words of OpenAPI 3.0.
static OLDER: LazyLock<Value> = LazyLock::new(|| for_3_0(document().clone()));

/// The routes of the document and its pages.
pub(in crate::api) fn routes() -> Router {
    // relative to the page, for every path prefix
    let config = Config::new(["../openapi.json"]);
    let documents = Router::new().route("/openapi.json", serve(document)).route("/openapi-3.0.json", serve(|| &OLDER));
    documents.merge(SwaggerUi::new("/docs").config(config))
}

/// Serves a document, with links below the path prefix of the gateway.
fn serve(document: fn() -> &'static Value) -> MethodRouter {
    get(move |base: LinkBase| {
        let mut document = document().clone();
        if !base.as_str().is_empty() {
            document["servers"] = json!([{ "url": base.as_str() }]);
        }
        async move { Json(InOrder::new(&document)).into_response() }
    })
}
