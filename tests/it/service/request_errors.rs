//! Requests that are wrong before a table or a specification is: ids, methods, paths, queries, bodies, hosts, origins.

use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HOST, ORIGIN};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::harness::{
    HOSPITAL, MARKER, Process, Server, assert_problem, hospital_method, kind, part_path, text, versatile,
};

const UNKNOWN_ID: &str = "018f0000-0000-7000-8000-000000000000";

#[tokio::test(flavor = "multi_thread")]
async fn unknown_and_malformed_ids_are_not_found() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let manifest = server.publish(&dataset, json!({"method": hospital_method()})).await;
    let braced = format!("%7B{dataset}%7D");
    let packed = dataset.replace('-', "");
    let ids = [UNKNOWN_ID, "7", "x", "%FF", "%00", "..%2f..", "018f0000-0000-7000-8000-00000000000g", &braced, &packed];
    for id in ids {
        for (method, path) in [
            (Method::GET, format!("/v1/datasets/{id}")),
            (Method::DELETE, format!("/v1/datasets/{id}")),
            (Method::GET, format!("/v1/datasets/{id}/profile")),
            (Method::GET, format!("/v1/datasets/{id}/attributes/a/values")),
            (Method::GET, format!("/v1/jobs/{id}")),
            (Method::GET, format!("/v1/jobs/{id}?wait=60")),
            (Method::DELETE, format!("/v1/jobs/{id}")),
            (Method::GET, format!("/v1/releases/{id}")),
            (Method::GET, format!("/v1/releases/{id}/report")),
            (Method::GET, format!("/v1/releases/{id}/tables/t1/parts/qi")),
        ] {
            server.send(server.request(method, &path)).await.problem(404, "not-found");
        }
    }
    for (table, part) in
        [("t9", "qi"), ("t1", "rows"), ("t1", "%FF"), ("%FF", "qi"), ("t1", "t1.qi.csv"), ("..%2Ft1", "qi")]
    {
        server.get(&part_path(&manifest, table, part)).await.problem(404, "not-found");
    }
    // one kind of id is not another
    server.get(&format!("/v1/jobs/{dataset}")).await.problem(404, "not-found");
    server.job(UNKNOWN_ID, json!({"method": hospital_method()})).await.problem(404, "not-found");
    let unknown = json!({"dataset": UNKNOWN_ID, "method": hospital_method()});
    server.post("/v1/plans", &unknown).await.problem(404, "not-found");
    server.post("/v1/plans", &json!({"dataset": UNKNOWN_ID, "method": {}})).await.fault("/dataset", "parameter-range");
    for malformed in [json!("x"), json!(7), json!(null), json!(packed)] {
        let document = json!({"dataset": malformed, "method": hospital_method()});
        server.post("/v1/jobs", &document).await.fault("/dataset", "parameter-range");
    }
    server.post("/v1/jobs", &json!({})).await.fault("/dataset", "parameter-range");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_methods_and_paths() {
    let server = Server::start().await;
    for (method, path) in [
        (Method::PUT, "/v1/datasets"),
        (Method::PATCH, "/v1/jobs"),
        (Method::POST, "/healthz"),
        (Method::DELETE, "/v1/releases"),
        (Method::GET, "/v1/plans"),
        (Method::PUT, "/v1/releases/018f0000-0000-7000-8000-000000000000"),
    ] {
        let answer = server.send(server.request(method, path)).await;
        answer.problem(405, "method-not-allowed");
        assert!(!answer.header("allow").is_empty(), "{path}");
    }
    for path in ["/", "/v1", "/v2/datasets", "/v1/datasets/", "/v1/nobody", "/%FF", "/v1/jobs/x/events/y"] {
        server.get(path).await.problem(404, "not-found");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_that_cannot_be_understood() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let manifest = server.publish(&dataset, json!({"method": hospital_method()})).await;
    let job = text(&server.items("/v1/jobs").await[0]["id"]);
    let part = part_path(&manifest, "t1", "qi");
    for path in ["/v1/datasets", "/v1/jobs", "/v1/releases", &part] {
        for query in ["surprise=1", "limit=0", "limit=1001", "limit=-1", "limit=x", "limit=", "cursor=x", "cursor=%FF"]
        {
            let query = if path == part { format!("format=json&{query}") } else { query.to_owned() };
            server.get(&format!("{path}?{query}")).await.problem(400, "malformed-request");
        }
    }
    for path in [
        format!("/v1/jobs/{job}?wait=61"),
        format!("/v1/jobs/{job}?wait=-1"),
        format!("/v1/jobs/{job}?wait=1.5"),
        format!("/v1/jobs/{job}?surprise=1"),
        "/v1/jobs?status=sleeping".to_owned(),
        "/v1/jobs?dataset=x".to_owned(),
        "/v1/jobs?limit=1&limit=2".to_owned(),
        format!("{part}?limit=5"),
        format!("{part}?cursor=0"),
        format!("{part}?format=json&cursor=6"),
        format!("{part}?format=json&cursor=-1"),
        format!("{part}?view=sums"),
    ] {
        server.get(&path).await.problem(400, "malformed-request");
    }
    let document = json!({"dataset": dataset, "method": hospital_method()});
    server.post("/v1/jobs?wait=61", &document).await.problem(400, "malformed-request");
    assert_eq!(server.items("/v1/jobs").await.len(), 1);
    for (name, value) in [("accept", "image/png"), ("accept", "text/csv;q=0"), ("accept", "")] {
        let request = server.request(Method::GET, &part).header(name, value);
        server.send(request).await.problem(406, "not-acceptable");
    }
    server.get(&format!("{part}?format=xlsx")).await.problem(406, "not-acceptable");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_of_requests_are_bounded() {
    let server = Server::start().await;
    let of_length =
        |bytes: usize| format!("/v1/datasets?limit={}", "0".repeat(bytes - "/v1/datasets?limit=".len() - 1) + "7");
    server.get(&of_length(16 << 10)).await.ok(200);
    let problem = server.get(&of_length((16 << 10) + 1)).await.problem(414, "uri-too-long");
    assert_eq!((&problem["limit"], &problem["found"]), (&json!(16_384), &json!(16_385)));
    let with_header = |bytes: usize| server.request(Method::GET, "/v1/datasets").header("x-long", "x".repeat(bytes));
    assert_eq!(server.send(with_header(30_000)).await.status, 200);
    let problem = server.send(with_header(40_000)).await.problem(431, "headers-too-large");
    assert_eq!(problem["limit"], 32_768);
    server.stop().await;
}

/// What is answered to bytes, until the connection is closed: each head with its body.
async fn answers(server: &Server, sent: &str) -> Vec<(String, String)> {
    let mut connection = TcpStream::connect(server.authority()).await.unwrap();
    connection.write_all(sent.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    connection.read_to_end(&mut received).await.unwrap();
    let (mut rest, mut answers) = (String::from_utf8(received).unwrap(), Vec::new());
    while let Some((head, behind)) = rest.split_once("\r\n\r\n") {
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
        let (body, behind) = behind.split_at(length);
        answers.push((head.to_owned(), body.to_owned()));
        rest = behind.to_owned();
    }
    assert_eq!(rest, "");
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_that_are_not_read_get_problems() {
    let server = Server::start_with(|config| config.path_prefix = "/guardian".to_owned()).await;
    let good = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let get = |headers: &str| format!("GET /guardian/v1/datasets HTTP/1.1\r\n{headers}\r\n");
    let behind = "x".repeat(100_000);
    for (sent, status, name) in [
        ("NONSENSE\r\n\r\n".to_owned(), 400, "malformed-request"),
        (format!("\u{1}\u{2} / HTTP/1.1\r\n\r\n{behind}"), 400, "malformed-request"),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), 400, "malformed-request"),
        ("GET  / HTTP/1.1\r\n\r\n".to_owned(), 400, "malformed-request"),
        (get("no header\r\n"), 400, "malformed-request"),
        (get("Content-Length: many\r\n"), 400, "malformed-request"),
        (get(&"X: x\r\n".repeat(101)), 431, "headers-too-large"),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70_000)), 414, "uri-too-long"),
    ] {
        for before in [0, 2] {
            let answered = answers(&server, &(good.repeat(before) + &sent)).await;
            let at = &sent[..sent.len().min(60)];
            assert_eq!(answered.len(), before + 1, "{at:?}: {answered:?}");
            assert!(answered[..before].iter().all(|(head, _)| head.starts_with("HTTP/1.1 200 ")), "{answered:?}");
            let (head, body) = &answered[before];
            let problem: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{at:?}: {head}"));
            assert_problem(&problem);
            assert_eq!((kind(&problem), &problem["status"]), (name, &json!(status)), "{at:?}");
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
            for header in [
                "content-type: application/problem+json",
                "connection: close",
                "x-request-id: ",
                "cache-control: no-store",
            ] {
                assert!(head.contains(header), "{header}: {head}");
            }
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_of_parts_are_bounded() {
    let server = Server::start().await;
    let form = |filler: usize, rows: usize| {
        let head = format!(
            "Content-Disposition: form-data; name=\"file\"; filename=\"t.csv\"\r\nX: {}\r\n\r\n",
            "x".repeat(filler)
        );
        format!("--b\r\n{head}a,b\r\n{}\r\n--b--\r\n", "1,2\r\n".repeat(rows))
    };
    let sent = async |path: &str, body: String| {
        let request = server.request(Method::POST, path).header(CONTENT_TYPE, "multipart/form-data; boundary=b");
        server.send(request.body(body)).await
    };
    // a long file after a head is no long head
    let taken = sent("/v1/datasets", form(60_000, 500_000)).await;
    assert_eq!(taken.ok(201)["rows"], 500_000);
    assert_eq!(taken.header("connection"), "");
    for path in ["/v1/datasets", "/v1/verifications"] {
        let refused = sent(path, form(3_000_000, 3)).await;
        let problem = refused.problem(400, "malformed-request");
        assert_eq!(problem["limit"], 65_536, "{path}: {problem}");
        // the rest of the body is not read, so that no client may go on with this connection
        assert_eq!(refused.header("connection"), "close", "{path}");
        // what precedes the first part counts, too
        let problem = sent(path, "x".repeat(3_000_000)).await.problem(400, "malformed-request");
        assert_eq!(problem["limit"], 65_536, "{path}");
    }
    assert_eq!(server.items("/v1/datasets").await.len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_document() {
    let server = Server::start().await;
    let deep = "[".repeat(100_000);
    for path in ["/v1/jobs", "/v1/plans"] {
        let bodies: [&[u8]; 11] = [
            b"",
            b"[]",
            b"\"SECRETVALUE\"",
            b"7",
            b"null",
            b"{\"dataset\": ",
            b"{\"dataset\": \"SECRETVALUE",
            b"{\"a\": \"\xff\xfe\"}",
            b"{} {}",
            b"{\"a\": 1e999}",
            deep.as_bytes(),
        ];
        for body in bodies {
            let request =
                server.request(Method::POST, path).header(CONTENT_TYPE, "application/json").body(body.to_vec());
            let answer = server.send(request).await;
            answer.problem(400, "malformed-body");
        }
        let large = format!("{{\"a\": \"{}\"}}", "x".repeat(20 << 20));
        let request = server.request(Method::POST, path).header(CONTENT_TYPE, "application/json").body(large);
        let problem = server.send(request).await.problem(413, "too-large");
        assert_eq!(problem["limit"], 16 << 20);
        let request = server.request(Method::POST, path).header(CONTENT_TYPE, "text/csv").body("a,b\n1,2\n");
        server.send(request).await.problem(415, "unsupported-media-type");
    }
    assert!(server.items("/v1/jobs").await.is_empty());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purged_dataset_is_gone_and_its_release_stays() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let manifest = server.publish(&dataset, json!({"method": hospital_method()})).await;
    let path = format!("/v1/datasets/{dataset}");
    let receipt = server.delete(&path).await.ok(200);
    assert!(receipt["purged_at"].is_string());
    let expected = json!({"dataset": dataset, "purged_at": receipt["purged_at"], "rows": 6, "key_destroyed": true,
        "releases_kept": [manifest["id"]]});
    assert_eq!(receipt, expected);
    assert_eq!(server.stored("column_chunks").await, 0);
    server.get(&path).await.problem(410, "gone");
    server.delete(&path).await.problem(410, "gone");
    let document = json!({"method": hospital_method()});
    server.job(&dataset, document.clone()).await.problem(410, "gone");
    server.post("/v1/plans", &json!({"dataset": dataset, "method": {}})).await.problem(410, "gone");
    assert!(!server.part(&manifest, "t1", "qi").await.is_empty());
    let listed = &server.items("/v1/datasets").await[0];
    assert_eq!((&listed["id"], &listed["purged_at"]), (&json!(dataset), &receipt["purged_at"]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_job_cannot_be_cancelled() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let job = server.job(&dataset, json!({"method": hospital_method()})).await.ok(200);
    let path = text(&job["links"]["self"]);
    server.delete(&path).await.problem(409, "conflict");
    assert_eq!(server.get(&path).await.ok(200)["status"], "succeeded");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_hosts_and_origins_are_refused() {
    let server = Server::start().await;
    for host in ["example.com", "127.0.0.1.example.com", "localhost.example.com:80", "10.0.0.1"] {
        for path in ["/healthz", "/v1/datasets", "/docs/", "/openapi.json", "/nobody"] {
            let request = server.request(Method::GET, path).header(HOST, host);
            server.send(request).await.problem(403, "host-refused");
        }
    }
    for origin in ["https://example.com", "http://localhost:1", "null", "http://127.0.0.1"] {
        let request =
            server.request(Method::POST, "/v1/datasets").header(ORIGIN, origin).header(CONTENT_TYPE, "text/csv");
        server.send(request.body(HOSPITAL)).await.problem(403, "foreign-origin");
        let preflight = server.request(Method::OPTIONS, "/v1/datasets").header(ORIGIN, origin);
        server.send(preflight).await.problem(403, "foreign-origin");
    }
    server.assert_nothing_stored().await;
    let own = server.request(Method::GET, "/v1/datasets").header(ORIGIN, &server.base).header(ACCEPT, "*/*");
    let answer = server.send(own).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, ""));
    server.stop().await;
}

/// Everything that goes wrong with data, while the log says all it can.
#[tokio::test(flavor = "multi_thread")]
async fn no_value_of_the_data_is_logged() {
    let home = tempfile::tempdir().unwrap();
    let mut process = Process::serve(&home.path().join("data"), "trace");
    let mut table = String::from("age,race,ward\n");
    for row in 0..60 {
        table.push_str(&format!("{},{MARKER}{},{MARKER}{}\n", row % 7, row % 3, row % 3));
    }
    for bad in [format!("{table}{MARKER}\n"), format!("{table}1,\"{MARKER}"), table.replace("age,race", "a,a")] {
        process.upload("", bad).await.problem(422, "upload-malformed");
    }
    process.upload("types=race:integer", table.clone()).await.problem(422, "upload-malformed");
    let headers = [("content-encoding", "gzip")];
    process.upload_with("", table.clone(), &headers).await.problem(422, "upload-malformed");
    process.upload("null=SECRET&delimiter=%7C", table.clone()).await.ok(201);

    let dataset = process.dataset(table).await;
    let rules = |rules: &[&str]| json!({"unlisted": "drop", "method": versatile(rules)});
    process.publish(&dataset, rules(&["age -> race"])).await;
    process.refused(&dataset, rules(&["ward -> race"])).await;
    let mut ineligible = rules(&["age -> race"]);
    ineligible["method"]["default_guarantee"]["l"] = 50.into();
    process.job(&dataset, ineligible).await.problem(422, "invalid-specification");
    let mut planned = rules(&["ward -> race"]);
    planned["dataset"] = dataset.as_str().into();
    assert_eq!(process.post("/v1/plans", &planned).await.ok(200)["feasible"], false);
    process.delete(&format!("/v1/datasets/{dataset}")).await.ok(200);
    assert!(process.terminate().success());
    let log = process.log();
    assert!(log.contains("job succeeded") && log.contains("TRACE"), "{log}");
    let line = log.lines().find(|line| line.contains(MARKER));
    assert_eq!(line, None);
}
