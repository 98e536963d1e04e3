//! Each fault with its pointer, and all of them at once.

use super::*;
use Kind::{
    BadColumns, GuaranteeUnsupported as Unsupported, ParameterRange as Range, ReservedName, RuleMalformed as Malformed,
    UnknownAttribute, UnknownField, VacuousGuarantee as Vacuous,
};

/// Where a value is replaced, by what, and the faults that follow.
type Case<'a> = (&'a str, Value, &'a [(&'a str, Kind)]);

/// Faults of `document` when one value in it is replaced.
fn check(cases: &[Case<'_>], document: &Value) {
    for (pointer, value, expected) in cases {
        let reading = read_on(&with(document.clone(), pointer, value.clone()), &hospital());
        assert_eq!(kinds(&reading.faults), *expected, "{pointer}: {value}");
        for fault in &reading.faults {
            let member = match fault.kind {
                Range => "allowed",
                UnknownAttribute | ReservedName => "attribute",
                _ => continue,
            };
            assert!(fault.members.contains_key(member), "{fault:?}");
        }
    }
}

#[test]
fn general_members() {
    let at = |pointer, value, kind| (pointer, value, [(pointer, kind)]);
    let cases = [
        at("/dataset", json!("018f"), Range),
        at("/hold", json!("no"), Range),
        at("/priority", json!(101), Range),
        at("/priority", json!(0.5), Range),
        at("/deadline", json!("10m"), Range),
        at("/deadline", json!(600), Range),
        at("/reason", json!(""), Range),
        at("/reason", json!("é".repeat(501)), Range),
        at("/attributes", json!([]), Range),
        at("/unlisted", json!("publish"), Range),
        at("/composition", json!("enforce"), Range),
        at("/policy", json!("hospital-v3"), Unsupported),
        at("/schema", json!([]), Unsupported),
        ("/utility", json!(["kl"]), [("/utility/0", Range)]),
        at("/utility", json!({}), Range),
        at("/no_rules_reason", json!("because"), Range),
        at("/methods", json!({}), UnknownField),
        at("/method", json!("versatile"), Range),
        at("/method", json!(null), Range),
    ];
    let mut cases: Vec<_> = cases.iter().map(|(p, v, f)| (*p, v.clone(), f.as_slice())).collect();
    cases.push(("/composition/mode", json!("report"), &[("/composition/reason", Range)]));
    cases.push(("/composition/reason", json!("because"), &[("/composition/reason", Unsupported)]));
    cases.push((
        "/composition",
        json!({"mode": "off", "x": 1}),
        &[("/composition/mode", Range), ("/composition/x", UnknownField)],
    ));
    cases.push((
        "/internal",
        json!({"utility": ["entropy"], "x": 1}),
        &[("/internal/utility/0", Range), ("/internal/x", UnknownField)],
    ));
    check(&cases, &hospital_document());
}

#[test]
fn pointers_to_odd_names_are_escaped() {
    let mut document = hospital_document();
    document["a/b~"] = json!(1);
    assert_eq!(kinds(&read_on(&document, &hospital()).faults), [("/a~1b~0", UnknownField)]);
}

#[test]
fn attributes() {
    let cases: &[Case<'_>] = &[
        ("/attributes/age", json!(true), &[("/attributes/age", Range)]),
        ("/attributes/age", json!({"publsh": true}), &[("/attributes/age/publsh", UnknownField)]),
        ("/attributes/age/publish", json!(1), &[("/attributes/age/publish", Range)]),
        ("/attributes/age/drop", json!(true), &[("/attributes/age/drop", Range)]),
        ("/attributes/age/identifier", json!("no"), &[("/attributes/age/identifier", Range)]),
        ("/attributes/age/identifier", json!(true), &[("/attributes/age", Kind::IdentifierPublished)]),
        ("/attributes/age/rename", json!(""), &[("/attributes/age/rename", Range)]),
        ("/attributes/age/rename", json!("bucket"), &[("/attributes/age/rename", ReservedName)]),
        ("/attributes/age/rename", json!("race"), &[("/attributes/age/rename", ReservedName)]),
        ("/attributes/age/discretize", json!({}), &[("/attributes/age/discretize/equal_width", Range)]),
        ("/attributes/age/discretize/equal_width", json!(0), &[("/attributes/age/discretize/equal_width", Range)]),
        ("/attributes/age/discretize", json!(10), &[("/attributes/age/discretize", Range)]),
        ("/attributes/age/taxonomy", json!({"Any": []}), &[("/attributes/age/taxonomy/Any", Range)]),
        ("/attributes/age/taxonomy", json!("A name"), &[("/attributes/age/taxonomy", Range)]),
        ("/attributes/age/excludable", json!(["none", "none"]), &[("/attributes/age/excludable/1", Range)]),
        ("/attributes/age/excludable", json!("none"), &[("/attributes/age/excludable", Range)]),
        (
            "/attributes/agee",
            json!({"drop": 1}),
            &[("/attributes/agee", UnknownAttribute), ("/attributes/agee/drop", Range)],
        ),
    ];
    check(cases, &hospital_document());
}

#[test]
fn methods() {
    let cases: &[Case<'_>] = &[
        ("/method/type", json!("elsewhere"), &[("/method/type", Range)]),
        ("/method/type", json!("magic"), &[("/method/type", Range)]),
        ("/method/type", json!(null), &[("/method/type", Range)]),
        ("/method/algorithm", json!("gd"), &[]),
        ("/method/algorithm", json!("auto"), &[]),
        ("/method/algorithm", json!("single_attribute"), &[]),
        ("/method/algorithm", json!("best"), &[("/method/algorithm", Range)]),
        (
            "/method/functional_dependencies",
            json!([{}]),
            &[
                ("/method/functional_dependencies/0/dependent", Range),
                ("/method/functional_dependencies/0/determinant", Range),
            ],
        ),
        (
            "/method/functional_dependencies",
            json!([{"determinant": ["zipcode"], "dependent": ["race", "age"]}, {"determinant": ["x"], "dependent": []}]),
            &[
                ("/method/functional_dependencies/1/dependent", Range),
                ("/method/functional_dependencies/1/determinant/0", UnknownAttribute),
            ],
        ),
        (
            "/method/functional_dependencies",
            json!([{"determinant": ["race"], "dependent": ["race"], "reason": "why"}]),
            &[
                ("/method/functional_dependencies/0/dependent", BadColumns),
                ("/method/functional_dependencies/0/reason", UnknownField),
            ],
        ),
        (
            "/method/assume_unknown",
            json!([{"determinant": ["zipcode"], "dependent": ["race"]}]),
            &[("/method/assume_unknown/0/reason", Range)],
        ),
        (
            "/method/assume_unknown",
            json!([{"determinant": ["zipcode"], "dependent": ["race"], "reason": "nobody has such a list"}]),
            &[],
        ),
        ("/method/correlated", json!("apart"), &[("/method/correlated", Range)]),
        (
            "/method/uad",
            json!({"addback": 1, "saturate": 1, "x": 1}),
            &[("/method/uad/addback", Range), ("/method/uad/saturate", Range), ("/method/uad/x", UnknownField)],
        ),
        (
            "/method/gd",
            json!({"try_all": 1, "fill": false, "x": 1}),
            &[("/method/gd/try_all", Range), ("/method/gd/x", UnknownField)],
        ),
        ("/method/score", json!("kl"), &[("/method/score", Unsupported)]),
        ("/method/score", json!("best"), &[("/method/score", Range)]),
        ("/method/x", json!(1), &[("/method/x", UnknownField)]),
        ("/method/rules", json!("age -> race"), &[("/method/rules", Range)]),
        ("/method/rules", json!(vec!["age -> race"; 10_001]), &[("/method/rules", Range)]),
    ];
    check(cases, &hospital_document());
}

#[test]
fn guarantees() {
    let cases: &[Case<'_>] = &[
        ("/method/default_guarantee", json!(2), &[("/method/default_guarantee", Range)]),
        ("/method/default_guarantee", json!({"l": 2}), &[("/method/default_guarantee/type", Range)]),
        ("/method/default_guarantee/type", json!("magic"), &[("/method/default_guarantee/type", Range)]),
        (
            "/method/default_guarantee",
            json!({"type": "k_anonymity", "k": 2}),
            &[("/method/default_guarantee/type", Unsupported)],
        ),
        ("/method/default_guarantee/l", json!(null), &[("/method/default_guarantee/l", Range)]),
        ("/method/default_guarantee/l", json!(0), &[("/method/default_guarantee/l", Range)]),
        ("/method/default_guarantee/l", json!(-1), &[("/method/default_guarantee/l", Range)]),
        ("/method/default_guarantee/l", json!(2.123_456_789_01), &[("/method/default_guarantee/l", Range)]),
        ("/method/default_guarantee/l", json!("2"), &[("/method/default_guarantee/l", Range)]),
        ("/method/default_guarantee/l", json!(1), &[("/method/default_guarantee/l", Vacuous)]),
        ("/method/default_guarantee/k", json!(1), &[("/method/default_guarantee/k", UnknownField)]),
        (
            "/method/default_guarantee",
            json!(null),
            &[("/method/rules/0", Range), ("/method/rules/1", Range), ("/method/rules/2", Range)],
        ),
    ];
    check(cases, &hospital_document());
    let mut reading = read_on(&with(hospital_document(), "/method/default_guarantee/l", json!(0)), &hospital());
    assert_eq!(reading.faults.remove(0).members["allowed"], "an integer of at least 2");
}

#[test]
fn guarantees_of_every_family() {
    let at = "/method/default_guarantee";
    let good = [
        json!({"type": "distinct_l_diversity", "l": 3}),
        json!({"type": "entropy_l_diversity", "l": "2.5"}),
        json!({"type": "entropy_l_diversity", "l": 2}),
        json!({"type": "recursive_l_diversity", "c": "1.5", "l": 3}),
        json!({"type": "alpha_k", "alpha": "0.3", "k": 5}),
        json!({"type": "alpha_k", "alpha": 1, "k": 5}),
        json!({"type": "t_closeness", "t": "0.2", "distance": "ordered"}),
        json!({"type": "t_closeness", "t": "1/3"}),
        json!({"type": "rho", "rho1": "0.1", "rho2": "0.4", "mode": "exact"}),
        json!({"type": "rho", "rho1": "0.1", "rho2": "0.4"}),
        json!({"type": "delta", "distance": "kl", "b": "0.3", "prior": "global"}),
        json!({"type": "delta", "distance": "log_ratio", "b": 3}),
    ];
    let good = good.map(|guarantee| (at, guarantee, &[] as &[_]));
    check(&good, &hospital_document());
    let cases: &[Case<'_>] = &[
        (at, json!({"type": "distinct_l_diversity", "l": 1}), &[("/method/default_guarantee/l", Vacuous)]),
        (at, json!({"type": "entropy_l_diversity", "l": "1.0"}), &[("/method/default_guarantee/l", Vacuous)]),
        (at, json!({"type": "entropy_l_diversity", "l": 2.123_456_789_01}), &[("/method/default_guarantee/l", Range)]),
        (at, json!({"type": "entropy_l_diversity"}), &[("/method/default_guarantee/l", Range)]),
        (
            at,
            json!({"type": "recursive_l_diversity"}),
            &[("/method/default_guarantee/c", Range), ("/method/default_guarantee/l", Range)],
        ),
        (at, json!({"type": "recursive_l_diversity", "c": 0, "l": 2}), &[("/method/default_guarantee/c", Range)]),
        (at, json!({"type": "recursive_l_diversity", "c": 2, "l": 1}), &[("/method/default_guarantee/l", Vacuous)]),
        (at, json!({"type": "alpha_k", "k": 1}), &[("/method/default_guarantee/alpha", Range)]),
        (at, json!({"type": "alpha_k", "alpha": "1.1", "k": 2}), &[("/method/default_guarantee/alpha", Range)]),
        (at, json!({"type": "alpha_k", "alpha": "1", "k": 1}), &[("/method/default_guarantee/alpha", Vacuous)]),
        (at, json!({"type": "t_closeness", "t": "1"}), &[("/method/default_guarantee/t", Vacuous)]),
        (at, json!({"type": "t_closeness", "t": "-0.1"}), &[("/method/default_guarantee/t", Range)]),
        (
            at,
            json!({"type": "t_closeness", "t": "0.1", "distance": "hierarchical"}),
            &[("/method/rules/0", Unsupported), ("/method/rules/1", Unsupported), ("/method/rules/2", Unsupported)],
        ),
        (
            at,
            json!({"type": "t_closeness", "t": "0.1", "distance": 3}),
            &[("/method/default_guarantee/distance", Range)],
        ),
        (at, json!({"type": "rho", "rho1": "0.4", "rho2": "0.4"}), &[("/method/default_guarantee/rho2", Range)]),
        (at, json!({"type": "rho", "rho1": "0.4", "rho2": 1}), &[("/method/default_guarantee/rho2", Vacuous)]),
        (at, json!({"type": "rho", "rho1": 0, "rho2": "0.4"}), &[("/method/default_guarantee/rho1", Range)]),
        (at, json!({"type": "delta", "b": "0.4"}), &[("/method/default_guarantee/distance", Range)]),
        (at, json!({"type": "delta", "distance": "max", "b": 1}), &[("/method/default_guarantee/b", Vacuous)]),
        (
            at,
            json!({"type": "delta", "distance": "max", "b": "0.1", "prior": "local", "c": 1}),
            &[("/method/default_guarantee/c", UnknownField), ("/method/default_guarantee/prior", Range)],
        ),
    ];
    check(cases, &hospital_document());
}

#[test]
fn a_fault_of_a_guarantee_hides_no_other_member() {
    let at = "/method/default_guarantee";
    let cases: &[Case<'_>] = &[
        (
            at,
            json!({"type": "t_closeness", "t": "0.1", "distance": 3, "reference": "stratum"}),
            &[("/method/default_guarantee/distance", Range)],
        ),
        (
            at,
            json!({"type": "t_closeness", "t": 1, "distance": 3, "reference": "all", "x": 1}),
            &[
                ("/method/default_guarantee/distance", Range),
                ("/method/default_guarantee/reference", Range),
                ("/method/default_guarantee/t", Vacuous),
                ("/method/default_guarantee/x", UnknownField),
            ],
        ),
        (
            at,
            json!({"type": "rho", "rho1": "0.1", "rho2": "0.4", "mode": "any", "reference": "stratum"}),
            &[("/method/default_guarantee/mode", Range)],
        ),
        (
            at,
            json!({"type": "delta", "distance": "kl", "b": "0.3", "prior": "local", "reference": "table"}),
            &[("/method/default_guarantee/prior", Range)],
        ),
        (
            at,
            json!({"type": "delta", "reference": "table"}),
            &[("/method/default_guarantee/b", Range), ("/method/default_guarantee/distance", Range)],
        ),
    ];
    check(cases, &hospital_document());
}

#[test]
fn rules() {
    let one = "/method/rules/0";
    let object = |known: Value, sensitive: Value| json!({"quasi_identifiers": known, "sensitive": sensitive});
    let cases: &[Case<'_>] = &[
        (one, json!(3), &[(one, Range)]),
        (one, json!("age, icd9 race"), &[(one, Malformed)]),
        (one, json!("age, age, icd9 -> race"), &[(one, Malformed)]),
        (one, json!("age, icd9 -> age"), &[(one, Malformed)]),
        (one, json!("age, icd9 ->"), &[(one, Malformed)]),
        (one, json!("age, icd -> race"), &[(one, UnknownAttribute)]),
        (one, json!("age, icd9 -> (race & zipcode)"), &[]),
        (one, json!("age, icd9 -> (race)"), &[]),
        (one, object(json!(["age"]), json!(["race"])), &[]),
        (one, object(json!([]), json!(["race", "age"])), &[]),
        (one, object(json!(["age"]), json!([])), &[(one, Malformed)]),
        (one, json!({"quasi_identifiers": ["age"]}), &[(one, Malformed)]),
        (one, json!({"sensitive": ["age"]}), &[("/method/rules/0/quasi_identifiers", Range)]),
        (one, object(json!("age"), json!(["race"])), &[("/method/rules/0/quasi_identifiers", Range)]),
        (
            one,
            object(json!(["age", 3, "x"]), json!(["race"])),
            &[
                ("/method/rules/0/quasi_identifiers/1", Range),
                ("/method/rules/0/quasi_identifiers/2", UnknownAttribute),
            ],
        ),
        (one, object(json!(["age"]), json!(["race", "race"])), &[(one, Malformed)]),
        (
            one,
            json!({"quasi_identifiers": ["age"], "sensitive": ["race"], "sensitive_combination": ["zipcode"]}),
            &[(one, Malformed)],
        ),
        (one, json!({"quasi_identifiers": ["age"], "sensitive_combination": ["zipcode", "race"]}), &[]),
        (
            one,
            json!({"quasi_identifiers": ["age"], "sensitive_combination": ["zipcode", "race"],
                   "guarantee": {"type": "t_closeness", "t": "0.2"}}),
            &[(one, Unsupported)],
        ),
        (
            one,
            json!({"quasi_identifiers": ["age"], "sensitive_combination": ["race"], "x": 1, "guarantee": {"l": 3}}),
            &[("/method/rules/0/guarantee/type", Range), ("/method/rules/0/x", UnknownField)],
        ),
    ];
    // age stays accounted for whichever rule is replaced
    check(cases, &with(hospital_document(), "/attributes/age", json!({"publish": true})));

    let position = |rule: &str| {
        let faults = read_on(&with(hospital_document(), one, json!(rule)), &hospital()).faults;
        faults.iter().find_map(|fault| fault.members.get("position").cloned())
    };
    assert_eq!(position("age, icd9 race"), Some(json!(14)));
    assert_eq!(position("age, icd9 -> age"), Some(json!(13)));
}

#[test]
fn a_table_without_rules_protects_nothing() {
    for rules in [json!([]), json!(null)] {
        let document = with(with(hospital_document(), "/method/rules", rules), "/unlisted", json!("drop"));
        let document = with(document, "/attributes/age/publish", json!(true));
        assert_eq!(kinds(&read_on(&document, &hospital()).faults), [("/method/rules", Vacuous)]);
    }
}

#[test]
fn anatomy() {
    let document = json!({
        "dataset": ID, "unlisted": "drop",
        "method": {"type": "anatomy", "quasi_identifiers": ["age", "gender"], "sensitive": "race",
            "guarantee": {"type": "l_diversity", "l": 2}},
    });
    let known = "/method/quasi_identifiers";
    let cases: &[Case<'_>] = &[
        (known, json!(null), &[(known, BadColumns)]),
        (known, json!([]), &[(known, BadColumns)]),
        (known, json!("age"), &[(known, Range)]),
        (known, json!(["age", "x"]), &[("/method/quasi_identifiers/1", UnknownAttribute)]),
        (known, json!(["age", "age"]), &[("/method/quasi_identifiers/1", BadColumns)]),
        (known, json!(["age", "race"]), &[(known, BadColumns)]),
        ("/method/sensitive", json!(null), &[("/method/sensitive", Range)]),
        ("/method/sensitive", json!(["race"]), &[("/method/sensitive", Range)]),
        ("/method/sensitive", json!("rcae"), &[("/method/sensitive", UnknownAttribute)]),
        ("/method/guarantee", json!(null), &[("/method/guarantee", Range)]),
        ("/method/guarantee/l", json!(1), &[("/method/guarantee/l", Vacuous)]),
        ("/method/rules", json!([]), &[("/method/rules", UnknownField)]),
        ("/no_rules_reason", json!("because"), &[("/no_rules_reason", Range)]),
    ];
    check(cases, &document);
}

#[test]
fn every_fault_is_in_one_answer() {
    let document = json!({
        "dataset": "x", "hold": 1, "priority": 1000, "deadline": "soon", "dedline": "PT1M",
        "attributes": {"age": {"rename": "bucket"}, "agee": {}, "gender": {"publish": true, "drop": true}},
        "composition": {"mode": "report"},
        "method": {"type": "versatile", "score": "kl", "default_guarantee": {"type": "l_diversity", "l": 1},
            "rules": ["age -> ", "age, icd -> race",
                {"quasi_identifiers": ["age"], "sensitive": ["race"], "guarantee": {"type": "l_diversity", "l": 3}}]},
    });
    let reading = read_on(&document, &hospital());
    assert_eq!(
        kinds(&reading.faults),
        [
            ("/attributes", Kind::UnclassifiedAttributes),
            ("/attributes/age/rename", ReservedName),
            ("/attributes/agee", UnknownAttribute),
            ("/attributes/gender/drop", Range),
            ("/composition/reason", Range),
            ("/dataset", Range),
            ("/deadline", Range),
            ("/dedline", UnknownField),
            ("/hold", Range),
            ("/method/default_guarantee/l", Vacuous),
            ("/method/rules/0", Malformed),
            ("/method/rules/1", UnknownAttribute),
            ("/method/score", Unsupported),
            ("/priority", Range),
        ]
    );
    assert_eq!(reading.faults[0].members["attributes"], json!(["hospital", "zipcode", "icd9"]));
    // the one rule that is well formed can still be judged against the data
    let specification = reading.specification.expect("a rule to judge");
    assert_eq!(specification.names, ["age", "race"]);
    assert_eq!(specification.method.rules(), [rule(2, &[0], 1, 3)]);
}
