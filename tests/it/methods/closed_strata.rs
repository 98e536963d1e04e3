//! Strata that break a guarantee by themselves, published as one bucket each: what holds for whom, and what is said of it.

use std::collections::{BTreeMap, BTreeSet};

use guardian::engine::{EngineError, VerifiedRelease};
use guardian::ledger::EarlierDisclosures;
use guardian::problem::{Fault, Kind};
use guardian::random::{RandomStreams, ReleaseKey};
use guardian::report::{Manifest, ManifestRule, public_report};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::library::{self, Memory, Original, Random, ReadPart, parts, table};

const REASON: &str = "the registry of chapters is public";

/// 420 people: 24 diagnoses in three chapters of eight, and a fourth chapter with one diagnosis of 60 people.
fn people() -> Original {
    let mut random = Random(1);
    let row = |i: usize| {
        let dx = if i < 360 { i % 24 } else { 24 };
        format!("{},s{},c{},d{dx:02}\n", 20 + random.below(40), random.below(2), dx / 8)
    };
    let rows: String = (0..420).map(row).collect();
    Original::new(table(("age,sex,chapter,dx\n".to_owned() + &rows).as_bytes()))
}

fn document(method: &Value) -> Value {
    let attributes: Value =
        ["age", "sex", "chapter", "dx"].map(|name| (name, json!({"publish": true}))).into_iter().collect();
    json!({ "attributes": attributes, "method": method })
}

fn closing() -> Value {
    json!({"closed": {"reason": REASON}})
}

/// The methods that close strata, for who knows age, sex and chapter.
fn methods() -> Vec<Value> {
    let guarantee = json!({"type": "l_diversity", "l": 5});
    let versatile = |algorithm: &str| {
        json!({"type": "versatile", "rules": ["age, sex, chapter -> dx"], "default_guarantee": guarantee,
            "algorithm": algorithm, "ineligible_strata": closing()})
    };
    let known = ["age", "sex", "chapter"];
    vec![
        json!({"type": "anatomy", "sensitive": "dx", "quasi_identifiers": known, "guarantee": guarantee,
            "ineligible_strata": closing()}),
        versatile("uad"),
        versatile("gd"),
        versatile("auto"),
    ]
}

fn publish(method: &Value) -> Result<(Manifest, Memory), Vec<Fault>> {
    library::publish(&people(), &document(method))
}

/// The diagnoses and the chapters of each bucket.
fn buckets(manifest: &Manifest, files: &Memory) -> BTreeMap<u32, (Vec<String>, BTreeSet<String>)> {
    let column = |part: &ReadPart, name: &str| part.attributes.iter().position(|attribute| attribute == name);
    let tables = parts(manifest, files);
    let guarding =
        tables.iter().find(|table| table.iter().any(|part| part.buckets.is_some() && column(part, "dx").is_some()));
    let mut buckets: BTreeMap<u32, (Vec<String>, BTreeSet<String>)> = BTreeMap::new();
    for part in guarding.unwrap() {
        for (bucket, row) in part.buckets.as_ref().unwrap().iter().zip(&part.rows) {
            let of_bucket = buckets.entry(*bucket).or_default();
            if let Some(at) = column(part, "dx") {
                of_bucket.0.push(row[at].clone());
            }
            if let Some(at) = column(part, "chapter") {
                of_bucket.1.insert(row[at].clone());
            }
        }
    }
    buckets
}

fn closed_rule(manifest: &Manifest) -> &ManifestRule {
    manifest.rules.iter().find(|rule| rule.closed.is_some()).unwrap()
}

#[test]
fn closed_stratum_is_one_bucket_and_others_keep_bounds() {
    for method in methods() {
        let (manifest, files) = publish(&method).unwrap_or_else(|faults| panic!("{method}: {faults:#?}"));
        let mut without_bound = Vec::new();
        for (values, chapters) in buckets(&manifest, &files).into_values() {
            assert_eq!(chapters.len(), 1, "{method}");
            let most = values.iter().map(|value| values.iter().filter(|other| *other == value).count()).max().unwrap();
            if most * 5 > values.len() {
                without_bound.push((values.len(), chapters.into_iter().next().unwrap()));
            }
        }
        assert_eq!(without_bound, [(60, "c3".to_owned())], "{method}");

        let rule = closed_rule(&manifest);
        assert_eq!(rule.bounded, Some(false), "{method}");
        let written = serde_json::to_value(rule.closed).unwrap();
        let expected = json!({"buckets": 1, "rows": 60, "of": 420, "worst_posterior": {"count": 60, "of": 60}});
        assert_eq!(written, expected, "{method}");
        let choice = serde_json::to_value(&manifest.dependencies).unwrap();
        assert_eq!(choice["ineligible_strata"], closing());
        let report = public_report(&manifest);
        let rules = report.rules.join("\n");
        assert!(rules.contains("the bound holds for 85.71% of the rows"), "{rules}");
        assert!(rules.contains("chapter alone reveals more than the rule allows"), "{rules}");
        assert!(report.not_promised.iter().any(|sentence| sentence.contains(REASON)), "{:?}", report.not_promised);
        // a reader without the original finds the same
        let job = people().job(&document(&method)).unwrap();
        library::verified(&job, &manifest, &files, false);
    }
}

#[test]
fn closing_is_not_chosen_by_the_service() {
    for mut method in methods() {
        method.as_object_mut().unwrap().remove("ineligible_strata");
        let faults = publish(&method).map(|_| ()).unwrap_err();
        assert!(faults.iter().all(|fault| fault.kind == Kind::RuleImpossible), "{method}: {faults:#?}");
        let repairs = faults[0].members["repairs"].as_array().unwrap();
        let repair = repairs.iter().find(|repair| repair["ineligible_strata"] == "closed").unwrap();
        assert_eq!(repair["reason_at"], json!(["/method/ineligible_strata/closed/reason"]));
        // without the officer's reason it is not accepted
        method["ineligible_strata"] = repair["patch"]["method"]["ineligible_strata"].clone();
        let faults = people().job(&document(&method)).map(|_| ()).unwrap_err();
        assert_eq!(faults[0].pointer, "/method/ineligible_strata/closed/reason", "{faults:#?}");
    }
}

#[test]
fn closing_where_every_stratum_holds_leaves_the_bound() {
    for mut method in methods() {
        let rule = method["rules"].is_array();
        // three chapters of eight diagnoses each keep l = 5
        let mut random = Random(2);
        let row = |i: usize| format!("{},s{},c{},d{:02}\n", 20 + random.below(37), random.below(2), i % 24 / 8, i % 24);
        let rows: String = (0..480).map(row).collect();
        let original = Original::new(table(("age,sex,chapter,dx\n".to_owned() + &rows).as_bytes()));
        let (manifest, _) = library::publish(&original, &document(&method)).unwrap();
        assert!(manifest.rules.iter().all(|rule| rule.bounded.is_none() && rule.closed.is_none()), "{method}");
        // a table that breaks the guarantee as a whole is refused all the same
        let guarantee = json!({"type": "l_diversity", "l": 200});
        method[if rule { "default_guarantee" } else { "guarantee" }] = guarantee;
        let faults = library::publish(&original, &document(&method)).map(|_| ()).unwrap_err();
        assert!(faults.iter().any(|fault| fault.kind == Kind::RuleIneligible), "{method}: {faults:#?}");
    }
}

#[test]
fn verifier_refuses_false_figures_of_closed_buckets() {
    let method = &methods()[0];
    let original = people();
    let (manifest, files) = library::publish(&original, &document(method)).unwrap();
    let job = original.job(&document(method)).unwrap();
    let changes: [fn(&mut Value); 5] = [
        |rule| rule["bounded"] = true.into(),
        |rule| rule["closed"]["rows"] = 0.into(),
        |rule| rule["closed"]["worst_posterior"] = json!({"count": 1, "of": 5}),
        |rule| drop(rule.as_object_mut().unwrap().remove("closed")),
        |_| {},
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut written = serde_json::to_value(&manifest).unwrap();
        change(&mut written["rules"][0]);
        let read: Manifest = serde_json::from_value(written).unwrap();
        assert_eq!(library::is_verified(&job, &read, &files), at == 4, "{at}");
    }
    // neither a manifest nor a specification without the choice is kept by such buckets
    let mut written = serde_json::to_value(&manifest).unwrap();
    written["dependencies"].as_object_mut().unwrap().remove("ineligible_strata");
    let mut open = method.clone();
    open["ineligible_strata"] = "refuse".into();
    let open = original.job(&document(&open)).unwrap();
    assert!(!library::is_verified(&open, &serde_json::from_value(written).unwrap(), &files));
    assert!(!library::is_verified(&open, &manifest, &files));
}

fn released(document: &Value, earlier: &EarlierDisclosures, key: u8) -> Result<VerifiedRelease, EngineError> {
    let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([key; 32]));
    let job = people().job(document).unwrap_or_else(|faults| panic!("{faults:#?}"));
    library::release(&job, earlier, &streams).map(|(release, _)| release)
}

fn recorded(of: u128, release: VerifiedRelease) -> EarlierDisclosures {
    let id = Uuid::from_u128(of);
    EarlierDisclosures {
        disclosures: release.disclosures.into_iter().map(|disclosure| (id, disclosure)).collect(),
        rules: release.rules.into_iter().map(|rule| (id, rule)).collect(),
        ..EarlierDisclosures::default()
    }
}

#[test]
fn ledger_holds_later_releases_to_the_bound_of_other_rows() {
    let first = released(&document(&methods()[0]), &EarlierDisclosures::default(), 1).unwrap();
    assert!(first.rules.iter().all(|rule| rule.closes));
    let earlier = recorded(1, first);
    let only = |names: &[&str]| -> Value {
        let options =
            |name: &str| json!(if names.contains(&name) { json!({"publish": true}) } else { json!({"drop": true}) });
        ["age", "sex", "chapter", "dx"].map(|name| (name, options(name))).into_iter().collect()
    };
    // ages and sexes say nothing more of diagnoses
    let harmless = json!({"attributes": only(&["age", "sex"]), "no_rules_reason": "a marginal",
        "method": {"type": "versatile", "rules": []}});
    released(&harmless, &earlier, 2).unwrap();
    // the same table under the same rule without the choice promises what its first release does not keep
    let mut open = methods()[0].clone();
    open["ineligible_strata"] = "refuse".into();
    open["quasi_identifiers"] = json!(["age", "sex"]);
    let again = json!({"attributes": only(&["age", "sex", "dx"]), "method": open});
    let Err(EngineError::Refused(problem)) = released(&again, &earlier, 3) else { panic!("a second table of dx") };
    assert_eq!(problem.kind, Kind::CompositionViolated, "{problem:?}");
}

#[test]
fn other_methods_refuse_to_close_strata() {
    let known = ["age", "sex", "chapter"];
    let guarantee = json!({"type": "l_diversity", "l": 2});
    let requirement = json!({"x": ["new.age"], "y": ["new.#key"], "measure": {"type": "xy_anonymity", "k": 2}});
    for mut method in [
        json!({"type": "bucketize", "sensitive": "dx", "quasi_identifiers": known, "thresholds": {"uniform": {"l": 2}}}),
        json!({"type": "generalize", "sensitive": ["dx"], "quasi_identifiers": known, "guarantees": [guarantee]}),
        json!({"type": "decompose", "sensitive": ["dx"], "quasi_identifiers": known, "l": {"dx": 2}}),
        json!({"type": "slicing", "sensitive": "dx", "columns": {"count": 2}, "guarantee": guarantee}),
        json!({"type": "sequential", "requirements": [requirement]}),
    ] {
        method["ineligible_strata"] = closing();
        let faults = people().job(&document(&method)).map(|_| ()).unwrap_err();
        let found: Vec<(&str, Kind)> = faults.iter().map(|fault| (fault.pointer.as_str(), fault.kind)).collect();
        assert_eq!(found, [("/method/ineligible_strata", Kind::UnknownField)], "{method}: {faults:#?}");
    }
}

#[test]
fn several_attributes_at_once_close_no_strata() {
    // 420 people of whom each has one of five drugs, too
    let mut random = Random(2);
    let row = |i: usize| {
        let dx = if i < 360 { i % 24 } else { 24 };
        format!("{},c{},d{dx:02},g{}\n", 20 + random.below(40), dx / 8, (i * 7 + i / 11) % 5)
    };
    let rows: String = (0..420).map(row).collect();
    let original = Original::new(table(("age,chapter,dx,drug\n".to_owned() + &rows).as_bytes()));
    let attributes: Value =
        ["age", "chapter", "dx", "drug"].map(|name| (name, json!({"publish": true}))).into_iter().collect();
    let method = json!({"type": "versatile", "algorithm": "multi_sa", "rules": ["age, chapter -> dx", "age, chapter -> drug"],
        "default_guarantee": {"type": "l_diversity", "l": 2}, "ineligible_strata": closing()});
    let document = json!({ "attributes": attributes, "method": method });
    let faults = library::publish(&original, &document).map(|_| ()).unwrap_err();
    // the chapter of one diagnosis keeps no bound, and its rows cannot be one bucket of both attributes
    assert!(faults.iter().any(|fault| fault.kind == Kind::RuleImpossible), "{faults:#?}");
    assert!(
        faults.iter().all(|fault| !fault.members.get("repairs").is_some_and(|repairs| {
            repairs.as_array().unwrap().iter().any(|repair| repair.get("ineligible_strata").is_some())
        })),
        "{faults:#?}"
    );
}
