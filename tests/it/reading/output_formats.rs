//! Every format that a part may be asked for in: the same part is the same in all of them, and says nothing else.

use std::io::{Cursor, Read};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Date32Builder, Int32Builder, StringBuilder, TimestampMicrosecondBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, TimeUnit};
use bytes::Bytes;
use guardian::microdata::{format_date, format_timestamp};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterVersion;
use parquet::file::reader::{FileReader, SerializedFileReader};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::input_formats::{
    ARROW, CSV, NDJSON, PARQUET, arrow_of, batch, bucketized, parquet_of, published, raw, sent, with_metadata,
};
use crate::support::harness::{HOSPITAL, MARKER, Server, hospital_method, part_path, text};

/// A cell of an output as its CSV text.
pub(crate) fn cell(array: &dyn Array, row: usize) -> Option<String> {
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
pub(crate) type Cells = (Vec<String>, Vec<Vec<Option<String>>>);

fn of_batches(schema: &Schema, batches: &[RecordBatch]) -> Cells {
    let rows = batches.iter().flat_map(|batch| {
        (0..batch.num_rows()).map(|row| batch.columns().iter().map(|array| cell(array.as_ref(), row)).collect())
    });
    (schema.fields().iter().map(|field| field.name().clone()).collect(), rows.collect())
}

pub(crate) fn of_parquet(bytes: Vec<u8>) -> (Schema, Cells) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
    let schema = builder.schema().as_ref().clone();
    let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
    let cells = of_batches(&schema, &batches);
    (schema, cells)
}

pub(crate) fn of_arrow(bytes: Vec<u8>) -> (Schema, Cells) {
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
    let body = parquet_of(&[typed_batch()], Compression::SNAPPY, WriterVersion::PARQUET_1_0);
    let dataset = sent(&server, PARQUET, body).await.ok(201);
    let release = published(&server, &dataset).await;
    assert_eq!(release["verification"]["verified"], true);
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
async fn report_is_served_as_html_on_request() {
    let server = Server::start().await;
    let rows: String = (0..9).map(|row| format!("{},v{}\n", row / 3, row % 3)).collect();
    let dataset = server.dataset(format!("<b>age,\"d & 'x'\"\n{rows}")).await;
    let method = json!({"type": "anatomy", "quasi_identifiers": ["<b>age"], "sensitive": "d & 'x'",
        "guarantee": {"type": "l_diversity", "l": 3}});
    let release = server.publish(&dataset, json!({"method": method})).await;
    let path = format!("/v1/releases/{}/report", text(&release["id"]));
    let report = server.get(&path).await.ok(200);
    assert_eq!(server.get(&format!("{path}?format=json")).await.ok(200), report);

    let page = server.get(&format!("{path}?format=html")).await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    let browser = server.request(Method::GET, &path);
    let browser = server.send(browser.header("accept", "text/html,application/xhtml+xml,*/*;q=0.8")).await;
    assert_eq!(browser.body, page.body);
    let page = page.text();
    assert!(page.contains("&lt;b&gt;age") && page.contains("d &amp; 'x'"), "{page}");
    assert!(!page.contains("<b>") && !page.contains("<script") && !page.contains("style="), "{page}");
    for sentence in report["rules"].as_array().unwrap().iter().chain(report["tables"].as_array().unwrap()) {
        let sentence = text(sentence).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        assert!(page.contains(&format!("<li>{sentence}</li>")), "{sentence} in {page}");
    }
    assert!(page.contains("<td>3</td><td class=\"number\">3</td>"), "three buckets of three rows: {page}");

    server.get(&format!("{path}?format=pdf")).await.problem(406, "not-acceptable");
    let image = server.request(Method::GET, &path).header("accept", "image/png");
    server.send(image).await.problem(406, "not-acceptable");
    server.get(&format!("{path}?view=counts")).await.problem(400, "malformed-request");
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

    let server = server.anew().await;
    let named = server.upload("", "count,x\n1,a\n2,b\n").await.ok(201);
    let release = published(&server, &named).await;
    let refused = server.get(&format!("{}?view=counts", part_path(&release, "t1", "rows"))).await;
    assert_eq!(refused.problem(422, "reserved-name")["attribute"], "count");

    // a marker of missing values keeps its place
    let server = server.anew().await;
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
    let about = ["README.txt", "manifest.json", "report.json", "report.html", "datapackage.json"];
    assert_eq!(names, [&about[..], &["t1.qi.csv", "t1.sa.csv"]].concat());
    let mut file = |name: &str| {
        let mut text = String::new();
        zip.by_name(name).unwrap().read_to_string(&mut text).unwrap();
        text
    };
    assert_eq!(serde_json::from_str::<Value>(&file("manifest.json")).unwrap(), release);
    let report = server.get(&format!("/v1/releases/{}/report", text(&release["id"]))).await.ok(200);
    assert_eq!(serde_json::from_str::<Value>(&file("report.json")).unwrap(), report);
    let page = server.get(&format!("/v1/releases/{}/report?format=html", text(&release["id"]))).await;
    assert_eq!(file("report.html"), page.text());
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
    for expected in ["t1.qi.csv", "Conclusions to avoid", "`bucket`", "missing value"] {
        assert!(readme.contains(expected), "{expected} is missing in\n{readme}");
    }
    assert!(readme.lines().all(|line| line.chars().count() <= 80), "{readme}");
    server.get("/v1/releases/018f0000-0000-7000-8000-000000000000/archive").await.problem(404, "not-found");
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

#[tokio::test(flavor = "multi_thread")]
async fn the_ending_of_a_path_names_the_format() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let release = server.publish(&dataset, json!({"method": hospital_method()})).await;
    let part = part_path(&release, "t1", "qi");
    for format in ["csv", "ndjson", "json", "parquet", "arrow"] {
        let asked = server.get(&format!("{part}?format={format}")).await;
        // whatever the client accepts
        let request = server.request(Method::GET, &format!("{part}.{format}")).header("accept", "text/html");
        let named = server.send(request).await;
        assert_eq!((named.status, &named.body), (200, &asked.body), "{format}");
        for header in ["content-type", "etag"] {
            assert_eq!(named.header(header), asked.header(header), "{format}");
        }
        let same = server.get(&format!("{part}.{format}?format={format}")).await;
        assert_eq!((same.status, &same.body), (200, &asked.body), "{format}");
    }
    server.get(&format!("{part}.csv?format=parquet")).await.problem(400, "malformed-request");
    for other in ["txt", "csv.csv", ""] {
        server.get(&format!("{part}.{other}")).await.problem(404, "not-found");
    }
    server.stop().await;
}
