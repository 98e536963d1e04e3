//! Classes whose cells are nodes of taxonomies, judged from the served parts by this test's own reading of trees.

use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use flate2::read::GzDecoder;
use guardian::engine::{EngineError, QuerySet};
use guardian::ledger::EarlierDisclosures;
use guardian::random::{RandomStreams, ReleaseKey};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::folder::CommandFixture;
use crate::support::harness::{Server, kind, part_path, text};
use crate::support::library::{Original, cells, release, table};
use crate::verification::external_tables::verify;

/// Per value, the labels from it up to the root.
type NodePaths = BTreeMap<String, Vec<String>>;

fn paths(tree: &Value) -> NodePaths {
    fn below(value: &Value, above: &[String], paths: &mut NodePaths) {
        let with = |label: &str| [&[label.to_owned()][..], above].concat();
        match value {
            Value::Object(nodes) => nodes.iter().for_each(|(label, value)| below(value, &with(label), paths)),
            Value::Array(items) => items.iter().for_each(|item| match item {
                Value::Object(_) => below(item, above, paths),
                Value::Null => drop(paths.insert(String::new(), with(""))),
                leaf => {
                    let label = leaf.as_str().map_or_else(|| leaf.to_string(), str::to_owned);
                    paths.insert(label.clone(), with(&label));
                }
            }),
            _ => panic!("no tree"),
        }
    }
    let mut found = NodePaths::new();
    below(tree, &[], &mut found);
    found
}

/// A tree from rows of levels.
fn levels(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/taxonomies").join(name);
    let csv = fs::read_to_string(path).unwrap();
    let mut tree = json!({});
    for line in csv.lines().skip(1) {
        let mut way: Vec<&str> = line.split(',').collect();
        way.dedup();
        way.reverse();
        let (leaf, nodes) = way.split_last().unwrap();
        let (root, nodes) = nodes.split_first().unwrap();
        let mut at = tree.as_object_mut().unwrap().entry(*root).or_insert_with(|| json!([]));
        for node in nodes {
            let items = at.as_array_mut().unwrap();
            let place = items.iter().position(|item| item.get(*node).is_some()).unwrap_or_else(|| {
                items.push(json!({*node: []}));
                items.len() - 1
            });
            at = &mut items[place][*node];
        }
        at.as_array_mut().unwrap().push(json!(leaf));
    }
    tree
}

/// How many rows show a cell at a node or below it, and how many have such a value: of no node there are more cells than values.
fn too_many(paths: &NodePaths, shown: &[String], had: &[String]) -> Vec<String> {
    let mut above: BTreeMap<&str, &[String]> = BTreeMap::new();
    for way in paths.values() {
        (0..way.len()).for_each(|at| above.extend([(way[at].as_str(), &way[at..])]));
    }
    let count = |labels: &[String]| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for label in labels {
            let way = above.get(label.as_str()).unwrap_or_else(|| panic!("{label} is no node"));
            way.iter().for_each(|node| *counts.entry(node.clone()).or_default() += 1);
        }
        counts
    };
    let (shown, had) = (count(shown), count(had));
    shown.into_iter().filter(|(node, rows)| *rows > had.get(node).copied().unwrap_or(0)).map(|(node, _)| node).collect()
}

fn adult() -> Vec<u8> {
    let mut csv = Vec::new();
    let file = File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/adult.csv.gz")).unwrap();
    GzDecoder::new(file).read_to_end(&mut csv).unwrap();
    csv
}

fn trees() -> BTreeMap<&'static str, Value> {
    BTreeMap::from([
        ("education", levels("education.csv")),
        ("marital-status", levels("marital-status.csv")),
        ("sex", json!({"Any": ["Female", "Male"]})),
        (
            "workclass",
            json!({"Any": [{"With pay": ["Private", {"Government": ["Federal-gov", "Local-gov", "State-gov"]},
                {"Self-employed": ["Self-emp-inc", "Self-emp-not-inc"]}]}, {"Without pay": ["Never-worked", "Without-pay"]}]}),
        ),
    ])
}

#[test]
fn a_real_table_is_published_in_nodes() {
    let csv = adult();
    let input = Original::new(table(&csv[..]));
    let (names, original) = cells(&csv);
    let mut found = Vec::new();
    for (split, l, fewest) in [("strict", 2, 400), ("relaxed", 3, 500)] {
        let attributes: BTreeMap<&str, Value> =
            trees().into_iter().map(|(name, tree)| (name, json!({"taxonomy": tree}))).collect();
        let document = json!({"unlisted": "drop", "attributes": attributes, "method": {"type": "generalize",
            "quasi_identifiers": ["age", "workclass", "education", "marital-status", "sex"], "sensitive": ["occupation"],
            "guarantees": [{"type": "k_anonymity", "k": 5}, {"type": "l_diversity", "l": l}], "cells": "node", "split": split}});
        let job = input.job(&document).unwrap();
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([l as u8; 32]));
        let (released, files) = release(&job, &EarlierDisclosures::default(), &streams).unwrap();
        let manifest = serde_json::to_value(&released.manifest).unwrap();
        let part = &manifest["tables"][0]["parts"][0];
        let cells_of = json!({"age": "interval", "education": "node", "marital-status": "node", "sex": "node", "workclass": "node"});
        assert_eq!((&part["cells"], &manifest["verification"]["verified"]), (&cells_of, &json!(true)));
        assert_eq!(manifest["tables"][0]["protection"], "guarding");
        let (columns, rows) = cells(&files.0["t1.rows.csv"]);
        for (name, tree) in trees() {
            let column = |names: &[String], rows: &[Vec<String>]| -> Vec<String> {
                let at = names.iter().position(|column| column == name).unwrap();
                rows.iter().map(|row| row[at].clone()).collect()
            };
            let (shown, had) = (column(&columns, &rows), column(&names, &original));
            let paths = paths(&tree);
            assert_eq!(too_many(&paths, &shown, &had), Vec::<String>::new(), "{name}");
            // some rows show their value, and some stand for several
            let leaves = shown.iter().filter(|cell| paths.contains_key(*cell)).count();
            assert!(leaves > rows.len() / 10 && leaves < rows.len(), "{name}: {leaves} of {}", rows.len());
        }
        let mut classes: BTreeMap<Vec<&String>, BTreeMap<&str, usize>> = BTreeMap::new();
        let sensitive = columns.iter().position(|name| name == "occupation").unwrap();
        for row in &rows {
            let known = row.iter().enumerate().filter(|(at, _)| *at != sensitive).map(|(_, cell)| cell).collect();
            *classes.entry(known).or_default().entry(&row[sensitive]).or_default() += 1;
        }
        assert!(classes.len() >= fewest, "{} classes", classes.len());
        for class in classes.values() {
            let (rows, most) = (class.values().sum::<usize>(), class.values().max().unwrap());
            assert!(rows >= 5 && most * l <= rows, "{class:?}");
        }
        found.push(classes.len());
    }
    println!("classes: {found:?}");
}

const WORKERS: &str =
    "job,age,s\nDriver,20,a\nDriver,20,b\nEngineer,21,a\nEngineer,21,b\n,30,a\n,30,b\nBanker,31,a\nClerk,31,b\n";

fn tree() -> Value {
    json!({"Any": {"Field": ["Driver", "Engineer", null], "Office": ["Banker", "Clerk"]}})
}

fn job(known: &[&str], cells: &str) -> Value {
    let mut attributes = json!({});
    for name in known {
        let tree = if *name == "job" { tree() } else { json!({"Any": {"old": [30, 31], "young": [20, 21, 22]}}) };
        attributes[name] = json!({"taxonomy": tree});
    }
    json!({"unlisted": "drop", "attributes": attributes,
        "internal": {"utility": [{"count_queries": {"number": 20, "dimensions": 2, "value_fraction": "0.5"}}]},
        "method": {"type": "generalize", "quasi_identifiers": known, "sensitive": ["s"], "cells": cells,
            "guarantees": [{"type": "l_diversity", "l": 2}]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_served_and_counted() {
    let server = Server::start().await;
    let dataset = server.dataset(WORKERS).await;
    let release = server.publish(&dataset, job(&["job"], "node")).await;
    let part = &release["tables"][0]["parts"][0];
    assert_eq!((&part["cells"], &part["types"]), (&json!({"job": "node"}), &json!({"job": "text", "s": "text"})));
    assert_eq!(release["taxonomies"]["job"], tree());
    let path = part_path(&release, "t1", "rows");
    let csv = server.part(&release, "t1", "rows").await;
    assert_eq!(csv, "job,s\n,a\n,b\nDriver,a\nDriver,b\nEngineer,a\nEngineer,b\nOffice,a\nOffice,b\n");
    let page = server.get(&format!("{path}?format=json")).await.ok(200);
    assert_eq!((&page["rows"][0], &page["rows"][6]), (&json!([null, "a"]), &json!(["Office", "a"])));
    let ndjson = server.get(&format!("{path}?format=ndjson")).await.text();
    assert_eq!(ndjson.lines().last(), Some("{\"job\":\"Office\",\"s\":\"b\"}"));
    let parquet = server.get(&format!("{path}?format=parquet")).await.body.to_vec();
    let mut parquet = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(parquet)).unwrap().build().unwrap();
    let batch = parquet.next().unwrap().unwrap();
    let jobs = batch.column(0).as_string::<i32>();
    let held: Vec<Option<&str>> = jobs.iter().collect();
    assert_eq!((held[0], held[7], batch.column(0).null_count()), (None, Some("Office"), 2));
    assert_eq!(server.get(&format!("{path}?format=arrow")).await.status, 200);
    let counts = server.get(&format!("{path}?view=counts")).await.text();
    assert_eq!(counts.lines().nth(1), Some(",a,1"));
    let id = text(&release["id"]);
    assert_eq!(server.get(&format!("/v1/releases/{id}/archive")).await.status, 200);
    let report = server.get(&format!("/v1/releases/{id}/internal-report")).await.ok(200);
    assert!(report["count_queries"].is_object(), "{report:#}");
    let queries = json!({"queries": [
        {"where": [{"attribute": "job", "in": ["Banker"]}]},
        {"where": [{"attribute": "job", "in": [null, "Driver"]}]},
        {"where": [{"attribute": "job", "in": ["Banker", "Clerk"]}, {"attribute": "s", "in": ["a"]}]},
        {"where": [{"attribute": "job", "in": ["Office"]}]},
    ]});
    let answers = server.post(&format!("/v1/releases/{id}/queries"), &queries).await.ok(200);
    let estimates: Vec<f64> =
        answers["answers"].as_array().unwrap().iter().map(|a| a["estimate"].as_f64().unwrap()).collect();
    // a node is no value
    assert_eq!(estimates, [1.0, 4.0, 1.0, 0.0]);
    assert_eq!(answers["answers"][1]["error_model"], "exact");
    // what is guarding may stand beside exact values of what is known, and protects what it protects
    let later = json!({"unlisted": "drop", "attributes": {"job": {"publish": true}}, "no_rules_reason": "for a test",
        "method": {"type": "versatile", "rules": []}});
    assert_eq!(server.publish(&dataset, later).await["verification"]["verified"], true);
    assert_eq!(kind(&server.refused(&dataset, job(&["job"], "set")).await), "composition-violated");
    // numbers along a taxonomy
    let server = server.anew().await;
    let other = server.dataset(WORKERS).await;
    let release = server.publish(&other, job(&["age"], "node")).await;
    assert_eq!(release["tables"][0]["parts"][0]["types"]["age"], "integer");
    let server = server.anew().await;
    let other = server.dataset("age,s\n20,a\n21,b\n30,a\n31,b\n").await;
    let release = server.publish(&other, job(&["age"], "node")).await;
    assert_eq!(server.part(&release, "t1", "rows").await, "age,s\nold,a\nold,b\nyoung,a\nyoung,b\n");
    let path = part_path(&release, "t1", "rows");
    assert_eq!(server.get(&format!("{path}?format=json")).await.ok(200)["rows"][0], json!(["old", "a"]));
    assert_eq!(server.get(&format!("{path}?format=parquet")).await.status, 200);
    let queries = json!({"queries": [{"where": [{"attribute": "age", "from": 21, "to": 30}]}]});
    let answers = server.post(&format!("/v1/releases/{}/queries", text(&release["id"])), &queries).await.ok(200);
    // two of three that may be young, of which one does not occur, and one of two that are old
    let expected = 2.0 * 2.0 / 3.0 + 2.0 * 0.5;
    assert!((answers["answers"][0]["estimate"].as_f64().unwrap() - expected).abs() < 1e-9, "{answers:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_cut_along_leaves_unless_intervals_are_published() {
    let mut server = Server::start().await;
    let tree = json!({"Any": [{"x": ["a", "c"]}, {"y": ["b", "d"]}]});
    for (cells, csv) in [
        (
            "set",
            "q,s\n\"[\"\"a\"\",\"\"c\"\"]\",0\n\"[\"\"a\"\",\"\"c\"\"]\",1\n\"[\"\"b\"\",\"\"d\"\"]\",0\n\"[\"\"b\"\",\"\"d\"\"]\",1\n",
        ),
        ("node", "q,s\nx,0\nx,1\ny,0\ny,1\n"),
        ("interval", "q,s\na..b,0\na..b,0\nc..d,1\nc..d,1\n"),
    ] {
        let rows = if cells == "interval" { "a,0\nb,0\nc,1\nd,1\n" } else { "a,0\nc,1\nb,0\nd,1\n" };
        server = server.anew().await;
        let dataset = server.dataset(format!("q,s\n{rows}")).await;
        let k = json!([{"type": "k_anonymity", "k": 2}]);
        let document = json!({"attributes": {"q": {"taxonomy": tree}}, "method": {"type": "generalize",
            "quasi_identifiers": ["q"], "sensitive": ["s"], "cells": cells, "guarantees": k}});
        let release = server.publish(&dataset, document).await;
        assert_eq!(server.part(&release, "t1", "rows").await, csv, "{cells}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_without_a_taxonomy_are_refused() {
    let server = Server::start().await;
    let dataset = server.dataset(WORKERS).await;
    let mut none = job(&["job"], "node");
    none["attributes"] = json!({});
    server.job(&dataset, none).await.fault("/method/cells", "bad-columns");
    let mut partly = job(&["age", "job"], "node");
    partly["attributes"] = json!({"age": partly["attributes"]["age"]});
    let fault = server.job(&dataset, partly).await.fault("/attributes/job/taxonomy", "parameter-range");
    assert_eq!(fault["attribute"], "job");
    // one that cannot be read is no missing one
    let mut misread = job(&["job"], "node");
    misread["attributes"]["job"]["taxonomy"] = json!({"Any": {}});
    let refused = server.job(&dataset, misread).await;
    refused.fault("/attributes/job/taxonomy/Any", "parameter-range");
    assert_eq!(refused.json()["errors"].as_array().unwrap().len(), 1, "{}", refused.text());
    // numbers without one stay intervals
    let mut numbers = job(&["age", "job"], "node");
    numbers["attributes"] = json!({"job": numbers["attributes"]["job"]});
    let release = server.publish(&dataset, numbers).await;
    assert_eq!(release["tables"][0]["parts"][0]["cells"], json!({"age": "interval", "job": "node"}));
    // values that are no leaves, also missing ones
    let server = server.anew().await;
    let dataset = server.dataset(WORKERS.replace("Clerk", "Porter")).await;
    let job_of = |tree: Value| {
        let mut job = job(&["job"], "node");
        job["attributes"] = json!({"job": {"taxonomy": tree}});
        job
    };
    let problem = server.refused(&dataset, job_of(tree())).await;
    assert_eq!(
        (&problem["errors"][0]["pointer"], &problem["errors"][0]["missing"]),
        (&json!("/attributes/job/taxonomy"), &json!(1))
    );
    let mut whole = tree();
    whole["Any"]["Field"] = json!(["Driver", "Engineer", "Farmer"]);
    whole["Any"]["Office"] = json!(["Banker", "Porter"]);
    let problem = server.refused(&dataset, job_of(whole.clone())).await;
    assert_eq!(problem["errors"][0]["type"], "https://guardian.invalid/problems/taxonomy-value-missing");
    // a stored one is as good, and a policy may name it
    whole["Any"]["Field"] = json!(["Driver", "Engineer", null]);
    server.put("/v1/taxonomies/jobs", &json!({"taxonomy": whole})).await.ok(201);
    let mut policy = job_of(json!("jobs-v1"));
    policy["attributes"]["s"] = json!({"publish": true});
    server.put("/v1/policies/nodes", &json!({"specification": policy})).await.ok(201);
    let release = server.publish(&dataset, json!({"policy": "nodes-v1"})).await;
    assert!(server.part(&release, "t1", "rows").await.contains("Office,a"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anybody_may_hold_nodes_against_a_tree_and_an_original() {
    let server = Server::start().await;
    let dataset = server.dataset(WORKERS).await;
    let release = server.publish(&dataset, job(&["job"], "node")).await;
    let csv = server.part(&release, "t1", "rows").await;
    let asked =
        json!({"release": release["id"], "rules": ["job -> s"], "default_guarantee": {"type": "l_diversity", "l": 2}});
    assert_eq!(server.post("/v1/verifications", &asked).await.ok(200)["verified"], true);
    let request = |taxonomies: Value, original: Value, cells: &str| {
        json!({"tables": [{"name": "t", "parts": [{"file": "t.csv", "cells": {"job": cells}}]}], "rules": ["job -> s"],
            "default_guarantee": {"type": "l_diversity", "l": 2}, "taxonomies": taxonomies, "original": original})
    };
    let original = json!({"file": "o.csv"});
    let trees = json!({"job": tree()});
    let failed = |found: &Value| -> Vec<String> {
        let checks = found["checks"].as_array().unwrap().iter();
        checks.filter(|check| check["passed"] == false).map(|check| text(&check["check"])).collect()
    };
    let mut other = tree();
    other["Any"] = json!({"Desk": ["Banker", "Clerk"], "Field": ["Driver", "Engineer", null]});
    let more = WORKERS.replace("Clerk", "Driver");
    for (request, csv, of, wanted) in [
        (request(trees.clone(), original.clone(), "node"), csv.clone(), WORKERS, &[][..]),
        (request(trees.clone(), json!(null), "node"), csv.clone(), WORKERS, &[]),
        (request(json!({}), json!(null), "node"), csv.clone(), WORKERS, &[]),
        (request(json!({}), original.clone(), "node"), csv.clone(), WORKERS, &["content"]),
        (request(trees.clone(), original.clone(), "node"), csv.clone(), &more, &["content"]),
        (request(json!({"job": other}), json!(null), "node"), csv.clone(), WORKERS, &["columns"]),
        (request(trees.clone(), original.clone(), "node"), csv.replace("Office", "Any"), WORKERS, &[]),
        (request(trees.clone(), original.clone(), "node"), csv.replace("Office", "Field"), WORKERS, &["content"]),
        (
            request(trees.clone(), original.clone(), "set"),
            "job,s\n\"[\"\"Driver\"\",\"\"Engineer\"\"]\",a\n".to_owned(),
            WORKERS,
            &["columns", "content", "guarantee"],
        ),
    ] {
        let mut files = vec![("t.csv", csv.clone().into_bytes())];
        if request["original"].is_object() {
            files.push(("o.csv", of.as_bytes().to_vec()));
        }
        let found = verify(&server, &request, &files).await.ok(200);
        let mut failed = failed(&found);
        failed.sort();
        assert_eq!(failed, wanted, "{csv} {found:#}");
    }
    server.stop().await;
}

#[test]
fn a_release_in_nodes_is_verified_from_its_folder() {
    let folder = CommandFixture::new(WORKERS, &job(&["job"], "node"));
    let manifest = folder.published("out", &[]);
    assert_eq!(folder.is_verified("out"), [true, true]);
    // a tree that is not that of the specification, and then none
    let mut changed = manifest.clone();
    changed["taxonomies"]["job"]["Any"]["Office"] = json!(["Banker", "Clerk", "Teller"]);
    folder.forge("out", &changed);
    // the figures of the columns are those of the tree that was declared
    assert_eq!(folder.is_verified("out"), [false, false]);
    changed["taxonomies"]["job"]["Any"] = json!({"Field": ["Driver", "Engineer", null], "Desk": ["Banker", "Clerk"]});
    folder.forge("out", &changed);
    assert!(!folder.is_verified("out")[0]);
    changed.as_object_mut().unwrap().remove("taxonomies");
    folder.forge("out", &changed);
    assert_eq!(folder.is_verified("out"), [false, false]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn random_tables_and_trees(
        rows in prop::collection::vec((prop::option::of(0usize..6), -2i64..6, 0usize..3), 2..40),
        parts in prop::collection::vec(0usize..3, 7), k in 1u64..5, l in 2u64..4, relaxed in any::<bool>(),
    ) {
        const JOBS: [&str; 6] = ["w", "a,b", "x\"y", ".", "z", "é"];
        let mut csv = "age,job,s\n".to_owned();
        for (job, age, s) in &rows {
            let job = job.map_or_else(String::new, |job| format!("\"{}\"", JOBS[job].replace('"', "\"\"")));
            csv += &format!("{age},{job},s{s}\n");
        }
        // each value below one of three nodes, or right below the root
        let mut items: Vec<Value> = Vec::new();
        let mut groups: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
        for (at, part) in parts.iter().enumerate() {
            let leaf = JOBS.get(at).map_or(Value::Null, |job| json!(job));
            if *part == 0 { items.push(leaf) } else { groups.entry(*part).or_default().push(leaf) }
        }
        items.extend(groups.into_iter().map(|(part, leaves)| json!({format!("group {part}"): leaves})));
        let tree = json!({"Any": items});
        let input = Original::new(table(csv.as_bytes()));
        let guarantees = match k { 1 => json!([{"type": "l_diversity", "l": l}]), _ => json!([{"type": "k_anonymity", "k": k}, {"type": "l_diversity", "l": l}]) };
        let document = json!({"attributes": {"job": {"taxonomy": tree}}, "internal": {"utility": ["kl"]}, "method": {"type": "generalize",
            "quasi_identifiers": ["age", "job"], "sensitive": ["s"], "guarantees": guarantees, "cells": "node",
            "split": if relaxed { "relaxed" } else { "strict" }}});
        let job = input.job(&document).unwrap();
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([6; 32]));
        let most_frequent = (0..3).map(|s| rows.iter().filter(|row| row.2 == s).count() as u64).max().unwrap();
        let possible = rows.len() as u64 >= k && most_frequent * l <= rows.len() as u64;
        match release(&job, &EarlierDisclosures::default(), &streams) {
            Ok((released, files)) => {
                prop_assert!(possible && released.manifest.verification.verified);
                let (_, published) = cells(&files.0["t1.rows.csv"]);
                let mut classes: BTreeMap<&[String], Vec<&str>> = BTreeMap::new();
                published.iter().for_each(|row| classes.entry(&row[..2]).or_default().push(&row[2]));
                for class in classes.values() {
                    let most = class.iter().map(|value| class.iter().filter(|other| other == &value).count()).max().unwrap();
                    prop_assert!(class.len() as u64 >= k && most as u64 * l <= class.len() as u64);
                }
                let each = (0..JOBS.len()).map(|at| json!(JOBS[at])).chain([Value::Null]);
                let queries: Vec<Value> = each.map(|value| json!({"where": [{"attribute": "job", "in": [value]}]})).collect();
                let asked = QuerySet::new(&released.manifest, &json!({"queries": queries})).unwrap();
                let counted = asked.answer(&files, &guardian::control::Control::default()).unwrap();
                let all: f64 = counted.iter().map(|answer| answer.estimate).sum();
                prop_assert!((all - rows.len() as f64).abs() < 1e-6, "{all} of {}", rows.len());
                // row by row: in each place of a cell with the same chance
                let paths = paths(&tree);
                let share = |value: &str, cell: &str, is_age: bool| {
                    if is_age {
                        let (from, to) = cell.split_once("..").unwrap();
                        let (from, to, value): (i64, i64, i64) =
                            (from.parse().unwrap(), to.parse().unwrap(), value.parse().unwrap());
                        return if (from..=to).contains(&value) { 1.0 / (to - from + 1) as f64 } else { 0.0 };
                    }
                    // a cell without text is the missing value, or the empty one
                    let leaves = paths.values().filter(|way| way.iter().any(|node| node == cell)).count();
                    if paths[value].iter().any(|node| node == cell) { 1.0 / leaves as f64 } else { 0.0 }
                };
                let (_, original) = cells(csv.as_bytes());
                let n = rows.len() as f64;
                let nats: f64 = original.iter().map(|row| {
                    let had = original.iter().filter(|other| *other == row).count() as f64 / n;
                    let model: f64 = published.iter().filter(|other| other[2] == row[2])
                        .map(|other| share(&row[0], &other[0], true) * share(&row[1], &other[1], false) / n).sum();
                    (had / model).ln() / n
                }).sum();
                let kl = released.internal.kl.as_ref().and_then(|kl| kl.nats).unwrap();
                prop_assert!((kl - nats).abs() < 1e-9, "{kl} {nats}");
            }
            Err(EngineError::Refused(problem)) => {
                let problem_text = problem.to_json("about:blank").to_string();
                prop_assert!(!possible || problem_text.contains("rule-impossible"), "{}", problem_text);
            }
            Err(other) => prop_assert!(false, "{:?}", other),
        }
    }
}
