//! Every column is accounted for, and none is published by oversight.

use super::*;
use crate::publication::NoticeKind;

/// A document that publishes what `attributes` says, and protects `b` from those who know `a`.
fn document(attributes: Value) -> Value {
    json!({
        "dataset": ID, "attributes": attributes,
        "method": {"type": "versatile", "rules": ["a -> b"], "default_guarantee": {"type": "l_diversity", "l": 2}},
    })
}

#[test]
fn a_forgotten_column_is_refused() {
    let columns = columns(&["a", "b", "name", "ssn", "d"]);
    let reading = read_on(&document(json!({"d": {"drop": true}, "name": {"rename": "n"}})), &columns);
    assert_eq!(kinds(&reading.faults), [("/attributes", Kind::UnclassifiedAttributes)]);
    assert_eq!(reading.faults[0].members["attributes"], json!(["name", "ssn"]));

    let settled = document(json!({"d": {"drop": true}, "name": {"publish": true}, "ssn": {"drop": true}}));
    assert_eq!(accepted(&settled, &columns).names, ["a", "b", "name"]);
    let dropping = with(document(json!({})), "/unlisted", json!("drop"));
    assert_eq!(accepted(&dropping, &columns).names, ["a", "b"]);
}

#[test]
fn a_column_that_an_unreadable_rule_names_is_not_reported_twice() {
    let document = with(document(json!({})), "/method/rules", json!(["a -> b", "big c, d & \"e\" -> a"]));
    let reading = read_on(&document, &columns(&["a", "b", "big c", "d", "e", "f"]));
    let [unclassified, malformed] = &reading.faults[..] else { panic!("{:?}", reading.faults) };
    assert_eq!(unclassified.members["attributes"], json!(["f"]));
    assert_eq!(malformed.kind, Kind::RuleMalformed);
}

#[test]
fn identifiers_are_published_only_when_declared() {
    let mut detected = columns(&["a", "b"]);
    detected[0].identifier = true;
    detected[0].mostly_distinct = true;
    let plain = columns(&["a", "b"]);
    let key = ["a".to_owned()];
    let states = [
        (json!({}), false, false),
        (json!({"publish": true}), false, false),
        (json!({"identifier": false}), false, false),
        (json!({"publish": true, "identifier": false}), false, true),
        (json!({"publish": true, "identifier": true}), true, false),
        (json!({"identifier": true}), true, false),
    ];
    for (given, declared, overridden) in states {
        for (columns, record_key, found) in
            [(&detected, &[][..], true), (&plain, &key[..], true), (&plain, &[][..], false)]
        {
            let document = document(json!({"a": given}));
            let reading = read(
                &document,
                &DatasetSchema { columns, keys: record_key, unit: &crate::publication::Unit::Row },
                DocumentSource::Http,
            );
            let expected = if declared || (found && !overridden) {
                assert_eq!(reading.faults[0].members["attribute"], "a");
                vec![("/attributes/a", Kind::IdentifierPublished)]
            } else {
                vec![]
            };
            assert_eq!(kinds(&reading.faults), expected, "{given}");
            // the statement stands whether or not there was need for it: whether there was depends on the data
            let specification = reading.specification.expect("a rule to judge");
            assert_eq!(specification.overridden_identifiers, if overridden { vec![Attr(0)] } else { vec![] });
        }
    }
    let dropped = with(document(json!({"a": {"drop": true}})), "/method/rules", json!(["c -> b"]));
    let mut three = detected.clone();
    three.extend(columns(&["c"]));
    assert_eq!(accepted(&dropped, &three).names, ["b", "c"]);
}

#[test]
fn a_mostly_distinct_attribute_earns_a_warning() {
    let mut columns = columns(&["a", "b", "c/d"]);
    columns[2].mostly_distinct = true;
    let specification = accepted(&document(json!({"c/d": {"publish": true}})), &columns);
    let [warning] = &specification.warnings[..] else { panic!("one warning") };
    assert_eq!((warning.pointer.as_deref(), warning.type_), (Some("/attributes/c~1d"), NoticeKind::MostlyDistinct));
    assert!(accepted(&document(json!({"c/d": {"drop": true}})), &columns).warnings.is_empty());
}

#[test]
fn a_column_with_too_many_values_can_only_be_dropped() {
    let mut columns = columns(&["a", "b", "c"]);
    columns[2].overflow = true;
    accepted(&document(json!({"c": {"drop": true}})), &columns);
    let reading = read_on(&document(json!({"c": {"publish": true}})), &columns);
    assert_eq!(kinds(&reading.faults), [("/attributes/c", Kind::BadColumns)]);
    let reading = read_on(&with(document(json!({})), "/method/rules", json!(["a -> b", "a -> c"])), &columns);
    assert_eq!(kinds(&reading.faults), [("/attributes/c", Kind::BadColumns)]);
    // there are no counts by which its rule could be judged
    assert_eq!(reading.specification.expect("a rule to judge").method.rules(), [rule(0, &[0], 1, 2)]);
}

#[test]
fn a_job_uses_at_most_128_attributes() {
    let names: Vec<String> = (0..130).map(|column| format!("c{column}")).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    (names[0], names[1]) = ("a", "b");
    let columns = columns(&names);
    let publish = |count: usize| -> Value {
        let given =
            |(at, name): (usize, &&str)| ((*name).to_owned(), json!({"publish": at < count, "drop": at >= count}));
        Value::Object(names.iter().enumerate().map(given).collect())
    };
    assert_eq!(accepted(&document(publish(128)), &columns).attributes, AttrSet::first(128));
    let reading = read_on(&document(publish(129)), &columns);
    assert_eq!(kinds(&reading.faults), [("/attributes", Kind::TooManyAttributes)]);
    assert_eq!((&reading.faults[0].members["limit"], &reading.faults[0].members["found"]), (&json!(128), &json!(129)));
    assert_eq!(reading.specification, None);
}

#[test]
fn published_names_are_unique() {
    let named = columns(&["a", "b", "bucket"]);
    let reserved = |attributes: Value| {
        let faults = read_on(&document(attributes), &named).faults;
        faults
            .into_iter()
            .map(|fault| (fault.pointer, fault.kind, fault.members["attribute"].clone()))
            .collect::<Vec<_>>()
    };
    let fault = |pointer: &str, attribute: &str| (pointer.to_owned(), Kind::ReservedName, json!(attribute));
    let publish = json!({"publish": true});
    assert_eq!(reserved(json!({"bucket": publish})), [fault("/attributes/bucket", "bucket")]);
    assert_eq!(reserved(json!({"bucket": {"publish": true, "rename": "pail"}})), []);
    assert_eq!(
        reserved(json!({"bucket": {"drop": true}, "a": {"rename": "bucket"}})),
        [fault("/attributes/a/rename", "a")]
    );
    assert_eq!(reserved(json!({"bucket": {"drop": true}, "a": {"rename": "b"}})), [fault("/attributes/a/rename", "a")]);
    let both = json!({"bucket": {"drop": true}, "a": {"rename": "x"}, "b": {"rename": "x"}});
    assert_eq!(reserved(both), [fault("/attributes/a/rename", "a"), fault("/attributes/b/rename", "b")]);
    assert_eq!(reserved(json!({"bucket": {"drop": true}, "a": {"rename": "b"}, "b": {"rename": "a"}})), []);
}

#[test]
fn something_has_to_be_published() {
    let nothing = json!({"dataset": ID, "unlisted": "drop", "no_rules_reason": "nothing to protect", "method": {"type": "versatile"}});
    assert_eq!(kinds(&read_on(&nothing, &columns(&["a"])).faults), [("/attributes", Kind::BadColumns)]);
}
