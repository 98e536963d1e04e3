//! What the presets of keys suffice for.

use guardian::identity::Preset;
use reqwest::Method;
use serde_json::json;

use crate::security::identity::Guarded;
use crate::support::harness::{Client, HOSPITAL, hospital_method};

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_sees_what_its_own_tables_say() {
    let guarded = Guarded::start().await;
    let (pipeline, admin) = (guarded.preset(Preset::Pipeline), guarded.preset(Preset::Admin));
    let foreign = admin.newcomers(HOSPITAL).await;
    let own = pipeline.newcomers(HOSPITAL).await;
    let looks = async |client: &Client, dataset: &str| {
        let path = format!("/v1/datasets/{dataset}");
        let document = json!({"dataset": dataset, "unlisted": "drop", "method": hospital_method()});
        vec![
            client.get(&format!("{path}/profile")).await,
            client.get(&format!("{path}/attributes/race/values")).await,
            client.post(&format!("{path}/suggestion"), &json!({})).await,
            client.post("/v1/plans", &document).await,
        ]
    };
    for answer in looks(&pipeline, &own).await {
        answer.ok(200);
    }
    for answer in looks(&pipeline, &foreign).await {
        assert_eq!(answer.problem(403, "forbidden")["scope"], "datasets:inspect");
    }
    for answer in looks(&guarded.preset(Preset::Officer), &own).await {
        answer.ok(200);
    }
    // what a table is shows nothing of what it says
    assert_eq!(pipeline.get(&format!("/v1/datasets/{foreign}")).await.ok(200)["id"], foreign);
    assert_eq!(guarded.preset(Preset::Officer).items("/v1/datasets").await.len(), 2);
    guarded.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_override_the_ledger_alone_makes_people_disjoint() {
    let guarded = Guarded::start().await;
    let admin = guarded.preset(Preset::Admin);
    for name in ["clinic", "births"] {
        admin.put(&format!("/v1/populations/{name}"), &json!({})).await.ok(201);
    }
    let tables = [admin.dataset(HOSPITAL).await, admin.dataset(HOSPITAL).await];
    let reason = "a claim of a test";
    let disjoint = |from: serde_json::Value| json!({"disjoint_from": from, "reason": reason});
    let attempts = |made: &str| {
        let statements = "/v1/populations/clinic/statements".to_owned();
        let (defined, new) = ("/v1/populations/clinic".to_owned(), format!("/v1/populations/{made}"));
        vec![
            (Method::POST, statements.clone(), disjoint(json!(["births"])), 201),
            (Method::POST, statements.clone(), disjoint(json!([format!("dataset:{}", tables[0])])), 201),
            (Method::POST, statements.clone(), disjoint(json!("all")), 201),
            (
                Method::POST,
                statements,
                json!({"others": {"dataset": tables[0], "than": tables[1]}, "reason": reason}),
                201,
            ),
            (Method::PUT, defined, disjoint(json!(["births"])), 200),
            (Method::PUT, new.clone(), disjoint(json!("all")), 201),
            (Method::PUT, new, json!({}), 200),
        ]
    };
    let declared = async || {
        let mut places = Vec::new();
        for population in admin.items("/v1/populations").await {
            let path = format!("/v1/populations/{}", population["name"].as_str().unwrap());
            places.push((path.clone(), admin.get(&path).await.ok(200)["statements"].clone()));
        }
        places
    };
    let before = declared().await;
    assert!(before.iter().all(|(_, statements)| *statements == json!([])), "{before:?}");
    let may = [Preset::Officer, Preset::Admin];
    for preset in Preset::ALL.into_iter().filter(|preset| !may.contains(preset)) {
        let client = guarded.preset(preset);
        for (method, path, body, _) in attempts(preset.name()) {
            let answer = client.send(client.request(method, &path).json(&body)).await;
            assert_eq!(answer.problem(403, "forbidden")["scope"], "ledger:override", "{} {path}", preset.name());
        }
        // nor does an upload say it
        let upload = client.upload_with("same_people=false&reason=other", HOSPITAL.to_owned(), &[]).await;
        let expected = if preset == Preset::Pipeline { (400, "malformed-request") } else { (403, "forbidden") };
        upload.problem(expected.0, expected.1);
    }
    assert_eq!(declared().await, before, "nothing was entered");
    for preset in may {
        let client = guarded.preset(preset);
        for (method, path, body, status) in attempts(preset.name()) {
            client.send(client.request(method, &path).json(&body)).await.ok(status);
        }
        let path = format!("/v1/populations/{}", preset.name());
        assert_ne!(client.get(&path).await.ok(200)["statements"], json!([]), "{path}");
    }
    guarded.server.stop().await;
}
