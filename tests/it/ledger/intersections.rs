//! The attack `intersection` over HTTP: all nights of a population together.

use std::collections::BTreeSet;
use std::path::Path;

use guardian::identity::Preset;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Row};
use uuid::Uuid;

use super::republished::{five_nights, job_under, of_persons, published, staff, upload};
use crate::methods::manifest_figures::sha256;
use crate::security::identity::Guarded;
use crate::support::harness::{Answer, Client, HOSPITAL, Server, hospital_method, text, versatile};

async fn attacked(server: &Client, release: &Value, options: Value) -> Answer {
    let request = json!({"attack": "intersection", "options": options});
    server.post(&format!("/v1/releases/{}/attacks", text(&release["id"])), &request).await
}

async fn three_nights(server: &Client) -> Vec<Value> {
    let mut releases = Vec::new();
    for night in &five_nights()[..3] {
        releases.push(published(server, night).await);
    }
    releases
}

fn by_cells() -> Value {
    json!({"persons": "cells"})
}

/// Exchanges two values of the sensitive part of a release between buckets that have only one of them.
async fn exchange_two_values(data: &Path, release: &Value) {
    let mut connection = SqliteConnectOptions::new().filename(data.join("guardian.db")).connect().await.unwrap();
    let of_release = "file = 't1.sa.csv' AND job_id = (SELECT job_id FROM releases WHERE id = ?)";
    let query = sqlx::AssertSqlSafe(format!("SELECT payload FROM part_chunks WHERE {of_release}"));
    let id = Uuid::try_parse(&text(&release["id"])).unwrap();
    let row = sqlx::query(query).bind(id).fetch_one(&mut connection).await.unwrap();
    let csv = String::from_utf8(zstd::stream::decode_all(row.get::<&[u8], _>(0)).unwrap()).unwrap();
    let mut lines: Vec<(&str, &str)> = csv.lines().map(|line| line.split_once(',').unwrap()).collect();
    let values =
        |bucket: &str| -> BTreeSet<&str> { lines.iter().filter(|line| line.0 == bucket).map(|line| line.1).collect() };
    let (one, first) = (1, values(lines[1].0));
    let other = (2..lines.len()).find(|&at| {
        let second = values(lines[at].0);
        !first.contains(lines[at].1) && !second.contains(lines[one].1)
    });
    let other = other.expect("two buckets without a common value");
    (lines[one].1, lines[other].1) = (lines[other].1, lines[one].1);
    let csv: String = lines.iter().map(|(bucket, value)| format!("{bucket},{value}\n")).collect();
    let query = sqlx::AssertSqlSafe(format!("UPDATE part_chunks SET payload = ? WHERE {of_release}"));
    let payload = zstd::stream::encode_all(csv.as_bytes(), 1).unwrap();
    let done = sqlx::query(query).bind(payload).bind(id).execute(&mut connection).await.unwrap();
    assert_eq!(done.rows_affected(), 1);
    connection.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attack_on_all_nights_finds_no_person() {
    let server = Server::start().await;
    staff(&server).await;
    let releases = three_nights(&server).await;
    for (options, linked_by, uses) in [(json!({}), "keys", "original"), (by_cells(), "cells", "parts")] {
        let found = attacked(&server, &releases[2], options).await.ok(200);
        assert_eq!(
            (&found["breach"], &found["uses"], &found["findings"]["total"]),
            (&json!(false), &json!(uses), &json!(0))
        );
        let all = &found["intersection"];
        assert_eq!((&all["nights"], &all["missing"], &all["linked_by"]), (&json!(3), &json!(0), &json!(linked_by)));
        assert_eq!((&all["above"], &all["faults"], &all["l"]), (&json!(0), &json!([]), &json!(3)), "{all:#}");
        assert!(all["persons"].as_u64().unwrap() >= 280, "{all:#}");
        assert_eq!(found["worst"], json!({"count": 1, "of": 3}));
    }
    // the original of each night was read by keys, and of none by cells
    let logged = server.items("/v1/audit-log?action=release.read_internal").await;
    let read: BTreeSet<String> = logged.iter().map(|entry| text(&entry["object"])).collect();
    assert_eq!((logged.len(), read), (3, releases.iter().map(|release| text(&release["id"])).collect()), "{logged:#?}");
    let first = attacked(&server, &releases[0], json!({})).await.ok(200);
    assert_eq!((&first["intersection"]["nights"], &first["breach"]), (&json!(1), &json!(false)));
    server.stop().await;
}

/// Each manifest names the release of the night before, and a digest that a reader computes from its manifest.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_follows_the_nights_from_the_last_one() {
    let server = Server::start().await;
    staff(&server).await;
    let releases = three_nights(&server).await;
    assert_eq!(releases[0]["method_details"].get("previous"), None);
    let mut before = "first".to_owned();
    for (release, next) in releases.iter().zip(&releases[1..]) {
        let mut lines = format!("{before}\n");
        for part in release["tables"][0]["parts"].as_array().unwrap() {
            lines.push_str(&format!("{}  {}\n", text(&part["sha256"]), text(&part["file"])));
        }
        before = sha256(lines.as_bytes());
        assert_eq!(next["method_details"]["previous"], json!({"release": release["id"], "digest": before}));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attack_finds_a_value_that_was_exchanged() {
    let server = Server::start().await;
    staff(&server).await;
    let releases = three_nights(&server).await;
    exchange_two_values(&server.data(), &releases[1]).await;
    for options in [json!({}), by_cells()] {
        let found = attacked(&server, &releases[2], options).await.ok(200);
        assert_eq!(found["breach"], true);
        let all = &found["intersection"];
        assert!(all["above"].as_u64().unwrap() > 0 && found["findings"]["total"] == all["above"], "{found:#}");
        let faults: Vec<(String, u64)> = all["faults"]
            .as_array()
            .unwrap()
            .iter()
            .map(|fault| (text(&fault["fault"]), fault["night"].as_u64().unwrap()))
            .collect();
        for (fault, night) in [
            ("the parts are not those of the manifest", 2),
            ("the night goes on from another night than the one before it", 3),
        ] {
            assert!(faults.contains(&(fault.to_owned(), night)), "{fault}: {faults:?}");
        }
        assert!(faults.iter().any(|of| of.0 == "a person has two signatures that share a value"), "{faults:?}");
    }
    // of the first night alone nothing is wrong
    assert_eq!(attacked(&server, &releases[0], json!({})).await.ok(200)["breach"], false);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_need_the_scope_and_every_table() {
    let guarded = Guarded::start().await;
    let (pipeline, officer) = (guarded.preset(Preset::Pipeline), guarded.preset(Preset::Officer));
    staff(&officer).await;
    let (mut datasets, mut releases) = (Vec::new(), Vec::new());
    for night in &five_nights()[..3] {
        let dataset = upload(&pipeline, night).await;
        releases.push(pipeline.publish(&dataset, job_under(3, json!({}))).await);
        datasets.push(dataset);
    }
    let last = &releases[2];
    let refused = attacked(&guarded.preset(Preset::Analyst), last, json!({})).await.problem(403, "forbidden");
    assert!(text(&refused["detail"]).contains("cells"), "{refused:#}");
    attacked(&guarded.preset(Preset::Analyst), last, by_cells()).await.ok(200);
    attacked(&guarded.preset(Preset::Operator), last, by_cells()).await.problem(403, "forbidden");
    attacked(&officer, last, json!({})).await.ok(200);
    attacked(&officer, last, json!({"persons": "names"})).await.fault("/options/persons", "parameter-range");

    // a night whose dataset is purged is read by its cells
    pipeline.delete(&format!("/v1/datasets/{}", datasets[0])).await.ok(200);
    let gone = attacked(&officer, last, json!({})).await.problem(410, "gone");
    assert_eq!(gone["release"], releases[0]["id"]);
    attacked(&officer, last, by_cells()).await.ok(200);
    // one that is withdrawn is missing, and its persons are not taken for faults
    let path = format!("/v1/releases/{}/withdraw", text(&releases[1]["id"]));
    officer.post(&path, &json!({"reason": "a wrong column"})).await.ok(200);
    let found = attacked(&officer, last, by_cells()).await.ok(200);
    assert_eq!((&found["intersection"]["nights"], &found["intersection"]["missing"]), (&json!(2), &json!(1)));
    assert_eq!(found["breach"], false, "{found:#}");
    attacked(&officer, &releases[1], by_cells()).await.problem(410, "gone");
    guarded.server.stop().await;
}

/// Readers are at work on all nights when one of them is withdrawn: each answer is that of before, that of after, or that it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn nights_are_withdrawn_while_they_are_read() {
    let server = Server::start().await;
    staff(&server).await;
    let releases = three_nights(&server).await;
    let path = |release: &Value, rest: &str| format!("/v1/releases/{}/{rest}", text(&release["id"]));
    for (withdrawn, remaining) in [(0, 3), (1, 2)] {
        let before = attacked(&server, &releases[2], by_cells()).await.ok(200);
        assert_eq!(before["intersection"]["nights"], remaining);
        let attacks = (0..4).map(|_| async {
            let mut seen = Vec::new();
            for _ in 0..60 {
                let answer = attacked(&server, &releases[2], by_cells()).await;
                if answer.status == 410 {
                    answer.problem(410, "gone");
                    continue;
                }
                let found = answer.ok(200);
                assert_eq!(found["breach"], false, "{found:#}");
                seen.push(found["intersection"]["nights"].as_u64().unwrap());
                if seen.last() == Some(&(remaining - 1)) {
                    break;
                }
            }
            seen
        });
        let withdrawal = async {
            let answer =
                server.post(&path(&releases[withdrawn], "withdraw"), &json!({"reason": "a wrong column"})).await;
            answer.ok(200)
        };
        let (seen, _) = tokio::join!(futures_util::future::join_all(attacks), withdrawal);
        assert!(seen.iter().flatten().all(|nights| [remaining, remaining - 1].contains(nights)), "{seen:?}");
        assert!(seen.iter().all(|nights| nights.last() == Some(&(remaining - 1))), "{seen:?}");
    }
    // what was published of persons is still known
    let fourth = published(&server, &five_nights()[3]).await;
    assert_eq!(fourth["method_details"]["night"], 4, "{fourth:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attack_on_all_nights_needs_a_night() {
    let server = Server::start().await;
    let hospital = server.dataset(HOSPITAL).await;
    let release = server.publish(&hospital, json!({"method": hospital_method()})).await;
    attacked(&server, &release, json!({})).await.fault("/attack", "guarantee-unsupported");
    server.stop().await;
    let server = Server::start().await;
    staff(&server).await;
    let night = published(&server, &of_persons(0..240)).await;
    let request = json!({"attack": "intersection", "rule": "/method/unknown"});
    let path = format!("/v1/releases/{}/attacks", text(&night["id"]));
    server.post(&path, &request).await.problem(422, "invalid-specification");
    server.stop().await;
}

/// Who takes a part of the table, without its keys, without its population or under another method, publishes nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn no_other_method_publishes_a_part_of_the_persons() {
    let server = Server::start().await;
    staff(&server).await;
    published(&server, &of_persons(0..240)).await;
    let apart = json!({"person": [{"key_system": "card", "columns": ["pid"]}], "disjoint_from": ["population:staff"],
        "reason": "another firm"});
    server.put("/v1/populations/once", &apart).await.ok(201);
    let mut anatomy = job_under(2, json!({}))["method"].clone();
    anatomy.as_object_mut().unwrap().remove("dependencies");
    let guarantee = json!({"type": "l_diversity", "l": 2});
    let methods = [
        anatomy,
        versatile(&["age -> occupation"]),
        json!({"type": "generalize", "quasi_identifiers": ["age"], "sensitive": ["occupation"],
            "guarantees": [guarantee]}),
    ];
    let job = |dataset: &str, method: &Value| {
        json!({"dataset": dataset, "unlisted": "drop", "method": method,
            "attributes": {"age": {"publish": true}, "occupation": {"publish": true}}})
    };
    for method in &methods {
        // the control: of persons who are in no series it is accepted
        let others = csv_of(400..520);
        let free = text(&server.upload("population=once", others).await.ok(201)["id"]);
        let answer = server.post("/v1/plans", &job(&free, method)).await.ok(200);
        assert_eq!(answer["feasible"], true, "{answer:#}");
        for query in
            ["population=staff", "population=staff&person=none", "population=once", "population=once&person=none"]
        {
            let part = text(&server.upload(query, csv_of(20..140)).await.ok(201)["id"]);
            let answer = server.post("/v1/jobs", &job(&part, method)).await;
            assert!([409, 422].contains(&answer.status), "{query} {method}: {}", answer.status);
            let plan = server.post("/v1/plans", &job(&part, method)).await.ok(200);
            assert_eq!(plan["feasible"], false, "{query}: {plan:#}");
        }
    }
    server.stop().await;
}

fn csv_of(keys: std::ops::Range<usize>) -> String {
    crate::support::nights::csv(&of_persons(keys))
}
