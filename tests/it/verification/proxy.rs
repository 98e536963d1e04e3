//! The attack by attributes that go with the sensitive one: on real diagnoses, on made tables, and whom it is refused.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};

use flate2::read::GzDecoder;
use guardian::identity::Preset;
use serde_json::{Value, json};

use super::external_tables::verify;
use crate::security::identity::Guarded;
use crate::support::harness::{Client, HOSPITAL, Server, hospital_method, text};

/// Every eighth row of the discharges: some attributes of a person, the diagnosis and the group it is paid by.
fn discharges() -> String {
    let file = GzDecoder::new(File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/nhds2010.csv.gz")).unwrap());
    let mut lines = BufReader::new(file).lines().map(Result::unwrap);
    let header: Vec<String> = lines.next().unwrap().split(',').map(str::to_owned).collect();
    let wanted = ["age", "sex", "race", "care_days", "region", "dc_month", "payor_primary", "dx01", "DRG"];
    let places = wanted.map(|name| header.iter().position(|column| column == name).unwrap());
    let mut csv = wanted.join(",") + "\n";
    for line in lines.step_by(8) {
        let cells: Vec<&str> = line.split(',').collect();
        csv += &(places.map(|at| cells[at]).join(",") + "\n");
    }
    csv
}

async fn attack(client: &Client, release: &Value, rule: Value) -> Value {
    let path = format!("/v1/releases/{}/attacks", text(&release["id"]));
    client.post(&path, &json!({"attack": "proxy", "rule": rule})).await.ok(200)
}

fn share(ratio: &Value) -> f64 {
    ratio["count"].as_f64().unwrap() / ratio["of"].as_f64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_diagnosis_tables_reveal_more_than_one() {
    let server = Server::start().await;
    let dataset = server.dataset(discharges()).await;
    let known = "age, sex, race, care_days, region, dc_month, payor_primary";
    let method = json!({"type": "versatile", "algorithm": "gd", "correlated": "separate", "rules": [format!("{known} -> dx01"), format!("{known} -> DRG")],
        "default_guarantee": {"type": "l_diversity", "l": 10}});
    let both = server.publish(&dataset, json!({"unlisted": "drop", "method": method})).await;
    // ten-diverse each, and both with what is known of a person
    let mut tables: Vec<Vec<String>> = both["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|table| table["attributes"].as_array().unwrap().iter().map(text).collect())
        .collect();
    tables.sort_by_key(|table| std::cmp::Reverse(table.len()));
    assert!(tables.len() == 2 && tables.iter().all(|table| table.len() == 8), "{tables:?}");
    let found = attack(&server, &both, json!("/method/rules/0")).await;
    assert_eq!(
        (&found["attack"], &found["uses"], &found["breach"]),
        (&json!("proxy"), &json!("original"), &json!(true))
    );
    let finding = &found["findings"]["first"][0];
    assert_eq!((&found["findings"]["total"], &finding["attribute"]), (&json!(1), &json!("DRG")));
    assert_eq!((&finding["posterior"], &finding["rule"]), (&found["worst"], &json!("/method/rules/0")));
    // 0.1 is what the rule allows
    assert!(share(&found["worst"]) > 0.25, "{found:#}");
    assert_eq!(attack(&server, &both, json!("/method/rules/0")).await, found, "the halves are always the same");
    let all = attack(&server, &both, json!(null)).await;
    assert_eq!(all["findings"]["total"], 2, "{all:#}");
    let logged = server.items("/v1/audit-log?action=release.read_internal").await;
    assert_eq!(logged.len(), 3, "{logged:?}");

    // the same diagnoses where nothing goes with them
    let alone = json!({"type": "anatomy", "quasi_identifiers": ["age", "sex", "race", "care_days"], "sensitive": "dx01",
        "guarantee": {"type": "l_diversity", "l": 10}});
    let elsewhere = Server::start().await;
    let other = elsewhere.dataset(discharges()).await;
    let alone = elsewhere.publish(&other, json!({"unlisted": "drop", "method": alone})).await;
    let found = attack(&elsewhere, &alone, json!(null)).await;
    elsewhere.stop().await;
    assert_eq!((&found["breach"], &found["findings"]["total"]), (&json!(false), &json!(0)), "{found:#}");

    server.delete(&format!("/v1/datasets/{dataset}")).await.ok(200);
    let path = format!("/v1/releases/{}/attacks", text(&both["id"]));
    server.post(&path, &json!({"attack": "proxy"})).await.problem(410, "gone");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_played_on_tables_that_come_with_their_original() {
    let server = Server::start().await;
    let (mut original, mut qi, mut sa) = ("who,s,p\n".to_owned(), "bucket,who\n".to_owned(), "bucket,s\n".to_owned());
    let mut second_part = "who,p\n".to_owned();
    for at in 0..400 {
        let s = at % 8;
        writeln!(original, "{at},s{s},p{s}").unwrap();
        writeln!(qi, "{},{at}", at / 2).unwrap();
        writeln!(sa, "{},s{s}", at / 2).unwrap();
        writeln!(second_part, "{at},p{s}").unwrap();
    }
    let part = |name: &str| json!({"name": name, "file": format!("{name}.csv"), "bucketed": true});
    let mut request = json!({"tables": [{"name": "a", "parts": [part("qi"), part("sa")]}, {"name": "b", "parts": [{"file": "b.csv"}]}],
        "rules": ["who -> s"], "default_guarantee": {"type": "l_diversity", "l": 2}, "original": {"file": "T.csv"}, "attacks": ["proxy"]});
    let mut files: Vec<(&str, Vec<u8>)> = [("qi.csv", qi), ("sa.csv", sa), ("b.csv", second_part), ("T.csv", original)]
        .map(|(name, csv)| (name, csv.into_bytes()))
        .to_vec();
    let found = verify(&server, &request, &files).await.ok(200);
    // no rule is broken: what breaks it is not known of the tables, but of the world
    assert_eq!(found["verified"], true, "{found:#}");
    let attack = &found["attacks"][0];
    assert_eq!(
        (&attack["uses"], &attack["breach"], &attack["findings"]["total"]),
        (&json!("original"), &json!(true), &json!(1))
    );
    let finding = &attack["findings"]["first"][0];
    assert_eq!((&finding["attribute"], &finding["table"]), (&json!("p"), &json!("b")));
    assert!(share(&finding["posterior"]) > 0.95, "{attack:#}");
    request["original"] = json!(null);
    files.pop();
    verify(&server, &request, &files).await.fault("/attacks", "bad-columns");
    let release = server.publish(&server.dataset(HOSPITAL).await, json!({"method": hospital_method()})).await;
    let by_id = json!({"release": release["id"], "rules": ["gender, race -> zipcode"],
        "default_guarantee": {"type": "l_diversity", "l": 2}, "attacks": ["proxy"]});
    server.post("/v1/verifications", &by_id).await.fault("/attacks", "bad-columns");
    let odd = json!({"attack": "proxy", "rule": "/method/rules/9"});
    let path = format!("/v1/releases/{}/attacks", text(&release["id"]));
    server.post(&path, &odd).await.fault("/rule", "parameter-range");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_attack_needs_the_internal_scope() {
    let guarded = Guarded::start().await;
    let admin = guarded.preset(Preset::Admin);
    let release = admin.publish(&admin.dataset(HOSPITAL).await, json!({"method": hospital_method()})).await;
    let path = format!("/v1/releases/{}/attacks", text(&release["id"]));
    let proxy = json!({"attack": "proxy"});
    for preset in [Preset::Pipeline, Preset::Analyst] {
        let refused = guarded.preset(preset).post(&path, &proxy).await.problem(403, "forbidden");
        assert_eq!(refused["scope"], "releases:internal");
    }
    let found = guarded.preset(Preset::Officer).post(&path, &proxy).await.ok(200);
    assert_eq!(found["uses"], "original");
    guarded.server.with_token(&guarded.unknown_value).post(&path, &proxy).await.problem(404, "not-found");
    guarded.server.stop().await;
}
