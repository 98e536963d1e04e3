//! Tables that protect several attributes: joint values, correlated attributes together, all sensitive ones in one part.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use guardian::ledger::EarlierDisclosures;
use guardian::random::{RandomStreams, ReleaseKey};
use serde_json::{Value, json};

use crate::support::harness::{Client, Server, kind};
use crate::support::library::{Memory, Original, cells, release, some_rows, table, verified};

fn adult() -> GzDecoder<File> {
    GzDecoder::new(File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/adult-7.csv.gz")).unwrap())
}

fn versatile(rules: &[&str], l: u64) -> Value {
    json!({"unlisted": "drop", "method": {"type": "versatile", "rules": rules,
        "default_guarantee": {"type": "l_diversity", "l": l}}})
}

async fn plan(server: &Client, dataset: &str, document: &Value) -> Value {
    let mut document = document.clone();
    document["dataset"] = dataset.into();
    server.post("/v1/plans", &document).await.ok(200)
}

/// The attributes together in one table, unprotected.
fn plain(attributes: &[&str]) -> Value {
    let publish: serde_json::Map<_, _> =
        attributes.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    json!({"unlisted": "drop", "attributes": publish, "no_rules_reason": "asked for by the archive",
        "method": {"type": "versatile", "rules": []}})
}

/// Per bucket, how often each row of a part occurs.
fn buckets(csv: &[u8]) -> BTreeMap<u32, BTreeMap<Vec<String>, u64>> {
    let mut buckets: BTreeMap<u32, BTreeMap<Vec<String>, u64>> = BTreeMap::new();
    for row in cells(csv).1 {
        let label = row[0].parse().unwrap();
        *buckets.entry(label).or_default().entry(row[1..].to_vec()).or_default() += 1;
    }
    buckets
}

/// Publishes Adult in memory, and verifies the release from its manifest, with the original and without.
fn released(document: &Value, key: u8) -> (Value, Memory) {
    let input = Original::new(table(adult()));
    let job = input.job(document).unwrap_or_else(|faults| panic!("{document}: {faults:?}"));
    let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([key; 32]));
    let (released, files) = release(&job, &EarlierDisclosures::default(), &streams).unwrap_or_else(|e| panic!("{e:?}"));
    for with_rows in [false, true] {
        verified(&job, &released.manifest, &files, with_rows);
    }
    (serde_json::to_value(&released.manifest).unwrap(), files)
}

const JOINT: &[&str] = &["age, education -> (occupation & sex)", "marital_status, income -> (occupation & sex)"];

#[test]
fn a_joint_value_is_as_rare_as_asked_for_in_every_bucket() {
    let (manifest, files) = released(&versatile(JOINT, 3), 1);
    let table = &manifest["tables"][0];
    assert_eq!(
        (&table["protection"], &table["parts"][1]["attributes"]),
        (&json!("guarding"), &json!(["occupation", "sex"]))
    );
    let guard = &table["guards"][0];
    assert_eq!((&guard["joint"], &guard["sensitive"]), (&json!(true), &json!(["occupation", "sex"])));
    assert!(!table["parts"][0]["attributes"].as_array().unwrap().contains(&json!("sex")));
    let buckets = buckets(&files.0["t1.sa.csv"]);
    assert!(buckets.len() > 15_000, "{} buckets", buckets.len());
    let mut worst = (0, 1);
    for bucket in buckets.values() {
        let (most, rows) = (*bucket.values().max().unwrap(), bucket.values().sum::<u64>());
        assert!(most * 3 <= rows, "{bucket:?}");
        worst = if most * worst.1 > worst.0 * rows { (most, rows) } else { worst };
    }
    let rule = &manifest["rules"][0];
    assert_eq!((&rule["combination"], &rule["enforced_by"]["guardian"]), (&json!(true), &json!("t1")));
    let declared = &rule["achieved"]["worst_posterior"];
    assert_eq!(declared["count"].as_u64().unwrap() * worst.1, declared["of"].as_u64().unwrap() * worst.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn combination_is_protected_by_its_joint_value() {
    let server = Server::start().await;
    let dataset = server.dataset(some_rows(adult(), 4)).await;
    // neither has a value rare enough: two of three work in offices, two of three are men
    let planned = plan(&server, &dataset, &versatile(JOINT, 3)).await;
    assert_eq!((&planned["feasible"], &planned["rules"][0]["largest_l"]), (&json!(true), &json!(3)), "{planned:#}");
    assert_eq!(planned["tables"][0]["sensitive"], json!(["occupation", "sex"]));
    let manifest = server.publish(&dataset, versatile(JOINT, 3)).await;
    assert_eq!(manifest["verification"]["verified"], true);
    let part = server.part(&manifest, "t1", "sa").await;
    assert!(part.starts_with("bucket,occupation,sex\n"), "{}", &part[..40]);

    // beside it half of the combination may stand nowhere; what is known of it may
    let half = server.refused(&dataset, plain(&["country", "sex"])).await;
    assert_eq!((kind(&half), &half["rule"]["release"]), ("composition-violated", &manifest["id"]));
    let again = server.refused(&dataset, versatile(&["age -> (occupation & sex)"], 2)).await;
    assert_eq!(kind(&again), "composition-violated");
    let known = server.publish(&dataset, plain(&["age", "education", "country"])).await;
    assert_eq!(known["verification"]["verified"], true);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_joint_values_are_refused() {
    let server = Server::start().await;
    let dataset = server.dataset(some_rows(adult(), 4)).await;
    let fault = |problem: &Value| {
        let errors = problem["errors"].as_array().unwrap().clone();
        (kind(&errors[0]).to_owned(), errors[0]["detail"].as_str().unwrap().to_owned(), errors.len())
    };
    let rare = server.refused(&dataset, versatile(&["age -> (occupation & sex)"], 4)).await;
    let (name, detail, _) = fault(&rare);
    assert_eq!((name.as_str(), &rare["errors"][0]["largest_l"]), ("rule-ineligible", &json!(3)), "{detail}");
    let overlap = versatile(&["age -> (occupation & sex)", "education -> (occupation & country)"], 2);
    let planned = plan(&server, &dataset, &overlap).await;
    assert_eq!((&planned["feasible"], &planned["rules"][0]["status"]), (&json!(false), &json!("refused")));
    let (name, detail, faults) = fault(&server.job(&dataset, overlap).await.problem(422, "invalid-specification"));
    assert_eq!((name.as_str(), faults), ("guarantee-unsupported", 2), "{detail}");
    assert!(detail.contains("another combination"), "{detail}");
    server.stop().await;
}

const EACH: &[&str] = &["age, sex -> education", "age, country -> marital_status"];

fn multi_sa(rules: &[&str], l: u64) -> Value {
    let mut document = versatile(rules, l);
    document["method"]["algorithm"] = "multi_sa".into();
    document["attributes"] = json!({"income": {"publish": true}});
    document
}

#[test]
fn attribute_is_protected_given_all_others() {
    let (manifest, files) = released(&multi_sa(EACH, 2), 1);
    assert_eq!(
        manifest["method"],
        json!({"type": "versatile", "algorithm": "multi_sa", "adversary": "without minimality"})
    );
    let [table] = &manifest["tables"].as_array().unwrap()[..] else { panic!("{manifest:#}") };
    let guards = table["guards"].as_array().unwrap();
    assert_eq!(guards.len(), 2);
    assert_eq!(guards[0]["quasi_identifiers"], json!(["age", "country", "marital_status", "income", "sex"]));
    assert_eq!((&guards[0]["sensitive"], &guards[0]["joint"]), (&json!(["education"]), &json!(false)));
    let buckets = buckets(&files.0["t1.sa.csv"]);
    assert!(buckets.len() > 5_000, "{} buckets", buckets.len());
    let mut published = 0;
    for bucket in buckets.values() {
        published += bucket.values().sum::<u64>();
        for axis in 0..2 {
            let mut lines: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
            bucket.iter().for_each(|(cell, &rows)| lines.entry(cell[1 - axis].as_str()).or_default().push(rows));
            for line in lines.values() {
                assert!(line.iter().max().unwrap() * 2 <= line.iter().sum::<u64>(), "{bucket:?}");
            }
        }
    }
    assert_eq!(table["parts"][0]["rows"], published);
    // rows whose value is too frequent beside the other one are in no part, and the manifest does not speak of them
    assert!((40_000..45_222).contains(&published), "{published}");
    assert!(!manifest.to_string().contains("suppressed"));
    assert_eq!(cells(&files.0["t1.qi.csv"]).1.len() as u64, published);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_sensitive_attributes_in_one_part() {
    let server = Server::start().await;
    let dataset = server.dataset(some_rows(adult(), 4)).await;
    let document = multi_sa(EACH, 2);
    let planned = plan(&server, &dataset, &document).await;
    assert_eq!(
        (&planned["feasible"], &planned["tables"][0]["sensitive"]),
        (&json!(true), &json!(["education", "marital_status"]))
    );
    let manifest = server.publish(&dataset, document.clone()).await;
    assert_eq!(manifest["verification"]["verified"], true);
    assert!(server.part(&manifest, "t1", "sa").await.starts_with("bucket,education,marital_status\n"));
    // rows may be missing: beside it nothing is published that shares an attribute
    let plain_refusal = server.refused(&dataset, plain(&["age", "income"])).await;
    assert_eq!((kind(&plain_refusal), &plain_refusal["release"]), ("composition-violated", &manifest["id"]));
    assert_eq!(
        kind(&server.refused(&dataset, multi_sa(&["age -> education", "sex -> marital_status"], 2)).await),
        "composition-violated"
    );
    server.publish(&dataset, plain(&["occupation"])).await;
    let again = server.job(&dataset, document).await.ok(200);
    assert_eq!((&again["reused"], &again["release"]), (&json!(true), &manifest["id"]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_multi_sa_is_refused() {
    let server = Server::start().await;
    let csv = "a,b,c\n1,x,p\n2,x,p\n3,y,q\n4,y,q\n5,z,r\n6,z,r\n";
    let dataset = server.dataset(csv).await;
    let document = |rules: &[&str], guarantee: Value| {
        json!({"unlisted": "drop", "attributes": {"a": {"publish": true, "identifier": false}}, "method": {"type": "versatile",
            "algorithm": "multi_sa", "rules": rules, "default_guarantee": guarantee}})
    };
    let two = json!({"type": "l_diversity", "l": 2});
    let fault = |problem: &Value| kind(&problem["errors"][0]).to_owned();
    // b determines c in too few rows for a dependency: no rows remain
    let empty = document(&["a -> b", "a -> c"], two.clone());
    let planned = plan(&server, &dataset, &empty).await;
    assert_eq!((&planned["feasible"], kind(&planned["problems"][0]["errors"][0])), (&json!(false), "multi-sa-empty"));
    let problem = server.refused(&dataset, empty).await;
    assert_eq!(
        (fault(&problem).as_str(), &problem["errors"][0]["pointer"]),
        ("multi-sa-empty", &json!("/method/algorithm"))
    );
    let mut declared = document(&["a -> b", "a -> c"], two.clone());
    declared["method"]["functional_dependencies"] = json!([{"determinant": ["b"], "dependent": ["c"]}]);
    let refused = |answer: crate::support::harness::Answer| fault(&answer.problem(422, "invalid-specification"));
    assert_eq!(refused(server.job(&dataset, declared).await), "rule-impossible");
    let other = document(&["a -> b", "a -> c"], json!({"type": "distinct_l_diversity", "l": 2}));
    assert_eq!(refused(server.job(&dataset, other).await), "guarantee-unsupported");
    let without_guarding = document(&["a, b -> c", "b, c -> a", "c -> b"], two.clone());
    assert_eq!(refused(server.job(&dataset, without_guarding).await), "guarantee-unsupported");
    // of one attribute it is anatomy
    let manifest = server.publish(&dataset, document(&["a -> b"], two)).await;
    assert_eq!(manifest["tables"][0]["parts"][1]["attributes"], json!(["b"]));
    assert_eq!(manifest["tables"][0]["parts"][1]["rows"], 6);
    server.stop().await;
}
