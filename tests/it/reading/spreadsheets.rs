//! Cells that a spreadsheet would execute: named before and after publishing, and defused on demand.

use std::io::{Cursor, Read};

use serde_json::{Value, json};
use zip::ZipArchive;

use crate::support::harness::{Server, part_path, text};

const NOTES: &str = "note,age,ward\n=HYPERLINK(1),-30,a\n@sum,-31,b\n\"-a,b\",-30,a\nplain,-31,b\n";

fn notice(document: &Value) -> Option<&str> {
    let all = document["warnings"].as_array().unwrap();
    all.iter().find(|warning| warning["type"] == "spreadsheet-formulas").map(|found| found["detail"].as_str().unwrap())
}

fn versatile(columns: &[&str]) -> Value {
    let listed: serde_json::Map<String, Value> =
        columns.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    let method = json!({"type": "versatile", "rules": []});
    json!({"attributes": listed, "unlisted": "drop", "no_rules_reason": "a test", "method": method})
}

#[tokio::test(flavor = "multi_thread")]
async fn formulas_are_named_and_can_be_defused() {
    let server = Server::start().await;
    let dataset = server.dataset(NOTES).await;
    let mut document = versatile(&["note", "age"]);
    document["dataset"] = json!(dataset);
    let plan = server.post("/v1/plans", &document).await.ok(200);
    let said = notice(&plan).unwrap();
    assert!(said.starts_with("note: "), "numbers are no formulas: {said}");

    let release = server.publish(&dataset, document).await;
    assert_eq!(notice(&release), Some(said));
    let report = server.get(&format!("/v1/releases/{}/report", text(&release["id"]))).await.ok(200);
    assert!(report["tables"].to_string().contains(said), "{report}");
    let archive = server.get(&format!("/v1/releases/{}/archive", text(&release["id"]))).await;
    let mut readme = String::new();
    let mut archive = ZipArchive::new(Cursor::new(archive.body)).unwrap();
    archive.by_name("README.txt").unwrap().read_to_string(&mut readme).unwrap();
    assert!(readme.contains("Do not open these files in a spreadsheet"), "{readme}");

    let path = part_path(&release, "t1", "rows");
    let (whole, defused) =
        (server.get(&path).await.text(), server.get(&format!("{path}?view=spreadsheet")).await.text());
    let marked =
        ["=HYPERLINK", "@sum", "-a,b"].iter().fold(whole, |text, cell| text.replace(cell, &format!("'{cell}")));
    assert_eq!(defused, marked);
    for path in [format!("{path}.parquet?view=spreadsheet"), format!("{path}?view=spreadsheet&format=json")] {
        server.get(&path).await.problem(400, "malformed-request");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_published_is_named() {
    let server = Server::start().await;
    let dataset = server.dataset(NOTES).await;
    // sets hold the texts within brackets, intervals begin with one
    let generalized = |cells: &str| {
        let guarantees = json!([{"type": "k_anonymity", "k": 2}]);
        let method = json!({"type": "generalize", "quasi_identifiers": ["note"], "sensitive": ["ward"], "cells": cells,
            "guarantees": guarantees});
        json!({"dataset": dataset, "unlisted": "drop", "method": method})
    };
    for (cells, is_named) in [("set", false), ("interval", true)] {
        let plan = server.post("/v1/plans", &generalized(cells)).await.ok(200);
        assert_eq!(notice(&plan).is_some(), is_named, "{cells}: {plan}");
    }
    let release = server.publish(&dataset, versatile(&["age", "ward"])).await;
    assert_eq!(notice(&release), None);
    server.stop().await;
}
