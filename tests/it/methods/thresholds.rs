//! Thresholds of single values as the guarantee of a rule among others: over HTTP and by the command line, held against their
//! definition; and every refusal.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::folder::{CommandFixture, code, stderr};
use crate::support::harness::{Server, kind, text, without_remedies};

/// 600 patients; one in a hundred has HIV, and one in a hundred hepatitis. The doctor is no function of the disease.
fn patients() -> String {
    let disease = |i: u32| match i % 100 {
        7 => "HIV",
        31 => "hepatitis",
        rest => ["flu", "asthma", "angina", "fracture", "migraine"][(rest % 5) as usize],
    };
    let row = |i: u32| {
        let (age, sex, doctor) = (20 + i % 60, ["f", "m"][(i / 7 % 2) as usize], i * i / 11 % 8);
        format!("{age},{sex},d{doctor},{}\n", disease(i))
    };
    "age,sex,doctor,disease\n".to_owned() + &(0..600).map(row).collect::<String>()
}

fn explicit() -> Value {
    json!({"type": "thresholds", "explicit": {"HIV": "0.05", "hepatitis": "1/10"}, "otherwise": "0.6"})
}

/// What a value may take: a fraction.
fn share(value: &str) -> (u64, u64) {
    match value {
        "HIV" => (1, 20),
        "hepatitis" => (1, 10),
        _ => (3, 5),
    }
}

fn versatile(rules: Value) -> Value {
    json!({"method": {"type": "versatile", "rules": rules, "default_guarantee": {"type": "l_diversity", "l": 2}}})
}

fn both() -> Value {
    versatile(json!([
        {"quasi_identifiers": ["age", "sex"], "sensitive": ["disease"], "guarantee": explicit()},
        "sex, disease -> doctor",
    ]))
}

/// Holds the sensitive part of a table against thresholds; gives the sizes of its buckets.
fn judge(csv: &str, share: impl Fn(&str) -> (u64, u64)) -> Vec<u64> {
    let mut buckets: BTreeMap<u64, BTreeMap<String, u64>> = BTreeMap::new();
    for row in csv::Reader::from_reader(csv.as_bytes()).records() {
        let row = row.unwrap();
        *buckets.entry(row[0].parse().unwrap()).or_default().entry(row[1].to_owned()).or_default() += 1;
    }
    let sizes = buckets.values().map(|bucket| bucket.values().sum::<u64>());
    for (bucket, size) in buckets.values().zip(sizes.clone()) {
        for (value, count) in bucket {
            let (a, b) = share(value);
            assert!(count * b <= a * size, "{count} of {size}, and {a}/{b} are allowed");
        }
    }
    sizes.collect()
}

/// The table that protects an attribute.
fn protecting<'m>(manifest: &'m Value, sensitive: &str) -> &'m Value {
    let mut tables = manifest["tables"].as_array().unwrap().iter();
    tables
        .find(|table| table["guards"].as_array().unwrap().iter().any(|guard| guard["sensitive"][0] == sensitive))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_may_put_a_threshold_on_each_value() {
    let mut server = Server::start().await;
    for algorithm in ["uad", "gd", "auto"] {
        let mut document = both();
        document["method"]["algorithm"] = algorithm.into();
        server = server.anew().await;
        let dataset = server.dataset(patients()).await;
        let mut plan = document.clone();
        plan["dataset"] = dataset.as_str().into();
        let planned = server.post("/v1/plans", &plan).await.ok(200);
        assert_eq!(planned["feasible"], true, "{planned:#}");
        let release = server.publish(&dataset, document).await;
        let table = protecting(&release, "disease");
        let guarantee = &table["guards"][0]["guarantees"][0];
        assert_eq!((&guarantee["type"], &guarantee["least"]), (&json!("thresholds"), &json!("0.05")));
        let sizes = judge(&server.part(&release, &text(&table["name"]), "sa").await, share);
        // HIV stands in buckets of at least twenty rows, most others in small ones
        assert!(sizes.iter().any(|size| *size >= 20) && sizes.iter().any(|size| *size < 10), "{sizes:?}");
        let declared = json!({"disease": [{"explicit": {"HIV": "0.05", "hepatitis": "0.1"}, "otherwise": "0.6"}]});
        assert_eq!(release["thresholds"], declared);
        let rule = &release["rules"][0];
        assert_eq!((&rule["pointer"], &rule["guarantee"]), (&json!("/method/rules/0"), guarantee));
        assert!(rule["achieved"]["worst_posterior"]["count"].is_u64());
    }
    server = server.anew().await;
    let dataset = server.dataset(patients()).await;

    // in the normal form the thresholds stand whole, and the same once more is the same release
    let release = server.publish(&dataset, both()).await;
    let again = server.job(&dataset, both()).await.ok(200);
    assert_eq!((&again["reused"], &again["release"]), (&json!(true), &release["id"]));
    let written = &again["specification"]["method"]["rules"][0]["guarantee"];
    assert_eq!((&written["explicit"]["hepatitis"], &written["otherwise"]), (&json!("0.1"), &json!("0.6")));

    // the release verifies by itself, and against its original; a stricter map does not hold
    let verified = server
        .post(
            "/v1/verifications",
            &json!({"release": release["id"], "rules": both()["method"]["rules"],
        "default_guarantee": {"type": "l_diversity", "l": 2}}),
        )
        .await
        .ok(200);
    assert_eq!(verified["verified"], true, "{verified:#}");
    let mut rules = both()["method"]["rules"].clone();
    rules[0]["guarantee"]["explicit"]["HIV"] = "0.02".into();
    let verified = server
        .post(
            "/v1/verifications",
            &json!({"release": release["id"], "rules": rules,
        "default_guarantee": {"type": "l_diversity", "l": 2}}),
        )
        .await
        .ok(200);
    assert_eq!((&verified["verified"], &verified["rules"][0]["holds"]), (&json!(false), &json!(false)), "{verified:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_thresholds_and_other_guarantees_meet_in_one_table() {
    let server = Server::start().await;
    let dataset = server.dataset(patients()).await;
    // for the same attribute and other known attributes; the stricter bound applies to both
    let mut linear = json!({"type": "thresholds", "linear": {"theta": "3", "c": "0.1"}});
    linear["linear"]["overrides"] = json!({"HIV": "0.04"});
    let release = server
        .publish(
            &dataset,
            versatile(json!([
                {"quasi_identifiers": ["age"], "sensitive": ["disease"], "guarantee": explicit()},
                {"quasi_identifiers": ["age", "sex"], "sensitive": ["disease"], "guarantee": linear},
                {"quasi_identifiers": ["sex", "doctor"], "sensitive": ["disease"], "guarantee": {"type": "alpha_k", "alpha": "0.5", "k": 12}},
            ])),
        )
        .await;
    let tables: Vec<&Value> =
        release["tables"].as_array().unwrap().iter().filter(|table| table["kind"] == "bucketized").collect();
    assert!(!tables.is_empty(), "{release:#}");
    for table in tables {
        let guarantees = table["guards"][0]["guarantees"].as_array().unwrap();
        let words: Vec<String> = guarantees.iter().map(|guarantee| text(&guarantee["type"])).collect();
        let alpha = words.iter().any(|word| word == "alpha_k");
        let bounds = guarantees.iter().filter(|guarantee| guarantee["type"] == "thresholds");
        let both = bounds.clone().count() == 2;
        let sizes = judge(&server.part(&release, &text(&table["name"]), "sa").await, |value| {
            let (a, b) = if both && value == "HIV" { (1, 25) } else { share(value) };
            if alpha && a * 2 > b { (1, 2) } else { (a, b) }
        });
        assert!(!alpha || sizes.iter().all(|size| *size >= 12), "{sizes:?}");
    }
    assert_eq!(release["thresholds"]["disease"].as_array().unwrap().len(), 2);

    // anatomy takes them too; uniform ones are a diversity
    let server = server.anew().await;
    let dataset = server.dataset(patients()).await;
    let anatomy = |guarantee: Value| {
        json!({"unlisted": "drop", "attributes": {"age": {"publish": true}},
            "method": {"type": "anatomy", "sensitive": "disease", "guarantee": guarantee}})
    };
    let release = server.publish(&dataset, anatomy(explicit())).await;
    judge(&server.part(&release, "t1", "sa").await, share);
    let server = server.anew().await;
    let dataset = server.dataset(patients()).await;
    let release = server.publish(&dataset, anatomy(json!({"type": "thresholds", "uniform": {"l": 3}}))).await;
    assert_eq!(release["rules"][0]["guarantee"], json!({"type": "l_diversity", "l": 3}));
    assert_eq!(release["thresholds"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn thresholds_of_rules_are_refused_with_their_reason() {
    let server = Server::start().await;
    let dataset = server.dataset(patients()).await;
    let rule = |guarantee: Value| {
        versatile(json!([{"quasi_identifiers": ["age"], "sensitive": ["disease"], "guarantee": guarantee}]))
    };
    let of = |thresholds: Value| {
        let mut guarantee = thresholds;
        guarantee["type"] = "thresholds".into();
        let mut document = rule(guarantee);
        document["unlisted"] = "drop".into();
        document
    };
    let found = [
        (of(json!({"explicit": {"HIV": "0.05"}})), "threshold-missing"),
        (of(json!({"explicit": {"HIV": "0.005"}, "otherwise": "0.6"})), "rule-ineligible"),
        (of(json!({"linear": {"theta": "1000", "c": "0.5"}})), "vacuous-guarantee"),
    ];
    for (document, name) in found {
        let problem = server.refused(&dataset, document.clone()).await;
        let fault = &problem["errors"][0];
        assert_eq!(fault["pointer"], "/method/rules/0", "{problem:#}");
        assert!(text(&fault["type"]).ends_with(name), "{problem:#}");
        if name == "threshold-missing" {
            let url = format!("/v1/datasets/{dataset}/attributes/disease/values");
            assert_eq!((&fault["missing"], &fault["values_url"]), (&json!(6), &json!(url)));
        }
        // the answer contains no value of the data
        assert!(!problem.to_string().contains("hepatitis"), "{problem:#}");
        let mut plan = document;
        plan["dataset"] = dataset.as_str().into();
        let planned = server.post("/v1/plans", &plan).await.ok(200);
        assert_eq!(planned["feasible"], false, "{planned:#}");
        let known = &planned["problems"][0]["errors"][0];
        assert_eq!(without_remedies(known), without_remedies(fault), "{planned:#}");
    }

    let at = "/method/rules/0/guarantee";
    let mut combination = both();
    combination["method"]["rules"] =
        json!([{"quasi_identifiers": ["age"], "sensitive_combination": ["sex", "disease"], "guarantee": explicit()}]);
    let mut unlikely = both();
    unlikely["attributes"] = json!({"disease": {"excludable": ["flu"]}});
    let declared = [
        (of(json!({"explicit": {"HIV": "1"}, "otherwise": "1"})), at.to_owned(), "vacuous-guarantee"),
        (of(json!({"explicit": {"HIV": "0"}})), format!("{at}/explicit"), "parameter-range"),
        (of(json!({"uniform": {"l": 2}, "linear": {"theta": "8", "c": "0.02"}})), at.to_owned(), "parameter-range"),
        (of(json!({"explicit": {"HIV": "0.1"}, "k": 3})), format!("{at}/k"), "unknown-field"),
        (of(json!({})), at.to_owned(), "parameter-range"),
        (combination, "/method/rules/0".to_owned(), "guarantee-unsupported"),
        (unlikely, "/attributes/disease/excludable".to_owned(), "guarantee-unsupported"),
    ];
    for (mut document, pointer, name) in declared {
        document["dataset"] = dataset.as_str().into();
        let problem = server.post("/v1/jobs", &document).await.problem(422, "invalid-specification");
        let faults = problem["errors"].as_array().unwrap();
        assert!(
            faults.iter().any(|fault| fault["pointer"] == pointer.as_str() && kind(fault) == name),
            "{pointer} {name}: {problem:#}"
        );
    }
}

/// Every rule writes its thresholds out, and each column keeps them for all its values: a short document must not become a large one.
#[tokio::test(flavor = "multi_thread")]
async fn thresholds_are_bounded_over_all_rules() {
    let server = Server::start().await;
    let dataset = server.dataset(patients()).await;
    let of_values = |values: usize, more: &str| {
        let mut explicit: BTreeMap<String, &str> = (0..values).map(|value| (format!("v{value}"), "0.5")).collect();
        explicit.insert(more.to_owned(), "0.4");
        json!({"type": "thresholds", "explicit": explicit, "otherwise": "0.6"})
    };
    let rule =
        |guarantee: Value| json!({"quasi_identifiers": ["age"], "sensitive": ["disease"], "guarantee": guarantee});
    let by_default = |values: usize, rules: usize| {
        let rules = vec!["age -> disease"; rules];
        json!({"method": {"type": "versatile", "rules": rules, "default_guarantee": of_values(values - 1, "w")}})
    };
    let different = |number: usize| versatile((0..number).map(|at| rule(of_values(0, &format!("w{at}")))).collect());
    let hostile = [
        (by_default(100_000, 10_000), "/method/rules/1", "100000"),
        (by_default(20_000, 6), "/method/rules/5", "100000"),
        (
            versatile(json!([{"quasi_identifiers": ["age"], "sensitive": ["disease", "doctor"],
                              "guarantee": of_values(50_000, "w")}])),
            "/method/rules/0",
            "100000",
        ),
        (different(17), "/method/rules/16", "16 different"),
        (different(10_000), "/method/rules/16", "16 different"),
    ];
    for (mut document, pointer, allowed) in hostile {
        document["dataset"] = dataset.as_str().into();
        let problem = server.post("/v1/jobs", &document).await.problem(422, "invalid-specification");
        let mut faults = problem["errors"].as_array().unwrap().iter();
        let fault =
            faults.find(|fault| fault["pointer"] == pointer).unwrap_or_else(|| panic!("{pointer}: {problem:#}"));
        assert_eq!(kind(fault), "parameter-range");
        assert!(text(&fault["allowed"]).contains(allowed), "{fault:#}");
    }
    for mut document in [by_default(20_000, 5), different(16)] {
        document["dataset"] = dataset.as_str().into();
        document["unlisted"] = "drop".into();
        // within the bound; but patients have none of these values
        let planned = server.post("/v1/plans", &document).await.ok(200);
        let faults = planned["problems"][0]["errors"].as_array().unwrap();
        assert!(faults.iter().all(|fault| kind(fault) == "threshold-unused"), "{faults:?}");
    }
}

/// A misspelled value would leave the one that was meant with the threshold of others.
#[tokio::test(flavor = "multi_thread")]
async fn a_threshold_of_a_value_that_does_not_occur_is_refused() {
    let server = Server::start().await;
    let dataset = server.dataset(patients()).await;
    let mut document = both();
    document["method"]["rules"][0]["guarantee"]["explicit"]["hvi"] = "0.01".into();
    let mut plan = document.clone();
    plan["dataset"] = dataset.as_str().into();
    let planned = server.post("/v1/plans", &plan).await.ok(200);
    let fault = &planned["problems"][0]["errors"][0];
    assert_eq!((kind(fault), &fault["pointer"]), ("threshold-unused", &json!("/method/rules/0")), "{planned:#}");
    let url = format!("/v1/datasets/{dataset}/attributes/disease/values");
    assert_eq!((&fault["attribute"], &fault["unused"]), (&json!("disease"), &json!(1)));
    assert_eq!(fault["values_url"], url);
    // who plans may inspect
    assert!(text(&fault["detail"]).contains("\"hvi\" (nearest: \"HIV\")"), "{fault:#}");

    // the problem of a job is stored, and read without that scope
    let problem = server.refused(&dataset, document.clone()).await;
    let refused = &problem["errors"][0];
    assert_eq!((kind(refused), &refused["unused"]), ("threshold-unused", &json!(1)), "{problem:#}");
    assert!(text(&refused["detail"]).contains("datasets:inspect"), "{problem:#}");
    assert!(!problem.to_string().contains("HIV"), "{problem:#}");

    let folder = CommandFixture::new(patients(), &document);
    let published = folder.publish("out", &[]);
    let said = stderr(&published);
    assert_eq!(code(&published), 3, "{said}");
    assert!(said.contains("threshold-unused") && said.contains("HIV"), "{said}");
    assert!(!folder.path("out").exists());
}

#[test]
fn the_command_line_publishes_and_verifies_thresholds() {
    let folder = CommandFixture::new(patients(), &both());
    let manifest = folder.published("out", &[]);
    assert_eq!(folder.is_verified("out"), [true, true]);
    // what is promised can be neither loosened nor left out
    let changes: [fn(&mut Value); 3] = [
        |manifest| manifest["thresholds"]["disease"][0]["otherwise"] = "0.9".into(),
        |manifest| manifest["thresholds"] = json!({}),
        |manifest| manifest["rules"][0]["guarantee"]["most"] = "0.7".into(),
    ];
    folder.assert_refuted("out", &manifest, &changes);
}
