//! Every limit is reached, and says which it is.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{WriterProperties, WriterVersion};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::idempotency::admitted;
use super::input_formats::{ARROW, NDJSON, PARQUET, arrow_of, batch, parquet_of};
use super::uploads::{gzip, zstd};
use crate::support::harness::{HOSPITAL, Server, assert_problem, hospital_method, kind, part_path};

/// Long enough for whatever must happen.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn tables_keep_to_their_limits() {
    let server = Server::start_with(|config| {
        config.request_limits.max_rows = 100;
        config.request_limits.max_cell_bytes = 50;
        config.request_limits.max_row_bytes = 80;
        config.request_limits.max_batch_bytes = 200;
        config.request_limits.max_decompressed_bytes = 3000;
    })
    .await;
    let plain: &[(&str, &str)] = &[];
    let ndjson: &[(&str, &str)] = &[("content-type", NDJSON)];
    let arrow: &[(&str, &str)] = &[("content-type", ARROW)];
    let parquet: &[(&str, &str)] = &[("content-type", PARQUET)];
    let pages = parquet_of(&[super::input_formats::batch()], Compression::SNAPPY, WriterVersion::PARQUET_1_0);
    let cell = "x".repeat(51);
    let row = vec!["x".repeat(40); 2].join(",");
    let zeros = format!("a,b\n{}", "0,0\n".repeat(800));
    let batch = arrow_of(&[batch()]);
    for (what, body, headers, limit) in [
        ("rows", format!("a,b\n{}", "1,2\n".repeat(101)).into_bytes(), plain, 100),
        ("rows", "{\"a\":1}\n".repeat(101).into_bytes(), ndjson, 100),
        ("bytes of a field", format!("a,b\n1,2\n1,{cell}\n").into_bytes(), plain, 50),
        ("bytes of a field", format!("{{\"a\":\"{cell}\"}}\n").into_bytes(), ndjson, 50),
        ("bytes of a record", format!("a,b\n{row}\n").into_bytes(), plain, 80),
        ("bytes of a record batch", batch, arrow, 200),
        ("bytes of the footer", pages, parquet, 200),
        ("bytes", zeros.clone().into_bytes(), plain, 3000),
        ("decompressed bytes", gzip(zeros.as_bytes()), &[("content-encoding", "gzip")], 3000),
        ("decompressed bytes", zstd(zeros.as_bytes()), &[("content-encoding", "zstd")], 3000),
    ] {
        let problem = server.upload_with("", body, headers).await.problem(413, "too-large");
        assert_eq!(problem["limit"], limit, "{what}: {problem:#}");
        assert!(problem["found"].as_u64().unwrap() > limit, "{what}: {problem:#}");
        assert!(problem["detail"].as_str().unwrap().starts_with(what), "{problem:#}");
    }
    server.assert_nothing_stored().await;
    let fits = format!("a,b\n{}", format!("{},2\n", "x".repeat(20)).repeat(100));
    server.upload("", fits).await.ok(201);
    server.stop().await;
}

/// A column of one text, so often that a page of it is large though its file is small.
fn one_long_page() -> Vec<u8> {
    let values: Vec<String> = (0..20_000).map(|row| format!("{:08}", row / 1000)).collect();
    let array: ArrayRef = Arc::new(StringArray::from(values));
    let batch = RecordBatch::try_from_iter([("a", array)]).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        .set_data_page_size_limit(1 << 20)
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_parquet_keep_to_their_limit() {
    let headers = [("content-type", PARQUET)];
    for (what, batch, unfolded, limit) in
        [("bytes of a page", 100_000, 1 << 30, 100_000), ("decompressed bytes", 1 << 30, 100_000, 100_000)]
    {
        let server = Server::start_with(|config| {
            config.request_limits.max_batch_bytes = batch;
            config.request_limits.max_decompressed_bytes = unfolded;
        })
        .await;
        let problem = server.upload_with("", one_long_page(), &headers).await.problem(413, "too-large");
        assert_eq!(problem["limit"], limit, "{problem:#}");
        assert!(problem["found"].as_u64().unwrap() > 200_000, "{problem:#}");
        assert!(problem["detail"].as_str().unwrap().starts_with(what), "{problem:#}");
        server.assert_nothing_stored().await;
        server.stop().await;
    }
    let server = Server::start().await;
    let dataset = server.upload_with("", one_long_page(), &headers).await.ok(201);
    assert_eq!((&dataset["rows"], &dataset["columns"][0]["distinct"]), (&json!(20_000), &json!(20)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_may_not_unfold_too_far() {
    let server = Server::start_with(|config| config.request_limits.max_decompression_ratio = 20).await;
    let rows = format!("a\n{}", format!("{}\n", "x".repeat(60_000)).repeat(1200));
    let answer = server.upload_with("", gzip(rows.as_bytes()), &[("content-encoding", "gzip")]).await;
    let problem = answer.problem(413, "too-large");
    assert_eq!(problem["limit"], 20);
    assert!(problem["found"].as_u64().unwrap() > 20);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_of_too_many_values_can_only_be_dropped() {
    for bytes in [false, true] {
        let server = Server::start_with(|config| match bytes {
            false => config.job_limits.max_distinct = 30,
            true => config.job_limits.max_dictionary_bytes = 1000,
        })
        .await;
        let rows: String = (0..40).map(|row| format!("{row},g{},r{}\n", row % 2, row % 5)).collect();
        let dataset = server.upload("", format!("id,group,race\n{rows}")).await.ok(201);
        let column = |at: usize| dataset["columns"][at].clone();
        assert_eq!((&column(0)["distinct"], &column(0)["identifier"]), (&Value::Null, &json!(true)));
        assert_eq!((&column(1)["distinct"], &column(2)["distinct"]), (&json!(2), &json!(5)));
        let id = dataset["id"].as_str().unwrap();
        let rules = json!({"type": "versatile", "rules": ["id -> race"],
            "default_guarantee": {"type": "l_diversity", "l": 2}});
        let document = json!({"unlisted": "drop", "method": rules,
            "attributes": {"id": {"publish": true, "identifier": false}}});
        let fault = server.job(id, document).await.fault("/attributes/id", "bad-columns");
        assert_eq!(fault["attribute"], "id");
        let method = json!({"type": "versatile", "rules": ["group -> race"],
            "default_guarantee": {"type": "l_diversity", "l": 2}});
        server.publish(id, json!({"unlisted": "drop", "method": method})).await;
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_have_a_limit() {
    let server = Server::start_with(|config| config.request_limits.max_document_bytes = 1000).await;
    let document = json!({"method": hospital_method(), "reason": "x".repeat(2000)});
    for path in ["/v1/jobs", "/v1/plans"] {
        let problem = server.post(path, &document).await.problem(413, "too-large");
        assert_eq!(problem["limit"], 1000);
        assert!(problem["found"].as_u64().unwrap() > 1000);
    }
    server.stop().await;
}

/// Begins a request and sends so much of its body.
async fn begun(server: &Server, head: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.authority()).await.unwrap();
    stream
        .write_all(format!("{head}Host: localhost\r\nContent-Length: 100000\r\n\r\n{body}").as_bytes())
        .await
        .unwrap();
    stream
}

/// The problem that an unfinished request is answered with.
async fn answered(mut stream: TcpStream) -> Value {
    let mut answer = Vec::new();
    // the connection is closed behind the answer
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let problem: Value = serde_json::from_str(body).unwrap();
    assert_problem(&problem);
    assert!(head.starts_with(&format!("HTTP/1.1 {}", problem["status"])), "{answer}");
    problem
}

const UPLOAD: &str = "POST /v1/datasets HTTP/1.1\r\nContent-Type: text/csv\r\n";

const JOB: &str = "POST /v1/jobs HTTP/1.1\r\nContent-Type: application/json\r\n";

const FORM: &str = "POST /v1/datasets HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=x\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn silent_upload_times_out() {
    let idle: fn(&mut guardian::config::Config) = |config| config.request_limits.upload_idle_seconds = 1;
    let total: fn(&mut guardian::config::Config) = |config| config.request_limits.max_upload_seconds = 1;
    for limited in [idle, total] {
        let server = Server::start_with(|config| {
            config.max_uploads = 1;
            limited(config);
        })
        .await;
        let in_a_form = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"t.csv\"\r\n\r\na,b\n1,2\n";
        for (head, body) in [(UPLOAD, ""), (UPLOAD, "a,b\n1,2\n"), (JOB, "{"), (FORM, ""), (FORM, in_a_form)] {
            let problem = answered(begun(&server, head, body).await).await;
            assert_eq!((kind(&problem), &problem["limit"]), ("request-timeout", &json!(1)), "{body:?}");
        }
        server.assert_nothing_stored().await;
        // the one place is free again
        server.upload("", HOSPITAL).await.ok(201);
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn request_above_the_limit_gets_retry_after() {
    let server = Server::start_with(|config| config.request_limits.max_requests = 1).await;
    // once it may go on, it has the one place
    let slow = admitted(&server, "slow", 100_000).await;
    let refused = server.get("/v1/datasets").await;
    let problem = refused.problem(429, "too-many-requests");
    assert_eq!((&problem["limit"], &problem["found"]), (&json!(1), &json!(2)));
    assert!(refused.header("retry-after").parse::<u32>().is_ok());
    // also who sends much, and gets to see the answer
    server.upload("", "1,2\n".repeat(1_000_000)).await.problem(429, "too-many-requests");
    // who looks after the service is served
    for path in ["/healthz", "/readyz"] {
        server.get(path).await.ok(200);
    }
    drop(slow);
    let free = async { while server.get("/v1/datasets").await.status != 200 {} };
    tokio::time::timeout(PATIENCE, free).await.unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_answered_whole() {
    let server = Server::start_with(|config| config.request_limits.max_requests = 4).await;
    let dataset = server.dataset(HOSPITAL).await;
    let path = format!("/v1/datasets/{dataset}");
    let answers = futures_util::future::join_all((0..300).map(|_| server.get(&path))).await;
    for answer in &answers {
        match answer.status {
            200 => assert_eq!(answer.json()["rows"], 6),
            _ => drop(answer.problem(429, "too-many-requests")),
        }
    }
    assert!(answers.iter().any(|answer| answer.status == 200));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_above_the_limit_wait() {
    let server = Server::start_with(|config| {
        config.request_limits.max_connections = 1;
        config.request_limits.max_connections_per_address = Some(2);
    })
    .await;
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n";
    let mut first = TcpStream::connect(server.authority()).await.unwrap();
    let mut second = None;
    for _ in 0..50 {
        first.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\"ok\"}") {
            answer.push(first.read_u8().await.unwrap());
        }
        if second.is_none() {
            let mut connection = TcpStream::connect(server.authority()).await.unwrap();
            connection.write_all(format!("{request}Connection: close\r\n\r\n").as_bytes()).await.unwrap();
            second = Some(connection);
        }
    }
    let mut second = second.unwrap();
    assert!(second.try_read(&mut [0; 1]).is_err(), "served beside the first");
    drop(first);
    let mut rest = String::new();
    tokio::time::timeout(PATIENCE, second.read_to_string(&mut rest)).await.unwrap().unwrap();
    assert!(rest.contains("200 OK"), "{rest}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_and_downloading_have_places_of_their_own() {
    let server = Server::start_with(|config| {
        config.request_limits.max_waiting = 0;
        config.request_limits.max_downloads = 0;
    })
    .await;
    let dataset = server.dataset(HOSPITAL).await;
    let document = json!({"dataset": dataset, "method": hospital_method()});
    // accepted, though there is no place to wait for it
    let job = server.post("/v1/jobs?wait=60", &document).await;
    assert!(matches!(job.status, 200 | 202), "{}", job.text());
    let this = job.json()["links"]["self"].as_str().unwrap().to_owned();
    let ended = async {
        loop {
            let job = server.get(&this).await.ok(200);
            if job["status"] == "succeeded" {
                return job;
            }
        }
    };
    let job = tokio::time::timeout(PATIENCE, ended).await.unwrap();
    let problem = server.get(&format!("{this}/events")).await.problem(429, "too-many-requests");
    assert_eq!((&problem["limit"], &problem["found"]), (&json!(0), &json!(1)));
    // what has ended need not be waited for
    server.get(&format!("{this}?wait=5")).await.ok(200);
    let release = json!({"id": job["release"]});
    let part = part_path(&release, "t1", "qi");
    let archive = format!("{}/archive", job["links"]["release"].as_str().unwrap());
    for path in [part.as_str(), &archive] {
        let refused = server.get(path).await;
        assert_eq!(refused.problem(429, "too-many-requests")["limit"], 0);
        assert!(refused.header("retry-after").parse::<u32>().is_ok());
    }
    server.get(&format!("{part}?format=json")).await.ok(200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn job_above_the_memory_budget_is_refused() {
    let server = Server::start_with(|config| config.job_limits.memory_budget = Some(1000)).await;
    let dataset = server.dataset(HOSPITAL).await;
    let document = json!({"dataset": dataset, "method": hospital_method()});
    let problem = server.post("/v1/jobs", &document).await.problem(422, "work-limit");
    let (limit, found) = (&problem["limit"], &problem["found"]);
    assert!(limit == 1000 && found.as_u64().unwrap() > 1000, "{problem:#}");
    assert_eq!(server.stored("jobs").await, 0);
    let plan = server.post("/v1/plans", &document).await.ok(200);
    assert_eq!(plan["feasible"], false);
    assert_eq!(kind(&plan["problems"][0]), "work-limit");
    assert_eq!((&plan["problems"][0]["limit"], &plan["problems"][0]["found"]), (limit, found));
    assert_eq!(plan["tables"].as_array().unwrap().len(), 2, "what can be said is said");
    server.stop().await;

    let server = Server::start_with(|config| config.job_limits.memory_budget = Some(1 << 30)).await;
    let dataset = server.dataset(HOSPITAL).await;
    server.publish(&dataset, json!({"method": hospital_method()})).await;
    let document = json!({"dataset": dataset, "method": hospital_method()});
    server.post("/v1/plans", &document).await.ok(200);
    server.stop().await;
}
