//! Releases of one population night after night: who is published, when, and who is refused with which remedy.

use std::collections::{BTreeMap, BTreeSet};

use guardian::identity::Preset;
use serde_json::{Value, json};

use super::data_subjects::{HEADER, patients};
use crate::security::identity::Guarded;
use crate::support::harness::{Client, Server, kind, text, versatile};

/// Age protects diagnoses; the number of the patient and the rest are left out.
fn protected() -> Value {
    json!({"unlisted": "drop", "method": versatile(&["age -> dx"])})
}

fn new_people() -> Value {
    json!({"people": "unpublished", "unlisted": "drop", "method": versatile(&["age -> dx"])})
}

async fn define(server: &Client, name: &str, person: Value, more: Value) {
    let mut population = json!({"description": "of a test", "person": person});
    population.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.put(&format!("/v1/populations/{name}"), &population).await.ok(201);
}

async fn clinic(server: &Client) {
    define(server, "clinic", json!([{"key_system": "patient", "columns": ["id"]}]), json!({})).await;
}

async fn upload(server: &Client, query: &str, csv: String) -> String {
    text(&server.upload_with(query, csv, &[]).await.ok(201)["id"])
}

/// The problem of a job that is refused when it is submitted.
async fn refused(server: &Client, dataset: &str, mut document: Value, name: &str) -> Value {
    document["dataset"] = dataset.into();
    server.post("/v1/jobs", &document).await.problem(409, name)
}

/// The bucket of each row of a part, with its other cell.
fn rows(csv: &str) -> Vec<(String, String)> {
    let cells = csv.lines().skip(1).map(|line| line.split_once(',').unwrap());
    cells.map(|(bucket, cell)| (bucket.to_owned(), cell.to_owned())).collect()
}

/// The diagnoses that a release leaves to each age.
pub(crate) async fn candidates(server: &Client, release: &Value) -> BTreeMap<String, Vec<BTreeSet<String>>> {
    let (known, hidden) = (server.part(release, "t1", "qi").await, server.part(release, "t1", "sa").await);
    let mut of_bucket: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (bucket, dx) in rows(&hidden) {
        of_bucket.entry(bucket).or_default().insert(dx);
    }
    let mut found: BTreeMap<String, Vec<BTreeSet<String>>> = BTreeMap::new();
    for (bucket, age) in rows(&known) {
        found.entry(age).or_default().push(of_bucket[&bucket].clone());
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn five_nights_publish_each_person_once() {
    let server = Server::start().await;
    clinic(&server).await;
    let mut published = 0;
    for night in 0..5 {
        let count = 900 + 60 * night;
        let dataset = upload(&server, "population=clinic", patients(0..count, HEADER)).await;
        let release = server.publish(&dataset, new_people()).await;
        assert_eq!(release["composition"], "enforced");
        let expected = json!({"population": "clinic", "persons": "identified", "key_systems": ["patient"],
            "people": "unpublished", "scope": "tenant", "statements": [], "unrelated": []});
        assert_eq!(release["identity"], expected);
        let found = candidates(&server, &release).await;
        published += found.values().map(Vec::len).sum::<usize>();
        assert_eq!(published, count as usize, "whoever is published is published once");
        // one release alone speaks of a person, and leaves two diagnoses
        assert!(found.values().flatten().all(|left| left.len() >= 2), "night {night}");
        let mut planned = json!({"people": "unpublished", "unlisted": "drop", "method": versatile(&["ward -> dx"])});
        planned["dataset"] = dataset.clone().into();
        let plan = server.post("/v1/plans", &planned).await.ok(200);
        assert_eq!((&plan["feasible"], kind(&plan["problems"][0])), (&json!(false), "nobody-new"));
        planned["composition"] = json!({"mode": "report", "reason": "asked for"});
        server.post("/v1/jobs", &planned).await.problem(409, "nobody-new");
        let again = server.job(&dataset, new_people()).await.ok(200);
        assert_eq!((&again["status"], &again["release"]), (&json!("succeeded"), &release["id"]));
        refused(
            &server,
            &dataset,
            json!({"people": "unpublished", "unlisted": "drop",
            "method": versatile(&["ward -> dx"])}),
            "nobody-new",
        )
        .await;
    }
    server.stop().await;
}

/// A column may be corrected before it is published. What is published of it are then the values of the later upload, and the
/// earlier one is no longer of the same values.
#[tokio::test(flavor = "multi_thread")]
async fn values_are_those_of_the_upload_that_showed_them() {
    let server = Server::start().await;
    clinic(&server).await;
    let rows = patients(0..900, HEADER);
    let ward = rows.lines().nth(8).unwrap().split(',').nth(2).unwrap().to_owned();
    let other = if ward == "w1" { "w2" } else { "w1" };
    let corrected: Vec<String> = rows
        .lines()
        .map(|row| {
            if row.starts_with("p7,") {
                row.replace(&format!(",{ward},"), &format!(",{other},"))
            } else {
                row.to_owned()
            }
        })
        .collect();
    let first = upload(&server, "population=clinic", rows.clone()).await;
    server.publish(&first, protected()).await;
    let second = upload(&server, "population=clinic", corrected.join("\n")).await;
    let wards = || json!({"unlisted": "drop", "method": versatile(&["sex -> ward"])});
    let release = server.publish(&second, wards()).await;
    assert_eq!(release["composition"], "enforced", "no ward was published before");
    // the same columns with the wards of before: of p7 both would be known
    let keyless = upload(&server, "population=clinic&person=none", rows).await;
    for dataset in [first, keyless] {
        let mut again = wards();
        again["method"]["uad"] = json!({"saturate": true});
        let problem = refused(&server, &dataset, again, "overlapping-people").await;
        assert!(problem["remedies"].as_array().is_some_and(|remedies| !remedies.is_empty()), "{problem}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn second_night_is_refused_and_its_remedy_works() {
    let server = Server::start().await;
    clinic(&server).await;
    let first = upload(&server, "population=clinic", patients(0..900, HEADER)).await;
    let release = server.publish(&first, protected()).await;
    assert_eq!((&release["composition"], &release["identity"]["people"]), (&json!("enforced"), &json!("all")));

    // a column that changes every night, and another order of columns, hide no one
    let later: String = patients(0..960, HEADER)
        .lines()
        .enumerate()
        .map(|(line, row)| format!("{},{row}\n", if line == 0 { "load_date" } else { "2026-11-21" }))
        .collect();
    let second = upload(&server, "population=clinic", later).await;
    let mut planned = protected();
    planned["dataset"] = second.clone().into();
    let plan = server.post("/v1/plans", &planned).await.ok(200);
    assert_eq!((&plan["feasible"], &plan["composition"]["verdict"]), (&json!(false), &json!("overlapping")));
    assert_eq!(plan["composition"]["counts"], json!({"common": 900, "added": 60, "removed": 0}));
    let problem = refused(&server, &second, protected(), "overlapping-people").await;
    assert_eq!((&problem["common"], &problem["added"], &problem["removed"]), (&json!(900), &json!(60), &json!(0)));
    let shown = problem.to_string();
    assert!(!shown.contains("p17"), "{shown}");
    let remedy = &problem["remedies"][0];
    assert_eq!(remedy["call"], "POST /v1/jobs");
    let job = server.post("/v1/jobs?wait=60", &remedy["body"]).await.ok(200);
    assert_eq!(job["status"], "succeeded", "{job:#}");

    // uploads that were not published are in no one's way
    let third = upload(&server, "population=clinic", patients(400..1300, HEADER)).await;
    let other = upload(&server, "population=clinic", patients(1300..1600, HEADER)).await;
    assert_eq!(server.publish(&other, protected()).await["composition"], "enforced");
    refused(&server, &third, protected(), "overlapping-people").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_under_another_spelling_is_an_overlap() {
    let server = Server::start().await;
    clinic(&server).await;
    let first = upload(&server, "population=clinic", patients(0..300, HEADER)).await;
    server.publish(&first, protected()).await;
    let others = patients(300..600, HEADER) + "P7 ,20,w1,f,d1\n";
    let second = upload(&server, "population=clinic", others).await;
    let problem = refused(&server, &second, protected(), "overlapping-people").await;
    assert_eq!((&problem["common"], &problem["added"]), (&json!(1), &json!(300)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_tables_are_one_under_other_names_of_columns() {
    let server = Server::start().await;
    define(&server, "x", json!([]), json!({})).await;
    let first = upload(&server, "population=x", patients(0..300, HEADER)).await;
    let release = server.publish(&first, protected()).await;
    assert_eq!(release["composition"], "same_dataset_only");
    let renamed = upload(&server, "population=x", patients(0..300, "number,years,unit,gender,code")).await;
    let second = json!({"unlisted": "drop", "method": versatile(&["unit -> code"])});
    let problem = server.refused(&renamed, second).await;
    assert_eq!(kind(&problem), "composition-violated");
    // what was published of them stands for the new names too
    let harmless = json!({"unlisted": "drop", "attributes": {"gender": {"publish": true}},
        "no_rules_reason": "known to all", "method": {"type": "versatile", "rules": []}});
    server.publish(&renamed, harmless).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_without_a_population_is_the_same_table() {
    let server = Server::start().await;
    clinic(&server).await;
    let first = upload(&server, "population=clinic", patients(0..300, HEADER)).await;
    server.publish(&first, protected()).await;
    let copy = upload(&server, "", patients(0..300, "id,years,unit,gender,code")).await;
    let second = json!({"unlisted": "drop", "method": versatile(&["unit -> code"])});
    assert_eq!(kind(&server.refused(&copy, second).await), "composition-violated");
    let release = json!({"unlisted": "drop", "attributes": {"unit": {"publish": true}, "years": {"publish": true}},
        "no_rules_reason": "known to all", "method": {"type": "versatile", "rules": []}});
    server.publish(&copy, release).await;
    // what the copy published stands against the population's next release
    let third = json!({"unlisted": "drop", "method": versatile(&["sex, ward -> age"])});
    assert_eq!(kind(&server.refused(&first, third).await), "composition-violated");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_people_are_declared_and_named_in_the_manifest() {
    let server = Server::start().await;
    clinic(&server).await;
    let first = upload(&server, "population=clinic", patients(0..300, HEADER)).await;
    server.publish(&first, protected()).await;
    // nothing is known of a table without a population, nor of another population
    let undeclared = upload(&server, "", patients(5000..5400, HEADER)).await;
    let problem = refused(&server, &undeclared, protected(), "population-undeclared").await;
    assert_eq!(problem["remedies"][0]["call"], "POST /v1/datasets?population=clinic");
    let remedy = &problem["remedies"][1];
    assert_eq!(remedy["call"], "PUT /v1/populations/NAME");
    let mut body = remedy["body"].clone();
    assert_eq!(body["disjoint_from"], json!(["population:clinic"]));
    body["reason"] = "no patient gave birth here".into();
    body["description"] = "births".into();
    server.put("/v1/populations/births", &body).await.ok(201);
    let births = upload(&server, "population=births", patients(5000..5400, HEADER)).await;
    let release = server.publish(&births, protected()).await;
    assert_eq!(release["composition"], "same_dataset_only");
    let statement = &release["identity"]["statements"][0];
    assert_eq!(statement["of"], json!(["population:births", "population:clinic"]));
    assert_eq!((&statement["kind"], &statement["reason"]), (&json!("disjoint"), &body["reason"]));
    let report = server.get(&format!("/v1/releases/{}/report", text(&release["id"]))).await.text();
    assert!(report.contains("no patient gave birth here"), "{report}");

    // the same patients, uploaded where they do not belong
    let wrong = upload(&server, "population=births", patients(0..300, HEADER)).await;
    let problem = refused(&server, &wrong, protected(), "statement-contradicted").await;
    assert_eq!(problem["statement"], statement["id"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_drawn_anew_are_noticed_by_the_cells() {
    let server = Server::start().await;
    clinic(&server).await;
    let first = upload(&server, "population=clinic", patients(0..900, HEADER)).await;
    server.publish(&first, protected()).await;
    let anew: String = patients(0..900, HEADER)
        .lines()
        .map(|line| line.strip_prefix('p').map_or(format!("{line}\n"), |rest| format!("q{rest}\n")))
        .collect();
    let second = upload(&server, "population=clinic", anew).await;
    let problem = refused(&server, &second, protected(), "people-alike").await;
    let others = problem["remedies"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(others["call"], "POST /v1/populations/clinic/statements");
    let mut body = others["body"].clone();
    body["reason"] = "a simulated copy".into();
    server.post("/v1/populations/clinic/statements", &body).await.ok(201);
    let release = server.publish(&second, protected()).await;
    assert_eq!(
        (&release["composition"], &release["identity"]["statements"][0]["kind"]),
        (&json!("enforced"), &json!("others"))
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_becomes_identified_by_its_next_upload() {
    let server = Server::start().await;
    clinic(&server).await;
    let keyless = upload(&server, "population=clinic&person=none", patients(0..300, HEADER)).await;
    let release = server.publish(&keyless, protected()).await;
    assert_eq!(
        (&release["composition"], &release["identity"]["persons"]),
        (&json!("same_dataset_only"), &json!("content_only"))
    );
    let more = upload(&server, "population=clinic", patients(0..400, HEADER)).await;
    let problem = refused(&server, &more, protected(), "people-unknown").await;
    let remedies = problem["remedies"].as_array().unwrap();
    let words: Vec<&str> = remedies.iter().map(|remedy| remedy["words"].as_str().unwrap()).collect();
    assert!(matches!(words[..], [words] if words.starts_with("if the earlier file")), "{words:?}");
    // the remedy: the earlier table once more, with its key, and the same job
    let again = upload(&server, "population=clinic", patients(0..300, HEADER)).await;
    let job = server.job(&again, protected()).await.ok(200);
    assert_eq!((&job["status"], &job["release"]), (&json!("succeeded"), &release["id"]));
    let problem = refused(&server, &more, protected(), "overlapping-people").await;
    assert_eq!((&problem["common"], &problem["added"]), (&json!(300), &json!(100)));
    assert_eq!(server.publish(&more, new_people()).await["composition"], "enforced");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_jobs_at_once_one_is_published() {
    let server = Server::start().await;
    clinic(&server).await;
    for round in 0..3 {
        let from = 2000 * round;
        let one = upload(&server, "population=clinic", patients(from..from + 500, HEADER)).await;
        let two = upload(&server, "population=clinic", patients(from + 400..from + 900, HEADER)).await;
        let (one, two) = tokio::join!(server.job(&one, protected()), server.job(&two, protected()));
        let succeeded = [one, two].iter().filter(|answer| answer.json()["status"] == "succeeded").count();
        assert_eq!(succeeded, 1, "round {round}");
    }
    // the newcomers of both are published once
    let one = upload(&server, "population=clinic", patients(10_000..10_500, HEADER)).await;
    let two = upload(&server, "population=clinic", patients(10_400..10_900, HEADER)).await;
    let (one, two) = tokio::join!(server.publish(&one, new_people()), server.publish(&two, new_people()));
    let mut count = 0;
    for release in [one, two] {
        count += candidates(&server, &release).await.values().map(Vec::len).sum::<usize>();
    }
    assert_eq!(count, 900);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_published_locks_no_one_out() {
    let server = Server::start().await;
    clinic(&server).await;
    let first = upload(&server, "population=clinic", patients(0..300, HEADER)).await;
    let second = upload(&server, "population=clinic", patients(200..500, HEADER)).await;
    let mut held = protected();
    held["hold"] = true.into();
    let job = server.job(&first, held.clone()).await.ok(200);
    let path = format!("/v1/releases/{}", text(&job["release"]));
    refused(&server, &second, protected(), "overlapping-people").await;
    server.post(&format!("{path}/reject"), &json!({"reason": "a typing error"})).await.ok(200);
    server.publish(&second, protected()).await;
    // what somebody has read stays in the way
    let third = upload(&server, "population=clinic", patients(600..900, HEADER)).await;
    let fourth = upload(&server, "population=clinic", patients(800..1100, HEADER)).await;
    let job = server.job(&third, held).await.ok(200);
    let release = server.get(&format!("/v1/releases/{}", text(&job["release"]))).await.ok(200);
    server.part(&release, "t1", "qi").await;
    let path = format!("/v1/releases/{}", text(&job["release"]));
    server.post(&format!("{path}/reject"), &json!({"reason": "after all"})).await.ok(200);
    refused(&server, &fourth, protected(), "overlapping-people").await;
    // a purge takes the rows, and not what was published of them
    server.delete(&format!("/v1/datasets/{second}")).await.ok(200);
    let fifth = upload(&server, "population=clinic", patients(450..550, HEADER)).await;
    refused(&server, &fifth, protected(), "overlapping-people").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_need_keys_to_be_left_out() {
    let server = Server::start().await;
    define(&server, "x", json!([]), json!({})).await;
    let dataset = upload(&server, "population=x", patients(0..300, HEADER)).await;
    let problem = refused(&server, &dataset, new_people(), "people-unknown").await;
    assert!(problem["detail"].as_str().unwrap().contains("no person key"), "{problem:#}");
    let mut planned = new_people();
    planned["dataset"] = dataset.clone().into();
    let plan = server.post("/v1/plans", &planned).await.ok(200);
    assert_eq!((&plan["feasible"], kind(&plan["problems"][0])), (&json!(false), "people-unknown"));
    // without proof, too, the manifest must not say that people were left out
    let mut unproven = new_people();
    unproven["composition"] = json!({"mode": "report", "reason": "asked for"});
    refused(&server, &dataset, unproven, "people-unknown").await;
    let wrong = json!({"dataset": dataset, "people": "new", "method": versatile(&["age -> dx"])});
    server.post("/v1/jobs", &wrong).await.fault("/people", "parameter-range");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attacks_on_new_people_read_their_rows_alone() {
    let server = Server::start().await;
    clinic(&server).await;
    let first = upload(&server, "population=clinic", patients(0..300, HEADER)).await;
    server.publish(&first, protected()).await;
    let second = upload(&server, "population=clinic", patients(0..420, HEADER)).await;
    let release = server.publish(&second, new_people()).await;
    let path = format!("/v1/releases/{}/attacks", text(&release["id"]));
    let attack = json!({"attack": "proxy", "rule": "/method/rules/0"});
    let answer = server.post(&path, &attack).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(!answer.text().contains("420"), "{}", answer.text());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_says_who_declared_what_it_rests_on() {
    let guarded = Guarded::start().await;
    let (officer, pipeline) = (guarded.preset(Preset::Officer), guarded.preset(Preset::Pipeline));
    clinic(&officer).await;
    let first = upload(&pipeline, "population=clinic", patients(0..300, HEADER)).await;
    let alone = pipeline.publish(&first, protected()).await;
    let mothers = json!([{"key_system": "mother", "columns": ["id"]}]);
    let reason = "no patient gave birth here";
    define(&officer, "births", mothers, json!({"disjoint_from": ["clinic"], "reason": reason})).await;
    let second = upload(&pipeline, "population=births", patients(5000..5300, HEADER)).await;
    let release = pipeline.publish(&second, protected()).await;

    let path = format!("/v1/releases/{}", text(&release["id"]));
    let history = officer.get(&format!("{path}/history")).await.ok(200);
    let declared = &history["statements"][0];
    assert_eq!((&declared["kind"], &declared["reason"]), (&json!("disjoint"), &json!(reason)));
    assert_eq!(declared["of"], json!(["population:births", "population:clinic"]));
    let entries = guarded.preset(Preset::Operator).items("/v1/audit-log?action=population.put").await;
    assert!(declared["actor"].is_string() && declared["actor"] == entries[0]["actor"], "{declared} {entries:?}");
    assert_eq!(history["statements"].as_array().unwrap().len(), 1);
    // readers learn what was declared, when and why, and not by whom
    let named = &release["identity"]["statements"][0];
    for member in ["id", "kind", "of", "reason"] {
        assert_eq!(named[member], declared[member], "{member}");
    }
    assert_eq!(named["actor"], Value::Null);
    assert_eq!(named["recorded_at"].as_str().unwrap()[..19], declared["recorded_at"].as_str().unwrap()[..19]);
    for format in ["json", "html"] {
        let report = pipeline.get(&format!("{path}/report?format={format}")).await.text();
        let sentence = format!("population:births and population:clinic have no person in common: {reason}");
        assert!(report.contains(&sentence), "{format}: {report}");
    }
    // what was declared afterwards is no premise of an earlier release
    let path = format!("/v1/releases/{}/history", text(&alone["id"]));
    assert_eq!(officer.get(&path).await.ok(200)["statements"], json!([]));
    // it remains when the release has ended
    let path = format!("/v1/releases/{}", text(&release["id"]));
    officer.post(&format!("{path}/withdraw"), &json!({"reason": "why"})).await.ok(200);
    assert_eq!(officer.get(&format!("{path}/history")).await.ok(200)["statements"][0], *declared);
    guarded.server.stop().await;
}
