//! Conversion of problems to HTTP answers.

use std::any::Any;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use uuid::Uuid;

use crate::problem::{Kind, Problem};

pub(in crate::api) fn no_such_path() -> Problem {
    Problem::new(Kind::NotFound, "the path does not exist")
}

/// The media type of problems (RFC 9457).
pub(in crate::api) const PROBLEM_JSON: &str = "application/problem+json";

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let instance = Uuid::now_v7().urn().to_string();
        let status = StatusCode::from_u16(self.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Body::from(self.to_json(&instance).to_string()));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        let retry_after = self.retry_after.or((self.kind == Kind::Unavailable).then_some(5));
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.kind == Kind::Unauthenticated {
            let challenge = HeaderValue::from_static("Bearer realm=\"guardian\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        // for the log line of the request
        response.extensions_mut().insert(ProblemInstance { kind: self.kind.name(), instance });
        response
    }
}

/// Identifies the problem of an answer.
#[derive(Clone)]
pub(in crate::api) struct ProblemInstance {
    pub(in crate::api) kind: &'static str,
    pub(in crate::api) instance: String,
}

/// The answer after a panic in a handler; ignores the payload, which may contain data.
pub(in crate::api) fn panic_response(_: Box<dyn Any + Send + 'static>) -> Response<Body> {
    Problem::new(Kind::Internal, "the request stopped unexpectedly").into_response()
}
