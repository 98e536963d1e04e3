//! Metrics: on an address of their own, right in number, and without anything that a caller chose.

use std::collections::{BTreeMap, BTreeSet};

use guardian::meter::METRICS;
use reqwest::Method;
use serde_json::json;

use crate::support::harness::{Answer, Client, HOSPITAL, MARKER, Process, hospital_method, text};

/// Samples by name and labels, as they are written.
struct Scrape {
    samples: BTreeMap<String, f64>,
    types: BTreeMap<String, String>,
    text: String,
}

impl Scrape {
    async fn of(tools: &Client) -> Self {
        let answer = tools.get("/metrics").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, "text/plain; version=0.0.4; charset=utf-8"));
        let text = answer.text();
        let (mut samples, mut types) = (BTreeMap::new(), BTreeMap::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, sort) = rest.split_once(' ').unwrap();
                types.insert(name.to_owned(), sort.to_owned());
            } else if !line.starts_with('#') && !line.is_empty() {
                let (series, value) = line.rsplit_once(' ').unwrap();
                samples.insert(series.to_owned(), value.parse().unwrap());
            }
        }
        Self { samples, types, text }
    }

    #[track_caller]
    fn value(&self, series: &str) -> f64 {
        *self.samples.get(series).unwrap_or_else(|| panic!("no {series} in\n{}", self.text))
    }
}

/// An answer that is not held against the document.
async fn asked(client: &Client, path: &str) -> Answer {
    Answer::of(client.request(Method::GET, path).send().await.unwrap()).await
}

/// A process with the address of its metrics.
fn watched(home: &tempfile::TempDir, more: &[&str]) -> (Process, Client) {
    let options = ["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"];
    let mut process = Process::serve_with(&home.path().join("data"), "info", &[&options[..], more].concat());
    let mut line = process.greeting();
    while !line.contains("metrics:") && line.lines().count() < 6 {
        line.push_str(&process.greeting());
    }
    let base = line.split_whitespace().find_map(|word| word.strip_suffix("/metrics"));
    let tools = Client::new(base.unwrap_or_else(|| panic!("no metrics: {line}")).to_owned());
    (process, tools)
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_reflect_requests_without_data() {
    let home = tempfile::tempdir().unwrap();
    let (process, tools) = watched(&home, &[]);
    let before = Scrape::of(&tools).await;
    for series in [
        r#"guardian_jobs_ended_total{method="versatile",outcome="succeeded"}"#,
        r#"guardian_uploads_total{format="text/csv",outcome="stored"}"#,
        r#"guardian_http_requests_total{method="POST",route="/v1/jobs",status="500"}"#,
        r#"guardian_jobs_reaped_total{fate="exhausted"}"#,
        r#"guardian_store_errors_total{kind="unavailable"}"#,
        "guardian_leases_lost_total",
    ] {
        assert_eq!(before.value(series), 0.0, "{series}");
    }
    // the main address serves no metrics
    process.get("/metrics").await.problem(404, "not-found");

    let table = format!("{HOSPITAL}50,M,flu,{MARKER},{MARKER},{MARKER}\n");
    let dataset = process.dataset(table.clone()).await;
    process.upload(&format!("name={MARKER}"), "a,b\n1\n").await.problem(422, "upload-malformed");
    let manifest = process.publish(&process.dataset(HOSPITAL).await, json!({"method": hospital_method()})).await;
    let hospital = text(&process.items("/v1/datasets").await[0]["id"]);
    let again = process.job(&hospital, json!({"method": hospital_method()})).await.ok(200);
    assert_eq!(again["reused"], true);
    process.job(&dataset, json!({"method": {"type": MARKER}})).await.problem(422, "invalid-specification");
    let part = process.part(&manifest, "t1", "qi").await;
    process.get(&format!("/v1/{MARKER}/{MARKER}")).await.problem(404, "not-found");
    // what no document knows
    asked(&process, &format!("/v1/releases/{}?x={MARKER}", text(&manifest["id"]))).await.ok(200);

    let after = Scrape::of(&tools).await;
    let moved = |series: &str| after.value(series) - before.samples.get(series).unwrap_or(&0.0);
    for (series, by) in [
        (r#"guardian_uploads_total{format="text/csv",outcome="stored"}"#, 2.0),
        (r#"guardian_uploads_total{format="text/csv",outcome="refused"}"#, 1.0),
        (r#"guardian_jobs_submitted_total{method="versatile",outcome="queued"}"#, 1.0),
        (r#"guardian_jobs_submitted_total{method="versatile",outcome="reused"}"#, 1.0),
        (r#"guardian_jobs_ended_total{method="versatile",outcome="succeeded"}"#, 1.0),
        (r#"guardian_jobs_ended_total{method="versatile",outcome="failed"}"#, 0.0),
        (r#"guardian_job_seconds_count{method="versatile",outcome="succeeded"}"#, 1.0),
        (r#"guardian_job_phase_seconds_count{method="versatile",phase="verify"}"#, 1.0),
        (r#"guardian_job_phase_seconds_count{method="versatile",phase="commit"}"#, 1.0),
        (r#"guardian_store_transactions_total{transaction="commit"}"#, 1.0),
        (r#"guardian_store_transaction_seconds_count{transaction="enqueue"}"#, 2.0),
        (r#"guardian_http_requests_total{method="POST",route="/v1/datasets",status="201"}"#, 2.0),
        (r#"guardian_http_requests_total{method="POST",route="/v1/datasets",status="422"}"#, 1.0),
        (r#"guardian_http_requests_total{method="POST",route="/v1/jobs",status="200"}"#, 2.0),
        (r#"guardian_http_requests_total{method="GET",route="unmatched",status="404"}"#, 2.0),
        (r#"guardian_http_request_seconds_count{method="POST",route="/v1/datasets"}"#, 3.0),
        (
            r#"guardian_http_received_bytes_total{method="POST",route="/v1/datasets"}"#,
            (table.len() + HOSPITAL.len() + "a,b\n1\n".len()) as f64,
        ),
        (
            r#"guardian_http_sent_bytes_total{method="GET",route="/v1/releases/{id}/tables/{table}/parts/{part}"}"#,
            part.len() as f64,
        ),
    ] {
        assert_eq!(moved(series), by, "{series}");
    }
    for (series, value) in [
        (r#"guardian_jobs{status="queued"}"#, 0.0),
        (r#"guardian_jobs{status="running"}"#, 0.0),
        ("guardian_job_oldest_waiting_seconds", 0.0),
        ("guardian_store_up", 1.0),
    ] {
        assert_eq!(after.value(series), value, "{series}");
    }

    // every name of the table is there, as what it says it is, and no other
    let table: BTreeMap<_, _> =
        METRICS.iter().map(|metric| (metric.name.to_owned(), metric.sort.name().to_owned())).collect();
    assert_eq!(after.types, table);
    // labels are those of the table, and their values words of the program
    for series in after.samples.keys() {
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let stem = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let metric = METRICS.iter().find(|metric| metric.name == name || Some(metric.name) == stem).unwrap();
        let pieces: Vec<&str> = labels.trim_end_matches('}').split("\",").filter(|piece| !piece.is_empty()).collect();
        let names: BTreeSet<&str> = pieces.iter().map(|piece| piece.split('=').next().unwrap()).collect();
        let expected: BTreeSet<&str> = metric.labels.iter().copied().collect();
        assert_eq!(names.into_iter().filter(|name| *name != "le").collect::<BTreeSet<_>>(), expected, "{series}");
    }
    for secret in [MARKER, &text(&manifest["id"]), &dataset, &hospital, "default", "alcoholism"] {
        assert!(!after.text.contains(secret), "{secret}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_metrics_answers_health_and_no_data() {
    let home = tempfile::tempdir().unwrap();
    let (process, tools) = watched(&home, &["--auth", "keys"]);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(asked(&tools, path).await.ok(200), json!({"status": "ok"}));
        assert_eq!(process.get(path).await.ok(200), json!({"status": "ok"}));
    }
    assert_eq!(tools.get("/metrics").await.header("x-content-type-options"), "nosniff");
    for path in ["/v1/datasets", "/docs", "/openapi.json", "/"] {
        asked(&tools, path).await.problem(404, "not-found");
    }
}

#[test]
fn main_port_serves_no_metrics() {
    let home = tempfile::tempdir().unwrap();
    let mut command = crate::support::harness::guardian();
    command.args(["serve", "--listen", "127.0.0.1:4999", "--metrics-listen", "0.0.0.0:4999", "--data"]);
    let output = crate::support::harness::run(command.arg(home.path().join("data")));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("a separate port"));
}
