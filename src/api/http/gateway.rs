//! A gateway in front of the service: the prefix of all paths and trusted `X-Forwarded-*` headers.
//!
//! Handlers see no prefix. The service strips it before routing and adds it to every `Location`; links inside documents use
//! [`LinkBase`].

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{Extensions, HeaderMap, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower::{ServiceExt, service_fn};

use crate::problem::Problem;

/// Supervisors request these paths without the prefix.
const UNPREFIXED_PATHS: [&str; 2] = ["/healthz", "/readyz"];

const MAX_PREFIX_BYTES: usize = 255;

/// A path prefix: empty, or like `/guardian`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Prefix(Arc<str>);

impl Prefix {
    /// Parses segments of letters, digits, `.`, `_`, `~` and `-`; ignores a final slash.
    ///
    /// # Errors
    /// A message for the operator.
    pub fn parse(text: &str) -> Result<Self, String> {
        let path = text.strip_suffix('/').unwrap_or(text);
        let segment = |segment: &str| {
            let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
            !segment.is_empty() && segment != "." && segment != ".." && segment.bytes().all(unreserved)
        };
        let well_formed = path.strip_prefix('/').is_some_and(|path| path.split('/').all(segment));
        if path.len() <= MAX_PREFIX_BYTES && (well_formed || (path.is_empty() && text.len() <= 1)) {
            return Ok(Self(path.into()));
        }
        Err("a path prefix must have the form /guardian or /apps/guardian".to_owned())
    }

    /// The path without the prefix; `None` for paths without it.
    fn strip<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(&*self.0)?;
        match rest {
            "" => Some("/"),
            rest => rest.starts_with('/').then_some(rest),
        }
    }
}

/// The gateway in front of the service.
#[derive(Clone, Debug, Default)]
pub struct Gateway {
    /// Prefix of the paths that reach this process.
    pub prefix: Prefix,
    /// Whether a gateway sets `X-Forwarded-*`, so that callers cannot.
    pub trusted: bool,
}

impl Gateway {
    /// Serves the routes under the prefix, with the caller's address.
    pub(in crate::api) fn before(self, routes: Router) -> Router {
        let served = service_fn(move |mut request: Request| {
            let (gateway, routes) = (self.clone(), routes.clone());
            async move {
                let base = gateway.base(request.headers());
                let caller = gateway.caller(request.headers(), request.extensions());
                request.extensions_mut().insert(base.clone());
                request.extensions_mut().insert(caller);
                match gateway.inner(request.uri()) {
                    Some(uri) => *request.uri_mut() = uri,
                    None => drop(request.extensions_mut().insert(PrefixMismatch)),
                }
                let Ok(mut response) = routes.oneshot(request).await;
                base.locate(&mut response);
                Ok(response)
            }
        });
        Router::new().fallback_service(served)
    }

    /// The public path of `/` of this process.
    fn base(&self, headers: &HeaderMap) -> LinkBase {
        let stripped = self.trusted_header(headers, "x-forwarded-prefix").and_then(|text| Prefix::parse(text).ok());
        match stripped {
            Some(Prefix(stripped)) => LinkBase(format!("{stripped}{}", self.prefix.0).into()),
            None => LinkBase(Arc::clone(&self.prefix.0)),
        }
    }

    fn inner(&self, uri: &Uri) -> Option<Uri> {
        let path = match self.prefix.strip(uri.path()) {
            Some(path) => path,
            None if UNPREFIXED_PATHS.contains(&uri.path()) => uri.path(),
            None => return None,
        };
        let path = match uri.query() {
            Some(query) => PathAndQuery::try_from(format!("{path}?{query}")),
            None => PathAndQuery::try_from(path),
        };
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(path.ok()?);
        Uri::from_parts(parts).ok()
    }

    /// The address of the caller: the first forwarded one, otherwise the peer's.
    fn caller(&self, headers: &HeaderMap, extensions: &Extensions) -> ClientAddress {
        let forwarded = self.trusted_header(headers, "x-forwarded-for").and_then(|list| {
            let first = list.split(',').next().unwrap_or_default().trim();
            let without_port = first.parse::<SocketAddr>().map(|address| address.ip());
            without_port.or_else(|_| first.trim_matches(['[', ']']).parse::<IpAddr>()).ok()
        });
        let connected = extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| address.ip());
        ClientAddress(forwarded.or(connected))
    }

    /// The public origin of the service as the gateway declares it, such as `https://guardian.example`.
    pub(in crate::api) fn origin(&self, headers: &HeaderMap) -> Option<String> {
        let host = self.trusted_header(headers, "x-forwarded-host")?;
        let scheme =
            self.trusted_header(headers, "x-forwarded-proto").filter(|scheme| *scheme == "http").unwrap_or("https");
        Some(format!("{scheme}://{host}"))
    }

    /// The value of a header if the gateway is trusted.
    fn trusted_header<'h>(&self, headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
        headers.get(name).filter(|_| self.trusted)?.to_str().ok()
    }
}

/// The prefix of paths in links: empty, or like `/guardian`.
#[derive(Clone, Debug)]
pub(in crate::api) struct LinkBase(Arc<str>);

impl LinkBase {
    /// The prefix as text.
    pub(in crate::api) fn as_str(&self) -> &str {
        &self.0
    }

    fn locate(&self, response: &mut Response) {
        let Some(location) = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok()) else {
            return;
        };
        if location.starts_with('/')
            && let Ok(located) = HeaderValue::try_from(format!("{}{location}", self.0))
        {
            response.headers_mut().insert(header::LOCATION, located);
        }
    }
}

impl fmt::Display for LinkBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for LinkBase {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(|| Self("".into())))
    }
}

/// The address of a caller, if known.
#[derive(Clone, Copy)]
pub(in crate::api) struct ClientAddress(pub(in crate::api) Option<IpAddr>);

/// Marks a request with a path outside the prefix.
#[derive(Clone)]
struct PrefixMismatch;

/// Answers paths outside the prefix with `not-found`.
pub(in crate::api) async fn strip_path_prefix(request: Request, next: Next) -> Response {
    if request.extensions().get::<PrefixMismatch>().is_some() {
        return super::error::no_such_path().into_response();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_accepts_plain_paths_only() {
        for (text, prefix) in [("/guardian", "/guardian"), ("/a/b-c_d.e~f/", "/a/b-c_d.e~f"), ("/", ""), ("", "")] {
            assert_eq!(&*Prefix::parse(text).unwrap().0, prefix, "{text}");
        }
        let long = format!("/{}", "a".repeat(MAX_PREFIX_BYTES));
        for text in [
            "guardian",
            "//evil.com",
            "//",
            "/a//b",
            "/../a",
            "/a/..",
            "/.",
            "/a b",
            "/a\r\nX: y",
            "/a?b",
            "/a#b",
            "/%2e",
            "/a\\b",
            "http://evil.com",
            "/\u{e9}",
            "/a, /b",
            &long,
        ] {
            assert!(Prefix::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn prefix_strips_whole_segments() {
        let gateway = Gateway { prefix: Prefix::parse("/guardian").unwrap(), trusted: false };
        let inner = |text: &str| gateway.inner(&text.parse().unwrap()).map(|uri| uri.to_string());
        assert_eq!(inner("/guardian/v1/jobs?a=%2F").as_deref(), Some("/v1/jobs?a=%2F"));
        assert_eq!(inner("/guardian").as_deref(), Some("/"));
        assert_eq!(inner("/guardian?x").as_deref(), Some("/?x"));
        assert_eq!(inner("http://h/guardian/docs").as_deref(), Some("http://h/docs"));
        assert_eq!(inner("/healthz").as_deref(), Some("/healthz"));
        for text in ["/v1/jobs", "/guardians/v1", "/", "/guardian%2Fv1", "/x/guardian/v1"] {
            assert_eq!(inner(text), None, "{text}");
        }
    }

    #[test]
    fn forwarded_headers_count_only_if_trusted() {
        let headers = |named: &[(&'static str, &str)]| -> HeaderMap {
            named.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
        };
        let trusting = Gateway { prefix: Prefix::parse("/b").unwrap(), trusted: true };
        let strict = Gateway { trusted: false, ..trusting.clone() };
        let forwarded = headers(&[("x-forwarded-prefix", "/a"), ("x-forwarded-for", "10.1.2.3, 10.0.0.1")]);
        assert_eq!(trusting.base(&forwarded).as_str(), "/a/b");
        assert_eq!(strict.base(&forwarded).as_str(), "/b");
        let peer: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let mut extensions = Extensions::new();
        extensions.insert(ConnectInfo(peer));
        let address =
            |gateway: &Gateway, headers: &HeaderMap| gateway.caller(headers, &extensions).0.unwrap().to_string();
        assert_eq!(address(&trusting, &forwarded), "10.1.2.3");
        assert_eq!(address(&strict, &forwarded), "127.0.0.1");
        for (header, expected) in
            [("[::2]:70", "::2"), ("10.1.2.3:80", "10.1.2.3"), ("[::2]", "::2"), ("nonsense", "127.0.0.1")]
        {
            assert_eq!(address(&trusting, &headers(&[("x-forwarded-for", header)])), expected, "{header}");
        }
        for prefix in ["//evil.com", "/../x", "a", "/a b"] {
            assert_eq!(trusting.base(&headers(&[("x-forwarded-prefix", prefix)])).as_str(), "/b", "{prefix}");
        }
    }
}
