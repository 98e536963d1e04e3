//! Under which names and for whose pages the service is there. A page of any site reaches loopback through the browser of
//! the operator of the service, and a name of its own may point there: requests here are written byte by byte.

use std::io::{Read, Write};
use std::net::TcpStream;

use guardian::config::Auth;
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, ORIGIN};
use serde_json::Value;

use super::identity::ROUTES;
use crate::support::harness::{Client, Process, Server, guardian, run};

/// Sends bytes, and gives the status line's number and the rest of what is answered until the connection ends.
fn raw(authority: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(authority).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // a connection that is reset has been answered all the same
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
    (status, answer)
}

fn get(target: &str, headers: &str) -> String {
    format!("GET {target} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n")
}

const FOREIGN_HOSTS: &[&str] = &[
    "127.0.0.1.evil.com",
    "localhost.evil.com",
    "localhost.evil.com:8080",
    "evil.com",
    "evil.com:8080",
    "10.0.0.1",
    "0.0.0.0:8080",
    "[::]",
    "[::ffff:127.0.0.1]",
    "127.1",
    "2130706433",
    "localhost@evil.com",
    "evil.com@localhost",
    "localhost, evil.com",
    "localhost evil.com",
    "localhost/evil.com",
    "localhost\\evil.com",
    "",
];

#[tokio::test(flavor = "multi_thread")]
async fn only_loopback_names_are_served_without_authentication() {
    let server = Server::start().await;
    let to = server.authority();
    for host in ["localhost", "LOCALHOST", "localhost:8080", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:8080"] {
        assert_eq!(raw(to, &get("/v1/releases", &format!("Host: {host}\r\n"))).0, 200, "{host}");
        assert_eq!(raw(to, &get(&format!("http://{host}/v1/releases"), &format!("Host: {host}\r\n"))).0, 200, "{host}");
    }
    let refused = |request: &str| {
        let (status, answer) = raw(to, request);
        // what is not HTTP is refused before it is looked at
        assert!(status == 400 || (status == 403 && answer.contains("problems/host-refused")), "{request}: {answer}");
        assert!(!answer.to_ascii_lowercase().contains("access-control"), "{answer}");
    };
    for host in FOREIGN_HOSTS {
        for path in ["/v1/releases", "/healthz", "/docs/", "/openapi.json", "/nothing"] {
            refused(&get(path, &format!("Host: {host}\r\n")));
        }
    }
    // the target says another name than the header
    for (target, host) in [
        ("http://evil.com/v1/releases", "localhost"),
        ("http://localhost.evil.com/v1/releases", "localhost"),
        ("http://localhost@evil.com/v1/releases", "localhost"),
        ("http://localhost/v1/releases", "evil.com"),
    ] {
        refused(&get(target, &format!("Host: {host}\r\n")));
    }
    refused(&get("/v1/releases", "Host: localhost\r\nHost: evil.com\r\n"));
    refused(&get("/v1/releases", "Host: evil.com\r\nHost: localhost\r\n"));
    // names that a proxy adds count for nothing
    refused(&get("/v1/releases", "Host: evil.com\r\nX-Forwarded-Host: localhost\r\nForwarded: host=localhost\r\n"));
    // no name at all
    refused(&get("/v1/releases", ""));
    refused("GET /v1/releases HTTP/1.0\r\n\r\n");
    assert_eq!(raw(to, "GET /v1/releases HTTP/1.0\r\nHost: localhost\r\n\r\n").0, 200);
    // HTTP/2 is not spoken, so that there is no :authority
    let (status, answer) = raw(to, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    assert!(status != 200 && !answer.contains("\0\0\0\x04"), "{answer}");
    server.stop().await;
}

const FOREIGN_ORIGINS: [&str; 6] =
    ["https://evil.com", "http://localhost.evil.com", "http://localhost:1", "null", "", "file://"];

async fn foreign_pages_are_refused(client: &Client) {
    for &(method, path, ..) in ROUTES {
        let path = path.replace("{id}", "018f0000-0000-7000-8000-000000000000").replace("{table}", "t1");
        let path = path.replace("{part}", "qi");
        for method in [method, "HEAD", "OPTIONS", "PUT"] {
            let method: Method = method.parse().unwrap();
            for origin in FOREIGN_ORIGINS {
                let answer = client.request(method.clone(), &path).header(ORIGIN, origin).send().await.unwrap();
                assert_eq!(answer.status(), 403, "{method} {path} {origin}");
                assert!(answer.headers().keys().all(|name| !name.as_str().starts_with("access-control")));
                if method != Method::HEAD {
                    let document: Value = answer.json().await.unwrap();
                    assert!(document["type"].as_str().unwrap().ends_with("/foreign-origin"), "{document}");
                }
            }
        }
    }
    // one own origin beside a foreign one is none
    let both = client.request(Method::GET, "/healthz").header(ORIGIN, &client.base).header(ORIGIN, "https://evil.com");
    client.send(both).await.problem(403, "foreign-origin");
    let preflight = client.request(Method::OPTIONS, "/v1/jobs").header(ORIGIN, "https://evil.com");
    let preflight = preflight.header("access-control-request-method", "POST");
    client.send(preflight).await.problem(403, "foreign-origin");
    let own = client.request(Method::GET, "/healthz").header(ORIGIN, &client.base).header(ACCEPT, "*/*");
    let answer = client.send(own).await;
    assert_eq!(answer.status, 200);
    assert!(answer.headers.keys().all(|name| !name.as_str().starts_with("access-control")));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_are_refused_whatever_they_ask() {
    let server = Server::start().await;
    foreign_pages_are_refused(&server).await;
    // no header of a caller's own changes that
    let meant = server.request(Method::GET, "/v1/releases").header(ORIGIN, "https://evil.com");
    server.send(meant.header(AUTHORIZATION, "Bearer x")).await.problem(403, "foreign-origin");
    server.stop().await;
    let server = Server::start_with(|config| config.auth = Auth::Keys).await;
    foreign_pages_are_refused(&server).await;
    server.stop().await;
}

#[test]
fn service_calls_no_address_of_a_request() {
    let document = guardian::api::openapi_document();
    let text = document.to_string();
    assert_eq!(document["webhooks"], Value::Null);
    for word in ["\"callbacks\"", "callback_url", "webhook", "\"format\":\"uri\""] {
        assert!(!text.contains(word), "{word}");
    }
}

#[test]
fn demo_runs_without_authentication_only() {
    let home = tempfile::tempdir().unwrap();
    for auth in ["keys", "jwt", "keys,jwt"] {
        let output = run(guardian().args(["demo", "--exit", "--auth", auth, "--data"]).arg(home.path().join("data")));
        assert_eq!(output.status.code(), Some(2), "{auth}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("--auth none"));
    }
    let output = run(guardian().args(["demo", "--exit", "--data"]).arg(home.path()).env("GUARDIAN_AUTH", "keys"));
    assert_eq!(output.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_authentication_other_addresses_are_not_listened_on() {
    let home = tempfile::tempdir().unwrap();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let output = run(guardian().args(["serve", "--listen", address, "--data"]).arg(home.path().join("data")));
        assert_eq!(output.status.code(), Some(2), "{address}");
    }
    let process = Process::serve_with(&home.path().join("data"), "info", &["--listen", "127.0.0.1:0"]);
    // a token does not turn a service without authentication into another
    let named = process.with_token("x").request(Method::GET, "/v1/releases").header("host", "evil.com");
    process.send(named).await.problem(403, "host-refused");
}
