//! Persons with several rows: what is promised is kept of persons, held against the table they came from; and every refusal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use crate::support::folder::{CommandFixture, code};
use crate::support::harness::{Server, patched, text};

/// 240 visits of 90 patients, who have one to three each.
fn visits() -> String {
    let mut rows = String::from("patient,age,ward,disease\n");
    let mut visit = 0_u32;
    for patient in 0..90_u32 {
        for _ in 0..=(patient * 7 + patient / 5) % 3 {
            let disease = ["flu", "asthma", "angina", "fracture", "migraine", "HIV", "gout", "burn", "cut"]
                [(visit * 5 % 9) as usize];
            rows += &format!("p{patient},{},w{},{disease}\n", 20 + patient % 37, visit * visit % 4);
            visit += 1;
        }
    }
    rows
}

/// Uploads the visits, of which no patient has more than three.
async fn uploaded(server: &Server) -> String {
    let answer = server.upload("subject=patient&max_rows_per_subject=3", visits()).await.ok(201);
    assert_eq!((&answer["subject"], &answer["max_rows_per_subject"]), (&json!("patient"), &json!(3)));
    text(&answer["id"])
}

fn anatomy(guarantee: Value) -> Value {
    json!({"attributes": {"patient": {"drop": true}, "age": {"publish": true}, "ward": {"publish": true}},
        "method": {"type": "anatomy", "sensitive": "disease", "guarantee": guarantee}})
}

/// Per bucket, how often each value of the last column stands in it.
fn buckets(csv: &str) -> BTreeMap<u64, BTreeMap<String, u64>> {
    let mut buckets: BTreeMap<u64, BTreeMap<String, u64>> = BTreeMap::new();
    for row in csv::Reader::from_reader(csv.as_bytes()).records() {
        let row = row.unwrap();
        *buckets.entry(row[0].parse().unwrap()).or_default().entry(row[row.len() - 1].to_owned()).or_default() += 1;
    }
    buckets
}

#[tokio::test(flavor = "multi_thread")]
async fn guarantees_hold_of_persons() {
    let mut server = Server::start().await;
    let unit = json!({"subject": "patient", "max_rows": 3});
    let declared = [
        (json!({"type": "l_diversity", "l": 2}), json!({"type": "l_diversity", "l": 6}), (1, 6), 6),
        (
            json!({"type": "alpha_k", "alpha": "0.5", "k": 4}),
            json!({"type": "alpha_k", "alpha": "1/6", "k": 10}),
            (1, 6),
            10,
        ),
    ];
    for (asked, enforced, (a, b), least) in declared {
        server = server.anew().await;
        let dataset = uploaded(&server).await;
        let release = server.publish(&dataset, anatomy(asked.clone())).await;
        assert_eq!(release["unit"], unit);
        let rule = &release["rules"][0];
        assert_eq!((&rule["guarantee"], &rule["enforced"]), (&asked, &enforced));
        assert_eq!(release["tables"][0]["guards"][0]["guarantees"], json!([enforced]));
        for bucket in buckets(&server.part(&release, "t1", "sa").await).values() {
            let size: u64 = bucket.values().sum();
            assert!(size >= least && bucket.values().all(|count| count * b <= a * size), "{bucket:?}");
        }
        // what is not published says nothing
        assert!(!release["tables"].to_string().contains("patient"), "{release:#}");
    }

    // thresholds of single values, of a rule and of buckets of their own
    let thresholds = json!({"explicit": {"HIV": "0.4"}, "otherwise": "0.6"});
    let mut guarantee = thresholds.clone();
    guarantee["type"] = "thresholds".into();
    let bucketize = json!({"attributes": {"patient": {"drop": true}, "age": {"publish": true}, "ward": {"publish": true}},
        "method": {"type": "bucketize", "sensitive": "disease", "thresholds": thresholds}});
    for document in [anatomy(guarantee), bucketize] {
        server = server.anew().await;
        let dataset = uploaded(&server).await;
        let release = server.publish(&dataset, document).await;
        let rule = &release["rules"][0];
        assert_eq!(
            (&rule["guarantee"]["least"], &rule["guarantee"]["most"]),
            (&json!("0.4"), &json!("0.6")),
            "{rule:#}"
        );
        assert_eq!((&rule["enforced"]["least"], &rule["enforced"]["most"]), (&json!("2/15"), &json!("0.2")));
        for bucket in buckets(&server.part(&release, "t1", "sa").await).values() {
            let size: u64 = bucket.values().sum();
            for (value, count) in bucket {
                assert!(if value == "HIV" { count * 15 <= 2 * size } else { count * 5 <= size }, "{value} {bucket:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn decompositions_hold_of_persons() {
    let server = Server::start().await;
    // one to three visits of each of 90 patients
    let mut rows = String::from("patient,age,disease,cost\n");
    for (visit, patient) in (0..90_u32).flat_map(|p| (0..=p % 3).map(move |_| p)).enumerate() {
        rows += &format!("p{patient},{},d{},{}\n", 20 + patient % 37, visit % 9, 100 * (visit * 7 % 12));
    }
    let query = "subject=patient&max_rows_per_subject=3";
    let dataset = text(&server.upload(query, rows).await.ok(201)["id"]);
    let document = |l: Value| {
        json!({"attributes": {"patient": {"drop": true}, "age": {"publish": true}},
            "method": {"type": "decompose", "sensitive": ["disease", "cost"], "primary": "disease", "l": l, "breaches": "report"}})
    };
    let problem = server.job(&dataset, document(json!({"disease": 4}))).await.problem(422, "invalid-specification");
    let fault = &problem["errors"][0];
    assert_eq!((&fault["requested"], &fault["largest_l"]), (&json!("4"), &json!(3)), "{problem:#}");
    // without a declared guarantee, the largest that rows satisfy
    let release = server.publish(&dataset, document(json!({"cost": 2}))).await;
    assert_eq!(release["unit"], json!({"subject": "patient", "max_rows": 3}));
    let of = |l: u64| json!({"type": "l_diversity", "l": l});
    for (rule, (declared, enforced)) in release["rules"].as_array().unwrap().iter().zip([(3, 9), (2, 6)]) {
        assert_eq!((&rule["guarantee"], &rule["enforced"]), (&of(declared), &of(enforced)), "{rule:#}");
    }
    assert_eq!(release["method_details"]["l"], json!({"disease": 9, "cost": 6}));
    for bucket in buckets(&server.part(&release, "t1", "primary").await).values() {
        let size: u64 = bucket.values().sum();
        assert!(bucket.values().all(|count| count * 9 <= size), "{bucket:?}");
    }
    for bucket in buckets(&server.part(&release, "t1", "values1").await).values() {
        assert!(bucket.len() >= 6, "{bucket:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_above_all_rows_is_refused_in_persons() {
    let server = Server::start().await;
    let dataset = uploaded(&server).await;
    let document = |k: usize| {
        json!({"attributes": {"patient": {"drop": true}, "disease": {"drop": true}, "age": {"publish": true}, "ward": {"publish": true}},
            "method": {"type": "generalize", "quasi_identifiers": ["age", "ward"], "sensitive": [], "cells": "interval",
                "guarantees": [{"type": "k_anonymity", "k": k}]}})
    };
    // k persons have more than three times k - 1 rows
    let rows = visits().lines().count() - 1;
    let largest = (rows - 1) / 3 + 1;
    let problem = server.job(&dataset, document(largest + 1)).await.problem(422, "invalid-specification");
    let fault = &problem["errors"][0];
    let asked = (largest + 1).to_string();
    assert_eq!((&fault["requested"], &fault["largest_l"]), (&json!(asked), &json!(largest)), "{problem:#}");
    let said = format!(
        "the table has {rows} rows, fewer than a class of {asked} needs where each is one patient with at most 3 rows"
    );
    assert_eq!(fault["detail"], said.as_str());
    server.publish(&dataset, document(largest)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sliced_table_is_refused_in_persons() {
    let server = Server::start().await;
    let dataset = uploaded(&server).await;
    let columns = json!({"explicit": [["age"], ["ward"], ["disease"]]});
    let document = json!({"attributes": {"patient": {"drop": true}}, "method": {"type": "slicing", "sensitive": "disease",
        "columns": columns, "guarantee": {"type": "l_diversity", "l": 4}}});
    let problem = server.job(&dataset, document.clone()).await.problem(422, "invalid-specification");
    let fault = &problem["errors"][0];
    assert!(text(&fault["detail"]).ends_with("; for each patient with at most 3 rows, l is at most 3"), "{problem:#}");
    let remedied = patched(&document, &fault["remedies"][0]["patch"]);
    assert_eq!(remedied["method"]["guarantee"]["l"], 3, "{problem:#}");
    server.publish(&dataset, remedied).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn classes_have_enough_persons() {
    let server = Server::start().await;
    let dataset = uploaded(&server).await;
    let document = json!({"attributes": {"patient": {"drop": true}, "disease": {"drop": true}, "age": {"publish": true}, "ward": {"publish": true}},
        "method": {"type": "generalize", "quasi_identifiers": ["age", "ward"], "sensitive": [], "cells": "interval",
            "guarantees": [{"type": "k_anonymity", "k": 5}]}});
    let release = server.publish(&dataset, document).await;
    let rule = &release["rules"][0];
    assert_eq!(
        (&rule["guarantee"], &rule["enforced"]),
        (&json!({"type": "k_anonymity", "k": 5}), &json!({"type": "k_anonymity", "k": 13}))
    );
    let rows = server.part(&release, "t1", "rows").await;
    let mut classes: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut persons: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for row in csv::Reader::from_reader(rows.as_bytes()).records() {
        let row = row.unwrap();
        *classes.entry((row[0].to_owned(), row[1].to_owned())).or_default() += 1;
    }
    // an interval holds both its ends
    let within = |cell: &str, value: &str| {
        let (from, to) = cell.split_once("..").unwrap();
        match (from.parse::<i64>(), to.parse::<i64>(), value.parse::<i64>()) {
            (Ok(from), Ok(to), Ok(value)) => from <= value && value <= to,
            _ => from <= value && value <= to,
        }
    };
    for row in csv::Reader::from_reader(visits().as_bytes()).records() {
        let row = row.unwrap();
        for class in classes.keys().filter(|(age, ward)| within(age, &row[1]) && within(ward, &row[2])) {
            persons.entry(class.clone()).or_default().insert(row[0].to_owned());
        }
    }
    assert!(classes.len() > 2, "{classes:?}");
    assert!(classes.keys().all(|class| persons[class].len() >= 5), "{persons:?}");
    assert!(classes.values().all(|rows| *rows >= 13));
}

#[tokio::test(flavor = "multi_thread")]
async fn guarantee_without_person_definition_is_refused() {
    let server = Server::start().await;
    let upload = async |query: &str, body: String| server.upload(query, body).await;
    upload("subject=patient", visits()).await.problem(400, "malformed-request");
    upload("max_rows_per_subject=3", visits()).await.problem(400, "malformed-request");
    upload("subject=patient&max_rows_per_subject=0", visits()).await.problem(400, "malformed-request");
    upload("subject=person&max_rows_per_subject=3", visits()).await.problem(400, "malformed-request");
    let problem = upload("subject=patient&max_rows_per_subject=2", visits()).await.problem(422, "upload-malformed");
    assert_eq!((&problem["column"], &problem["limit"], &problem["found"]), (&json!("patient"), &json!(2), &json!(3)));
    let without_patient = visits() + ",30,w1,flu\n";
    let problem =
        upload("subject=patient&max_rows_per_subject=3", without_patient).await.problem(422, "upload-malformed");
    assert_eq!(problem["column"], "patient");

    let dataset = uploaded(&server).await;
    for guarantee in [
        json!({"type": "distinct_l_diversity", "l": 3}),
        json!({"type": "entropy_l_diversity", "l": 2}),
        json!({"type": "recursive_l_diversity", "c": 2, "l": 2}),
        json!({"type": "t_closeness", "t": "0.3"}),
        json!({"type": "rho", "rho1": "0.1", "rho2": "0.5"}),
        json!({"type": "delta", "distance": "max", "b": "0.3"}),
    ] {
        server.job(&dataset, anatomy(guarantee)).await.fault("/method", "guarantee-unsupported");
    }
    // the largest l is one of persons
    let mut document = anatomy(json!({"type": "l_diversity", "l": 4}));
    let problem = server.job(&dataset, document.clone()).await.problem(422, "invalid-specification");
    let fault = &problem["errors"][0];
    assert_eq!((&fault["requested"], &fault["largest_l"]), (&json!("4"), &json!(3)), "{problem:#}");
    // the one who is protected is not published
    document["attributes"]["patient"] = json!({"publish": true});
    document["method"]["guarantee"]["l"] = 2.into();
    server.job(&dataset, document).await.fault("/attributes/patient", "identifier-published");
    // of whom there is one row each, rows are persons
    let one = "patient,age,disease\n".to_owned()
        + &(0..40).map(|i| format!("p{i},{},d{}\n", 20 + i % 9, i % 4)).collect::<String>();
    let answer = server.upload("subject=patient&max_rows_per_subject=1", one).await.ok(201);
    let document = json!({"attributes": {"patient": {"drop": true}, "age": {"publish": true}},
        "method": {"type": "anatomy", "sensitive": "disease", "guarantee": {"type": "distinct_l_diversity", "l": 3}}});
    let release = server.publish(&text(&answer["id"]), document).await;
    assert_eq!(
        (&release["unit"], &release["rules"][0]["enforced"]),
        (&json!({"subject": "patient", "max_rows": 1}), &Value::Null)
    );
}

#[test]
fn the_command_line_publishes_and_verifies_persons() {
    let folder = CommandFixture::new(visits(), &anatomy(json!({"type": "l_diversity", "l": 2})));
    let unit = |most: &'static str| ["--subject", "patient", "--max-rows-per-subject", most];
    assert_eq!(code(&folder.publish("none", &unit("2"))), 3);
    let manifest = folder.published("out", &unit("3"));
    assert_eq!(folder.is_verified("out"), [true, true]);
    // neither more may be promised than rows keep, nor to other persons
    let changes: [fn(&mut Value); 4] = [
        |manifest| manifest["rules"][0]["guarantee"]["l"] = 3.into(),
        |manifest| manifest["rules"][0]["enforced"] = Value::Null,
        |manifest| manifest["unit"]["max_rows"] = 2.into(),
        |manifest| manifest["unit"] = "row".into(),
    ];
    folder.assert_refuted("out", &manifest, &changes);

    // a person with more rows than the unit says refutes the release; it is no matter of how the command was called
    let answered = |rows: String| {
        fs::write(folder.path("other.csv"), rows).unwrap();
        let answer = folder.verify("out", &["--json", "--original", folder.path("other.csv").to_str().unwrap()]);
        let summary: Value = serde_json::from_slice(&answer.stdout).unwrap();
        let unit = summary["checks"].as_array().unwrap().iter().find(|check| check["check"] == "unit").unwrap().clone();
        (answer.status.code(), summary["verified"].clone(), unit["passed"].clone(), unit["detail"].clone())
    };
    assert_eq!(answered(visits()), (Some(0), json!(true), json!(true), Value::Null));
    let crowded = answered(visits().replace("p3,", "p2,"));
    assert_eq!(crowded, (Some(1), json!(false), json!(false), json!("a subject has more than 3 rows")));
    let without_subject = answered(visits().replace("p3,", ","));
    assert_eq!(without_subject, (Some(1), json!(false), json!(false), json!("a row has no subject")));
}

#[tokio::test(flavor = "multi_thread")]
async fn requirements_on_a_join_hold_of_persons() {
    let server = Server::start().await;
    let dataset = uploaded(&server).await;
    let asked = |y: Value, measure: Value| {
        json!({"attributes": {"patient": {"drop": true}}, "unlisted": "drop",
            "method": {"type": "sequential", "publish": ["age", "disease"],
                "requirements": [{"x": ["new.age"], "y": y, "measure": measure}]}})
    };
    let rows = json!(["new.#key"]);
    let release = server.publish(&dataset, asked(rows, json!({"type": "xy_anonymity", "k": 3}))).await;
    let requirement = &release["method_details"]["requirements"][0];
    // two persons have at most six rows
    assert_eq!(requirement["measure"]["k"], 7);
    assert_eq!(release["unit"], json!({"subject": "patient", "max_rows": 3}));
    let visits = visits();
    let patients = |from: u32, to: u32| {
        let of = visits.lines().skip(1).filter_map(|line| {
            let (patient, rest) = line.split_once(',')?;
            let age: u32 = rest.split(',').next()?.parse().ok()?;
            (from..=to).contains(&age).then_some(patient)
        });
        of.collect::<BTreeSet<_>>().len()
    };
    let part = server.part(&release, "t1", "rows").await;
    let ages: BTreeSet<&str> = part.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    assert!(ages.len() > 2, "{ages:?}");
    for age in ages {
        let (from, to) = age.split_once("..").unwrap_or((age, age));
        assert!(patients(from.parse().unwrap(), to.parse().unwrap()) >= 3, "{age}");
    }
    let share = |y: Value| asked(y, json!({"type": "xy_linkability", "h": "0.9"}));
    let plan = |mut document: Value| {
        document["dataset"] = dataset.clone().into();
        document
    };
    let planned = server.post("/v1/plans", &plan(share(json!(["new.disease"])))).await.ok(200);
    assert_eq!(planned["method_details"]["requirements"][0]["measure"]["h"], json!("0.3"), "{planned:#}");
    for document in [
        asked(json!(["new.disease"]), json!({"type": "xy_anonymity", "k": 2})),
        asked(json!(["new.#key", "new.disease"]), json!({"type": "xy_anonymity", "k": 2})),
    ] {
        server.job(&dataset, document).await.fault("/method/requirements/0/measure", "guarantee-unsupported");
    }
    let most = json!({"type": "xy_anonymity", "k": u64::MAX});
    server
        .job(&dataset, asked(json!(["new.#key"]), most))
        .await
        .fault("/method/requirements/0/measure", "parameter-range");
    server.stop().await;
}
