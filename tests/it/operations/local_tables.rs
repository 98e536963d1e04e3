//! Tables that the command line reads: every format, compression and option, from a path or standard input.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use parquet::basic::Compression;
use parquet::file::properties::WriterVersion;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::service::input_formats::{arrow_of, batch, parquet_of};
use crate::service::uploads::{gzip, zstd};
use crate::support::folder::stderr;
use crate::support::harness::{HOSPITAL, guardian, hospital_method, run};

/// The rows of `batch` as CSV with a text for missing values and another delimiter.
const CSV: &str = "age;price;name;smoker\n30;1.50;Smith, J;true\n-7;20.25;NA;false\nNA;0.05;\"\";true\n\
    30;1.50;Smith, J;true\n41;NA;\u{e9}t\u{e9};NA\n5;3.00;\"line\nend\";false\n";

fn specification() -> Value {
    json!({"method": {"type": "anatomy", "quasi_identifiers": ["age", "price", "name"], "sensitive": "smoker",
        "guarantee": {"type": "l_diversity", "l": 2}}})
}

/// An Arrow file of two batches.
fn arrow_file(compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut file = FileWriter::try_new_with_options(Vec::new(), &batch().schema(), options).unwrap();
    [batch().slice(0, 2), batch().slice(2, 4)].iter().for_each(|batch| file.write(batch).unwrap());
    file.into_inner().unwrap()
}

fn compressed_stream(batch: &RecordBatch, compression: CompressionType) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(Some(compression)).unwrap();
    let mut stream = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    stream.write(batch).unwrap();
    stream.into_inner().unwrap()
}

/// A folder with a specification.
struct Folder(TempDir);

impl Folder {
    fn new(specification: &Value) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.path("S.json"), specification.to_string()).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> String {
        fs::write(self.path(name), bytes).unwrap();
        name.to_owned()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        run(guardian().args(arguments).current_dir(self.0.path()))
    }

    /// Runs a command with bytes on its standard input.
    fn piped(&self, arguments: &[&str], bytes: &[u8]) -> Output {
        let mut command = guardian();
        command.args(arguments).current_dir(self.0.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // a command that refuses early closes its input
        let _ = stdin.write_all(bytes);
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    /// The CSV of the parts of a release.
    fn parts(&self, release: &str) -> Vec<String> {
        ["t1.qi.csv", "t1.sa.csv"].map(|file| fs::read_to_string(self.path(release).join(file)).unwrap()).into()
    }
}

#[track_caller]
fn done(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn every_format_and_compression_gives_one_release() {
    let folder = Folder::new(&specification());
    let files: Vec<(&str, Vec<u8>)> = vec![
        ("parquet", parquet_of(&[batch()], Compression::SNAPPY, WriterVersion::PARQUET_2_0)),
        ("stream", arrow_of(&[batch()])),
        ("stream-lz4", compressed_stream(&batch(), CompressionType::LZ4_FRAME)),
        ("file", arrow_file(None)),
        ("file-lz4", arrow_file(Some(CompressionType::LZ4_FRAME))),
        ("file-zstd", arrow_file(Some(CompressionType::ZSTD))),
    ];
    let csv = ["--null", "NA", "--delimiter", ";"];
    folder.write("T.csv", CSV.as_bytes());
    let publish = |table: &str, out: &str, more: &[&str]| {
        let arguments = ["publish", table, "S.json", "--out", out, "--reproduce", "identity"];
        folder.run(&[&arguments[..], more].concat())
    };
    done(&publish("T.csv", "csv", &csv));
    let expected = folder.parts("csv");
    assert_eq!(expected[0].lines().count(), 8, "a cell has two lines: {expected:?}");
    for (name, bytes) in files {
        for (packing, bytes) in [("plain", bytes.clone()), ("gz", gzip(&bytes)), ("zst", zstd(&bytes))] {
            let (file, out) = (folder.write(&format!("{name}.{packing}"), &bytes), format!("{name}-{packing}-out"));
            done(&publish(&file, &out, &[]));
            assert_eq!(folder.parts(&out), expected, "{file}");
            done(&folder.run(&["verify", &out, "--original", &file]));
        }
    }
    // an original with options, and of another format than the one that was published
    done(&folder.run(&[&["verify", "file-lz4-gz-out", "--original", "T.csv"][..], &csv].concat()));
    assert_eq!(code(&folder.run(&["verify", "file-lz4-gz-out", "--original", "T.csv", "--delimiter", ";"])), 1);
}

#[test]
fn tables_come_from_standard_input() {
    let folder = Folder::new(&json!({"method": hospital_method()}));
    let publish = ["publish", "-", "S.json", "--out", "out"];
    done(&folder.piped(&publish, &zstd(HOSPITAL.as_bytes())));
    done(&folder.piped(&["verify", "out", "--original", "-"], HOSPITAL.as_bytes()));
    let two = "{\"type\":\"l_diversity\",\"l\":2}";
    let output = folder.piped(&["verify", "-", "--rules", "age -> race", "--guarantee", two], HOSPITAL.as_bytes());
    assert_eq!(code(&output), 1, "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(code(&folder.piped(&["init", "-", "--yes"], HOSPITAL.as_bytes())), 2, "no name for the file");
    done(&folder.piped(&["init", "-", "--yes", "--output", "first.json"], HOSPITAL.as_bytes()));
    let shown = folder.piped(&["init", "-", "--yes", "--output", "-"], HOSPITAL.as_bytes());
    let written: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert!(written["method"].is_object() && stderr(&shown).contains("quasi_identifier"), "{written:#}");
    done(&folder.piped(&["publish", "-", "first.json", "--out", "first"], HOSPITAL.as_bytes()));
    assert_eq!(code(&folder.piped(&["publish", "-", "S.json", "--out", "none"], b"")), 3);
    assert!(!folder.path("none").exists());
}

#[test]
fn options_of_a_table_mean_what_they_mean_in_an_upload() {
    let method =
        json!({"type": "versatile", "rules": ["zip -> ill"], "default_guarantee": {"type": "l_diversity", "l": 2}});
    let folder = Folder::new(&json!({"method": method}));
    folder.write("T.csv", b"zip|ill\n01|a\n01|b\n2|NA\n2|a\n");
    let publish =
        |out: &str, more: &[&str]| folder.run(&[&["publish", "T.csv", "S.json", "--out", out], more].concat());
    done(&publish("text", &["--types", "zip:text", "--null", "NA", "--delimiter", "|"]));
    let types = read_json(&folder.path("text/manifest.json"))["tables"][0]["parts"][0]["types"].clone();
    assert_eq!(types["zip"], "text");
    for (option, value, said) in [
        ("--types", "zip", "types must have the form"),
        ("--types", "zip:text,zip:integer", "types must give each column one type"),
        ("--types", "zip:real", "a type must be"),
        ("--delimiter", "ab", "delimiter must be one ASCII character"),
    ] {
        let output = publish("none", &[option, value]);
        let stderr = String::from_utf8(output.stderr.clone()).unwrap();
        assert!(code(&output) == 2 && stderr.contains(said), "{option} {value}: {stderr}");
    }
    assert_eq!(code(&publish("none", &["--types", "zap:text"])), 3);
    folder.write("T.csv", &arrow_file(None));
    let output = publish("none", &["--null", "NA"]);
    assert_eq!((code(&output), folder.path("none").exists()), (2, false));
    // init prints the options again
    folder.write("T.csv", b"age;sick\n30;a\n31;b\n30;?\n31;a\n30;a\n31;b\n");
    let output = folder.run(&["init", "T.csv", "--yes", "--null", "?", "--delimiter", ";"]);
    done(&output);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.contains("guardian publish T.csv T.spec.json --out release --delimiter ';' --null '?'"),
        "{printed}"
    );
}

/// Sizes that a compressed buffer states are held to the limits before they are allocated.
#[test]
fn damaged_arrow_files_end_in_a_refusal() {
    let folder = Folder::new(&specification());
    let publish = |bytes: &[u8]| {
        folder.write("T.arrow", bytes);
        let output = folder.run(&["publish", "T.arrow", "S.json", "--out", "out"]);
        let _ = fs::remove_dir_all(folder.path("out"));
        let stderr = String::from_utf8(output.stderr.clone()).unwrap();
        assert!(matches!(code(&output), 0 | 3) && !stderr.contains("this is a bug"), "{stderr}");
        stderr
    };
    let mut state = 7_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for compression in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let whole = arrow_file(Some(compression));
        assert!(!publish(&whole).contains("problems/"));
        for _ in 0..8 {
            publish(&whole[..random(whole.len())]);
            let mut damaged = whole.clone();
            for _ in 0..3 {
                let at = random(damaged.len());
                damaged[at] = random(256) as u8;
            }
            publish(&damaged);
        }
        // a buffer that states another size than it has, up to the largest
        let stream = compressed_stream(&long_batch(), compression);
        let declared = (LONG_ROWS as i64 * 8).to_le_bytes();
        let at = stream.windows(8).position(|window| window == declared).unwrap();
        for size in [1_i64, 1 << 34, i64::MAX, i64::MIN, -2] {
            let mut forged = stream.clone();
            forged[at..at + 8].copy_from_slice(&size.to_le_bytes());
            let said = publish(&forged);
            let expected = if size > 1 { "bytes of a record batch" } else { "the file is damaged" };
            assert!(said.contains(expected), "{size}: {said}");
        }
    }
}

const LONG_ROWS: usize = 5_000;

/// Rows whose buffer of numbers compresses well.
fn long_batch() -> RecordBatch {
    let numbers: arrow_array::ArrayRef =
        std::sync::Arc::new(arrow_array::Int64Array::from_iter_values((0..LONG_ROWS as i64).map(|row| row % 3)));
    RecordBatch::try_from_iter([("age", numbers)]).unwrap()
}
