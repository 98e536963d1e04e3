//! Twenty releases under a given key: every file stays equal in bytes, except `created_at`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use guardian::report::Manifest;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::harness::{guardian, run};

const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// The hash of each file of each release.
type Hashes = BTreeMap<String, BTreeMap<String, String>>;

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The bytes of a file; those of a document without the time at which it was made, and what follows from it.
fn timeless(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    if path.extension().is_none_or(|extension| extension != "json") {
        return bytes;
    }
    let mut document: Value = serde_json::from_slice(&bytes).unwrap();
    let removed =
        document.as_object_mut().map(|members| (members.remove("created_at"), members.remove("manifest_sha256")));
    match removed {
        None | Some((None, None)) => bytes,
        Some(_) => serde_json::to_vec(&document).unwrap(),
    }
}

fn assert_manifest_reads_back(path: &Path) {
    let written: Value = read(path);
    let manifest: Manifest = read(path);
    assert_eq!(serde_json::to_value(&manifest).unwrap(), written, "{}", path.display());
}

fn publish(name: &str, input: &Path) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let specification = vectors().join(format!("golden/{name}.json"));
    let mut command = guardian();
    command.arg("publish").arg("--input").arg(input).arg("--spec").arg(specification).arg("--out").arg(&out);
    command.arg("--internal-report").arg(out.with_file_name("internal.json")).args(["--reproduce", KEY]);
    let output = run(&mut command);
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    assert_manifest_reads_back(&out.join("manifest.json"));
    let mut files: Vec<PathBuf> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.push(out.with_file_name("internal.json"));
    let hash = |path: PathBuf| {
        let digest = Sha256::digest(timeless(&path));
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), digits)
    };
    files.into_iter().map(hash).collect()
}

#[test]
fn manifests_of_openapi_examples_read_back_equal() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/examples");
    ["manifest.json", "rejected.json", "withdrawn.json"]
        .iter()
        .for_each(|name| assert_manifest_reads_back(&examples.join(name)));
}

/// With `WRITE_GOLDEN=1` the hashes are written anew, for a change of the bytes that is meant.
#[test]
fn golden_releases_keep_their_bytes() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data");
    let inputs: BTreeMap<String, String> = read(&vectors().join("golden/index.json"));
    let found: Hashes = inputs.iter().map(|(name, input)| (name.clone(), publish(name, &data.join(input)))).collect();
    assert_eq!(found.len(), 20);
    let path = vectors().join("golden.json");
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        fs::write(&path, serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
    }
    let expected: Hashes = read(&path);
    for (name, files) in &found {
        for (file, hash) in files {
            assert_eq!(Some(hash), expected[name].get(file), "{name}/{file} has other bytes");
        }
        assert_eq!(files.len(), expected[name].len(), "{name} has other files");
    }
}
