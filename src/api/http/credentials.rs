use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::identity::{Issuer, Scope};
use crate::problem::{Kind, Problem};

/// What callers prove themselves with; with nothing where there is no authentication.
#[derive(Clone, Default)]
pub struct AuthMethods {
    /// API keys.
    pub keys: bool,
    /// The tokens of an issuer.
    pub issuer: Option<Arc<Issuer>>,
}

impl AuthMethods {
    /// Whether a caller must prove anything; else only loopback names are served, to whoever asks.
    #[must_use]
    pub const fn something(&self) -> bool {
        self.keys || self.issuer.is_some()
    }
}

/// A refusal that says how to do better (RFC 6750).
pub(in crate::api) fn with_challenge(problem: Problem, needed: &[Scope], sent: bool) -> Response {
    let error = match problem.kind {
        Kind::Unauthenticated if sent => ", error=\"invalid_token\"".to_owned(),
        Kind::Unauthenticated => String::new(),
        // any one of them would do
        Kind::Forbidden => {
            let named = needed.first().map_or("", |scope| scope.name());
            format!(", error=\"insufficient_scope\", scope=\"{named}\"")
        }
        _ => return problem.into_response(),
    };
    let mut response = problem.into_response();
    if let Ok(challenge) = HeaderValue::try_from(format!("Bearer realm=\"guardian\"{error}")) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// The token of a bearer header. Of several headers none counts: a gateway may have looked at another than this would.
pub(in crate::api) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut stated = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (stated.next(), stated.next()) else { return None };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
