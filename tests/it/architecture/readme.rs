//! The session of the README is run as it stands.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::harness::guardian;

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The fenced block of a kind.
fn block<'a>(text: &'a str, fence: &str) -> &'a str {
    let start = text.find(&format!("```{fence}\n")).unwrap_or_else(|| panic!("the README has no {fence} block"));
    let body = &text[start + fence.len() + 4..];
    &body[..body.find("```").expect("the block ends")]
}

#[test]
fn the_session_of_the_readme_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut server = guardian()
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder.path().join("data"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map(Server)
        .unwrap();
    let mut said = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let address = said.split_whitespace().find(|word| word.starts_with("http://")).unwrap();

    let session = block(&readme, "sh session")
        .replace("http://127.0.0.1:8080", address)
        .replace("@examples/", &format!("@{}/examples/", root.display()));
    let ran =
        Command::new("bash").args(["-euo", "pipefail", "-c", &session]).current_dir(folder.path()).output().unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), block(&readme, "text session"), "{errors}");
}

#[test]
fn the_first_release_of_the_readme_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let commands = block(&readme, "sh first").replace("examples/", &format!("{}/examples/", root.display()));
    let commands = commands.replace("guardian ", concat!("'", env!("CARGO_BIN_EXE_guardian"), "' "));
    let ran = Command::new("bash").args(["-euo", "pipefail", "-c", &commands]).current_dir(folder.path()).output();
    let ran = ran.unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), block(&readme, "text first"), "{errors}");
}

#[test]
fn the_demo_publishes_both_tables() {
    let folder = tempfile::tempdir().unwrap();
    let ran = guardian()
        .args(["demo", "--exit", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder.path().join("data"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    for expected in ["hospital: 6 rows", "adult: 45222 rows", "linkage checked", "Swagger UI: http://127.0.0.1:"] {
        assert!(said.contains(expected), "{expected} is missing in:\n{said}");
    }
    assert!(said.matches("stands in a part of its own").count() >= 2, "each table has a bucketized sub-table:\n{said}");
}
