//! Nights of the command line that are killed, that race, and what a reader learns of the nights that are there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::folder::{code, read_json, stderr, stdout};
use crate::support::harness::{guardian, run};
use crate::support::nights::{Churn, Night, Person, adult, csv, document};

/// A folder in which a population is published.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::write(home.path("S.json"), document(3, json!({"min_newcomers": 6})).to_string()).unwrap();
        home
    }

    /// A copy, with the tables and releases.
    fn copied(&self) -> Self {
        let copy = Self(tempfile::tempdir().unwrap());
        let done = Command::new("cp").arg("-a").arg(self.path(".")).arg(copy.path(".")).status().unwrap();
        assert!(done.success());
        copy
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn table(&self, name: &str, night: &Night) {
        fs::write(self.path(name), csv(night)).unwrap();
    }

    /// Publishes the table `Tn` into the folder `n`.
    fn command(&self, night: &str, more: &[&str]) -> Command {
        let mut command = guardian();
        command.arg("publish").arg(format!("T{night}")).arg("S.json").args(["--out", night]);
        command.args(["--population", "staff", "--person", "pid"]).args(more);
        command.current_dir(self.0.path());
        command
    }

    #[track_caller]
    fn published(&self, night: &str, more: &[&str]) -> Value {
        let output = run(&mut self.command(night, more));
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        self.manifest(night)
    }

    fn manifest(&self, night: &str) -> Value {
        read_json(&self.path(night).join("manifest.json"))
    }

    fn spawned(&self, night: &str, more: &[&str]) -> Child {
        self.command(night, more).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// What the releases of these nights show together, linked by their tables.
    fn nights(&self, nights: &[&str]) -> Output {
        let mut command = guardian();
        command.args(["nights", "--person", "pid"]).current_dir(self.0.path());
        run(command.args(nights.iter().map(|night| format!("{night}=T{night}"))))
    }

    fn state(&self) -> Option<Vec<u8>> {
        fs::read(self.path("staff")).ok()
    }
}

/// When a process is killed.
#[derive(Clone, Copy, Debug)]
enum Instant {
    /// This long after its begin.
    After(Duration),
    /// As soon as a file next to the state exists whose name begins so.
    Appears(&'static str),
    /// As soon as the state is another one.
    StateMoves,
    /// As soon as a file of the unfinished release exists.
    Draft(&'static str),
}

impl Instant {
    fn has_come(self, home: &Home, before: Option<&Vec<u8>>) -> bool {
        let names = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        match self {
            Self::After(time) => {
                std::thread::sleep(time);
                true
            }
            Self::Appears(begin) => names(home.0.path())
                .iter()
                .any(|name| name.starts_with(begin) && name != "staff" && name != "staff.key"),
            Self::StateMoves => home.state().as_ref() != before,
            Self::Draft(file) => {
                let drafts = names(home.0.path()).into_iter().filter(|name| name.starts_with(".n"));
                drafts.into_iter().any(|draft| home.path(&draft).join(file).exists())
            }
        }
    }
}

const INSTANTS: [Instant; 9] = [
    Instant::After(Duration::from_millis(3)),
    Instant::Draft("t1.qi.csv"),
    Instant::Draft("t1.sa.csv"),
    Instant::Draft("manifest.json"),
    Instant::Draft("specification.json"),
    Instant::Appears("staff."),
    Instant::StateMoves,
    Instant::StateMoves,
    Instant::StateMoves,
];

/// Kills the run that publishes a night at an instant, unless it ends before.
fn killed(home: &Home, night: &str, more: &[&str], instant: Instant) {
    let before = home.state();
    let mut child = home.spawned(night, more);
    while child.try_wait().unwrap().is_none() {
        if instant.has_come(home, before.as_ref()) {
            child.kill().unwrap();
        }
    }
}

#[test]
fn a_killed_night_is_published_or_never_was() {
    let prepared = Home::new();
    let mut churn = Churn::new(adult(), 240, 7);
    prepared.table("Tn1", &churn.table());
    prepared.published("n1", &["--begin"]);
    for night in ["Tn2", "Tn3"] {
        churn.turn(12);
        prepared.table(night, &churn.table());
    }
    let recovered = INSTANTS.into_iter().filter(|instant| is_recovered(&prepared, *instant)).count();
    // the time between the state and the folder is short, and a busy machine looks too late
    let again = (0..20).any(|_| recovered > 0 || is_recovered(&prepared, Instant::StateMoves));
    assert!(again, "no run was killed between the state and the folder");
}

/// Kills the second night at an instant, and publishes the third; whether that had to put the second one in its folder.
fn is_recovered(prepared: &Home, instant: Instant) -> bool {
    let home = prepared.copied();
    let before = home.state();
    killed(&home, "n2", &[], instant);
    let (is_made, is_there) = (home.state() != before, home.path("n2").exists());
    assert!(is_made || !is_there, "{instant:?}: a night is shown that the state does not know");
    let output = run(&mut home.command("n3", &[]));
    assert_eq!(code(&output), 0, "{instant:?}: {}", stderr(&output));
    let night = home.manifest("n3")["method_details"]["night"].clone();
    let nights = if is_made { &["n1", "n2", "n3"][..] } else { &["n1", "n3"] };
    assert_eq!(night, json!(nights.len()), "{instant:?}");
    assert_eq!(home.path("n2").exists(), is_made, "{instant:?}");
    let is_recovered = is_made && !is_there;
    if is_recovered {
        assert!(stderr(&output).contains("night 2, which an interrupted run had made"), "{}", stderr(&output));
    }
    let shown = home.nights(nights);
    assert_eq!(code(&shown), 0, "{instant:?}: {}", stdout(&shown));
    assert!(stdout(&shown).contains("of 0 a value"), "{}", stdout(&shown));
    is_recovered
}

#[test]
fn a_retry_of_a_killed_night_names_the_folder() {
    let home = Home::new();
    let mut churn = Churn::new(adult(), 240, 7);
    home.table("Tn1", &churn.table());
    home.published("n1", &["--begin"]);
    churn.turn(12);
    home.table("Tn2", &churn.table());
    home.published("n2", &[]);
    // as after a kill between the state and the folder
    fs::rename(home.path("n2"), home.path(".n2.019a0000-0000-7000-8000-000000000000")).unwrap();
    let retried = run(&mut home.command("n2", &[]));
    assert_eq!(code(&retried), 4, "{}", stderr(&retried));
    assert!(stderr(&retried).contains("night 2") && stderr(&retried).contains("name another folder"));
    assert_eq!(home.manifest("n2")["method_details"]["night"], 2);
    let shown = home.nights(&["n1", "n2"]);
    assert_eq!(code(&shown), 0, "{}", stdout(&shown));
}

#[test]
fn a_killed_first_night_begins_or_goes_on() {
    let prepared = Home::new();
    let churn = Churn::new(adult(), 120, 7);
    prepared.table("Tn1", &churn.table());
    prepared.table("Tn2", &churn.table());
    for instant in [Instant::Draft("manifest.json"), Instant::Appears("staff."), Instant::StateMoves] {
        let home = prepared.copied();
        killed(&home, "n1", &["--begin"], instant);
        if home.state().is_none() {
            assert!(!home.path("n1").exists());
            assert_eq!(home.published("n1", &["--begin"])["method_details"]["night"], 1);
            continue;
        }
        // the refusal says what to do
        let again = run(&mut home.command("n2", &["--begin"]));
        assert_eq!(code(&again), 2, "{}", stderr(&again));
        assert!(stderr(&again).contains("leave --begin out"), "{}", stderr(&again));
        assert_eq!(home.published("n2", &[])["method_details"]["night"], 2);
        assert_eq!(home.manifest("n1")["method_details"]["night"], 1);
    }
}

#[test]
fn two_runs_at_once_lose_no_night() {
    let home = Home::new();
    let mut churn = Churn::new(adult(), 240, 7);
    home.table("Tn1", &churn.table());
    home.published("n1", &["--begin"]);
    for night in ["Tn2", "Tn3", "Tn4"] {
        churn.turn(12);
        home.table(night, &churn.table());
    }
    // another process works with the state
    let keys = fs::OpenOptions::new().read(true).write(true).open(home.path("staff.key")).unwrap();
    keys.try_lock().unwrap();
    let refused = run(&mut home.command("n2", &[]));
    assert_eq!((code(&refused), home.path("n2").exists()), (4, false));
    assert!(stderr(&refused).contains("in use by another process"), "{}", stderr(&refused));
    drop(keys);

    let mut runs = ["n2", "n3"].map(|night| (night, home.spawned(night, &[])));
    let mut nights = vec!["n1"];
    for (night, child) in &mut runs {
        match child.wait().unwrap().code() {
            Some(0) => nights.push(night),
            other => assert_eq!((other, home.path(night).exists()), (Some(4), false)),
        }
    }
    assert!(nights.len() > 1, "one of both has the state");
    home.published("n4", &[]);
    nights.push("n4");
    nights.sort_by_key(|night| home.manifest(night)["method_details"]["night"].as_u64());
    let numbers: Vec<Value> =
        nights.iter().map(|night| home.manifest(night)["method_details"]["night"].clone()).collect();
    assert_eq!(numbers, (1..=nights.len()).map(|number| json!(number)).collect::<Vec<_>>());
    let shown = home.nights(&nights);
    assert_eq!(code(&shown), 0, "{}", stdout(&shown));
}

/// Without the tables, nights are linked by cells, and what looks like an alarm may be two persons.
#[test]
fn an_alarm_among_cells_names_what_would_decide() {
    let person = |age: &str, value: &str| Person { age: age.to_owned(), value: value.to_owned() };
    let home = Home::new();
    let specification = json!({
        "attributes": {"pid": {"drop": true}, "no": {"drop": true}, "age": {"publish": true, "identifier": false}},
        "republish": {"min_newcomers": 3, "merge": "never"},
        "method": {"type": "anatomy", "sensitive": "occupation", "guarantee": {"type": "l_diversity", "l": 3}},
    });
    fs::write(home.path("S.json"), specification.to_string()).unwrap();
    let first: Night = (0..).zip([person("20", "a"), person("30", "b"), person("40", "c")]).collect();
    // all leave, and others come: one looks like the one of 20 who left
    let second: Night = (5..).zip([person("20", "a"), person("50", "y"), person("60", "z")]).collect();
    home.table("Tn1", &first);
    home.table("Tn2", &second);
    home.published("n1", &["--begin"]);
    home.published("n2", &[]);
    let mut by_cells = guardian();
    by_cells.args(["nights", "n1", "n2"]).current_dir(home.0.path());
    let shown = run(&mut by_cells);
    assert_eq!(code(&shown), 1, "{}", stderr(&shown));
    let text = stdout(&shown);
    let expected = "2 nights, 5 persons linked by cells: of 1 a value has more than 1/3 of what is left; the largest share is \
                    1/1\nnight 2: a person has two signatures that share a value\n";
    assert!(text.starts_with(expected), "{text}");
    let last = text.lines().last().unwrap();
    assert_eq!(last, "equal cells may be those of two persons: name the table of each night to link by keys");
    // the tables decide
    let shown = home.nights(&["n1", "n2"]);
    let expected = "2 nights, 6 persons linked by keys: of 0 a value has more than 1/3 of what is left; the largest share is \
                    1/3\n";
    assert_eq!((code(&shown), stdout(&shown).as_str()), (0, expected));
}

#[test]
fn nights_that_do_not_follow_are_named() {
    let home = Home::new();
    let mut churn = Churn::new(adult(), 240, 7);
    for (night, more) in [("n1", &["--begin"][..]), ("n2", &[]), ("n3", &[])] {
        home.table(&format!("T{night}"), &churn.table());
        home.published(night, more);
        churn.turn(12);
    }
    let shown = home.nights(&["n1", "n2", "n3"]);
    assert_eq!((code(&shown), stdout(&shown).lines().count()), (0, 1), "{}", stdout(&shown));
    // a night is missing
    let shown = home.nights(&["n1", "n3"]);
    assert_eq!(code(&shown), 0, "{}", stdout(&shown));
    assert!(stdout(&shown).contains("nights that are not among these: 1;"), "{}", stdout(&shown));
    let backwards = home.nights(&["n2", "n1"]);
    assert_eq!(code(&backwards), 3, "{}", stderr(&backwards));
    assert!(stderr(&backwards).contains("name the first night first"), "{}", stderr(&backwards));
    // the first night of another population, of the same table
    let other = home.copied();
    for file in ["staff", "staff.key"] {
        fs::remove_file(other.path(file)).unwrap();
    }
    fs::remove_dir_all(other.path("n1")).unwrap();
    other.published("n1", &["--begin"]);
    let shown = other.nights(&["n1", "n2"]);
    assert_eq!(code(&shown), 1, "{}", stdout(&shown));
    assert!(stdout(&shown).contains("night 2: the night goes on from another night"), "{}", stdout(&shown));
}
