//! Documents that mean the same are normalized to the same.

use super::*;

fn normal(document: &Value) -> (Value, Value) {
    let specification = accepted(document, &hospital());
    (specification.normalized, specification.reuse_form)
}

#[test]
fn shorthand_objects_orders_and_explicit_defaults_are_one() {
    let l = |l: u64| json!({"type": "l_diversity", "l": l});
    let spelled = json!({
        "dataset": ID.to_uppercase(), "hold": false, "priority": 0, "deadline": null, "unlisted": "refuse",
        "composition": {"mode": "enforce"}, "internal": {}, "utility": [],
        "attributes": {"age": {"publish": true, "drop": false, "rename": "age"}, "race": {}, "icd9": {"excludable": []}},
        "method": {
            "score": "entropy", "algorithm": "uad", "type": "versatile", "correlated": "together",
            "uad": {"addback": false, "saturate": false}, "gd": {"fill": false},
            "rules": [
                {"sensitive": ["race"], "quasi_identifiers": ["icd9", "age"], "guarantee": l(2)},
                {"sensitive_combination": ["zipcode"], "quasi_identifiers": ["gender", "icd9"], "guarantee": {"type": "l_diversity", "l": 2.0}},
                "race,hospital->( zipcode )",
            ],
            "functional_dependencies": [], "assume_unknown": [], "default_guarantee": l(2),
        },
    });
    assert_eq!(normal(&spelled), normal(&hospital_document()));
}

#[test]
fn the_normal_form_is_this() {
    let guarantee = json!({"type": "l_diversity", "l": 2});
    let document = json!({
        "dataset": ID, "priority": 3, "deadline": "PT600S", "reason": "why",
        "attributes": {"gender": {"publish": true}, "hospital": {"drop": true}, "icd9": {"drop": true},
            "age": {"publish": true, "identifier": false, "rename": "years", "discretize": {"equal_width": 5}}},
        "method": {"type": "versatile", "rules": ["age -> race, zipcode"], "default_guarantee": guarantee},
    });
    let age = json!({"publish": true, "identifier": false, "rename": "years", "discretize": {"equal_width": 5}});
    let method = json!({
        "type": "versatile", "algorithm": "uad", "correlated": "together", "score": "entropy", "goal": "entropy",
        "rules": [{"quasi_identifiers": ["age"], "sensitive": ["zipcode", "race"], "guarantee": guarantee}],
        "functional_dependencies": [], "assume_unknown": [], "ineligible_strata": "refuse",
        "dependencies": {"discover": "singles_and_pairs", "tolerance": "0.01"},
        "uad": {"saturate": false, "coloring": "free_last", "addback": false}, "gd": {"try_all": false, "fill": false},
    });
    let drop = json!({"drop": true});
    let (normalized, reuse) = normal(&document);
    assert_eq!(
        normalized,
        json!({
            "dataset": ID, "hold": false, "priority": 3, "deadline": "PT10M", "reason": "why", "unlisted": "refuse",
            "attributes": {"age": age, "gender": {"publish": true}, "hospital": drop, "icd9": drop},
            "composition": {"mode": "enforce"}, "internal": {"utility": []}, "utility": [], "method": method,
        })
    );
    assert_eq!(
        reuse,
        json!({
            "attributes": {"age": age, "gender": {"publish": true}}, "unlisted": "drop",
            "composition": {"mode": "enforce"}, "utility": [], "method": method,
        })
    );
}

#[test]
fn members_without_effect_on_the_release_leave_the_reuse_form() {
    let base = with(hospital_document(), "/method/rules", json!(["age -> race"]));
    let base = with(base, "/unlisted", json!("drop"));
    let listed = json!({
        "hospital": {"drop": true}, "gender": {"drop": true}, "zipcode": {"drop": true}, "icd9": {"drop": true},
    });
    let (normalized, reuse) = normal(&base);
    for (pointer, value) in [("/priority", json!(9)), ("/deadline", json!("P1D")), ("/reason", json!("why"))] {
        let (other, same) = normal(&with(base.clone(), pointer, value));
        assert_ne!(other, normalized, "{pointer}");
        assert_eq!(same, reuse, "{pointer}");
    }
    let dropped = with(with(base.clone(), "/unlisted", json!(null)), "/attributes", listed);
    assert_eq!(normal(&dropped).1, reuse);
    for (pointer, value) in [
        ("/method/uad/saturate", json!(true)),
        ("/method/uad/coloring", json!("paper")),
        ("/method/default_guarantee/l", json!(3)),
        ("/method/rules/0", json!("-> race")),
        ("/attributes/gender/publish", json!(true)),
        ("/attributes/age/rename", json!("years")),
    ] {
        assert_ne!(normal(&with(base.clone(), pointer, value)).1, reuse, "{pointer}");
    }
}

#[test]
fn anatomy_names_its_quasi_identifiers() {
    let guarantee = json!({"type": "l_diversity", "l": 3});
    let implicit = json!({
        "dataset": ID, "unlisted": "drop",
        "attributes": {"age": {"publish": true}, "hospital": {"publish": true}, "race": {"publish": true}},
        "method": {"type": "anatomy", "sensitive": "race", "guarantee": guarantee},
    });
    let explicit = json!({
        "dataset": ID, "unlisted": "drop",
        "method": {"type": "anatomy", "sensitive": "race", "guarantee": guarantee, "quasi_identifiers": ["age", "hospital"]},
    });
    assert_eq!(normal(&implicit), normal(&explicit));
    assert_eq!(normal(&explicit).0["method"]["quasi_identifiers"], json!(["hospital", "age"]));
}

#[test]
fn the_normal_form_is_normal() {
    for document in [
        hospital_document(),
        with(with(hospital_document(), "/priority", json!(1e1)), "/deadline", json!("P1W")),
        with(hospital_document(), "/method/rules/1", json!("-> race, zipcode, gender")),
    ] {
        let (normalized, reuse) = normal(&document);
        assert_eq!(normal(&normalized), (normalized.clone(), reuse.clone()));
        assert_eq!(normal(&with(reuse.clone(), "/dataset", json!(ID))).1, reuse);
    }
}
