//! Many releases of the same people by every method: what the ledger let through is held against what was promised, by a search of
//! this test's own that reads nothing but manifests.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value, json};

use crate::support::harness::{Server, text};

const COLUMNS: [(&str, u32); 7] = [("a", 4), ("b", 5), ("c", 3), ("d", 12), ("e", 10), ("f", 9), ("g", 6)];

/// 500 rows whose attributes say nothing of each other.
fn table(random: &mut StdRng) -> String {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let mut csv = names.join(",") + "\n";
    for _ in 0..500 {
        let row: Vec<String> =
            COLUMNS.iter().map(|(name, values)| format!("{name}{}", random.random_range(0..*values))).collect();
        csv += &(row.join(",") + "\n");
    }
    csv
}

fn some<'n>(random: &mut StdRng, of: &[&'n str], most: usize) -> Vec<&'n str> {
    let mut of = of.to_vec();
    of.shuffle(random);
    of.truncate(random.random_range(1..=most));
    of
}

/// A job of some method; sequential ones stand beside `earlier`.
fn job(random: &mut StdRng, earlier: &[String]) -> Value {
    let low = ["a", "b", "c", "g"];
    let high = ["d", "e", "f"];
    let l = random.random_range(2..=4);
    let guarantee = json!({"type": "l_diversity", "l": l});
    let sensitive = *high.choose(random).unwrap();
    let known = some(random, &low, 3);
    let marked: Map<String, Value> = known.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    let method = match random.random_range(0..9) {
        0..=2 => {
            let algorithm = *["uad", "gd", "single_attribute"].choose(random).unwrap();
            let rules: Vec<String> = (0..random.random_range(1..=3))
                .map(|_| {
                    let known = some(random, &low, 2).join(", ");
                    format!("{known} -> {}", high.choose(random).unwrap())
                })
                .collect();
            return json!({"unlisted": "drop",
                "method": {"type": "versatile", "algorithm": algorithm, "rules": rules, "default_guarantee": guarantee}});
        }
        3 => json!({"type": "anatomy", "sensitive": sensitive, "guarantee": guarantee}),
        4 => json!({"type": "bucketize", "sensitive": sensitive, "thresholds": {"uniform": {"l": l}}}),
        5 => json!({"type": "slicing", "sensitive": sensitive, "columns": {"count": 2}, "guarantee": guarantee}),
        6 => {
            json!({"type": "generalize", "quasi_identifiers": known, "sensitive": [sensitive], "cells": "set", "guarantees": [guarantee]})
        }
        7 => json!({"type": "decompose", "quasi_identifiers": known, "sensitive": ["d", "e"], "breaches": "report"}),
        _ => {
            let levels = |name: &str| {
                let values = COLUMNS.iter().find(|(of, _)| *of == name).unwrap().1;
                let half = |from: u32, to: u32| (from..to).map(|n| format!("{name}{n}")).collect::<Vec<_>>();
                json!({"taxonomy": {"any": {"low": half(0, values / 2), "high": half(values / 2, values)}}})
            };
            let attributes: Map<String, Value> = known.iter().map(|name| ((*name).to_owned(), levels(name))).collect();
            let x: Vec<String> = known.iter().map(|name| format!("new.{name}")).collect();
            return json!({"unlisted": "drop", "attributes": attributes, "method": {"type": "sequential", "publish": known,
                "against": earlier,
                "requirements": [{"x": x, "y": ["new.#key"], "measure": {"type": "xy_anonymity", "k": 5}}]}});
        }
    };
    json!({"unlisted": "drop", "attributes": marked, "method": method})
}

/// A published table, as its manifest has it.
struct Table {
    release: usize,
    attributes: BTreeSet<String>,
    /// What it protects from whom, and how much: attributes, attribute, l.
    guards: Vec<(BTreeSet<String>, String, u64)>,
    exclusive: bool,
}

struct Rule {
    known: BTreeSet<String>,
    sensitive: String,
    l: u64,
}

fn set(names: &Value) -> BTreeSet<String> {
    names.as_array().unwrap().iter().map(text).collect()
}

fn tables(release: usize, manifest: &Value) -> Vec<Table> {
    let read = |table: &Value| {
        let guards = table["guards"].as_array().unwrap().iter().flat_map(|guard| {
            let sensitive = set(&guard["sensitive"]);
            assert_eq!((sensitive.len(), &guard["joint"]), (1, &json!(false)));
            let known = set(&guard["quasi_identifiers"]);
            let bounds = guard["guarantees"].as_array().unwrap().iter().filter_map(|bound| bound["l"].as_u64());
            bounds.map(|l| (known.clone(), sensitive.first().unwrap().clone(), l)).collect::<Vec<_>>()
        });
        Table {
            release,
            attributes: set(&table["attributes"]),
            guards: guards.collect(),
            exclusive: table["protection"] == "exclusive",
        }
    };
    manifest["tables"].as_array().unwrap().iter().map(read).collect()
}

fn rules(manifest: &Value) -> Vec<Rule> {
    let listed = manifest["rules"].as_array().unwrap().iter();
    let read = |rule: &Value| {
        let (known, l) = (set(&rule["quasi_identifiers"]), rule["guarantee"]["l"].as_u64()?);
        // what is not bounded in a decomposition is no promise
        let bounded = rule["bounded"] != json!(false);
        set(&rule["sensitive"]).pop_first().filter(|_| bounded).map(|sensitive| Rule { known, sensitive, l })
    };
    listed.filter_map(read).collect()
}

/// The adversary of a rule goes from table to table along shared attributes; the sensitive one must stay out of reach, or be met
/// only where a table bounds it for this knowledge.
fn reaches(rule: &Rule, tables: &[&Table]) -> bool {
    let mut reached = rule.known.clone();
    loop {
        let before = reached.len();
        for table in tables {
            if table.attributes.is_disjoint(&reached) {
                continue;
            }
            reached.extend(table.attributes.iter().filter(|name| **name != rule.sensitive).cloned());
        }
        if reached.len() == before {
            break;
        }
    }
    let bounds = |table: &Table| {
        let entry: BTreeSet<String> = table.attributes.intersection(&reached).cloned().collect();
        table
            .guards
            .iter()
            .any(|(known, sensitive, l)| *sensitive == rule.sensitive && *l >= rule.l && entry.is_subset(known))
    };
    let meets = |table: &Table| table.attributes.contains(&rule.sensitive) && !table.attributes.is_disjoint(&reached);
    tables.iter().any(|table| meets(table) && !bounds(table))
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_releases_satisfy_all_active_rules() {
    let seed: u64 = std::env::var("GUARDIAN_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_121);
    println!("GUARDIAN_TEST_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut published: BTreeMap<String, usize> = BTreeMap::new();
    let mut refused = 0;
    for _ in 0..12 {
        let server = Server::start().await;
        let dataset = server.dataset(table(&mut random)).await;
        let mut manifests: Vec<Value> = Vec::new();
        for _ in 0..12 {
            // those of one table of tuples, that a sequential release can be made against
            let joinable = manifests.iter().filter(|manifest| {
                let tables = manifest["tables"].as_array().unwrap();
                matches!(&tables[..], [table] if table["parts"].as_array().unwrap().len() == 1)
            });
            let names: Vec<String> = joinable.map(|manifest| text(&manifest["id"])).collect();
            let answer = server.job(&dataset, job(&mut random, &names)).await;
            let job = answer.json();
            assert!(matches!(answer.status, 200 | 404 | 409 | 422), "{job:#}");
            assert_ne!(job["status"], "failed", "{job:#}");
            if job["status"] != "succeeded" {
                refused += 1;
                continue;
            }
            let manifest = server.get(&format!("/v1/releases/{}", text(&job["release"]))).await.ok(200);
            if !manifests.contains(&manifest) {
                *published.entry(text(&manifest["method"]["type"])).or_default() += 1;
                manifests.push(manifest);
            }
        }
        let all: Vec<Table> = manifests.iter().enumerate().flat_map(|(at, manifest)| tables(at, manifest)).collect();
        for (at, manifest) in manifests.iter().enumerate() {
            // decompositions and sequential releases report the figures of their own joins
            let alone = all.iter().any(|table| table.release == at && table.exclusive);
            let relevant: Vec<&Table> = all.iter().filter(|table| !alone || table.release != at).collect();
            for rule in rules(manifest) {
                let own_figures =
                    manifests.iter().map(|manifest| manifest["method"].to_string()).collect::<Vec<_>>().join(", ");
                assert!(
                    !reaches(&rule, &relevant),
                    "{:?} -> {} of {} among {own_figures}",
                    rule.known,
                    rule.sensitive,
                    manifest["method"]
                );
            }
        }
        for table in all.iter().filter(|table| table.exclusive) {
            let against = |one: usize, other: usize| {
                let of = manifests[one]["method_details"]["against"].as_array();
                of.is_some_and(|of| of.iter().any(|id| *id == manifests[other]["id"]))
            };
            let earlier = all
                .iter()
                .filter(|other| other.release != table.release && !other.attributes.is_disjoint(&table.attributes));
            for other in earlier {
                let (a, b) = (table.release, other.release);
                assert!(against(a, b) || against(b, a), "{} beside {}", manifests[a]["method"], manifests[b]["method"]);
            }
        }
        server.stop().await;
    }
    println!("{published:?}, {refused} refused");
    assert!(published.values().sum::<usize>() >= 34 && refused >= 20, "{published:?} {refused}");
    for method in ["versatile", "anatomy", "bucketize", "slicing", "generalize", "decompose", "sequential"] {
        assert!(published.contains_key(method), "{method}: {published:?}");
    }
}
