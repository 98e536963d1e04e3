//! Forms in which a table is sent, and that its cells come out of a release as they went in.

use std::io::Write;

use base64::Engine;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::harness::{Client, HOSPITAL, Server, text};

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 3).unwrap()
}

/// Publishes a dataset without rules; the CSV of its only part.
async fn republished(server: &Client, dataset: &Value) -> String {
    let names = dataset["columns"].as_array().unwrap().iter().map(|column| text(&column["name"]));
    let attributes: serde_json::Map<String, Value> = names.map(|name| (name, json!({"publish": true}))).collect();
    let document = json!({"attributes": attributes, "no_rules_reason": "it is public anyway",
        "method": {"type": "versatile", "rules": []}});
    let manifest = server.publish(&text(&dataset["id"]), document).await;
    server.part(&manifest, "t1", "rows").await
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_tables_are_taken() {
    let server = Server::start().await;
    for (encoding, body) in [
        ("gzip", gzip(HOSPITAL.as_bytes())),
        ("x-gzip", [gzip(&HOSPITAL.as_bytes()[..50]), gzip(&HOSPITAL.as_bytes()[50..])].concat()),
        ("zstd", zstd(HOSPITAL.as_bytes())),
        ("identity", HOSPITAL.into()),
    ] {
        let bytes = body.len();
        let dataset = server.upload_with("name=t", body, &[("content-encoding", encoding)]).await.ok(201);
        assert_eq!((&dataset["rows"], &dataset["bytes"]), (&json!(6), &json!(bytes)), "{encoding}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_digest_is_accepted() {
    let server = Server::start().await;
    let body = gzip(HOSPITAL.as_bytes());
    let digest = base64::prelude::BASE64_STANDARD.encode(Sha256::digest(&body));
    let headers = [("content-encoding", "gzip"), ("content-digest", &format!("sha-512=:AA==:, sha-256=:{digest}:"))];
    server.upload_with("name=t", body, &headers).await.ok(201);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delimiters_line_ends_and_marks_of_order() {
    let server = Server::start().await;
    let rows = "a,b\n1,x\n2,y\n";
    for (query, csv) in [
        ("", "a,b\r\n1,x\r\n2,y\r\n"),
        ("", "a,b\n1,x\n2,y"),
        ("", "\u{feff}a,b\n1,x\n2,y\n"),
        ("", "a;b\n1;x\n2;y\n"),
        ("delimiter=;", "a;b\n1;x\n2;y\n"),
        ("delimiter=%3B", "\u{feff}a;b\r\n1;x\r\n2;y\r\n"),
        ("", "a\tb\n1\tx\n2\ty\n"),
        ("delimiter=tab", "a\tb\n1\tx\n2\ty\n"),
        ("delimiter=%7C", "a|b\n2|y\n1|x\n"),
    ] {
        let dataset = server.upload(query, csv).await.ok(201);
        assert_eq!(republished(&server, &dataset).await, rows, "{query} {csv:?}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_and_empty_survive_to_the_published_part() {
    let mut server = Server::start().await;
    let dataset = server.upload("null=NULL", "a,b\n,1\n\"\",2\nNULL,3\n\"NULL\",4\nNA,5\n").await.ok(201);
    assert_eq!(dataset["columns"][0]["missing"], 2);
    assert_eq!(dataset["columns"][0]["distinct"], 3);
    assert_eq!(republished(&server, &dataset).await, "a,b\n,1\n,3\n\"\",2\nNA,5\nNULL,4\n");

    // in one column a missing cell needs a mark of its own, also when NA occurs
    for (csv, published) in [("a\nx\n\n\"\"\n", "a\nNA\n\"\"\nx\n"), ("a\nNA\n\n", "a\n")] {
        server = server.anew().await;
        let dataset = server.upload("", csv).await.ok(201);
        let part = republished(&server, &dataset).await;
        assert!(part.starts_with(published), "{part:?}");
        assert_eq!(part.lines().count(), csv.lines().count());
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn types_are_inferred_or_declared() {
    let server = Server::start().await;
    let csv = "int,zip,dec,text\n5,01234,1.5,a\n-7,99999,2,b\n10,1,3.25,c\n";
    let kinds = |dataset: &Value| -> Vec<String> {
        dataset["columns"].as_array().unwrap().iter().map(|column| text(&column["type"])).collect()
    };
    let inferred = server.upload("", csv).await.ok(201);
    assert_eq!(kinds(&inferred), ["integer", "text", "decimal", "text"]);
    // integers go by number, text by bytes
    let first = |part: String| part.lines().nth(1).unwrap().to_owned();
    assert_eq!(first(republished(&server, &inferred).await), "-7,99999,2,b");
    let server = server.anew().await;
    let declared = server.upload("types=int:text,dec:decimal", csv).await.ok(201);
    assert_eq!(kinds(&declared), ["text", "text", "decimal", "text"]);
    assert_eq!(republished(&server, &declared).await.lines().nth(2).unwrap(), "10,1,3.25,c");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_published_part_can_be_uploaded_again() {
    let server = Server::start().await;
    let csv = "\"a,b\",\"say \"\"x\"\"\",\" sp \",näme,two lines,7,a/b~c\n\
        \"1,5\",\"\"\"\",\" \",é,\"l\r\n\",-0,x\n,\"\",NULL,\"\n\",\",\",007,\"#\"\n=1+1,@x,\t,-,'q',1e5,\u{1f600}\n";
    let first = server.upload("", csv).await.ok(201);
    let part = republished(&server, &first).await;
    let second = server.upload("", part.clone()).await.ok(201);
    assert_eq!(first["columns"], second["columns"]);
    assert_eq!(republished(&server, &second).await, part);
    // and as JSON every name and cell is the same text
    let manifest = server.items("/v1/releases").await[0].clone();
    let page = server
        .get(&format!("{}?format=json", crate::support::harness::part_path(&manifest, "t1", "rows")))
        .await
        .ok(200);
    assert_eq!(page["columns"], json!(["a,b", "say \"x\"", " sp ", "näme", "two lines", "7", "a/b~c"]));
    let row = json!(["1,5", "\"", " ", "é", "l\r\n", "-0", "x"]);
    assert!(page["rows"].as_array().unwrap().contains(&row), "{page:#}");
    server.stop().await;
}
