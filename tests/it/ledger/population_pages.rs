//! Populations and series in pages: of any number of nights, an answer has as much as its limit says.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::data_subjects::{HEADER, patients};
use crate::support::harness::{Client, Server, text, versatile};

const CLINIC: &str = "/v1/populations/clinic";

/// The pages of a list that goes on at `next`.
async fn pages(server: &Client, path: &str, limit: u32) -> Vec<Value> {
    let mut pages = vec![server.get(&format!("{path}?limit={limit}")).await.ok(200)];
    while let Some(cursor) = pages.last().unwrap()["next"].as_str() {
        let next = format!("{path}?limit={limit}&cursor={cursor}");
        pages.push(server.get(&next).await.ok(200));
    }
    pages
}

/// What stands in a list of all pages.
fn listed(pages: &[Value], list: &str) -> Vec<Value> {
    pages.iter().flat_map(|page| page.pointer(list).and_then(Value::as_array).cloned().unwrap_or_default()).collect()
}

fn each(items: &[Value]) -> BTreeSet<String> {
    items.iter().map(Value::to_string).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_population_of_many_nights_is_read_in_pages() {
    let server = Server::start().await;
    let keys = json!([{"key_system": "patient", "columns": ["id"]}]);
    server.put(CLINIC, &json!({"person": keys})).await.ok(201);
    let (mut datasets, mut releases, mut statements) = (Vec::new(), Vec::new(), Vec::new());
    for night in 0..5_u32 {
        let first = 1000 * night;
        let rows = patients(first..first + 60, HEADER);
        datasets.push(text(&server.upload("population=clinic", rows).await.ok(201)["id"]));
        if night != 2 {
            let job = json!({"unlisted": "drop", "method": versatile(&["age -> dx"])});
            releases.push(text(&server.publish(&datasets[night as usize], job).await["id"]));
        }
        let other = json!({"disjoint_from": ["clinic"], "reason": format!("others {night}")});
        let made = server.put(&format!("/v1/populations/other{night}"), &other).await.ok(201);
        statements.push(text(&made["statements"][0]["id"]));
    }
    let table = json!({"name": "survey", "attributes": ["age", "ward"], "protection": "plain"});
    server
        .post(&format!("{CLINIC}/statements"), &json!({"reason": "x", "tables": [table], "new": ["ward"]}))
        .await
        .ok(201);

    let whole = server.get(CLINIC).await.ok(200);
    assert_eq!((&whole["datasets"], &whole["releases"]), (&json!(datasets), &json!(releases)));
    assert_eq!(whole["next"], Value::Null);
    for limit in [1, 3, 4, 9] {
        let pages = pages(&server, CLINIC, limit).await;
        assert_eq!(pages.len(), 10_usize.div_ceil(limit as usize), "five datasets and five statements");
        for page in &pages {
            let number = |list: &str| page[list].as_array().unwrap().len();
            assert!(number("datasets") + number("statements") <= limit as usize, "{page:#}");
            assert!(number("releases") <= number("datasets"), "{page:#}");
            assert_eq!((&page["name"], &page["person"]), (&whole["name"], &whole["person"]));
            assert_eq!(page["ledger"]["datasets"], page["datasets"]);
            assert_eq!(page["ledger"]["created_at"], whole["ledger"]["created_at"]);
        }
        assert_eq!(listed(&pages, "/datasets"), *whole["datasets"].as_array().unwrap());
        assert_eq!(listed(&pages, "/releases"), *whole["releases"].as_array().unwrap());
        assert_eq!(listed(&pages, "/statements"), *whole["statements"].as_array().unwrap());
        for list in ["disclosures", "active_rules"] {
            let found = listed(&pages, &format!("/ledger/{list}"));
            let all = whole["ledger"][list].as_array().unwrap();
            assert_eq!(each(&found), each(all), "{list}");
        }
    }
    assert_eq!(listed(std::slice::from_ref(&whole), "/statements").len(), statements.len());

    let series = pages(&server, "/v1/series/clinic", 2).await;
    assert_eq!(series.len(), 3);
    assert_eq!(listed(&series, "/datasets"), *whole["datasets"].as_array().unwrap());
    assert_eq!(each(&listed(&series, "/disclosures")), each(whole["ledger"]["disclosures"].as_array().unwrap()));
    for path in [CLINIC, "/v1/series/clinic"] {
        for query in ["limit=0", "limit=1001", "cursor=x", "surprise=1"] {
            server.get(&format!("{path}?{query}")).await.problem(400, "malformed-request");
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_names_few_of_many_statements() {
    let server = Server::start().await;
    for number in 0..120 {
        server.put(&format!("/v1/populations/p{number:03}"), &json!({})).await.ok(201);
    }
    let made = server.put(CLINIC, &json!({"disjoint_from": "all", "reason": "x"})).await.ok(201);
    assert_eq!(made["statements"].as_array().unwrap().len(), 100);
    let rest = server.get(&format!("{CLINIC}?cursor={}", text(&made["next"]))).await.ok(200);
    assert_eq!((rest["statements"].as_array().unwrap().len(), &rest["next"]), (20, &Value::Null));
    server.stop().await;
}
