//! The schemas of requests take what the service takes, and nothing else.

use guardian::problem::{Fault, Kind};
use guardian::publication::Unit;
use guardian::spec;
use guardian::spec::{ColumnFacts, DatasetSchema, DocumentSource};
use serde_json::{Value, json};

use crate::support::harness::HOSPITAL;
use crate::support::library::seeds;
use crate::support::openapi_judge::{json_pointer, lenient, wrongs};

const ID: &str = "0193a6b0-7c1e-7000-8000-000000000001";

/// What places of a document are changed to.
struct Changes {
    values: Vec<Value>,
    /// Members that are added.
    names: &'static [&'static str],
}

/// Every way to change one place of a document.
fn changed(document: &Value, changes: &Changes) -> Vec<Value> {
    fn places(value: &Value, at: &str, all: &mut Vec<String>) {
        all.push(at.to_owned());
        match value {
            Value::Object(members) => {
                members.iter().for_each(|(name, value)| places(value, &format!("{at}/{name}"), all));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, value)| places(value, &format!("{at}/{index}"), all));
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    places(document, "", &mut all);
    let mut changed = Vec::new();
    for at in all {
        for value in &changes.values {
            let mut other = document.clone();
            *other.pointer_mut(&at).unwrap() = value.clone();
            changed.push(other);
        }
        if let Some(Value::Object(members)) = document.pointer(&at) {
            for name in members.keys() {
                let mut other = document.clone();
                other.pointer_mut(&at).unwrap().as_object_mut().unwrap().remove(name);
                changed.push(other);
            }
            for name in changes.names.iter().filter(|name| !members.contains_key(**name)) {
                for value in &changes.values {
                    let mut other = document.clone();
                    other.pointer_mut(&at).unwrap()[*name] = value.clone();
                    changed.push(other);
                }
            }
        }
    }
    changed
}

fn changes_of_jobs() -> Changes {
    let values = vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(2),
        json!(2.0),
        json!(-101),
        json!(1.5),
        json!(""),
        json!("x"),
        json!("PT10M"),
        json!("uad"),
        json!("age"),
        json!("entropy"),
        json!("enforce"),
        json!([]),
        json!(["age"]),
        json!([7]),
        json!({}),
        json!({"mode": "enforce"}),
        json!({"utility": []}),
        json!({"saturate": true}),
        json!({"equal_width": 5}),
        json!({"type": "l_diversity", "l": 3}),
        json!({"type": "l_diversity", "l": 3, "k": 3}),
    ];
    let names = &[
        "hold",
        "priority",
        "deadline",
        "reason",
        "no_rules_reason",
        "composition",
        "utility",
        "internal",
        "unlisted",
        "policy",
        "attributes",
        "algorithm",
        "default_guarantee",
        "correlated",
        "uad",
        "gd",
        "score",
        "functional_dependencies",
        "assume_unknown",
        "dependencies",
        "rules",
        "sensitive",
        "sensitive_combination",
        "quasi_identifiers",
        "guarantee",
        "drop",
        "publish",
        "identifier",
        "rename",
        "discretize",
        "excludable",
        "saturate",
        "coloring",
        "addback",
        "surprise",
    ];
    Changes { values, names }
}

fn changes_of_guarantees() -> Changes {
    let values = vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(1),
        json!(2),
        json!(2.0),
        json!(1.5),
        json!(u64::MAX),
        json!(""),
        json!("0.5"),
        json!("1/3"),
        json!("x"),
        json!("equal"),
        json!("exact"),
        json!("max"),
        json!("global"),
        json!("table"),
        json!("stratum"),
        json!("k_anonymity"),
        json!("entropy_l_diversity"),
        json!("thresholds"),
        json!([]),
        json!({}),
        json!({"l": 2}),
        json!({"x": "1/3"}),
    ];
    let names = &[
        "k",
        "l",
        "c",
        "alpha",
        "t",
        "distance",
        "reference",
        "rho1",
        "rho2",
        "mode",
        "b",
        "prior",
        "stated",
        "least",
        "most",
        "uniform",
        "explicit",
        "otherwise",
        "surprise",
    ];
    Changes { values, names }
}

fn guarantees() -> Vec<Value> {
    vec![
        json!({"type": "k_anonymity", "k": 2}),
        json!({"type": "l_diversity", "l": 2}),
        json!({"type": "distinct_l_diversity", "l": 2}),
        json!({"type": "entropy_l_diversity", "l": "2.5"}),
        json!({"type": "recursive_l_diversity", "c": "1.5", "l": 2}),
        json!({"type": "alpha_k", "alpha": "0.5", "k": 2}),
        json!({"type": "t_closeness", "t": "0.5", "distance": "ordered", "reference": "table"}),
        json!({"type": "rho", "rho1": "0.1", "rho2": "0.5", "mode": "exact"}),
        json!({"type": "delta", "distance": "kl", "b": "0.5", "prior": "global"}),
        json!({"type": "thresholds", "explicit": {"x": "1/3"}, "otherwise": "0.5"}),
        // as manifests name thresholds
        json!({"type": "thresholds", "stated": "0".repeat(64), "least": "1/3", "most": "0.5"}),
    ]
}

/// Faults of shape: those that a schema can know of, and that depend on one member alone.
fn misshapen(fault: &Fault) -> bool {
    let allowed = fault.members.get("allowed").and_then(Value::as_str).unwrap_or_default();
    let together = [
        "stated only for versatile",
        "either publish or drop",
        "false, or no rule",
        "a rule with a guarantee",
        // what assume_unknown and discover say of each other
        "with discover none",
        "names of attributes; two empty lists",
        // exactly one of three members
        "one of {\"uniform\"",
        "nothing, but beside explicit",
        // which k-anonymity alone does without
        "the names of the attributes whose values",
    ];
    match fault.kind {
        Kind::UnknownField | Kind::GuaranteeUnsupported => true,
        Kind::ParameterRange => !together.iter().any(|start| allowed.starts_with(start)),
        _ => false,
    }
}

#[test]
fn documents_are_taken_as_their_schema_says() {
    let columns: Vec<ColumnFacts> = HOSPITAL.lines().next().unwrap().split(',').map(ColumnFacts::unseen).collect();
    let (mut taken, mut refused) = (0, 0);
    let jobs = ["versatile", "anatomy", "bucketize", "generalize", "held", "one_rule"];
    let jobs = jobs.map(|name| ("jobs", name, "JobDocument", DocumentSource::Http));
    for (path, name, schema, origin) in
        jobs.into_iter().chain([("plans", "proposed", "PlanDocument", DocumentSource::Plan)])
    {
        let schema = lenient(&json!({"$ref": format!("#/components/schemas/{schema}")}));
        let example = json_pointer(&format!(
            "/paths/~1v1~1{path}/post/requestBody/content/application~1json/examples/{name}/value"
        ));
        let read = |document: &Value| {
            spec::read(document, &DatasetSchema { columns: &columns, keys: &[], unit: &Unit::Row }, origin).faults
        };
        assert!(read(&example).is_empty(), "{name}: {:#?}", read(&example));
        // every third change in the gate, so that each value still comes at some place
        for document in changed(&example, &changes_of_jobs()).into_iter().step_by(if seeds() > 1 { 1 } else { 3 }) {
            let (fits, faults) = (schema.is_valid(&document), read(&document));
            assert!(
                fits || !faults.is_empty(),
                "the schema refuses what is taken: {:#?}\n{document:#}",
                wrongs(&schema, &document)
            );
            assert!(
                !fits || !faults.iter().any(misshapen),
                "the schema takes what is refused: {faults:#?}\n{document:#}"
            );
            taken += usize::from(fits);
            refused += usize::from(!fits);
        }
    }
    assert!(taken > 100 && refused > 1000, "{taken} {refused}");
}

/// Holds changed guarantees at a place of a document that is otherwise sound against the schema of the document.
fn guarantees_are_taken(schema: &str, document: &Value, place: &str, read: impl Fn(&Value) -> Vec<Fault>) -> usize {
    let schema = lenient(&json!({"$ref": format!("#/components/schemas/{schema}")}));
    let mut taken = 0;
    let all = guarantees().into_iter().flat_map(|guarantee| changed(&guarantee, &changes_of_guarantees()));
    for guarantee in all.step_by(if seeds() > 1 { 1 } else { 2 }) {
        let mut document = document.clone();
        *document.pointer_mut(place).unwrap() = guarantee;
        let fits = schema.is_valid(&document);
        let faults: Vec<Fault> = read(&document).into_iter().filter(|fault| fault.pointer.starts_with(place)).collect();
        // a text can be a fraction that is too small or too large
        let is_text = |fault: &&Fault| document.pointer(&fault.pointer).is_some_and(Value::is_string);
        let is_size = |fault: &&Fault| is_text(fault) && fault.detail.contains("number");
        let mut wrongs_of_shape = faults.iter().filter(|fault| misshapen(fault) && !is_size(fault));
        assert!(
            !fits || wrongs_of_shape.next().is_none(),
            "the schema takes what is refused: {faults:#?}\n{document:#}"
        );
        assert!(
            fits || !faults.is_empty(),
            "the schema refuses what is taken: {:#?}\n{document:#}",
            wrongs(&schema, &document)
        );
        taken += usize::from(faults.is_empty());
    }
    taken
}

#[test]
fn guarantees_are_taken_as_their_schema_says() {
    let columns: Vec<ColumnFacts> = HOSPITAL.lines().next().unwrap().split(',').map(ColumnFacts::unseen).collect();
    let of_jobs = |document: &Value| {
        let schema = DatasetSchema { columns: &columns, keys: &[], unit: &Unit::Row };
        spec::read(document, &schema, DocumentSource::CommandLine).faults
    };
    let job = |method: Value| json!({"dataset": ID, "unlisted": "drop", "attributes": {"age": {"publish": true}}, "method": method});
    let documents = [
        (
            "/method/default_guarantee",
            job(json!({"type": "versatile", "rules": ["age -> race"], "default_guarantee": {}})),
        ),
        ("/method/guarantee", job(json!({"type": "anatomy", "sensitive": "race", "guarantee": {}}))),
        ("/method/guarantees/0", job(json!({"type": "generalize", "sensitive": ["race"], "guarantees": [{}]}))),
        (
            "/method/guarantee",
            job(json!({"type": "slicing", "sensitive": "race", "columns": {"count": 1}, "guarantee": {}})),
        ),
    ];
    for (place, document) in documents {
        assert!(guarantees_are_taken("JobDocument", &document, place, of_jobs) > 5, "{document:#}");
    }
    let verification = json!({
        "release": ID, "rules": ["age -> race"], "default_guarantee": {},
    });
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let of_rules = |document: &Value| spec::read_verification_rules(document, &names).err().unwrap_or_default();
    assert!(guarantees_are_taken("VerificationRequest", &verification, "/default_guarantee", of_rules) > 20);
}
