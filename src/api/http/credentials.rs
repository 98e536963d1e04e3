use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::identity::{Issuer, Scope};
use crate::problem::{Kind, Problem};

/// Accepted methods of authentication; without any, the service runs unauthenticated.
#[derive(Clone, Default)]
pub struct AuthMethods {
    /// Whether API keys are accepted.
    pub keys: bool,
    /// The issuer of accepted JSON web tokens.
    pub issuer: Option<Arc<Issuer>>,
}

impl AuthMethods {
    /// Whether authentication is required; otherwise the service accepts only loopback hosts.
    #[must_use]
    pub const fn is_required(&self) -> bool {
        self.keys || self.issuer.is_some()
    }
}

/// An answer with a bearer challenge (RFC 6750).
pub(in crate::api) fn with_challenge(problem: Problem, needed: &[Scope], sent: bool) -> Response {
    let error = match problem.kind {
        Kind::Unauthenticated if sent => ", error=\"invalid_token\"".to_owned(),
        Kind::Unauthenticated => String::new(),
        // each of the scopes suffices; the challenge names one
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

/// The token of the only `Authorization` header; `None` for several, since a gateway may have checked another one.
pub(in crate::api) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
