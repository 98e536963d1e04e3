//! One release, whatever the number of threads: blocks are scanned side by side, and nothing shows in which order.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use serde_json::{Value, json};

use crate::support::harness::{guardian, run};

/// Rows of about 150 bytes with quotes, delimiters and line ends in cells, 9 MB together: more blocks than are read at once.
fn table() -> String {
    let mut csv = "age,text,ill\n".to_owned();
    for row in 0..60_000_u32 {
        let mixed = row.wrapping_mul(2_654_435_761) >> 7;
        let (age, ill) = (mixed % 70, mixed / 70 % 11);
        let text = "a \"\"quoted\"\", text\nof several lines; ".repeat(3);
        let age = if row % 997 == 0 { String::new() } else { age.to_string() };
        writeln!(csv, "{age},\"{text}{}\",ill {ill}", mixed % 300).unwrap();
    }
    csv
}

/// The files of a release, without the time in its manifest, and without the digest of it in the report.
fn files(folder: &std::path::Path) -> BTreeMap<String, Vec<u8>> {
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        let mut bytes = fs::read(entry.path()).unwrap();
        if name.ends_with(".json") {
            let mut document: Value = serde_json::from_slice(&bytes).unwrap();
            for of_time in ["created_at", "manifest_sha256"] {
                document.as_object_mut().unwrap().remove(of_time);
            }
            bytes = document.to_string().into_bytes();
        }
        (name, bytes)
    };
    fs::read_dir(folder).unwrap().map(|entry| read(entry.unwrap())).collect()
}

#[test]
fn release_on_any_number_of_threads_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("T.csv"), table()).unwrap();
    let method = json!({"type": "anatomy", "quasi_identifiers": ["age", "text"], "sensitive": "ill",
        "guarantee": {"type": "l_diversity", "l": 3}});
    fs::write(path("S.json"), json!({"method": method}).to_string()).unwrap();
    let released = ["1", "2", "7"].map(|threads| {
        let mut command = guardian();
        command.env("RAYON_NUM_THREADS", threads).current_dir(folder.path());
        command.args(["publish", "T.csv", "S.json", "--reproduce", &"5a".repeat(32), "--out", threads]);
        let output = run(&mut command);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        files(&path(threads))
    });
    assert!(released[0].len() > 4, "{:?}", released[0].keys());
    assert!(released[1] == released[0] && released[2] == released[0], "threads change the release");
}
