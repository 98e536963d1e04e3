//! Ranges of parts and archives: the same bytes as the whole, for tools that read a file over HTTP in pieces.

use std::io::Cursor;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::{ChunkReader, Length};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::reading::output_formats::of_parquet;
use crate::service::input_formats::{CSV, bucketized, published};
use crate::support::harness::{Answer, Client, Server, part_path, text};

async fn range(client: &Client, path: &str, range: &str) -> Answer {
    client.send(client.request(Method::GET, path).header("range", range)).await
}

async fn head(client: &Client, path: &str) -> Answer {
    client.send(client.request(Method::HEAD, path)).await
}

/// The paths of everything that a release with buckets can be downloaded as.
fn downloads(release: &Value) -> Vec<String> {
    let (qi, sa) = (part_path(release, "t1", "qi"), part_path(release, "t1", "sa"));
    let mut paths: Vec<String> =
        ["csv", "ndjson", "parquet", "arrow"].iter().map(|format| format!("{qi}?format={format}")).collect();
    paths.extend([format!("{sa}.parquet"), format!("{sa}.csv?view=counts"), format!("{qi}.parquet?view=linked")]);
    paths.push(format!("/v1/releases/{}/archive", text(&release["id"])));
    paths
}

async fn bucketized_release(server: &Server) -> Value {
    let dataset = server.upload("", CSV).await.ok(201);
    server.publish(&text(&dataset["id"]), bucketized()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_range_is_a_slice_of_the_whole() {
    let server = Server::start().await;
    let release = bucketized_release(&server).await;
    for path in downloads(&release) {
        let whole = server.get(&path).await;
        assert_eq!((whole.status, whole.header("accept-ranges")), (200, "bytes"), "{path}");
        let (bytes, etag) = (&whole.body, whole.header("etag"));
        assert!(etag.starts_with('"'), "strong: {etag}");
        let length = bytes.len();
        // every range of a short text, some of a long file
        let step = if length < 40 { 1 } else { length / 7 };
        for first in (0..length).step_by(step) {
            for last in (first..length).step_by(step) {
                let part = range(&server, &path, &format!("bytes={first}-{last}")).await;
                assert_eq!((part.status, &part.body[..]), (206, &bytes[first..=last]), "{path} {first}-{last}");
                assert_eq!(part.header("content-range"), format!("bytes {first}-{last}/{length}"));
                assert_eq!(part.header("content-length"), (last - first + 1).to_string());
                assert_eq!((part.header("etag"), part.header("accept-ranges")), (etag, "bytes"));
            }
        }
        for (said, expected) in [
            (format!("bytes={}-", length - 3), &bytes[length - 3..]),
            ("bytes=-5".to_owned(), &bytes[length - 5..]),
            (format!("bytes=-{}", length + 9), &bytes[..]),
            (format!("bytes=1-{}", length + 9), &bytes[1..]),
        ] {
            let part = range(&server, &path, &said).await;
            assert_eq!((part.status, &part.body[..]), (206, expected), "{path} {said}");
        }
        for said in [format!("bytes={length}-"), "bytes=-0".to_owned(), format!("bytes={length}-{length}")] {
            let refused = range(&server, &path, &said).await;
            assert_eq!(refused.header("content-range"), format!("bytes */{length}"), "{path} {said}");
            refused.problem(416, "range-unsatisfiable");
        }
        // what is no single range of bytes is a request of the whole
        for said in ["bytes=0-0,2-2", "rows=0-1", "bytes=5-2", "bytes=", "bytes=x-"] {
            let answer = range(&server, &path, said).await;
            assert_eq!((answer.status, &answer.body), (200, bytes), "{path} {said}");
            assert_eq!(answer.header("content-length"), length.to_string(), "the length is known by now");
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_precede_ranges() {
    let server = Server::start().await;
    let release = bucketized_release(&server).await;
    for path in downloads(&release) {
        let about = head(&server, &path).await;
        let whole = server.get(&path).await;
        assert_eq!((about.status, about.body.len()), (200, 0), "{path}");
        for name in ["etag", "accept-ranges", "content-type", "content-disposition"] {
            assert_eq!(about.header(name), whole.header(name), "{path} {name}");
        }
        assert_eq!(about.header("content-length"), whole.body.len().to_string(), "{path}");
        let etag = whole.header("etag");
        let request = || server.request(Method::GET, &path).header("range", "bytes=0-1");
        for (known, status) in
            [(etag.to_owned(), 206), (format!("W/{etag}"), 200), ("\"old\"".to_owned(), 200), (String::new(), 200)]
        {
            let answer = server.send(request().header("if-range", &known)).await;
            assert_eq!(answer.status, status, "{path} {known}");
            assert_eq!(answer.body, whole.body[..if status == 206 { 2 } else { whole.body.len() }]);
        }
        let date = server.send(request().header("if-range", "Wed, 21 Oct 2026 07:28:00 GMT")).await;
        assert_eq!(date.status, 200, "the service names no dates");
        let same = server.send(request().header("if-none-match", etag)).await;
        assert_eq!((same.status, same.body.len()), (304, 0), "{path}");
        let ranged_head = server.send(server.request(Method::HEAD, &path).header("range", "bytes=0-1")).await;
        assert_eq!((ranged_head.status, ranged_head.header("content-length")), (200, about.header("content-length")));
    }
    server.stop().await;
}

/// A file over HTTP.
struct RemoteFile {
    client: Client,
    path: String,
    length: u64,
    read: Arc<Mutex<Vec<Range<u64>>>>,
}

impl Length for RemoteFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for RemoteFile {
    type T = Cursor<Bytes>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(Cursor::new(self.get_bytes(start, (self.length - start).min(4096) as usize)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let bytes = start..start + length as u64;
        self.read.lock().unwrap().push(bytes.clone());
        let wanted = format!("bytes={}-{}", bytes.start, bytes.end - 1);
        let answer =
            tokio::task::block_in_place(|| Handle::current().block_on(range(&self.client, &self.path, &wanted)));
        assert_eq!((answer.status, answer.body.len()), (206, length));
        Ok(answer.body.into())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_parquet_fetches_what_it_needs() {
    let server = Server::start().await;
    let rows = 150_000;
    let mut csv = String::from("number,group,text\n");
    (0..rows).for_each(|row| csv.push_str(&format!("{},{},some text {}\n", row * 37 % 9973, row % 7, row * 31 % 4096)));
    let dataset = server.upload("", csv).await.ok(201);
    let release = published(&server, &dataset).await;
    let path = format!("{}.parquet", part_path(&release, "t1", "rows"));
    let length = head(&server, &path).await.header("content-length").parse().unwrap();
    let read = Arc::new(Mutex::new(Vec::new()));
    let client = Client::new(server.base.clone());
    let file = RemoteFile { client, path: path.clone(), length, read: Arc::clone(&read) };
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let mask = ProjectionMask::columns(builder.parquet_schema(), ["group"]);
    let batches: Vec<_> = builder.with_projection(mask).build().unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(arrow_array::RecordBatch::num_rows).sum::<usize>(), rows);
    let fetched: u64 = read.lock().unwrap().iter().map(|range| range.end - range.start).sum();
    assert!(fetched < length / 4, "{fetched} of {length}");
    let whole = server.get(&path).await.body;
    assert_eq!(whole.len() as u64, length);
    let (_, (names, cells)) = of_parquet(whole);
    let group = names.iter().position(|name| name == "group").unwrap();
    let of_ranges = batches.iter().flat_map(|batch| {
        (0..batch.num_rows()).map(|row| crate::reading::output_formats::cell(batch.column(0).as_ref(), row))
    });
    assert!(of_ranges.eq(cells.into_iter().map(|row| row[group].clone())));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_release_has_no_ranges() {
    let server = Server::start().await;
    let release = bucketized_release(&server).await;
    for path in downloads(&release) {
        assert_eq!(range(&server, &path, "bytes=0-3").await.status, 206, "{path}");
    }
    let withdrawn = format!("/v1/releases/{}/withdraw", text(&release["id"]));
    server.post(&withdrawn, &json!({"reason": "an error"})).await.ok(200);
    for path in downloads(&release) {
        range(&server, &path, "bytes=0-3").await.problem(410, "gone");
        server.get(&path).await.problem(410, "gone");
        assert_eq!(server.request(Method::HEAD, &path).send().await.unwrap().status(), 410);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_kept_is_answered_whole() {
    // 40 bytes: too few for any of the files
    for most in [0, 40] {
        let server = Server::start_with(|config| config.request_limits.max_rendered_bytes = most).await;
        let release = bucketized_release(&server).await;
        for path in downloads(&release) {
            let whole = server.get(&path).await;
            let answer = range(&server, &path, "bytes=0-3").await;
            assert_eq!((answer.status, answer.header("accept-ranges")), (200, "none"), "{path}");
            assert_eq!(answer.body, whole.body);
            let about = head(&server, &path).await;
            assert_eq!((about.status, about.header("accept-ranges")), (200, "none"));
            assert!(about.headers.get("content-length").is_none(), "{path}");
        }
        server.stop().await;
    }
}
