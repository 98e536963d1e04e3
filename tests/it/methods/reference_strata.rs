//! Guarantees that compare buckets with the distribution of their stratum, which the adversary has before the release.

use std::collections::BTreeMap;

use guardian::problem::{Fault, Kind};
use guardian::report::{Manifest, public_report};
use serde_json::{Value, json};

use super::repairs::publish_repaired;
use crate::support::library::{self, Memory, Original, Random, ReadPart, parts, table};

const COLUMNS: [&str; 4] = ["age", "sex", "chapter", "dx"];

/// 480 people: 24 diagnoses in three chapters of eight, the first of each chapter three times as frequent as others.
fn people() -> Original {
    let mut random = Random(3);
    let row = |i: usize| {
        let (chapter, at) = (i % 3, i / 3 % 10);
        let dx = chapter * 8 + at.saturating_sub(2);
        format!("{},s{},c{chapter},d{dx:02}\n", 20 + random.below(40), random.below(2))
    };
    let rows: String = (0..480).map(row).collect();
    Original::new(table((COLUMNS.join(",") + "\n" + &rows).as_bytes()))
}

fn document(method: &Value) -> Value {
    let attributes: Value = COLUMNS.map(|name| (name, json!({"publish": true}))).into_iter().collect();
    json!({ "attributes": attributes, "method": method })
}

fn publish(method: &Value) -> Result<(Manifest, Memory), Vec<Fault>> {
    library::publish(&people(), &document(method))
}

/// Guarantees that compare, against a reference.
fn guarantees(reference: &str) -> [Value; 3] {
    [
        json!({"type": "t_closeness", "t": "0.3", "reference": reference}),
        json!({"type": "rho", "rho1": "0.3", "rho2": "0.45", "reference": reference}),
        json!({"type": "delta", "distance": "total_variation", "b": "0.3", "reference": reference}),
    ]
}

fn methods(guarantee: &Value) -> [Value; 2] {
    let known = ["age", "sex", "chapter"];
    [
        json!({"type": "anatomy", "sensitive": "dx", "quasi_identifiers": known, "guarantee": guarantee}),
        json!({"type": "versatile", "rules": ["age, sex, chapter -> dx"], "default_guarantee": guarantee}),
    ]
}

/// The diagnoses of each bucket.
fn buckets(manifest: &Manifest, files: &Memory) -> Vec<Vec<String>> {
    let column = |part: &ReadPart| part.attributes.iter().position(|attribute| attribute == "dx");
    let tables = parts(manifest, files);
    let mut buckets: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for part in tables.iter().flatten().filter(|part| part.buckets.is_some()) {
        let Some(at) = column(part) else { continue };
        for (bucket, row) in part.buckets.as_ref().unwrap().iter().zip(&part.rows) {
            buckets.entry(*bucket).or_default().push(row[at].clone());
        }
    }
    buckets.into_values().collect()
}

/// The distance of a bucket from its chapter: half the sum of the differences of shares.
fn distance(bucket: &[String]) -> f64 {
    let share = |dx: &String| bucket.iter().filter(|other| *other == dx).count() as f64 / bucket.len() as f64;
    let chapter = bucket[0][1..].parse::<usize>().unwrap() / 8;
    let of_chapter = (0..8).map(|at| (format!("d{:02}", chapter * 8 + at), if at == 0 { 0.3 } else { 0.1 }));
    of_chapter.map(|(dx, prior)| (share(&dx) - prior).abs()).sum::<f64>() / 2.0
}

#[test]
fn bucket_compares_with_the_stratum_that_is_known() {
    for guarantee in guarantees("stratum") {
        for method in methods(&guarantee) {
            let (manifest, files) = publish(&method).unwrap_or_else(|faults| panic!("{method}: {faults:#?}"));
            let buckets = buckets(&manifest, &files);
            // more than one bucket in a chapter: the reference is no reason to publish strata whole
            assert!(buckets.len() > 3, "{method}: {}", buckets.len());
            for bucket in &buckets {
                assert!(distance(bucket) <= 0.3 + 1e-9 || guarantee["type"] == "rho", "{method}: {bucket:?}");
                let most = bucket.iter().map(|dx| bucket.iter().filter(|other| *other == dx).count()).max().unwrap();
                assert!(
                    guarantee["type"] != "rho" || most as f64 <= 0.45 * bucket.len() as f64,
                    "{method}: {bucket:?}"
                );
            }
            let rule = manifest.rules.iter().find(|rule| rule.strata == ["chapter"]).unwrap();
            assert_eq!(serde_json::to_value(rule.guarantee).unwrap()["reference"], "stratum", "{method}");
            let words = public_report(&manifest).rules.join("\n");
            assert!(words.contains("the rows with the same chapter"), "{words}");
            // a reader without the original finds the same
            let job = people().job(&document(&method)).unwrap();
            library::verified(&job, &manifest, &files, false);
        }
    }
}

#[test]
fn table_reference_in_strata_is_refused_for_the_stratum() {
    for guarantee in guarantees("table") {
        for method in methods(&guarantee) {
            let faults = publish(&method).map(|_| ()).unwrap_err();
            assert_eq!(faults[0].kind, Kind::RuleImpossible, "{method}: {faults:#?}");
            let repairs = faults[0].members["repairs"].as_array().unwrap();
            assert!(repairs.iter().any(|repair| repair["reference"] == "stratum"), "{method}: {repairs:#?}");
            for repair in repairs {
                publish_repaired(&people(), &document(&method), repair)
                    .unwrap_or_else(|faults| panic!("{method}: {repair}: {faults:#?}"));
            }
        }
    }
}

#[test]
fn reference_that_a_rule_does_not_know_is_unsupported() {
    for guarantee in guarantees("stratum") {
        // who knows age alone does not know the chapter whose distribution is meant
        let method = json!({"type": "versatile", "rules": ["age, chapter -> dx", "age -> dx"],
            "default_guarantee": guarantee});
        let faults = publish(&method).map(|_| ()).unwrap_err();
        for fault in &faults {
            assert_eq!(fault.kind, Kind::GuaranteeUnsupported, "{guarantee}: {faults:#?}");
        }
        // an attribute that no rule knows moves, and the table itself is the reference
        let method = json!({"type": "versatile", "rules": ["age, sex -> dx"], "default_guarantee": guarantee});
        let (manifest, _) = publish(&method).unwrap_or_else(|faults| panic!("{method}: {faults:#?}"));
        assert!(manifest.rules.iter().all(|rule| rule.strata.is_empty()), "{guarantee}");
    }
}

#[test]
fn reference_of_classes_is_the_table() {
    let method = json!({"type": "generalize", "quasi_identifiers": ["age", "sex", "chapter"], "sensitive": ["dx"],
        "guarantees": [guarantees("stratum")[0]]});
    let faults = publish(&method).map(|_| ()).unwrap_err();
    assert!(faults.iter().all(|fault| fault.kind == Kind::GuaranteeUnsupported), "{faults:#?}");
}

#[test]
fn verifier_refuses_buckets_far_from_their_stratum() {
    let [method, _] = methods(&guarantees("stratum")[0]);
    let original = people();
    let (manifest, files) = library::publish(&original, &document(&method)).unwrap();
    let job = original.job(&document(&method)).unwrap();
    let closer = |t: &str, reference: Option<&str>| {
        let mut written = serde_json::to_value(&manifest).unwrap();
        for place in ["/rules/0/guarantee", "/tables/0/guards/0/guarantees/0"] {
            let guarantee = written.pointer_mut(place).unwrap();
            guarantee["t"] = t.into();
            match reference {
                Some(reference) => guarantee["reference"] = reference.into(),
                None => drop(guarantee.as_object_mut().unwrap().remove("reference")),
            }
        }
        let read: Manifest = serde_json::from_value(written).unwrap();
        let mut asked = method.clone();
        asked["guarantee"] = json!({"type": "t_closeness", "t": t, "reference": reference.unwrap_or("table")});
        let asked = original.job(&document(&asked)).unwrap();
        library::is_verified(&asked, &read, &files)
    };
    assert!(library::is_verified(&job, &manifest, &files));
    assert!(closer("0.3", Some("stratum")));
    // neither a smaller distance nor that from the whole table is what the parts keep
    assert!(!closer("0.01", Some("stratum")) && !closer("0.3", None));
    // a rule that does not know the strata has no reference in them
    let mut written = serde_json::to_value(&manifest).unwrap();
    written["rules"][0]["quasi_identifiers"] = json!(["age", "sex"]);
    let read: Manifest = serde_json::from_value(written).unwrap();
    let mut unknown = method.clone();
    unknown["quasi_identifiers"] = json!(["age", "sex"]);
    let unknown = original.job(&document(&unknown)).unwrap();
    assert!(!library::is_verified(&unknown, &read, &files));
}

/// People with a drug that the diagnosis mostly determines, within its chapter.
fn medicated() -> Original {
    let mut random = Random(5);
    let row = |i: usize| {
        let (chapter, at) = (i % 3, i / 3 % 8);
        let other = if random.below(8) == 0 { (at + 1) % 8 } else { at };
        format!("{},c{chapter},d{:02},g{:02}\n", 20 + random.below(40), chapter * 8 + at, chapter * 8 + other)
    };
    let rows: String = (0..480).map(row).collect();
    Original::new(table(("age,chapter,dx,drug\n".to_owned() + &rows).as_bytes()))
}

#[test]
fn correlated_attributes_compare_inside_strata_or_not_at_all() {
    let document = |t: &str, reference: &str| {
        let attributes: Value =
            ["age", "chapter", "dx", "drug"].map(|name| (name, json!({"publish": true}))).into_iter().collect();
        json!({"attributes": attributes, "method": {"type": "versatile", "algorithm": "gd", "correlated": "together",
            "rules": ["age, chapter -> dx", "age, chapter -> drug"],
            "default_guarantee": {"type": "t_closeness", "t": t, "reference": reference}}})
    };
    // of several attributes in the same buckets, none compares with its stratum
    let faults = library::publish(&medicated(), &document("0.3", "stratum")).map(|_| ()).unwrap_err();
    assert!(faults.iter().all(|fault| fault.kind == Kind::GuaranteeUnsupported), "{faults:#?}");
    assert!(faults.iter().all(|fault| fault.pointer.starts_with("/method/rules/")), "{faults:#?}");
    // a chapter is two thirds away from the table
    let faults = library::publish(&medicated(), &document("0.3", "table")).map(|_| ()).unwrap_err();
    assert!(faults.iter().all(|fault| fault.kind == Kind::RuleImpossible), "{faults:#?}");
    let original = medicated();
    let (manifest, files) = library::publish(&original, &document("0.8", "table")).unwrap();
    for column in ["dx", "drug"] {
        let all = |value: &str| value[1..].parse::<usize>().unwrap() / 8;
        let mut buckets: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for part in parts(&manifest, &files).iter().flatten() {
            let Some(at) = part.attributes.iter().position(|attribute| attribute == column) else { continue };
            for (bucket, row) in part.buckets.as_ref().unwrap().iter().zip(&part.rows) {
                buckets.entry(*bucket).or_default().push(row[at].clone());
            }
        }
        assert!(buckets.len() > 3, "{column}: {}", buckets.len());
        for bucket in buckets.values() {
            // one chapter, and of it enough values: what is in no bucket counts with its share of the table
            assert!(bucket.iter().all(|value| all(value) == all(&bucket[0])), "{column}: {bucket:?}");
            let distinct: BTreeMap<&String, usize> =
                bucket.iter().map(|value| (value, bucket.iter().filter(|other| *other == value).count())).collect();
            let size = bucket.len() as f64;
            let excess = distinct.values().map(|&count| (count as f64 / size - 1.0 / 24.0).max(0.0)).sum::<f64>();
            assert!(excess <= 0.85, "{column}: {bucket:?}");
        }
    }
    let job = original.job(&document("0.8", "table")).unwrap();
    library::verified(&job, &manifest, &files, false);
}
