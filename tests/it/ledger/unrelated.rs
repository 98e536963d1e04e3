//! Populations about which nothing is stated, where a tenant wants that marked and not refused.

use guardian::people::UnrelatedPolicy;
use guardian::ports::TenantChange;
use serde_json::{Value, json};

use super::data_subjects::{HEADER, patients, plain};
use crate::support::harness::{Client, kind, text, versatile};
use crate::support::stores::TestStore;

fn policy(policy: UnrelatedPolicy) -> TenantChange {
    TenantChange { unrelated: Some(policy), ..TenantChange::default() }
}

fn protected() -> Value {
    json!({"unlisted": "drop", "method": versatile(&["age -> dx"])})
}

/// A population with a key system of its own, about which nothing is stated.
async fn define(server: &Client, name: &str) {
    let population = json!({"person": [{"key_system": name, "columns": ["id"]}]});
    server.put(&format!("/v1/populations/{name}"), &population).await.ok(201);
}

async fn uploaded(server: &Client, query: &str, csv: String) -> String {
    text(&server.upload(query, csv).await.ok(201)["id"])
}

async fn plan(server: &Client, dataset: &str) -> Value {
    let mut document = protected();
    document["dataset"] = dataset.into();
    server.post("/v1/plans", &document).await.ok(200)
}

/// What the warnings say of other populations.
fn marks(answer: &Value) -> Vec<String> {
    let warnings = answer["warnings"].as_array().unwrap().iter();
    warnings.filter(|warning| warning["type"] == "populations-unrelated").map(|of| text(&of["detail"])).collect()
}

fn claim(release: &Value) -> (&str, &Value) {
    (release["composition"].as_str().unwrap(), &release["identity"]["unrelated"])
}

async fn refused(server: &Client, dataset: &str, name: &str) {
    let mut document = protected();
    document["dataset"] = dataset.into();
    server.post("/v1/jobs", &document).await.problem(409, name);
}

async fn marks_releases(store: TestStore) {
    store.set_tenant("default", policy(UnrelatedPolicy::Mark)).await;
    let server = store.serve(|_| {}).await;
    define(&server, "north").await;
    define(&server, "south").await;
    let own = uploaded(&server, "population=north", patients(0..300, HEADER)).await;
    assert_eq!(claim(&server.publish(&own, protected()).await), ("enforced", &json!([])));

    let other = uploaded(&server, "population=south", patients(1000..1300, HEADER)).await;
    let planned = plan(&server, &other).await;
    assert_eq!((&planned["feasible"], &planned["composition"]["verdict"]), (&json!(true), &json!("safe")));
    let said = "it is unknown whether persons of north are in this release, and nothing is promised against readers who join \
                it with releases of these";
    assert_eq!(marks(&planned), [said]);
    let release = server.publish(&other, protected()).await;
    assert_eq!(claim(&release), ("within_population", &json!(["north"])));
    let path = format!("/v1/releases/{}/report", text(&release["id"]));
    let report = server.get(&path).await.ok(200);
    assert_eq!(report["not_promised"].as_array().unwrap().last(), Some(&json!(said)), "{report:#}");
    assert!(server.get(&format!("{path}?format=html")).await.text().contains(said));
    // of the first table too nothing more is claimed from now on
    let again = server.publish(&own, plain(&["sex"])).await;
    assert_eq!(claim(&again), ("within_population", &json!(["south"])), "{again:#}");

    // the same people under other keys, a table without keys, and one without a population
    let respelled = patients(0..300, HEADER).replace("\np", "\nq");
    refused(&server, &uploaded(&server, "population=south", respelled).await, "people-alike").await;
    let keyless = uploaded(&server, "population=south&person=none", patients(2000..2300, HEADER)).await;
    refused(&server, &keyless, "people-unknown").await;
    let undeclared = uploaded(&server, "name=t", patients(3000..3300, HEADER)).await;
    refused(&server, &undeclared, "population-undeclared").await;
    server.stop().await;

    // what was published under the setting stays, and permits nothing without it
    store.set_tenant("default", policy(UnrelatedPolicy::Refuse)).await;
    let server = store.serve(|_| {}).await;
    let later = uploaded(&server, "population=south", patients(4000..4300, HEADER)).await;
    refused(&server, &later, "population-undeclared").await;
    let planned = plan(&server, &later).await;
    assert_eq!((kind(&planned["problems"][0]), marks(&planned)), ("population-undeclared", vec![]), "{planned:#}");
    // under `report` nothing is claimed at all
    let mut document = protected();
    document["composition"] = json!({"mode": "report", "reason": "asked for"});
    assert_eq!(claim(&server.publish(&later, document).await), ("unproven", &json!([])));
    server.stop().await;

    store.set_tenant("default", policy(UnrelatedPolicy::Mark)).await;
    let server = store.serve(|_| {}).await;
    let statement = json!({"disjoint_from": ["south"], "reason": "other regions"});
    server.post("/v1/populations/north/statements", &statement).await.ok(201);
    let newcomers = uploaded(&server, "population=north", patients(5000..5300, HEADER)).await;
    let release = server.publish(&newcomers, protected()).await;
    assert_eq!(claim(&release), ("enforced", &json!([])), "what is stated is not marked");
    assert_eq!(release["identity"]["statements"][0]["reason"], "other regions");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unrelated_populations_are_marked() {
    marks_releases(TestStore::embedded()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unrelated_populations_are_marked_on_postgres() {
    if let Some(store) = TestStore::shared().await {
        marks_releases(store).await;
    }
}
