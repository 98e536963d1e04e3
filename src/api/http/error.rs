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

/// The pause before a repetition, where nothing better is known.
const RETRY_SECONDS: u32 = 5;

/// The media type of problems (RFC 9457).
pub(in crate::api) const PROBLEM_JSON: &str = "application/problem+json";

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let instance = Uuid::now_v7().urn().to_string();
        let status = StatusCode::from_u16(self.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Body::from(self.to_json(&instance).to_string()));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        let is_temporary = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let retry_after = self.retry_after.or(is_temporary.then_some(RETRY_SECONDS));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_that_pass_say_when_to_come_back() {
        for kind in Kind::ALL {
            let response = Problem::new(*kind, "detail").into_response();
            let is_temporary = [429, 503].contains(&kind.status());
            assert_eq!(response.headers().contains_key(header::RETRY_AFTER), is_temporary, "{}", kind.name());
        }
        let own = Problem::new(Kind::Quota, "detail").retry_after(7).into_response();
        assert_eq!(own.headers()[header::RETRY_AFTER], "7");
    }
}
