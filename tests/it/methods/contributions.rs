//! Bounded contributions: at most R rows of a person are kept, before anything else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::support::harness::{Server, guardian, text};

const DISEASES: [&str; 5] = ["flu", "HIV", "asthma", "cancer", "cold"];

/// Visits: person 0 has 40, of one disease; every other has one to three.
fn visits() -> String {
    let mut csv = String::from("patient,age,ward,visit,disease\n");
    let mut number = 0;
    for person in 0..240_u32 {
        let visits = if person == 0 { 40 } else { person % 3 + 1 };
        for _ in 0..visits {
            number += 1;
            let disease = if person == 0 { "HIV" } else { DISEASES[(number * 7 % 11 % 5) as usize] };
            let day = 1 + number * 13 % 27;
            csv += &format!("p{person},{},w{},2024-03-{day:02},{disease}\n", 20 + person % 31, person % 4);
        }
    }
    csv
}

fn anatomy() -> Value {
    json!({
        "attributes": {"patient": {"drop": true}, "visit": {"drop": true}},
        "method": {"type": "anatomy", "quasi_identifiers": ["age", "ward"], "sensitive": "disease",
            "guarantee": {"type": "l_diversity", "l": 3}}
    })
}

/// How often each line occurs, without the header.
fn lines(csv: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    csv.lines().skip(1).for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    counts
}

/// Without the labels of buckets.
fn unlabelled(csv: &str) -> BTreeMap<String, u64> {
    let cut = csv.lines().map(|line| line.split_once(',').unwrap().1.to_owned() + "\n");
    lines(&cut.collect::<String>())
}

#[tokio::test(flavor = "multi_thread")]
async fn person_with_forty_rows_is_published_with_one() {
    let server = Server::start().await;
    // all rows of a person count, so that forty rows of one disease leave no guarantee
    let whole = text(&server.upload("subject=patient&max_rows_per_subject=40", visits()).await.ok(201)["id"]);
    server.job(&whole, anatomy()).await.fault("/method", "rule-ineligible");

    let dataset = server.upload("subject=patient&keep=1", visits()).await.ok(201);
    assert_eq!((&dataset["rows"], &dataset["max_rows_per_subject"]), (&json!(240), &json!(1)), "{dataset:#}");
    let left_out = visits().lines().count() as u64 - 1 - 240;
    assert_eq!(dataset["contributions"], json!({"choice": "random", "left_out_rows": left_out, "cut_persons": 161}));
    let release = server.publish(&text(&dataset["id"]), anatomy()).await;
    assert_eq!(release["unit"], json!({"subject": "patient", "max_rows": 1, "kept": "random"}));
    // with one row of each, the guarantee of rows is that of persons
    assert_eq!((&release["rules"][0]["guarantee"]["l"], &release["rules"][0]["enforced"]), (&json!(3), &Value::Null));
    let known = unlabelled(&server.part(&release, "t1", "qi").await);
    let of_persons = unlabelled(&format!(
        "b,age,ward\n{}",
        (0..240).map(|person| format!("b,{},w{}\n", 20 + person % 31, person % 4)).collect::<String>()
    ));
    assert_eq!(known, of_persons, "each person stands in the table once");

    // how many were left out is for the holder of the table alone
    let report = server.get(&format!("/v1/releases/{}/report", text(&release["id"]))).await.ok(200);
    assert!(report["premises"].to_string().contains("at most 1 row, chosen by a secret draw"), "{report:#}");
    for public in [&release, &report] {
        assert!(!public.to_string().contains("left_out_rows"), "{public:#}");
    }
    let internal = server.get(&format!("/v1/releases/{}/internal-report", text(&release["id"]))).await;
    let internal = internal.ok(200);
    assert_eq!(internal["contributions"], json!({"left_out_rows": left_out, "cut_persons": 161}), "{internal:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn second_upload_keeps_the_same_rows() {
    let server = Server::start().await;
    let first = text(&server.upload("subject=patient&keep=1", visits()).await.ok(201)["id"]);
    let release = server.publish(&first, anatomy()).await;
    // the same rows in another order: the same rows are kept, so that no reader collects all of a person
    let mut rows: Vec<String> = visits().lines().skip(1).map(str::to_owned).collect();
    rows.reverse();
    let turned = format!("patient,age,ward,visit,disease\n{}\n", rows.join("\n"));
    let second = server.upload("subject=patient&keep=1", turned).await.ok(201);
    let looked = server.get(&format!("/v1/datasets/{}", text(&second["id"]))).await.ok(200);
    assert_eq!(looked["published_before"]["same_table"], true, "{looked:#}");
    let mut wards = anatomy();
    wards["method"]["quasi_identifiers"] = json!(["ward"]);
    wards["attributes"]["age"] = json!({"drop": true});
    // of the same rows a second table is judged together with the first
    let again = server.job(&text(&second["id"]), wards).await;
    assert_eq!(again.status, 200, "{}", again.text());
    let diseases = unlabelled(&server.part(&release, "t1", "sa").await);
    assert_eq!(diseases.values().sum::<u64>(), 240);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn order_tied_to_a_sensitive_value_is_refused() {
    let server = Server::start().await;
    let by = async |order: &str| {
        let query = format!("subject=patient&keep=1&keep_order={order}");
        text(&server.upload(&query, visits()).await.ok(201)["id"])
    };
    let own = server.job(&by("disease").await, anatomy()).await;
    own.fault("/method", "guarantee-unsupported");
    let dataset = by("visit").await;
    let release = server.publish(&dataset, anatomy()).await;
    assert_eq!(release["unit"]["kept"], json!({"first": "visit"}));
    let report = server.get(&format!("/v1/releases/{}/report", text(&release["id"]))).await.ok(200);
    assert!(report["premises"].to_string().contains("it assumes that visit"), "{report:#}");
    let faulty = [
        ("keep=1", "subject"),
        ("subject=patient&keep=0", "keep must be 1 to"),
        ("subject=patient&max_rows_per_subject=2&keep=1", "leave out"),
        ("subject=patient&max_rows_per_subject=2&keep_order=visit", "keep_order needs keep"),
        ("subject=patient&keep=1&keep_order=year", "year"),
    ];
    for (query, part) in faulty {
        let problem = server.upload(query, visits()).await.problem(400, "malformed-request");
        assert!(problem["detail"].as_str().unwrap().contains(part), "{problem:#}");
    }
    server.stop().await;
}

/// The visits with the half of the month in which each was; of one visit it is wrong.
fn staged_visits() -> String {
    let rows = visits();
    let staged = rows.lines().skip(1).enumerate().map(|(row, line)| {
        let day: u32 = line.split(',').nth(3).unwrap()[8..].parse().unwrap();
        let stage = if (day > 14) == (row != 77) { "late" } else { "early" };
        format!("{line},{stage}\n")
    });
    format!("patient,age,ward,visit,disease,stage\n{}", staged.collect::<String>())
}

/// The first visits of persons with several are early ones, nearly all: the choice of rows says what the rule protects.
#[tokio::test(flavor = "multi_thread")]
async fn one_wrong_row_hides_no_tie_of_the_order() {
    let server = Server::start().await;
    let query = "subject=patient&keep=1&keep_order=visit";
    let dataset = text(&server.upload(query, staged_visits()).await.ok(201)["id"]);
    let mut document = anatomy();
    document["attributes"]["disease"] = json!({"drop": true});
    document["method"]["sensitive"] = "stage".into();
    document["method"]["guarantee"] = json!({"type": "alpha_k", "alpha": "0.95", "k": 2});
    server.job(&dataset, document).await.fault("/method", "guarantee-unsupported");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn persons_of_a_population_keep_one_row_each() {
    let server = Server::start().await;
    server.population("patients", &["patient"]).await;
    let dataset = server.upload("population=patients&keep=1", visits()).await.ok(201);
    assert_eq!((&dataset["rows"], &dataset["subject"]), (&json!(240), &json!("patient")), "{dataset:#}");
    let release = server.publish(&text(&dataset["id"]), anatomy()).await;
    assert_eq!(release["unit"]["kept"], "random");
    // two rows of each hold the one row and others: who was published is no new person
    let more = text(&server.upload("population=patients&keep=2", visits()).await.ok(201)["id"]);
    let classes = json!({
        "attributes": {"patient": {"drop": true}, "visit": {"drop": true}, "disease": {"drop": true}},
        "method": {"type": "generalize", "quasi_identifiers": ["age", "ward"], "sensitive": [], "cells": "interval",
            "guarantees": [{"type": "k_anonymity", "k": 2}]}
    });
    server.job(&more, classes).await.problem(409, "overlapping-people");
    server.stop().await;
}

/// Runs the program and gives its output.
fn run(arguments: &[&str]) -> (i32, String) {
    let output = guardian().args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.code().unwrap(), said)
}

fn edit(path: &Path, change: impl Fn(&mut Value)) {
    let mut document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    change(&mut document);
    std::fs::write(path, document.to_string()).unwrap();
}

#[test]
fn command_line_keeps_rows_and_verifies_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("t.csv"), visits()).unwrap();
    std::fs::write(at("s.json"), anatomy().to_string()).unwrap();
    let key = "07".repeat(32);
    let publish = |out: &str, more: &[&str]| {
        let (table, specification, out) = (at("t.csv"), at("s.json"), at(out));
        let first = ["publish", &table, &specification, "--out", &out, "--subject", "patient", "--keep", "1"];
        run(&[&first, more].concat())
    };
    let internal = at("internal.json");
    for out in ["a", "b"] {
        let (code, said) = publish(out, &["--reproduce", &key, "--internal-report", &internal]);
        assert_eq!(code, 0, "{said}");
    }
    let part = |out: &str, part: &str| std::fs::read_to_string(Path::new(&at(out)).join(part)).unwrap();
    assert_eq!(part("a", "t1.sa.csv"), part("b", "t1.sa.csv"), "one key, one draw");
    let (code, said) = publish("c", &[]);
    assert_eq!(code, 0, "{said}");
    assert_ne!(unlabelled(&part("a", "t1.sa.csv")), unlabelled(&part("c", "t1.sa.csv")), "another key, another draw");
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&internal).unwrap()).unwrap();
    assert_eq!(written["contributions"]["cut_persons"], 161, "{written:#}");

    let verify = |out: &str, original: &str| run(&["verify", &at(out), "--original", &at(original)]);
    let (code, said) = verify("a", "t.csv");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("unit") && said.contains("verified"), "{said}");
    // a table in which none of these persons has such a row
    std::fs::write(at("other.csv"), visits().replace("p7,27,w3", "p7,99,w3")).unwrap();
    let (code, said) = verify("a", "other.csv");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("combinations of cells occur"), "{said}");
    // a release with all rows that claims one of each
    let (table, specification, out) = (at("t.csv"), at("s.json"), at("all"));
    edit(Path::new(&specification), |document| document["method"]["guarantee"]["l"] = 2.into());
    let (code, said) = run(&["publish", &table, &specification, "--out", &out]);
    assert_eq!(code, 0, "{said}");
    edit(&Path::new(&out).join("manifest.json"), |manifest| {
        manifest["unit"] = json!({"subject": "patient", "max_rows": 1, "kept": "random"});
    });
    let (code, said) = verify("all", "t.csv");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("with at most 1 of a person"), "{said}");

    // with an order, the original says which rows were kept
    let (code, said) = publish("first", &["--keep-order", "visit"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(verify("first", "t.csv").0, 0);
    let (code, said) = publish("secret", &["--keep-order", "disease"]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("keep_order"), "{said}");
    let (code, said) = run(&["plan", &table, &specification, "--subject", "patient", "--keep", "1", "--json"]);
    assert_eq!(code, 0, "{said}");
    let plan: Value = serde_json::from_str(said.trim()).unwrap();
    assert_eq!(plan["feasible"], true, "{plan:#}");
}

#[test]
fn first_specification_of_a_bounded_table_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("t.csv"), visits()).unwrap();
    let (table, specification) = (at("t.csv"), at("t.spec.json"));
    let (code, said) = run(&["init", &table, "--yes", "--subject", "patient", "--keep", "1"]);
    assert_eq!(code, 0, "{said}");
    let words: BTreeSet<&str> = said.lines().last().unwrap().split_whitespace().collect();
    assert!(["--subject", "patient", "--keep", "1"].iter().all(|word| words.contains(word)), "{said}");
    let out = at("release");
    let (code, said) = run(&["publish", &table, &specification, "--out", &out, "--subject", "patient", "--keep", "1"]);
    assert_eq!(code, 0, "{said}");
}
