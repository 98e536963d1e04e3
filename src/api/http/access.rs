//! Who may call what: the one table of routes and scopes, and the layer that holds it.

use std::sync::Arc;

use RouteAccess::{Needs, NeedsOne, Open};
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::Response;

use super::app::App;
use super::credentials::{bearer, with_challenge};
use crate::app::unauthenticated;
use crate::identity::{Caller, Issuer, Scope, Token};
use crate::problem::{Kind, Problem};

/// What a route asks of its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::api) enum RouteAccess {
    /// Nothing.
    Open,
    /// A key with this scope.
    Needs(Scope),
    /// A key with one of these scopes.
    NeedsOne(&'static [Scope]),
}

impl RouteAccess {
    /// The scopes of which a key needs one; none where nothing is asked.
    pub(in crate::api) fn scopes(&self) -> &[Scope] {
        match self {
            Open => &[],
            Needs(scope) => std::slice::from_ref(scope),
            NeedsOne(scopes) => scopes,
        }
    }
}

/// Every route of the document. One that is not here is answered to nobody, because no [`Authenticated`] is made for it.
pub(in crate::api) const ACCESS: &[(&str, &str, RouteAccess)] = &[
    ("POST", "/v1/datasets", Needs(Scope::DatasetsWrite)),
    ("GET", "/v1/datasets", Needs(Scope::DatasetsWrite)),
    ("GET", "/v1/datasets/{id}", Needs(Scope::DatasetsWrite)),
    ("DELETE", "/v1/datasets/{id}", Needs(Scope::DatasetsWrite)),
    ("GET", "/v1/datasets/{id}/profile", Needs(Scope::DatasetsInspect)),
    ("GET", "/v1/datasets/{id}/attributes/{name}/values", Needs(Scope::DatasetsInspect)),
    ("POST", "/v1/plans", Needs(Scope::DatasetsInspect)),
    ("POST", "/v1/jobs", Needs(Scope::Jobs)),
    ("GET", "/v1/jobs", Needs(Scope::Jobs)),
    ("GET", "/v1/jobs/{id}", Needs(Scope::Jobs)),
    ("DELETE", "/v1/jobs/{id}", Needs(Scope::Jobs)),
    ("GET", "/v1/jobs/{id}/events", Needs(Scope::Jobs)),
    ("GET", "/v1/releases", Needs(Scope::ReleasesRead)),
    ("GET", "/v1/releases/{id}", Needs(Scope::ReleasesRead)),
    ("GET", "/v1/releases/{id}/report", Needs(Scope::ReleasesRead)),
    ("GET", "/v1/releases/{id}/internal-report", Needs(Scope::ReleasesInternal)),
    ("GET", "/v1/releases/{id}/tables/{table}/parts/{part}", Needs(Scope::ReleasesRead)),
    ("GET", "/v1/releases/{id}/archive", Needs(Scope::ReleasesRead)),
    ("POST", "/v1/releases/{id}/queries", Needs(Scope::ReleasesRead)),
    ("POST", "/v1/releases/{id}/approve", Needs(Scope::ReleasesApprove)),
    ("POST", "/v1/releases/{id}/reject", Needs(Scope::ReleasesApprove)),
    ("POST", "/v1/releases/{id}/withdraw", Needs(Scope::ReleasesApprove)),
    ("GET", "/v1/releases/{id}/history", Needs(Scope::ReleasesApprove)),
    ("POST", "/v1/releases/{id}/attacks", Needs(Scope::ReleasesRead)),
    ("PUT", "/v1/policies/{name}", Needs(Scope::TaxonomiesWrite)),
    ("GET", "/v1/policies", Needs(Scope::Jobs)),
    ("GET", "/v1/policies/{name}", Needs(Scope::Jobs)),
    ("GET", "/v1/policies/{name}/versions", Needs(Scope::Jobs)),
    ("PUT", "/v1/taxonomies/{name}", Needs(Scope::TaxonomiesWrite)),
    ("DELETE", "/v1/taxonomies/{name}", Needs(Scope::TaxonomiesWrite)),
    ("GET", "/v1/taxonomies", Needs(Scope::Jobs)),
    ("GET", "/v1/taxonomies/{name}", Needs(Scope::Jobs)),
    ("POST", "/v1/verifications", Needs(Scope::Jobs)),
    ("POST", "/v1/analyses/differential-inference", Needs(Scope::ReleasesRead)),
    ("GET", "/v1/series/{name}", Needs(Scope::LedgerRead)),
    ("POST", "/v1/series/{name}/disclosures", Needs(Scope::LedgerOverride)),
    // whoever answers for releases sees who did what, and so does whoever runs the service
    ("GET", "/v1/audit-log", NeedsOne(&[Scope::Operate, Scope::ReleasesApprove])),
    ("GET", "/healthz", Open),
    ("GET", "/readyz", Open),
];

/// What a route asks for; `None` where the table has no such route.
pub(in crate::api) fn access(method: &str, path: &str) -> Option<RouteAccess> {
    ACCESS.iter().find(|(of, route, _)| *of == method && *route == path).map(|(.., access)| *access)
}

/// Makes a request's caller known to its handler, or refuses it.
pub(in crate::api) async fn authorize(State(app): State<App>, mut request: Request, next: Next) -> Response {
    // GET handlers answer HEAD too
    let method = if request.method() == Method::HEAD { "GET" } else { request.method().as_str() };
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let Some(asked) = path.and_then(|path| access(method, path)).filter(|asked| *asked != Open) else {
        return next.run(request).await;
    };
    let sent = bearer(request.headers()).is_some();
    match caller(&app, request.headers()).await.and_then(|caller| check_scope(caller, asked)) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => with_challenge(problem, asked.scopes(), sent),
    }
}

async fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
    if !app.accepts.something() {
        return Ok(Caller::local());
    }
    let Some(token) = bearer(headers) else {
        return Err(Problem::new(Kind::Unauthenticated, "send a key as Authorization: Bearer TOKEN"));
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
    // a file may be read
    let judged = tokio::task::spawn_blocking(move || issuer.admit(&token, now)).await;
    let judged = judged.map_err(|_| Problem::new(Kind::Internal, "the token could not be judged"))?;
    judged.map_err(|reason| {
        tracing::debug!(%reason, "a token was refused");
        unauthenticated()
    })
}

fn check_scope(caller: Caller, asked: RouteAccess) -> Result<Caller, Problem> {
    let scopes = asked.scopes();
    if scopes.iter().any(|scope| caller.has_scope(*scope)) {
        return Ok(caller);
    }
    let detail = format!("the key has not the scope {}", either(scopes, ""));
    // any one of them would do
    let named = scopes.first().map_or("", |scope| scope.name());
    Err(Problem::new(Kind::Forbidden, detail).with("scope", named))
}

/// The scopes of which one is needed, for people, each in `quotes`.
pub(in crate::api) fn either(scopes: &[Scope], quotes: &str) -> String {
    scopes.iter().map(|scope| format!("{quotes}{}{quotes}", scope.name())).collect::<Vec<_>>().join(" or ")
}

/// The caller of a request that was let through.
pub(in crate::api) struct Authenticated(pub(in crate::api) Caller);

impl<S: Send + Sync> FromRequestParts<S> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.map(Self).ok_or_else(|| Problem::new(Kind::Unauthenticated, "nobody may call this"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::header;

    #[test]
    fn the_table_has_exactly_the_routes_of_the_document() {
        let document: serde_json::Value = serde_json::from_str(&crate::api::openapi_document().unwrap()).unwrap();
        let mut described: Vec<(String, String)> = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            let methods = item.as_object().unwrap().keys().map(|method| method.to_uppercase());
            described.extend(methods.map(|method| (method, path.clone())));
        }
        let mut table: Vec<_> = ACCESS.iter().map(|(method, path, _)| (method.to_string(), path.to_string())).collect();
        described.sort();
        table.sort();
        assert_eq!(described, table);
    }

    #[test]
    fn a_bearer_header_is_understood_and_no_other() {
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
