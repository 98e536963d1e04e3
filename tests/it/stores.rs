//! Which store it is, and its ledger carried to another, from the command line.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::json;

use super::harness::{HOSPITAL, Process, guardian, hospital_method, run, stored};

fn said(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn complained(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A command on the store in a folder.
fn on(data: &Path, command: &[&str]) -> Output {
    run(guardian().args(command).arg("--data").arg(data))
}

/// The id of the store in a folder.
fn id_of(data: &Path) -> String {
    let migrated = said(&on(data, &["migrate"]));
    migrated.trim().rsplit(' ').next().unwrap().to_owned()
}

#[test]
fn a_command_can_be_told_which_store_to_expect() {
    let home = tempfile::tempdir().unwrap();
    let (one, other, none) = (home.path().join("one"), home.path().join("other"), home.path().join("none"));
    let (first, second) = (id_of(&one), id_of(&other));
    assert_ne!(first, second);
    assert_eq!(id_of(&one), first);
    assert!(on(&one, &["keys", "list", "--expect-store", &first]).status.success());
    for command in [&["keys", "list"][..], &["migrate"], &["serve", "--listen", "127.0.0.1:0"], &["ledger", "export"]] {
        let expecting = [command, &["--expect-store", &second]].concat();
        if command[0] == "ledger" {
            // without a key it does not come that far
            fs::write(one.join("master.key"), [7; 32]).unwrap();
            fs::set_permissions(one.join("master.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        }
        let complaint = complained(&on(&one, &expecting));
        assert!(complaint.contains(&first) && complaint.contains(&second), "{complaint}");
        if command[0] != "ledger" {
            assert!(complained(&on(&none, &expecting)).contains(&second));
            assert!(!none.exists(), "nothing was made");
        }
    }
    let by_environment = run(guardian().args(["migrate", "--data"]).arg(&one).env("GUARDIAN_EXPECT_STORE", &second));
    assert!(complained(&by_environment).contains(&first));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_is_carried_by_a_file() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (home.path().join("one"), home.path().join("other"));
    let mut process = Process::serve(&one, "info");
    let dataset = process.dataset(HOSPITAL).await;
    process.publish(&dataset, json!({"method": hospital_method()})).await;
    assert!(complained(&on(&one, &["ledger", "export"])).contains("another process"));
    assert!(process.terminate().success());
    drop(process);

    let file = said(&on(&one, &["ledger", "export"]));
    assert!(HOSPITAL.lines().skip(1).all(|line| !file.contains(line)), "no row");
    let (whole, cut) = (home.path().join("ledger.ndjson"), home.path().join("cut.ndjson"));
    fs::write(&whole, &file).unwrap();
    fs::write(&cut, &file[..file.len() - 100]).unwrap();
    fs::create_dir(&other).unwrap();
    fs::copy(one.join("master.key"), other.join("master.key")).unwrap();
    let import = |file: &Path| on(&other, &["ledger", "import", file.to_str().unwrap()]);
    assert!(complained(&import(&cut)).contains("cut"));
    assert!(said(&import(&whole)).starts_with("entered 1 releases"));
    assert!(said(&import(&whole)).starts_with("entered 0 releases"));
    let count =
        async |table: &'static str| (stored(&one, table).await, stored(&other, &format!("imported_{table}")).await);
    for table in ["releases", "disclosures"] {
        let (there, here) = count(table).await;
        assert!(there > 0 && there == here, "{table}");
    }
}
