//! What the command line prints: text on terminals, JSON elsewhere; plans, reports, help.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::harness::{HOSPITAL, Server, guardian, hospital_method, run, text};

/// A folder with a table and a specification.
struct Folder(TempDir);

impl Folder {
    fn new(csv: &str, specification: &Value) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.path("T.csv"), csv).unwrap();
        fs::write(folder.path("S.json"), specification.to_string()).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        run(guardian().args(arguments).current_dir(self.0.path()))
    }

    /// The exit code and what is shown by a command on a terminal.
    fn on_terminal(&self, arguments: &str, environment: &[(&str, &str)]) -> (i32, String) {
        let command = format!("{} {arguments}", guardian().get_program().to_str().unwrap());
        let mut terminal = Command::new("script");
        terminal.args(["-qec", &command, "/dev/null"]).current_dir(self.0.path()).stdin(Stdio::null());
        terminal.env("TERM", "xterm").env_remove("NO_COLOR").envs(environment.iter().copied());
        let output = run(&mut terminal);
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap().replace('\r', ""))
    }
}

/// The hospital with a misspelled rule.
fn misspelled() -> Value {
    let mut specification = json!({"method": hospital_method()});
    specification["method"]["rules"] = json!(["age, icd9 -> rase", "hospital -> zipcode", "gender -> icd9"]);
    specification
}

const ESCAPE: char = '\u{1b}';

#[test]
fn refusals_are_text_on_a_terminal_and_json_elsewhere() {
    let folder = Folder::new(HOSPITAL, &misspelled());
    let publish = "publish T.csv S.json --out out";
    let plain: Vec<&str> = publish.split(' ').collect();
    let elsewhere = folder.run(&plain);
    let problem: Value = serde_json::from_slice(&elsewhere.stderr).unwrap();
    let faults = problem["errors"].as_array().unwrap();
    let fault = faults.iter().find(|fault| fault["pointer"] == "/method/rules/0").unwrap();
    let remedy = &fault["remedies"][0];
    assert!(remedy["title"].is_string(), "{problem:#}");

    let (code, shown) = folder.on_terminal(publish, &[("NO_COLOR", "1")]);
    let (coloured_code, coloured) = folder.on_terminal(publish, &[]);
    assert_eq!((elsewhere.status.code(), code, coloured_code), (Some(3), 3, 3));
    assert!(coloured.contains("\u{1b}[1m/method/rules/0"), "{coloured}");
    let result = shown.split("refused:").nth(1).unwrap();
    assert!(!result.contains(ESCAPE) && !result.contains('{'), "{shown}");
    let words = result.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = [
        text(&problem["title"]),
        text(&fault["pointer"]),
        text(&fault["detail"]),
        "nearest: race".to_owned(),
        format!("remedy: {}", text(&remedy["title"])),
        format!("set {} to", text(&remedy["patch"][0]["path"])),
    ];
    for expected in expected {
        assert!(words.contains(&expected), "{expected} is not in {words}");
    }
    let (code, shown) = folder.on_terminal(&format!("{publish} --json"), &[]);
    let shown: Value = serde_json::from_str(&shown[shown.find('{').unwrap()..]).unwrap();
    assert_eq!((code, &shown["errors"]), (3, &problem["errors"]));

    // a name in a document does not steer the terminal
    let mut hostile = misspelled();
    hostile["method"]["rules"][0] = json!({"quasi_identifiers": ["age"], "sensitive": ["rase\u{1b}[2J"]});
    fs::write(folder.path("S.json"), hostile.to_string()).unwrap();
    let (code, shown) = folder.on_terminal(publish, &[]);
    assert!(code == 3 && shown.contains("[2J") && !shown.contains("\u{1b}[2J"), "{shown:?}");

    // a refusal without faults says what to do
    fs::write(folder.path("T.csv"), "age,race\n").unwrap();
    let (code, shown) = folder.on_terminal(publish, &[]);
    assert!(code == 3 && shown.contains("the table has no rows") && shown.contains("to do:"), "{shown}");
}

/// The members of a plan that follow from table and document; a service adds what its ledger says.
fn designed(plan: &Value) -> Vec<Value> {
    ["feasible", "rules", "tables", "dependencies", "proxies", "exposed_to", "exposures", "method_details"]
        .map(|member| plan[member].clone())
        .into()
}

#[tokio::test(flavor = "multi_thread")]
async fn local_plans_equal_those_of_a_service() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let mut strict = json!({"method": hospital_method()});
    strict["method"]["default_guarantee"]["l"] = 4.into();
    let mut proposed = json!({"method": hospital_method()});
    proposed["schema"] = json!([{"attributes": ["hospital", "gender", "zipcode"], "sensitive": ["zipcode"]},
        {"attributes": ["age", "icd9"]}]);
    for specification in [json!({"method": hospital_method()}), strict, proposed, misspelled()] {
        let folder = Folder::new(HOSPITAL, &specification);
        let output = folder.run(&["plan", "T.csv", "S.json"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let local: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut document = specification.clone();
        document["dataset"] = dataset.clone().into();
        let served = server.post("/v1/plans", &document).await.ok(200);
        assert_eq!(designed(&local), designed(&served), "{local:#}{served:#}");
        let faults = |plan: &Value| -> Vec<(Value, Value)> {
            let problems = plan["problems"].as_array().unwrap().iter();
            let faults = problems.flat_map(|problem| problem["errors"].as_array().unwrap());
            faults.map(|fault| (fault["pointer"].clone(), fault["type"].clone())).collect()
        };
        assert_eq!(faults(&local), faults(&served));
    }
    server.stop().await;
}

#[test]
fn a_publication_does_what_its_plan_says() {
    let method = json!({"type": "versatile", "rules": ["age -> disease", "ward -> disease"],
        "default_guarantee": {"type": "l_diversity", "l": 2}});
    let rows: String = (0..40).map(|i| format!("{},w{},n{},d{}\n", i % 7, i % 3, i * 6 / 10, i % 4)).collect();
    let specification = json!({"attributes": {"note": {"publish": true}}, "method": method});
    for (csv, specification) in [
        (HOSPITAL.to_owned(), json!({"method": hospital_method()})),
        (format!("age,ward,note,disease\n{rows}"), specification),
    ] {
        let folder = Folder::new(&csv, &specification);
        let plan: Value = serde_json::from_slice(&folder.run(&["plan", "T.csv", "S.json"]).stdout).unwrap();
        let output = folder.run(&["publish", "T.csv", "S.json", "--out", "out", "--json"]);
        let line = String::from_utf8(output.stdout).unwrap();
        assert_eq!((output.status.code(), line.lines().count()), (Some(0), 1), "{line}");
        let summary: Value = serde_json::from_str(&line).unwrap();
        let manifest: Value = serde_json::from_slice(&fs::read(folder.path("out/manifest.json")).unwrap()).unwrap();
        assert_eq!((&summary["verified"], &summary["release"]), (&json!(true), &json!("out")));
        let members = |of: &Value, list: &str, names: &[&str]| -> Vec<Vec<Value>> {
            let items = of[list].as_array().unwrap().iter();
            items.map(|item| names.iter().map(|name| item[*name].clone()).collect()).collect()
        };
        let names = ["pointer", "quasi_identifiers", "sensitive", "guarantee", "enforced_by"];
        assert_eq!(members(&plan, "rules", &names), members(&manifest, "rules", &names));
        let names = ["name", "kind", "protection", "attributes"];
        assert_eq!(members(&plan, "tables", &names), members(&manifest, "tables", &names));
        for warning in plan["warnings"].as_array().unwrap() {
            assert!(summary["warnings"].as_array().unwrap().contains(warning), "{warning} is not in {summary:#}");
        }
    }
}

#[test]
fn a_terminal_shows_plan_and_release() {
    let folder = Folder::new(HOSPITAL, &json!({"method": hospital_method()}));
    let (code, shown) = folder.on_terminal("plan T.csv S.json", &[("NO_COLOR", "1")]);
    assert_eq!(code, 0, "{shown}");
    for words in ["feasible: it would be published", "memory: about", "tables\n", "rules\n", "exposures\n", "t1 ("] {
        assert!(shown.contains(words), "{words} is not in {shown}");
    }
    let (code, shown) = folder.on_terminal("publish T.csv S.json --out release", &[("NO_COLOR", "1")]);
    assert_eq!(code, 0, "{shown}");
    for words in [
        "published and verified: release",
        "worst posterior 1/2, bound 1/2",
        "not promised\n",
        "exposure\n",
        "guardian report release --html report.html",
    ] {
        assert!(shown.contains(words), "{words} is not in {shown}");
    }
    let mut strict = json!({"method": hospital_method()});
    strict["method"]["default_guarantee"]["l"] = 4.into();
    let folder = Folder::new(HOSPITAL, &strict);
    let (code, shown) = folder.on_terminal("plan T.csv S.json", &[("NO_COLOR", "1")]);
    assert!(code == 0 && shown.contains("infeasible") && shown.contains("/method/rules/0  rule-ineligible"), "{shown}");
}

#[test]
fn the_report_of_a_folder_is_html_or_json() {
    let folder = Folder::new(HOSPITAL, &json!({"method": hospital_method()}));
    assert_eq!(folder.run(&["publish", "T.csv", "S.json", "--out", "out"]).status.code(), Some(0));
    let printed: Value = serde_json::from_slice(&folder.run(&["report", "out"]).stdout).unwrap();
    let written: Value = serde_json::from_slice(&fs::read(folder.path("out/report.json")).unwrap()).unwrap();
    assert_eq!(printed, written);
    let page = folder.run(&["report", "out", "--html", "-"]).stdout;
    assert_eq!(folder.run(&["report", "out", "--html"]).stdout, page);
    assert!(page.starts_with(b"<!doctype html>") || page.starts_with(b"<!DOCTYPE html>"));
    assert_eq!(folder.run(&["report", "out", "--html", "page.html"]).status.code(), Some(0));
    assert_eq!(fs::read(folder.path("page.html")).unwrap(), page);
    assert_eq!(folder.run(&["report", "nowhere"]).status.code(), Some(4));
}

/// A reader that ends early is no fault, and changes no verdict.
#[test]
fn closed_pipes_are_quiet() {
    let folder = Folder::new(HOSPITAL, &json!({"method": hospital_method()}));
    let mut command = guardian();
    let mut child = command.arg("openapi").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut line).unwrap();
    drop(reader);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stderr[..], line.as_str()), (Some(0), &b""[..], "{\n"));

    let two = "{\"type\":\"l_diversity\",\"l\":2}";
    let mut command = guardian();
    command.args(["verify", "T.csv", "--rules", "gender -> race", "--guarantee", two]).current_dir(folder.0.path());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(1), &b""[..]));
}

#[test]
fn help_is_short_or_long_and_for_shells_and_man() {
    let folder = Folder::new(HOSPITAL, &json!({}));
    let said = |arguments: &[&str]| String::from_utf8(folder.run(arguments).stdout).unwrap();
    for command in ["publish", "verify", "plan", "serve", "report"] {
        let (short, long) = (said(&[command, "-h"]), said(&[command, "--help"]));
        assert!(!short.contains("Example:") && long.contains(&format!("Example:\n  guardian {command} ")), "{long}");
    }
    for (shell, word) in [("bash", "complete "), ("zsh", "#compdef guardian"), ("fish", "complete -c guardian")] {
        let script = said(&["completions", shell]);
        assert!(script.contains(word) && script.contains("publish"), "{shell}");
    }
    assert_eq!(folder.run(&["man", "pages"]).status.code(), Some(0));
    let page = fs::read_to_string(folder.path("pages/guardian-publish.1")).unwrap();
    assert!(page.contains("Example:") && page.contains("guardian publish patients.csv"), "{page}");
    assert!(folder.path("pages/guardian.1").exists() && folder.path("pages/guardian-keys-create.1").exists());
}

#[test]
fn the_demo_keeps_to_itself() {
    let folder = Folder::new(HOSPITAL, &json!({}));
    let mut command = guardian();
    command.args(["demo", "--exit", "--listen", "127.0.0.1:0"]).env("GUARDIAN_DATA", "of-a-service");
    let temporary = folder.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let output = run(command.current_dir(folder.0.path()).env("TMPDIR", &temporary));
    let (said, log) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!((output.status.code(), log.as_str()), (Some(0), ""));
    let mut names: Vec<String> =
        fs::read_dir(folder.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["S.json", "T.csv", "tmp"]);
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "the store is gone");
    assert_eq!(said.matches("/report?format=html").count(), 2, "{said}");

    // a folder that is named is kept, also one of the usual name
    let mut command = guardian();
    command.args(["demo", "--exit", "--listen", "127.0.0.1:0", "--data", "guardian-data"]);
    let output = run(command.current_dir(folder.0.path()).env("GUARDIAN_DATA", "of-a-service"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::read_dir(folder.path("guardian-data")).unwrap().count() > 0);
    assert!(!folder.path("of-a-service").exists());
    let next: Vec<&str> = said.lines().skip_while(|line| *line != "next:").collect();
    assert!((1..=3).all(|step| next[step].starts_with(&format!("  {step}. "))), "{next:?}");
}
