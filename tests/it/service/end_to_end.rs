//! The hospital table from upload to report, as the contract shows it.

use guardian::vault::Secret;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::harness::{HOSPITAL, Server, hospital_method, part_path, text, versatile};

/// `actual` has every member of `expected`; `"…"` stands for any text.
#[track_caller]
fn assert_like(actual: &Value, expected: &Value, at: &str) {
    match (actual, expected) {
        (Value::String(_), Value::String(any)) if any == "…" => {}
        (Value::Object(actual), Value::Object(expected)) => {
            for (name, value) in expected {
                let found = actual.get(name).unwrap_or_else(|| panic!("{at}/{name} is missing"));
                assert_like(found, value, &format!("{at}/{name}"));
            }
        }
        (Value::Array(actual), Value::Array(expected)) => {
            assert_eq!(actual.len(), expected.len(), "{at}");
            for (index, (actual, expected)) in actual.iter().zip(expected).enumerate() {
                assert_like(actual, expected, &format!("{at}/{index}"));
            }
        }
        _ => assert_eq!(actual, expected, "{at}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_is_described_as_the_contract_has_it() {
    let server = Server::start().await;
    let created = server.upload("name=hospital", HOSPITAL).await;
    let dataset = created.ok(201);
    let column = |name, kind, distinct, top| {
        json!({"name": name, "type": kind, "distinct": distinct, "missing": 0,
            "top_share": {"count": top, "of": 6}, "identifier": false})
    };
    let expected = json!({"id": "…", "name": "hospital", "series": dataset["id"], "same_people": null,
        "record_key": null, "subject": null, "max_rows_per_subject": null, "created_at": "…", "rows": 6,
        "bytes": HOSPITAL.len(), "format": "text/csv", "purged_at": null,
        "population": null, "person": {}, "identity": "content_only",
        "published_before": {"persons": null, "same_table": false, "unknown_beside": []},
        "warnings": [{"type": "identity-content-only"}],
        "columns": [column("hospital", "integer", 3, 2), column("age", "integer", 4, 3), column("gender", "text", 2, 3),
            column("zipcode", "integer", 4, 2), column("race", "text", 3, 3), column("icd9", "text", 4, 2)]});
    assert_like(&dataset, &expected, "");
    assert_eq!(dataset.as_object().unwrap().len(), expected.as_object().unwrap().len());
    let location = created.header("location").to_owned();
    assert_eq!(location, format!("/v1/datasets/{}", text(&dataset["id"])));
    let without = |mut dataset: Value, member: &str| {
        dataset.as_object_mut().unwrap().remove(member);
        dataset
    };
    let read = without(dataset, "warnings");
    assert_eq!(server.get(&location).await.ok(200), read);
    let listed = ["published_before", "columns", "same_people"].into_iter().fold(read, without);
    assert_eq!(server.items("/v1/datasets").await, [listed]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_equals_the_outcome_of_the_job() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let plan = server.post("/v1/plans", &json!({"dataset": dataset, "method": hospital_method()})).await.ok(200);
    let expected = json!({"feasible": true, "problems": [],
        "warnings": [{"type": "attributes-unrelated"}, {"type": "identity-content-only"}],
        "rules": [
            {"pointer": "/method/rules/0", "origin": "submitted", "quasi_identifiers": ["age", "icd9"], "sensitive": ["race"],
             "combination": false, "guarantee": {"type": "l_diversity", "l": 2}, "status": "kept", "because": null,
             "eligible": true, "largest_l": 2, "enforced_by": {"unreachable": true}, "violated_by": null, "paths": []},
            {"largest_l": 3, "enforced_by": {"guardian": "t1", "known": ["gender"]}},
            {"largest_l": 3, "enforced_by": {"guardian": "t1", "known": ["hospital", "race"]}}],
        "tables": [
            {"name": "t1", "kind": "bucketized", "protection": "guarding",
             "attributes": ["hospital", "gender", "zipcode", "race"], "sensitive": ["zipcode"]},
            {"name": "t2", "kind": "marginal", "protection": "plain", "attributes": ["age", "icd9"], "sensitive": null}],
        "dependencies": {"declared": [], "discovered": [], "assumed_unknown": []}, "proxies": [], "exposed_to": [],
        "composition": {"verdict": "safe", "against": [], "violations": [], "counts": null}});
    assert_like(&plan, &expected, "");
    // a dry run queues nothing
    assert!(server.items("/v1/jobs").await.is_empty());

    let wanting = versatile(&["age -> race"]);
    let mut wanting = json!({"dataset": dataset, "unlisted": "drop", "method": wanting});
    wanting["method"]["default_guarantee"]["l"] = 3.into();
    let plan = server.post("/v1/plans", &wanting).await.ok(200);
    assert_eq!((&plan["feasible"], &plan["rules"][0]["status"]), (&json!(false), &json!("refused")));
    let planned_problem = plan["problems"][0].clone();
    let answered = server.post("/v1/jobs", &wanting).await.problem(422, "invalid-specification");
    assert_eq!(planned_problem["errors"], answered["errors"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_ends_in_the_release_of_the_contract() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let document = json!({"dataset": dataset, "method": hospital_method()});
    let accepted = server.post("/v1/jobs", &document).await;
    let job = accepted.ok(202);
    let path = accepted.header("location").to_owned();
    assert_eq!(path, format!("/v1/jobs/{}", text(&job["id"])));
    assert!(["queued", "running", "succeeded"].contains(&text(&job["status"]).as_str()));
    let job = server.get(&format!("{path}?wait=60")).await.ok(200);
    let expected = json!({"id": "…", "status": "succeeded", "dataset": dataset, "method": "versatile", "priority": 0,
        "submitted_at": "…", "started_at": "…", "finished_at": "…", "attempt": 1, "release": "…", "reused": false,
        "problem": null, "specification": {"dataset": dataset, "unlisted": "refuse", "method": {"algorithm": "uad"}},
        "links": {"self": path, "events": format!("{path}/events"), "release": format!("/v1/releases/{}", text(&job["release"]))}});
    assert_like(&job, &expected, "");
    assert!(job.as_object().unwrap().contains_key("progress"));

    let manifest = server.get(&text(&job["links"]["release"])).await.ok(200);
    let guarantee = json!({"type": "l_diversity", "l": 2});
    let achieved = json!({"prior": {"count": 2, "of": 6}, "worst_posterior": {"count": 1, "of": 2}, "median_posterior": {"count": 1, "of": 2},
        "smallest_bucket": 2});
    let part = |name, attributes: Value, bucketed, file| {
        json!({"name": name, "attributes": attributes, "bucketed": bucketed, "row_meaning": "tuples", "cells": {},
            "rows": 6, "file": file, "sha256": "…"})
    };
    let rule = |at, known: Value, sensitive, enforced_by: Value| {
        json!({"pointer": format!("/method/rules/{at}"), "origin": "submitted", "quasi_identifiers": known,
            "sensitive": [sensitive], "combination": false, "because": null, "guarantee": guarantee, "enforced_by": enforced_by})
    };
    let expected = json!({"id": job["release"], "series": dataset, "created_at": "…", "software": "guardian 0.1.0",
        "contract": 2, "unit": "row", "method": {"type": "versatile", "algorithm": "uad"},
        "composition": "same_dataset_only", "status": "published",
        "rules": [
            rule(0, json!(["age", "icd9"]), "race", json!({"unreachable": true})),
            rule(1, json!(["gender", "icd9"]), "zipcode", json!({"guardian": "t1", "known": ["gender"]})),
            rule(2, json!(["hospital", "race"]), "zipcode", json!({"guardian": "t1", "known": ["hospital", "race"]}))],
        "tables": [
            {"name": "t1", "kind": "bucketized", "attributes": ["hospital", "gender", "zipcode", "race"], "protection": "guarding",
             "guards": [{"quasi_identifiers": ["hospital", "gender", "race"], "sensitive": ["zipcode"], "joint": false,
                "guarantees": [guarantee]}],
             "parts": [part("qi", json!(["hospital", "gender", "race"]), true, "t1.qi.csv"),
                part("sa", json!(["zipcode"]), true, "t1.sa.csv")]},
            {"name": "t2", "kind": "marginal", "attributes": ["age", "icd9"], "protection": "plain", "guards": [],
             "parts": [part("rows", json!(["age", "icd9"]), false, "t2.rows.csv")]}],
        "verification": {"verified": true, "linkage": "checked"}, "method_details": null,
        "utility": {"bucket_sizes": [{"table": "t1", "size": 2, "buckets": 3}]},
        "dependencies": {"declared": [], "discovered": [], "assumed_unknown": []},
        "warnings": [{"type": "attributes-unrelated"}]});
    assert_like(&manifest, &expected, "");
    assert_eq!(manifest["rules"][0].get("achieved"), None);
    assert_eq!((&manifest["rules"][1]["achieved"], &manifest["rules"][2]["achieved"]), (&achieved, &achieved));

    // GNF.md, Table 3: the parts as canonical CSV
    let rows = server.part(&manifest, "t2", "rows").await;
    assert_eq!(rows, "age,icd9\n23,alcoholism\n37,HIV\n37,HIV\n37,flu\n55,diabetes\n71,diabetes\n");
    let sensitive = server.part(&manifest, "t1", "sa").await;
    let mut zipcodes: Vec<&str> = sensitive.lines().skip(1).map(|line| &line[2..]).collect();
    zipcodes.sort_unstable();
    assert_eq!(zipcodes, ["71000", "71000", "72000", "72000", "73000", "74000"]);
    let qi = server.part(&manifest, "t1", "qi").await;
    assert!(qi.starts_with("bucket,hospital,gender,race\n"));
    let lines: Vec<&str> = qi.lines().skip(1).collect();
    assert!(lines.is_sorted() && lines.len() == 6, "{qi}");

    let report = server.get(&format!("{}/report", text(&job["links"]["release"]))).await.ok(200);
    assert!(text(&report["summary"]).starts_with("6 rows in 2 tables under 3 rules"));
    assert_eq!(report["rules"].as_array().unwrap().len(), 3);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_are_served_in_three_formats() {
    let server = Server::start().await;
    let csv = "age,note,zip\n30,,01234\n41,\"\",99999\n30,\"a, \"\"b\"\"\",01234\n30,x,99999\n";
    let dataset = server.dataset(csv).await;
    let manifest = server.publish(
        &dataset,
        json!({"attributes": {"note": {"publish": true}, "age": {"publish": true},
        "zip": {"publish": true}}, "no_rules_reason": "a public register", "method": {"type": "versatile", "rules": []}}),
    );
    let manifest = manifest.await;
    let path = part_path(&manifest, "t1", "rows");
    let answer = server.get(&path).await;
    let canonical = "age,note,zip\n30,,01234\n30,\"a, \"\"b\"\"\",01234\n30,x,99999\n41,\"\",99999\n";
    assert_eq!(answer.text(), canonical);
    assert!(answer.header("content-type").starts_with("text/csv"));
    assert!(answer.header("content-disposition").contains("t1.rows.csv"));
    let etag = answer.header("etag").to_owned();
    let again = server.request(Method::GET, &path).header("if-none-match", &etag);
    let again = server.send(again).await;
    assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, etag.as_str()));

    let ndjson = server.send(server.request(Method::GET, &path).header("accept", "application/x-ndjson")).await;
    let lines: Vec<Value> = ndjson.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0], json!({"age": 30, "note": null, "zip": "01234"}));
    assert_eq!((lines.len(), &lines[3]), (4, &json!({"age": 41, "note": "", "zip": "99999"})));
    assert_ne!(ndjson.header("etag"), etag);

    let (mut rows, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("{path}?format=json&limit=3{cursor}")).await.ok(200);
        assert_eq!(page["columns"], json!(["age", "note", "zip"]));
        rows.extend(page["rows"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let expected = [
        json!([30, null, "01234"]),
        json!([30, "a, \"b\"", "01234"]),
        json!([30, "x", "99999"]),
        json!([41, "", "99999"]),
    ];
    assert_eq!(rows, expected);
    for (accept, served) in [
        ("application/json", "application/json"),
        ("text/csv;q=0.1, application/x-ndjson", "application/x-ndjson"),
        ("*/*", "text/csv; charset=utf-8; header=present"),
    ] {
        let answer = server.send(server.request(Method::GET, &path).header("accept", accept)).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, served));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anatomy_alone_and_published_names() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let document = json!({"unlisted": "drop", "attributes": {"icd9": {"rename": "diagnosis"}, "age": {"rename": "years"}},
        "method": {"type": "anatomy", "quasi_identifiers": ["age", "gender"], "sensitive": "icd9",
            "guarantee": {"type": "l_diversity", "l": 2}}});
    let manifest = server.publish(&dataset, document).await;
    assert_eq!(manifest["method"], json!({"type": "anatomy"}));
    let expected = json!([{"pointer": "/method", "origin": "submitted", "quasi_identifiers": ["years", "gender"],
        "sensitive": ["diagnosis"], "enforced_by": {"table": "t1"}, "achieved": {"smallest_bucket": 2}}]);
    assert_like(&manifest["rules"], &expected, "/rules");
    assert_eq!(manifest["tables"].as_array().unwrap().len(), 1);
    assert!(server.part(&manifest, "t1", "qi").await.starts_with("bucket,years,gender\n"));
    assert!(server.part(&manifest, "t1", "sa").await.starts_with("bucket,diagnosis\n"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_paged_and_filtered() {
    let server = Server::start().await;
    let mut datasets = Vec::new();
    for (population, town) in [("s1", "71000"), ("s2", "81000"), ("s3", "91000")] {
        datasets.push(server.dataset_of(population, HOSPITAL.replace("71000", town)).await);
    }
    let release = server.publish(&datasets[0], json!({"method": hospital_method()})).await;
    let anatomy = json!({"unlisted": "drop", "method": {"type": "anatomy", "quasi_identifiers": ["age"],
        "sensitive": "icd9", "guarantee": {"type": "l_diversity", "l": 2}}});
    server.publish(&datasets[1], anatomy).await;

    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/v1/datasets?limit=2{cursor}")).await.ok(200);
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| text(&item["id"])));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    datasets.reverse();
    assert_eq!(seen, datasets, "newest first");
    for (path, items) in [
        ("/v1/jobs?status=succeeded".to_owned(), 2),
        ("/v1/jobs?status=failed".to_owned(), 0),
        ("/v1/jobs?method=anatomy".to_owned(), 1),
        (format!("/v1/jobs?dataset={}", datasets[2]), 1),
        ("/v1/jobs?series=s3".to_owned(), 0),
        ("/v1/releases?series=s1&status=published&method=versatile".to_owned(), 1),
        (format!("/v1/releases?dataset={}", datasets[0]), 0),
    ] {
        assert_eq!(server.items(&path).await.len(), items, "{path}");
    }
    let item = &server.items("/v1/releases?series=s1").await[0];
    let expected = json!({"id": release["id"], "series": "s1", "dataset": datasets[2], "method": "versatile",
        "status": "published", "created_at": item["created_at"]});
    assert_eq!(*item, expected);
    server.stop().await;
}

/// Otherwise one request for a thousand items could ask for a thousand documents.
#[tokio::test(flavor = "multi_thread")]
async fn lists_do_not_grow_with_documents_or_columns() {
    let server = Server::start().await;
    let names: Vec<String> = (0..100).map(|column| format!("a_column_of_the_table_{column}")).collect();
    let row = |sensitive: u32| format!("{}{sensitive}\n", "7,".repeat(99));
    let csv = format!("{}\n{}{}", names.join(","), row(1), row(2));
    let dataset = server.dataset_of("wide", csv).await;
    let anatomy = json!({"method": {"type": "anatomy", "quasi_identifiers": names[..99], "sensitive": names[99],
        "guarantee": {"type": "l_diversity", "l": 2}}});
    server.publish(&dataset, anatomy).await;
    for path in ["/v1/datasets", "/v1/jobs", "/v1/releases"] {
        let answer = server.get(path).await;
        let items = answer.json()["items"].as_array().unwrap().len();
        assert!(items > 0 && answer.body.len() < 1000 * items, "{path}: {} bytes of {items} items", answer.body.len());
    }
    assert!(server.items("/v1/jobs").await[0]["specification"].is_null());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operation_and_documentation_are_served() {
    let server = Server::start().await;
    assert_eq!(server.get("/healthz").await.ok(200), json!({"status": "ok"}));
    assert_eq!(server.get("/readyz").await.ok(200), json!({"status": "ok"}));
    let page = server.get("/docs/").await;
    assert!(page.status == 200 && page.text().contains("swagger-ui"), "{page:?}");
    let document = server.get("/openapi.json").await.ok(200);
    assert_eq!(document["openapi"], "3.1.0");
    let committed: Value = serde_json::from_str(include_str!("../../../openapi/openapi.json")).unwrap();
    assert_eq!(document, committed);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_gives_known_parts() {
    let keys = || -> guardian::app::ReleaseKeySource { std::sync::Arc::new(|| Ok(Secret::new([7; 32]))) };
    let mut parts = Vec::new();
    for _ in 0..2 {
        let server = Server::start_as(|_| {}, keys()).await;
        let dataset = server.dataset(HOSPITAL).await;
        let manifest = server.publish(&dataset, json!({"method": hospital_method()})).await;
        assert_eq!(manifest.get("reproducible"), None);
        parts.push((server.part(&manifest, "t1", "qi").await, server.part(&manifest, "t1", "sa").await));
        server.stop().await;
    }
    assert_eq!(parts[0], parts[1]);
}
