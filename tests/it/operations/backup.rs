//! Copies of the embedded store: taken while it is served, and restored after it is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::harness::{HOSPITAL, Process, guardian, hospital_method, run, text, versatile};

fn back_up(data: &Path, file: &Path) -> Output {
    run(guardian().arg("backup").arg("--data").arg(data).arg(file))
}

/// Makes a folder of a copy and of the master key of the lost store.
fn restore(file: &Path, key: &Path, data: &Path) {
    fs::create_dir(data).unwrap();
    fs::copy(file, data.join("guardian.db")).unwrap();
    fs::copy(key, data.join("master.key")).unwrap();
    fs::set_permissions(data.join("master.key"), fs::Permissions::from_mode(0o600)).unwrap();
}

async fn publish(process: &Process, document: &Value) -> Value {
    let job = process.post("/v1/jobs?wait=60", document).await.ok(200);
    assert_eq!(job["status"], "succeeded", "{job:#}");
    job["release"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_served_store_is_restored_whole() {
    let home = tempfile::tempdir().unwrap();
    let (data, file) = (home.path().join("data"), home.path().join("copy.db"));
    let process = Process::serve(&data, "warn");
    let dataset = process.dataset(HOSPITAL.to_owned()).await;
    let document = json!({"dataset": dataset, "method": hospital_method()});
    let release = publish(&process, &document).await;

    // others write all the time
    let is_done = AtomicBool::new(false);
    let writes = async {
        let mut number = 0;
        while !is_done.load(Ordering::Relaxed) {
            number += 1;
            process.dataset(HOSPITAL.replace("71000", &format!("{number}"))).await;
        }
        number
    };
    let copies = async {
        let task = tokio::task::spawn_blocking({
            let (data, file) = (data.clone(), file.clone());
            move || {
                for number in 0..8 {
                    assert!(back_up(&data, &file.with_extension(format!("{number}"))).status.success());
                }
                back_up(&data, &file)
            }
        });
        let output = task.await;
        is_done.store(true, Ordering::Relaxed);
        output.unwrap()
    };
    let (written, output) = tokio::join!(writes, copies);
    assert!(written > 1 && output.status.success(), "{written} {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    process.kill();

    let restored = home.path().join("restored");
    restore(&file, &data.join("master.key"), &restored);
    let process = Process::serve(&restored, "warn");
    let manifest = process.get(&format!("/v1/releases/{}", text(&release))).await.ok(200);
    for table in manifest["tables"].as_array().unwrap() {
        for part in table["parts"].as_array().unwrap() {
            let csv = process.part(&manifest, &text(&table["name"]), &text(&part["name"])).await;
            assert_eq!(crate::methods::manifest_figures::sha256(csv.as_bytes()), text(&part["sha256"]));
        }
    }
    // the ledger counts on: an equal job has the release, one that would undo it is refused, and new tables are published
    assert_eq!(publish(&process, &document).await, release);
    let other = json!({"dataset": dataset, "method": versatile(&["hospital, gender -> race"])});
    let job = process.post("/v1/jobs?wait=60", &other).await.json();
    assert_ne!(job["status"], "succeeded", "{job:#}");
}

/// A copy has forgotten what was published after it; the ledger that was exported since brings it back.
#[tokio::test(flavor = "multi_thread")]
async fn a_later_ledger_completes_an_earlier_copy() {
    let home = tempfile::tempdir().unwrap();
    let (data, file, ledger) =
        (home.path().join("data"), home.path().join("copy.db"), home.path().join("ledger.ndjson"));
    let process = Process::serve(&data, "warn");
    let dataset = process.dataset(HOSPITAL.to_owned()).await;
    assert!(back_up(&data, &file).status.success());
    let document = json!({"dataset": dataset, "method": hospital_method()});
    publish(&process, &document).await;
    process.kill();
    let exported = run(guardian().args(["ledger", "export", "--data"]).arg(&data));
    fs::write(&ledger, &exported.stdout).unwrap();

    for (name, is_imported) in [("forgetful", false), ("complete", true)] {
        let restored = home.path().join(name);
        restore(&file, &data.join("master.key"), &restored);
        if is_imported {
            let imported = run(guardian().args(["ledger", "import", "--data"]).arg(&restored).arg(&ledger));
            assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
        }
        let process = Process::serve(&restored, "warn");
        let job = process.post("/v1/jobs?wait=60", &document).await.json();
        assert_eq!(job["status"] == "succeeded", !is_imported, "{job:#}");
        assert_eq!(job.to_string().contains("problems/gone"), is_imported, "{job:#}");
    }
}

#[test]
fn what_cannot_be_copied_leaves_no_file() {
    let home = tempfile::tempdir().unwrap();
    let (data, file) = (home.path().join("data"), home.path().join("copy.db"));
    let refused = |output: &Output, reason: &str| {
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(reason), "{message}");
    };
    refused(&back_up(&data, &file), "holds no store");
    assert!(!file.exists() && !data.exists());
    let postgres = run(guardian().args(["backup", "--store", "postgres://me@db/guardian"]).arg(&file));
    refused(&postgres, "pg_dump");
    let migrated = run(guardian().arg("migrate").arg("--data").arg(&data));
    assert!(migrated.status.success());
    fs::write(&file, "mine").unwrap();
    refused(&back_up(&data, &file), "exists");
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    let database = data.join("guardian.db");
    let mut bytes = fs::read(&database).unwrap();
    let half = bytes.len() / 2;
    bytes.truncate(half);
    bytes[200..].fill(7);
    fs::write(&database, bytes).unwrap();
    let other = home.path().join("other.db");
    assert!(!back_up(&data, &other).status.success());
    assert!(!other.exists());
}
