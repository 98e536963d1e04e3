//! Uploads by reference: what a service reads on request, and what it does not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use guardian::config::StoreOptions;
use guardian::identity::Preset;
use guardian::service::keys::{ApiKeyAdmin, NewKey};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::uploads::gzip;
use crate::support::harness::{Answer, HOSPITAL, Process, Server, guardian, hospital_method, text};
use crate::support::object_server::{ACCESS_KEY, ObjectServer, SECRET_KEY};

const ROUTE: &str = "/v1/datasets/by-reference";

/// A service with sources, and the store that it reads.
struct Stage {
    store: ObjectServer,
    process: Process,
    home: TempDir,
}

impl Stage {
    fn set(sources: &str) -> Self {
        Self::set_with(sources, &[], |_| {})
    }

    fn set_with(sources: &str, options: &[&str], prepare: impl FnOnce(&Path)) -> Self {
        let (store, home) = (ObjectServer::start(), tempfile::tempdir().unwrap());
        store.put("bucket/data/T.csv", HOSPITAL);
        store.put("bucket/data-secret/T.csv", HOSPITAL);
        store.put("bucket/T.csv", HOSPITAL);
        let data = home.path().join("data");
        prepare(&data);
        let mut command = guardian();
        store.known_to(&mut command);
        command.args(["serve", "--listen", "127.0.0.1:0", "--sources", sources]).args(options).env("RUST_LOG", "debug");
        let process = Process::serve_by(&data, &mut command);
        Self { store, process, home }
    }

    async fn ask(&self, source: &str) -> Answer {
        self.process.post(ROUTE, &json!({"source": source})).await
    }

    #[track_caller]
    fn assert_no_secret(&self, text: &str) {
        assert!(!text.contains(SECRET_KEY) && !text.contains("hidden"), "{text}");
    }
}

/// A web server that answers every request with the same head and body; it keeps the first lines of requests.
struct Web {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Web {
    fn start(answer: impl Fn(&str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&asked);
        thread::spawn(move || {
            for connection in listener.incoming() {
                let Ok(mut connection) = connection else { continue };
                let mut head = [0; 4096];
                let length = connection.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..length]).into_owned();
                let line = head.lines().next().unwrap_or_default().to_owned();
                // a client that leaves early misses the rest
                let _ = connection.write_all(answer(&line).as_bytes());
                kept.lock().unwrap().push(line);
            }
        });
        Self { address, asked }
    }

    fn at(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }
}

fn file(line: &str, body: &str) -> String {
    let length = body.len();
    let body = if line.starts_with("HEAD") { "" } else { body };
    format!("HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_is_an_upload() {
    let stage = Stage::set("s3://bucket/data");
    let sent = stage.process.upload("name=t", HOSPITAL).await.ok(201);
    let read = stage.process.post(&format!("{ROUTE}?name=t"), &json!({"source": "s3://bucket/data/T.csv"})).await;
    assert_eq!(read.header("location"), format!("/v1/datasets/{}", text(&read.json()["id"])));
    let read = read.ok(201);
    for member in ["name", "rows", "bytes", "format", "columns"] {
        assert_eq!(read[member], sent[member], "{member}");
    }
    let entries = stage.process.items("/v1/audit-log").await;
    let of = |id: &Value| entries.iter().find(|entry| entry["object"] == *id).unwrap()["detail"].clone();
    assert_eq!(of(&read["id"]), "s3://bucket/data/T.csv");
    assert_eq!(of(&sent["id"]), Value::Null);
    let job = stage.process.job(&text(&read["id"]), json!({"unlisted": "drop", "method": hospital_method()})).await;
    assert_eq!(job.ok(200)["status"], "succeeded");

    // formats and compressions by name, by word and by digest
    stage.store.put("bucket/data/T.csv.gz", gzip(HOSPITAL.as_bytes()));
    stage.store.put("bucket/data/table", gzip(HOSPITAL.as_bytes()));
    assert_eq!(stage.ask("s3://bucket/data/T.csv.gz").await.ok(201)["rows"], sent["rows"]);
    stage.ask("s3://bucket/data/table").await.problem(415, "unsupported-media-type");
    let mut reference = json!({"source": "s3://bucket/data/table", "format": "text/csv", "compression": "gzip"});
    stage.process.post(ROUTE, &reference).await.ok(201);
    reference["digest"] = "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:".into();
    stage.process.post(ROUTE, &reference).await.problem(400, "digest-mismatch");
    stage.store.put("bucket/data/bad.csv", "a,b\n1\n");
    stage.ask("s3://bucket/data/bad.csv").await.problem(422, "upload-malformed");
    stage
        .process
        .post(ROUTE, &json!({"source": "s3://bucket/data/T.csv", "x": 1}))
        .await
        .problem(400, "malformed-body");
    stage.assert_no_secret(&stage.process.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_is_repeatable_under_its_key() {
    let stage = Stage::set("s3://bucket/data");
    let ask = async |source: &str| {
        let request = stage.process.request(Method::POST, ROUTE).header("idempotency-key", "k");
        stage.process.send(request.json(&json!({"source": source}))).await
    };
    // a key whose upload failed is free again
    ask("s3://bucket/data/missing.csv").await.problem(422, "source-unreadable");
    let first = ask("s3://bucket/data/T.csv").await.ok(201);
    assert_eq!(ask("s3://bucket/data/T.csv").await.ok(201)["id"], first["id"]);
    stage.store.put("bucket/data/U.csv", HOSPITAL);
    ask("s3://bucket/data/U.csv").await.problem(409, "idempotency-conflict");
    stage.store.put("bucket/data/T.csv", HOSPITAL.replace('3', "4"));
    ask("s3://bucket/data/T.csv").await.problem(409, "idempotency-conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_listed_sources_are_read() {
    let web = Web::start(|line| file(line, HOSPITAL));
    let stage = Stage::set(&format!("s3://bucket/data,{}", web.at("open")));
    stage.ask(&web.at("open/T.csv")).await.ok(201);
    let before = (stage.store.asked(), web.asked.lock().unwrap().clone());
    let host = web.address;
    for source in [
        "s3://bucket/T.csv",
        "s3://bucket/data-secret/T.csv",
        "s3://bucket/data/../T.csv",
        "s3://bucket/data/./../T.csv",
        "s3://bucket/data/%2e%2e/T.csv",
        "s3://bucket/data/%2E%2E%2fT.csv",
        "s3://bucket/data//T.csv",
        "s3://bucket/data\\..\\T.csv",
        "s3://bucket/data/T.csv?versionId=hidden",
        "s3://bucket/data/T.csv#hidden",
        "s3://key:hidden@bucket/data/T.csv",
        "s3://BUCKET/data/T.csv",
        "s3://other/data/T.csv",
        "s3://data/T.csv",
        "S3://bucket/data/T.csv",
        "gs://bucket/data/T.csv",
        "file:///etc/passwd",
        "/etc/passwd",
        "-",
        "",
        "http://169.254.169.254/latest/meta-data",
        &format!("http://{host}/closed/T.csv"),
        &format!("http://{host}/opener/T.csv"),
        &format!("http://{host}/open/../closed/T.csv"),
        &format!("http://{host}/open/%2e%2e/closed/T.csv"),
        &format!("http://{host}/open/..%2fclosed/T.csv"),
        &format!("http://{host}@example.org/open/T.csv"),
        &format!("http://user:hidden@{host}/open/T.csv"),
        &format!("https://{host}/open/T.csv"),
        "http://localhost/open/T.csv",
    ] {
        let refused = stage.ask(source).await;
        stage.assert_no_secret(&refused.problem(422, "source-refused").to_string());
    }
    assert_eq!((stage.store.asked(), web.asked.lock().unwrap().clone()), before, "nothing was asked");

    let silent = Server::start().await;
    let refused = silent.post(ROUTE, &json!({"source": "s3://bucket/data/T.csv"})).await.problem(422, "source-refused");
    assert!(text(&refused["detail"]).contains("--sources"), "{refused:#}");
    silent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_not_followed() {
    let goal = Web::start(|line| file(line, HOSPITAL));
    let to = goal.at("open/T.csv");
    let answer = move |_: &str| {
        format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    };
    let web = Web::start(answer);
    let stage = Stage::set(&web.at("open"));
    let refused = stage.ask(&web.at("open/T.csv")).await.problem(422, "source-unreadable");
    assert_eq!(refused["reason"], "redirected");
    assert_eq!(goal.asked.lock().unwrap().len(), 0);
    assert_eq!(web.asked.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_source_are_named() {
    let endless = Web::start(|line| match line.contains("endless") {
        true => format!("HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n{}", "x".repeat(1 << 20)),
        false => "HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: 1000\r\nconnection: close\r\n\r\na,b\n".to_owned(),
    });
    let nowhere = "http://127.0.0.1:1";
    let sources = format!("s3://bucket,{},{nowhere},az://container,gs://bucket", endless.at(""));
    let stage = Stage::set_with(&sources, &["--max-upload-bytes", "10000"], |_| {});
    let reason = async |source: &str| {
        let refused = stage.ask(source).await.problem(422, "source-unreadable");
        stage.assert_no_secret(&refused.to_string());
        text(&refused["reason"])
    };
    assert_eq!(reason("s3://bucket/missing.csv").await, "not_found");
    stage.store.deny("GET bucket/denied.csv");
    assert_eq!(reason("s3://bucket/denied.csv").await, "access_denied");
    assert_eq!(reason("az://container/T.csv").await, "unconfigured");
    assert_eq!(reason(&format!("{nowhere}/T.csv")).await, "unreachable");
    assert_eq!(reason(&endless.at("endless.csv")).await, "not_found");
    // the connection ends before the object does
    assert_eq!(reason(&endless.at("cut.csv")).await, "unreachable");
    stage.store.change_while_read("bucket/data/T.csv", HOSPITAL.replace('3', "4"));
    assert_eq!(reason("s3://bucket/data/T.csv").await, "changed");
    stage.store.put("bucket/large.csv", format!("a\n{}", "x\n".repeat(10_000)));
    let large = stage.ask("s3://bucket/large.csv").await.problem(413, "too-large");
    assert_eq!((&large["reason"], &large["limit"]), (&json!("too_large"), &json!(10_000)));
    let listed = stage.process.items("/v1/datasets").await;
    assert_eq!(listed, Vec::<Value>::new(), "nothing is kept of what was refused");
    stage.assert_no_secret(&stage.process.log());
    assert!(!stage.process.log().contains(ACCESS_KEY));
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_read_their_own_sources_with_their_scope() {
    let mut tokens = Vec::new();
    let draw = |data: &Path| {
        let (data, tokens) = (data.to_owned(), &mut tokens);
        thread::scope(|scope| {
            scope.spawn(move || {
                let runtime = tokio::runtime::Runtime::new().unwrap();
                runtime.block_on(async {
                    let ring = ApiKeyAdmin::open(&StoreOptions::default(), &data).await.unwrap();
                    for (tenant, preset) in [("a", Preset::Pipeline), ("b", Preset::Pipeline), ("a", Preset::Analyst)] {
                        let (tenant, name) = (tenant.to_owned(), "test".to_owned());
                        let scopes = preset.scopes();
                        let wanted = NewKey { tenant, name, scopes, lifetime: None, populations: Vec::new() };
                        tokens.push(ring.create(wanted).await.unwrap().1.reveal().to_string());
                    }
                    ring.close().await;
                });
            });
        });
    };
    let stage = Stage::set_with("s3://bucket/of/{tenant}", &["--auth", "keys"], draw);
    stage.store.put("bucket/of/a/T.csv", HOSPITAL);
    let [a, b, reader] = [0, 1, 2].map(|at: usize| stage.process.with_token(&tokens[at]));
    let document = json!({"source": "s3://bucket/of/a/T.csv"});
    a.post(ROUTE, &document).await.ok(201);
    b.post(ROUTE, &document).await.problem(422, "source-refused");
    assert_eq!(reader.post(ROUTE, &document).await.problem(403, "forbidden")["scope"], "datasets:write");
    stage.process.post(ROUTE, &document).await.problem(401, "unauthenticated");
    assert!(stage.home.path().join("data").exists());
}

#[test]
fn a_list_with_a_fault_stops_the_start() {
    let home = tempfile::tempdir().unwrap();
    for sources in ["bucket/data", "file:///data", "s3://key:hidden@bucket/data", "http://example.org/data"] {
        let mut command = guardian();
        command.args(["serve", "--listen", "127.0.0.1:0", "--sources", sources, "--data"]).arg(home.path());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--sources: source 1: ") && !said.contains("hidden"), "{said}");
    }
}
