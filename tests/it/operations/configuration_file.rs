//! The configuration file: what it sets, what goes before it, and what it refuses.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::harness::{Process, guardian, run};

/// A folder with a configuration file.
struct Configured {
    home: TempDir,
}

impl Configured {
    fn new(text: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("guardian.toml"), text).unwrap();
        Self { home }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        run(guardian().arg("--config").arg(self.path("guardian.toml")).args(arguments).current_dir(self.home.path()))
    }

    /// The exit code and message of a command that is refused.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        message
    }
}

/// The first line of the log: the options in effect.
fn in_effect(process: &Process) -> Value {
    serde_json::from_str(process.log().lines().next().unwrap()).unwrap()
}

fn serve(configured: &Configured, environment: &[(&str, &str)], flags: &[&str]) -> Value {
    let mut command = guardian();
    command.arg("serve").args(flags).envs(environment.iter().copied());
    command.env("RUST_LOG", "info").env("GUARDIAN_CONFIG", configured.path("guardian.toml"));
    let shown = in_effect(&Process::serve_by(&configured.path("data"), &mut command));
    shown["fields"].as_object().map_or_else(|| shown.clone(), |fields| Value::Object(fields.clone()))
}

#[test]
fn flags_go_before_the_environment_and_both_before_the_file() {
    let configured = Configured::new(
        "log-format = \"json\"\nworkers = 7\n[serve]\nlisten = \"127.0.0.1:0\"\nworkers = 2\nmax-plans = 3\nmax-uploads = 5\n\
         trust-forwarded = true\nmax-cell-bytes = \"32KiB\"\n[worker]\nworkers = 9\n",
    );
    let shown = serve(&configured, &[("GUARDIAN_MAX_PLANS", "6"), ("GUARDIAN_MAX_UPLOADS", "7")], &["--max-uploads", "8"]);
    let options = ["workers", "max_plans", "max_uploads", "trust_forwarded", "max_cell_bytes"];
    let values = options.map(|option| shown[option].clone());
    assert_eq!(Value::from(values.to_vec()), serde_json::json!([2, 6, 8, true, 32 << 10]), "{shown}");
}

#[test]
fn the_environment_may_name_the_store_otherwise() {
    let configured = Configured::new("store = \"postgres://me@127.0.0.1:1/none\"\n");
    let mut list = guardian();
    list.args(["keys", "list", "--data"]).arg(configured.path("data")).env("DATABASE_URL", "embedded");
    let output = run(list.env("GUARDIAN_CONFIG", configured.path("guardian.toml")));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!message.contains("127.0.0.1:1"), "{message}");
    let output = configured.run(&["keys", "list"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(4) && message.contains("127.0.0.1:1"), "{message}");
}

#[test]
fn every_fault_of_the_file_is_named() {
    let configured = Configured::new(
        "worker = 3\nmaster-key-digits = \"00\"\nworkers = [1]\n[serve]\ntrust-forwarded = \"yes\"\nlog-formt = \"json\"\n[serf]\nworkers = 1\n",
    );
    let message = configured.refused(&["serve"]);
    for fault in [
        "worker is no option that a file can set; the nearest is workers",
        "master-key-digits is no option",
        "workers must be a text or a number",
        "[serve] trust-forwarded must be true or false",
        "[serve] log-formt is no option that a file can set; the nearest is log-format",
        "[serf] is no command",
    ] {
        assert!(message.contains(fault), "{fault}: {message}");
    }
}

#[test]
fn a_value_that_an_option_refuses_is_of_the_file() {
    let configured = Configured::new("workers = 0\n");
    let message = configured.refused(&["serve"]);
    assert!(message.contains("guardian.toml cannot be used: invalid value '0' for '--workers"), "{message}");
    // a command without the option does not mind, and neither does one whose flag goes before
    assert!(configured.run(&["openapi"]).status.success());
    let message = configured.refused(&["serve", "--workers", "1", "--listen", "192.0.2.1:1"]);
    assert!(message.contains("192.0.2.1 is not a loopback address"), "{message}");
}

#[test]
fn a_file_that_cannot_be_read_stops_every_command() {
    let configured = Configured::new("workers = \n");
    let message = configured.refused(&["openapi"]);
    assert!(message.contains("guardian.toml, line 1"), "{message}");
    fs::write(configured.path("guardian.toml"), "#".repeat((1 << 20) + 1)).unwrap();
    assert!(configured.refused(&["openapi"]).contains("larger than"));
    fs::remove_file(configured.path("guardian.toml")).unwrap();
    assert_eq!(configured.run(&["openapi"]).status.code(), Some(4));
}

#[test]
fn the_example_file_is_understood() {
    let configured = Configured::new(include_str!("../../../examples/guardian.toml"));
    let key = configured.path("master.key");
    let environment = [("GUARDIAN_STORE", "embedded"), ("GUARDIAN_MASTER_KEY_FILE", key.to_str().unwrap())];
    let shown = serve(&configured, &environment, &["--auth", "none", "--listen", "127.0.0.1:0"]);
    let options = ["log_format", "workers", "max_upload_bytes", "trust_forwarded"].map(|option| shown[option].clone());
    assert_eq!(Value::from(options.to_vec()), serde_json::json!(["json", 1, 4_u64 << 30, true]), "{shown}");
}
