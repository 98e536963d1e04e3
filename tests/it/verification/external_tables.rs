//! Verification of what anybody published, over HTTP: every figure is held against this test's own naive computation.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use guardian::config::{Auth, StoreOptions};
use guardian::identity::{Preset, Scope};
use guardian::service::keys::{ApiKeyAdmin, NewKey};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::harness::{Answer, Client, HOSPITAL, Server, hospital_method, text};
use crate::support::library::{Random, cells};

/// A form of named parts, the first of them the request.
pub(crate) fn form(request: &Value, files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    let request = ("request", request.to_string().into_bytes());
    for (name, bytes) in std::iter::once(&request).chain(files) {
        let head = format!("--xx\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--xx--\r\n");
    body
}

/// Sends a request with its files.
pub(crate) async fn verify(client: &Client, request: &Value, files: &[(&str, Vec<u8>)]) -> Answer {
    let call = client.request(Method::POST, "/v1/verifications").body(form(request, files));
    client.send(call.header("content-type", "multipart/form-data; boundary=xx")).await
}

/// A plain table, some rules and one guarantee for all.
async fn plain(client: &Client, csv: &str, rules: &[&str], guarantee: &Value) -> Value {
    let request = json!({"tables": [{"name": "t", "parts": [{"file": "t.csv"}]}], "rules": rules, "default_guarantee": guarantee});
    verify(client, &request, &[("t.csv", csv.as_bytes().to_vec())]).await.ok(200)
}

/// The first rows of the Adult sample that the tests have.
fn adult(rows: usize) -> String {
    let file = File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/adult-7.csv.gz")).unwrap();
    let mut all = String::new();
    GzDecoder::new(file).read_to_string(&mut all).unwrap();
    all.lines().take(rows + 1).map(|line| format!("{line}\n")).collect()
}

/// The classes of a table: how often each sensitive value occurs in each, and over all.
struct Naive {
    classes: BTreeMap<Vec<String>, BTreeMap<String, f64>>,
    all: BTreeMap<String, f64>,
}

impl Naive {
    fn of(csv: &str, known: &[&str], sensitive: &str) -> Self {
        let (header, rows) = cells(csv.as_bytes());
        let at = |name: &str| header.iter().position(|column| column == name).unwrap();
        let mut naive = Self { classes: BTreeMap::new(), all: BTreeMap::new() };
        for row in rows {
            let class = known.iter().map(|name| row[at(name)].clone()).collect();
            let value = row[at(sensitive)].clone();
            *naive.classes.entry(class).or_default().entry(value.clone()).or_default() += 1.0;
            *naive.all.entry(value).or_default() += 1.0;
        }
        naive
    }

    fn size(class: &BTreeMap<String, f64>) -> f64 {
        class.values().sum()
    }

    fn worst(&self, measure: impl Fn(&BTreeMap<String, f64>) -> f64) -> f64 {
        self.classes.values().map(measure).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The shares of a class and of the table, values in the order of numbers or of bytes.
    fn shares(&self, class: &BTreeMap<String, f64>) -> Vec<(f64, f64)> {
        let rows: f64 = self.all.values().sum();
        let mut values: Vec<&String> = self.all.keys().collect();
        if values.iter().all(|value| value.parse::<i64>().is_ok()) {
            values.sort_by_key(|value| value.parse::<i64>().unwrap());
        }
        let share =
            |value: &String| (class.get(value).copied().unwrap_or(0.0) / Self::size(class), self.all[value] / rows);
        values.into_iter().map(share).collect()
    }

    fn falling(class: &BTreeMap<String, f64>) -> Vec<f64> {
        let mut falling: Vec<f64> = class.values().copied().collect();
        falling.sort_by(|a, b| b.total_cmp(a));
        falling
    }
}

#[track_caller]
fn close(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap_or_else(|| panic!("no number: {found}"));
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

#[track_caller]
fn measures_are(found: &Value, naive: &Naive) {
    let share = |class: &BTreeMap<String, f64>| Naive::falling(class)[0] / Naive::size(class);
    assert_eq!(found["classes"], naive.classes.len());
    close(&found["k"], -naive.worst(|class| -Naive::size(class)));
    let worst = &found["worst_posterior"];
    close(&json!(worst["count"].as_f64().unwrap() / worst["of"].as_f64().unwrap()), naive.worst(share));
    assert_eq!((&found["l"]["count"], &found["l"]["of"]), (&worst["of"], &worst["count"]));
    let distinct = -naive.worst(|class| -(class.len() as f64));
    close(&found["distinct_l"], distinct);
    let entropy = |class: &BTreeMap<String, f64>| {
        let size = Naive::size(class);
        class.values().map(|count| -(count / size) * (count / size).ln()).sum::<f64>().exp()
    };
    close(&found["entropy_l"], -naive.worst(|class| -entropy(class)));
    let recursive = found["recursive_c"].as_array().unwrap();
    assert_eq!(recursive.len() as u64, (distinct as u64).clamp(1, 5) - 1);
    for reported in recursive {
        let l = reported["l"].as_u64().unwrap() as usize;
        let quotient = |class: &BTreeMap<String, f64>| {
            let falling = Naive::falling(class);
            falling[0] / falling[l - 1..].iter().sum::<f64>()
        };
        close(&reported["c"], naive.worst(quotient));
    }
    let equal =
        |class: &BTreeMap<String, f64>| naive.shares(class).iter().map(|(p, q)| (p - q).abs()).sum::<f64>() / 2.0;
    close(&found["t_equal"], naive.worst(equal));
    let ordered = |class: &BTreeMap<String, f64>| {
        let shares = naive.shares(class);
        let carried = |step: usize| shares[..step].iter().map(|(p, q)| p - q).sum::<f64>().abs();
        (1..shares.len()).map(carried).sum::<f64>() / (shares.len().max(2) - 1) as f64
    };
    close(&found["t_ordered"], naive.worst(ordered));
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_of_a_plain_table_are_those_of_the_definitions() {
    let server = Server::start().await;
    let csv = adult(3000);
    let (header, _) = cells(csv.as_bytes());
    let two = json!({"type": "l_diversity", "l": 2});
    let mut random = Random(7);
    for _ in 0..6 {
        let mut picked = random.pick(3, header.len());
        let sensitive = header[picked.pop().unwrap()].as_str();
        let known: Vec<&str> = picked.iter().map(|&at| header[at].as_str()).collect();
        let rule = json!({"quasi_identifiers": known, "sensitive": [sensitive]});
        let request =
            json!({"tables": [{"name": "t", "parts": [{"file": "t.csv"}]}], "rules": [rule], "default_guarantee": two});
        let found = verify(&server, &request, &[("t.csv", csv.clone().into_bytes())]).await.ok(200);
        let naive = Naive::of(&csv, &known, sensitive);
        measures_are(&found["tables"][0]["measures"][0], &naive);
        let broken = |class: &&BTreeMap<String, f64>| Naive::falling(class)[0] * 2.0 > Naive::size(class);
        let broken = naive.classes.values().filter(broken).count();
        let judged = &found["rules"][0];
        assert_eq!(judged["breaks"]["total"], broken, "{judged:#}");
        assert_eq!(judged["breaks"]["first"].as_array().unwrap().len(), broken.min(10));
        assert_eq!(judged["holds"], broken == 0);
        assert_eq!(found["verified"], broken == 0);
        assert_eq!(found["linkage"], "not_checked");
        // each is a class of the table that breaks the rule
        for class in judged["breaks"]["first"].as_array().unwrap() {
            let of = |name: &&str| match &class["class"][*name] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let values = &naive.classes[&known.iter().map(of).collect::<Vec<_>>()];
            assert!(Naive::falling(values)[0] * 2.0 > Naive::size(values), "{class}");
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_guarantee_is_judged_at_its_bound() {
    let server = Server::start().await;
    // three classes: {x,x,y,z}, {x,y,y,z}, {x,y,z,z}
    let csv = "q,s\n1,x\n1,x\n1,y\n1,z\n2,x\n2,y\n2,y\n2,z\n3,x\n3,y\n3,z\n3,z\n";
    let l = 8.0_f64.powf(0.5);
    for (guarantee, holds) in [
        (json!({"type": "l_diversity", "l": 2}), true),
        (json!({"type": "l_diversity", "l": 3}), false),
        (json!({"type": "distinct_l_diversity", "l": 3}), true),
        (json!({"type": "distinct_l_diversity", "l": 4}), false),
        (json!({"type": "entropy_l_diversity", "l": "2.8"}), l > 2.8),
        (json!({"type": "entropy_l_diversity", "l": "2.9"}), false),
        (json!({"type": "recursive_l_diversity", "c": "1.1", "l": 2}), true),
        (json!({"type": "recursive_l_diversity", "c": 1, "l": 2}), false),
        (json!({"type": "alpha_k", "alpha": "0.5", "k": 4}), true),
        (json!({"type": "alpha_k", "alpha": "0.5", "k": 5}), false),
        (json!({"type": "alpha_k", "alpha": "0.49", "k": 4}), false),
        (json!({"type": "k_anonymity", "k": 4}), true),
        (json!({"type": "k_anonymity", "k": 5}), false),
        // the column is a third each: ½(1/6 + 1/12 + 1/12)
        (json!({"type": "t_closeness", "t": "1/6"}), true),
        (json!({"type": "t_closeness", "t": "0.166"}), false),
        // (1/6 + 1/12) / 2
        (json!({"type": "t_closeness", "t": "0.125", "distance": "ordered"}), true),
        (json!({"type": "t_closeness", "t": "0.124", "distance": "ordered"}), false),
        (json!({"type": "rho", "rho1": "0.4", "rho2": "0.5", "mode": "exact"}), true),
        (json!({"type": "rho", "rho1": "0.4", "rho2": "0.45", "mode": "exact"}), false),
        (json!({"type": "delta", "distance": "max", "b": "1/6"}), true),
        (json!({"type": "delta", "distance": "max", "b": "0.16"}), false),
    ] {
        let found = plain(&server, csv, &["q -> s"], &guarantee).await;
        assert_eq!(found["verified"], holds, "{guarantee}: {found:#}");
        assert_eq!(found["rules"][0]["violated_by"], if holds { json!(null) } else { json!(["q"]) });
        assert_eq!(found["rules"][0]["enforced_by"], if holds { json!({"table": "t"}) } else { json!(null) });
        assert_eq!(found["rules"][0]["detail"].is_null(), holds);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn breaks_name_the_classes_worst_first() {
    let server = Server::start().await;
    let csv = "age,zip,disease\n37,a,flu\n37,a,flu\n37,a,cold\n41,b,flu\n41,b,cold\n50,c,flu\n,d,flu\n";
    let found = plain(
        &server,
        csv,
        &["age, zip -> disease", "-> disease", "zip -> age"],
        &json!({"type": "l_diversity", "l": 2}),
    )
    .await;
    let breaks = &found["rules"][0]["breaks"];
    assert_eq!(
        breaks,
        &json!({"total": 3, "first": [
            {"table": "t", "class": {"age": null, "zip": "d"}},
            {"table": "t", "class": {"age": 50, "zip": "c"}},
            {"table": "t", "class": {"age": 37, "zip": "a"}}]}),
    );
    assert_eq!(found["rules"][0]["achieved"]["worst_posterior"], json!({"count": 1, "of": 1}));
    assert_eq!(found["rules"][0]["achieved"]["k"], 1);
    // five of seven have one disease: not even as a whole
    assert_eq!(found["rules"][1]["breaks"], json!({"total": 1, "first": [{"table": "t", "class": {}}]}));
    assert_eq!(found["rules"][2]["breaks"]["total"], 4);
    assert_eq!(found["checks"].as_array().unwrap().iter().filter(|check| check["passed"] == false).count(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn combinations_and_dependencies() {
    let server = Server::start().await;
    // in each class b and c have two values, and together four
    let csv = "q,b,c\n1,x,u\n1,x,v\n1,y,u\n1,y,v\n2,x,u\n2,x,v\n2,y,u\n2,y,v\n";
    let four = json!({"type": "l_diversity", "l": 4});
    assert_eq!(plain(&server, csv, &["q -> (b & c)"], &four).await["verified"], true);
    assert_eq!(plain(&server, csv, &["q -> b, c"], &four).await["rules"].as_array().unwrap().len(), 2);
    assert_eq!(plain(&server, csv, &["q -> b, c"], &four).await["verified"], false);
    // where b determines d, d is no better protected than b
    let csv = "q,b,d\n1,x,u\n1,y,v\n2,z,u\n2,w,v\n";
    let two = json!({"type": "l_diversity", "l": 2});
    let mut request =
        json!({"tables": [{"name": "t", "parts": [{"file": "t.csv"}]}], "rules": ["q -> d"], "default_guarantee": two});
    let files = [("t.csv", csv.as_bytes().to_vec())];
    assert_eq!(verify(&server, &request, &files).await.ok(200)["verified"], true);
    request["functional_dependencies"] =
        json!([{"determinant": ["q"], "dependent": ["hidden"]}, {"determinant": ["hidden"], "dependent": ["d"]}]);
    let found = verify(&server, &request, &files).await.ok(200);
    assert_eq!(found["verified"], false);
    assert_eq!(found["rules"][0]["detail"], "what is known determines what it protects");
    assert_eq!(found["warnings"][0]["type"], "dependency-necessary-only");
    request["functional_dependencies"] = json!([{"determinant": ["b"], "dependent": ["d"]}]);
    assert_eq!(verify(&server, &request, &files).await.ok(200)["verified"], true);
    let files = [("t.csv", csv.replace("1,y", "1,x").into_bytes())];
    let found = verify(&server, &request, &files).await.ok(200);
    assert!(text(&found["rules"][0]["detail"]).contains("by a dependency \"b\" must stay protected"), "{found:#}");
    assert_eq!(found["rules"][0]["breaks"]["first"], json!([{"table": "t", "class": {"q": 1}}]));
    server.stop().await;
}

/// The tables of a release as a request states them, with the bytes of their parts.
async fn published(client: &Client, manifest: &Value) -> (Value, Vec<(String, Vec<u8>)>) {
    let (mut tables, mut files) = (Vec::new(), Vec::new());
    for table in manifest["tables"].as_array().unwrap() {
        let mut parts = Vec::new();
        for part in table["parts"].as_array().unwrap() {
            let bytes = client.part(manifest, &text(&table["name"]), &text(&part["name"])).await;
            parts.push(json!({"name": part["name"], "file": part["file"], "bucketed": part["bucketed"],
                "row_meaning": part["row_meaning"], "cells": part["cells"]}));
            files.push((text(&part["file"]), bytes.into_bytes()));
        }
        tables.push(json!({"name": table["name"], "parts": parts}));
    }
    (json!(tables), files)
}

fn borrowed(files: &[(String, Vec<u8>)]) -> Vec<(&str, Vec<u8>)> {
    files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect()
}

/// Changes the lines of a file under its header.
fn change(files: &mut [(String, Vec<u8>)], name: &str, change: impl FnOnce(&mut Vec<String>)) {
    let file = files.iter_mut().find(|(of, _)| of == name).unwrap();
    let text = String::from_utf8(file.1.clone()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let header = lines.remove(0);
    change(&mut lines);
    file.1 = format!("{header}\n{}\n", lines.join("\n")).into_bytes();
}

fn check<'a>(found: &'a Value, name: &str) -> &'a Value {
    found["checks"].as_array().unwrap().iter().find(|check| check["check"] == name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn release_is_verified_from_its_parts() {
    let server = Server::start().await;
    let method = hospital_method();
    let manifest = server.publish(&server.dataset(HOSPITAL).await, json!({"method": method})).await;
    let (tables, files) = published(&server, &manifest).await;
    let mut request = json!({"tables": tables, "rules": method["rules"], "default_guarantee": method["default_guarantee"],
        "original": {"file": "T.csv"}, "attacks": ["exact_posteriors"]});
    let original = ("T.csv".to_owned(), HOSPITAL.as_bytes().to_vec());
    let with = |files: &[(String, Vec<u8>)]| [files, std::slice::from_ref(&original)].concat();
    let found = verify(&server, &request, &borrowed(&with(&files))).await.ok(200);
    assert_eq!(found["verified"], true, "{found:#}");
    assert!(found["checks"].as_array().unwrap().iter().all(|check| check["passed"] == true));
    assert_eq!(check(&found, "content")["passed"], true);
    assert_eq!((&found["linkage"], &found["attacks"][0]["breach"]), (&json!("not_checked"), &json!(false)));
    // as the manifest says
    for (rule, reported) in found["rules"].as_array().unwrap().iter().zip(manifest["rules"].as_array().unwrap()) {
        assert_eq!(rule["enforced_by"], reported["enforced_by"]);
        assert_eq!(rule["achieved"]["worst_posterior"], reported["achieved"]["worst_posterior"]);
    }
    // by its id it is the same, but for the original
    let mut by_id = json!({"release": manifest["id"], "rules": method["rules"], "default_guarantee": method["default_guarantee"],
        "attacks": ["exact_posteriors"]});
    let released = server.post("/v1/verifications", &by_id).await.ok(200);
    for member in ["verified", "rules", "tables", "attacks"] {
        assert_eq!(released[member], found[member], "{member}");
    }
    by_id["rules"] = json!(["age -> icd9"]);
    assert_eq!(server.post("/v1/verifications", &by_id).await.ok(200)["rules"][0]["violated_by"], json!(["age"]));
    let odd = verify(&server, &by_id, &[]).await.ok(200);
    assert_eq!(odd["verified"], false);

    // a row of the sensitive part moved to another bucket
    let mut moved = files.clone();
    change(&mut moved, "t1.sa.csv", |lines| lines[0] = lines[0].replacen("1,", "3,", 1));
    let found = verify(&server, &request, &borrowed(&with(&moved))).await.ok(200);
    assert_eq!((&found["verified"], &check(&found, "buckets")["passed"]), (&json!(false), &json!(false)));
    assert!(
        text(&check(&found, "buckets")["detail"]).contains("table t1: bucket 1 has 1 rows in part sa and 2 in part qi")
    );
    // two values of one bucket made equal
    let mut equal = files.clone();
    change(&mut equal, "t1.sa.csv", |lines| lines[3] = lines[2].clone());
    let found = verify(&server, &request, &borrowed(&with(&equal))).await.ok(200);
    assert_eq!(check(&found, "content")["passed"], false);
    let breaks =
        &found["rules"].as_array().unwrap().iter().find(|rule| rule["breaks"]["total"] == 1).unwrap()["breaks"];
    assert_eq!(breaks["first"], json!([{"table": "t1", "bucket": 2}]), "{found:#}");
    // a row left out of one table
    let mut short = files.clone();
    change(&mut short, "t2.rows.csv", |lines| drop(lines.pop()));
    let found = verify(&server, &request, &borrowed(&with(&short))).await.ok(200);
    assert!(text(&check(&found, "columns")["detail"]).contains("table t2 has 5 rows, not 6"));
    assert_eq!(found["verified"], false);
    // a raw table beside them that leads around the guardian
    request["tables"].as_array_mut().unwrap().push(json!({"name": "t3", "parts": [{"file": "t3.csv"}]}));
    let (header, rows) = cells(HOSPITAL.as_bytes());
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let pairs: Vec<String> = rows.iter().map(|row| format!("{},{}", row[at("hospital")], row[at("zipcode")])).collect();
    let mut around = files.clone();
    around.push(("t3.csv".to_owned(), format!("hospital,zipcode\n{}\n", pairs.join("\n")).into_bytes()));
    let found = verify(&server, &request, &borrowed(&with(&around))).await.ok(200);
    let last = &found["rules"][2];
    assert_eq!((&last["holds"], &last["enforced_by"]), (&json!(false), &json!(null)));
    assert!(last["violated_by"].as_array().unwrap().contains(&json!("hospital")), "{last:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_come_in_every_format_order_and_label() {
    let server = Server::start().await;
    let qi = "x,bucket\n2,b\n1,a\n1,a\n2,b\n";
    let sa = [
        json!({"bucket": "b", "s": "v"}),
        json!({"bucket": "a", "s": "u"}),
        json!({"bucket": "b", "s": "u"}),
        json!({"bucket": "a", "s": "v"}),
    ];
    let sa: String = sa.iter().map(|row| format!("{row}\n")).collect();
    let request = json!({"tables": [{"name": "a", "parts": [
            {"name": "qi", "file": "qi.csv.gz", "bucketed": true}, {"name": "sa", "file": "sa", "format": "application/x-ndjson", "bucketed": true}]}],
        "rules": ["x -> s"], "default_guarantee": {"type": "l_diversity", "l": 2}});
    let files = [("sa", sa.clone().into_bytes()), ("qi.csv.gz", crate::service::uploads::gzip(qi.as_bytes()))];
    let found = verify(&server, &request, &files).await.ok(200);
    assert_eq!(found["verified"], true, "{found:#}");
    assert_eq!((&found["tables"][0]["buckets"], &found["tables"][0]["rows"]), (&json!(2), &json!(4)));
    let warned: Vec<String> =
        found["warnings"].as_array().unwrap().iter().map(|warning| text(&warning["type"])).collect();
    assert!(warned.contains(&"row-order".to_owned()) && warned.contains(&"labels".to_owned()), "{warned:?}");
    // values without their numbers say how many there are, and no more
    let mut listed = request.clone();
    listed["tables"][0]["parts"][1]["row_meaning"] = json!("values");
    let found = verify(&server, &listed, &files).await.ok(200);
    assert_eq!(found["verified"], false);
    let measures = &found["tables"][0]["measures"][0];
    assert_eq!(
        (&measures["distinct_l"], &measures["k"], &measures["worst_posterior"]),
        (&json!(2), &json!(null), &json!(null))
    );
    listed["default_guarantee"] = json!({"type": "distinct_l_diversity", "l": 2});
    assert_eq!(verify(&server, &listed, &files).await.ok(200)["verified"], true);
    // generalized cells are classes as they are written
    let csv = "age,s\n20..30,u\n20..30,v\n*,u\n*,v\n";
    let mut cells = json!({"tables": [{"name": "g", "parts": [{"file": "g.csv", "cells": {"age": "interval"}}]}],
        "rules": ["age -> s"], "default_guarantee": {"type": "l_diversity", "l": 2}});
    let files = [("g.csv", csv.as_bytes().to_vec())];
    let found = verify(&server, &cells, &files).await.ok(200);
    assert_eq!((&found["verified"], &found["warnings"][0]["type"]), (&json!(true), &json!("opaque-cells")));
    cells["attacks"] = json!(["exact_posteriors"]);
    verify(&server, &cells, &files).await.problem(422, "guarantee-unsupported");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_of_a_request_is_said_at_once() {
    let server = Server::start().await;
    let request = json!({"tables": [{"name": "t", "parts": [{"file": "t.csv", "row_meaning": "tuples_and_counterfeits", "odd": 1}]},
            {"name": "t", "parts": [{"name": "a", "file": "a.csv"}, {"name": "b", "file": "a.csv", "bucketed": true}]}],
        "rules": ["a ->", "a, b -> c", {"quasi_identifiers": ["a"], "sensitive": ["c"], "guarantee": {"type": "k_anonymity", "k": 1}}],
        "default_guarantee": {"type": "l_diversity", "l": 1}, "taxonomies": {"job": {}}, "attacks": ["chain", "x"]});
    let answer = verify(&server, &request, &[]).await;
    for (pointer, name) in [
        ("/tables/0/parts/0/row_meaning", "guarantee-unsupported"),
        ("/tables/0/parts/0/odd", "unknown-field"),
        ("/tables/1/name", "bad-columns"),
        ("/tables/1/parts/0/bucketed", "bad-columns"),
        ("/tables/1/parts/1/file", "bad-columns"),
        ("/rules/0", "rule-malformed"),
        ("/rules/2/guarantee/k", "vacuous-guarantee"),
        ("/default_guarantee/l", "vacuous-guarantee"),
        ("/taxonomies/job", "parameter-range"),
        ("/attacks/0", "guarantee-unsupported"),
        ("/attacks/1", "parameter-range"),
    ] {
        answer.fault(pointer, name);
    }
    // what only the files show
    let mut request = json!({"tables": [{"name": "t", "parts": [{"file": "t.csv", "bucketed": true, "cells": {"z": "set"}}]}],
        "rules": ["a -> s"], "default_guarantee": {"type": "l_diversity", "l": 2}});
    let csv = b"a,s\n1,x\n".to_vec();
    let answer = verify(&server, &request, &[("t.csv", csv.clone())]).await;
    answer.fault("/tables/0/parts/0/bucketed", "bad-columns");
    assert_eq!(answer.fault("/tables/0/parts/0/cells/z", "unknown-attribute")["attribute"], "z");
    request["tables"] = json!([{"name": "t", "parts": [{"file": "t.csv"}]}]);
    request["rules"] = json!(["a -> s", "b -> s", "a -> nobody"]);
    let answer = verify(&server, &request, &[("t.csv", csv.clone())]).await;
    let fault = answer.fault("/rules/1", "unknown-attribute");
    assert_eq!(fault["detail"], "no table that is verified has an attribute b");
    answer.fault("/rules/2", "unknown-attribute");
    request["rules"] = json!(["a -> s"]);
    verify(&server, &request, &[]).await.fault("/tables/0/parts/0/file", "bad-columns");
    server.post("/v1/verifications", &request).await.fault("/tables/0/parts/0/file", "bad-columns");
    verify(&server, &request, &[("t.csv", csv.clone()), ("u.csv", csv.clone())])
        .await
        .problem(400, "malformed-request");
    let problem = verify(&server, &request, &[("t.csv", b"a,s\n1\n".to_vec())]).await.problem(422, "upload-malformed");
    assert_eq!((&problem["file"], &problem["row"]), (&json!("t.csv"), &json!(1)));
    verify(&server, &request, &[("t.csv", b"a,s\n".to_vec())]).await.problem(422, "empty-table");
    let call = |body: Vec<u8>| {
        server
            .request(Method::POST, "/v1/verifications")
            .body(body)
            .header("content-type", "multipart/form-data; boundary=xx")
    };
    server
        .send(call(b"--xx\r\nContent-Disposition: form-data; name=\"t.csv\"\r\n\r\na\r\n--xx--\r\n".to_vec()))
        .await
        .problem(400, "malformed-request");
    server.send(call(b"nothing".to_vec())).await.problem(400, "malformed-request");
    server.post("/v1/verifications", &json!({"release": uuid::Uuid::now_v7(), "rules": ["a -> s"], "default_guarantee": {"type": "k_anonymity", "k": 2}})).await.problem(404, "not-found");
    server.assert_nothing_stored().await;
    server.stop().await;
}

/// What is too large for an upload, or for the memory of the service, is too large here.
#[tokio::test(flavor = "multi_thread")]
async fn limits_are_those_of_uploads() {
    let server = Server::start_with(|config| {
        config.max_upload_bytes = 1000;
        config.max_columns = 3;
        config.job_limits.memory_budget = Some(4 << 20);
    })
    .await;
    let request = json!({"tables": [{"name": "t", "parts": [{"file": "t.csv"}]}, {"name": "u", "parts": [{"file": "u.csv"}]}],
        "rules": ["a -> s"], "default_guarantee": {"type": "l_diversity", "l": 2}});
    let rows = "1,x\n".repeat(200);
    let csv = format!("a,s\n{rows}").into_bytes();
    verify(&server, &request, &[("t.csv", csv.clone()), ("u.csv", csv)]).await.problem(422, "work-limit");
    let long = format!("a,s\n{}", "1,x\n".repeat(400)).into_bytes();
    verify(&server, &request, &[("t.csv", long), ("u.csv", Vec::new())]).await.problem(413, "too-large");
    let wide = b"a,s,b,c\n1,2,3,4\n".to_vec();
    verify(&server, &request, &[("t.csv", wide), ("u.csv", Vec::new())]).await.problem(413, "too-many-columns");
    server.stop().await;
}

/// Verifying a release reads it.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_verified_for_its_readers_alone() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let ring = ApiKeyAdmin::open(&StoreOptions::default(), &data).await.unwrap();
    let draw = async |scopes| {
        let wanted = NewKey {
            tenant: "default".to_owned(),
            name: "test".to_owned(),
            scopes,
            lifetime: None,
            populations: Vec::new(),
        };
        ring.create(wanted).await.unwrap().1.reveal().to_string()
    };
    let (admin, jobs) = (draw(Preset::Admin.scopes()).await, draw([Scope::Jobs].into_iter().collect()).await);
    ring.close().await;
    let server = Server::start_with(move |config| (config.data, config.auth) = (data, Auth::Keys)).await;
    let (admin, jobs) = (server.with_token(&admin), server.with_token(&jobs));
    let manifest = admin.publish(&admin.dataset(HOSPITAL).await, json!({"method": hospital_method()})).await;
    let request = json!({"release": manifest["id"], "rules": ["gender, race -> zipcode"],
        "default_guarantee": {"type": "l_diversity", "l": 2}});
    admin.post("/v1/verifications", &request).await.ok(200);
    let refused = jobs.post("/v1/verifications", &request).await.problem(403, "forbidden");
    assert_eq!(refused["scope"], "releases:read");
    let request = json!({"tables": [{"name": "t", "parts": [{"file": "t.csv"}]}], "rules": ["a -> s"],
        "default_guarantee": {"type": "l_diversity", "l": 2}});
    let found = verify(&jobs, &request, &[("t.csv", b"a,s\n1,x\n1,y\n".to_vec())]).await.ok(200);
    assert_eq!(found["verified"], true);
    server.stop().await;
}
