//! Observability of the real binary: the log as JSON, the configuration, traces.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::harness::{HOSPITAL, MARKER, Process, guardian, hospital_method, run, text};

/// The log, every line of which is JSON.
fn lines(process: &Process) -> Vec<Value> {
    let log = process.log();
    log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))).collect()
}

fn of_request<'l>(log: &'l [Value], id: &str) -> Vec<&'l Value> {
    log.iter().filter(|line| line["span"]["request.id"] == id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_has_one_line_with_its_id() {
    let home = tempfile::tempdir().unwrap();
    let options = ["--listen", "127.0.0.1:0", "--log-format", "json"];
    let mut process = Process::serve_with(&home.path().join("data"), "info", &options);
    let with_id = |path: &str, id: &str| process.request(Method::GET, path).header("x-request-id", id);

    let answer = process.send(with_id(&format!("/v1/jobs?series={MARKER}"), "night-1.A_b")).await;
    assert_eq!(answer.header("x-request-id"), "night-1.A_b");
    let refused = process.send(with_id(&format!("/v1/jobs/{MARKER}"), "refused-1")).await;
    let problem = refused.problem(404, "not-found");
    // what could forge lines, or is too long to be an id, is replaced
    for insane in ["a b", "{\"level\":\"ERROR\"}", &"a".repeat(129)] {
        let answer = process.send(with_id("/v1/datasets", insane)).await;
        assert_eq!(answer.header("x-request-id").len(), 36, "{insane}");
    }
    process.send(with_id("/healthz", "health-1")).await.ok(200);
    let dataset = process.dataset(HOSPITAL).await;
    process.publish(&dataset, json!({"method": hospital_method()})).await;
    assert!(process.terminate().success());

    let log = lines(&process);
    let answered = of_request(&log, "night-1.A_b");
    let [line] = answered[..] else { panic!("{answered:#?}") };
    assert_eq!((&line["level"], &line["fields"]["status"]), (&json!("INFO"), &json!(200)));
    assert_eq!((&line["span"]["method"], &line["span"]["route"]), (&json!("GET"), &json!("/v1/jobs")));
    assert_eq!(line["span"]["client.address"], "127.0.0.1");
    assert!(line["fields"]["latency_ms"].is_f64() && line["fields"]["bytes"].is_u64(), "{line:#}");
    // the log and the problem name each other
    let answered = of_request(&log, "refused-1");
    let [line] = answered[..] else { panic!("{answered:#?}") };
    assert_eq!(line["fields"]["problem.instance"], problem["instance"]);
    assert_eq!(line["fields"]["problem.kind"], "not-found");
    assert_eq!(line["span"]["path"], format!("/v1/jobs/{MARKER}"));
    assert!(of_request(&log, "health-1").is_empty(), "health is logged at the level debug");
    // of what a caller calls things, nothing
    let others: Vec<&Value> = log.iter().filter(|line| line["span"]["request.id"] != "refused-1").collect();
    assert!(!json!(others).to_string().contains(MARKER));
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_is_logged_without_secrets() {
    // the database does not answer: the options are logged before
    let url = "postgres://me:hunter2@127.0.0.1:1/guard?password=hunter2";
    for (format, name) in
        [("json", "\"store\":\"postgres://me:..@127.0.0.1:1/guard?..\""), ("text", "store=\"postgres://")]
    {
        let home = tempfile::tempdir().unwrap();
        let mut command = guardian();
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-format", format, "--store", url, "--data"]);
        command.arg(home.path()).env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1").env_remove("NO_COLOR");
        let output = run(&mut command);
        assert_eq!(output.status.code(), Some(4));
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let logged: Vec<&str> = said.lines().filter(|line| line.contains("effective configuration")).collect();
        assert_eq!(logged.len(), 1, "{said}");
        for part in [name, "max_upload_bytes", "master.key", "http://127.0.0.1:1"] {
            assert!(logged[0].contains(part), "{part}: {}", logged[0]);
        }
        assert!(!said.contains("hunter2") && !said.contains('\u{1b}'), "{said:?}");
    }
}

/// A collector of traces; gives its address and what it was sent.
async fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let sent: Arc<Mutex<Vec<u8>>> = Arc::default();
    let taken = Arc::clone(&sent);
    let take = move |body: Bytes| async move { taken.lock().unwrap().extend_from_slice(&body) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, Router::new().route("/v1/traces", post(take))).into_future());
    (address, sent)
}

fn holds(sent: &[u8], piece: &[u8]) -> bool {
    sent.windows(piece.len()).any(|window| window == piece)
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_go_to_a_collector_in_the_callers_trace() {
    let (address, sent) = collector().await;
    let home = tempfile::tempdir().unwrap();
    let options = ["--listen", "127.0.0.1:0", "--otlp-endpoint", address.as_str()];
    // whatever the log shows
    let mut process = Process::serve_with(&home.path().join("data"), "error", &options);
    let dataset = process.dataset(format!("{HOSPITAL}50,M,flu,{MARKER},{MARKER},{MARKER}\n")).await;
    let job = process.job(&dataset, json!({"method": hospital_method()})).await.ok(200);
    let trace: [u8; 16] = *b"\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36";
    let parent: [u8; 8] = *b"\x00\xf0\x67\xaa\x0b\xa9\x02\xb7";
    let request = process.request(Method::GET, &format!("/v1/jobs?series={MARKER}"));
    let logged = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request = request.header("traceparent", logged).header("x-request-id", "traced-1").bearer_auth(MARKER);
    process.send(request).await.ok(200);
    // what is not sent yet is sent when it stops
    let ended = tokio::task::spawn_blocking(move || (process.terminate(), process)).await.unwrap();
    assert!(ended.0.success());

    let sent = sent.lock().unwrap();
    for (what, piece) in [
        ("the trace id", &trace[..]),
        ("the parent", &parent[..]),
        ("the service", b"guardian"),
        ("the request", b"GET /v1/jobs"),
        ("its id", b"traced-1"),
        ("the upload", b"POST /v1/datasets"),
        ("the job", text(&job["id"]).as_bytes()),
        ("its method", b"versatile"),
        ("a phase", b"verify"),
    ] {
        assert!(holds(&sent, piece), "{what} is missing");
    }
    assert!(!holds(&sent, MARKER.as_bytes()), "a value, a query or a token was sent");
}

#[test]
fn a_collector_that_cannot_be_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let mut command = guardian();
    command.args(["serve", "--listen", "127.0.0.1:0", "--otlp-endpoint", "https://me:hunter2@collector", "--data"]);
    let output = run(command.arg(home.path().join("data")));
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--otlp-endpoint") && !said.contains("hunter2"), "{said}");
}
