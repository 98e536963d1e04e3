//! What a process leaves behind when it is killed, stopped or started twice. With the real binary.

use std::path::Path;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::harness::{
    Client, HOSPITAL, Process, assert_problem, guardian, hospital_method, run, stored, text, versatile,
};

/// A table large enough that a job on it can be caught running.
fn large_table(rows: u32) -> String {
    let mut csv = String::from("age,ward,zip,disease\n");
    for row in 0..rows {
        let mixed = row.wrapping_mul(2_654_435_761) >> 8;
        csv.push_str(&format!("{},w{},{},d{}\n", mixed % 90, mixed / 90 % 50, mixed / 7 % 900, mixed / 11 % 40));
    }
    csv
}

fn large_job(dataset: &str) -> Value {
    json!({"dataset": dataset, "method": versatile(&["age, ward -> disease", "age, disease -> zip"])})
}

/// Submits and waits until a worker has the job.
async fn caught_running(process: &Client, document: &Value) -> String {
    let path = process.post("/v1/jobs", document).await;
    path.ok(202);
    let path = path.header("location").to_owned();
    loop {
        let job = process.get(&path).await.ok(200);
        match job["status"].as_str() {
            Some("queued") => tokio::task::yield_now().await,
            Some("running") => return path,
            _ => panic!("too fast to be caught: {job:#}"),
        }
    }
}

/// The bytes of every part of a release are what its manifest says they are; the number of parts.
async fn assert_parts_complete(client: &Client, release: &Value) -> usize {
    let manifest = client.get(&format!("/v1/releases/{}", text(release))).await.ok(200);
    assert_eq!(manifest["verification"]["verified"], true);
    let mut parts = 0;
    for table in manifest["tables"].as_array().unwrap() {
        for part in table["parts"].as_array().unwrap() {
            let csv = client.part(&manifest, &text(&table["name"]), &text(&part["name"])).await;
            assert_eq!(crate::methods::manifest_figures::sha256(csv.as_bytes()), text(&part["sha256"]));
            assert_eq!(csv.lines().count() as u64, part["rows"].as_u64().unwrap() + 1);
            parts += 1;
        }
    }
    parts
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_service_finishes_its_job_once() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let mut process = Process::serve(&data, "info");
    let dataset = process.dataset(large_table(200_000)).await;
    let document = large_job(&dataset);
    let path = caught_running(&process, &document).await;
    // once while it has just begun, once while parts are being written
    process.kill();
    process = Process::serve(&data, "info");
    loop {
        let job = process.get(&path).await.ok(200);
        assert!(["queued", "running"].contains(&text(&job["status"]).as_str()), "too fast to be caught: {job:#}");
        if job["status"] == "running" && stored(&data, "part_chunks").await > 0 {
            break;
        }
    }
    process.kill();

    let process = Process::serve(&data, "info");
    let job = process.get(&format!("{path}?wait=60")).await.ok(200);
    assert_eq!((&job["status"], &job["attempt"]), (&json!("succeeded"), &json!(3)), "{job:#}");
    assert_eq!(process.items("/v1/releases").await.len(), 1);
    let parts = assert_parts_complete(&process, &job["release"]).await;
    assert!(parts > 1);
    assert_eq!(stored(&data, "job_keys").await, 0);
    assert_eq!(stored(&data, "disclosures").await, stored_tables(&process, &job["release"]).await);
    // of the attempts that were killed nothing is left
    let again = process.post("/v1/jobs?wait=60", &document).await.ok(200);
    assert_eq!((&again["reused"], &again["release"]), (&json!(true), &job["release"]));
    assert_eq!(attempts_with_parts(&data).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_outlives_no_process_is_stopped() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let serve = || Process::serve_with(&data, "info", &["--listen", "127.0.0.1:0", "--max-attempts", "2"]);
    let process = serve();
    let dataset = process.dataset(large_table(200_000)).await;
    let path = caught_running(&process, &large_job(&dataset)).await;
    process.kill();
    let process = serve();
    loop {
        let job = process.get(&path).await.ok(200);
        match (text(&job["status"]).as_str(), job["attempt"].as_u64().unwrap()) {
            ("running", 2) => break,
            // it waits for a while before it is begun again
            ("queued" | "running", 1) => tokio::task::yield_now().await,
            _ => panic!("too fast to be caught: {job:#}"),
        }
    }
    process.kill();
    let process = serve();
    let job = process.get(&format!("{path}?wait=60")).await.ok(200);
    assert_eq!((&job["status"], &job["attempt"], &job["release"]), (&json!("failed"), &json!(2), &Value::Null));
    assert_problem(&job["problem"]);
    assert_eq!(crate::support::harness::kind(&job["problem"]), "attempts-exhausted");
    assert_eq!(stored(&data, "job_keys").await, 0);
    assert!(process.items("/v1/releases").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_upload_leaves_no_rows() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let process = Process::serve(&data, "info");
    // more than is read ahead before the first rows are kept
    let begun = stream::iter([Ok::<_, std::io::Error>(large_table(700_000))]);
    let body = reqwest::Body::wrap_stream(begun.chain(stream::pending()));
    let upload = process.request(Method::POST, "/v1/datasets").header("content-type", "text/csv").body(body);
    let upload = tokio::spawn(upload.send());
    while stored(&data, "column_chunks").await == 0 {
        assert!(!upload.is_finished(), "the upload goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    process.kill();
    assert!(upload.await.unwrap().is_err());
    assert!(stored(&data, "column_chunks").await > 0);
    let _process = Process::serve(&data, "info");
    assert_eq!((stored(&data, "column_chunks").await, stored(&data, "datasets").await), (0, 0));
}

async fn stored_tables(client: &Client, release: &Value) -> i64 {
    let manifest = client.get(&format!("/v1/releases/{}", text(release))).await.ok(200);
    manifest["tables"].as_array().unwrap().len() as i64
}

async fn attempts_with_parts(data: &Path) -> i64 {
    stored(data, "(SELECT DISTINCT job_id, attempt FROM part_chunks)").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_service_drains_and_keeps_everything() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let mut process = Process::serve(&data, "info");
    let dataset = process.dataset(large_table(60_000)).await;
    let path = caught_running(&process, &large_job(&dataset)).await;
    assert!(process.terminate().success(), "{}", process.log());
    drop(process);

    let process = Process::serve(&data, "info");
    let job = process.get(&format!("{path}?wait=60")).await.ok(200);
    // it ended within the grace period, in its first attempt
    assert_eq!((&job["status"], &job["attempt"]), (&json!("succeeded"), &json!(1)), "{job:#}");
    assert_parts_complete(&process, &job["release"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_datasets_jobs_releases_and_the_ledger() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let mut process = Process::serve(&data, "info");
    let dataset = process.dataset(HOSPITAL).await;
    let manifest = process.publish(&dataset, json!({"method": hospital_method()})).await;
    let before = everything(&process, &manifest).await;
    assert!(process.terminate().success());
    drop(process);

    let process = Process::serve(&data, "info");
    assert_eq!(everything(&process, &manifest).await, before);
    let again = process.job(&dataset, json!({"method": hospital_method()})).await.ok(200);
    assert_eq!((&again["reused"], &again["release"]), (&json!(true), &manifest["id"]));
    let open = json!({"unlisted": "drop", "attributes": {"age": {"publish": true}, "race": {"publish": true}},
        "no_rules_reason": "x", "method": {"type": "versatile", "rules": []}});
    assert_eq!(crate::support::harness::kind(&process.refused(&dataset, open).await), "composition-violated");
}

async fn everything(client: &Client, manifest: &Value) -> Vec<String> {
    let id = text(&manifest["id"]);
    let mut all = Vec::new();
    for path in [
        "/v1/datasets",
        "/v1/jobs",
        "/v1/releases",
        &format!("/v1/releases/{id}"),
        &format!("/v1/releases/{id}/report"),
    ] {
        all.push(client.get(path).await.text());
    }
    for (table, part) in [("t1", "qi"), ("t1", "sa"), ("t2", "rows")] {
        all.push(client.part(manifest, table, part).await);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_leaves_no_parts() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let process = Process::serve(&data, "info");
    let dataset = process.dataset(large_table(200_000)).await;
    let path = caught_running(&process, &large_job(&dataset)).await;
    // one that waits behind it ends at once
    let mut waiting = large_job(&dataset);
    waiting["method"]["default_guarantee"]["l"] = 3.into();
    let waiting = process.post("/v1/jobs", &waiting).await.ok(202);
    let waiting = process.delete(&text(&waiting["links"]["self"])).await.ok(202);
    assert_eq!(waiting["status"], "cancelled");

    let asked = process.delete(&path).await;
    asked.ok(202);
    assert_eq!(asked.header("location"), path);
    let job = process.get(&format!("{path}?wait=60")).await.ok(200);
    assert_eq!((&job["status"], &job["release"], &job["problem"]), (&json!("cancelled"), &Value::Null, &Value::Null));
    for table in ["part_chunks", "releases", "disclosures", "job_keys"] {
        assert_eq!(stored(&data, table).await, 0, "{table}");
    }
    process.delete(&path).await.problem(409, "conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_a_job() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let process = Process::serve(&data, "info");
    let dataset = process.dataset(large_table(400_000)).await;
    let mut document = large_job(&dataset);
    document["deadline"] = "PT1S".into();
    let job = process.post("/v1/jobs?wait=60", &document).await.ok(200);
    assert_eq!(job["status"], "failed", "{job:#}");
    assert_problem(&job["problem"]);
    assert_eq!(crate::support::harness::kind(&job["problem"]), "deadline");
    assert_eq!((stored(&data, "part_chunks").await, stored(&data, "job_keys").await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_folder_serves_one_process() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let process = Process::serve(&data, "info");
    let second = run(guardian().args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data));
    assert_eq!(second.status.code(), Some(4));
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(said.contains("another process") && said.contains(data.to_str().unwrap()), "{said}");
    // the first was not disturbed
    let dataset = process.dataset(HOSPITAL).await;
    process.publish(&dataset, json!({"method": hospital_method()})).await;
}

#[test]
fn other_addresses_than_loopback_are_not_served() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    for address in ["0.0.0.0:0", "[::]:0"] {
        let output = run(guardian().args(["serve", "--listen", address, "--data"]).arg(&data));
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8(output.stderr).unwrap().contains("loopback"));
    }
    assert!(!data.exists());
}

/// A public service needs an explicit store: an accidentally empty ledger would permit breaking releases.
#[test]
fn other_addresses_than_loopback_need_a_store_that_is_named() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    for address in ["0.0.0.0:0", "[::]:0"] {
        let output = run(guardian().args(["serve", "--auth", "keys", "--listen", address, "--data"]).arg(&data));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("DATABASE_URL") && said.contains("--store embedded"), "{said}");
    }
    assert!(!data.exists());
    let keys = ["--auth", "keys", "--listen"];
    drop(Process::serve_with(&data, "info", &[&keys[..], &["0.0.0.0:0", "--store", "embedded"]].concat()));
    drop(Process::serve_with(&data, "info", &[&keys[..], &["127.0.0.1:0"]].concat()));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_data_are_closed_to_others() {
    use std::os::unix::fs::PermissionsExt;

    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let process = Process::serve(&data, "info");
    process.dataset(HOSPITAL).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for entry in std::fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

/// Many callers at once, some of whom go away in the middle.
#[tokio::test(flavor = "multi_thread")]
async fn disconnected_callers_do_not_disturb_others() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let process = Process::serve(&data, "info");
    let dataset = process.dataset(large_table(60_000)).await;
    let mut callers = JoinSet::new();
    for number in 0..12 {
        let mut document = large_job(&dataset);
        document["priority"] = number.into();
        let plan = process.request(Method::POST, "/v1/plans").json(&document);
        callers.spawn(async move { plan.send().await.unwrap().status().as_u16() });
    }
    // the first plan finishes, the other callers disconnect; excess callers are refused
    loop {
        match callers.join_next().await.unwrap().unwrap() {
            200 => break,
            status => assert_eq!(status, 429),
        }
    }
    callers.abort_all();
    while callers.join_next().await.is_some() {}
    let job = process.post("/v1/jobs?wait=60", &large_job(&dataset)).await.ok(200);
    assert_eq!(job["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_dataset_was_purged_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let process = Process::serve(&data, "info");
    let large = process.dataset(large_table(60_000)).await;
    let dataset = process.dataset(HOSPITAL).await;
    caught_running(&process, &large_job(&large)).await;
    // the one worker is busy: this one waits
    let waiting = process.post("/v1/jobs", &json!({"dataset": dataset, "method": hospital_method()})).await.ok(202);
    process.delete(&format!("/v1/datasets/{dataset}")).await.ok(200);
    let job = process.get(&format!("{}?wait=60", text(&waiting["links"]["self"]))).await.ok(200);
    assert_eq!((&job["status"], &job["release"]), (&json!("refused"), &Value::Null));
    assert_problem(&job["problem"]);
    assert_eq!(crate::support::harness::kind(&job["problem"]), "gone");
}
