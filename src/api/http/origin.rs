//! Checks of `Host` and `Origin`, against requests that a foreign page makes through the operator's browser.
//!
//! Without authentication the service accepts only loopback names in `Host`; forwarded names are ignored, because a page with DNS
//! rebinding can send any of them.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::credentials::bearer;
use super::gateway::Gateway;
use crate::problem::{Kind, Problem};

/// The accepted hosts and origins.
#[derive(Clone)]
pub(in crate::api) struct OriginPolicy {
    /// Accepts any `Host`, because callers authenticate themselves.
    pub(in crate::api) any_host: bool,
    /// The gateway in front of the service.
    pub(in crate::api) gateway: Gateway,
}

/// Rejects requests with other hosts or from foreign origins.
pub(in crate::api) async fn check_origin(State(served): State<OriginPolicy>, request: Request, next: Next) -> Response {
    let authority = request.uri().authority().map(ToString::to_string);
    match check(&served, authority.as_deref(), request.headers()) {
        Err(problem) => problem.into_response(),
        Ok(()) => next.run(request).await,
    }
}

fn check(served: &OriginPolicy, authority: Option<&str>, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = text(header::HOST).or(authority).unwrap_or_default();
    // a proxy may use the other of two names
    let twice = headers.get_all(header::HOST).iter().count() > 1;
    let foreign_name = twice || !is_loopback(host) || authority.is_some_and(|authority| !is_loopback(authority));
    if foreign_name && !served.any_host {
        let detail = "without authentication the service accepts only localhost, 127.0.0.1 and [::1]";
        return Err(Problem::new(Kind::HostRefused, detail));
    }
    let public = served.gateway.origin(headers).filter(|_| served.any_host);
    let own = |origin: &str| {
        if let Some(public) = &public {
            return origin == public;
        }
        // a gateway may terminate TLS in front of a service with keys
        let name =
            origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://").filter(|_| served.any_host));
        name == Some(host)
    };
    // a browser never adds a bearer token by itself
    let has_token = served.any_host && bearer(headers).is_some();
    let mut origins = headers.get_all(header::ORIGIN).iter().map(|origin| origin.to_str().unwrap_or_default());
    if !has_token && origins.any(|origin| !own(origin)) {
        return Err(Problem::new(Kind::ForeignOrigin, "the request comes from a page of another origin"));
    }
    Ok(())
}

/// Whether a `Host` value, with or without a port, names the loopback interface.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(any_host: bool, trusted: bool) -> OriginPolicy {
        OriginPolicy { any_host, gateway: Gateway { trusted, ..Gateway::default() } }
    }

    #[test]
    fn loopback_names_match_with_and_without_port() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.9.9.9", "[::1]", "[::1]:8080"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "127.0.0.1.evil.com",
            "localhost.evil.com",
            "localhost@evil.com",
            "evil.com@localhost",
            "localhost:80@evil.com",
            "evil.com:127.0.0.1",
            "localhost:evil",
            "localhost.",
            "localhost ",
            "0.0.0.0",
            "[::]",
            "[::ffff:127.0.0.1]",
            "2130706433",
            "0x7f000001",
            "127.1",
            "0177.0.0.1",
            "127.0.0.1,evil.com",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
        for host in ["", "example.com", "localhost.example.com", "127.0.0.1.example.com:80", "10.0.0.1", "[::2]:80"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn foreign_origin_is_refused() {
        let headers = |origin: &str| {
            HeaderMap::from_iter([
                (header::HOST, "localhost:8080".parse().unwrap()),
                (header::ORIGIN, origin.parse().unwrap()),
            ])
        };
        let local = served(false, false);
        assert!(check(&local, None, &headers("http://localhost:8080")).is_ok());
        for origin in ["http://localhost:9090", "https://example.com", "null", "http://127.0.0.1:8080"] {
            assert_eq!(check(&local, None, &headers(origin)).unwrap_err().kind, Kind::ForeignOrigin, "{origin}");
        }
    }

    #[test]
    fn any_host_is_accepted_with_keys() {
        let (local, with_keys) = (served(false, false), served(true, false));
        let headers = |origin: &str| {
            HeaderMap::from_iter([
                (header::HOST, "guardian.example".parse().unwrap()),
                (header::ORIGIN, origin.parse().unwrap()),
            ])
        };
        for origin in ["http://guardian.example", "https://guardian.example"] {
            assert!(check(&with_keys, None, &headers(origin)).is_ok(), "{origin}");
        }
        let mut foreign = headers("https://example.com");
        assert_eq!(check(&with_keys, None, &foreign).unwrap_err().kind, Kind::ForeignOrigin);
        foreign.insert(header::AUTHORIZATION, "Bearer x".parse().unwrap());
        assert!(check(&with_keys, None, &foreign).is_ok());
        assert_eq!(check(&local, None, &foreign).unwrap_err().kind, Kind::HostRefused);
    }

    #[test]
    fn trusted_gateway_declares_the_public_origin() {
        let mut headers = HeaderMap::from_iter([
            (header::HOST, "10.0.0.5:8080".parse().unwrap()),
            (header::ORIGIN, "https://guardian.example".parse().unwrap()),
        ]);
        headers.insert("x-forwarded-host", "guardian.example".parse().unwrap());
        headers.insert("x-forwarded-proto", "https".parse().unwrap());
        assert!(check(&served(true, true), None, &headers).is_ok());
        assert_eq!(check(&served(true, false), None, &headers).unwrap_err().kind, Kind::ForeignOrigin);
        headers.insert(header::ORIGIN, "https://10.0.0.5:8080".parse().unwrap());
        assert_eq!(check(&served(true, true), None, &headers).unwrap_err().kind, Kind::ForeignOrigin);
        // without authentication only Host itself counts
        headers.insert("x-forwarded-host", "localhost".parse().unwrap());
        headers.insert(header::HOST, "evil.example".parse().unwrap());
        assert_eq!(check(&served(false, true), None, &headers).unwrap_err().kind, Kind::HostRefused);
        headers.insert(header::HOST, "localhost".parse().unwrap());
        headers.insert(header::ORIGIN, "https://localhost".parse().unwrap());
        assert_eq!(check(&served(false, true), None, &headers).unwrap_err().kind, Kind::ForeignOrigin);
    }
}
