//! Tests of whole documents.

mod arbitrary;
mod columns;
mod faults;
mod normal;
mod remedies;
mod republish;
mod slicing;
mod taxonomies;

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::microdata::{Attr, AttrSet, AttributeType};
use crate::problem::{Fault, Kind};
use crate::publication::{Guarantee, Protected, SubmittedRule, Unit};

const ID: &str = "0193a6b0-7c1e-7000-8000-000000000001";

/// Plain columns with these names.
fn columns(names: &[&str]) -> Vec<ColumnFacts> {
    let plain = |name: &&str| ColumnFacts {
        name: (*name).to_owned(),
        kind: AttributeType::Text,
        identifier: false,
        mostly_distinct: false,
        overflow: false,
        distinct: None,
        largest_l: None,
        chose_rows: false,
    };
    names.iter().map(plain).collect()
}

fn hospital() -> Vec<ColumnFacts> {
    columns(&["hospital", "age", "gender", "zipcode", "race", "icd9"])
}

/// The hospital table and rules of the paper on versatile publishing.
fn hospital_document() -> Value {
    json!({
        "dataset": ID,
        "method": {
            "type": "versatile",
            "rules": ["age, icd9 -> race", "gender, icd9 -> zipcode", "hospital, race -> zipcode"],
            "default_guarantee": {"type": "l_diversity", "l": 2},
        },
    })
}

fn read_on(document: &Value, columns: &[ColumnFacts]) -> ParsedDocument {
    read(document, &DatasetSchema { columns, keys: &[], unit: &Unit::Row }, DocumentSource::Http)
}

/// The specification of a document without faults.
fn accepted(document: &Value, columns: &[ColumnFacts]) -> Specification {
    let reading = read_on(document, columns);
    assert_eq!(reading.faults, [], "{document}");
    reading.specification.expect("a document without faults has a specification")
}

/// `document` with `value` at `pointer`; objects on the way are made.
fn with(mut document: Value, pointer: &str, value: Value) -> Value {
    let mut place = &mut document;
    for name in pointer.split('/').skip(1) {
        place = match name.parse::<usize>() {
            Ok(index) if place.is_array() => &mut place[index],
            _ => &mut place[name],
        };
    }
    *place = value;
    document
}

fn kinds(faults: &[Fault]) -> Vec<(&str, Kind)> {
    faults.iter().map(|fault| (fault.pointer.as_str(), fault.kind)).collect()
}

fn set(attributes: &[u8]) -> AttrSet {
    attributes.iter().map(|attribute| Attr(*attribute)).collect()
}

fn rule(index: usize, known: &[u8], sensitive: u8, l: u64) -> SubmittedRule {
    SubmittedRule {
        pointer: format!("/method/rules/{index}"),
        known: set(known),
        protects: Protected::Attribute(Attr(sensitive)),
        guarantee: Guarantee::LDiversity { l },
    }
}

#[test]
fn the_hospital_document_is_understood() {
    let specification = accepted(&hospital_document(), &hospital());
    assert_eq!(specification.used, [0, 1, 2, 3, 4, 5]);
    assert_eq!(specification.attributes, AttrSet::first(6));
    assert_eq!(specification.published_names, specification.names);
    let MethodSpec::Versatile(method) = &specification.method else { panic!("another method") };
    assert_eq!(method.rules, [rule(0, &[1, 5], 4, 2), rule(1, &[2, 5], 3, 2), rule(2, &[0, 4], 3, 2)]);
    assert_eq!((method.uad.saturate, method.no_rules_reason.as_deref()), (false, None));
    assert_eq!((specification.priority, specification.deadline, specification.reason), (0, None, None));
}

#[test]
fn every_member_has_its_effect() {
    let document = json!({
        "dataset": ID, "hold": false, "priority": -7, "deadline": "PT1H30M", "reason": "quarterly release",
        "unlisted": "drop", "composition": {"mode": "enforce"}, "internal": {"utility": []}, "utility": [],
        "attributes": {"gender": {"publish": true, "rename": "sex"}, "age": {"discretize": {"equal_width": 10}}},
        "method": {"type": "versatile", "algorithm": "auto", "uad": {"saturate": true, "addback": true, "coloring": "paper"},
            "gd": {"try_all": true, "fill": true},
            "correlated": "separate", "score": "entropy", "functional_dependencies": [], "assume_unknown": [],
            "rules": ["age -> race, zipcode",
                {"quasi_identifiers": [], "sensitive": ["race"], "guarantee": {"type": "l_diversity", "l": 3.0}}],
            "default_guarantee": {"type": "l_diversity", "l": 2}},
    });
    let specification = accepted(&document, &hospital());
    assert_eq!(specification.used, [1, 2, 3, 4]);
    assert_eq!(specification.names, ["age", "gender", "zipcode", "race"]);
    assert_eq!(specification.published_names, ["age", "sex", "zipcode", "race"]);
    assert_eq!(specification.method.rules(), [rule(0, &[0], 2, 2), rule(0, &[0], 3, 2), rule(1, &[], 3, 3)]);
    let MethodSpec::Versatile(method) = &specification.method else { panic!("{:?}", specification.method) };
    assert_eq!((method.algorithm, method.score), (Algorithm::Auto, DecompositionScore::Entropy));
    assert!(method.uad.saturate && method.addback && method.try_all && method.fill);
    let said = &specification.normalized["method"];
    assert_eq!(
        (&said["algorithm"], &said["uad"]["addback"], &said["gd"]["fill"]),
        (&json!("auto"), &json!(true), &json!(true))
    );
    assert_eq!(specification.priority, -7);
    assert_eq!(specification.deadline, Some(Duration::from_secs(5_400)));
    assert_eq!(specification.reason.as_deref(), Some("quarterly release"));
}

#[test]
fn anatomy_knows_the_published_attributes_or_those_it_names() {
    let guarantee = json!({"type": "l_diversity", "l": 4});
    let publish = json!({"publish": true});
    let mut document = json!({
        "dataset": ID, "unlisted": "drop", "attributes": {"age": publish, "race": publish, "gender": publish},
        "method": {"type": "anatomy", "sensitive": "race", "guarantee": guarantee},
    });
    let specification = accepted(&document, &hospital());
    assert_eq!((specification.names.len(), specification.method.name()), (3, "anatomy"));
    let [rule] = specification.method.rules() else { panic!("one rule") };
    assert_eq!(
        (rule.pointer.as_str(), rule.known, rule.protects),
        ("/method", set(&[0, 1]), Protected::Attribute(Attr(2)))
    );
    assert_eq!(rule.guarantee, Guarantee::LDiversity { l: 4 });

    document = with(document, "/method/quasi_identifiers", json!(["icd9"]));
    let specification = accepted(&document, &hospital());
    assert_eq!(specification.names, ["age", "gender", "race", "icd9"]);
    assert_eq!(specification.method.rules()[0].known, set(&[3]));
}

#[test]
fn no_rules_need_a_reason() {
    let document = json!({
        "dataset": ID, "unlisted": "drop", "attributes": {"age": {"publish": true}}, "no_rules_reason": "ages are public",
        "method": {"type": "versatile"},
    });
    let specification = accepted(&document, &hospital());
    assert!(specification.method.rules().is_empty());
    assert_eq!(specification.normalized["no_rules_reason"], "ages are public");
}

#[test]
fn the_dataset_is_found_first() {
    assert_eq!(dataset_of(&hospital_document()).expect("a dataset").to_string(), ID);
    for document in [json!({}), json!({"dataset": "x"}), json!({"dataset": 3}), json!({"dataset": format!("{{{ID}}}")})]
    {
        assert_eq!(kinds(&dataset_of(&document).expect_err("no dataset")), [("/dataset", Kind::ParameterRange)]);
    }
    assert_eq!(kinds(&dataset_of(&json!([])).expect_err("no object")), [("", Kind::ParameterRange)]);
}

#[test]
fn on_the_command_line_the_dataset_may_be_left_out() {
    let columns = hospital();
    let schema = DatasetSchema { columns: &columns, keys: &[], unit: &Unit::Row };
    let mut document = hospital_document();
    let with_dataset = read(&document, &schema, DocumentSource::CommandLine);
    document.as_object_mut().expect("an object").remove("dataset");
    let without = read(&document, &schema, DocumentSource::CommandLine);
    let normalized =
        |of: &ParsedDocument| of.specification.as_ref().map(|of| (of.normalized.clone(), of.reuse_form.clone()));
    assert_eq!((normalized(&with_dataset), &with_dataset.faults), (normalized(&without), &without.faults));
    assert_eq!(without.faults, []);
    assert_eq!(kinds(&read(&document, &schema, DocumentSource::Http).faults), [("/dataset", Kind::ParameterRange)]);
}

#[test]
fn a_score_against_the_original_is_for_reproductions() {
    let mut document = hospital_document();
    document["method"]["score"] = "kl".into();
    let columns = hospital();
    let schema = DatasetSchema { columns: &columns, keys: &[], unit: &Unit::Row };
    let reading = read(&document, &schema, DocumentSource::CommandLine);
    assert_eq!(reading.faults.iter().map(|fault| fault.pointer.as_str()).collect::<Vec<_>>(), ["/method/score"]);
    let reading = read(&document, &schema, DocumentSource::Reproduction);
    assert_eq!(reading.faults, []);
    let specification = reading.specification.unwrap();
    assert!(matches!(
        &specification.method,
        MethodSpec::Versatile(VersatileSpec { score: DecompositionScore::Kl, .. })
    ));
    assert_eq!(specification.normalized["method"]["score"], "kl");
}
