//! Without authentication only loopback names are served, and no page of a foreign origin may ask (a page of any site could
//! otherwise reach the service through the browser of whoever runs it).

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::problem::{Kind, Problem};

/// Refuses other `Host` names and foreign origins.
pub(super) async fn loopback_names_only(request: Request, next: Next) -> Response {
    let authority = request.uri().authority().map(ToString::to_string);
    match judge(authority.as_deref(), request.headers()) {
        Err(problem) => problem.into_response(),
        Ok(()) => next.run(request).await,
    }
}

fn judge(authority: Option<&str>, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = text(header::HOST).or(authority).unwrap_or_default();
    if !is_loopback(host) || authority.is_some_and(|authority| !is_loopback(authority)) {
        let detail = "without authentication only localhost, 127.0.0.1 and [::1] are served";
        return Err(Problem::new(Kind::HostRefused, detail));
    }
    match text(header::ORIGIN) {
        Some(origin) if origin.strip_prefix("http://") != Some(host) => {
            Err(Problem::new(Kind::ForeignOrigin, "the request comes from a page of another origin"))
        }
        _ => Ok(()),
    }
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

    #[test]
    fn loopback_names_are_known_with_and_without_port() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.9.9.9", "[::1]", "[::1]:8080"] {
            assert!(is_loopback(host), "{host}");
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
        assert!(judge(None, &headers("http://localhost:8080")).is_ok());
        for origin in ["http://localhost:9090", "https://example.com", "null", "http://127.0.0.1:8080"] {
            assert_eq!(judge(None, &headers(origin)).unwrap_err().kind, Kind::ForeignOrigin, "{origin}");
        }
    }
}
