//! Nights of the command line: the state of the population is a sealed file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::folder::{code, read_json, stderr};
use crate::support::harness::{guardian, run};
use crate::support::nights::{Churn, Population, adult, csv, document};

/// A folder with the tables of nights, a specification, and the state of a population.
struct Nights {
    home: TempDir,
    churn: Churn,
}

impl Nights {
    fn new() -> Self {
        let nights = Self { home: tempfile::tempdir().unwrap(), churn: Churn::new(adult(), 240, 7) };
        nights.specify(&document(3, json!({"min_newcomers": 6})));
        nights
    }

    fn specify(&self, specification: &Value) {
        fs::write(self.path("S.json"), specification.to_string()).unwrap();
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join(name)
    }

    /// Runs a command on the present table.
    fn command(&self, name: &str, more: &[&str]) -> Output {
        fs::write(self.path("T.csv"), csv(&self.churn.table())).unwrap();
        let mut command = guardian();
        command.arg(name).arg("--input").arg(self.path("T.csv")).arg("--spec").arg(self.path("S.json"));
        run(command.args(more).current_dir(self.home.path()))
    }

    /// Publishes the present table as a night of the population `staff`.
    fn publish(&self, out: &str, more: &[&str]) -> Output {
        let fixed = ["--out", out, "--population", "staff", "--person", "pid"];
        self.command("publish", &[&fixed, more].concat())
    }

    #[track_caller]
    fn published(&self, out: &str, more: &[&str]) -> Value {
        let output = self.publish(out, more);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        read_json(&self.path(out).join("manifest.json"))
    }

    #[track_caller]
    fn refused(&self, more: &[&str], exit: i32, word: &str) {
        let before = fs::read(self.path("staff")).ok();
        let output = self.publish("refused", more);
        assert_eq!(code(&output), exit, "{}", stderr(&output));
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
        assert!(!self.path("refused").exists());
        assert_eq!(fs::read(self.path("staff")).ok(), before);
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn nights_go_on_from_the_state_of_the_file() {
    let mut nights = Nights::new();
    let first = nights.published("n1", &["--begin"]);
    assert_eq!((&first["method_details"]["night"], &first["method_details"]["counterfeits"]), (&json!(1), &json!(0)));
    for file in ["staff", "staff.key"] {
        assert_eq!(mode(&nights.path(file)), 0o600);
    }
    nights.churn.turn(12);
    let second = nights.published("n2", &[]);
    assert_eq!(second["method_details"]["night"], 2);
    assert!(second["method_details"]["counterfeits"].as_u64().unwrap() > 0);
    let verified = run(guardian().arg("verify").arg(nights.path("n2")).arg("--original").arg(nights.path("T.csv")));
    assert_eq!(code(&verified), 0, "{}", stderr(&verified));
    // the state holds nothing in the open
    let sealed = fs::read(nights.path("staff")).unwrap();
    assert!(!sealed.windows(4).any(|bytes| bytes == b"GRST"));
    assert_eq!(fs::read_dir(nights.home.path()).unwrap().count(), 6, "no draft is left");
}

#[test]
fn a_night_that_is_not_in_the_state_is_not_published() {
    let mut nights = Nights::new();
    nights.published("n1", &["--begin"]);
    nights.churn.turn(12);
    // as after a crash between the state and the folder: the state has moved, and no folder is there
    let key = "7".repeat(64);
    let state = fs::read(nights.path("staff")).unwrap();
    let keys = fs::read(nights.path("staff.key")).unwrap();
    let first = nights.published("n2", &["--reproduce", &key]);
    let part = |night: &str| fs::read(nights.path(night).join("t1.sa.csv")).unwrap();
    let bytes = part("n2");
    fs::remove_dir_all(nights.path("n2")).unwrap();
    // the persons of the lost folder are known: they keep their buckets
    let next = nights.published("n3", &[]);
    assert_eq!(next["method_details"]["night"], 3);
    assert_eq!(next["method_details"]["rows"], first["method_details"]["rows"]);
    // from the state before, the same key gives the same bytes
    fs::write(nights.path("staff"), state).unwrap();
    fs::write(nights.path("staff.key"), keys).unwrap();
    nights.published("again", &["--reproduce", &key]);
    assert_eq!(part("again"), bytes);
}

#[test]
fn a_lost_or_earlier_state_is_refused() {
    let mut nights = Nights::new();
    nights.refused(&[], 3, "republish-state-lost");
    nights.published("n1", &["--begin"]);
    nights.refused(&["--begin"], 2, "begun already");
    let (first, key) = (fs::read(nights.path("staff")).unwrap(), fs::read(nights.path("staff.key")).unwrap());
    nights.churn.turn(12);
    nights.published("n2", &[]);
    let second = fs::read(nights.path("staff")).unwrap();
    for content in [&first[..], &second[..second.len() - 1], b"", &[second.clone(), vec![0]].concat()] {
        fs::write(nights.path("staff"), content).unwrap();
        nights.refused(&[], 3, "republish-state-lost");
    }
    fs::write(nights.path("staff"), &second).unwrap();
    fs::rename(nights.path("staff.key"), nights.path("moved")).unwrap();
    nights.refused(&[], 3, "republish-state-lost");
    fs::write(nights.path("staff.key"), &key).unwrap();
    nights.refused(&[], 4, "others");
    fs::rename(nights.path("moved"), nights.path("staff.key")).unwrap();
    fs::set_permissions(nights.path("staff"), fs::Permissions::from_mode(0o644)).unwrap();
    nights.refused(&[], 4, "others");
    fs::set_permissions(nights.path("staff"), fs::Permissions::from_mode(0o600)).unwrap();
    nights.published("n3", &[]);
}

#[test]
fn other_key_columns_do_not_publish_known_people() {
    let nights = Nights::new();
    nights.published("n1", &["--begin"]);
    let fixed = ["--out", "refused", "--population", "staff", "--person", "no"];
    let output = nights.command("publish", &fixed);
    // a key is never published, and `no` is published here
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    let mut other = document(3, json!({"min_newcomers": 6}));
    other["attributes"] = json!({"pid": {"drop": true}, "no": {"drop": true},
        "age": {"publish": true, "identifier": false}});
    nights.specify(&other);
    let output = nights.command("publish", &fixed);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains("other columns"), "{}", stderr(&output));
}

#[test]
fn a_population_needs_a_specification_that_republishes() {
    let nights = Nights::new();
    let alone = nights.command("publish", &["--out", "refused"]);
    assert_eq!(code(&alone), 3);
    assert!(stderr(&alone).contains("republish-needs-record-key"), "{}", stderr(&alone));
    let mut once = document(3, json!({}));
    once.as_object_mut().unwrap().remove("republish");
    nights.specify(&once);
    nights.refused(&["--begin"], 2, "no member republish");
}

#[test]
fn a_plan_says_what_the_night_costs() {
    let mut nights = Nights::new();
    nights.published("n1", &["--begin"]);
    nights.churn.turn(24);
    let state = fs::read(nights.path("staff")).unwrap();
    let output = nights.command("plan", &["--population", "staff", "--person", "pid"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(fs::read(nights.path("staff")).unwrap(), state);
    let night = &plan["night"];
    let published = nights.published("n2", &[]);
    assert_eq!((&night["night"], &night["newcomers"]), (&json!(2), &json!(24)));
    assert_eq!(night["counterfeits"], published["method_details"]["counterfeits"]);
    assert_eq!(night["rows"], published["method_details"]["rows"]);
    assert!(night["because"].as_str().unwrap().contains("lack members"), "{night}");
}

/// The engine and the command line publish one and the same population.
#[test]
fn equal_tables_cost_equally_many_counterfeits() {
    let mut nights = Nights::new();
    let mut population = Population::default();
    let specification = document(3, json!({"min_newcomers": 6, "merge": "never"}));
    nights.specify(&specification);
    for night in 1..=3 {
        // under one key both draw the same buckets, of which all members may leave
        let key = format!("{night:02x}").repeat(32);
        let begun: &[&str] = if night == 1 { &["--begin"] } else { &[] };
        let of_file = nights.published(&format!("n{night}"), &[&["--reproduce", &key], begun].concat());
        let table = csv(&nights.churn.table());
        let of_engine = population.publish(&table, &specification, night).unwrap().manifest;
        let details = serde_json::to_value(of_engine.method_details).unwrap();
        assert_eq!(of_file["method_details"]["counterfeits"], details["counterfeits"]);
        nights.churn.turn(12);
    }
}
