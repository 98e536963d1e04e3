//! Tables that cannot be taken: what is answered, that it says where, and that nothing stays behind.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::uploads::{gzip, zstd};
use crate::support::harness::{HOSPITAL, MARKER, Server, assert_problem, kind};

/// An upload that must be refused: query, body, headers, status, name, members.
struct Bad {
    query: &'static str,
    body: Vec<u8>,
    headers: &'static [(&'static str, &'static str)],
    status: u16,
    name: &'static str,
    members: Value,
}

fn malformed(body: impl Into<Vec<u8>>, members: Value) -> Bad {
    Bad { query: "", body: body.into(), headers: &[], status: 422, name: "upload-malformed", members }
}

fn refused(query: &'static str, status: u16, name: &'static str) -> Bad {
    Bad { query, body: HOSPITAL.into(), headers: &[], status, name, members: json!({}) }
}

fn with_headers(headers: &'static [(&'static str, &'static str)], status: u16, name: &'static str) -> Bad {
    Bad { headers, ..refused("", status, name) }
}

fn bad_uploads() -> Vec<Bad> {
    let cut = gzip(&HOSPITAL.repeat(50).into_bytes());
    let ragged = format!("a,b\n1,{MARKER}\n{MARKER},2,3\n");
    let bomb = vec![b'0'; 80 << 20];
    let wide = (0..30).map(|column| format!("c{column}")).collect::<Vec<_>>().join(",");
    vec![
        malformed(ragged, json!({"row": 2, "column": null})),
        malformed(format!("a,b\n1,2\n{MARKER}\n"), json!({"row": 2})),
        malformed("a,b\n1,2\n\n", json!({"row": 2})),
        malformed(format!("a,b\n1,\"{MARKER}"), json!({"row": 1, "column": "b"})),
        malformed(format!("a,b\n1,\"x\"{MARKER}\n"), json!({"row": 1, "column": "b"})),
        malformed(format!("a,b\n1,x\"{MARKER}\n"), json!({"row": 1, "column": "b"})),
        malformed("a,b\n1,x\r2\n", json!({"row": 1})),
        malformed("a,a\n1,2\n", json!({"row": null})),
        malformed("a,,c\n1,2,3\n", json!({"row": null})),
        malformed("a,\"\"\n1,2\n", json!({"row": null})),
        malformed([MARKER.as_bytes(), b",b\n1,2\n3,\xff\xfe\n"].concat(), json!({"row": 2, "column": "b"}))
            .marked_name(),
        malformed(b"a\xff,b\n1,2\n".to_vec(), json!({"row": null})),
        malformed(b"\xff\xfea\0,\0b\0\n\0".to_vec(), json!({})),
        Bad {
            query: "types=b:integer",
            ..malformed(format!("a,b\n1,2\n1,{MARKER}\n"), json!({"row": 2, "column": "b"}))
        },
        Bad { headers: &[("content-encoding", "gzip")], ..malformed(cut[..cut.len() / 2].to_vec(), json!({})) },
        Bad { headers: &[("content-encoding", "gzip")], ..malformed(HOSPITAL, json!({})) },
        Bad { headers: &[("content-encoding", "zstd")], ..malformed(gzip(HOSPITAL.as_bytes()), json!({})) },
        // compressed, and not said so
        malformed(gzip(HOSPITAL.as_bytes()), json!({})),
        Bad { status: 422, name: "empty-table", ..malformed("", json!({})) },
        Bad { status: 422, name: "empty-table", ..malformed("a,b\n", json!({})) },
        Bad { status: 422, name: "empty-table", ..malformed("\u{feff}", json!({})) },
        Bad {
            status: 422,
            name: "empty-table",
            headers: &[("content-encoding", "gzip")],
            ..malformed(gzip(b""), json!({}))
        },
        Bad { headers: &[("content-encoding", "gzip")], body: gzip(&bomb), ..refused("", 413, "too-large") },
        Bad { headers: &[("content-encoding", "zstd")], body: zstd(&bomb), ..refused("", 413, "too-large") },
        Bad { status: 413, name: "too-many-columns", ..malformed(wide, json!({"limit": 20, "found": 30})) },
        Bad {
            status: 413,
            name: "too-large",
            ..malformed(format!("a,b\n1,2\n3,{}\n", "x".repeat(70_000)), json!({"row": 2, "limit": 65_536}))
        },
        with_headers(&[("content-type", "application/xml")], 415, "unsupported-media-type"),
        with_headers(&[("content-type", "application/vnd.apache.parquet")], 422, "upload-malformed"),
        with_headers(&[("content-type", "application/vnd.ms-excel")], 415, "unsupported-media-type"),
        with_headers(&[("content-type", "multipart/form-data; boundary=x")], 400, "malformed-request"),
        with_headers(&[("content-encoding", "br")], 415, "unsupported-media-type"),
        with_headers(&[("content-encoding", "gzip, gzip")], 415, "unsupported-media-type"),
        with_headers(
            &[("content-digest", "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:")],
            400,
            "digest-mismatch",
        ),
        with_headers(&[("content-digest", "sha-256=:AAAA:")], 400, "malformed-request"),
        with_headers(&[("content-digest", "sha-256=nonsense")], 400, "malformed-request"),
        refused("nonsense=1", 400, "malformed-request"),
        refused("name=", 400, "malformed-request"),
        refused("delimiter=ab", 400, "malformed-request"),
        refused("delimiter=%22", 400, "malformed-request"),
        refused("record_key=nobody", 400, "malformed-request"),
        refused("record_key=age,,race", 400, "malformed-request"),
        refused("record_key=age,race,age", 400, "malformed-request"),
        refused("types=age:text,age:integer", 400, "malformed-request"),
        refused("types=age", 400, "malformed-request"),
        refused("types=age:real", 400, "malformed-request"),
        refused("types=nobody:text", 400, "malformed-request"),
        refused("same_people=false", 400, "malformed-request"),
        refused("same_people=false&reason=x", 400, "malformed-request"),
        refused("series=nowhere", 422, "unknown-population"),
        refused("max_rows_per_subject=-1", 400, "malformed-request"),
        refused("subject=hospital&max_rows_per_subject=1", 422, "upload-malformed"),
    ]
}

impl Bad {
    /// The header is the marker here: names of columns may stand in problems, so the body is made anew without it.
    fn marked_name(self) -> Self {
        let body = String::from_utf8_lossy(&self.body).contains(MARKER);
        assert!(body);
        Self { body: [&b"a"[..], &self.body[MARKER.len()..]].concat(), ..self }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_tables_are_refused_and_leave_nothing() {
    let server = Server::start_with(|config| config.max_columns = 20).await;
    for (number, bad) in bad_uploads().into_iter().enumerate() {
        let shown = String::from_utf8_lossy(&bad.body[..bad.body.len().min(60)]).into_owned();
        let answer = server.upload_with(bad.query, bad.body, bad.headers).await;
        let problem = answer.json();
        let at = format!("{number}: {} {:?} {shown:?}: {problem}", bad.query, bad.headers);
        assert_eq!((answer.status, kind(&problem)), (bad.status, bad.name), "{at}");
        for (member, value) in bad.members.as_object().unwrap() {
            assert_eq!(&problem[member], value, "{member} of {at}");
        }
    }
    assert!(server.items("/v1/datasets").await.is_empty());
    server.assert_nothing_stored().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_after_many_chunks_leaves_nothing() {
    let server = Server::start().await;
    let mut csv = String::from("a,b\n");
    for row in 0..150_000 {
        csv.push_str(&format!("{row},{MARKER}{row}\n"));
    }
    csv.push_str(&format!("{MARKER},1,2\n"));
    let problem = server.upload("", csv).await.problem(422, "upload-malformed");
    assert_eq!(problem["row"], 150_001);
    server.assert_nothing_stored().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_refused_and_the_client_sees_why() {
    let server = Server::start_with(|config| config.max_upload_bytes = 10_000).await;
    let csv = format!("a,b\n{}", "1,2\n".repeat(1_000_000));
    let problem = server.upload("", csv).await.problem(413, "too-large");
    assert_eq!(problem["limit"], 10_000);
    assert!(problem["found"].as_u64().unwrap() > 10_000);
    // nor does a refusal before the first byte was read cut off who is still sending
    let large = || "1,2\n".repeat(2_000_000);
    server.upload("surprise=1", large()).await.problem(400, "malformed-request");
    server.upload_with("", large(), &[("content-type", "image/png")]).await.problem(415, "unsupported-media-type");
    server.upload("", format!("a,b\n{}", "1,2\n".repeat(2_499))).await.ok(201);
    server.stop().await;
}

/// Sends bytes as they are and reads what comes back; ends the sending side first.
async fn raw(server: &Server, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.authority()).await.unwrap();
    stream.write_all(request).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    // a reset is an answer too
    let _ = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_cut_off_leaves_nothing() {
    let server = Server::start().await;
    let head = "POST /v1/datasets HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n";
    let rows = format!("{MARKER},1\n").repeat(200_000);
    let half = format!("a,b\n{rows}");
    let by_length = format!("{head}Content-Length: {}\r\n\r\n{half}", half.len() * 2);
    let by_chunks = format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{half}\r\n", half.len());
    let in_chunk = format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{half}", half.len() * 2);
    let no_size = format!("{head}Transfer-Encoding: chunked\r\n\r\nZZ\r\n{half}");
    for request in [by_length, by_chunks, in_chunk, no_size] {
        let answer = raw(&server, request.as_bytes()).await;
        assert!(!answer.contains(MARKER));
        if let Some((head, body)) = answer.split_once("\r\n\r\n") {
            assert!(head.starts_with("HTTP/1.1 400"), "{answer}");
            if head.contains("application/problem+json") {
                let problem = serde_json::from_str(body.trim()).unwrap();
                assert_problem(&problem);
                assert_eq!(kind(&problem), "malformed-request");
            }
        }
    }
    assert!(server.items("/v1/datasets").await.is_empty());
    server.upload("", "a,b\n1,2\n").await.ok(201);
    // what is stored after all is under way has ended is of this upload alone
    server.stop_and_expect("column_chunks", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_row_is_a_table_that_no_rule_can_protect() {
    let server = Server::start().await;
    let dataset = server.dataset("age,race\n37,white\n").await;
    let document = json!({"method": {"type": "versatile", "rules": ["age -> race"],
        "default_guarantee": {"type": "l_diversity", "l": 2}}});
    let fault = server.job(&dataset, document).await.fault("/method/rules/0", "rule-ineligible");
    assert_eq!((&fault["requested"], &fault["largest_l"]), (&json!("2"), &json!(1)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_look_alike_are_refused() {
    let server = Server::start().await;
    let ndjson = [("content-type", "application/x-ndjson")];
    for (csv, row) in [
        ("caf\u{e9},cafe\u{301}\n1,2\n", "{\"caf\u{e9}\":1,\"cafe\u{301}\":2}\n"),
        ("age,age\u{200b}\n1,2\n", "{\"age\":1,\"age\u{200b}\":2}\n"),
        ("age,\u{202e}ega\n1,2\n", "{\"age\":1,\"\u{202e}ega\":2}\n"),
        ("age,\"a\nb\"\n1,2\n", "{\"age\":1,\"a\\nb\":2}\n"),
    ] {
        let of_csv = server.upload("", csv).await.problem(422, "upload-malformed");
        let of_ndjson = server.upload_with("", row, &ndjson).await.problem(422, "upload-malformed");
        assert_eq!(of_csv["detail"], of_ndjson["detail"]);
    }
    server.upload("name=a%E2%80%AEb", HOSPITAL).await.problem(400, "malformed-request");
    let keys = json!({"description": "x", "person": []});
    let named = server.put("/v1/populations/a%E2%80%8Bb", &keys).await;
    assert!((400..500).contains(&named.status), "{named:?}");
    server.assert_nothing_stored().await;
    server.upload("", "caf\u{e9},\u{65e5}\u{4ed8}\n1,2\n").await.ok(201);
    server.stop().await;
}
