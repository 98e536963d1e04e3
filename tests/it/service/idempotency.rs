//! Requests that are repeated under a key, and requests that are too many.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::harness::{Answer, Client, HOSPITAL, Process, Server, hospital_method, text};

async fn upload(server: &Client, key: &str, query: &str, body: &str) -> Answer {
    server.upload_with(query, body, &[("idempotency-key", key)]).await
}

async fn submit(server: &Client, key: &str, query: &str, document: &Value) -> Answer {
    let request = server.request(reqwest::Method::POST, &format!("/v1/jobs{query}")).json(document);
    server.send(request.header("idempotency-key", key)).await
}

/// An upload whose head was sent and admitted: the service asks for the body.
pub(crate) async fn admitted(server: &Client, key: &str, len: usize) -> TcpStream {
    let mut stream = TcpStream::connect(server.authority()).await.unwrap();
    let head = format!(
        "POST /v1/datasets?name=t HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nIdempotency-Key: {key}\r\n\
         Expect: 100-continue\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 25];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_upload_is_stored_once() {
    let server = Server::start().await;
    let first = upload(&server, "k", "name=t", HOSPITAL).await;
    let stored = server.stored("column_chunks").await;
    for _ in 0..2 {
        let again = upload(&server, "k", "name=t", HOSPITAL).await;
        assert_eq!((again.status, again.header("location")), (201, first.header("location")));
        assert_eq!(again.json(), first.ok(201));
    }
    for (query, body) in [("name=u", HOSPITAL), ("name=t", "a,b\n1,2\n"), ("name=t", &HOSPITAL[1..])] {
        upload(&server, "k", query, body).await.problem(409, "idempotency-conflict");
    }
    assert_eq!((server.stored("datasets").await, server.stored("column_chunks").await), (1, stored));
    // another key, another dataset; and what is purged stays the answer
    assert_ne!(upload(&server, "l", "name=t", HOSPITAL).await.ok(201)["id"], first.json()["id"]);
    server.delete(first.header("location")).await.ok(200);
    assert_eq!(upload(&server, "k", "name=t", HOSPITAL).await.ok(201)["id"], first.json()["id"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_upload_lets_go_of_its_key() {
    let server = Server::start().await;
    upload(&server, "k", "", "a,b\n1\n").await.problem(422, "upload-malformed");
    let zeros = "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:";
    let damaged = [("idempotency-key", "k"), ("content-digest", zeros)];
    server.upload_with("", HOSPITAL, &damaged).await.problem(400, "digest-mismatch");
    assert_eq!(server.stored("idempotency_keys").await, 0);
    upload(&server, "k", "", HOSPITAL).await.ok(201);
    server.upload_with("", HOSPITAL, &damaged).await.problem(400, "digest-mismatch");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeat_during_first_upload_is_a_conflict() {
    let server = Server::start().await;
    let mut first = admitted(&server, "k", HOSPITAL.len()).await;
    let busy = upload(&server, "k", "name=t", HOSPITAL).await;
    busy.problem(409, "conflict");
    assert!(busy.header("retry-after").parse::<u32>().is_ok());
    first.write_all(HOSPITAL.as_bytes()).await.unwrap();
    let mut answer = String::new();
    first.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let again = upload(&server, "k", "name=t", HOSPITAL).await;
    assert!(answer.contains(&text(&again.ok(201)["id"])));
    assert_eq!(server.stored("datasets").await, 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_does_not_keep_a_key() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let process = Process::serve(&data, "info");
    let _half = admitted(&process, "k", HOSPITAL.len()).await;
    process.kill();
    let process = Process::serve(&data, "info");
    let done = upload(&process, "k", "name=t", HOSPITAL).await.ok(201);
    process.kill();
    // nor does it forget what was done
    let mut process = Process::serve(&data, "info");
    assert_eq!(upload(&process, "k", "name=t", HOSPITAL).await.ok(201), done);
    assert!(process.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_submission_is_one_job() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let document = json!({"dataset": dataset, "method": hospital_method()});
    let first = submit(&server, "k", "", &document).await;
    let again = submit(&server, "k", "", &document).await;
    assert_eq!((again.status, again.header("location")), (202, first.header("location")));
    assert_eq!(again.ok(202)["id"], first.ok(202)["id"]);
    let waited = submit(&server, "k", "?wait=60", &document).await.ok(200);
    assert_eq!((&waited["id"], &waited["status"]), (&first.json()["id"], &json!("succeeded")));
    let mut other = document.clone();
    other["priority"] = 1.into();
    submit(&server, "k", "", &other).await.problem(409, "idempotency-conflict");
    assert_eq!(server.stored("jobs").await, 1);
    // the same key means nothing to uploads
    upload(&server, "k", "", HOSPITAL).await.ok(201);

    // at once
    let requests = || submit(&server, "at once", "", &other);
    assert_eq!(requests().await.status, 400, "a space is not visible");
    let requests = || submit(&server, "at-once", "", &other);
    let (a, b, c) = tokio::join!(requests(), requests(), requests());
    let accepted: Vec<_> = [&a, &b, &c].into_iter().filter(|answer| answer.status == 202).collect();
    assert!(!accepted.is_empty() && accepted.iter().all(|answer| answer.json()["id"] == accepted[0].json()["id"]));
    assert_eq!(server.stored("jobs").await, 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_submission_lets_go_of_its_key() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let wrong = json!({"dataset": dataset, "method": {"type": "none"}});
    submit(&server, "k", "", &wrong).await.problem(422, "invalid-specification");
    assert_eq!(server.stored("idempotency_keys").await, 0);
    submit(&server, "k", "", &json!({"dataset": dataset, "method": hospital_method()})).await.ok(202);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_have_1_to_255_visible_characters() {
    let server = Server::start().await;
    for key in ["", "a b", "é", &"x".repeat(256)] {
        upload(&server, key, "", HOSPITAL).await.problem(400, "malformed-request");
        submit(&server, key, "", &json!({})).await.problem(400, "malformed-request");
    }
    upload(&server, &"~".repeat(255), "", HOSPITAL).await.ok(201);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_above_the_quota_are_refused() {
    let server = Server::start_with(|config| config.max_queued_jobs = 0).await;
    let dataset = server.dataset(HOSPITAL).await;
    let document = json!({"dataset": dataset, "method": hospital_method()});
    let refused = submit(&server, "k", "", &document).await;
    let problem = refused.problem(429, "quota");
    assert_eq!((&problem["limit"], &problem["found"]), (&json!(0), &json!(0)));
    assert!(refused.header("retry-after").parse::<u32>().is_ok());
    assert_eq!((server.stored("jobs").await, server.stored("idempotency_keys").await), (0, 0));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_and_plans_above_limits_are_refused() {
    let server = Server::start_with(|config| {
        config.max_uploads = 1;
        config.max_plans = 0;
    })
    .await;
    let dataset = server.dataset(HOSPITAL).await;
    let mut slow = admitted(&server, "slow", HOSPITAL.len()).await;
    let refused = server.upload("", HOSPITAL).await;
    assert_eq!(refused.problem(429, "too-many-requests")["limit"], 1);
    assert!(refused.header("retry-after").parse::<u32>().is_ok());
    slow.write_all(HOSPITAL.as_bytes()).await.unwrap();
    slow.read_to_end(&mut Vec::new()).await.unwrap();
    server.upload("", HOSPITAL).await.ok(201);
    let plan = json!({"dataset": dataset, "method": hospital_method()});
    server.post("/v1/plans", &plan).await.problem(429, "too-many-requests");
    server.stop().await;
}
