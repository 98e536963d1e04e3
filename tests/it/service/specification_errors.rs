//! Specifications that cannot be published: each fault with its pointer and members, all of them in one answer.

use serde_json::{Value, json};

use crate::support::harness::{HOSPITAL, MARKER, Server, kind, versatile};

/// The job document with one member changed.
fn changed(pointer: &str, value: Value) -> Value {
    let mut document = json!({"attributes": {}, "method": {"type": "versatile", "rules": ["age, icd9 -> race",
        "gender, icd9 -> zipcode", "hospital, race -> zipcode"], "default_guarantee": {"type": "l_diversity", "l": 2}}});
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = document.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        other => other[name] = value,
    }
    document
}

fn l(value: Value) -> Value {
    changed("/method/default_guarantee/l", value)
}

/// Document, pointer, kind, members.
pub(super) fn faults() -> Vec<(Value, &'static str, &'static str, Value)> {
    let rule = |text: &str| changed("/method/rules/0", text.into());
    let range = json!({"allowed": "an integer of at least 2"});
    let at_l = "/method/default_guarantee/l";
    let huge = json!({"requested": "1000000000", "largest_l": 2});
    vec![
        (l(json!(0)), at_l, "parameter-range", range.clone()),
        (l(json!(-1)), at_l, "parameter-range", range.clone()),
        (l(json!(2.5)), at_l, "parameter-range", range.clone()),
        (l(json!("3")), at_l, "parameter-range", range.clone()),
        (l(json!(null)), at_l, "parameter-range", range.clone()),
        (l(json!([2])), at_l, "parameter-range", range),
        (l(json!(1)), at_l, "vacuous-guarantee", json!({})),
        (l(json!(1e9)), "/method/rules/0", "rule-ineligible", huge.clone()),
        (l(json!(1_000_000_000)), "/method/rules/0", "rule-ineligible", huge),
        (l(json!(u64::MAX)), "/method/rules/0", "rule-ineligible", json!({"requested": "18446744073709551615"})),
        (l(json!(3)), "/method/rules/0", "rule-ineligible", json!({"requested": "3", "largest_l": 2})),
        (l(json!(4)), "/method/rules/2", "rule-ineligible", json!({"requested": "4", "largest_l": 3})),
        (rule("age, nobody -> race"), "/method/rules/0", "unknown-attribute", json!({"attribute": "nobody"})),
        (rule("age, race -> race"), "/method/rules/0", "rule-malformed", json!({})),
        (rule("age, age -> race"), "/method/rules/0", "rule-malformed", json!({})),
        (rule("age race"), "/method/rules/0", "rule-malformed", json!({})),
        (rule("age -> "), "/method/rules/0", "rule-malformed", json!({})),
        (rule(""), "/method/rules/0", "rule-malformed", json!({"position": 0})),
        (changed("/method/rules/0", json!(7)), "/method/rules/0", "parameter-range", json!({})),
        (changed("/method/rules", json!([])), "/method/rules", "vacuous-guarantee", json!({})),
        (
            changed("/method/rules", json!(["age -> race"])),
            "/attributes",
            "unclassified-attributes",
            json!({"attributes": ["hospital", "gender", "zipcode", "icd9"]}),
        ),
        (
            changed("/attributes/nobody", json!({"drop": true})),
            "/attributes/nobody",
            "unknown-attribute",
            json!({"attribute": "nobody"}),
        ),
        (changed("/attributes/age", json!({"drop": true})), "/attributes/age/drop", "parameter-range", json!({})),
        (
            changed("/attributes/age", json!({"identifier": true})),
            "/attributes/age",
            "identifier-published",
            json!({"attribute": "age"}),
        ),
        (
            changed("/attributes/age", json!({"rename": "race"})),
            "/attributes/age/rename",
            "reserved-name",
            json!({"attribute": "age"}),
        ),
        (changed("/attributes/age", json!({"rename": "bucket"})), "/attributes/age/rename", "reserved-name", json!({})),
        (changed("/attributes/age", json!({"rename": ""})), "/attributes/age/rename", "parameter-range", json!({})),
        (changed("/surprise", json!(1)), "/surprise", "unknown-field", json!({})),
        (changed("/method/surprise", json!(1)), "/method/surprise", "unknown-field", json!({})),
        (changed("/method", json!("versatile")), "/method", "parameter-range", json!({})),
        (changed("/method", json!({"type": "magic"})), "/method/type", "parameter-range", json!({})),
        (changed("/method", json!({"type": "elsewhere"})), "/method/type", "parameter-range", json!({})),
        (changed("/method/score", json!("kl")), "/method/score", "guarantee-unsupported", json!({})),
        (
            changed("/method/default_guarantee", json!({"type": "k_anonymity", "k": 2})),
            "/method/default_guarantee/type",
            "guarantee-unsupported",
            json!({}),
        ),
        (changed("/priority", json!(101)), "/priority", "parameter-range", json!({})),
        (changed("/deadline", json!("ten minutes")), "/deadline", "parameter-range", json!({})),
        (changed("/policy", json!("x-v1")), "/policy", "unknown-policy", json!({"policy": "x"})),
        (changed("/composition", json!({"mode": "report"})), "/composition/reason", "parameter-range", json!({})),
        (changed("/unlisted", json!("publish")), "/unlisted", "parameter-range", json!({})),
        (
            changed(
                "/method",
                json!({"type": "anatomy", "sensitive": "icd9", "quasi_identifiers": ["icd9"],
                "guarantee": {"type": "l_diversity", "l": 2}}),
            ),
            "/method/quasi_identifiers",
            "bad-columns",
            json!({}),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_is_pointed_at() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    for (document, pointer, name, members) in faults() {
        let answer = server.job(&dataset, document.clone()).await;
        let problem = answer.problem(422, "invalid-specification");
        let errors = problem["errors"].as_array().unwrap();
        let fault = errors.iter().find(|fault| fault["pointer"] == pointer && kind(fault) == name);
        let fault = fault.unwrap_or_else(|| panic!("no {name} at {pointer} for {document}: {problem:#}"));
        for (member, value) in members.as_object().unwrap() {
            assert_eq!(&fault[member], value, "{member} for {document}");
        }
    }
    assert!(server.items("/v1/jobs").await.is_empty());
    assert_eq!(server.stored("job_keys").await, 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_answer_names_every_fault() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let document = json!({"surprise": 1, "priority": 1000, "attributes": {"nobody": {"drop": true}, "age": {"drop": "yes"}},
        "method": {"type": "versatile", "rules": ["gender, icd9 -> zipcode", "race", "hospital -> nothing",
            {"quasi_identifiers": ["age"], "sensitive": ["race"], "guarantee": {"type": "l_diversity", "l": 5}}],
            "default_guarantee": {"type": "l_diversity", "l": 9}}});
    let answer = server.job(&dataset, document.clone()).await;
    let expected = [
        ("/surprise", "unknown-field"),
        ("/priority", "parameter-range"),
        ("/attributes/nobody", "unknown-attribute"),
        ("/attributes/age/drop", "parameter-range"),
        ("/method/rules/0", "rule-ineligible"),
        ("/method/rules/1", "rule-malformed"),
        ("/method/rules/2", "unknown-attribute"),
        ("/method/rules/3", "rule-ineligible"),
    ];
    for (pointer, name) in expected {
        answer.fault(pointer, name);
    }
    let problem = answer.json();
    assert_eq!(problem["errors"].as_array().unwrap().len(), expected.len(), "{problem:#}");
    assert_eq!(problem["title"], "8 faults in the specification");

    // what is no job document has no plan either; what is one, and wrong, has
    let mut planned = document;
    planned["dataset"] = json!(dataset);
    let refused = server.post("/v1/plans", &planned).await;
    for (pointer, name) in expected {
        refused.fault(pointer, name);
    }
    let rules = json!(["gender, icd9 -> zipcode", "hospital -> nothing"]);
    let method = json!({"type": "versatile", "rules": rules, "default_guarantee": {"type": "l_diversity", "l": 9}});
    let infeasible = json!({"dataset": dataset, "attributes": {"nobody": {"drop": true}}, "method": method});
    let plan = server.post("/v1/plans", &infeasible).await.ok(200);
    assert_eq!((&plan["feasible"], plan["problems"][0]["errors"].as_array().unwrap().len()), (&json!(false), 4));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identifier_is_published_on_statement_alone() {
    let server = Server::start().await;
    let mut csv = String::from("ssn,age,race\n");
    for row in 0..40 {
        csv.push_str(&format!("{MARKER}{row},{},r{}\n", row % 5, row % 4));
    }
    let dataset = server.upload("", csv).await.ok(201);
    assert_eq!(dataset["columns"][0]["identifier"], true);
    let id = dataset["id"].as_str().unwrap();
    let mut document = json!({"attributes": {"ssn": {"publish": true}}, "method": versatile(&["age -> race"])});
    let fault = server.job(id, document.clone()).await.fault("/attributes/ssn", "identifier-published");
    assert_eq!(fault["attribute"], "ssn");
    // also where the identifier only occurs in a rule
    let in_rule = json!({"unlisted": "drop", "method": versatile(&["ssn -> race"])});
    server.job(id, in_rule).await.fault("/attributes/ssn", "identifier-published");

    document["attributes"]["ssn"]["identifier"] = false.into();
    let manifest = server.publish(id, document).await;
    assert_eq!(manifest["warnings"][0]["type"], "identifier-overridden");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_key_is_an_identifier() {
    let server = Server::start().await;
    let dataset = server.upload("record_key=hospital,age", HOSPITAL).await.ok(201);
    assert_eq!(dataset["record_key"], json!(["hospital", "age"]));
    let document = json!({"unlisted": "drop", "method": versatile(&["gender, hospital -> zipcode"])});
    let answer = server.job(dataset["id"].as_str().unwrap(), document).await;
    answer.fault("/attributes/hospital", "identifier-published");
    server.stop().await;
}

/// A table in which `zip` determines `county`.
fn dependent_table() -> String {
    let mut csv = String::from("zip,county,age,disease\n");
    for row in 0..200 {
        csv.push_str(&format!("z{},c{},{},d{}\n", row % 8, row % 8 / 2, row * 7 % 31, row * 11 % 13));
    }
    csv
}

#[tokio::test(flavor = "multi_thread")]
async fn dependencies_in_the_data_refuse_the_job_that_ran_into_them() {
    let server = Server::start().await;
    let dataset = server.dataset(dependent_table()).await;
    let document = json!({"unlisted": "drop", "method": versatile(&["zip -> county"])});
    let problem = server.refused(&dataset, document).await;
    assert_eq!(kind(&problem), "invalid-specification");
    let fault = &problem["errors"][0];
    assert_eq!((kind(fault), &fault["pointer"]), ("rule-impossible", &json!("/method/rules/0")));
    assert_eq!(fault["dependency"], json!({"determinant": ["zip"], "dependent": ["county"]}));
    assert_eq!((server.stored("part_chunks").await, server.stored("job_keys").await), (0, 0));
    assert!(server.items("/v1/releases").await.is_empty());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_attributes_and_too_wide_tables() {
    let server = Server::start().await;
    let names: Vec<String> = (0..200).map(|column| format!("c{column}")).collect();
    let csv = format!("{}\n{}\n{}\n", names.join(","), vec!["1"; 200].join(","), vec!["2"; 200].join(","));
    let dataset = server.dataset(csv).await;
    let attributes: serde_json::Map<_, _> = names.iter().map(|name| (name.clone(), json!({"publish": true}))).collect();
    let document = json!({"attributes": attributes, "method": versatile(&["c0 -> c1"])});
    let fault = server.job(&dataset, document).await.fault("/attributes", "too-many-attributes");
    assert_eq!(fault["found"], 200);
    assert!(fault["limit"].as_u64().unwrap() < 200);
    server.stop().await;
}
