//! What `guardian init` says of columns, and what it does for programs.

use std::fs;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::first_specification::{Folder, draw, placed, read_json};
use crate::support::harness::{guardian, run};

#[test]
fn a_suggestion_is_one_document_with_json() {
    let rows: String = (0..60).map(|row| format!("{},d{}\n", 20 + row % 7, row % 5)).collect();
    let folder = Folder::new(&format!("age,disease\n{rows}"));
    let asked = run(guardian().arg("--json").arg("init").arg(folder.path("T.csv")));
    assert_eq!(asked.status.code(), Some(2), "no question is answered unasked");
    let output = run(guardian().arg("--json").arg("init").arg(folder.path("T.csv")).arg("--yes"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["specification"], read_json(&folder.path("T.spec.json")));
    assert_eq!(said["columns"][1]["role"], "sensitive", "{said:#}");
    assert_eq!(said["written_to"], folder.path("T.spec.json").display().to_string());
}

#[test]
fn reasons_say_what_a_column_is_of() {
    let rows: String = (0..200)
        .map(|row| {
            let (day, month) = (10 + row % 15, 1 + row % 6);
            format!("{},{},{},{day}.{month:02}.2024\n", 20 + row % 40, draw(row, 1, 9), draw(row, 2, 4))
        })
        .collect();
    let folder = Folder::new(&format!("Alter,Krankheitstage,payor_primary,Aufnahme\n{rows}"));
    let (specification, printed) = folder.initialized(&[]);
    for (column, reason) in [
        ("Krankheitstage", "named like days of absence or illness"),
        ("payor_primary", "named like an insurance, or who pays"),
        ("Aufnahme", "its values are read as texts: write them like 2024-12-31"),
    ] {
        let line = printed.lines().find(|line| line.starts_with(column)).unwrap();
        assert!(line.contains(reason), "{line}");
    }
    // several rules, and what their tables hold stays related
    assert_eq!(specification["method"]["algorithm"], "auto", "{specification:#}");
    let warnings = folder.published(&printed)["warnings"].clone();
    let is_unrelated = |warning: &Value| warning["type"] == "attributes-unrelated";
    assert!(!warnings.as_array().unwrap().iter().any(is_unrelated), "{warnings:#}");
}

#[test]
fn persons_with_several_rows_are_warned_of() {
    let rows: String = (0..300)
        .map(|row| {
            format!("p{},{},{},{:02}.{:02}.2024\n", row / 2, 20 + row % 40, draw(row, 1, 9), 1 + row % 28, 1 + row % 12)
        })
        .collect();
    let folder = Folder::new(&format!("patient,age,diagnosis,admitted\n{rows}"));
    let (_, printed) = folder.initialized(&[]);
    assert!(printed.contains("--subject patient --keep 1\n"), "{printed}");
    let document = serde_json::json!({"unlisted": "drop", "attributes": {"admitted": {"publish": true}}, "method": {
        "type": "versatile", "rules": ["age -> diagnosis"], "default_guarantee": {"type": "l_diversity", "l": 2}}});
    fs::write(folder.path("S.json"), document.to_string()).unwrap();
    let called = |command: &str, more: &[&str]| {
        let mut called = guardian();
        called.arg(command).args([folder.path("T.csv"), folder.path("S.json")]).args(more);
        if command == "publish" {
            called.arg("--out").arg(folder.path(&format!("out{}", more.len())));
        }
        let output = run(&mut called);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap()).concat()
    };
    for command in ["plan", "publish"] {
        let said = called(command, &[]);
        assert!(said.contains("patient seems to identify persons, who have up to 2 rows"), "{command}: {said}");
        assert!(said.contains("notation-not-read"), "{command}: {said}");
        let declared = called(command, &["--subject", "patient", "--max-rows-per-subject", "2"]);
        assert!(!declared.contains("subject-undeclared"), "{command}: {declared}");
    }
}

#[test]
fn a_table_of_one_row_is_refused_for_that_reason() {
    let folder = Folder::new("age,diagnosis\n34,flu\n");
    let output = folder.init(&["--yes"]);
    assert_eq!(output.status.code(), Some(3));
    let refused = String::from_utf8_lossy(&output.stderr);
    assert!(refused.contains("a table of one row cannot be published"), "{refused}");
}

#[test]
fn a_table_of_identifiers_is_refused_with_a_role() {
    let rows: String = (0..50).map(|row| format!("{row},a{row}@b.org\n")).collect();
    let folder = Folder::new(&format!("id,email\n{rows}"));
    let output = folder.init(&["--yes"]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let problem: Value = serde_json::from_slice(&output.stderr).unwrap();
    let remedy = &problem["errors"][0]["remedies"][0];
    let role = remedy["patch"][0]["value"].as_object().unwrap();
    let (column, role) = role.iter().next().unwrap();
    assert_eq!(role, "quasi_identifier", "{remedy:#}");
    let (specification, _) = folder.initialized(&["--role", &format!("{column}=quasi_identifier")]);
    assert_eq!(placed(&specification, column), "known", "{specification:#}");
}

#[test]
fn hold_has_no_meaning_on_the_command_line() {
    let rows: String = (0..60).map(|row| format!("{},d{}\n", 20 + row % 7, row % 5)).collect();
    let folder = Folder::new(&format!("age,disease\n{rows}"));
    let (mut specification, printed) = folder.initialized(&[]);
    specification["hold"] = true.into();
    fs::write(folder.path("T.spec.json"), specification.to_string()).unwrap();
    let line = printed.lines().find_map(|line| line.strip_prefix("  guardian publish ")).unwrap();
    let output = run(guardian().arg("publish").args(line.split_whitespace()).current_dir(folder.path(".")));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("warning: not-held"), "{output:?}");
    // a report without an id says which release it is by the digest of the manifest
    let manifest = fs::read(folder.path("release/manifest.json")).unwrap();
    let digest: String = Sha256::digest(&manifest).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(read_json(&folder.path("release/report.json"))["manifest_sha256"], digest);
    let page = run(guardian().arg("report").arg(folder.path("release")).args(["--html", "-"])).stdout;
    assert!(String::from_utf8_lossy(&page).contains(&digest));
}
