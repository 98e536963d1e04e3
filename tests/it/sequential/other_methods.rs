//! Sequential releases of what other methods publish too: values without a taxonomy, sets, attributes under other names, and releases
//! without proof. Joins are made anew by the values that two cells may both stand for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::releases::{PEOPLE, TOWNS, anonymity, jobs, linkability, new, of, plain, sequential};
use crate::support::harness::{Client, Server, guardian, kind, part_path, run, text};
use crate::support::library::cells;

/// The original: what values each attribute has.
struct Values(BTreeMap<String, Vec<String>>);

impl Values {
    fn of(csv: &str) -> Self {
        let (names, rows) = cells(csv.as_bytes());
        let distinct = |at: usize| rows.iter().map(|row| row[at].clone()).collect::<BTreeSet<_>>();
        Self((0..names.len()).map(|at| (names[at].clone(), distinct(at).into_iter().collect())).collect())
    }

    /// The values of an attribute that a cell may stand for.
    fn behind(&self, attribute: &str, shape: &str, tree: &Value, cell: &str) -> BTreeSet<usize> {
        let below: Vec<String> = if shape == "node" { leaves(tree, cell, false) } else { Vec::new() };
        let set: Vec<Value> = if shape == "set" { serde_json::from_str(cell).unwrap() } else { Vec::new() };
        let number = |text: &str| text.parse::<f64>().unwrap();
        let has = |value: &str| match shape {
            "suppressed" => cell == "*",
            "set" => set.iter().any(|of| of.as_str().map_or_else(|| of.to_string(), str::to_owned) == value),
            "interval" => {
                let (from, to) = cell.split_once("..").unwrap();
                number(from) <= number(value) && number(value) <= number(to)
            }
            "node" => below.iter().any(|leaf| leaf == value),
            _ => cell == value,
        };
        let values = self.0[attribute].iter().enumerate();
        values.filter(|(_, value)| has(value)).map(|(at, _)| at).collect()
    }
}

/// The leaves of a tree below a node.
fn leaves(tree: &Value, node: &str, below: bool) -> Vec<String> {
    match tree {
        Value::Object(nodes) => {
            nodes.iter().flat_map(|(name, tree)| leaves(tree, node, below || name == node)).collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| leaves(item, node, below)).collect(),
        Value::String(leaf) if below || leaf == node => vec![leaf.clone()],
        _ => Vec::new(),
    }
}

/// The values that each label may stand for.
type Meant = HashMap<String, BTreeSet<usize>>;

/// A release as its readers see it, its attributes under the names of the dataset.
struct Release {
    columns: Vec<(String, Vec<String>, Meant)>,
    rows: usize,
}

impl Release {
    async fn of(client: &Client, values: &Values, release: &Value, names: &[(&str, &str)]) -> Self {
        let (published, rows) = cells(client.part(release, "t1", "rows").await.as_bytes());
        let part = &release["tables"][0]["parts"][0];
        let column = |(at, published): (usize, &String)| {
            let name = names.iter().find(|(_, of)| of == published).map_or(published.as_str(), |(name, _)| name);
            let shape = part["cells"][published].as_str().unwrap_or("exact");
            let tree = &release["taxonomies"][published];
            let labels: Vec<String> = rows.iter().map(|row| row[at].clone()).collect();
            let meant = labels.iter().map(|label| (label.clone(), values.behind(name, shape, tree, label))).collect();
            (name.to_owned(), labels, meant)
        };
        Self { columns: published.iter().enumerate().map(column).collect(), rows: rows.len() }
    }

    fn label(&self, row: usize, name: &str) -> &str {
        &self.columns.iter().find(|(of, _, _)| of == name).unwrap().1[row]
    }

    /// The pairs of rows behind which one person may be.
    fn pairs(&self, other: &Self) -> Vec<(usize, usize)> {
        type Test<'a> = (&'a [String], &'a [String], HashMap<(&'a str, &'a str), bool>);
        let mut tests: Vec<Test<'_>> = Vec::new();
        for (name, own, meant) in &self.columns {
            let Some((_, others, meant_there)) = other.columns.iter().find(|(of, _, _)| of == name) else { continue };
            let mut meet = HashMap::new();
            for (a, behind) in meant {
                for (b, there) in meant_there {
                    meet.insert((a.as_str(), b.as_str()), !behind.is_disjoint(there));
                }
            }
            tests.push((own, others, meet));
        }
        let all = (0..self.rows).flat_map(|a| (0..other.rows).map(move |b| (a, b)));
        all.filter(|&(a, b)| tests.iter().all(|(own, others, meet)| meet[&(own[a].as_str(), others[b].as_str())]))
            .collect()
    }
}

/// The fewest rows of the first release in a group of pairs.
fn fewest(groups: impl Iterator<Item = (Vec<String>, usize)>) -> u64 {
    let mut found: BTreeMap<Vec<String>, BTreeSet<usize>> = BTreeMap::new();
    groups.for_each(|(group, row)| {
        found.entry(group).or_default().insert(row);
    });
    found.values().map(BTreeSet::len).min().unwrap() as u64
}

fn achieved(release: &Value, requirement: usize, subset: usize) -> Value {
    release["method_details"]["requirements"][requirement]["subsets"][subset]["achieved"].clone()
}

/// A document without taxonomies.
fn untreed(mut document: Value) -> Value {
    document["attributes"] = json!({});
    document
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_without_taxonomy_are_exact_or_suppressed() {
    let server = Server::start().await;
    let dataset = server.dataset(PEOPLE).await;
    let earlier = server.publish(&dataset, plain(&["job", "disease"])).await;
    let asked = json!([anonymity(&[new("job"), of(&earlier, "disease")], &[new("#key")], 2)]);
    let document = untreed(sequential(&["name", "job", "class"], &[&earlier], None, asked));

    let mut planned = document.clone();
    planned["dataset"] = dataset.clone().into();
    let plan = server.post("/v1/plans", &planned).await.ok(200);
    let release = server.publish(&dataset, document.clone()).await;
    let part = server.part(&release, "t1", "rows").await;
    assert_eq!(part, "name,job,class\nAlice,*,c1\nAlice,*,c1\nBob,*,c2\nBob,*,c3\nCathy,*,c4\n");
    let described = &release["tables"][0]["parts"][0];
    assert_eq!(described["cells"], json!({"job": "suppressed"}));
    assert_eq!(described["types"]["job"], "text");
    assert_eq!(release["method_details"]["cuts"], json!({"job": ["*"]}));
    assert_eq!((&release["method_details"], achieved(&release, 0, 0)), (&plan["method_details"], json!({"k": 5})));
    // what no cell shows is nowhere
    let id = text(&release["id"]);
    let job = server.get("/v1/jobs?limit=1000").await.ok(200);
    let report = server.get(&format!("/v1/releases/{id}/report")).await.ok(200);
    let archive = server.get(&format!("/v1/releases/{id}/archive")).await;
    let mut archived = String::new();
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(archive.body)).unwrap();
    for at in 0..archive.len() {
        archive.by_index(at).unwrap().read_to_string(&mut archived).unwrap();
    }
    assert!(archived.contains("Alice,*,c1") && archived.contains("suppressed"));
    for said in [release.to_string(), plan.to_string(), job.to_string(), report.to_string(), archived] {
        assert!(!said.contains("Banker") && !said.contains("Engineer"), "{said}");
    }
    for format in ["json", "ndjson", "arrow", "parquet"] {
        let shown = server.get(&format!("{}?format={format}", part_path(&release, "t1", "rows"))).await;
        assert_eq!(shown.status, 200, "{format}");
        assert!(format != "json" || shown.json()["rows"][0] == json!(["Alice", "*", "c1"]), "{}", shown.text());
    }
    // nothing can be counted by it, and everything by the others
    let path = format!("/v1/releases/{id}/queries");
    let count = |attribute: &str, value: &str| json!({"where": [{"attribute": attribute, "in": [value]}]});
    let queries = json!({"queries": [count("name", "Bob"), count("job", "Banker")]});
    server.post(&path, &queries).await.fault("/queries/1/where/0/attribute", "unknown-attribute");
    let answers = server.post(&path, &json!({"queries": [count("name", "Bob")]})).await.ok(200);
    assert_eq!(answers["answers"][0]["estimate"], 2.0);
    let attacked =
        server.post(&format!("/v1/releases/{id}/attacks"), &json!({"attack": "join", "rule": null})).await.ok(200);
    assert_eq!((&attacked["breach"], &attacked["joins"][0]["group"]["new.job"]), (&json!(false), &json!("*")));
    let verified = json!({"release": id, "rules": ["job -> class"],
        "default_guarantee": {"type": "l_diversity", "l": 2}});
    assert_eq!(
        server.post("/v1/verifications", &verified).await.ok(200)["verified"],
        true,
        "of a job nothing is known"
    );

    // beside a suppressed cell of an earlier release everything may stand
    let asked = json!([anonymity(&[new("name"), new("job")], &[new("#key")], 5)]);
    let third =
        server.publish(&dataset, untreed(sequential(&["name", "job"], &[&earlier, &release], None, asked))).await;
    assert_eq!(third["tables"][0]["parts"][0]["cells"], json!({"job": "suppressed", "name": "suppressed"}));
    assert_eq!(achieved(&third, 0, 0), json!({"k": 5}));
    server.stop().await;

    // where each occurs often enough, all stand as they are, also one that looks like a suppressed cell
    let server = Server::start().await;
    let starred = TOWNS.replace("Clerk", "*");
    let values_of = Values::of(&starred);
    let dataset = server.dataset(starred).await;
    let first = server.publish(&dataset, plain(&["job", "disease"])).await;
    let asked = json!([anonymity(&[new("job")], &[new("#key")], 2)]);
    let second = server.publish(&dataset, untreed(sequential(&["name", "job"], &[&first], None, asked))).await;
    assert_eq!(second["tables"][0]["parts"][0]["cells"], json!({}));
    assert_eq!(second["method_details"]["cuts"], json!({}));
    assert!(server.part(&second, "t1", "rows").await.contains("Bob,*\n"));
    let kept = &second["tables"][0];
    assert_eq!((&kept["kind"], &kept["protection"]), (&json!("marginal"), &json!("exclusive")));
    let queries = json!({"queries": [{"where": [{"attribute": "job", "in": ["*"]}]}]});
    let answers = server.post(&format!("/v1/releases/{}/queries", text(&second["id"])), &queries).await.ok(200);
    assert_eq!(answers["answers"][0], json!({"estimate": 2.0, "standard_error": 0.0, "error_model": "exact"}));
    let asked = json!([anonymity(&[new("town"), of(&first, "disease")], &[of(&second, "#key")], 2)]);
    let third = server.publish(&dataset, untreed(sequential(&["job", "town"], &[&first, &second], None, asked))).await;
    let (a, b) =
        (Release::of(&server, &values_of, &second, &[]).await, Release::of(&server, &values_of, &first, &[]).await);
    let c = Release::of(&server, &values_of, &third, &[]).await;
    let (ca, cb): (Vec<_>, BTreeSet<_>) = (c.pairs(&a), c.pairs(&b).into_iter().collect());
    let ab: BTreeSet<(usize, usize)> = a.pairs(&b).into_iter().collect();
    let groups = ca.iter().flat_map(|&(row, second)| {
        let firsts = (0..b.rows).filter(|first| cb.contains(&(row, *first)) && ab.contains(&(second, *first)));
        let group = firsts.map(|first| vec![c.label(row, "town").to_owned(), b.label(first, "disease").to_owned()]);
        group.map(|group| (group, second)).collect::<Vec<_>>()
    });
    assert_eq!(achieved(&third, 0, 0), json!({"k": fewest(groups)}));
    server.stop().await;
}

/// The releases of the slides, and a third one; `names` are what they publish jobs as.
async fn chain(server: &Server, names: [&str; 3]) -> [Value; 3] {
    let dataset = server.dataset(TOWNS).await;
    let renamed = |mut document: Value, name: &str| {
        if name != "job" {
            document["attributes"]["job"]["rename"] = name.into();
        }
        document
    };
    let first = server.publish(&dataset, renamed(plain(&["job", "disease"]), names[0])).await;
    let asked = json!([anonymity(&[new("job"), of(&first, "disease")], &[new("#key")], 2)]);
    let second = sequential(&["name", "job"], &[&first], None, asked);
    let second = server.publish(&dataset, renamed(second, names[1])).await;
    let asked = json!([
        anonymity(&[new("job"), new("town")], &[new("#key")], 2),
        linkability(&[new("town")], &[of(&first, "disease")], "0.9", json!(["HIV"]))
    ]);
    let mut third = sequential(&["job", "town"], &[&second, &first], None, asked);
    third["attributes"]["town"] = json!({"taxonomy": {"*": ["A", "B"]}});
    third["method"]["exclusions"] = json!([{"left": {"new.town": "A"}, "right": {of(&second, "name"): "Cathy"}}]);
    let third = server.publish(&dataset, renamed(third, names[2])).await;
    [first, second, third]
}

#[tokio::test(flavor = "multi_thread")]
async fn renamed_attributes_are_joined() {
    let server = Server::start().await;
    let [_, second, third] = chain(&server, ["job", "job", "job"]).await;
    assert!(third["method_details"].get("renamed").is_none());
    server.stop().await;
    let server = Server::start().await;
    let [first, renamed, last] = chain(&server, ["work", "occupation", "town's job"]).await;
    assert_eq!(renamed["tables"][0]["attributes"], json!(["name", "occupation"]));
    assert_eq!(renamed["tables"][0]["parts"][0]["cells"], json!({"occupation": "node"}));
    assert_eq!(renamed["method_details"]["cuts"], second["method_details"]["cuts"]);
    assert!(renamed["taxonomies"]["occupation"].is_object());
    let id = |release: &Value| text(&release["id"]);
    assert_eq!(
        last["method_details"]["renamed"],
        json!({"new": {"job": "town's job"}, id(&first): {"job": "work"}, id(&renamed): {"job": "occupation"}})
    );
    // requirements, and what they come to, are those of the same releases under their own names
    let measures = |release: &Value| {
        let requirements = release["method_details"]["requirements"].as_array().unwrap().clone();
        let of_one = |one: &Value| one["subsets"].as_array().unwrap().iter().map(|on| on["achieved"].clone()).collect();
        requirements.iter().map(of_one).collect::<Vec<Vec<Value>>>()
    };
    assert_eq!((measures(&renamed), measures(&last)), (measures(&second), measures(&third)));
    assert_eq!(last["method_details"]["cuts"], third["method_details"]["cuts"]);
    assert_eq!(last["method_details"]["requirements"].as_array().unwrap().len(), 3, "also what the second promised");
    // the attack finds its way by the manifests alone
    let attack = json!({"attack": "join", "rule": null});
    let attacked = server.post(&format!("/v1/releases/{}/attacks", id(&last)), &attack).await.ok(200);
    assert_eq!(attacked["breach"], false);
    assert!(attacked["joins"][0]["group"]["new.job"].is_string(), "{attacked:#}");
    let queries = json!({"queries": [{"where": [{"attribute": "occupation", "in": ["Banker", "Clerk"]}]}]});
    let answers = server.post(&format!("/v1/releases/{}/queries", id(&renamed)), &queries).await.ok(200);
    assert_eq!(answers["answers"][0]["estimate"], 4.0);
    // by this test's own join
    let values = Values::of(TOWNS);
    let a = Release::of(&server, &values, &renamed, &[("job", "occupation")]).await;
    let b = Release::of(&server, &values, &first, &[("job", "work")]).await;
    let group =
        |(row, other): (usize, usize)| vec![a.label(row, "job").to_owned(), b.label(other, "disease").to_owned()];
    let groups = a.pairs(&b).into_iter().map(|pair| (group(pair), pair.0));
    assert_eq!(achieved(&renamed, 0, 0), json!({"k": fewest(groups)}));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn aliases_are_joined_as_their_attribute() {
    let server = Server::start().await;
    let first = server.dataset_of("s", TOWNS).await;
    let earlier = server.publish(&first, plain(&["job", "disease"])).await;
    let later = server.dataset_of("s", TOWNS.replacen("job", "work", 1)).await;
    let declared = json!({"reason": "as the codebook says", "aliases": {"work": "job"}});
    server.post("/v1/series/s/disclosures", &declared).await.ok(201);
    let asked = json!([anonymity(&[new("work"), of(&earlier, "disease")], &[new("#key")], 2)]);
    let mut document = sequential(&["name", "work"], &[&earlier], None, asked);
    document["attributes"] = json!({"work": {"taxonomy": jobs()}});
    let release = server.publish(&later, document).await;
    assert_eq!(release["method_details"]["renamed"], json!({text(&earlier["id"]): {"work": "job"}}));
    let values = Values::of(&TOWNS.replacen("job", "work", 1));
    let (a, b) = (
        Release::of(&server, &values, &release, &[]).await,
        Release::of(&server, &values, &earlier, &[("work", "job")]).await,
    );
    let group =
        |(row, other): (usize, usize)| vec![a.label(row, "work").to_owned(), b.label(other, "disease").to_owned()];
    let groups = a.pairs(&b).into_iter().map(|pair| (group(pair), pair.0));
    assert_eq!(achieved(&release, 0, 0), json!({"k": fewest(groups)}));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_proof_nothing_is_promised_to_later_releases() {
    let server = Server::start().await;
    let dataset = server.dataset_of("s", TOWNS).await;
    let first = server.publish(&dataset, plain(&["job", "disease"])).await;
    let asked = json!([anonymity(&[new("job")], &[new("#key")], 2)]);
    let alone = sequential(&["name", "job"], &[], None, asked.clone());
    assert_eq!(kind(&server.refused(&dataset, alone.clone()).await), "composition-violated");
    let mut unproven = alone;
    unproven["composition"] = json!({"mode": "report", "reason": "the court wants it"});
    let mut planned = unproven.clone();
    planned["dataset"] = dataset.clone().into();
    let plan = server.post("/v1/plans", &planned).await.ok(200);
    assert_eq!((&plan["feasible"], &plan["composition"]["verdict"]), (&json!(true), &json!("violated")), "{plan:#}");
    let release = server.publish(&dataset, unproven).await;
    assert_eq!((&release["composition"], achieved(&release, 0, 0)), (&json!("unproven"), json!({"k": 2})));
    let series = server.get("/v1/series/s").await.ok(200);
    let disclosures = series["disclosures"].as_array().unwrap();
    let kept = disclosures.iter().find(|of| of["release"] == release["id"]).unwrap();
    assert_eq!((&kept["protection"], &kept["unproven"]["reason"]), (&json!("exclusive"), &json!("the court wants it")));
    // it tolerates nothing beside it that is not made against it, and is not required again
    assert_eq!(kind(&server.refused(&dataset, plain(&["job", "town"])).await), "composition-violated");
    let own = json!([anonymity(&[new("town")], &[new("#key")], 2)]);
    let mut last = sequential(&["job", "town"], &[&first, &release], None, own);
    last["attributes"]["town"] = json!({"taxonomy": {"*": ["A", "B"]}});
    let last = server.publish(&dataset, last).await;
    assert_eq!(last["composition"], "same_dataset_only");
    assert_eq!(last["method_details"]["requirements"].as_array().unwrap().len(), 1);
    server.stop().await;
}

/// The first rows of the census.
fn census(rows: usize) -> String {
    let mut csv = String::new();
    GzDecoder::new(&include_bytes!("../../../examples/data/adult.csv.gz")[..]).read_to_string(&mut csv).unwrap();
    csv.lines().take(rows + 1).map(|line| format!("{line}\n")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn census_composes_with_generalized_sets() {
    let server = Server::start().await;
    let csv = census(600);
    let values = Values::of(&csv);
    let dataset = server.dataset(csv).await;
    let known = ["age", "workclass", "marital-status", "sex"];
    let sets = json!({"unlisted": "drop", "method": {"type": "generalize", "quasi_identifiers": known, "sensitive": ["occupation"],
        "guarantees": [{"type": "l_diversity", "l": 3}], "cells": "set"}});
    let earlier = server.publish(&dataset, sets).await;
    assert_eq!(earlier["tables"][0]["protection"], "guarding");
    assert_eq!(earlier["tables"][0]["parts"][0]["cells"]["workclass"], "set");
    let asked = json!([
        anonymity(&[new("age"), new("workclass"), new("sex")], &[of(&earlier, "#key")], 3),
        linkability(&[new("workclass")], &[of(&earlier, "occupation")], "0.6", json!(["Sales", "Exec-managerial"])),
        anonymity(&[new("workclass"), of(&earlier, "sex")], &[new("#key")], 3),
    ]);
    let mut document = sequential(&["age", "workclass", "sex", "race"], &[&earlier], None, asked);
    document["attributes"] = json!({"sex": {"taxonomy": {"Any": ["Female", "Male"]}, "rename": "gender"}});
    let release = server.publish(&dataset, document.clone()).await;
    println!("{} {}", release["tables"][0]["parts"][0]["cells"], release["method_details"]["cuts"]);
    let a = Release::of(&server, &values, &release, &[("sex", "gender")]).await;
    let b = Release::of(&server, &values, &earlier, &[]).await;
    let pairs = a.pairs(&b);
    assert!(pairs.len() < a.rows * b.rows, "sets take matches away");
    let own = |row: usize, names: &[&str]| names.iter().map(|name| a.label(row, name).to_owned()).collect::<Vec<_>>();
    let first = fewest(pairs.iter().map(|&(row, other)| (own(row, &["age", "workclass", "sex"]), other)));
    assert_eq!(achieved(&release, 0, 0), json!({"k": first}));
    let third = fewest(pairs.iter().map(|&(row, other)| {
        (own(row, &["workclass"]).into_iter().chain([b.label(other, "sex").to_owned()]).collect(), row)
    }));
    assert_eq!(achieved(&release, 2, 0), json!({"k": third}));
    let mut groups: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for &(row, other) in &pairs {
        *groups.entry(a.label(row, "workclass")).or_default().entry(b.label(other, "occupation")).or_default() += 1;
    }
    let share = |of: &BTreeMap<&str, u64>| {
        let most = ["Sales", "Exec-managerial"].iter().filter_map(|value| of.get(value)).max().copied().unwrap_or(0);
        most as f64 / of.values().sum::<u64>() as f64
    };
    let h = achieved(&release, 1, 0)["h"].clone();
    let worst = groups.values().map(share).fold(0.0, f64::max);
    assert!((h["count"].as_f64().unwrap() / h["of"].as_f64().unwrap() - worst).abs() < 1e-12, "{h} {worst}");
    let attack = json!({"attack": "join", "rule": null});
    let attacked = server.post(&format!("/v1/releases/{}/attacks", text(&release["id"])), &attack).await.ok(200);
    assert_eq!(attacked["breach"], false);

    // who goes along a taxonomy goes along that of earlier nodes
    let trees = json!({"taxonomy": {"Any": {"some": ["Female"], "others": ["Male"]}}});
    let mut other = document.clone();
    other["attributes"]["sex"] = trees;
    other["method"]["against"] = json!([earlier["id"], release["id"]]);
    let fault = server.refused(&dataset, other).await["errors"][0].clone();
    assert_eq!((kind(&fault), &fault["pointer"]), ("taxonomy-conflict", &json!("/attributes/sex/taxonomy")), "{fault}");
    server.stop().await;
}

#[test]
fn command_verifies_renamed_and_suppressed_attributes() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let mut document = sequential(
        &["name", "job", "class"],
        &[],
        None,
        json!([
            anonymity(&[new("job"), new("name")], &[new("#key")], 3),
            anonymity(&[new("class")], &[new("#key")], 2)
        ]),
    );
    document["attributes"] =
        json!({"job": {"taxonomy": jobs(), "rename": "work"}, "name": {"rename": "job"}, "class": {"rename": "group"}});
    document["internal"] =
        json!({"utility": [{"count_queries": {"number": 20, "dimensions": 2, "value_fraction": "0.5"}}]});
    let csv = TOWNS.lines().map(|line| format!("{line}\n")).collect::<String>().replace("c4", "c3");
    fs::write(path("T.csv"), csv).unwrap();
    fs::write(path("S.json"), document.to_string()).unwrap();
    let done = run(guardian()
        .args(["publish", "--input"])
        .arg(path("T.csv"))
        .arg("--spec")
        .arg(path("S.json"))
        .arg("--out")
        .arg(path("out")));
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let part = fs::read_to_string(path("out").join("t1.rows.csv")).unwrap();
    assert!(part.starts_with("job,work,group\n*,"), "{part}");
    let manifest: Value = serde_json::from_slice(&fs::read(path("out").join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["tables"][0]["parts"][0]["cells"], json!({"job": "suppressed", "work": "node"}));
    assert_eq!(manifest["method_details"]["renamed"], json!({"new": {"class": "group", "job": "work", "name": "job"}}));
    let verify = |more: &[std::ffi::OsString]| {
        let done = run(guardian().arg("verify").arg(path("out")).args(more));
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let original = ["--original".into(), path("T.csv").into_os_string()];
    for more in [&[][..], &original[..]] {
        let (code, said) = verify(more);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("requirements holds"), "{said}");
    }
    // names that are not those of the attributes
    for (pointer, planted) in [
        ("/method_details/renamed/new", json!({"class": "group", "job": "job", "name": "work"})),
        ("/method_details/renamed", json!({})),
        ("/tables/0/parts/0/cells/job", json!("node")),
        ("/method_details/cuts/name", json!(["Alice"])),
    ] {
        let mut other = manifest.clone();
        *other.pointer_mut(pointer).unwrap() = planted;
        fs::write(path("out").join("manifest.json"), other.to_string()).unwrap();
        let (code, said) = verify(&original);
        assert_eq!(code, Some(1), "{said}");
    }
}
