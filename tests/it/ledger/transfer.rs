//! Which store it is, and its ledger carried to another, from the command line.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::json;

use super::data_subjects::{HEADER, patients};
use crate::support::harness::{HOSPITAL, Process, guardian, hospital_method, kind, run, stored, text, versatile};

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn complained(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A command on the store in a folder.
pub(crate) fn on(data: &Path, command: &[&str]) -> Output {
    run(guardian().args(command).arg("--data").arg(data))
}

/// The id of the store in a folder.
fn id_of(data: &Path) -> String {
    let migrated = said(&on(data, &["migrate"]));
    migrated.trim().rsplit(' ').next().unwrap().to_owned()
}

#[test]
fn command_rejects_an_unexpected_store() {
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
    assert!(said(&import(&whole)).starts_with("imported 1 releases"));
    assert!(said(&import(&whole)).starts_with("imported 0 releases"));
    let count =
        async |table: &'static str| (stored(&one, table).await, stored(&other, &format!("imported_{table}")).await);
    for table in ["releases", "disclosures"] {
        let (there, here) = count(table).await;
        assert!(there > 0 && there == here, "{table}");
    }
}

/// Recorded combinations, and attributes behind the same buckets, count in the importing ledger as in the exporting one.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_carries_seals_of_several_attributes() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (home.path().join("one"), home.path().join("other"));
    // no single value of the pair is rare enough; the illness determines the drug
    let row = |i: usize| {
        let (illness, pair) = ((i * 7 + i / 11) % 5, [(0, 0), (0, 1), (1, 0)][i % 3]);
        format!(
            "{},{},i{illness},d{},p{},r{}\n",
            i % 10,
            i % 7,
            (illness + usize::from(i.is_multiple_of(10))) % 5,
            pair.0,
            pair.1
        )
    };
    let csv = "age,ward,illness,drug,p,r\n".to_owned() + &(0..420).map(row).collect::<String>();
    let document = |rules: &[&str], algorithm: &str| {
        json!({"unlisted": "drop", "method": {"type": "versatile", "algorithm": algorithm, "rules": rules,
            "default_guarantee": {"type": "l_diversity", "l": if algorithm == "gd" { 2 } else { 3 }}}})
    };
    let show = |attributes: &[&str]| {
        let publish: serde_json::Map<_, _> =
            attributes.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
        json!({"unlisted": "drop", "attributes": publish, "no_rules_reason": "asked for", "method": {"type": "versatile", "rules": []}})
    };
    let mut process = Process::serve(&one, "info");
    let dataset = process.dataset(csv.as_str()).await;
    let tied = process.publish(&dataset, document(&["age -> illness", "age -> drug"], "gd")).await;
    assert_eq!(tied["tables"][0]["guards"].as_array().unwrap().len(), 2, "{tied:#}");
    let joint = process.publish(&dataset, document(&["ward -> (p & r)"], "uad")).await;
    assert_eq!(joint["tables"][0]["guards"][0]["joint"], true, "{joint:#}");
    assert!(process.terminate().success());
    drop(process);

    let file = home.path().join("ledger.ndjson");
    fs::write(&file, said(&on(&one, &["ledger", "export"]))).unwrap();
    fs::create_dir(&other).unwrap();
    fs::copy(one.join("master.key"), other.join("master.key")).unwrap();
    assert!(said(&on(&other, &["ledger", "import", file.to_str().unwrap()])).starts_with("imported 2 releases"));

    let mut process = Process::serve(&other, "info");
    let dataset = process.dataset(csv.as_str()).await;
    let refused = [
        (document(&["ward -> drug"], "uad"), &tied),
        (show(&["age", "drug"]), &tied),
        (document(&["age -> (p & r)"], "uad"), &joint),
        (show(&["age", "p"]), &joint),
    ];
    for (document, because) in refused {
        let problem = process.refused(&dataset, document.clone()).await;
        assert_eq!((kind(&problem), &problem["release"]), ("composition-violated", &because["id"]), "{document}");
    }
    process.publish(&dataset, show(&["age"])).await;
    assert!(process.terminate().success());
}

/// Data subjects of uploads and statements about series count in the importing ledger as in the exporting one.
#[tokio::test(flavor = "multi_thread")]
async fn people_and_statements_are_carried_by_a_file() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (home.path().join("one"), home.path().join("other"));
    let protected = json!({"unlisted": "drop", "method": versatile(&["age -> dx"])});
    let show = |attributes: &[&str]| {
        let publish: serde_json::Map<_, _> =
            attributes.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
        json!({"unlisted": "drop", "attributes": publish, "no_rules_reason": "asked for", "method": {"type": "versatile", "rules": []}})
    };
    let mut process = Process::serve(&one, "info");
    let survey = json!({"name": "survey-2024", "attributes": ["years", "ward"], "protection": "plain"});
    let statement =
        json!({"reason": "published by the ministry", "tables": [survey], "aliases": {"age": "years", "dx": "dx"}});
    process.post("/v1/series/clinic/disclosures", &statement).await.ok(201);
    let published = text(&process.upload("series=clinic&record_key=id", patients(0..400, HEADER)).await.ok(201)["id"]);
    let release = process.publish(&published, protected.clone()).await;
    // nothing is published of these, but they are somebody
    process.upload("series=registry&record_key=id", patients(1000..1400, HEADER)).await.ok(201);
    assert!(process.terminate().success());
    drop(process);

    let (file, text_of) = (home.path().join("ledger.ndjson"), said(&on(&one, &["ledger", "export"])));
    assert!(patients(0..400, HEADER).lines().all(|line| !text_of.contains(line)), "no row");
    fs::write(&file, text_of).unwrap();
    fs::create_dir(&other).unwrap();
    fs::copy(one.join("master.key"), other.join("master.key")).unwrap();
    let import = || said(&on(&other, &["ledger", "import", file.to_str().unwrap()]));
    let imported = import();
    assert!(imported.contains("the subject fingerprints of 2 datasets, and 1 statements"), "{imported}");
    assert!(import().contains("the subject fingerprints of 0 datasets, and 0 statements"));
    for table in ["people_pieces", "dataset_people", "series_statements"] {
        assert_eq!(stored(&one, table).await, stored(&other, table).await, "{table}");
    }
    assert_eq!(stored(&other, "column_chunks").await, 0);

    let mut process = Process::serve(&other, "info");
    let upload = async |query: &str, csv: String| process.upload(query, csv).await.ok(201);
    let submit = async |dataset: &serde_json::Value, mut job: serde_json::Value| {
        job["dataset"] = dataset["id"].clone();
        process.post("/v1/jobs", &job).await
    };
    process.get(&format!("/v1/datasets/{published}")).await.problem(410, "gone");
    // the same people in another series, whatever their columns are called
    let renamed = "number,years,unit,gender,code";
    for (numbers, series) in [(0..400, "clinic"), (1000..1400, "registry")] {
        let unknown_value = upload("series=new&record_key=number", patients(numbers, renamed)).await;
        assert_eq!(unknown_value["overlaps"][0]["series"], series);
        let job = json!({"unlisted": "drop", "method": versatile(&["years -> code"])});
        assert_eq!(submit(&unknown_value, job).await.problem(409, "series-undeclared")["series"], json!([series]));
    }
    // one night later
    let clinic = "series=clinic&record_key=id&same_people=false&reason=those%20of%20the%20other%20series%20are%20not%20published";
    let night = upload(clinic, patients(1..401, HEADER)).await;
    let problem = submit(&night, protected.clone()).await.problem(409, "overlapping-row-sets");
    assert_eq!([&problem["common"], &problem["added"], &problem["removed"]], [399, 1, 1]);
    let added = upload(clinic, patients(400..500, HEADER)).await;
    process.publish(&text(&added["id"]), protected).await;
    // the same people with a column more; the statement about years holds for age
    let wider: String = patients(0..400, HEADER).lines().map(|line| format!("{line},{}\n", line.len() % 3)).collect();
    let wider = text(&upload(clinic, wider).await["id"]);
    let problem = process.refused(&wider, show(&["age", "dx"])).await;
    assert_eq!((kind(&problem), &problem["release"]), ("composition-violated", &release["id"]));
    let series = process.get("/v1/series/clinic").await.ok(200);
    let survey = series["disclosures"].as_array().unwrap().iter().find(|of| of["table"] == "survey-2024").unwrap();
    assert_eq!(
        (&survey["release"], &survey["unproven"]["reason"]),
        (&json!(null), &json!("published by the ministry"))
    );
    assert!(series["attributes"].as_array().unwrap().iter().any(|of| of["aliases"] == json!(["age"])), "{series}");
    assert!(process.terminate().success());
}
