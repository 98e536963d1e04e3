//! Every format in and out, over HTTP: the same table is the same whatever it is sent as, and a part is the same whatever it
//! is asked for as.

use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Decimal128Builder, Int32Builder, StringBuilder, StringDictionaryBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int8Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use bytes::Bytes;
use guardian::microdata::{format_date, format_timestamp};
use guardian::vault::Secret;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use reqwest::Method;
use serde_json::{Value, json};

use super::harness::{Answer, MARKER, Server, part_path, text};

const NDJSON: &str = "application/x-ndjson";
const PARQUET: &str = "application/vnd.apache.parquet";
const ARROW: &str = "application/vnd.apache.arrow.stream";

/// The rows of the table that all formats hold, as CSV.
const CSV: &str = "age,price,name,smoker\n30,1.50,\"Smith, J\",true\n-7,20.25,,false\n,0.05,\"\",true\n30,1.50,\"Smith, J\",true\n\
                   41,,\u{e9}t\u{e9},\n5,3.00,\"line\nend\",false\n";

fn batch() -> RecordBatch {
    let ages: ArrayRef =
        Arc::new(arrow_array::Int16Array::from(vec![Some(30), Some(-7), None, Some(30), Some(41), Some(5)]));
    let mut prices = Decimal128Builder::new();
    [Some(150), Some(2025), Some(5), Some(150), None, Some(300)].map(|price| prices.append_option(price));
    let prices: ArrayRef = Arc::new(prices.finish().with_precision_and_scale(10, 2).unwrap());
    let mut names = StringDictionaryBuilder::<Int8Type>::new();
    // a value of the input's dictionary that no row has
    names.append(MARKER).unwrap();
    [Some("Smith, J"), None, Some(""), Some("Smith, J"), Some("\u{e9}t\u{e9}"), Some("line\nend")]
        .map(|name| names.append_option(name));
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
fn with_metadata(batch: &RecordBatch) -> RecordBatch {
    let metadata = || [(format!("key-{MARKER}"), MARKER.to_owned())].into_iter().collect::<HashMap<_, _>>();
    let fields: Vec<Field> =
        batch.schema().fields().iter().map(|field| field.as_ref().clone().with_metadata(metadata())).collect();
    let schema = Schema::new_with_metadata(fields, metadata());
    RecordBatch::try_new(Arc::new(schema), batch.columns().to_vec()).unwrap()
}

fn parquet_of(batches: &[RecordBatch], compression: Compression, version: WriterVersion) -> Vec<u8> {
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

fn arrow_of(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
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

/// The same key for every release.
async fn same_key() -> Server {
    Server::start_as(|_| {}, Arc::new(|| Ok(Secret::new([7; 32])))).await
}

fn no_rules(dataset: &Value) -> Value {
    let names = dataset["columns"].as_array().unwrap().iter().map(|column| text(&column["name"]));
    let attributes: serde_json::Map<String, Value> = names.map(|name| (name, json!({"publish": true}))).collect();
    json!({"attributes": attributes, "no_rules": "it is public anyway", "method": {"type": "versatile", "rules": []}})
}

fn bucketized() -> Value {
    json!({"unlisted": "drop", "attributes": {"age": {"publish": true}, "name": {"publish": true}, "smoker": {"publish": true},
        "price": {"publish": true}},
        "method": {"type": "anatomy", "quasi_identifiers": ["age", "price", "name"], "sensitive": "smoker",
            "guarantee": {"type": "l_diversity", "l": 2}}})
}

async fn sent(server: &Server, kind: &str, body: impl Into<Vec<u8>>) -> Answer {
    server.upload_with("", body, &[("content-type", kind)]).await
}

/// Publishes a dataset without rules; the manifest.
async fn published(server: &Server, dataset: &Value) -> Value {
    server.publish(&text(&dataset["id"]), no_rules(dataset)).await
}

async fn raw(server: &Server, path: &str) -> Answer {
    let answer = server.get(path).await;
    assert_eq!(answer.status, 200, "{path}");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_table_is_the_same_in_every_format() {
    // a server each, so that no release stands beside another
    let mut results: Vec<(String, Value, Vec<String>, Value)> = Vec::new();
    let batches = [batch().slice(0, 2), batch().slice(2, 4)];
    let mut inputs = vec![(NDJSON.to_owned(), ndjson().into_bytes()), (ARROW.to_owned(), arrow_of(&batches))];
    let mut file = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| file.write(batch).unwrap());
    inputs.push((ARROW.to_owned(), file.into_inner().unwrap()));
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
        assert_eq!(dataset["format"], kind);
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

    // CSV does not tell booleans from text; its parts are the same bytes
    let server = same_key().await;
    let dataset = server.upload("", CSV).await.ok(201);
    assert_eq!(dataset["columns"][3]["type"], "text");
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
    for (kind, body) in
        [("text/csv", csv.into()), (PARQUET, parquet), (ARROW, arrow_of(&[batch])), (NDJSON, ndjson.into())]
    {
        let dataset = server.upload_with("series=s", body, &[("content-type", kind)]).await.ok(201);
        let job = server.job(&text(&dataset["id"]), no_rules(&dataset)).await.ok(200);
        assert_eq!(job["reused"], !releases.is_empty(), "{kind}");
        releases.push(job["release"].clone());
    }
    assert!(releases.iter().all(|release| *release == releases[0] && release.is_string()));
    server.stop().await;
}

/// A cell of an output as its CSV text.
fn cell(array: &dyn Array, row: usize) -> Option<String> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Date32 => format_date(array.as_primitive::<Date32Type>().value(row)).unwrap(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if **zone == *"UTC" => {
            format_timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row)).unwrap()
        }
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Dictionary(..) => {
            let dictionary = array.as_dictionary::<Int32Type>();
            let values = dictionary.values().as_string::<i32>();
            values.value(dictionary.keys().value(row) as usize).to_owned()
        }
        other => panic!("{other}"),
    })
}

/// Header and rows; missing cells are `None`.
type Cells = (Vec<String>, Vec<Vec<Option<String>>>);

fn of_batches(schema: &Schema, batches: &[RecordBatch]) -> Cells {
    let rows = batches.iter().flat_map(|batch| {
        (0..batch.num_rows()).map(|row| batch.columns().iter().map(|array| cell(array.as_ref(), row)).collect())
    });
    (schema.fields().iter().map(|field| field.name().clone()).collect(), rows.collect())
}

fn of_parquet(bytes: Vec<u8>) -> (Schema, Cells) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
    let schema = builder.schema().as_ref().clone();
    let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
    let cells = of_batches(&schema, &batches);
    (schema, cells)
}

fn of_arrow(bytes: Vec<u8>) -> (Schema, Cells) {
    let reader = arrow_ipc::reader::StreamReader::try_new(Cursor::new(bytes), None).unwrap();
    let schema = reader.schema().as_ref().clone();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    let cells = of_batches(&schema, &batches);
    (schema, cells)
}

fn of_csv(csv: &str) -> Cells {
    let mut scanner = guardian::microdata::formats::csv::Scanner::new(csv.as_bytes(), Some(b','), &Default::default());
    let mut rows = Vec::new();
    while let Some(record) = scanner.next_record().unwrap() {
        let cell = |(field, quoted): (&[u8], bool)| {
            (quoted || !field.is_empty()).then(|| String::from_utf8(field.to_vec()).unwrap())
        };
        rows.push(record.iter().map(cell).collect::<Vec<_>>());
    }
    let header = rows.remove(0).into_iter().map(Option::unwrap_or_default).collect();
    (header, rows)
}

fn typed_batch() -> RecordBatch {
    let mut days = Date32Builder::new();
    let mut moments = TimestampMicrosecondBuilder::new();
    let mut flags = BooleanBuilder::new();
    let mut words = StringBuilder::new();
    let mut numbers = Int32Builder::new();
    for row in 0..200 {
        days.append_option((row % 7 > 0).then_some(19_000 + row % 5 - 30_000 * (row % 2)));
        moments.append_option((row % 9 > 0).then_some(i64::from(row % 4) * 250_000 - 1_000_001 * i64::from(row % 3)));
        flags.append_option((row % 5 > 0).then_some(row % 2 == 0));
        // text that looks like numbers stays text, and is ordered as text
        words.append_value((row % 11).to_string());
        numbers.append_value(row % 13);
    }
    let moments = moments.finish().with_timezone("+02:00");
    let columns: [(&str, ArrayRef, bool); 5] = [
        ("day", Arc::new(days.finish()), true),
        ("moment", Arc::new(moments), true),
        ("flag", Arc::new(flags.finish()), true),
        ("word", Arc::new(words.finish()), true),
        ("number", Arc::new(numbers.finish()), true),
    ];
    with_metadata(&RecordBatch::try_from_iter_with_nullable(columns).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn types_survive_to_parquet_arrow_and_json() {
    let server = Server::start().await;
    let batch = typed_batch();
    let body = parquet_of(&[batch.clone()], Compression::SNAPPY, WriterVersion::PARQUET_1_0);
    let dataset = sent(&server, PARQUET, body).await.ok(201);
    let release = published(&server, &dataset).await;
    assert_eq!(release["audit"]["verified"], true);
    let types = json!({"day": "date", "moment": "timestamp", "flag": "boolean", "word": "text", "number": "integer"});
    assert_eq!(release["tables"][0]["parts"][0]["types"], types);
    let path = part_path(&release, "t1", "rows");
    let csv = of_csv(&raw(&server, &path).await.text());
    assert_eq!(csv.1.len(), 200);

    let (parquet_schema, parquet) = of_parquet(raw(&server, &format!("{path}?format=parquet")).await.body);
    let (arrow_schema, arrow) = of_arrow(raw(&server, &format!("{path}?format=arrow")).await.body);
    assert_eq!((&parquet, &arrow), (&csv, &csv));
    let kinds = |schema: &Schema| schema.fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
    let stamp = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    assert_eq!(
        kinds(&parquet_schema),
        [DataType::Date32, stamp.clone(), DataType::Boolean, DataType::Utf8, DataType::Int64]
    );
    assert_eq!(kinds(&arrow_schema), [DataType::Date32, stamp, DataType::Boolean, dictionary, DataType::Int64]);

    let first = server.get(&format!("{path}?format=json&limit=1")).await.ok(200);
    assert_eq!(first["columns"], json!(["day", "moment", "flag", "word", "number"]));
    let ndjson = raw(&server, &format!("{path}?format=ndjson")).await.text();
    let flags = ndjson.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["flag"].clone());
    assert!(flags.clone().any(|flag| flag == true) && flags.clone().any(|flag| flag.is_null()));
    assert!(ndjson.lines().all(|line| serde_json::from_str::<Value>(line).unwrap()["word"].is_string()));

    // a part is a table again, and gives the same part
    for (kind, format) in [(PARQUET, "parquet"), (ARROW, "arrow")] {
        let part = raw(&server, &format!("{path}?format={format}")).await.body;
        let again = sent(&server, kind, part).await.ok(201);
        let release = published(&server, &again).await;
        assert_eq!(of_csv(&server.part(&release, "t1", "rows").await), csv, "{format}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn decimals_have_the_places_that_the_part_needs() {
    let server = Server::start().await;
    let wide = "9".repeat(39);
    let csv = format!("a,b\n1.5,{wide}.1\n-0.25,2\n10,0.5\n");
    let dataset = server.upload("", csv).await.ok(201);
    let release = published(&server, &dataset).await;
    let path = part_path(&release, "t1", "rows");
    let (schema, cells) = of_parquet(raw(&server, &format!("{path}?format=parquet")).await.body);
    assert_eq!(schema.field(0).data_type(), &DataType::Decimal128(4, 2));
    assert_eq!(schema.field(1).data_type(), &DataType::Utf8, "more than 38 digits");
    let shown: Vec<String> =
        cells.1.iter().map(|row| row.iter().map(|cell| cell.clone().unwrap()).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(shown, ["-0.25 2".to_owned(), format!("1.50 {wide}.1"), "10.00 0.5".to_owned()]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn served_files_say_nothing_that_the_csv_does_not() {
    let server = Server::start().await;
    let dataset = sent(&server, ARROW, arrow_of(&[batch()])).await.ok(201);
    let release = server.publish(&text(&dataset["id"]), bucketized()).await;
    for part in ["qi", "sa"] {
        let path = part_path(&release, "t1", part);
        let (names, rows) = of_csv(&server.part(&release, "t1", part).await);
        let column = |index: usize| rows.iter().map(|row| row[index].clone()).collect::<Vec<_>>();

        let answer = raw(&server, &format!("{path}?format=parquet")).await;
        assert_eq!(answer.body, raw(&server, &format!("{path}?format=parquet")).await.body, "deterministic");
        assert!(!String::from_utf8_lossy(&answer.body).contains(MARKER));
        let reader = SerializedFileReader::new(Bytes::from(answer.body)).unwrap();
        let metadata = reader.metadata();
        assert!(metadata.file_metadata().key_value_metadata().is_none());
        assert_eq!(metadata.file_metadata().created_by(), Some("guardian"));
        assert_eq!(metadata.file_metadata().schema().name(), "schema");
        assert!(metadata.page_index().is_none());
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group).unwrap();
            for (index, name) in names.iter().enumerate() {
                let chunk = group.metadata().column(index);
                assert_eq!(chunk.column_path().string(), *name);
                assert!(chunk.bloom_filter_offset().is_none());
                let present: Vec<String> = column(index).into_iter().flatten().collect();
                if let Some(statistics) = chunk.statistics() {
                    assert!(statistics.distinct_count_opt().is_none());
                    let nulls = column(index).iter().filter(|cell| cell.is_none()).count() as u64;
                    assert_eq!(statistics.null_count_opt().unwrap_or(0), nulls);
                    if name == "name" {
                        for bound in [statistics.min_bytes_opt(), statistics.max_bytes_opt()].into_iter().flatten() {
                            assert!(present.contains(&String::from_utf8(bound.to_vec()).unwrap()));
                        }
                    }
                }
                let mut pages = group.get_column_page_reader(index).unwrap();
                while let Some(page) = pages.get_next_page().unwrap() {
                    assert!(page.statistics().is_none());
                    if let parquet::column::page::Page::DictionaryPage { buf, num_values, .. } = page
                        && name == "name"
                    {
                        let mut rest = &buf[..];
                        let mut values = Vec::new();
                        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
                            let (value, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
                            values.push(String::from_utf8(value.to_vec()).unwrap());
                            rest = behind;
                        }
                        assert_eq!(values.len(), num_values as usize);
                        // the values of the part, each once
                        let (mut found, mut expected) = (values.clone(), present.clone());
                        found.sort();
                        expected.sort();
                        expected.dedup();
                        assert_eq!(found, expected);
                    }
                }
            }
        }

        let answer = raw(&server, &format!("{path}?format=arrow")).await;
        assert!(!String::from_utf8_lossy(&answer.body).contains(MARKER));
        let reader = arrow_ipc::reader::StreamReader::try_new(Cursor::new(answer.body), None).unwrap();
        assert!(reader.schema().metadata().is_empty());
        assert!(reader.schema().fields().iter().all(|field| field.metadata().is_empty()));
        for batch in reader.map(Result::unwrap) {
            let Some(at) = names.iter().position(|name| name == "name") else { continue };
            let values = batch.column(at).as_dictionary::<Int32Type>().values().as_string::<i32>().clone();
            let mut expected: Vec<String> = column(at).into_iter().flatten().collect();
            expected.sort();
            expected.dedup();
            let found: Vec<&str> = values.iter().flatten().collect();
            assert_eq!(found, expected, "in canonical order");
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn formats_are_negotiated_and_cached() {
    let server = Server::start().await;
    let dataset = server.upload("", CSV).await.ok(201);
    let release = published(&server, &dataset).await;
    let path = part_path(&release, "t1", "rows");
    let mut etags = Vec::new();
    for (format, kind) in
        [("csv", "text/csv"), ("ndjson", NDJSON), ("json", "application/json"), ("parquet", PARQUET), ("arrow", ARROW)]
    {
        for view in ["", "&view=counts"] {
            let asked = raw(&server, &format!("{path}?format={format}{view}")).await;
            assert!(asked.header("content-type").starts_with(kind), "{format}");
            let etag = asked.header("etag").to_owned();
            let request = server.request(Method::GET, &format!("{path}?{}", &view.replace('&', "")));
            let accepted = server.send(request.header("accept", format!("{kind};q=0.9, text/html"))).await;
            assert_eq!((accepted.header("etag"), &accepted.body), (etag.as_str(), &asked.body));
            let again = server.request(Method::GET, &format!("{path}?format={format}{view}"));
            let again = server.send(again.header("if-none-match", format!("\"x\", {etag}"))).await;
            assert_eq!((again.status, again.body.len()), (304, 0));
            etags.push(etag);
        }
    }
    etags.sort();
    etags.dedup();
    assert_eq!(etags.len(), 10, "each representation has its own");
    let disposition = raw(&server, &format!("{path}?format=parquet&view=counts")).await;
    assert!(disposition.header("content-disposition").contains("t1.rows.counts.parquet"));
    server.get(&format!("{path}?format=xlsx")).await.problem(406, "not-acceptable");
    server.get(&format!("{path}?view=linked")).await.problem(422, "guarantee-unsupported");
    server.get(&format!("{path}?view=other")).await.problem(400, "malformed-request");
    server.get(&format!("{path}?format=parquet&limit=1")).await.problem(400, "malformed-request");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_are_of_distinct_rows() {
    let server = Server::start().await;
    let dataset = server.upload("", CSV).await.ok(201);
    let release = published(&server, &dataset).await;
    let path = part_path(&release, "t1", "rows");
    let csv = raw(&server, &format!("{path}?view=counts")).await.text();
    let counted = of_csv(&csv);
    assert_eq!(counted.0.last().unwrap(), "count");
    assert_eq!(counted.1.len(), 5);
    assert!(csv.contains("30,1.50,\"Smith, J\",true,2\n"), "{csv}");
    let (schema, parquet) = of_parquet(raw(&server, &format!("{path}?view=counts&format=parquet")).await.body);
    assert_eq!(parquet, counted);
    assert_eq!(schema.fields().last().unwrap().data_type(), &DataType::Int64);
    assert_eq!(of_arrow(raw(&server, &format!("{path}?view=counts&format=arrow")).await.body).1, counted);

    // pages, one row at a time
    let (mut cursor, mut rows) = (None::<String>, Vec::new());
    loop {
        let more = cursor.as_ref().map_or(String::new(), |cursor| format!("&cursor={cursor}"));
        let page = server.get(&format!("{path}?view=counts&format=json&limit=1{more}")).await.ok(200);
        rows.extend(page["rows"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    let ndjson = raw(&server, &format!("{path}?view=counts&format=ndjson")).await.text();
    assert_eq!(rows.len(), ndjson.lines().count());
    assert_eq!(rows.iter().map(|row| row[4].as_u64().unwrap()).sum::<u64>(), 6);

    let named = server.upload("", "count,x\n1,a\n2,b\n").await.ok(201);
    let release = published(&server, &named).await;
    let refused = server.get(&format!("{}?view=counts", part_path(&release, "t1", "rows"))).await;
    assert_eq!(refused.problem(422, "reserved-name")["attribute"], "count");

    // a marker of missing values keeps its place
    let one = server.upload("", "a\nx\n\n\nNA\n").await.ok(201);
    let release = published(&server, &one).await;
    let path = part_path(&release, "t1", "rows");
    assert_eq!(raw(&server, &format!("{path}?view=counts")).await.text(), "a,count\nNA_,2\nNA,1\nx,1\n");
    let ndjson = raw(&server, &format!("{path}?view=counts&format=ndjson")).await.text();
    assert_eq!(ndjson.lines().next().unwrap(), r#"{"a":null,"count":2}"#);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_archive_holds_the_release() {
    let server = Server::start().await;
    let dataset = sent(&server, ARROW, arrow_of(&[batch()])).await.ok(201);
    let release = server.publish(&text(&dataset["id"]), bucketized()).await;
    let path = format!("/v1/releases/{}/archive", text(&release["id"]));
    let answer = raw(&server, &path).await;
    assert_eq!(answer.header("content-type"), "application/zip");
    assert!(answer.header("content-disposition").starts_with("attachment; filename=\"release-"));
    assert_eq!(raw(&server, &path).await.body, answer.body, "deterministic");
    let request = server.request(Method::GET, &path).header("if-none-match", answer.header("etag"));
    assert_eq!(server.send(request).await.status, 304);

    let mut zip = zip::ZipArchive::new(Cursor::new(answer.body)).unwrap();
    let names: Vec<String> = (0..zip.len()).map(|at| zip.by_index(at).unwrap().name().unwrap().into_owned()).collect();
    assert_eq!(names, ["README.txt", "manifest.json", "report.json", "datapackage.json", "t1.qi.csv", "t1.sa.csv"]);
    let mut file = |name: &str| {
        let mut text = String::new();
        zip.by_name(name).unwrap().read_to_string(&mut text).unwrap();
        text
    };
    assert_eq!(serde_json::from_str::<Value>(&file("manifest.json")).unwrap(), release);
    let report = server.get(&format!("/v1/releases/{}/report", text(&release["id"]))).await.ok(200);
    assert_eq!(serde_json::from_str::<Value>(&file("report.json")).unwrap(), report);
    for part in ["qi", "sa"] {
        assert_eq!(file(&format!("t1.{part}.csv")), server.part(&release, "t1", part).await);
    }
    let package: Value = serde_json::from_str(&file("datapackage.json")).unwrap();
    let resource = &package["resources"][0];
    assert_eq!(resource["path"], "t1.qi.csv");
    assert_eq!(resource["hash"], format!("sha256:{}", text(&release["tables"][0]["parts"][0]["sha256"])));
    assert_eq!(resource["schema"]["missingValues"], json!([""]));
    let fields: Vec<&Value> =
        resource["schema"]["fields"].as_array().unwrap().iter().map(|field| &field["type"]).collect();
    assert_eq!(fields, ["integer", "integer", "number", "string"]);
    let readme = file("README.txt");
    for expected in ["t1.qi.csv", "must not be concluded", "`bucket`", "missing value"] {
        assert!(readme.contains(expected), "{expected} is missing in\n{readme}");
    }
    assert!(readme.lines().all(|line| line.chars().count() <= 80), "{readme}");
    server.get("/v1/releases/018f0000-0000-7000-8000-000000000000/archive").await.problem(404, "not-found");
    server.stop().await;
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
    let mut taken = 0;
    for (kind, whole) in [(PARQUET, &parquet), (ARROW, &arrow), (NDJSON, &ndjson)] {
        for _ in 0..6 {
            let cut = whole[..random(whole.len())].to_vec();
            let answer = sent(&server, kind, cut).await;
            // lines may be cut between two of them, and messages too
            taken += i64::from(answer.status == 201);
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
            taken += i64::from(sent(&server, kind, damaged).await.status == 201);
        }
        let mut garbage: Vec<u8> = (0..4000).map(|_| random(256) as u8).collect();
        assert!(sent(&server, kind, garbage.clone()).await.status >= 400);
        garbage.splice(..4, *b"PAR1");
        garbage.extend_from_slice(b"PAR1");
        assert!(sent(&server, kind, garbage).await.status >= 400);
        assert_eq!(sent(&server, kind, "").await.status, 422);
    }
    assert_eq!(server.stored("datasets").await, taken);
    let chunks = server.stored("column_chunks").await;
    for dataset in server.items("/v1/datasets?limit=1000").await {
        server.delete(&format!("/v1/datasets/{}", text(&dataset["id"]))).await.ok(200);
    }
    assert!(chunks == taken * 4, "{chunks} chunks of {taken} datasets");
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
async fn what_has_no_place_in_a_table_is_named() {
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
    assert_eq!(kinds, ["decimal", "integer", "decimal", "decimal", "text"]);
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
    let large = format!("a,b\n{}", "1,x\n".repeat(5_000_000));
    for (disposition, headers, content, rows) in [
        (format!("{file}\"t.csv\""), "", CSV.as_bytes(), 6),
        (format!("{file}\"t.parquet\""), "Content-Type: application/octet-stream\r\n", &parquet, 6),
        ("name=\"file\"".to_owned(), "Content-Type: application/x-ndjson\r\n", ndjson().as_bytes(), 6),
        (format!("{file}\"t.csv.zst\""), "", &packed, 6),
        (format!("{file}\"t.csv\""), "Content-Encoding: zstd\r\n", &packed, 6),
        (format!("{file}\"t.csv\""), "", large.as_bytes(), 5_000_000),
    ] {
        let body = form(&[(&disposition, headers, content)]);
        let dataset = server.upload_with("name=x", body, &kind).await.ok(201);
        assert_eq!((&dataset["rows"], &dataset["bytes"]), (&json!(rows), &json!(content.len())), "{disposition}");
    }
    let before = server.stored("datasets").await;
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
        assert_eq!(server.upload_with("", body, &kind).await.status, status);
    }
    assert_eq!(server.stored("datasets").await, before);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_part_is_streamed() {
    let server = Server::start().await;
    let rows = 200_000;
    let mut csv = String::from("id,group,text\n");
    for row in 0..rows {
        csv += &format!("{},{},some text {}\n", row % 90_000, row % 7, row % 1000);
    }
    let dataset = server.upload("", csv).await.ok(201);
    let release = published(&server, &dataset).await;
    let path = part_path(&release, "t1", "rows");
    let csv = of_csv(&raw(&server, &path).await.text());
    assert_eq!(csv.1.len(), rows);
    // what comes first comes before the last rows were read: more than one piece, none of them large
    let mut response = server.request(Method::GET, &format!("{path}?format=parquet")).send().await.unwrap();
    let (mut pieces, mut largest, mut body) = (0, 0, Vec::new());
    while let Some(piece) = response.chunk().await.unwrap() {
        (pieces, largest) = (pieces + 1, largest.max(piece.len()));
        body.extend_from_slice(&piece);
    }
    assert!(pieces > 3 && largest < body.len() / 2, "{pieces} pieces, the largest of {largest} of {}", body.len());
    let reader = SerializedFileReader::new(Bytes::from(body.clone())).unwrap();
    assert_eq!(reader.num_row_groups(), 4, "one for each chunk");
    assert_eq!(of_parquet(body).1, csv);
    assert_eq!(of_arrow(raw(&server, &format!("{path}?format=arrow")).await.body).1, csv);
    let (_, counted) = of_parquet(raw(&server, &format!("{path}?format=parquet&view=counts")).await.body);
    assert_eq!(counted.1.len(), rows);
    server.stop().await;
}
