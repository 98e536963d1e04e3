//! A folder with a table and a specification, which the binary publishes and verifies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::harness::{HOSPITAL, guardian, hospital_method, run};

/// A folder with a table, a specification and room for releases.
pub(crate) struct CommandFixture {
    home: TempDir,
}

impl CommandFixture {
    pub(crate) fn new(csv: impl AsRef<[u8]>, specification: &Value) -> Self {
        let service = Self { home: tempfile::tempdir().unwrap() };
        fs::write(service.path("T.csv"), csv).unwrap();
        service.specify(specification);
        service
    }

    pub(crate) fn hospital() -> Self {
        Self::new(HOSPITAL, &json!({"method": hospital_method()}))
    }

    /// Replaces the specification.
    pub(crate) fn specify(&self, specification: &Value) {
        fs::write(self.path("S.json"), specification.to_string()).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn publish(&self, out: &str, more: &[&str]) -> Output {
        let mut command = guardian();
        command.arg("publish").arg("--input").arg(self.path("T.csv")).arg("--spec").arg(self.path("S.json"));
        run(command.arg("--out").arg(self.path(out)).args(more))
    }

    /// The manifest of a release that is published.
    #[track_caller]
    pub(crate) fn published(&self, out: &str, more: &[&str]) -> Value {
        let output = self.publish(out, more);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        read_json(&self.path(out).join("manifest.json"))
    }

    pub(crate) fn verify(&self, out: &str, more: &[&str]) -> Output {
        run(guardian().arg("verify").arg(self.path(out)).args(more))
    }

    /// Whether a release passes without its original, and with it.
    pub(crate) fn is_verified(&self, out: &str) -> [bool; 2] {
        let passes = |more: &[&str]| {
            let output = self.verify(out, more);
            assert!(code(&output) < 2, "{}", stderr(&output));
            code(&output) == 0
        };
        [passes(&[]), passes(&["--original", &self.original()])]
    }

    /// Writes another manifest with the parts of a release.
    pub(crate) fn forge(&self, out: &str, manifest: &Value) {
        fs::write(self.path(out).join("manifest.json"), manifest.to_string()).unwrap();
    }

    /// Checks that no change of its manifest leaves a release verified.
    #[track_caller]
    pub(crate) fn assert_refuted(&self, out: &str, manifest: &Value, changes: &[fn(&mut Value)]) {
        for (at, change) in changes.iter().enumerate() {
            let mut changed = manifest.clone();
            change(&mut changed);
            self.forge(out, &changed);
            assert_eq!(code(&self.verify(out, &[])), 1, "{out}: change {at}");
        }
        self.forge(out, manifest);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        names(self.home.path())
    }

    pub(crate) fn original(&self) -> String {
        self.path("T.csv").to_str().unwrap().to_owned()
    }
}

/// The names of the files of a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort_unstable();
    names
}

pub(crate) fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}
