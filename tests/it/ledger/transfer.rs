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

/// Populations, their persons and statements count in the importing ledger as in the exporting one.
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
    process.population("clinic", &["id"]).await;
    process.population("staff", &[]).await;
    let survey = json!({"name": "survey-2024", "attributes": ["years", "ward"], "protection": "plain"});
    let statement =
        json!({"reason": "published by the ministry", "tables": [survey], "aliases": {"age": "years", "dx": "dx"}});
    process.post("/v1/series/clinic/disclosures", &statement).await.ok(201);
    let published = text(&process.upload("population=clinic", patients(0..400, HEADER)).await.ok(201)["id"]);
    let release = process.publish(&published, protected.clone()).await;
    // nothing is published of these: the other store does not know them
    process.upload("population=clinic", patients(1000..1400, HEADER)).await.ok(201);
    assert!(process.terminate().success());
    drop(process);

    let (file, text_of) = (home.path().join("ledger.ndjson"), said(&on(&one, &["ledger", "export"])));
    assert!(patients(0..400, HEADER).lines().all(|line| !text_of.contains(line)), "no row");
    fs::write(&file, text_of).unwrap();
    fs::create_dir(&other).unwrap();
    fs::copy(one.join("master.key"), other.join("master.key")).unwrap();
    let import = || said(&on(&other, &["ledger", "import", file.to_str().unwrap()]));
    let imported = import();
    assert!(imported.contains("2 datasets, 2 statements, 2 populations, 1 coverages and 0 chains"), "{imported}");
    assert!(import().contains("0 datasets, 0 statements, 0 populations, 0 coverages and 0 chains"));
    for table in [
        "covered",
        "indexed_marks",
        "coverage_signatures",
        "separations",
        "series_statements",
        "populations",
        "key_systems",
    ] {
        assert_eq!(stored(&one, table).await, stored(&other, table).await, "{table}");
    }
    assert_eq!((stored(&other, "column_chunks").await, stored(&other, "uncovered_datasets").await), (0, 0));

    let mut process = Process::serve(&other, "info");
    let upload = async |csv: String| text(&process.upload("population=clinic", csv).await.ok(201)["id"]);
    process.get(&format!("/v1/datasets/{published}")).await.problem(410, "gone");
    // one night later
    let night = upload(patients(1..401, HEADER)).await;
    let problem = process.job(&night, protected.clone()).await.problem(409, "overlapping-people");
    assert_eq!([&problem["common"], &problem["added"], &problem["removed"]], [399, 1, 1]);
    let mut newcomers = protected.clone();
    newcomers["people"] = "unpublished".into();
    assert_eq!(kind(&process.refused(&night, newcomers).await["errors"][0]), "rule-ineligible");
    let added = upload(patients(400..500, HEADER)).await;
    assert_eq!(process.publish(&added, protected.clone()).await["composition"], "enforced");
    // the same cells under other keys, and without
    let renumbered = upload(patients(0..400, HEADER).replace("\np", "\nnew-")).await;
    process.job(&renumbered, protected.clone()).await.problem(409, "people-alike");
    let unknown = process.dataset(patients(0..300, HEADER)).await;
    process.job(&unknown, protected).await.problem(409, "population-undeclared");
    // the same people with a column more; the statement about years holds for age
    let wider: String = patients(0..400, HEADER).lines().map(|line| format!("{line},{}\n", line.len() % 3)).collect();
    let wider = upload(wider).await;
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
