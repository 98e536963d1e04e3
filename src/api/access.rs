//! Who may call what: the one table of routes and scopes, and the layer that holds it.

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::App;
use crate::identity::{Caller, Scope, Token};
use crate::problem::{Kind, Problem};

/// What a route asks of its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    /// Nothing.
    Open,
    /// A key with this scope.
    Needs(Scope),
    /// A key with one of these scopes.
    NeedsOne(&'static [Scope]),
}

use Access::{Needs, NeedsOne, Open};

impl Access {
    /// The scopes of which a key needs one; none where nothing is asked.
    pub(super) fn scopes(&self) -> &[Scope] {
        match self {
            Open => &[],
            Needs(scope) => std::slice::from_ref(scope),
            NeedsOne(scopes) => scopes,
        }
    }
}

/// Every route of the document. One that is not here is answered to nobody, because no [`Who`] is made for it.
pub(super) const ACCESS: &[(&str, &str, Access)] = &[
    ("POST", "/v1/datasets", Needs(Scope::DatasetsWrite)),
    ("GET", "/v1/datasets", Needs(Scope::DatasetsWrite)),
    ("GET", "/v1/datasets/{id}", Needs(Scope::DatasetsWrite)),
    ("DELETE", "/v1/datasets/{id}", Needs(Scope::DatasetsWrite)),
    ("POST", "/v1/plans", Needs(Scope::DatasetsInspect)),
    ("POST", "/v1/jobs", Needs(Scope::Jobs)),
    ("GET", "/v1/jobs", Needs(Scope::Jobs)),
    ("GET", "/v1/jobs/{id}", Needs(Scope::Jobs)),
    ("DELETE", "/v1/jobs/{id}", Needs(Scope::Jobs)),
    ("GET", "/v1/jobs/{id}/events", Needs(Scope::Jobs)),
    ("GET", "/v1/releases", Needs(Scope::ReleasesRead)),
    ("GET", "/v1/releases/{id}", Needs(Scope::ReleasesRead)),
    ("GET", "/v1/releases/{id}/report", Needs(Scope::ReleasesRead)),
    ("GET", "/v1/releases/{id}/tables/{table}/parts/{part}", Needs(Scope::ReleasesRead)),
    ("GET", "/v1/releases/{id}/archive", Needs(Scope::ReleasesRead)),
    ("POST", "/v1/releases/{id}/approve", Needs(Scope::ReleasesApprove)),
    ("POST", "/v1/releases/{id}/reject", Needs(Scope::ReleasesApprove)),
    ("POST", "/v1/releases/{id}/withdraw", Needs(Scope::ReleasesApprove)),
    ("GET", "/v1/releases/{id}/history", Needs(Scope::ReleasesApprove)),
    ("PUT", "/v1/policies/{name}", Needs(Scope::TaxonomiesWrite)),
    ("GET", "/v1/policies", Needs(Scope::Jobs)),
    ("GET", "/v1/policies/{name}", Needs(Scope::Jobs)),
    ("GET", "/v1/policies/{name}/versions", Needs(Scope::Jobs)),
    // whoever answers for releases sees who did what, and so does whoever runs the service
    ("GET", "/v1/audit-log", NeedsOne(&[Scope::Operate, Scope::ReleasesApprove])),
    ("GET", "/healthz", Open),
    ("GET", "/readyz", Open),
];

/// What a route asks for; `None` where the table has no such route.
pub(super) fn access(method: &str, path: &str) -> Option<Access> {
    ACCESS.iter().find(|(of, route, _)| *of == method && *route == path).map(|(.., access)| *access)
}

/// Makes a request's caller known to its handler, or refuses it.
pub(super) async fn authorized(State(app): State<App>, mut request: Request, next: Next) -> Response {
    // GET handlers answer HEAD too
    let method = if request.method() == Method::HEAD { "GET" } else { request.method().as_str() };
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let Some(asked) = path.and_then(|path| access(method, path)).filter(|asked| *asked != Open) else {
        return next.run(request).await;
    };
    match caller(&app, request.headers()).await.and_then(|caller| judged(caller, asked)) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

async fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
    if !app.keys_required {
        return Ok(Caller::local());
    }
    let Some(token) = bearer(headers) else {
        return Err(Problem::new(Kind::Unauthenticated, "send a key as Authorization: Bearer TOKEN"));
    };
    // one answer for whatever is wrong with a key
    let refused = || Problem::new(Kind::Unauthenticated, "the key is unknown, expired or revoked");
    let token = Token::parse(token).ok_or_else(refused)?;
    app.desk.caller(&token).await?.ok_or_else(refused)
}

fn judged(caller: Caller, asked: Access) -> Result<Caller, Problem> {
    let scopes = asked.scopes();
    if scopes.iter().any(|scope| caller.may(*scope)) {
        return Ok(caller);
    }
    let detail = format!("the key has not the scope {}", either(scopes, ""));
    // any one of them would do
    let named = scopes.first().map_or("", |scope| scope.name());
    Err(Problem::new(Kind::Forbidden, detail).with("scope", named))
}

/// The scopes of which one is needed, for people, each in `quotes`.
pub(super) fn either(scopes: &[Scope], quotes: &str) -> String {
    scopes.iter().map(|scope| format!("{quotes}{}{quotes}", scope.name())).collect::<Vec<_>>().join(" or ")
}

/// The token of a bearer header.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let stated = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = stated.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The caller of a request that was let through.
pub(super) struct Who(pub(super) Caller);

impl<S: Send + Sync> FromRequestParts<S> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.map(Self).ok_or_else(|| Problem::new(Kind::Unauthenticated, "nobody may call this"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_exactly_the_routes_of_the_document() {
        let document: serde_json::Value = serde_json::from_str(&super::super::openapi_document().unwrap()).unwrap();
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
    }
}
