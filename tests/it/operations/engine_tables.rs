//! Tables whose rows stay in another engine: registered, planned and published over HTTP, under the same ledger as uploads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::methods::versatile_data_driven::{adult, document, judged, tables};
use crate::support::harness::{Answer, HOSPITAL, Server, hospital_method, kind, text};
use crate::support::table_engine::{EngineFault, FileEngine};

/// A service beside an engine.
pub(crate) struct Lake {
    pub(crate) server: Server,
    pub(crate) engine: Arc<FileEngine>,
    tables: TempDir,
}

/// Patients of a hospital, made from a number that no column shows.
pub(crate) fn visits(rows: u32) -> String {
    let mut csv = "id,age,ward,disease\n".to_owned();
    for row in 0..rows {
        let mixed = row.wrapping_mul(2_654_435_761) >> 7;
        let disease = ["asthma", "flu", "gout", "measles", "mumps", "ulcer", "stroke"][(mixed / 1024 % 7) as usize];
        let _ = writeln!(csv, "p{row},{},w{},{disease}", mixed % 60, mixed / 64 % 9);
    }
    csv
}

impl Lake {
    pub(crate) async fn start() -> Self {
        Self::start_with_workers(1).await
    }

    async fn start_with_workers(workers: u32) -> Self {
        let tables = tempfile::tempdir().unwrap();
        let engine = Arc::new(FileEngine::new(tables.path()));
        let server = Server::start_with_engine(engine.clone(), |config| config.workers = workers).await;
        let lake = Self { server, engine, tables };
        lake.write("visits", &visits(600));
        lake
    }

    pub(crate) fn write(&self, table: &str, csv: &str) {
        fs::write(self.tables.path().join(format!("{table}.csv")), csv).unwrap();
    }

    pub(crate) async fn register(&self, query: &str, table: &str) -> Answer {
        let body = json!({"engine": "lake", "table": format!("open.{table}")});
        self.server.post(&format!("/v1/datasets/by-reference?{query}"), &body).await
    }

    /// The id of a registered table.
    pub(crate) async fn registered(&self, query: &str, table: &str) -> String {
        text(&self.register(query, table).await.ok(201)["id"])
    }
}

pub(crate) fn anatomy(l: u32) -> Value {
    json!({"unlisted": "drop", "method": {"type": "anatomy", "quasi_identifiers": ["age", "ward"], "sensitive": "disease",
        "guarantee": {"type": "l_diversity", "l": l}}})
}

/// Classes of at least five visits, with two diseases or more.
pub(crate) fn classes(cells: &str) -> Value {
    json!({"unlisted": "drop", "method": {"type": "generalize", "quasi_identifiers": ["age", "ward"], "sensitive": ["disease"],
        "cells": cells, "guarantees": [{"type": "k_anonymity", "k": 5}, {"type": "l_diversity", "l": 2}]},
        "attributes": {"ward": {"taxonomy": {"any": {"low": ["w0", "w1", "w2", "w3"], "high": ["w4", "w5", "w6", "w7", "w8"]}}}}})
}

/// Two rules, and a table of what no rule protects.
pub(crate) fn two_rules() -> Value {
    json!({"unlisted": "drop", "method": {"type": "versatile", "algorithm": "uad",
        "rules": ["age -> disease", "ward -> disease"], "default_guarantee": {"type": "l_diversity", "l": 2}}})
}

/// The lines of a part under its header, with the labels of buckets left out, sorted.
fn rows_of(part: &str) -> Vec<String> {
    let mut rows: Vec<String> = part.lines().skip(1).map(|line| line.split_once(',').unwrap().1.to_owned()).collect();
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_published_where_its_rows_are() {
    let lake = Lake::start().await;
    let dataset = lake.register("population=", "visits").await;
    dataset.problem(400, "malformed-request");
    let dataset = lake.register("name=visits", "visits").await.ok(201);
    assert_eq!(dataset["place"], json!({"engine": "lake", "table": "open.visits"}));
    assert_eq!((&dataset["rows"], &dataset["bytes"]), (&json!(600), &json!(0)));
    let ages = dataset["columns"].as_array().unwrap().iter().find(|of| of["name"] == "age").unwrap();
    assert_eq!((&ages["type"], &ages["distinct"]), (&json!("integer"), &json!(60)));
    let id = text(&dataset["id"]);
    assert_eq!(lake.server.get(&format!("/v1/datasets/{id}")).await.ok(200)["place"], dataset["place"]);

    let release = lake.server.publish(&id, anatomy(4)).await;
    let manifest = &release;
    assert_eq!(manifest["made_by"], json!({"engine": "files", "version": "1"}));
    assert_eq!(
        (&manifest["verification"]["verified"], &manifest["verification"]["linkage"]),
        (&json!(true), &json!("checked"))
    );
    let qi = lake.server.part(&release, "t1", "qi").await;
    let sa = lake.server.part(&release, "t1", "sa").await;
    let table = visits(600);
    let columns = |places: std::ops::RangeInclusive<usize>| {
        let cells = |line: &str| line.split(',').collect::<Vec<_>>()[places.clone()].join(",");
        let mut rows: Vec<String> = table.lines().skip(1).map(cells).collect();
        rows.sort();
        rows
    };
    assert_eq!((rows_of(&qi), rows_of(&sa)), (columns(1..=2), columns(3..=3)));
    assert!(manifest["exposures"].is_object(), "small parts are read for what no rule prevents");
    // nothing is left of the rows, here or there
    assert_eq!(lake.engine.copies(), 0);
    assert_eq!(lake.server.stored("column_chunks").await, 0);
    // a purge destroys what is known, not the table
    let receipt = lake.server.delete(&format!("/v1/datasets/{id}")).await.ok(200);
    assert_eq!((&receipt["rows"], &receipt["key_destroyed"]), (&json!(0), &json!(true)));
    lake.server.stop().await;
}

/// What is served was verified here too: each bucket by itself, from the parts alone.
#[tokio::test(flavor = "multi_thread")]
async fn parts_of_an_engine_are_served_as_all_others() {
    let lake = Lake::start().await;
    let id = lake.registered("", "visits").await;
    let release = lake.server.publish(&id, two_rules()).await;
    let path = format!("/v1/releases/{}", text(&release["id"]));
    for part in release["tables"].as_array().unwrap().iter().flat_map(|of| of["parts"].as_array().unwrap()) {
        assert!(part["sha256"].is_string() && part["files"].is_null(), "{part}");
    }
    let query = json!({"queries": [{"where": [{"attribute": "ward", "in": ["w1", "w2"]}]}]});
    let answer = lake.server.post(&format!("{path}/queries"), &query).await;
    assert!(matches!(answer.status, 200), "{}", answer.text());
    let archive = lake.server.get(&format!("{path}/archive")).await;
    assert_eq!(archive.status, 200);
    lake.server.stop().await;
}

/// Classes follow from the rows alone, so that they are the same wherever these are.
#[tokio::test(flavor = "multi_thread")]
async fn classes_of_an_engine_are_those_of_an_upload() {
    let several = json!({"unlisted": "drop", "method": {"type": "generalize", "quasi_identifiers": ["age"],
        "sensitive": ["ward", "disease"], "guarantees": [{"type": "k_anonymity", "k": 5}, {"type": "l_diversity", "l": 3}]}});
    for document in ["interval", "by_type", "node"].map(classes).into_iter().chain([several]) {
        // two services: of the same rows the second release would be judged with the first
        let (lake, other) = (Lake::start().await, Lake::start().await);
        let id = lake.registered("", "visits").await;
        let release = lake.server.publish(&id, document.clone()).await;
        let uploaded = other.server.dataset(visits(600)).await;
        let ordinary = other.server.publish(&uploaded, document).await;
        let part = lake.server.part(&release, "t1", "rows").await;
        assert_eq!(part, other.server.part(&ordinary, "t1", "rows").await);
        assert!(part.lines().count() == 601 && part.starts_with("age,ward,disease\n"), "{part}");
        for member in ["rules", "utility", "exposures", "tables", "method_details"] {
            assert_eq!(release[member], ordinary[member], "{member}");
        }
        assert_eq!(release["verification"]["linkage"], "checked");
        lake.server.stop().await;
        other.server.stop().await;
    }
}

/// Buckets of a sliced table follow from the rows and the key of the release. Their labels follow from the key, which differs.
#[tokio::test(flavor = "multi_thread")]
async fn slices_of_an_engine_are_those_of_an_upload() {
    for columns in [json!([["age"], ["ward", "disease"]]), json!([["age", "ward"], ["disease"]])] {
        let (lake, other) = (Lake::start().await, Lake::start().await);
        let slicing = json!({"unlisted": "drop", "method": {"type": "slicing", "sensitive": "disease", "split": "strict",
            "columns": {"explicit": columns}, "guarantee": {"type": "l_diversity", "l": 2}}});
        let id = lake.registered("", "visits").await;
        let release = lake.server.publish(&id, slicing.clone()).await;
        let uploaded = other.server.dataset(visits(600)).await;
        let ordinary = other.server.publish(&uploaded, slicing).await;
        for part in ["c1", "c2"] {
            let of_buckets = |text: String| {
                let mut buckets: BTreeMap<String, Vec<String>> = BTreeMap::new();
                for line in text.lines().skip(1) {
                    let (label, cells) = line.split_once(',').unwrap();
                    buckets.entry(label.to_owned()).or_default().push(cells.to_owned());
                }
                let mut contents: Vec<Vec<String>> = buckets.into_values().collect();
                contents.sort();
                contents
            };
            let made = of_buckets(lake.server.part(&release, "t1", part).await);
            assert!(made.len() > 1, "{made:?}");
            assert_eq!(made, of_buckets(other.server.part(&ordinary, "t1", part).await));
        }
        for member in ["rules", "utility", "exposures", "method_details"] {
            assert_eq!(release[member], ordinary[member], "{member}");
        }
        assert_eq!(release["verification"]["linkage"], "checked");
        lake.server.stop().await;
        other.server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_holds_across_uploads_and_engines() {
    let lake = Lake::start().await;
    let id = lake.registered("", "visits").await;
    let release = lake.server.publish(&id, anatomy(4)).await;
    // an equal job of an equal table has the same release, wherever the rows are
    assert_eq!(lake.server.publish(&id, anatomy(4)).await["id"], release["id"]);
    let uploaded = lake.server.dataset(visits(600)).await;
    assert_eq!(lake.server.publish(&uploaded, anatomy(4)).await["id"], release["id"]);
    // another one is judged together with it
    let plain = json!({"unlisted": "drop", "method": {"type": "versatile", "rules": ["age -> ward"],
        "default_guarantee": {"type": "l_diversity", "l": 2}},
        "attributes": {"disease": {"publish": true}}});
    assert_eq!(kind(&lake.server.refused(&uploaded, plain).await), "composition-violated");
    assert_eq!(kind(&lake.server.refused(&id, two_rules()).await), "composition-violated");
    lake.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_an_engine_meets_uploads_before_it() {
    let lake = Lake::start().await;
    let uploaded = lake.server.dataset(visits(600)).await;
    let release = lake.server.publish(&uploaded, anatomy(4)).await;
    let id = lake.registered("", "visits").await;
    assert_eq!(lake.server.publish(&id, anatomy(4)).await["id"], release["id"]);
    let second = lake.server.refused(&id, anatomy(3)).await;
    assert_eq!((kind(&second), &second["release"]), ("composition-violated", &release["id"]));
    lake.server.stop().await;
}

/// The attack: last night's people come again as a table of the engine, some of them with other values.
#[tokio::test(flavor = "multi_thread")]
async fn persons_are_known_across_uploads_and_engines() {
    let lake = Lake::start().await;
    lake.server.population("patients", &["id"]).await;
    let uploaded = text(&lake.server.upload("population=patients", visits(600)).await.ok(201)["id"]);
    lake.server.publish(&uploaded, anatomy(4)).await;
    lake.write("tonight", &visits(640).replacen(",flu\n", ",gout\n", 3));
    let tonight = lake.register("population=patients", "tonight").await.ok(201);
    assert_eq!(tonight["published_before"]["persons"], json!({"count": 600, "of": 640}));
    let refused = lake.server.job(&text(&tonight["id"]), anatomy(4)).await;
    refused.problem(409, "overlapping-people");
    lake.server.stop().await;
}

/// Tables are chosen by the buckets that the engine then makes. The choice seldom hangs on these: here it does not.
#[tokio::test(flavor = "multi_thread")]
async fn tables_of_an_engine_are_chosen_as_those_of_an_upload() {
    for (algorithm, options) in [
        ("gd", json!({})),
        ("auto", json!({"gd": {"try_all": true, "fill": true}})),
        ("uad", json!({"uad": {"addback": true, "saturate": true}})),
    ] {
        let (lake, other) = (Lake::start().await, Lake::start().await);
        lake.write("adult", std::str::from_utf8(&adult()).unwrap());
        let id = lake.registered("", "adult").await;
        let document = document(algorithm, &options);
        let plan = lake.server.post("/v1/plans", &with_dataset(&id, document.clone())).await.ok(200);
        let release = lake.server.publish(&id, document.clone()).await;
        assert_eq!((tables(&release), &plan["feasible"]), (tables(&plan), &json!(true)), "{algorithm}");
        let uploaded = other.server.dataset(adult()).await;
        let ordinary = other.server.publish(&uploaded, document).await;
        assert_eq!(tables(&release), tables(&ordinary), "{algorithm}");
        for member in ["rules", "method", "method_details", "unit"] {
            assert_eq!(release[member], ordinary[member], "{algorithm}: {member}");
        }
        let entropy = |release: &Value| release["utility"]["model_entropy_nats"].as_f64();
        let differ = entropy(&release).zip(entropy(&ordinary)).map(|(one, other)| (one - other).abs());
        assert_eq!(differ.map(|nats| nats < 0.1), (algorithm != "uad").then_some(true), "{}", release["utility"]);
        assert_eq!(judged(&lake.server, &release).await, tables(&release).iter().filter(|of| of.1).count());
        lake.server.stop().await;
        other.server.stop().await;
    }
}

/// Each person has two rows, so that rows must be twice as diverse.
#[tokio::test(flavor = "multi_thread")]
async fn persons_of_an_engine_may_have_several_rows() {
    let (lake, other) = (Lake::start().await, Lake::start().await);
    let mut twice = visits(600);
    (0..600).rev().for_each(|row| twice = twice.replace(&format!("\np{row},"), &format!("\nv{},", row / 2)));
    lake.write("twice", &twice);
    lake.register("subject=id&max_rows_per_subject=1", "twice").await.problem(422, "upload-malformed");
    let query = "subject=id&max_rows_per_subject=2";
    let id = lake.registered(query, "twice").await;
    let release = lake.server.publish(&id, anatomy(3)).await;
    assert_eq!(release["rules"][0]["enforced"], json!({"type": "l_diversity", "l": 6}));
    let uploaded = text(&other.server.upload(query, twice).await.ok(201)["id"]);
    let ordinary = other.server.publish(&uploaded, anatomy(3)).await;
    for member in ["unit", "rules", "utility"] {
        assert_eq!(release[member], ordinary[member], "{member}");
    }
    // seven diseases cannot hide one of eight
    let refused = lake.server.job(&id, anatomy(4)).await;
    assert_eq!(refused.problem(422, "invalid-specification")["errors"][0]["largest_l"], 3);
    // which rows of a person stay would be drawn row by row
    lake.register("subject=id&keep=1", "twice").await.problem(400, "malformed-request");
    lake.server.stop().await;
    other.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_changed_is_not_published() {
    let lake = Lake::start().await;
    let id = lake.registered("", "visits").await;
    lake.write("visits", &visits(600).replacen(",flu\n", ",gout\n", 1));
    let problem = lake.server.refused(&id, anatomy(4)).await;
    assert_eq!((kind(&problem), &problem["reason"]), ("source-unreadable", &json!("changed")));
    lake.write("visits", &visits(600).replacen("age", "years", 1));
    let planned = lake.server.post("/v1/plans", &with_dataset(&id, anatomy(4))).await;
    assert_eq!(planned.problem(422, "source-unreadable")["reason"], "changed");
    // the order of rows is no part of it
    let table = visits(600);
    let (header, rows) = table.split_once('\n').unwrap();
    let reversed: Vec<&str> = rows.lines().rev().collect();
    lake.write("visits", &format!("{header}\n{}\n", reversed.join("\n")));
    lake.server.publish(&id, anatomy(4)).await;
    assert_eq!(lake.engine.copies(), 0);
    lake.server.stop().await;
}

/// A dataset is purged while the engine waits in a job of this document, which then publishes nothing.
pub(crate) async fn assert_purge_ends_job(at: EngineFault, document: Value) {
    let lake = Lake::start().await;
    let id = lake.registered("", "visits").await;
    let purge = async {
        lake.server.delete(&format!("/v1/datasets/{id}")).await.ok(200);
    };
    // the engine is to wait before it is asked
    let ((), job) = tokio::join!(lake.engine.meanwhile(at, purge), lake.server.job(&id, document));
    let job = job.ok(200);
    assert_eq!((&job["status"], kind(&job["problem"])), (&json!("refused"), "gone"), "{job:#}");
    assert_eq!(lake.server.get("/v1/releases").await.ok(200)["items"], json!([]));
    assert_eq!((lake.engine.copies(), lake.server.stored("part_chunks").await), (0, 0));
    lake.server.stop().await;
}

/// The attack: a caller fills all workers with jobs of an engine that takes hours.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_an_engine_run_one_at_a_time_and_stop_no_other() {
    let lake = Lake::start_with_workers(2).await;
    let (visits, upload) = (lake.registered("", "visits").await, lake.server.dataset(HOSPITAL).await);
    let submit = async |dataset: &str, document: Value| {
        let job = lake.server.post("/v1/jobs", &with_dataset(dataset, document)).await.ok(202);
        format!("/v1/jobs/{}", text(&job["id"]))
    };
    let submitted = async { [submit(&visits, anatomy(4)).await, submit(&visits, anatomy(3)).await] };
    let meanwhile = async {
        let other = lake.server.job(&upload, json!({"method": hospital_method()})).await.ok(200);
        assert_eq!(other["status"], "succeeded", "{other:#}");
        let listed = lake.server.get("/v1/jobs").await.ok(200);
        let mut stands: Vec<&str> =
            listed["items"].as_array().unwrap().iter().map(|job| job["status"].as_str().unwrap()).collect();
        stands.sort_unstable();
        assert_eq!(stands, ["queued", "running", "succeeded"], "{listed:#}");
    };
    // the engine is to wait before it is asked
    let ((), jobs) = tokio::join!(lake.engine.meanwhile(EngineFault::SlowCopy, meanwhile), submitted);
    for job in jobs {
        let ended = lake.server.get(&format!("{job}?wait=60")).await.ok(200);
        assert!(ended["finished_at"].is_string(), "{ended:#}");
    }
    lake.server.stop().await;
}

/// The attack: what should be forgotten is published by a job that had begun.
#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_purged_during_its_job_is_not_published() {
    assert_purge_ends_job(EngineFault::SlowWriting, anatomy(4)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_has_gone_registers_nothing() {
    let lake = Lake::start().await;
    let body = json!({"engine": "lake", "table": "open.visits"});
    let request = lake.server.request(Method::POST, "/v1/datasets/by-reference").json(&body);
    let (leave, left) = oneshot::channel();
    let asked = async {
        tokio::select! {
            _ = request.send() => panic!("the engine waits"),
            // the connection ends with the request
            _ = left => {}
        }
    };
    let gone = async {
        leave.send(()).unwrap();
        // until the service has seen it
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    // the engine is to wait before it is asked
    tokio::join!(lake.engine.meanwhile(EngineFault::SlowCopy, gone), asked);
    // another registration ends after the first one
    lake.registered("name=second", "visits").await;
    while lake.engine.copies() > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let listed = lake.server.get("/v1/datasets").await.ok(200);
    let names: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|of| &of["name"]).collect();
    assert_eq!(names, ["second"]);
    lake.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_listed_tables_of_engines_are_read() {
    let lake = Lake::start().await;
    for (body, status, name) in [
        (json!({"engine": "lake", "table": "closed.visits"}), 422, "source-refused"),
        (json!({"engine": "lake", "table": "open"}), 422, "source-refused"),
        (json!({"engine": "sea", "table": "open.visits"}), 422, "source-refused"),
        (json!({"engine": "lake"}), 400, "malformed-body"),
        (json!({"engine": "lake", "table": "open.visits", "source": "s3://b/t"}), 400, "malformed-body"),
        (json!({"engine": "lake", "table": "open.visits", "format": "text/csv"}), 400, "malformed-body"),
        (json!({"engine": "lake", "table": "open.visits", "sql": "select 1"}), 400, "malformed-body"),
    ] {
        let answer = lake.server.post("/v1/datasets/by-reference", &body).await;
        answer.problem(status, name);
    }
    lake.write("pictures", "id,picture\n1,x\n");
    lake.write("none", "id,age\n");
    for (table, reason) in [("nothing", "not_found"), ("pictures", "unsupported")] {
        let problem = lake.register("", table).await.problem(422, "source-unreadable");
        assert_eq!(problem["reason"], reason, "{problem}");
    }
    lake.register("", "none").await.problem(422, "empty-table");
    lake.register("keep=1&subject=id", "visits").await.problem(400, "malformed-request");
    lake.register("delimiter=tab", "visits").await.problem(400, "malformed-request");
    lake.register("types=age:text", "visits").await.problem(400, "malformed-request");
    for (fault, reason) in [(EngineFault::Unreachable, "unreachable"), (EngineFault::Failing, "failed")] {
        lake.engine.set(fault);
        let problem = lake.register("", "visits").await.problem(422, "source-unreadable");
        assert_eq!(problem["reason"], reason, "{problem}");
    }
    assert_eq!(lake.engine.copies(), 0);
    lake.server.assert_nothing_stored().await;
    lake.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_rows_says_that_they_are_elsewhere() {
    let lake = Lake::start().await;
    let id = lake.registered("", "visits").await;
    for path in [format!("/v1/datasets/{id}/attributes/age/values"), format!("/v1/datasets/{id}/profile")] {
        let answer = lake.server.get(&path).await;
        answer.problem(422, "rows-elsewhere");
    }
    let release = lake.server.publish(&id, anatomy(4)).await;
    let report = lake.server.get(&format!("/v1/releases/{}/internal-report", text(&release["id"]))).await;
    report.problem(404, "not-found");
    lake.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_what_an_engine_would_publish() {
    let lake = Lake::start().await;
    let id = lake.registered("", "visits").await;
    let plan = lake.server.post("/v1/plans", &with_dataset(&id, anatomy(4))).await.ok(200);
    assert_eq!(plan["feasible"], json!(true), "{plan:#}");
    assert_eq!(lake.engine.copies(), 0);
    let plan = lake.server.post("/v1/plans", &with_dataset(&id, anatomy(100))).await;
    assert!(plan.status == 422 || plan.json()["feasible"] == json!(false), "{}", plan.text());
    lake.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_engine_leaves_a_whole_release_or_none() {
    let lake = Lake::start().await;
    let id = lake.registered("", "visits").await;
    lake.engine.set(EngineFault::ChangedAfterAudit);
    let ended = lake.server.job(&id, anatomy(4)).await.ok(200);
    assert_eq!((&ended["status"], kind(&ended["problem"])), (&json!("failed"), "internal"), "{ended:#}");
    for table in ["releases", "disclosures", "part_chunks"] {
        assert_eq!(lake.server.stored(table).await, 0, "{table}");
    }
    assert_eq!(lake.engine.copies(), 0);
    // a job whose engine is lost begins again
    lake.engine.set(EngineFault::LostOnce);
    lake.server.publish(&id, anatomy(3)).await;
    assert_eq!(lake.engine.copies(), 0);
    lake.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_registration_gives_the_first_dataset() {
    let lake = Lake::start().await;
    let send = async |table: &str| {
        let request = lake.server.request(reqwest::Method::POST, "/v1/datasets/by-reference");
        let body = json!({"engine": "lake", "table": format!("open.{table}")});
        lake.server.send(request.header("Idempotency-Key", "night-1").json(&body)).await
    };
    lake.engine.set(EngineFault::Unreachable);
    send("visits").await.problem(422, "source-unreadable");
    lake.engine.set(EngineFault::None);
    let first = send("visits").await.ok(201);
    assert_eq!(send("visits").await.ok(201)["id"], first["id"]);
    lake.write("others", &visits(30));
    send("others").await.problem(409, "idempotency-conflict");
    lake.server.stop().await;
}

pub(crate) fn with_dataset(id: &str, mut document: Value) -> Value {
    document["dataset"] = json!(id);
    document
}
