//! Remedies of faults: a client that applies the patch of any of them gets past the fault.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::specification_errors::faults;
use crate::support::harness::{HOSPITAL, Server, kind, patched, text, versatile};

pub(super) fn faults_of(answer: &Value) -> Vec<Value> {
    answer["errors"].as_array().cloned().unwrap_or_default()
}

/// Sends a document to `path` and again with each remedy; how many remedies faults of each kind had.
async fn mend(server: &Server, path: &str, document: &Value, found: &mut BTreeMap<String, usize>) {
    let answer = server.post(path, document).await.json();
    for fault in faults_of(&answer) {
        for remedy in fault["remedies"].as_array().into_iter().flatten() {
            assert!(!text(&remedy["title"]).is_empty(), "{fault:#}");
            let mended = patched(document, &remedy["patch"]);
            let after = server.post(path, &mended).await.json();
            let is_it = |other: &Value| (&other["pointer"], &other["detail"]) == (&fault["pointer"], &fault["detail"]);
            assert!(!faults_of(&after).iter().any(is_it), "{remedy:#} does not end {fault:#}: {after:#}");
            *found.entry(kind(&fault).to_owned()).or_default() += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_remedy_gets_past_its_fault() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let mut found = BTreeMap::new();
    for (mut document, ..) in faults() {
        document["dataset"] = dataset.as_str().into();
        mend(&server, "/v1/jobs", &document, &mut found).await;
    }
    let kinds: Vec<&str> = found.keys().map(String::as_str).collect();
    let expected = [
        "guarantee-unsupported",
        "identifier-published",
        "parameter-range",
        "reserved-name",
        "rule-ineligible",
        "rule-malformed",
        "unclassified-attributes",
        "unknown-attribute",
        "unknown-field",
        "vacuous-guarantee",
    ];
    assert_eq!(kinds, expected, "{found:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn remedies_of_a_job_lead_to_its_release() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let document = json!({"dataset": dataset, "priorty": 7, "attributes": {"ages": {"publish": true}},
        "method": versatile(&["gender -> zipcod"])});
    let mut mended = document.clone();
    // the first remedy of each answer, until nothing is wrong
    for round in 0.. {
        let answer = server.post("/v1/jobs?wait=60", &mended).await.json();
        let faults = faults_of(&answer);
        if faults.is_empty() {
            assert_eq!(answer["status"], "succeeded", "{answer:#}");
            break;
        }
        let remedied = faults.iter().find(|fault| !fault["remedies"].is_null());
        let fault = remedied.filter(|_| round < 6).unwrap_or_else(|| panic!("{answer:#}"));
        mended = patched(&mended, &fault["remedies"][0]["patch"]);
    }
    let expected = json!({"dataset": dataset, "priority": 7,
        "attributes": {"age": {"publish": true}, "hospital": {"drop": true}, "race": {"drop": true},
            "icd9": {"drop": true}},
        "method": versatile(&["gender -> zipcode"])});
    assert_eq!(mended, expected);
    server.stop().await;
}

/// What the data forbid of a rule is seen once the rule can be read.
#[tokio::test(flavor = "multi_thread")]
async fn misspelt_rules_are_mended_before_they_are_judged() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let misspelt =
        json!({"quasi_identifiers": ["age"], "sensitive": ["race"], "guarantee": {"type": "l_diversty", "l": 4}});
    for (rule, pointer, name, title) in [
        (json!("agee -> race"), "/method/rules/0", "unknown-attribute", "name age"),
        (json!("age => race"), "/method/rules/0", "rule-malformed", "write -> between the sides"),
        (misspelt, "/method/rules/0/guarantee/type", "parameter-range", "write \"l_diversity\""),
    ] {
        let mut method = versatile(&["age -> race"]);
        method["rules"][0] = rule;
        method["default_guarantee"]["l"] = 4.into();
        let document = json!({"dataset": dataset, "unlisted": "drop", "method": method});
        let answer = server.post("/v1/jobs", &document).await;
        let fault = answer.fault(pointer, name);
        assert_eq!(fault["remedies"][0]["title"], title, "{fault:#}");
        let mended = patched(&document, &fault["remedies"][0]["patch"]);
        server.post("/v1/jobs", &mended).await.fault("/method/rules/0", "rule-ineligible");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_dataset_hides_no_other_fault() {
    let server = Server::start().await;
    let never = "018f0000-0000-7000-8000-000000000001";
    for dataset in ["mine", never] {
        let document = json!({"dataset": dataset, "priority": 101, "surprise": 1, "method": versatile(&["age -> "])});
        for path in ["/v1/jobs", "/v1/plans"] {
            let answer = server.post(path, &document).await;
            for (pointer, name) in [
                ("/dataset", "parameter-range"),
                ("/priority", "parameter-range"),
                ("/surprise", "unknown-field"),
                ("/method/rules/0", "rule-malformed"),
            ] {
                answer.fault(pointer, name);
            }
            assert_eq!(faults_of(&answer.json()).len(), 4);
        }
    }
    let document = json!({"dataset": never, "method": versatile(&["age -> disease"])});
    server.post("/v1/jobs", &document).await.problem(404, "not-found");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_that_a_plan_does_not_list_are_counted() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let rules: Vec<String> = (0..150).map(|i| format!("gender -> nobody{i}")).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let document = json!({"dataset": dataset, "unlisted": "drop", "method": versatile(&rules)});
    let refused = server.post("/v1/jobs", &document).await.problem(422, "invalid-specification");
    let planned = server.post("/v1/plans", &document).await.json();
    let listed = planned["problems"].as_array().map_or(&planned, |problems| &problems[0]);
    for said in [&refused, listed] {
        assert_eq!((faults_of(said).len(), &said["others"]), (100, &json!(50)), "{}", said["title"]);
        assert_eq!(said["title"], "150 faults in the specification");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_policy_are_mended_in_the_job() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let policy = json!({"specification": {"unlisted": "drop", "method": versatile(&["gender -> zipcode"])}});
    server.put("/v1/policies/wards", &policy).await.ok(201);
    let name = "wards-v1";
    let document = json!({"dataset": dataset, "policy": name, "priority": 101});
    let answer = server.post("/v1/jobs", &document).await;
    let fault = answer.fault("/priority", "parameter-range");
    let mended = patched(&document, &fault["remedies"][0]["patch"]);
    assert_eq!(mended, json!({"dataset": dataset, "policy": name, "priority": 100}));
    assert_eq!(server.post("/v1/jobs?wait=60", &mended).await.json()["status"], "succeeded");
    server.stop().await;
}

/// The examples of the pages name a dataset of their own: the answer to a job gives the one that was uploaded last.
#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_of_an_example_gets_the_newest_one() {
    let server = Server::start().await;
    let mut document = json!({"dataset": "018f0000-0000-7000-8000-000000000001", "unlisted": "drop",
        "method": versatile(&["gender -> zipcode"])});
    let none = server.post("/v1/jobs", &document).await.problem(404, "not-found");
    assert_eq!(none["errors"][0]["remedies"], Value::Null, "{none:#}");
    server.dataset(HOSPITAL).await;
    let newest = server.dataset(HOSPITAL).await;
    for path in ["/v1/plans", "/v1/jobs?wait=60"] {
        let unknown = server.post(path, &document).await.problem(404, "not-found");
        let mended = patched(&document, &unknown["errors"][0]["remedies"][0]["patch"]);
        assert_eq!(mended["dataset"], newest, "{unknown:#}");
        server.post(path, &mended).await.ok(200);
    }
    document["priority"] = 101.into();
    let fault = server.post("/v1/jobs", &document).await.fault("/dataset", "parameter-range");
    assert_eq!(fault["remedies"][0]["patch"][0]["value"], newest);
    server.stop().await;
}
