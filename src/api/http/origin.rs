//! Without authentication only loopback names are served, and no page of a foreign origin may ask (a page of any site could
//! otherwise reach the service through the browser of whoever runs it). There only `Host` itself counts, whatever is forwarded: a
//! page that has its own name lead to this machine can send what it likes.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::credentials::bearer;
use super::gateway::Gateway;
use crate::problem::{Kind, Problem};

/// From where requests are served.
#[derive(Clone)]
pub(in crate::api) struct OriginPolicy {
    /// Under any `Host` name: callers prove themselves with keys.
    pub(in crate::api) any_host: bool,
    /// What stands before the service.
    pub(in crate::api) gateway: Gateway,
}

/// Refuses other `Host` names and foreign origins.
pub(in crate::api) async fn check_origin(State(served): State<OriginPolicy>, request: Request, next: Next) -> Response {
    let authority = request.uri().authority().map(ToString::to_string);
    match judge(&served, authority.as_deref(), request.headers()) {
        Err(problem) => problem.into_response(),
        Ok(()) => next.run(request).await,
    }
}

fn judge(served: &OriginPolicy, authority: Option<&str>, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = text(header::HOST).or(authority).unwrap_or_default();
    // of two names another that reads the request may believe the other
    let twice = headers.get_all(header::HOST).iter().count() > 1;
    let foreign_name = twice || !is_loopback(host) || authority.is_some_and(|authority| !is_loopback(authority));
    if foreign_name && !served.any_host {
        let detail = "without authentication only localhost, 127.0.0.1 and [::1] are served";
        return Err(Problem::new(Kind::HostRefused, detail));
    }
    let public = served.gateway.origin(headers).filter(|_| served.any_host);
    let own = |origin: &str| {
        if let Some(public) = &public {
            return origin == public;
        }
        // in front of a service with keys someone else may speak TLS
        let name =
            origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://").filter(|_| served.any_host));
        name == Some(host)
    };
    // a browser adds no bearer token by itself: who sends one means to call
    let meant = served.any_host && bearer(headers).is_some();
    let mut origins = headers.get_all(header::ORIGIN).iter().map(|origin| origin.to_str().unwrap_or_default());
    if !meant && origins.any(|origin| !own(origin)) {
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
    fn loopback_names_are_known_with_and_without_port() {
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
    fn only_the_same_origin_may_ask() {
        let headers = |origin: &str| {
            HeaderMap::from_iter([
                (header::HOST, "localhost:8080".parse().unwrap()),
                (header::ORIGIN, origin.parse().unwrap()),
            ])
        };
        let local = served(false, false);
        assert!(judge(&local, None, &headers("http://localhost:8080")).is_ok());
        for origin in ["http://localhost:9090", "https://example.com", "null", "http://127.0.0.1:8080"] {
            assert_eq!(judge(&local, None, &headers(origin)).unwrap_err().kind, Kind::ForeignOrigin, "{origin}");
        }
    }

    #[test]
    fn with_keys_any_name_is_served_and_foreign_pages_need_a_token() {
        let (local, with_keys) = (served(false, false), served(true, false));
        let headers = |origin: &str| {
            HeaderMap::from_iter([
                (header::HOST, "guardian.example".parse().unwrap()),
                (header::ORIGIN, origin.parse().unwrap()),
            ])
        };
        for origin in ["http://guardian.example", "https://guardian.example"] {
            assert!(judge(&with_keys, None, &headers(origin)).is_ok(), "{origin}");
        }
        let mut foreign = headers("https://example.com");
        assert_eq!(judge(&with_keys, None, &foreign).unwrap_err().kind, Kind::ForeignOrigin);
        foreign.insert(header::AUTHORIZATION, "Bearer x".parse().unwrap());
        assert!(judge(&with_keys, None, &foreign).is_ok());
        assert_eq!(judge(&local, None, &foreign).unwrap_err().kind, Kind::HostRefused);
    }

    #[test]
    fn a_trusted_gateway_says_the_public_origin() {
        let mut headers = HeaderMap::from_iter([
            (header::HOST, "10.0.0.5:8080".parse().unwrap()),
            (header::ORIGIN, "https://guardian.example".parse().unwrap()),
        ]);
        headers.insert("x-forwarded-host", "guardian.example".parse().unwrap());
        headers.insert("x-forwarded-proto", "https".parse().unwrap());
        assert!(judge(&served(true, true), None, &headers).is_ok());
        assert_eq!(judge(&served(true, false), None, &headers).unwrap_err().kind, Kind::ForeignOrigin);
        headers.insert(header::ORIGIN, "https://10.0.0.5:8080".parse().unwrap());
        assert_eq!(judge(&served(true, true), None, &headers).unwrap_err().kind, Kind::ForeignOrigin);
        // without authentication only Host itself counts
        headers.insert("x-forwarded-host", "localhost".parse().unwrap());
        headers.insert(header::HOST, "evil.example".parse().unwrap());
        assert_eq!(judge(&served(false, true), None, &headers).unwrap_err().kind, Kind::HostRefused);
        headers.insert(header::HOST, "localhost".parse().unwrap());
        headers.insert(header::ORIGIN, "https://localhost".parse().unwrap());
        assert_eq!(judge(&served(false, true), None, &headers).unwrap_err().kind, Kind::ForeignOrigin);
    }
}
