//! Approval by another key, the history of releases and the audit log.

use std::path::Path;

use guardian::config::StoreOptions;
use guardian::identity::Preset;
use guardian::ports::TenantChange;
use guardian::service::admin::AdminOps;
use guardian::service::keys::{ApiKeyAdmin, NewKey};
use serde_json::{Value, json};

use crate::security::identity::Guarded;
use crate::support::harness::{Client, HOSPITAL, Server, guardian, hospital_method, run, text};

fn held() -> Value {
    json!({"hold": true, "method": hospital_method()})
}

fn reason() -> Value {
    json!({"reason": "why"})
}

async fn ask_for_another(data: &Path, tenant: &str) {
    let admin = AdminOps::open(&StoreOptions::default(), data).await.unwrap();
    admin
        .set_tenant(tenant, TenantChange { approval_by_another: Some(true), ..TenantChange::default() })
        .await
        .unwrap();
    admin.close().await;
}

/// The token of another key like one of a preset.
async fn another(data: &Path, preset: Preset) -> String {
    let ring = ApiKeyAdmin::open(&StoreOptions::default(), data).await.unwrap();
    let wanted = NewKey {
        tenant: "default".to_owned(),
        name: "test".to_owned(),
        scopes: preset.scopes(),
        lifetime: None,
        populations: Vec::new(),
    };
    let token = ring.create(wanted).await.unwrap().1.reveal().to_string();
    ring.close().await;
    token
}

#[tokio::test(flavor = "multi_thread")]
async fn the_submitter_does_not_approve_where_the_tenant_says_so() {
    let mut second = String::new();
    let between = async |data: &Path| {
        ask_for_another(data, "default").await;
        second = another(data, Preset::Officer).await;
    };
    let guarded = Guarded::start().await.restarted(between).await;
    let (pipeline, officer) = (guarded.preset(Preset::Pipeline), guarded.preset(Preset::Officer));
    let dataset = pipeline.dataset(HOSPITAL).await;
    let job = officer.job(&dataset, held()).await.ok(200);
    // the same job of a third key is answered by the same release
    let admin = guarded.preset(Preset::Admin);
    assert_eq!(admin.job(&dataset, held()).await.ok(200)["reused"], true);
    let path = format!("/v1/releases/{}", text(&job["release"]));
    for own in [&officer, &admin] {
        let problem = own.post(&format!("{path}/approve"), &reason()).await.problem(403, "forbidden");
        assert!(text(&problem["detail"]).contains("another key"), "{problem}");
        assert_eq!(problem["scope"], Value::Null);
    }
    assert_eq!(officer.get(&path).await.ok(200)["status"], "held");
    assert!(officer.items(&format!("{path}/history")).await.is_empty());
    // a key of the same name is another key
    let second = guarded.server.with_token(&second);
    assert_eq!(second.post(&format!("{path}/approve"), &reason()).await.ok(200)["status"], "published");
    // and only approvals are asked about
    officer.post(&format!("{path}/withdraw"), &reason()).await.ok(200);

    let history = officer.items(&format!("{path}/history")).await;
    let audit_entries = |event: &Value| (text(&event["status"]), text(&event["reason"]));
    let expected = ["published", "withdrawn"].map(|status| (status.to_owned(), "why".to_owned()));
    assert_eq!(history.iter().map(audit_entries).collect::<Vec<_>>(), expected);
    assert_ne!(history[0]["actor"], history[1]["actor"]);
    assert!(history.iter().all(|event| event["actor"].is_string() && event["happened_at"].is_string()));
    let log = officer.items("/v1/audit-log?action=release.approve").await;
    assert_eq!((log.len(), &log[0]["actor"]), (1, &history[0]["actor"]));
    assert_eq!(log[0]["object"], job["release"]);
    guarded.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anonymous_caller_cannot_approve_own_release() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    ask_for_another(&data, "default").await;
    let server = Server::start_with(|config| config.data.clone_from(&data)).await;
    let dataset = server.dataset(HOSPITAL).await;
    let release = server.publish(&dataset, held()).await;
    let path = format!("/v1/releases/{}", text(&release["id"]));
    let problem = server.post(&format!("{path}/approve"), &reason()).await.problem(403, "forbidden");
    assert!(text(&problem["detail"]).contains("without a key"), "{problem}");
    server.post(&format!("{path}/reject"), &reason()).await.ok(200);
    assert_eq!(server.items(&format!("{path}/history")).await[0]["actor"], Value::Null);
    server.get("/v1/releases/018f0000-0000-7000-8000-000000000000/history").await.problem(404, "not-found");
    server.stop().await;
}

async fn audit_entries(client: &Client, query: &str) -> Vec<(String, String)> {
    let entry = |entry: &Value| (text(&entry["action"]), text(&entry["object"]));
    client.items(&format!("/v1/audit-log{query}")).await.iter().map(entry).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_log_lists_entries() {
    let guarded = Guarded::start().await;
    let admin = guarded.preset(Preset::Admin);
    let dataset = admin.dataset(HOSPITAL).await;
    let policy = json!({"specification": {"method": hospital_method()}});
    for status in [201, 200] {
        admin.put("/v1/policies/hospital", &policy).await.ok(status);
    }
    let release = admin.publish(&dataset, json!({"policy": "hospital-v1", "hold": true})).await;
    for _ in 0..2 {
        admin.part(&release, "t1", "qi").await;
        admin.get(&format!("/v1/releases/{}/archive", text(&release["id"]))).await;
    }
    let job = text(&admin.items("/v1/jobs").await[0]["id"]);
    let line = |action: &str, object: &str| (action.to_owned(), object.to_owned());
    let newest = [
        line("release.read_held", release["id"].as_str().unwrap()),
        line("job.submit", &job),
        line("policy.put", "hospital-v1"),
        line("dataset.upload", &dataset),
    ];
    let operator = guarded.preset(Preset::Operator);
    assert_eq!(audit_entries(&operator, "?limit=4").await, newest);
    assert_eq!(audit_entries(&guarded.preset(Preset::Officer), "?limit=4").await, newest);
    let page = operator.get("/v1/audit-log?limit=2").await.ok(200);
    let rest = format!("?limit=2&cursor={}", text(&page["next"]));
    assert_eq!(audit_entries(&operator, &rest).await, newest[2..]);
    assert_eq!(audit_entries(&operator, "?action=policy.put").await, newest[2..3]);
    let at = text(&page["items"][1]["at"]);
    assert_eq!(audit_entries(&operator, &format!("?since={at}")).await, newest[..2]);
    assert!(audit_entries(&operator, "?since=2999-01-01T00:00:00Z").await.is_empty());
    for wrong in ["?action=job", "?since=yesterday", "?limit=0", "?cursor=x", "?key=1"] {
        operator.get(&format!("/v1/audit-log{wrong}")).await.problem(400, "malformed-request");
    }
    let whole = operator.get("/v1/audit-log").await.text();
    for value in ["icd9", "hospital, race", "zipcode"] {
        assert!(!whole.contains(value), "{value}");
    }
    // another tenant has a log of its own
    let unknown_value = guarded.server.with_token(&guarded.unknown_value);
    assert_eq!(audit_entries(&unknown_value, "").await.len(), 1, "the making of its key");
    guarded.server.stop().await;
}

fn command(data: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(guardian().args(arguments).arg("--data").arg(data));
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn tenants_are_decided_upon_and_logs_read_by_command() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    assert_eq!(command(&data, &["tenants", "list"]), (Some(0), String::new()));
    let create = ["keys", "create", "--tenant", "south", "--name", "x", "--preset", "analyst"];
    assert_eq!(command(&data, &create).0, Some(0));
    let set = |value| command(&data, &["tenants", "set", "north", "--approval-by-another", value]);
    assert_eq!(set("true"), (Some(0), "north\tapproval-by-another=true\tunrelated=refuse\n".to_owned()));
    let mark = ["tenants", "set", "north", "--unrelated", "mark"];
    // what is not named stays
    assert_eq!(command(&data, &mark), (Some(0), "north\tapproval-by-another=true\tunrelated=mark\n".to_owned()));
    let south = "south\tapproval-by-another=false\tunrelated=refuse\n";
    let listed = format!("north\tapproval-by-another=true\tunrelated=mark\n{south}");
    assert_eq!(command(&data, &["tenants", "list"]), (Some(0), listed));
    assert_eq!(set("false"), (Some(0), "north\tapproval-by-another=false\tunrelated=mark\n".to_owned()));
    assert_eq!(command(&data, &["tenants", "set", "north", "--unrelated", "maybe"]).0, Some(2));
    for wrong in [&["tenants", "set", "north"][..], &["tenants", "set", "a\tb", "--approval-by-another", "true"]] {
        assert_eq!(command(&data, wrong).0, Some(2), "{wrong:?}");
    }
    assert_eq!(set("perhaps").0, Some(2));
    let (code, log) = command(&data, &["audit-log", "--tenant", "north"]);
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((code, lines.len()), (Some(0), 3));
    let details = ["approval_by_another false", "beside_unrelated mark", "approval_by_another true"];
    for (line, detail) in lines.iter().zip(details) {
        assert_eq!((&line["action"], &line["object"]), (&json!("tenant.set"), &json!("north")));
        assert_eq!((&line["detail"], &line["key"]), (&json!(detail), &Value::Null));
    }
    let since = text(&lines[0]["at"]);
    let (_, later) = command(&data, &["audit-log", "--tenant", "north", "--since", &since]);
    assert_eq!(later.lines().count(), 1);
    assert_eq!(command(&data, &["audit-log", "--tenant", "nobody"]), (Some(0), String::new()));
    assert_eq!(command(&data, &["audit-log", "--since", "yesterday"]).0, Some(2));
}
