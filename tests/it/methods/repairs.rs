//! Repairs of refusals that dependencies cause: each, applied as a merge patch, is accepted.

use guardian::problem::{Fault, Kind};
use serde_json::{Value, json};

use crate::support::library::{self, Original, Random, table};

const COLUMNS: [&str; 5] = ["age", "sex", "chapter", "dx", "ward"];

/// 480 people: 24 diagnoses in three chapters of eight, and a ward that says nothing.
fn people() -> Original {
    let mut random = Random(1);
    let row = |i: usize| {
        let dx = i % 24;
        format!("{},s{},c{},d{dx:02},w{}\n", 20 + random.below(40), random.below(2), dx / 8, random.below(5))
    };
    let rows: String = (0..480).map(row).collect();
    Original::new(table((COLUMNS.join(",") + "\n" + &rows).as_bytes()))
}

fn document(method: &Value) -> Value {
    let attributes: Value = COLUMNS.map(|name| (name, json!({"publish": true}))).into_iter().collect();
    json!({ "attributes": attributes, "method": method })
}

/// Applies a merge patch [RFC 7396].
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        let members = target.as_object_mut().unwrap();
        match value {
            Value::Null => drop(members.remove(name)),
            value => merge(members.entry(name).or_insert(Value::Null), value),
        }
    }
}

/// Publishes a document after a repair. Where the repair needs a reason, the document is refused without one.
pub(crate) fn publish_repaired(original: &Original, document: &Value, repair: &Value) -> Result<(), Vec<Fault>> {
    let mut repaired = document.clone();
    merge(&mut repaired, &repair["patch"]);
    let pointers = repair["reason_at"].as_array().cloned().unwrap_or_default();
    let pointers: Vec<&str> = pointers.iter().filter_map(Value::as_str).collect::<Vec<_>>();
    if !pointers.is_empty() {
        let faults = original.job(&repaired).map(|_| ()).unwrap_err();
        let missing: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(missing, pointers, "{repair}: {faults:#?}");
    }
    for pointer in pointers {
        let (place, member) = pointer.rsplit_once('/').unwrap();
        repaired.pointer_mut(place).unwrap()[member] = "the officer says why".into();
    }
    library::publish(original, &repaired).map(|_| ())
}

/// Methods that protect the diagnosis with 1/9 from who knows its chapter, which has eight diagnoses; and methods that
/// are not proved beside the dependency.
fn refused_methods() -> Vec<Value> {
    let known = json!(["age", "sex", "chapter"]);
    let guarantee = json!({"type": "l_diversity", "l": 9});
    let share = json!({"explicit": {}, "otherwise": "1/9"});
    let columns = json!({"explicit": [["age", "ward"], ["sex"], ["chapter"], ["dx"]]});
    let versatile = |algorithm: &str| {
        json!({"type": "versatile", "rules": ["age, sex, chapter -> dx"], "default_guarantee": guarantee,
            "algorithm": algorithm})
    };
    let of_dx = |method: &str, mut more: Value| {
        merge(&mut more, &json!({"type": method, "quasi_identifiers": known}));
        more
    };
    vec![
        versatile("uad"),
        versatile("gd"),
        versatile("auto"),
        of_dx("anatomy", json!({"sensitive": "dx", "guarantee": guarantee})),
        of_dx("bucketize", json!({"sensitive": "dx", "thresholds": share, "sizes": "one"})),
        of_dx("bucketize", json!({"sensitive": "dx", "thresholds": share})),
        of_dx(
            "bucketize",
            json!({"sensitive": "dx", "thresholds": {"explicit": {}, "otherwise": "1/5"},
            "sizes": [{"size": 5, "buckets": 96}]}),
        ),
        of_dx("generalize", json!({"sensitive": ["dx"], "guarantees": [guarantee]})),
        of_dx("decompose", json!({"sensitive": ["dx"], "l": {"dx": 9}, "breaches": "report"})),
        json!({"type": "slicing", "sensitive": "dx", "columns": columns, "guarantee": guarantee}),
        json!({"type": "slicing", "sensitive": "dx", "columns": columns, "guarantee": {"type": "l_diversity", "l": 5},
            "diversity": "mixture"}),
    ]
}

/// The document of a method with no more attributes than it takes.
fn of_method(method: &Value) -> Value {
    let mut document = document(method);
    if matches!(method["type"].as_str(), Some("generalize" | "decompose")) {
        document["attributes"]["ward"] = json!({"drop": true});
    }
    document
}

#[test]
fn every_refusal_by_links_has_repairs_that_hold() {
    let original = people();
    for method in refused_methods() {
        let document = of_method(&method);
        let faults = library::publish(&original, &document).map(|_| ()).unwrap_err();
        for fault in &faults {
            assert!(matches!(fault.kind, Kind::RuleImpossible | Kind::GuaranteeUnsupported), "{method}: {fault:#?}");
            let repairs = fault.members["repairs"].as_array().unwrap();
            assert!(!repairs.is_empty(), "{method}: {fault:#?}");
            for repair in repairs {
                publish_repaired(&original, &document, repair)
                    .unwrap_or_else(|faults| panic!("{method}: {repair}: {faults:#?}"));
            }
        }
    }
}

#[test]
fn refusal_of_a_known_copy_has_repairs_that_hold() {
    // the code is the diagnosis by another name
    let mut random = Random(2);
    let row = |i: usize| {
        let (age, sex, ward) = (20 + random.below(37), random.below(2), random.below(5));
        format!("{age},s{sex},c{:02},d{:02},w{ward}\n", i % 24, i % 24)
    };
    let rows: String = (0..480).map(row).collect();
    let original = Original::new(table((COLUMNS.join(",") + "\n" + &rows).as_bytes()));
    let known = json!(["age", "sex", "chapter"]);
    let guarantee = json!({"type": "l_diversity", "l": 3});
    let columns = json!({"explicit": [["age", "ward"], ["sex"], ["chapter"], ["dx"]]});
    for method in [
        json!({"type": "versatile", "rules": ["age, sex, chapter -> dx"], "default_guarantee": guarantee}),
        json!({"type": "anatomy", "sensitive": "dx", "quasi_identifiers": known, "guarantee": guarantee}),
        json!({"type": "generalize", "sensitive": ["dx"], "quasi_identifiers": known, "guarantees": [guarantee]}),
        json!({"type": "slicing", "sensitive": "dx", "columns": columns, "guarantee": guarantee}),
    ] {
        let document = of_method(&method);
        let faults = library::publish(&original, &document).map(|_| ()).unwrap_err();
        let fault = faults.iter().find(|fault| fault.kind == Kind::RuleImpossible).unwrap();
        let repairs = fault.members["repairs"].as_array().unwrap();
        assert!(!repairs.is_empty(), "{method}: {fault:#?}");
        for repair in repairs {
            publish_repaired(&original, &document, repair)
                .unwrap_or_else(|faults| panic!("{method}: {repair}: {faults:#?}"));
        }
    }
}

/// Guarantees that say nothing of combinations, and a pair that determines what they protect.
#[test]
fn guarantees_of_no_combination_are_kept_or_repaired() {
    let mut random = Random(3);
    let row = |_| {
        let [b, c] = [random.below(6), random.below(6)];
        format!("{},b{b},c{c},s{}\n", random.below(5), (b * 7 + c * 5) % 9)
    };
    let rows: String = (0..400).map(row).collect();
    let original = Original::new(table(("a,b,c,s\n".to_owned() + &rows).as_bytes()));
    let mut outcomes = [0, 0];
    for guarantee in [
        json!({"type": "distinct_l_diversity", "l": 3}),
        json!({"type": "entropy_l_diversity", "l": 2}),
        json!({"type": "recursive_l_diversity", "c": "3", "l": 2}),
        json!({"type": "t_closeness", "t": "0.4"}),
    ] {
        for algorithm in ["uad", "gd", "auto", "single_attribute"] {
            let document = json!({"unlisted": "drop", "method": {"type": "versatile", "algorithm": algorithm,
                "rules": ["a -> s", "a, b -> c"], "default_guarantee": guarantee,
                "functional_dependencies": [{"determinant": ["b", "c"], "dependent": ["s"]}]}});
            let Err(faults) = library::publish(&original, &document) else {
                outcomes[0] += 1;
                continue;
            };
            outcomes[1] += 1;
            for fault in faults {
                assert_eq!(fault.kind, Kind::RuleImpossible, "{document}: {fault:#?}");
                let repairs = fault.members["repairs"].as_array().unwrap();
                assert!(!repairs.is_empty(), "{document}: {fault:#?}");
                for repair in repairs {
                    publish_repaired(&original, &document, repair)
                        .unwrap_or_else(|faults| panic!("{repair}: {faults:#?}"));
                }
            }
        }
    }
    assert!(outcomes[0] > 4 && outcomes[1] > 2, "{outcomes:?}");
}
