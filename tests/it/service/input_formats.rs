//! Every format that a table may be sent in: the same table is the same in all of them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{Decimal128Builder, StringDictionaryBuilder};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{ArrayRef, ListArray, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{Field, Schema};
use guardian::vault::Secret;
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterVersion};
use serde_json::{Value, json};

use crate::support::harness::{Answer, MARKER, Server, text};

pub(crate) const NDJSON: &str = "application/x-ndjson";
const JSON: &str = "application/json";

pub(crate) const PARQUET: &str = "application/vnd.apache.parquet";

pub(crate) const ARROW: &str = "application/vnd.apache.arrow.stream";

/// The rows of the table that all formats hold, as CSV.
pub(crate) const CSV: &str = "age,price,name,smoker\n30,1.50,\"Smith, J\",true\n-7,20.25,,false\n,0.05,\"\",true\n30,1.50,\"Smith, J\",true\n\
                   41,,\u{e9}t\u{e9},\n5,3.00,\"line\nend\",false\n";

pub(crate) fn batch() -> RecordBatch {
    let ages: ArrayRef =
        Arc::new(arrow_array::Int16Array::from(vec![Some(30), Some(-7), None, Some(30), Some(41), Some(5)]));
    let mut prices = Decimal128Builder::new();
    for price in [Some(150), Some(2025), Some(5), Some(150), None, Some(300)] {
        prices.append_option(price);
    }
    let prices: ArrayRef = Arc::new(prices.finish().with_precision_and_scale(10, 2).unwrap());
    let mut names = StringDictionaryBuilder::<Int8Type>::new();
    // a value of the input's dictionary that no row has
    names.append(MARKER).unwrap();
    for name in [Some("Smith, J"), None, Some(""), Some("Smith, J"), Some("\u{e9}t\u{e9}"), Some("line\nend")] {
        names.append_option(name);
    }
    let names: ArrayRef = Arc::new(names.finish().slice(1, 6));
    let smoker: ArrayRef = Arc::new(arrow_array::BooleanArray::from(vec![
        Some(true),
        Some(false),
        Some(true),
        Some(true),
        None,
        Some(false),
    ]));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("age", ages, true),
        ("price", prices, true),
        ("name", names, true),
        ("smoker", smoker, true),
    ]);
    with_metadata(&batch.unwrap())
}

/// The batch under a schema that carries what must not be passed on.
pub(crate) fn with_metadata(batch: &RecordBatch) -> RecordBatch {
    let metadata = || [(format!("key-{MARKER}"), MARKER.to_owned())].into_iter().collect::<HashMap<_, _>>();
    let fields: Vec<Field> =
        batch.schema().fields().iter().map(|field| field.as_ref().clone().with_metadata(metadata())).collect();
    let schema = Schema::new_with_metadata(fields, metadata());
    RecordBatch::try_new(Arc::new(schema), batch.columns().to_vec()).unwrap()
}

pub(crate) fn parquet_of(batches: &[RecordBatch], compression: Compression, version: WriterVersion) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_writer_version(version)
        .set_created_by(MARKER.to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new(MARKER.to_owned(), MARKER.to_owned())]));
    let mut writer = ArrowWriter::try_new(Vec::new(), batches[0].schema(), Some(properties.build())).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
        writer.flush().unwrap();
    }
    writer.into_inner().unwrap()
}

pub(crate) fn arrow_of(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn arrow_file_of(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn ndjson() -> String {
    [
        json!({"age": 30, "name": "Smith, J", "smoker": true}),
        json!({"age": -7, "price": null, "smoker": false}),
        json!({"name": "", "smoker": true}),
        json!({"age": 30, "name": "Smith, J", "smoker": true}),
        json!({"age": 41, "name": "\u{e9}t\u{e9}", "smoker": null}),
        json!({"age": 5, "name": "line\nend", "smoker": false}),
    ]
    .iter()
    .zip(["1.50", "20.25", "0.05", "1.50", "null", "3.00"])
    .map(|(row, price)| {
        // the text of a number is kept, which a JSON value does not hold; the columns stand in another order
        let mut members: Vec<String> = Vec::new();
        for name in ["age", "price", "name", "smoker"] {
            match row.get(name) {
                _ if name == "price" => members.push(format!("\"price\":{price}")),
                Some(value) => members.push(format!("\"{name}\":{value}")),
                None => {}
            }
        }
        format!("{{{}}}\n", members.join(","))
    })
    .collect()
}

/// The same rows as an array.
fn json_array() -> String {
    format!("[{}]\n", ndjson().trim_end().replace('\n', ",\n  "))
}

/// The same key for every release.
async fn same_key() -> Server {
    Server::start_as(|_| {}, Arc::new(|| Ok(Secret::new([7; 32])))).await
}

pub(crate) fn no_rules_reason(dataset: &Value) -> Value {
    let names = dataset["columns"].as_array().unwrap().iter().map(|column| text(&column["name"]));
    let attributes: serde_json::Map<String, Value> = names.map(|name| (name, json!({"publish": true}))).collect();
    json!({"attributes": attributes, "no_rules_reason": "it is public anyway", "method": {"type": "versatile", "rules": []}})
}

pub(crate) fn bucketized() -> Value {
    json!({"unlisted": "drop", "attributes": {"age": {"publish": true}, "name": {"publish": true}, "smoker": {"publish": true},
        "price": {"publish": true}},
        "method": {"type": "anatomy", "quasi_identifiers": ["age", "price", "name"], "sensitive": "smoker",
            "guarantee": {"type": "l_diversity", "l": 2}}})
}

pub(crate) async fn sent(server: &Server, kind: &str, body: impl Into<Vec<u8>>) -> Answer {
    server.upload_with("", body, &[("content-type", kind)]).await
}

/// Publishes a dataset without rules; the manifest.
pub(crate) async fn published(server: &Server, dataset: &Value) -> Value {
    server.publish(&text(&dataset["id"]), no_rules_reason(dataset)).await
}

pub(crate) async fn raw(server: &Server, path: &str) -> Answer {
    let answer = server.get(path).await;
    assert_eq!(answer.status, 200, "{path}");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_table_is_the_same_in_every_format() {
    // a server each, so that no release stands beside another
    let mut results: Vec<(String, Value, Vec<String>, Value)> = Vec::new();
    let batches = [batch().slice(0, 2), batch().slice(2, 4)];
    let mut inputs = vec![
        (NDJSON.to_owned(), ndjson().into_bytes()),
        (JSON.to_owned(), json_array().into_bytes()),
        (ARROW.to_owned(), arrow_of(&batches)),
    ];
    inputs.push((ARROW.to_owned(), arrow_file_of(&batches)));
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let options = IpcWriteOptions::default().try_with_compression(Some(codec)).unwrap();
        let mut file = FileWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
        batches.iter().for_each(|batch| file.write(batch).unwrap());
        inputs.push(("application/vnd.apache.arrow.file".to_owned(), file.into_inner().unwrap()));
    }
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            inputs.push((PARQUET.to_owned(), parquet_of(&batches, codec, version)));
        }
    }
    for (kind, body) in inputs {
        let server = same_key().await;
        let dataset = sent(&server, &kind, body).await.ok(201);
        let format = if kind.ends_with("arrow.file") { ARROW } else { &kind };
        assert_eq!(dataset["format"], format);
        let release = server.publish(&text(&dataset["id"]), bucketized()).await;
        let parts = [server.part(&release, "t1", "qi").await, server.part(&release, "t1", "sa").await];
        let types = release["tables"][0]["parts"][0]["types"].clone();
        results.push((kind, dataset["columns"].clone(), parts.to_vec(), types));
        server.stop().await;
    }
    let (_, columns, parts, types) = &results[0];
    let kinds: Vec<&Value> = columns.as_array().unwrap().iter().map(|column| &column["type"]).collect();
    assert_eq!(kinds, ["integer", "decimal", "text", "boolean"]);
    assert_eq!(types, &json!({"age": "integer", "price": "decimal", "name": "text"}));
    for (kind, other_columns, other_parts, other_types) in &results {
        assert_eq!((other_columns, other_parts, other_types), (columns, parts, types), "{kind}");
    }

    // in CSV the values show the types; its parts are the same bytes
    let server = same_key().await;
    let dataset = server.upload("", CSV).await.ok(201);
    assert_eq!(dataset["columns"][3]["type"], "boolean");
    let release = server.publish(&text(&dataset["id"]), bucketized()).await;
    assert_eq!([server.part(&release, "t1", "qi").await, server.part(&release, "t1", "sa").await], parts[..]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_content_is_known_across_formats() {
    // an equal job over equal content in one series is the earlier release
    let server = Server::start().await;
    let csv = "a,b\n1,x\n2,\n,y\n";
    let a: ArrayRef = Arc::new(arrow_array::Int64Array::from(vec![Some(1), Some(2), None]));
    let b: ArrayRef = Arc::new(arrow_array::StringViewArray::from(vec![Some("x"), None, Some("y")]));
    let batch = RecordBatch::try_from_iter_with_nullable([("a", a, true), ("b", b, true)]).unwrap();
    let parquet = parquet_of(std::slice::from_ref(&batch), Compression::SNAPPY, WriterVersion::PARQUET_2_0);
    let ndjson = "{\"a\":1,\"b\":\"x\"}\n{\"a\":2}\n{\"b\":\"y\",\"a\":null}\n";
    let mut releases = Vec::new();
    let array = "[{\"a\":1,\"b\":\"x\"},{\"a\":2},{\"b\":\"y\",\"a\":null}]";
    for (kind, body) in [
        ("text/csv", csv.into()),
        (PARQUET, parquet),
        (ARROW, arrow_of(&[batch])),
        (NDJSON, ndjson.into()),
        (JSON, array.into()),
    ] {
        let dataset = server.upload_with("name=s", body, &[("content-type", kind)]).await.ok(201);
        let job = server.job(&text(&dataset["id"]), no_rules_reason(&dataset)).await.ok(200);
        assert_eq!(job["reused"], !releases.is_empty(), "{kind}");
        releases.push(job["release"].clone());
    }
    assert!(releases.iter().all(|release| *release == releases[0] && release.is_string()));
    server.stop().await;
}

/// The number of columns of a table that was taken.
fn columns_of(answer: &Answer) -> Option<i64> {
    (answer.status == 201).then(|| answer.json()["columns"].as_array().unwrap().len() as i64)
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_files_are_refused_and_leave_nothing() {
    let server = Server::start().await;
    let parquet = parquet_of(&[batch()], Compression::ZSTD(ZstdLevel::default()), WriterVersion::PARQUET_1_0);
    let arrow = arrow_of(&[batch()]);
    let ndjson = ndjson().into_bytes();
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    // a damaged name may add a column
    let mut columns: Vec<i64> = Vec::new();
    let array = json_array().into_bytes();
    let file = arrow_file_of(&[batch()]);
    for (kind, whole) in [(PARQUET, &parquet), (ARROW, &arrow), (ARROW, &file), (NDJSON, &ndjson), (JSON, &array)] {
        for _ in 0..6 {
            let cut = whole[..random(whole.len())].to_vec();
            let answer = sent(&server, kind, cut).await;
            // lines may be cut between two of them, and messages too
            columns.extend(columns_of(&answer));
            assert!(
                answer.status == 201 && kind != PARQUET || matches!(answer.status, 400 | 413 | 422),
                "{}",
                answer.status
            );
        }
        for _ in 0..25 {
            let mut damaged = whole.clone();
            for _ in 0..3 {
                let at = random(damaged.len());
                damaged[at] = random(256) as u8;
            }
            columns.extend(columns_of(&sent(&server, kind, damaged).await));
        }
        let mut garbage: Vec<u8> = (0..4000).map(|_| random(256) as u8).collect();
        assert!(sent(&server, kind, garbage.clone()).await.status >= 400);
        garbage.splice(..4, *b"PAR1");
        garbage.extend_from_slice(b"PAR1");
        assert!(sent(&server, kind, garbage).await.status >= 400);
        assert_eq!(sent(&server, kind, "").await.status, 422);
    }
    assert_eq!(server.stored("datasets").await, columns.len() as i64);
    let chunks = server.stored("column_chunks").await;
    for dataset in server.items("/v1/datasets?limit=1000").await {
        server.delete(&format!("/v1/datasets/{}", text(&dataset["id"]))).await.ok(200);
    }
    assert_eq!(chunks, columns.iter().sum::<i64>());
    let spooled: Vec<String> = std::fs::read_dir(server.data())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        spooled
            .iter()
            .all(|name| name.starts_with("guardian.db") || name.starts_with("master.key") || name.contains("lock")),
        "{spooled:?}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_values_are_reported_with_position() {
    let server = Server::start().await;
    let refused = |array: ArrayRef| {
        let batch = RecordBatch::try_from_iter_with_nullable([("x", array, true)]).unwrap();
        let parquet = parquet_of(std::slice::from_ref(&batch), Compression::SNAPPY, WriterVersion::PARQUET_1_0);
        [(PARQUET, parquet), (ARROW, arrow_of(&[batch]))]
    };
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]);
    let late = arrow_array::TimestampNanosecondArray::from(vec![1000, 1]);
    let far = arrow_array::Date32Array::from(vec![0, 4_000_000]);
    let not_finite = arrow_array::Float64Array::from(vec![0.5, f64::NAN]);
    for (array, row) in [
        (Arc::new(list) as ArrayRef, Value::Null),
        (Arc::new(late), json!(2)),
        (Arc::new(far), json!(2)),
        (Arc::new(not_finite), json!(2)),
    ] {
        for (kind, body) in refused(array) {
            let problem = sent(&server, kind, body).await.problem(422, "upload-malformed");
            assert_eq!((&problem["row"], &problem["column"]), (&row, &json!("x")), "{problem}");
        }
    }
    let nested = sent(&server, NDJSON, "{\"x\":1}\n{\"x\":[2]}\n").await.problem(422, "upload-malformed");
    assert_eq!((&nested["row"], &nested["column"]), (&json!(2), &json!("x")));
    let unknown = sent(&server, "application/xml", "<x/>").await.problem(415, "unsupported-media-type");
    for kind in ["text/csv", NDJSON, PARQUET, ARROW, "multipart/form-data"] {
        assert!(text(&unknown["detail"]).contains(kind));
    }
    let query = server.upload_with("delimiter=;", "{\"a\":1}", &[("content-type", NDJSON)]).await;
    query.problem(400, "malformed-request");
    server
        .upload_with("types=y:text", "{\"a\":1}", &[("content-type", NDJSON)])
        .await
        .problem(400, "malformed-request");
    server.assert_nothing_stored().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_day_become_text() {
    let server = Server::start().await;
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("s", Arc::new(arrow_array::Time32SecondArray::from(vec![0, 86_399])), true),
        ("ms", Arc::new(arrow_array::Time32MillisecondArray::from(vec![Some(9_000_500), None])), true),
        ("us", Arc::new(arrow_array::Time64MicrosecondArray::from(vec![1, 3_600_000_000])), true),
        ("ns", Arc::new(arrow_array::Time64NanosecondArray::from(vec![1000, 60_000_000_000])), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    // Parquet has no times in seconds
    let finer = batch.project(&[1, 2, 3]).unwrap();
    let parquet = parquet_of(&[finer], Compression::SNAPPY, WriterVersion::PARQUET_1_0);
    let all = "s,ms,us,ns\n00:00:00,02:30:00.5,00:00:00.000001,00:00:00.000001\n23:59:59,,01:00:00,00:01:00\n";
    let of_parquet = "ms,us,ns\n,01:00:00,00:01:00\n02:30:00.5,00:00:00.000001,00:00:00.000001\n";
    for (kind, body, expected) in [
        (ARROW, arrow_of(std::slice::from_ref(&batch)), all),
        (ARROW, arrow_file_of(&[batch]), all),
        (PARQUET, parquet, of_parquet),
    ] {
        let server = same_key().await;
        let dataset = sent(&server, kind, body).await.ok(201);
        let release = published(&server, &dataset).await;
        assert_eq!(server.part(&release, "t1", "rows").await, expected, "{kind}");
        server.stop().await;
    }
    for micros in [-1, 86_400_000_000] {
        let late: ArrayRef = Arc::new(arrow_array::Time64MicrosecondArray::from(vec![micros]));
        let batch = RecordBatch::try_from_iter([("late", late)]).unwrap();
        sent(&server, ARROW, arrow_of(&[batch])).await.problem(422, "upload-malformed");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_every_kind_become_text() {
    let server = Server::start().await;
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("u64", Arc::new(arrow_array::UInt64Array::from(vec![1, u64::MAX])), true),
        ("small", Arc::new(arrow_array::UInt64Array::from(vec![1, 2])), true),
        ("f32", Arc::new(arrow_array::Float32Array::from(vec![0.1, -0.0])), true),
        ("f64", Arc::new(arrow_array::Float64Array::from(vec![1e21, 2.5e-7])), true),
        ("none", Arc::new(arrow_array::NullArray::new(2)), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let dataset = sent(&server, ARROW, arrow_of(&[batch])).await.ok(201);
    let kinds: Vec<&Value> = dataset["columns"].as_array().unwrap().iter().map(|column| &column["type"]).collect();
    assert_eq!(kinds, ["decimal", "integer", "float", "float", "text"]);
    let release = published(&server, &dataset).await;
    let expected = "u64,small,f32,f64,none\n1,1,0.1,1000000000000000000000,\n18446744073709551615,2,0,0.00000025,\n";
    assert_eq!(server.part(&release, "t1", "rows").await, expected);
    server.stop().await;
}

fn form(parts: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (disposition, headers, content) in parts {
        body.extend_from_slice(
            format!("--limit\r\nContent-Disposition: form-data; {disposition}\r\n{headers}\r\n").as_bytes(),
        );
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--limit--\r\n");
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_holds_one_file() {
    let server = Server::start().await;
    let kind = [("content-type", "multipart/form-data; boundary=limit")];
    let file = "name=\"file\"; filename=";
    let parquet = parquet_of(&[batch()], Compression::SNAPPY, WriterVersion::PARQUET_1_0);
    let packed = zstd::bulk::compress(CSV.as_bytes(), 1).unwrap();
    // larger than a document may be
    let large = format!("a,b\n{}", format!("1,{}\n", "x".repeat(97)).repeat(200_000));
    for (disposition, headers, content, rows) in [
        (format!("{file}\"t.csv\""), "", CSV.as_bytes(), 6),
        (format!("{file}\"t.parquet\""), "Content-Type: application/octet-stream\r\n", &parquet, 6),
        ("name=\"file\"".to_owned(), "Content-Type: application/x-ndjson\r\n", ndjson().as_bytes(), 6),
        (format!("{file}\"t.csv.zst\""), "", &packed, 6),
        (format!("{file}\"t.csv\""), "Content-Encoding: zstd\r\n", &packed, 6),
        (format!("{file}\"t.csv\""), "", large.as_bytes(), 200_000),
    ] {
        let body = form(&[(&disposition, headers, content)]);
        let dataset = server.upload_with("name=x", body, &kind).await.ok(201);
        assert_eq!((&dataset["rows"], &dataset["bytes"]), (&json!(rows), &json!(content.len())), "{disposition}");
    }
    let before = server.stored("datasets").await;
    let keyed = [kind[0], ("idempotency-key", "k")];
    let csv = CSV.as_bytes();
    for (body, status) in [
        (form(&[]), 400),
        (form(&[("name=\"other\"; filename=\"t.csv\"", "", csv)]), 400),
        (form(&[("name=\"file\"; filename=\"t.csv\"", "", csv), ("name=\"more\"", "", b"x")]), 400),
        (form(&[("name=\"file\"; filename=\"t.xlsx\"", "", csv)]), 415),
        (form(&[("name=\"file\"; filename=\"t.csv\"", "", csv)])[..150].to_vec(), 400),
        (b"no form".to_vec(), 400),
        (
            form(&[(
                "name=\"file\"; filename=\"t.csv\"",
                "Content-Digest: sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:\r\n",
                csv,
            )]),
            400,
        ),
    ] {
        assert_eq!(server.upload_with("", body, &keyed).await.status, status);
    }
    assert_eq!(server.stored("datasets").await, before);
    // what failed let go of its key; a repeat is known by its file, however that is wrapped
    assert_eq!(server.stored("idempotency_keys").await, 0);
    let first = server.upload_with("", form(&[("name=\"file\"; filename=\"t.csv\"", "", csv)]), &keyed).await.ok(201);
    let renamed = form(&[("name=\"file\"; filename=\"u.csv\"", "", csv)]);
    assert_eq!(server.upload_with("", renamed, &keyed).await.ok(201), first);
    assert_eq!(server.upload_with("", CSV, &keyed[1..]).await.ok(201), first);
    let other = form(&[("name=\"file\"; filename=\"t.ndjson\"", "", csv)]);
    server.upload_with("", other, &keyed).await.problem(409, "idempotency-conflict");
    let two = form(&[("name=\"file\"; filename=\"t.csv\"", "", csv), ("name=\"more\"", "", b"x")]);
    server.upload_with("", two, &keyed).await.problem(400, "malformed-request");
    assert_eq!(server.stored("datasets").await, before + 1);
    server.stop().await;
}
