//! The attack: rows pass through files without a name, whose blocks stay on the disk when they are gone, and a purge knows nothing
//! of them. So no such file holds what was sent.

use std::fs;
use std::path::Path;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use memchr::memmem;
use parquet::basic::Compression;
use parquet::file::properties::WriterVersion;
use reqwest::Method;
use tokio::sync::oneshot;

use crate::operations::engine_tables::{Lake, anatomy};
use crate::service::input_formats::{PARQUET, batch, parquet_of};
use crate::support::harness::Server;
use crate::support::table_engine::EngineFault;

/// The first bytes of what is compressed with zstd.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// The files without a name in a folder that this process has open.
fn unnamed_files(folder: &Path) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for entry in fs::read_dir("/proc/self/fd").unwrap() {
        let open = entry.unwrap().path();
        let is_unnamed = |target: &Path| target.starts_with(folder) && target.to_string_lossy().ends_with(" (deleted)");
        // others are closed meanwhile
        if fs::read_link(&open).is_ok_and(|target| is_unnamed(&target)) {
            files.extend(fs::read(&open));
        }
    }
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spooled_upload_stands_in_no_file() {
    let server = Server::start().await;
    let mut begun = parquet_of(&[batch()], Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0);
    let (length, last) = (begun.len() - 1, begun.split_off(begun.len() - 1));
    assert!(memmem::find(&begun, b"Smith, J").is_some(), "compression hides what is not encrypted");
    let (go_on, waiting) = oneshot::channel::<()>();
    let rest = stream::once(async move {
        waiting.await.unwrap();
        Ok::<_, std::io::Error>(last)
    });
    let body = reqwest::Body::wrap_stream(stream::iter([Ok(begun)]).chain(rest));
    let upload = server.request(Method::POST, "/v1/datasets").header("content-type", PARQUET).body(body);
    let upload = tokio::spawn(upload.send());
    let spooled = loop {
        assert!(!upload.is_finished(), "the upload goes on");
        if let Some(file) = unnamed_files(&server.data()).into_iter().find(|file| file.len() == length) {
            break file;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    for sent in [b"Smith, J".as_slice(), b"line\nend", b"PAR1"] {
        assert!(memmem::find(&spooled, sent).is_none(), "{}", String::from_utf8_lossy(sent));
    }
    go_on.send(()).unwrap();
    assert_eq!(upload.await.unwrap().unwrap().status(), 201);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_an_engine_stand_in_no_file() {
    let lake = Lake::start().await;
    let id = lake.registered("", "visits").await;
    let mut files = Vec::new();
    let look = async { files = unnamed_files(&lake.server.data()) };
    // the engine is to wait before it is asked
    let waits = lake.engine.meanwhile(EngineFault::SlowWriting, look);
    let ((), job) = tokio::join!(waits, lake.server.job(&id, anatomy(4)));
    assert_eq!(job.ok(200)["status"], "succeeded");
    assert!(files.iter().any(|file| file.len() > 1000), "the rows are kept for the audit");
    // chunks are compressed, which hides words; this is how each of them begins
    assert!(files.iter().all(|file| memmem::find(file, &ZSTD_MAGIC).is_none()));
    lake.server.stop().await;
}
