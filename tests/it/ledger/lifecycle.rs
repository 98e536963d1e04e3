//! The life of a release: held, approved, rejected, withdrawn.

use serde_json::{Value, json};

use crate::support::harness::{Answer, Client, HOSPITAL, Server, hospital_method, kind, part_path, text};

fn hospital(hold: bool) -> Value {
    json!({"hold": hold, "method": hospital_method()})
}

/// Breaks a rule of the hospital release beside it.
fn breaking() -> Value {
    json!({"unlisted": "drop", "attributes": {"age": {"publish": true}, "race": {"publish": true}}, "no_rules_reason": "x",
        "method": {"type": "versatile", "rules": []}})
}

async fn act(server: &Client, release: &Value, act: &str) -> Answer {
    server.post(&format!("/v1/releases/{}/{act}", text(&release["id"])), &json!({"reason": "why"})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_release_counts_and_is_published_by_approval() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let held = server.publish(&dataset, hospital(true)).await;
    assert_eq!(held["status"], "held");
    assert_eq!(kind(&server.refused(&dataset, breaking()).await), "composition-violated", "it is reserved");
    let equal = server.job(&dataset, hospital(false)).await.ok(200);
    assert_eq!((&equal["release"], &equal["reused"]), (&held["id"], &json!(true)));
    act(&server, &held, "withdraw").await.problem(409, "conflict");
    let published = act(&server, &held, "approve").await.ok(200);
    assert_eq!(published["status"], "published");
    let listed = server.items("/v1/releases?status=published").await;
    assert_eq!(listed[0]["id"], held["id"]);
    for again in ["approve", "reject"] {
        act(&server, &held, again).await.problem(409, "conflict");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_unread_release_leaves_the_ledger() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let held = server.publish(&dataset, hospital(true)).await;
    assert_eq!(act(&server, &held, "reject").await.ok(200)["status"], "rejected");
    server.get(&format!("/v1/releases/{}", text(&held["id"]))).await.problem(410, "gone");
    server.get(&part_path(&held, "t1", "qi")).await.problem(410, "gone");
    for table in ["part_chunks", "disclosures", "standing_rules"] {
        assert_eq!(server.stored(table).await, 0, "{table}");
    }
    let anew = server.publish(&dataset, hospital(false)).await;
    assert_ne!(anew["id"], held["id"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_release_that_somebody_read_stays_disclosed() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let held = server.publish(&dataset, hospital(true)).await;
    server.part(&held, "t1", "qi").await;
    act(&server, &held, "reject").await.ok(200);
    assert_eq!(server.stored("part_chunks").await, 0);
    assert_eq!(kind(&server.refused(&dataset, breaking()).await), "composition-violated");
    let mut equal = hospital(false);
    equal["dataset"] = dataset.into();
    assert_eq!(server.post("/v1/jobs", &equal).await.problem(409, "conflict")["release"], held["id"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_release_is_gone_and_not_forgotten() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let release = server.publish(&dataset, hospital(false)).await;
    assert_eq!(act(&server, &release, "withdraw").await.ok(200)["status"], "withdrawn");
    let path = format!("/v1/releases/{}", text(&release["id"]));
    for path in [path.clone(), format!("{path}/report"), part_path(&release, "t1", "qi")] {
        server.get(&path).await.problem(410, "gone");
    }
    act(&server, &release, "approve").await.problem(409, "conflict");
    assert_eq!(server.items("/v1/releases").await[0]["status"], "withdrawn");
    assert_eq!(kind(&server.refused(&dataset, breaking()).await), "composition-violated");
    let mut equal = hospital(true);
    equal["dataset"] = dataset.into();
    server.post("/v1/jobs", &equal).await.problem(410, "gone");
    assert_eq!(server.stored("release_events").await, 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_act_needs_a_reason() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let held = server.publish(&dataset, hospital(true)).await;
    let path = format!("/v1/releases/{}/approve", text(&held["id"]));
    for body in [json!({}), json!({"reason": " "}), json!({"reason": "x".repeat(501)}), json!({"reason": "x", "by": 1})]
    {
        server.post(&path, &body).await.problem(400, "malformed-body");
    }
    let unknown_release = json!({"id": "018f0000-0000-7000-8000-000000000000"});
    act(&server, &unknown_release, "approve").await.problem(404, "not-found");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_releases_are_withdrawn() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("shared");
    let server = Server::start_with(|config| config.data.clone_from(&data)).await;
    let dataset = server.dataset(HOSPITAL).await;
    let release = server.publish(&dataset, hospital(false)).await;
    let path = format!("/v1/releases/{}", text(&release["id"]));
    server.stop().await;
    let retaining = |days: u32| {
        Server::start_with({
            let data = data.clone();
            move |config| {
                config.data = data;
                config.retain_days = Some(days);
            }
        })
    };
    let server = retaining(1).await;
    server.get(&path).await.ok(200);
    server.stop().await;
    let server = retaining(0).await;
    server.get(&path).await.problem(410, "gone");
    assert_eq!(server.items("/v1/releases").await[0]["status"], "withdrawn");
    assert_eq!(kind(&server.refused(&dataset, breaking()).await), "composition-violated");
    server.stop().await;
    for (table, rows) in [("part_chunks", 0), ("release_events", 1)] {
        assert_eq!(crate::support::harness::stored(&data, table).await, rows, "{table}");
    }
}
