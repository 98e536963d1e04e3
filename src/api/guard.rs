//! Without authentication only loopback names are served, and no page of a foreign origin may ask (a page of any site could
//! otherwise reach the service through the browser of whoever runs it).

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::access::bearer;
use crate::problem::{Kind, Problem};

/// From where requests are served.
#[derive(Clone, Copy)]
pub(super) struct Served {
    /// Under any `Host` name: callers prove themselves with keys.
    pub(super) any_host: bool,
}

/// Refuses other `Host` names and foreign origins.
pub(super) async fn from_where(State(served): State<Served>, request: Request, next: Next) -> Response {
    let authority = request.uri().authority().map(ToString::to_string);
    match judge(served, authority.as_deref(), request.headers()) {
        Err(problem) => problem.into_response(),
        Ok(()) => next.run(request).await,
    }
}

fn judge(served: Served, authority: Option<&str>, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = text(header::HOST).or(authority).unwrap_or_default();
    // of two names another that reads the request may believe the other
    let twice = headers.get_all(header::HOST).iter().count() > 1;
    let foreign_name = twice || !is_loopback(host) || authority.is_some_and(|authority| !is_loopback(authority));
    if foreign_name && !served.any_host {
        let detail = "without authentication only localhost, 127.0.0.1 and [::1] are served";
        return Err(Problem::new(Kind::HostRefused, detail));
    }
    let own = |origin: &str| {
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

    const LOCAL: Served = Served { any_host: false };

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
        assert!(judge(LOCAL, None, &headers("http://localhost:8080")).is_ok());
        for origin in ["http://localhost:9090", "https://example.com", "null", "http://127.0.0.1:8080"] {
            assert_eq!(judge(LOCAL, None, &headers(origin)).unwrap_err().kind, Kind::ForeignOrigin, "{origin}");
        }
    }

    #[test]
    fn with_keys_any_name_is_served_and_foreign_pages_need_a_token() {
        let served = Served { any_host: true };
        let headers = |origin: &str| {
            HeaderMap::from_iter([
                (header::HOST, "guardian.example".parse().unwrap()),
                (header::ORIGIN, origin.parse().unwrap()),
            ])
        };
        for origin in ["http://guardian.example", "https://guardian.example"] {
            assert!(judge(served, None, &headers(origin)).is_ok(), "{origin}");
        }
        let mut foreign = headers("https://example.com");
        assert_eq!(judge(served, None, &foreign).unwrap_err().kind, Kind::ForeignOrigin);
        foreign.insert(header::AUTHORIZATION, "Bearer x".parse().unwrap());
        assert!(judge(served, None, &foreign).is_ok());
        assert_eq!(judge(LOCAL, None, &foreign).unwrap_err().kind, Kind::HostRefused);
    }
}
