//! Generalized tables: over HTTP, by the command line and through the library, judged from the served parts by this test's own
//! definitions.

use std::collections::BTreeMap;
use std::fs;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use flate2::read::GzDecoder;
use guardian::engine::{EngineError, QuerySet};
use guardian::ledger::EarlierDisclosures;
use guardian::random::{RandomStreams, ReleaseKey};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::folder::CommandFixture;
use crate::support::harness::{HOSPITAL, Server, kind, part_path, text};
use crate::support::library::{Original, cells, release, some_rows, table};

/// Of its fourteen occupations none takes a seventh of the rows.
const ADULT: &[u8] = include_bytes!("../../../examples/data/adult.csv.gz");

const USED: [&str; 7] = ["age", "workclass", "education", "marital-status", "occupation", "race", "sex"];

fn adult() -> Vec<u8> {
    some_rows(GzDecoder::new(ADULT), 4)
}

/// A job that generalizes what is known of the adults, all but `sensitive`.
fn job(sensitive: &[&str], guarantees: Value, more: Value) -> Value {
    let known: Vec<&&str> = USED.iter().filter(|name| !sensitive.contains(name)).collect();
    let mut method =
        json!({"type": "generalize", "quasi_identifiers": known, "sensitive": sensitive, "guarantees": guarantees});
    more.as_object().unwrap().iter().for_each(|(name, value)| method[name] = value.clone());
    json!({"unlisted": "drop", "method": method})
}

/// Per class, by its generalized cells, how often each value of the sensitive attribute occurs.
fn classes(columns: &[String], rows: &[Vec<String>], known: &[&str], sensitive: &str) -> Vec<BTreeMap<String, f64>> {
    let at = |name: &str| columns.iter().position(|column| column == name).unwrap();
    let known: Vec<usize> = known.iter().map(|name| at(name)).collect();
    let mut classes: BTreeMap<Vec<&str>, BTreeMap<String, f64>> = BTreeMap::new();
    for row in rows {
        let key = known.iter().map(|&column| row[column].as_str()).collect();
        *classes.entry(key).or_default().entry(row[at(sensitive)].clone()).or_default() += 1.0;
    }
    classes.into_values().collect()
}

fn most(class: &BTreeMap<String, f64>) -> f64 {
    class.values().copied().fold(0.0, f64::max) / class.values().sum::<f64>()
}

#[test]
fn classes_of_a_real_table_satisfy_the_guarantee() {
    let csv = adult();
    let input = Original::new(table(&csv[..]));
    let (names, original) = cells(&csv);
    let known: Vec<&str> = USED.into_iter().filter(|name| *name != "occupation").collect();
    let entropy = |class: &BTreeMap<String, f64>| {
        let size: f64 = class.values().sum();
        class.values().map(|count| -(count / size) * (count / size).ln()).sum::<f64>().exp()
    };
    let k = json!({"type": "k_anonymity", "k": 5});
    let cases = [
        (json!([k, {"type": "l_diversity", "l": 3}]), "interval", "strict", 250),
        (json!([k, {"type": "l_diversity", "l": 3}]), "set", "relaxed", 500),
        (json!([k, {"type": "distinct_l_diversity", "l": 3}]), "set", "strict", 750),
        (json!([{"type": "entropy_l_diversity", "l": "2.5"}]), "interval", "relaxed", 1700),
        (
            json!([{"type": "recursive_l_diversity", "c": "2", "l": 2}, {"type": "alpha_k", "alpha": "0.6", "k": 4}]),
            "set",
            "strict",
            750,
        ),
        (json!([k, {"type": "t_closeness", "t": "0.3", "distance": "equal"}]), "interval", "strict", 50),
    ];
    for (number, (guarantees, kind, split, fewest)) in (1u8..).zip(cases) {
        let document = job(&["occupation"], guarantees.clone(), json!({"cells": kind, "split": split}));
        let job = input.job(&document).unwrap_or_else(|problem| panic!("{guarantees}: {problem:?}"));
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([number; 32]));
        let (released, files) = release(&job, &EarlierDisclosures::default(), &streams).unwrap();
        let (columns, rows) = cells(&files.0["t1.rows.csv"]);
        let found = classes(&columns, &rows, &known, "occupation");
        let manifest = serde_json::to_value(&released.manifest).unwrap();
        println!("{guarantees} {kind} {split}: {} classes", found.len());
        assert!(found.len() >= fewest, "{guarantees}: only {} classes", found.len());
        assert_eq!((rows.len(), &manifest["verification"]["verified"]), (original.len(), &json!(true)));
        assert_eq!(manifest["method"], json!({"type": "generalize", "adversary": "without minimality"}));
        let table = &manifest["tables"][0];
        assert_eq!((&table["kind"], &table["protection"]), (&json!("generalized"), &json!("guarding")));
        let of_seal: Vec<Value> =
            guarantees.as_array().unwrap().iter().filter(|g| g["type"] != "k_anonymity").cloned().collect();
        assert_eq!(table["guards"][0]["guarantees"].as_array().unwrap().len(), of_seal.len());
        // exact values are those of the original, and each class keeps what was asked
        let column = |names: &[String], rows: &[Vec<String>]| {
            let at = names.iter().position(|name| name == "occupation").unwrap();
            let mut values: Vec<String> = rows.iter().map(|row| row[at].clone()).collect();
            values.sort();
            values
        };
        assert_eq!(column(&columns, &rows), column(&names, &original));
        let mut all: BTreeMap<&str, f64> = BTreeMap::new();
        found.iter().flatten().for_each(|(value, count)| *all.entry(value).or_default() += count);
        // half the sum of what the shares of a class and of the table differ by
        let distance = |class: &BTreeMap<String, f64>| {
            let size: f64 = class.values().sum();
            let of = |value: &str| class.get(value).copied().unwrap_or(0.0) / size;
            all.iter().map(|(value, count)| (of(value) - count / rows.len() as f64).abs()).sum::<f64>() / 2.0
        };
        let smallest = found.iter().map(|class| class.values().sum::<f64>()).fold(f64::INFINITY, f64::min);
        let worst = found.iter().map(most).fold(0.0, f64::max);
        for guarantee in guarantees.as_array().unwrap() {
            let l = guarantee["l"].as_f64().unwrap_or(2.5);
            let kept = |class: &BTreeMap<String, f64>| match guarantee["type"].as_str().unwrap() {
                "k_anonymity" => class.values().sum::<f64>() >= 5.0,
                "l_diversity" => most(class) <= 1.0 / l + 1e-12,
                "distinct_l_diversity" => class.len() as f64 >= l,
                "entropy_l_diversity" => entropy(class) >= l - 1e-9,
                "recursive_l_diversity" => {
                    let mut falling: Vec<f64> = class.values().copied().collect();
                    falling.sort_by(|a, b| b.total_cmp(a));
                    falling[0] < 2.0 * falling[1..].iter().sum::<f64>()
                }
                "alpha_k" => most(class) <= 0.6 + 1e-12 && class.values().sum::<f64>() >= 4.0,
                "t_closeness" => distance(class) <= 0.3 + 1e-9,
                other => panic!("{other} is not judged"),
            };
            assert!(found.iter().all(kept), "{guarantee}");
        }
        for rule in manifest["rules"].as_array().unwrap() {
            assert_eq!((&rule["pointer"], &rule["enforced_by"]), (&json!("/method"), &json!({"table": "t1"})));
            let achieved = &rule["achieved"];
            assert_eq!(achieved["smallest_bucket"].as_f64(), Some(smallest));
            if rule["guarantee"]["type"] == "k_anonymity" {
                assert_eq!((&rule["sensitive"], achieved["k"].as_f64()), (&json!([]), Some(smallest)));
                assert!(achieved.get("worst_posterior").is_none());
            } else {
                let share = &achieved["worst_posterior"];
                let share = share["count"].as_f64().unwrap() / share["of"].as_f64().unwrap();
                assert!((share - worst).abs() < 1e-12, "{share} {worst}");
            }
        }
    }
}

#[test]
fn several_sensitive_attributes_or_k_are_exclusive() {
    let input = Original::new(table(&adult()[..]));
    let l = json!({"type": "l_diversity", "l": 2});
    let k = json!({"type": "k_anonymity", "k": 10});
    for (sensitive, guarantees, rules) in [
        (&["occupation", "education"][..], json!([k, l]), 3),
        (&["occupation"][..], json!([k]), 1),
        (&[][..], json!([k]), 1),
    ] {
        let job = input.job(&job(sensitive, guarantees, json!({}))).unwrap();
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([7; 32]));
        let (released, files) = release(&job, &EarlierDisclosures::default(), &streams).unwrap();
        let manifest = serde_json::to_value(&released.manifest).unwrap();
        assert_eq!(
            (&manifest["tables"][0]["protection"], &manifest["tables"][0]["guards"]),
            (&json!("exclusive"), &json!([]))
        );
        assert_eq!(manifest["rules"].as_array().unwrap().len(), rules);
        let (columns, rows) = cells(&files.0["t1.rows.csv"]);
        let known: Vec<&str> = columns.iter().map(String::as_str).filter(|name| !sensitive.contains(name)).collect();
        for attribute in sensitive.iter().filter(|_| rules == 3) {
            assert!(classes(&columns, &rows, &known, attribute).iter().all(|class| most(class) <= 0.5));
        }
        let any = classes(&columns, &rows, &known, known[0]);
        assert!(any.iter().all(|class| class.values().sum::<f64>() >= 10.0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn random_tables_come_out_as_they_should_or_not_at_all(
        rows in prop::collection::vec((prop::option::of(-3i64..9), 0usize..5, 0usize..3), 2..40),
        k in 2u64..5, l in 2u64..4, set in any::<bool>(), relaxed in any::<bool>(),
    ) {
        const JOBS: [&str; 5] = ["\"\"", "a..b", ".", "\"x\"\"y\"", "z"];
        let mut csv = "age,job,s\n".to_owned();
        for (age, job, s) in &rows {
            csv += &format!("{},{},s{s}\n", age.map_or_else(String::new, |age| age.to_string()), JOBS[*job]);
        }
        let input = Original::new(table(csv.as_bytes()));
        let guarantees = json!([{"type": "k_anonymity", "k": k}, {"type": "l_diversity", "l": l}]);
        let document = json!({"method": {"type": "generalize", "quasi_identifiers": ["age", "job"], "sensitive": ["s"],
            "guarantees": guarantees, "cells": if set { "set" } else { "interval" },
            "split": if relaxed { "relaxed" } else { "strict" }}});
        let job = input.job(&document).unwrap();
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([5; 32]));
        let most_frequent = (0..3).map(|s| rows.iter().filter(|row| row.2 == s).count() as u64).max().unwrap();
        let possible = rows.len() as u64 >= k && most_frequent * l <= rows.len() as u64;
        match release(&job, &EarlierDisclosures::default(), &streams) {
            Ok((released, files)) => {
                prop_assert!(possible && released.manifest.verification.verified);
                let (columns, published) = cells(&files.0["t1.rows.csv"]);
                for class in classes(&columns, &published, &["age", "job"], "s") {
                    let size = class.values().sum::<f64>();
                    prop_assert!(size >= k as f64 && most(&class) * l as f64 <= 1.0 + 1e-9);
                }
                // every row is somewhere; a column without values has no range
                if rows.iter().all(|row| row.0.is_none()) {
                    return Ok(());
                }
                let all = json!({"queries": [{"where": []}, {"where": [{"attribute": "age", "from": -3, "to": 8}]},
                    {"where": [{"attribute": "age", "in": [null]}]}]});
                let asked = QuerySet::new(&released.manifest, &all).unwrap();
                let counted = asked.answer(&files, &guardian::control::Control::default()).unwrap();
                prop_assert_eq!(counted[0].estimate, rows.len() as f64);
                prop_assert!((counted[1].estimate + counted[2].estimate - rows.len() as f64).abs() < 1e-6);
            }
            Err(EngineError::Refused(problem)) => {
                let problem_text = problem.to_json("about:blank").to_string();
                prop_assert!(!possible || problem_text.contains("rule-impossible"), "{}", problem_text);
            }
            Err(other) => prop_assert!(false, "{:?}", other),
        }
    }
}

const PEOPLE: &str = "age,price,job,disease\n\
    20,1.5,clerk,flu\n22,2.50,clerk,cold\n24,,\"a..b\",flu\n,7,clerk,cold\n31,8,\"\",flu\n35,9,driver,cold\n";

fn people(cells: &str) -> Value {
    json!({"attributes": {"age": {"publish": true}, "price": {"publish": true}, "job": {"publish": true}},
        "internal": {"utility": [{"count_queries": {"number": 20, "dimensions": 2, "value_fraction": "0.5"}}]},
        "method": {"type": "generalize", "sensitive": ["disease"], "cells": cells,
            "guarantees": [{"type": "l_diversity", "l": 2}]}})
}

fn batch(body: Vec<u8>) -> RecordBatch {
    let mut reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(body)).unwrap().build().unwrap();
    reader.next().unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn cells_are_served_in_every_format() {
    for kind in ["interval", "set"] {
        let server = Server::start().await;
        let dataset = text(&server.upload("name=t&types=price:decimal", PEOPLE).await.ok(201)["id"]);
        let release = server.publish(&dataset, people(kind)).await;
        let part = &release["tables"][0]["parts"][0];
        assert_eq!(part["cells"], json!({"age": kind, "price": kind, "job": kind}));
        assert_eq!(part["types"], json!({"age": "integer", "price": "decimal", "job": "text", "disease": "text"}));
        let path = part_path(&release, "t1", "rows");
        let csv = server.part(&release, "t1", "rows").await;
        let (columns, rows) = cells(csv.as_bytes());
        let page = server.get(&format!("{path}?format=json")).await.ok(200);
        let ndjson = server.get(&format!("{path}?format=ndjson")).await.text();
        let parquet = batch(server.get(&format!("{path}?format=parquet")).await.body.to_vec());
        let lines: Vec<Value> = ndjson.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines.len(), parquet.num_rows(), rows.len()), (6, 6, 6));
        for (at, (row, line)) in rows.iter().zip(&lines).enumerate() {
            assert_eq!(page["rows"][at][0], line["age"]);
            let age = columns.iter().position(|name| name == "age").unwrap();
            if kind == "set" {
                assert_eq!(serde_json::from_str::<Value>(&row[age]).unwrap(), line["age"]);
                let ages = parquet.column(age).as_list::<i32>().value(at);
                let ages = ages.as_primitive::<Int64Type>();
                let held: Vec<Option<i64>> = ages.iter().collect();
                assert_eq!(json!(held), line["age"]);
            } else {
                let ends = parquet.column(age).as_struct();
                let end = |at_end: usize| {
                    let ends = ends.column(at_end).as_primitive::<Int64Type>();
                    ends.is_valid(at).then(|| ends.value(at))
                };
                assert_eq!(json!({"from": end(0), "to": end(1)}), line["age"]);
                let from = end(0).map_or_else(String::new, |from| from.to_string());
                assert_eq!(row[age], format!("{from}..{}", end(1).unwrap()));
            }
        }
        let arrow = server.get(&format!("{path}?format=arrow")).await;
        assert_eq!(arrow.status, 200);
        let counts = server.get(&format!("{path}?view=counts")).await.text();
        let counted: u64 =
            counts.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(counted, 6);
        assert_eq!(server.get(&format!("/v1/releases/{}/archive", text(&release["id"]))).await.status, 200);
        let report = server.get(&format!("/v1/releases/{}/internal-report", text(&release["id"]))).await.ok(200);
        assert!(report["count_queries"].is_object(), "{report:#}");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_are_answered_by_shares_of_boxes() {
    let server = Server::start().await;
    let dataset = server.dataset("age,s\n10,a\n19,b\n20,a\n29,b\n").await;
    let method = json!({"type": "generalize", "quasi_identifiers": ["age"], "sensitive": ["s"],
        "guarantees": [{"type": "l_diversity", "l": 2}]});
    let release = server.publish(&dataset, json!({"method": method})).await;
    assert_eq!(server.part(&release, "t1", "rows").await, "age,s\n10..19,a\n10..19,b\n20..29,a\n20..29,b\n");
    let queries = json!({"queries": [
        {"where": [{"attribute": "age", "from": 15, "to": 24}]},
        {"where": [{"attribute": "age", "in": [12, 13]}, {"attribute": "s", "in": ["a"]}]},
        {"where": [{"attribute": "s", "in": ["b"]}]},
        {"where": [{"attribute": "age", "from": 10, "to": 19}]},
    ]});
    let answers = server.post(&format!("/v1/releases/{}/queries", text(&release["id"])), &queries).await.ok(200);
    assert_eq!(
        answers["answers"],
        json!([
            {"estimate": 2.0, "standard_error": 1.0, "error_model": "multinomial"},
            {"estimate": 0.2, "standard_error": 0.4, "error_model": "multinomial"},
            {"estimate": 2.0, "standard_error": 0.0, "error_model": "exact"},
            {"estimate": 2.0, "standard_error": 0.0, "error_model": "exact"},
        ])
    );
    // anybody may hold it against a rule
    let asked =
        json!({"release": release["id"], "rules": ["age -> s"], "default_guarantee": {"type": "l_diversity", "l": 2}});
    let verified = server.post("/v1/verifications", &asked).await.ok(200);
    assert_eq!(
        (&verified["verified"], &verified["warnings"][0]["type"]),
        (&json!(true), &json!("opaque-cells")),
        "{verified:#}"
    );
    let attack = json!({"attack": "exact_posteriors", "rule": null});
    let path = format!("/v1/releases/{}/attacks", text(&release["id"]));
    server.post(&path, &attack).await.problem(422, "guarantee-unsupported");
    // a generalized table is guarding: what is known may be published beside it, what it protects may not
    let later = json!({"unlisted": "drop", "attributes": {"age": {"publish": true}}, "no_rules_reason": "for a test",
        "method": {"type": "versatile", "rules": []}});
    assert_eq!(server.publish(&dataset, later).await["verification"]["verified"], true);
    let again = json!({"unlisted": "drop", "method": {"type": "generalize", "quasi_identifiers": ["age"], "sensitive": ["s"],
        "cells": "set", "guarantees": [{"type": "l_diversity", "l": 2}]}});
    assert_eq!(kind(&server.refused(&dataset, again).await), "composition-violated");
    // an exclusive one stands alone
    let server = server.anew().await;
    let people = server.dataset(HOSPITAL).await;
    let k = json!({"unlisted": "drop", "method": {"type": "generalize", "quasi_identifiers": ["age", "gender"],
        "guarantees": [{"type": "k_anonymity", "k": 2}]}});
    server.publish(&people, k).await;
    let versatile = |name: &str| {
        json!({"unlisted": "drop", "attributes": {name: {"publish": true}}, "no_rules_reason": "for a test",
            "method": {"type": "versatile", "rules": []}})
    };
    assert_eq!(kind(&server.refused(&people, versatile("age")).await), "composition-violated");
    server.publish(&people, versatile("race")).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_is_pointed_at() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let valid = json!({"type": "generalize", "quasi_identifiers": ["age", "gender"], "sensitive": ["zipcode"],
        "guarantees": [{"type": "l_diversity", "l": 2}]});
    let with = |name: &str, value: Value| {
        let mut method = valid.clone();
        method[name] = value;
        json!({"unlisted": "drop", "method": method})
    };
    let mut raw = with("split", json!("strict"));
    raw["attributes"] = json!({"race": {"publish": true}});
    let mut entropy = with("split", json!("strict"));
    entropy["utility"] = json!(["entropy"]);
    // genders are texts
    let mut kl = with("cells", json!("interval"));
    kl["internal"] = json!({"utility": ["kl"]});
    let guarantees = |guarantee: Value| with("guarantees", json!([guarantee]));
    for (document, pointer, name) in [
        (with("guarantees", json!([])), "/method/guarantees", "vacuous-guarantee"),
        (with("guarantees", json!(3)), "/method/guarantees", "parameter-range"),
        (guarantees(json!({"type": "k_anonymity", "k": 1})), "/method/guarantees/0/k", "vacuous-guarantee"),
        (guarantees(json!({"type": "k_anonymity"})), "/method/guarantees/0/k", "parameter-range"),
        (guarantees(json!({"type": "l_diversity", "l": 1})), "/method/guarantees/0/l", "vacuous-guarantee"),
        (
            guarantees(json!({"type": "rho", "rho1": "0.1", "rho2": "0.5"})),
            "/method/guarantees/0/type",
            "guarantee-unsupported",
        ),
        (guarantees(json!({"type": "thresholds"})), "/method/guarantees/0/type", "guarantee-unsupported"),
        (guarantees(json!({"type": "magic"})), "/method/guarantees/0/type", "parameter-range"),
        (
            with("guarantees", json!([{"type": "k_anonymity", "k": 2}, {"type": "k_anonymity", "k": 3}])),
            "/method/guarantees/1",
            "parameter-range",
        ),
        (with("sensitive", json!([])), "/method/sensitive", "parameter-range"),
        (with("sensitive", json!(["age"])), "/method/quasi_identifiers", "bad-columns"),
        (with("sensitive", json!(["nothing"])), "/method/sensitive/0", "unknown-attribute"),
        (with("quasi_identifiers", json!([])), "/method/quasi_identifiers", "bad-columns"),
        (with("cells", json!("node")), "/method/cells", "bad-columns"),
        (with("cells", json!("box")), "/method/cells", "parameter-range"),
        (with("split", json!("loose")), "/method/split", "parameter-range"),
        (with("rules", json!([])), "/method/rules", "unknown-field"),
        (raw, "/method/quasi_identifiers", "bad-columns"),
        (entropy, "/utility", "guarantee-unsupported"),
        (kl, "/internal/utility", "guarantee-unsupported"),
    ] {
        server.job(&dataset, document).await.fault(pointer, name);
    }
    for guarantees in [json!([{"type": "k_anonymity", "k": 7}]), json!([{"type": "l_diversity", "l": 4}])] {
        let fault = server.job(&dataset, with("guarantees", guarantees)).await.fault("/method", "rule-ineligible");
        assert!(fault["largest_l"].is_u64(), "{fault}");
    }
    let plan = json!({"dataset": dataset, "unlisted": "drop", "method": valid});
    let plan = server.post("/v1/plans", &plan).await.ok(200);
    assert_eq!(
        (&plan["feasible"], &plan["tables"][0]["kind"], &plan["tables"][0]["protection"]),
        (&json!(true), &json!("generalized"), &json!("guarding"))
    );
    let job = server.job(&dataset, json!({"unlisted": "drop", "method": valid})).await.ok(200);
    let mut normal = valid.clone();
    (normal["split"], normal["cells"]) = (json!("strict"), json!("by_type"));
    (normal["functional_dependencies"], normal["assume_unknown"]) = (json!([]), json!([]));
    normal["dependencies"] = json!({"discover": "singles_and_pairs", "tolerance": "0.01"});
    assert_eq!((&job["specification"]["method"], &job["method"]), (&normal, &json!("generalize")));
    server.stop().await;
}

#[test]
fn a_release_is_verified_from_its_folder() {
    let folder = CommandFixture::new(PEOPLE, &people("interval"));
    folder.published("out", &[]);
    assert_eq!(folder.is_verified("out"), [true, true]);
    // a cell that says less, and the digest with it
    let part = folder.path("out/t1.rows.csv");
    let csv = fs::read_to_string(&part).unwrap();
    let changed = csv.replacen("flu", "cold", 1);
    assert_ne!(csv, changed);
    fs::write(&part, changed).unwrap();
    assert!(!folder.is_verified("out")[1]);
}
