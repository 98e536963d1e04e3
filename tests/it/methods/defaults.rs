//! What a document publishes that names no options: on Adult and the hospital table, through the binary.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::harness::{Answer, Client, Server, guardian, run};

/// A release by the command line.
struct Published {
    folder: tempfile::TempDir,
    manifest: Value,
    internal: Value,
}

impl Published {
    fn part(&self, file: &str) -> String {
        fs::read_to_string(self.folder.path().join("out").join(file)).unwrap()
    }

    fn notice(&self, kind: &str) -> Option<&str> {
        notice(&self.manifest, kind)
    }
}

/// The detail of the notice of a kind in a plan or manifest.
fn notice<'a>(document: &'a Value, kind: &str) -> Option<&'a str> {
    let mut notices = document["warnings"].as_array().unwrap().iter();
    notices.find(|notice| notice["type"] == kind).map(|notice| notice["detail"].as_str().unwrap())
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn publish(input: &Path, specification: &Value, key: &str) -> Published {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("specification.json"), specification.to_string()).unwrap();
    let mut command = guardian();
    command.arg("publish").arg("--input").arg(input).arg("--spec").arg(path("specification.json"));
    command.arg("--out").arg(path("out")).arg("--internal-report").arg(path("internal.json"));
    let output = run(command.args(["--reproduce", key]));
    assert!(output.status.success(), "{specification}: {}", String::from_utf8_lossy(&output.stderr));
    let read = |path: PathBuf| serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let (manifest, internal) = (read(path("out/manifest.json")), read(path("internal.json")));
    Published { manifest, internal, folder }
}

/// Adult, with the seven attributes that the papers publish.
fn adult(mut specification: Value) -> Published {
    let names = ["age", "country", "education", "marital_status", "occupation", "income", "sex"];
    specification["attributes"] = names.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    publish(&root("tests/data/adult-7.csv.gz"), &specification, &"5a".repeat(32))
}

#[test]
fn one_rule_on_adult_keeps_what_free_attributes_say() {
    let release = |uad: Value| {
        adult(json!({"internal": {"utility": ["kl"]}, "method": {"type": "versatile", "uad": uad,
            "rules": ["age, sex -> education"], "default_guarantee": {"type": "l_diversity", "l": 2}}}))
    };
    let (last, paper) = (release(json!({})), release(json!({"coloring": "paper"})));
    let tables = |release: &Published| release.manifest["tables"].as_array().unwrap().len();
    assert_eq!((tables(&last), tables(&paper)), (1, 2));
    let nats = |release: &Published| release.internal["kl"]["nats"].as_f64().unwrap();
    assert!(nats(&last) < 0.15 && nats(&paper) > 0.4, "{} {}", nats(&last), nats(&paper));
    assert_eq!(last.notice("attributes-unrelated"), None);
    let unrelated = paper.notice("attributes-unrelated").unwrap();
    assert!(unrelated.contains("(age, sex)"), "{unrelated}");
}

#[test]
fn slicing_into_a_number_of_columns_needs_no_more_options() {
    let hospital = ["hospital", "age", "gender", "zipcode", "race"];
    let attributes: Value = hospital.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    let sliced = |sensitive: &str, count: u64| {
        json!({"type": "slicing", "sensitive": sensitive, "columns": {"count": count},
            "guarantee": {"type": "l_diversity", "l": 2}})
    };
    let document = json!({"attributes": attributes, "method": sliced("icd9", 2)});
    let release = publish(&root("examples/data/hospital.csv"), &document, &"5a".repeat(32));
    assert_eq!(release.manifest["method_details"]["columns"].as_array().unwrap().len(), 2);
    // that a column broke the guarantee says of the original what no part shows
    assert_eq!(release.notice("sensitive-column-narrowed"), None);
    assert!(notice(&release.internal, "sensitive-column-narrowed").is_some());
    for count in [2, 3] {
        let release = adult(json!({"method": sliced("education", count)}));
        let columns = release.manifest["method_details"]["columns"].as_array().unwrap();
        assert_eq!(columns.len() as u64, count);
        let sensitive = columns.last().unwrap().as_array().unwrap();
        assert!(sensitive.contains(&json!("education")));
        // what left the column stands in another one
        let all: usize = columns.iter().map(|column| column.as_array().unwrap().len()).sum();
        assert_eq!((all, &release.manifest["verification"]["verified"]), (7, &json!(true)));
    }
}

#[test]
fn texts_of_few_values_become_sets_and_others_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let csv = |codes: u32| {
        let rows = (0..2_000).map(|row| format!("{},c{:04},w{},d{}\n", row % 60, row % codes, row % 7, row % 5));
        let path = folder.path().join(format!("{codes}.csv"));
        fs::write(&path, format!("age,code,ward,disease\n{}", rows.collect::<String>())).unwrap();
        path
    };
    let document = json!({"unlisted": "drop", "method": {"type": "generalize", "quasi_identifiers": ["age", "code", "ward"],
        "sensitive": ["disease"], "guarantees": [{"type": "k_anonymity", "k": 4}]}});
    for (codes, cells) in [(256, "set"), (257, "interval")] {
        let release = publish(&csv(codes), &document, &"5a".repeat(32));
        let part = &release.manifest["tables"][0]["parts"][0];
        assert_eq!(part["cells"], json!({"age": "interval", "code": cells, "ward": "set"}));
        let crowded = release.notice("texts-in-intervals");
        assert_eq!(crowded.map(|detail| detail.starts_with("code have")), (codes > 256).then_some(true), "{crowded:?}");
    }
}

#[test]
fn buckets_of_several_sizes_lose_no_more_than_two() {
    let buckets = |sizes: Value| {
        let mut method = json!({"type": "bucketize", "sensitive": "education",
            "thresholds": {"linear": {"theta": "2", "c": "0.05"}}});
        if !sizes.is_null() {
            method["sizes"] = sizes;
        }
        adult(json!({"method": method}))
    };
    let [default, multi, two] = [Value::Null, json!("multi"), json!("two")].map(buckets);
    let details = |release: &Published| release.manifest["method_details"].clone();
    assert_eq!(details(&default), details(&multi));
    let loss = |release: &Published| details(release)["loss"].as_u64().unwrap();
    assert!(loss(&default) <= loss(&two), "{} {}", loss(&default), loss(&two));
}

/// Five rows of (a, z, s) in the columns (a) and (z, s), and l = 2.
#[test]
fn who_knows_less_may_learn_more_from_a_mixture() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("five.csv");
    fs::write(&input, "a,z,s\n0,2,1\n1,2,2\n1,0,1\n1,0,0\n1,0,2\n").unwrap();
    for diversity in ["mixture", "mixture_weighted"] {
        let document = json!({"attributes": {"a": {"publish": true}, "z": {"publish": true}}, "method": {
            "type": "slicing", "sensitive": "s", "columns": {"explicit": [["a"], ["z", "s"]]}, "diversity": diversity,
            "guarantee": {"type": "l_diversity", "l": 2}}});
        let release = publish(&input, &document, &"44".repeat(32));
        assert_eq!(release.manifest["verification"]["verified"], true);
        let (known, sensitive) = (release.part("t1.c1.csv"), release.part("t1.c2.csv"));
        let rows = |csv: &str| -> Vec<Vec<u32>> {
            csv.lines().skip(1).map(|row| row.split(',').map(|cell| cell.parse().unwrap()).collect()).collect()
        };
        // a = 0 stands in one bucket; its rows are equally likely for who knows nothing else
        let buckets: Vec<u32> = rows(&known).iter().filter(|row| row[1] == 0).map(|row| row[0]).collect();
        assert_eq!(buckets.len(), 1);
        let candidates: Vec<Vec<u32>> = rows(&sensitive).into_iter().filter(|row| row[0] == buckets[0]).collect();
        let ones = |rows: &[Vec<u32>]| (rows.iter().filter(|row| row[2] == 1).count(), rows.len());
        assert_eq!(ones(&candidates), (2, 3), "two thirds, where l is 2");
        let both: Vec<Vec<u32>> = candidates.into_iter().filter(|row| row[1] == 2).collect();
        assert_eq!(ones(&both), (1, 2), "who knows z too is left with a half");
        assert!(release.notice("less-knowledge-may-reveal-more").is_some());
        // the worst bucket alone is not what the rule bounds
        let report: Value = serde_json::from_str(&release.part("report.json")).unwrap();
        let figures = &report["figures"][0];
        assert_eq!(figures["is_over_buckets"] == true, diversity == "mixture", "{figures}");
    }
}

async fn planned(server: &Client, dataset: &str, method: Value) -> Answer {
    let attributes = json!({"age": {"publish": true}, "sex": {"publish": true}});
    let document = json!({"dataset": dataset, "attributes": attributes, "method": method});
    server.post("/v1/plans", &document).await
}

/// A goal that decides is named with its reason; plans warn of what the release will lose.
#[tokio::test(flavor = "multi_thread")]
async fn plans_name_the_goal_and_warn_of_losses() {
    let server = Server::start().await;
    let rows = (0..400_u32).map(|row| {
        let value = |prime: u32| row * prime / 7 % 4;
        format!("{},{},{},{},{},{}\n", row % 5, row % 3, value(3), value(5), value(11), value(13))
    });
    let csv = format!("age,sex,a,b,c,d\n{}", rows.collect::<String>());
    let dataset = server.dataset(csv.into_bytes()).await;
    let plan = |method: Value| planned(&server, &dataset, method);
    let auto = |sensitive: &[&str], goal: &str| {
        let rules: Vec<String> = sensitive.iter().map(|name| format!("age, sex -> {name}")).collect();
        json!({"type": "versatile", "algorithm": "auto", "goal": goal, "rules": rules,
            "dependencies": {"discover": "none"},
            "assume_unknown": [{"determinant": [], "dependent": [], "reason": "made up"}],
            "default_guarantee": {"type": "l_diversity", "l": 2}})
    };
    let detail = |plan: &Value| notice(plan, "algorithm-chosen").unwrap().to_owned();
    let all = ["a", "b", "c", "d"];
    let count = detail(&plan(auto(&all, "count")).await.ok(200));
    assert!(count.contains("goal count and 4 protected") && !count.contains("gd:"), "{count}");
    for other in [plan(auto(&all, "entropy")), plan(auto(&all[..3], "count"))] {
        let detail = detail(&other.await.ok(200));
        assert!(detail.contains("gd:") && !detail.contains("goal"), "{detail}");
    }
    let predicts = detail(&plan(auto(&all[..2], "classification")).await.ok(200));
    assert!(predicts.contains("keeps the most information of protected attributes"), "{predicts}");
    let mut refused = auto(&all, "count");
    refused["algorithm"] = "uad".into();
    plan(refused).await.fault("/method/goal", "parameter-range");

    let k = |k: u64| {
        json!({"type": "generalize", "quasi_identifiers": ["age", "sex"], "sensitive": ["a", "b", "c", "d"],
            "guarantees": [{"type": "k_anonymity", "k": k}]})
    };
    let whole = plan(k(300)).await.ok(200);
    let suppressed = notice(&whole, "attributes-suppressed").unwrap();
    assert!(suppressed.starts_with("age, sex: the same cell in every row"), "{suppressed}");
    assert_eq!(notice(&plan(k(2)).await.ok(200), "attributes-suppressed"), None);
    server.stop().await;
}

/// A table with every pair of two values of `a` and two of `b`, several times.
fn with_all_pairs(times: u32) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("T.csv");
    let csv: String = (0..4 * times).map(|row| format!("{},a{},b{}\n", row % 3, row % 2, row / 2 % 2)).collect();
    fs::write(&path, format!("age,a,b\n{csv}")).unwrap();
    (folder, path)
}

#[test]
fn a_release_in_one_bucket_says_so() {
    let published = |times: u32| {
        let (_folder, table) = with_all_pairs(times);
        let specification = json!({"attributes": {"age": {"publish": true}, "a": {"publish": true}, "b": {"publish": true}},
            "method": {"type": "versatile", "algorithm": "multi_sa",
            "rules": ["age -> a", "age -> b"], "dependencies": {"discover": "none"},
            "assume_unknown": [{"determinant": [], "dependent": [], "reason": "made up"}],
            "default_guarantee": {"type": "l_diversity", "l": 2}}});
        publish(&table, &specification, &"5a".repeat(32))
    };
    let whole = published(1);
    let detail = whole.notice("one-bucket").unwrap();
    assert!(detail.starts_with("one bucket holds all 4 rows"), "{detail}");
    assert_eq!(published(5).notice("one-bucket"), None);
}

#[test]
fn the_internal_report_names_undeclared_missing_values() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("T.csv");
    let rows = (0..12).map(|row| format!("{},{}\n", row % 2, ["x", "y", ""][row % 3]));
    fs::write(&table, format!("age,a\n{}", rows.collect::<String>())).unwrap();
    let published = |excludable: Value| {
        let specification = json!({"attributes": {"age": {"publish": true}, "a": {"publish": true, "excludable": excludable}},
            "method": {"type": "anatomy", "quasi_identifiers": ["age"], "sensitive": "a",
                "guarantee": {"type": "l_diversity", "l": 2}}});
        publish(&table, &specification, &"5a".repeat(32))
    };
    let silent = published(json!([]));
    assert!(
        notice(&silent.internal, "undeclared-missing").is_some_and(|detail| detail.contains("missing values of a"))
    );
    assert_eq!(silent.notice("undeclared-missing"), None, "the manifest is for readers");
    assert_eq!(notice(&published(json!([null])).internal, "undeclared-missing"), None);
}
