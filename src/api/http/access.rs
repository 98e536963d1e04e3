//! Access control: the layer that admits a request's caller to its route.

use std::sync::Arc;

use RouteAccess::{Needs, NeedsOne, Open};
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::body::drain;
use super::credentials::{bearer, with_challenge};
use super::limits::hold_until_sent;
use crate::app::{run_blocking, unauthenticated};
use crate::identity::{Caller, Issuer, Scope, Token};
use crate::problem::{Kind, Problem};

/// The access that a route requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::api) enum RouteAccess {
    /// No key.
    Open,
    /// A key with this scope.
    Needs(Scope),
    /// A key with one of these scopes.
    NeedsOne(&'static [Scope]),
}

impl RouteAccess {
    /// The scopes of which a key needs one; empty for open routes.
    pub(in crate::api) fn scopes(&self) -> &[Scope] {
        match self {
            Open => &[],
            Needs(scope) => std::slice::from_ref(scope),
            NeedsOne(scopes) => scopes,
        }
    }
}

/// State of the access control layer.
#[derive(Clone)]
pub(in crate::api) struct AccessControl {
    pub(in crate::api) app: App,
    /// The access that a method and a path require; no [`Authenticated`] is made for an unknown route.
    pub(in crate::api) required: fn(&str, &str) -> Option<RouteAccess>,
}

/// Adds the caller to a request, or answers it with a problem.
pub(in crate::api) async fn authorize(
    State(control): State<AccessControl>,
    mut request: Request,
    next: Next,
) -> Response {
    // GET handlers answer HEAD too
    let method = if request.method() == Method::HEAD { "GET" } else { request.method().as_str() };
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let Some(asked) = path.and_then(|path| (control.required)(method, path)).filter(|asked| *asked != Open) else {
        return next.run(request).await;
    };
    let sent = bearer(request.headers()).is_some();
    match caller(&control.app, request.headers()).await.and_then(|caller| check_scope(caller, asked)) {
        Ok(caller) => match control.app.bounds.requests.share(&caller.tenant) {
            Ok(share) => {
                request.extensions_mut().insert(caller);
                hold_until_sent(next.run(request).await, share)
            }
            Err(problem) => {
                drain(request.into_body().into_data_stream()).await;
                problem.into_response()
            }
        },
        Err(problem) => with_challenge(problem, asked.scopes(), sent),
    }
}

async fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
    if !app.accepts.is_required() {
        return Ok(Caller::local());
    }
    let Some(token) = bearer(headers) else {
        return Err(Problem::new(Kind::Unauthenticated, "the request has no bearer token"));
    };
    match (&app.accepts.issuer, Token::is_meant(token)) {
        (_, true) if app.accepts.keys => {
            let token = Token::parse(token).ok_or_else(unauthenticated)?;
            app.service.caller(&token).await?.ok_or_else(unauthenticated)
        }
        (Some(issuer), false) => by_issuer(app, Arc::clone(issuer), token.to_owned()).await,
        _ => Err(unauthenticated()),
    }
}

async fn by_issuer(app: &App, issuer: Arc<Issuer>, token: String) -> Result<Caller, Problem> {
    let now = app.service.clock.now();
    // admitting may read the key file
    let admitted = run_blocking("the check of the token", move |_| issuer.admit(&token, now)).await?;
    admitted.map_err(|reason| {
        tracing::debug!(%reason, "token refused");
        unauthenticated()
    })
}

fn check_scope(caller: Caller, asked: RouteAccess) -> Result<Caller, Problem> {
    let scopes = asked.scopes();
    if scopes.iter().any(|scope| caller.has_scope(*scope)) {
        return Ok(caller);
    }
    let detail = format!("the key lacks the scope {}", either(scopes, ""));
    // each of the scopes suffices; the problem names one
    let named = scopes.first().map_or("", |scope| scope.name());
    Err(Problem::new(Kind::Forbidden, detail).with("scope", named))
}

/// A list of alternative scopes in words, each within `quotes`.
pub(in crate::api) fn either(scopes: &[Scope], quotes: &str) -> String {
    scopes.iter().map(|scope| format!("{quotes}{}{quotes}", scope.name())).collect::<Vec<_>>().join(" or ")
}

/// The caller of an admitted request.
pub(in crate::api) struct Authenticated(pub(in crate::api) Caller);

impl<S: Send + Sync> FromRequestParts<S> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.map(Self).ok_or_else(|| Problem::new(Kind::Unauthenticated, "the route is unknown to access control"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::header;

    #[test]
    fn only_a_single_bearer_header_counts() {
        let headers = |text: &str| HeaderMap::from_iter([(header::AUTHORIZATION, text.parse().unwrap())]);
        assert_eq!(bearer(&headers("bearer x")), Some("x"));
        for other in ["Basic x", "Bearer", "x"] {
            assert_eq!(bearer(&headers(other)), None, "{other}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
        let mut twice = headers("Bearer x");
        twice.append(header::AUTHORIZATION, "Bearer x".parse().unwrap());
        assert_eq!(bearer(&twice), None);
    }
}
