//! Arbitrary documents, which no caller would write.

use crate::spec::grammar::shorthand;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Names of members, attributes, words and rules, so that arbitrary documents reach deep.
const WORDS: &[&str] = &[
    "dataset",
    "hold",
    "priority",
    "deadline",
    "reason",
    "attributes",
    "unlisted",
    "composition",
    "mode",
    "internal",
    "utility",
    "no_rules_reason",
    "policy",
    "schema",
    "method",
    "type",
    "algorithm",
    "rules",
    "default_guarantee",
    "guarantee",
    "l",
    "functional_dependencies",
    "assume_unknown",
    "correlated",
    "uad",
    "saturate",
    "coloring",
    "addback",
    "gd",
    "score",
    "quasi_identifiers",
    "sensitive",
    "sensitive_combination",
    "drop",
    "publish",
    "identifier",
    "rename",
    "discretize",
    "equal_width",
    "taxonomy",
    "excludable",
    "a",
    "b",
    "c/d",
    "bucket",
    "versatile",
    "anatomy",
    "bucketize",
    "uniform",
    "linear",
    "explicit",
    "otherwise",
    "theta",
    "0.5",
    "l_diversity",
    "alpha_k",
    "decompose",
    "primary",
    "suppress_chain",
    "enforce",
    "refuse",
    "together",
    "a -> b",
    "a, b -> c/d",
    "-> a, b",
    "a -> (b)",
    "a -> (b & c/d)",
    "a b ->",
    "PT10M",
    ID,
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..200).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(WORDS).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 8, |inner| {
        let members = vec((select(WORDS), inner.clone()), 0..8);
        prop_oneof![vec(inner, 0..5).prop_map(Value::from), members.prop_map(object)]
    })
}

fn object(members: Vec<(&'static str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A document that is almost right: some of its members are replaced.
fn damaged() -> impl Strategy<Value = Value> {
    const PLACES: &[&str] = &[
        "/dataset",
        "/priority",
        "/deadline",
        "/unlisted",
        "/no_rules_reason",
        "/attributes",
        "/attributes/a",
        "/attributes/b",
        "/attributes/c~1d",
        "/attributes/a/publish",
        "/attributes/b/drop",
        "/method",
        "/method/rules",
        "/method/rules/0",
        "/method/rules/1",
        "/method/quasi_identifiers",
        "/method/sensitive",
        "/method/guarantee",
        "/method/default_guarantee",
        "/method/thresholds",
        "/method/thresholds/explicit",
        "/method/thresholds/otherwise",
        "/method/sizes",
        "/method/max_size",
        "/method/counterfeits",
        "/method/primary",
        "/method/l",
        "/method/l/b",
        "/method/sensitive/0",
        "/schema",
        "/schema/0",
        "/schema/0/attributes",
        "/schema/0/sensitive",
    ];
    let anatomy = json!({
        "dataset": ID, "attributes": {"a": {"publish": true}, "b": {}, "bucket": {"drop": true}}, "unlisted": "drop",
        "method": {"type": "anatomy", "sensitive": "b", "guarantee": {"type": "l_diversity", "l": 3}},
    });
    let versatile = json!({
        "dataset": ID, "attributes": {"a": {}, "b": {}}, "unlisted": "drop",
        "method": {"type": "versatile", "rules": ["a -> b", "-> c/d"], "default_guarantee": {"type": "l_diversity", "l": 2}},
    });
    let bucketize = json!({
        "dataset": ID, "attributes": {"a": {"publish": true}, "b": {}}, "unlisted": "drop",
        "method": {"type": "bucketize", "sensitive": "b", "thresholds": {"explicit": {"x": "1/3"}, "otherwise": "0.5"}},
    });
    let decompose = json!({
        "dataset": ID, "attributes": {"a": {"publish": true}}, "unlisted": "drop",
        "method": {"type": "decompose", "sensitive": ["b", "c/d"], "primary": "b", "l": {"b": 3}},
    });
    let mut planned = anatomy.clone();
    planned["schema"] = json!([{"attributes": ["a", "b"], "sensitive": "b"}]);
    (select(vec![anatomy, versatile, bucketize, decompose, planned]), vec((select(PLACES), value()), 0..3)).prop_map(
        |(mut document, damage)| {
            for (pointer, value) in damage {
                if let Some(place) = document.pointer_mut(pointer) {
                    *place = value;
                } else if let Some((parent, name)) = pointer.rsplit_once('/')
                    && let Some(Value::Object(members)) = document.pointer_mut(parent)
                {
                    members.insert(name.replace("~1", "/"), value);
                }
            }
            document
        },
    )
}

fn judge(document: &Value) {
    let mut columns = columns(&["a", "b", "c/d", "bucket"]);
    columns[2].mostly_distinct = true;
    let reading = read_on(document, &columns);
    let schema = DatasetSchema { columns: &columns, keys: &[], unit: &Unit::Row };
    let planned = read(document, &schema, DocumentSource::Plan);
    for fault in reading.faults.iter().chain(&planned.faults) {
        let parent = fault.pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
        let stands =
            document.pointer(parent).is_some() || parent.starts_with("/attributes") || fault.pointer == "/attributes";
        assert!(stands, "{fault:?} points outside of {document}");
        assert_eq!(fault.kind.status() / 100, 4);
    }
    if !reading.faults.is_empty() {
        return;
    }
    let specification = reading.specification.expect("a document without faults has a specification");
    let again = accepted(&specification.normalized, &columns);
    assert_eq!(again.normalized, specification.normalized);
    assert_eq!(again.reuse_form, specification.reuse_form);
    assert_eq!(again.method, specification.method);
    assert_eq!(again.used, specification.used);
    assert_eq!(again.overridden_identifiers, specification.overridden_identifiers);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_value_is_judged(document in value()) {
        judge(&document);
    }

    #[test]
    fn any_damaged_document_is_judged(document in damaged()) {
        judge(&document);
    }

    #[test]
    fn rules_of_any_shape_are_normalized_once(
        rules in vec((vec(select(&["a", "b"][..]), 0..3), vec(select(&["b", "c/d"][..]), 1..3), 2_u64..5, any::<bool>()), 1..4)
    ) {
        let rule = |(known, sensitive, l, short): &(Vec<&str>, Vec<&str>, u64, bool)| {
            if *short && *l == 2 {
                return Value::from(shorthand::write(known, sensitive, false));
            }
            json!({"quasi_identifiers": known, "sensitive": sensitive, "guarantee": {"type": "l_diversity", "l": l}})
        };
        let rules: Vec<Value> = rules.iter().map(rule).collect();
        judge(&json!({
            "dataset": ID, "unlisted": "drop",
            "method": {"type": "versatile", "rules": rules, "default_guarantee": {"type": "l_diversity", "l": 2}},
        }));
    }
}
