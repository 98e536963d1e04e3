//! Answers in the coding that the client asks for: the same content, in fewer bytes.

use std::io::Read;

use flate2::read::GzDecoder;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::json;

use crate::support::harness::{Client, HOSPITAL, Server, hospital_method, part_path, text};

/// An answer as it comes over the wire.
struct CodedAnswer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl CodedAnswer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

async fn coded(client: &Client, path: &str, accepted: &str) -> CodedAnswer {
    let answer = client.request(Method::GET, path).header("accept-encoding", accepted).send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    CodedAnswer { status, headers, body: answer.bytes().await.unwrap().to_vec() }
}

fn decoded(answer: &CodedAnswer) -> Vec<u8> {
    let mut bytes = Vec::new();
    match answer.header("content-encoding") {
        "gzip" => GzDecoder::new(&answer.body[..]).read_to_end(&mut bytes).unwrap(),
        "zstd" => zstd::Decoder::new(&answer.body[..]).unwrap().read_to_end(&mut bytes).unwrap(),
        other => panic!("{other}"),
    };
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_compressed_where_the_client_takes_it() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let release = server.publish(&dataset, json!({"method": hospital_method()})).await;
    let part = part_path(&release, "t1", "qi");
    let report = format!("/v1/releases/{}/report", text(&release["id"]));
    for path in [&part, &format!("{part}.ndjson"), &report, &"/openapi.json".to_owned()] {
        let whole = server.get(path).await;
        assert_eq!((whole.status, whole.header("content-encoding")), (200, ""), "{path}");
        for (accepted, coding) in
            [("gzip", "gzip"), ("gzip, deflate, br, zstd", "zstd"), ("zstd;q=0.1, gzip;q=0.2", "gzip")]
        {
            let answer = coded(&server, path, accepted).await;
            assert_eq!((answer.status, answer.header("content-encoding")), (200, coding), "{path} {accepted}");
            assert_eq!(decoded(&answer), whole.body, "{path} {accepted}");
            let varies = answer.headers.get_all("vary").iter().any(|names| names == "accept-encoding");
            assert!(varies, "{:?}", answer.headers);
            // a range of compressed bytes would be a range of nothing
            assert_eq!(answer.header("accept-ranges"), "");
        }
        // no coding suits: better the content than nothing
        let plain = coded(&server, path, "br, identity;q=0").await;
        assert_eq!((plain.status, &plain.body), (200, &whole.body), "{path}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_part_is_revalidated_by_its_weak_tag() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let release = server.publish(&dataset, json!({"method": hospital_method()})).await;
    let part = part_path(&release, "t1", "qi");
    let answer = coded(&server, &part, "gzip").await;
    let weak = answer.header("etag").to_owned();
    assert!(weak.starts_with("W/\""), "{weak}");
    let again = server.request(Method::GET, &part).header("if-none-match", &weak).header("accept-encoding", "gzip");
    assert_eq!(server.send(again).await.status, 304);
    // a weak tag says nothing of single bytes
    let range = server.request(Method::GET, &part).header("if-range", &weak).header("range", "bytes=0-3");
    assert_eq!(server.send(range).await.status, 200);
    // ranges and HEAD are of the bytes as they are
    let range = server.request(Method::GET, &part).header("range", "bytes=0-3").header("accept-encoding", "gzip");
    let range = server.send(range).await;
    assert_eq!((range.status, range.header("content-encoding"), range.body.len()), (206, "", 4));
    let head = server.send(server.request(Method::HEAD, &part).header("accept-encoding", "gzip")).await;
    assert_eq!(head.header("content-length"), server.get(&part).await.body.len().to_string());
    // short answers and compressed formats come as they are
    let refused = coded(&server, "/v1/datasets/none", "gzip").await;
    assert_eq!((refused.status, refused.header("content-encoding")), (404, ""));
    for path in [format!("{part}.parquet"), format!("/v1/releases/{}/archive", text(&release["id"]))] {
        assert_eq!(coded(&server, &path, "gzip, zstd").await.header("content-encoding"), "", "{path}");
    }
    server.stop().await;
}
