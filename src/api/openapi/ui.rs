//! Routes of the OpenAPI document and Swagger UI.

use std::sync::Arc;

use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};
use axum::{Json, Router};
use serde_json::{Value, json};
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::older::for_3_0;
use super::order::InOrder;
use crate::api::http::gateway::LinkBase;

/// The routes of the document and its pages.
pub(in crate::api) fn routes(document: Value) -> Router {
    let older = serve(for_3_0(document.clone()));
    // relative to the page, for every path prefix
    let config = Config::new(["../openapi.json"]);
    let documents = Router::new().route("/openapi.json", serve(document)).route("/openapi-3.0.json", older);
    documents.merge(SwaggerUi::new("/docs").config(config))
}

/// Serves a document, with links below the path prefix of the gateway.
fn serve(document: Value) -> MethodRouter {
    let document = Arc::new(document);
    get(move |base: LinkBase| {
        let mut document = Value::clone(&document);
        if !base.as_str().is_empty() {
            document["servers"] = json!([{ "url": base.as_str() }]);
        }
        async move { Json(InOrder::new(&document)).into_response() }
    })
}
