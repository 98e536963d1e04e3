//! Who may: keys, scopes, tenants, and what is written down of it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use guardian::config::{Auth, Config, StoreOptions};
use guardian::identity::{Preset, Scope};
use guardian::ports::{ApiKeyStore, AuditFilter};
use guardian::service::keys::{ApiKeyAdmin, NewKey};
use guardian::store::sqlite::SqliteStore;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HOST, ORIGIN};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::support::harness::{
    Answer, Client, HOSPITAL, Process, Server, guardian, hospital_method, run, stored, text,
};

/// A service that asks for keys.
pub(crate) struct Guarded {
    pub(crate) server: Server,
    home: TempDir,
    presets: Vec<(Preset, String)>,
    /// Of another tenant, with every scope.
    pub(crate) unknown_value: String,
    revoked: String,
    expired: String,
}

impl Guarded {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: fn(&mut Config)) -> Self {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        let ring = ApiKeyAdmin::open(&StoreOptions::default(), &data).await.unwrap();
        let draw = async |tenant: &str, preset: Preset, lifetime| {
            let wanted = NewKey {
                tenant: tenant.to_owned(),
                name: "test".to_owned(),
                scopes: preset.scopes(),
                lifetime,
                populations: Vec::new(),
            };
            let (key, token) = ring.create(wanted).await.unwrap();
            (key.id, token.reveal().to_string())
        };
        let mut presets = Vec::new();
        for preset in Preset::ALL {
            presets.push((preset, draw("default", preset, None).await.1));
        }
        let (_, unknown_value) = draw("other", Preset::Admin, Some(Duration::from_secs(3600))).await;
        let (_, expired) = draw("default", Preset::Admin, Some(Duration::ZERO)).await;
        let (id, revoked) = draw("default", Preset::Admin, None).await;
        ring.revoke(id).await.unwrap().unwrap();
        ring.close().await;
        let server = Self::serve(&data, change).await;
        Self { server, home, presets, unknown_value, revoked, expired }
    }

    async fn serve(data: &Path, change: fn(&mut Config)) -> Server {
        let data = data.to_owned();
        Server::start_with(move |config| {
            config.data = data;
            config.auth = Auth::Keys;
            change(config);
        })
        .await
    }

    /// The same with another process on its store, after what `between` does to it.
    pub(crate) async fn restarted(self, between: impl AsyncFnOnce(&Path)) -> Self {
        let Self { server, home, presets, unknown_value, revoked, expired } = self;
        server.stop().await;
        let data = home.path().join("data");
        between(&data).await;
        Self { server: Self::serve(&data, |_| {}).await, home, presets, unknown_value, revoked, expired }
    }

    /// The folder of the store.
    pub(crate) fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    pub(crate) fn preset(&self, wanted: Preset) -> Client {
        let (_, token) = self.presets.iter().find(|(preset, _)| *preset == wanted).unwrap();
        self.server.with_token(token)
    }
}

/// A route, the scope it asks for, who has that by the contract, and what those and another tenant's key are answered.
pub(crate) type Route = (&'static str, &'static str, Option<Scope>, &'static [Preset], u16, u16);

const WRITERS: &[Preset] = &[Preset::Pipeline, Preset::Admin];

const INSPECTORS: &[Preset] = &[Preset::Officer, Preset::Admin];

const SUBMITTERS: &[Preset] = &[Preset::Pipeline, Preset::Officer, Preset::Admin];

const READERS: &[Preset] = &[Preset::Pipeline, Preset::Officer, Preset::Analyst, Preset::Admin];

const APPROVERS: &[Preset] = &[Preset::Officer, Preset::Admin];

const OVERSEERS: &[Preset] = &[Preset::Officer, Preset::Operator, Preset::Admin];

/// A policy of the tenant `default`.
pub(crate) const POLICY: &str = "nightly";

pub(crate) const ROUTES: &[Route] = &[
    ("POST", "/v1/datasets", Some(Scope::DatasetsWrite), WRITERS, 201, 201),
    // the operator lists no source
    ("POST", "/v1/datasets/by-reference", Some(Scope::DatasetsWrite), WRITERS, 422, 422),
    // or with datasets:inspect
    ("GET", "/v1/datasets", Some(Scope::DatasetsWrite), SUBMITTERS, 200, 200),
    ("GET", "/v1/datasets/{id}", Some(Scope::DatasetsWrite), SUBMITTERS, 200, 404),
    ("DELETE", "/v1/datasets/{id}", Some(Scope::DatasetsWrite), WRITERS, 200, 404),
    // or with datasets:write, of a table of the same key
    ("GET", "/v1/datasets/{id}/profile", Some(Scope::DatasetsInspect), INSPECTORS, 200, 404),
    ("POST", "/v1/datasets/{id}/suggestion", Some(Scope::DatasetsInspect), INSPECTORS, 200, 404),
    ("GET", "/v1/datasets/{id}/attributes/{name}/values", Some(Scope::DatasetsInspect), INSPECTORS, 200, 404),
    ("POST", "/v1/plans", Some(Scope::DatasetsInspect), INSPECTORS, 200, 404),
    ("POST", "/v1/jobs", Some(Scope::Jobs), SUBMITTERS, 202, 404),
    ("GET", "/v1/jobs", Some(Scope::Jobs), SUBMITTERS, 200, 200),
    ("GET", "/v1/jobs/{id}", Some(Scope::Jobs), SUBMITTERS, 200, 404),
    // it has ended
    ("DELETE", "/v1/jobs/{id}", Some(Scope::Jobs), SUBMITTERS, 409, 404),
    ("GET", "/v1/jobs/{id}/events", Some(Scope::Jobs), SUBMITTERS, 200, 404),
    ("GET", "/v1/releases", Some(Scope::ReleasesRead), READERS, 200, 200),
    ("GET", "/v1/releases/{id}", Some(Scope::ReleasesRead), READERS, 200, 404),
    ("GET", "/v1/releases/{id}/report", Some(Scope::ReleasesRead), READERS, 200, 404),
    ("GET", "/v1/releases/{id}/internal-report", Some(Scope::ReleasesInternal), APPROVERS, 200, 404),
    ("GET", "/v1/releases/{id}/tables/{table}/parts/{part}", Some(Scope::ReleasesRead), READERS, 200, 404),
    ("GET", "/v1/releases/{id}/tables/{table}/parts/{part}.arrow", Some(Scope::ReleasesRead), READERS, 200, 404),
    ("GET", "/v1/releases/{id}/tables/{table}/parts/{part}.csv", Some(Scope::ReleasesRead), READERS, 200, 404),
    ("GET", "/v1/releases/{id}/tables/{table}/parts/{part}.ndjson", Some(Scope::ReleasesRead), READERS, 200, 404),
    ("GET", "/v1/releases/{id}/tables/{table}/parts/{part}.parquet", Some(Scope::ReleasesRead), READERS, 200, 404),
    // the operator permits no links
    ("GET", "/v1/releases/{id}/tables/{table}/parts/{part}/links", Some(Scope::ReleasesRead), READERS, 404, 404),
    ("GET", "/v1/releases/{id}/archive", Some(Scope::ReleasesRead), READERS, 200, 404),
    ("POST", "/v1/releases/{id}/queries", Some(Scope::ReleasesRead), READERS, 200, 404),
    ("POST", "/v1/releases/{id}/approve", Some(Scope::ReleasesApprove), APPROVERS, 200, 404),
    ("POST", "/v1/releases/{id}/reject", Some(Scope::ReleasesApprove), APPROVERS, 200, 404),
    ("POST", "/v1/releases/{id}/withdraw", Some(Scope::ReleasesApprove), APPROVERS, 200, 404),
    ("POST", "/v1/releases/{id}/attacks", Some(Scope::ReleasesRead), READERS, 200, 404),
    ("GET", "/v1/releases/{id}/history", Some(Scope::ReleasesApprove), APPROVERS, 200, 404),
    ("GET", "/v1/policies", Some(Scope::Jobs), SUBMITTERS, 200, 200),
    ("GET", "/v1/policies/{name}", Some(Scope::Jobs), SUBMITTERS, 200, 404),
    ("GET", "/v1/policies/{name}/versions", Some(Scope::Jobs), SUBMITTERS, 200, 404),
    ("POST", "/v1/verifications", Some(Scope::Jobs), SUBMITTERS, 200, 404),
    ("POST", "/v1/analyses/differential-inference", Some(Scope::ReleasesRead), READERS, 200, 200),
    ("GET", "/v1/series/{name}", Some(Scope::LedgerRead), APPROVERS, 200, 404),
    ("GET", "/v1/taxonomies", Some(Scope::Jobs), SUBMITTERS, 200, 200),
    ("GET", "/v1/taxonomies/{name}", Some(Scope::Jobs), SUBMITTERS, 200, 404),
    // it is made anew each time, and none for the unknown value
    ("DELETE", "/v1/taxonomies/{name}", Some(Scope::TaxonomiesWrite), APPROVERS, 200, 404),
    // last of these: from then on the unknown value has one of the same name
    ("PUT", "/v1/taxonomies/{name}", Some(Scope::TaxonomiesWrite), APPROVERS, 201, 201),
    ("PUT", "/v1/policies/{name}", Some(Scope::TaxonomiesWrite), APPROVERS, 201, 201),
    // or with releases:approve
    ("GET", "/v1/audit-log", Some(Scope::Operate), OVERSEERS, 200, 200),
    // the last that asks for a series: whatever is published of it afterwards stands beside the external table
    ("POST", "/v1/series/{name}/disclosures", Some(Scope::LedgerOverride), APPROVERS, 201, 422),
    ("GET", "/v1/populations", Some(Scope::LedgerRead), APPROVERS, 200, 200),
    ("GET", "/v1/populations/{name}", Some(Scope::LedgerRead), APPROVERS, 200, 404),
    ("DELETE", "/v1/populations/{name}/republication", Some(Scope::LedgerOverride), APPROVERS, 404, 404),
    ("POST", "/v1/populations/{name}/statements", Some(Scope::LedgerOverride), APPROVERS, 201, 404),
    // a new one each time
    ("PUT", "/v1/populations/{name}", Some(Scope::LedgerOverride), APPROVERS, 201, 201),
    ("GET", "/healthz", None, &Preset::ALL, 200, 200),
    ("GET", "/readyz", None, &Preset::ALL, 200, 200),
];

/// What there is of the tenant `default`.
pub(crate) struct Things {
    pub(crate) dataset: String,
    pub(crate) job: String,
    pub(crate) release: String,
}

/// Makes anew what a call of a route uses up.
pub(crate) async fn renew(admin: &Client, method: &str, path: &str, things: &mut Things) {
    match (method, path.strip_prefix("/v1/releases/{id}/")) {
        ("DELETE", _) if path == "/v1/taxonomies/{name}" => {
            // what was not deleted is there still, and equal
            let made = admin.put(&format!("/v1/taxonomies/{POLICY}"), &tree("x")).await;
            assert!([200, 201].contains(&made.status));
        }
        ("DELETE", _) if path == "/v1/datasets/{id}" => things.dataset = admin.newcomers(HOSPITAL).await,
        // use nothing up
        ("POST", Some("attacks" | "queries")) => {}
        ("POST", Some(act)) => {
            let document = json!({"hold": act != "withdraw", "unlisted": "drop", "method": hospital_method()});
            let release = admin.publish(&admin.newcomers(HOSPITAL).await, document).await;
            things.release = text(&release["id"]);
        }
        _ => {}
    }
}

/// A policy like none before.
pub(crate) fn specification() -> Value {
    json!({"specification": {"reason": Uuid::now_v7(), "method": hospital_method()}})
}

/// A taxonomy with this leaf.
pub(crate) fn tree(leaf: &str) -> Value {
    json!({"taxonomy": {"Any": [leaf]}})
}

/// Calls a route with what it needs to be answered well.
pub(crate) async fn call(client: &Client, method: &str, path: &str, things: &Things) -> Answer {
    let id = match path.split('/').nth(2) {
        Some("datasets") => &things.dataset,
        Some("jobs") => &things.job,
        _ => &things.release,
    };
    let path = path.replace("{id}", id).replace("{table}", "t1").replace("{part}", "qi");
    let name = match &path {
        path if path.contains("/attributes/") => "race",
        path if path.contains("/series/") => "newcomers",
        _ => POLICY,
    };
    let path = match (method, path.as_str()) {
        ("PUT", "/v1/populations/{name}") => path.replace("{name}", &Uuid::now_v7().to_string()),
        _ => path.replace("{name}", name),
    };
    let document = json!({"dataset": things.dataset, "unlisted": "drop", "method": hospital_method()});
    match (method, path.as_str()) {
        ("POST", "/v1/datasets") => client.upload("name=t", HOSPITAL).await,
        ("POST", "/v1/datasets/by-reference") => client.post(&path, &json!({"source": "s3://bucket/table.csv"})).await,
        ("POST", "/v1/verifications") => {
            let rule = json!({"release": things.release, "rules": ["gender, race -> zipcode"],
                "default_guarantee": {"type": "l_diversity", "l": 2}});
            client.post(&path, &rule).await
        }
        ("POST", "/v1/analyses/differential-inference") => {
            client.post(&path, &json!({"x": "1000", "y": "800", "scale": "10", "threshold": "0.6"})).await
        }
        ("POST", said) if said.ends_with("/disclosures") || said.ends_with("/statements") => {
            let table = json!({"name": "elsewhere", "attributes": ["elsewhere"], "protection": "plain"});
            client.post(&path, &json!({"reason": "why", "tables": [table]})).await
        }
        ("POST", act) if act.ends_with("/attacks") => client.post(act, &json!({"attack": "exact_posteriors"})).await,
        ("POST", asked) if asked.ends_with("/queries") => client.post(asked, &json!({"queries": []})).await,
        ("POST", act) if act.starts_with("/v1/releases/") => client.post(act, &json!({"reason": "why"})).await,
        ("POST", asked) if asked.ends_with("/suggestion") => client.post(asked, &json!({})).await,
        ("POST", _) => client.post(&path, &document).await,
        ("DELETE", _) => client.delete(&path).await,
        ("PUT", kept) if kept.starts_with("/v1/taxonomies") => {
            client.put(&path, &tree(&Uuid::now_v7().to_string())).await
        }
        ("PUT", population) if population.starts_with("/v1/populations") => client.put(&path, &json!({})).await,
        ("PUT", _) => client.put(&path, &specification()).await,
        _ => client.get(&path).await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_asks_every_caller_for_its_scope() {
    let guarded = Guarded::start().await;
    let admin = guarded.preset(Preset::Admin);
    let dataset = admin.newcomers(HOSPITAL).await;
    let job = admin.job(&dataset, json!({"unlisted": "drop", "method": hospital_method()})).await.ok(200);
    admin.put(&format!("/v1/policies/{POLICY}"), &specification()).await.ok(201);
    admin.put(&format!("/v1/taxonomies/{POLICY}"), &tree("x")).await.ok(201);
    admin.put(&format!("/v1/populations/{POLICY}"), &json!({})).await.ok(201);
    let mut things = Things { dataset, job: text(&job["id"]), release: text(&job["release"]) };

    let document = guarded.server.get("/openapi.json").await.ok(200);
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        described.extend(item.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone())));
    }
    let walked: BTreeSet<_> = ROUTES.iter().map(|(method, path, ..)| (method.to_string(), path.to_string())).collect();
    assert_eq!(walked, described);

    for &(method, path, scope, allowed, well, unknown_value) in ROUTES {
        let operation = &document["paths"][path][method.to_lowercase()];
        let expected = match (path, scope) {
            (_, None) => json!([]),
            ("/v1/audit-log", Some(_)) => json!([{"key": ["operate"]}, {"key": ["releases:approve"]}]),
            (_, Some(Scope::DatasetsInspect)) => json!([{"key": ["datasets:inspect"]}, {"key": ["datasets:write"]}]),
            ("/v1/datasets" | "/v1/datasets/{id}", Some(Scope::DatasetsWrite)) if method == "GET" => {
                json!([{"key": ["datasets:write"]}, {"key": ["datasets:inspect"]}])
            }
            (_, Some(scope)) => json!([{"key": [scope.name()]}]),
        };
        assert_eq!(operation["security"], expected);
        let unknown_key = guarded.server.with_token("gk_1_2");
        let dead = [&guarded.revoked, &guarded.expired].map(|token| guarded.server.with_token(token));
        for client in [&*guarded.server, &unknown_key, &dead[0], &dead[1]] {
            let answer = call(client, method, path, &things).await;
            match scope {
                None => assert_eq!(answer.status, well, "{method} {path}"),
                Some(_) => {
                    answer.problem(401, "unauthenticated");
                    assert!(answer.header("www-authenticate").starts_with("Bearer"));
                }
            }
        }
        let answer = call(&guarded.server.with_token(&guarded.unknown_value), method, path, &things).await;
        assert_eq!(answer.status, unknown_value, "{method} {path}: {}", answer.text());
        if answer.status == 404 {
            answer.problem(404, "not-found");
        }
        for preset in Preset::ALL {
            renew(&admin, method, path, &mut things).await;
            let answer = call(&guarded.preset(preset), method, path, &things).await;
            if allowed.contains(&preset) {
                assert_eq!(answer.status, well, "{method} {path} {}: {}", preset.name(), answer.text());
            } else {
                let problem = answer.problem(403, "forbidden");
                assert_eq!(problem["scope"], scope.unwrap().name(), "{method} {path} {}", preset.name());
            }
        }
        renew(&admin, method, path, &mut things).await;
    }
    for open in ["/docs/", "/openapi.json", "/openapi-3.0.json"] {
        assert_eq!(guarded.server.get(open).await.status, 200, "{open}");
    }
    // HEAD is GET
    let head = guarded.server.request(Method::HEAD, "/v1/releases").send().await.unwrap();
    assert_eq!(head.status(), 401);
    guarded.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_see_nothing_of_each_other() {
    let guarded = Guarded::start().await;
    let here = guarded.preset(Preset::Admin);
    let there = guarded.server.with_token(&guarded.unknown_value);
    let dataset = here.dataset(HOSPITAL).await;
    let document = json!({"method": hospital_method()});
    let release = here.publish(&dataset, document.clone()).await;
    for list in ["/v1/datasets", "/v1/jobs", "/v1/releases"] {
        assert!(there.items(list).await.is_empty(), "{list}");
        for filter in [format!("dataset={dataset}"), format!("series={dataset}")] {
            if list != "/v1/datasets" {
                assert!(there.items(&format!("{list}?{filter}")).await.is_empty(), "{list}?{filter}");
                assert_eq!(here.items(&format!("{list}?{filter}")).await.len(), 1, "{list}?{filter}");
            }
        }
    }
    // the same table and document of another tenant: neither reused nor judged with the first
    let own = there.dataset(HOSPITAL).await;
    let job = there.job(&own, document).await.ok(200);
    assert_eq!((&job["status"], &job["reused"]), (&json!("succeeded"), &json!(false)));
    assert_ne!(job["release"], release["id"]);
    assert_eq!(there.items("/v1/releases").await.len(), 1);
    assert_eq!(here.items("/v1/releases").await.len(), 1);
    here.get(&format!("/v1/releases/{}", text(&job["release"]))).await.problem(404, "not-found");
    guarded.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn held_releases_are_visible_to_approvers_only() {
    let guarded = Guarded::start().await;
    let (pipeline, officer) = (guarded.preset(Preset::Pipeline), guarded.preset(Preset::Officer));
    let admin = guarded.preset(Preset::Admin);
    let document = json!({"hold": true, "unlisted": "drop", "method": hospital_method()});
    let dataset = admin.newcomers(HOSPITAL).await;
    let job = pipeline.job(&dataset, document.clone()).await.ok(200);
    let path = format!("/v1/releases/{}", text(&job["release"]));
    let views = ["", "/report", "/archive", "/tables/t1/parts/qi"].map(|view| format!("{path}{view}"));
    for view in &views {
        for preset in [Preset::Pipeline, Preset::Analyst] {
            guarded.preset(preset).get(view).await.problem(404, "not-found");
        }
        guarded.server.with_token(&guarded.unknown_value).get(view).await.problem(404, "not-found");
    }
    for view in &views[..3] {
        assert_eq!(officer.get(view).await.status, 200, "{view}");
    }
    // the archive holds the rows: what was read stays disclosed
    officer.post(&format!("{path}/reject"), &json!({"reason": "why"})).await.ok(200);
    assert_eq!(stored(&guarded.home.path().join("data"), "disclosures").await, 2);
    let other = admin.newcomers(HOSPITAL).await;
    let job = pipeline.job(&other, document).await.ok(200);
    let path = format!("/v1/releases/{}", text(&job["release"]));
    officer.post(&format!("{path}/approve"), &json!({"reason": "why"})).await.ok(200);
    assert_eq!(guarded.preset(Preset::Analyst).get(&path).await.ok(200)["status"], "published");
    guarded.server.stop().await;
    let store = SqliteStore::open(&guarded.home.path().join("data")).await.unwrap();
    let log = store.audit("default", AuditFilter::default(), None, 100).await.unwrap().items;
    let acts: Vec<_> = log.iter().rev().filter(|entry| entry.action.starts_with("release.")).collect();
    assert_eq!(
        acts.iter().map(|entry| entry.action.as_str()).collect::<Vec<_>>(),
        ["release.read_held", "release.reject", "release.approve"]
    );
    assert!(acts.iter().all(|entry| entry.key.is_some()));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idempotency_keys_are_a_tenants_own() {
    let guarded = Guarded::start().await;
    let (here, there) = (guarded.preset(Preset::Admin), guarded.server.with_token(&guarded.unknown_value));
    let upload = async |client: &Client| {
        text(&client.upload_with("name=t", HOSPITAL, &[("idempotency-key", "k")]).await.ok(201)["id"])
    };
    let (own, foreign) = (upload(&here).await, upload(&there).await);
    assert_ne!(own, foreign);
    assert_eq!((upload(&here).await, upload(&there).await), (own.clone(), foreign.clone()));
    let submit = async |client: &Client, dataset: &str| {
        let document = json!({"dataset": dataset, "method": hospital_method()});
        let request = client.request(Method::POST, "/v1/jobs").json(&document).header("idempotency-key", "k");
        client.send(request).await
    };
    let (first, second) = (submit(&here, &own).await.ok(202), submit(&there, &foreign).await.ok(202));
    assert_ne!(first["id"], second["id"]);
    submit(&there, &own).await.problem(409, "idempotency-conflict");
    assert_eq!(submit(&here, &own).await.ok(202)["id"], first["id"]);
    guarded.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_are_in_the_audit_log() {
    let guarded = Guarded::start().await;
    let admin = guarded.preset(Preset::Admin);
    let dataset = admin.dataset(HOSPITAL).await;
    let document = json!({"dataset": dataset, "method": hospital_method()});
    admin.post("/v1/plans", &document).await.ok(200);
    let job = admin.post("/v1/jobs?wait=60", &document).await.ok(200);
    let release = text(&job["release"]);
    let withdraw = format!("/v1/releases/{release}/withdraw");
    admin.post(&withdraw, &json!({"reason": "why"})).await.ok(200);
    admin.delete(&format!("/v1/datasets/{dataset}")).await.ok(200);
    // refusals are not entries of the audit log
    admin.post(&withdraw, &json!({"reason": "why"})).await.problem(409, "conflict");
    admin.delete(&format!("/v1/jobs/{}", text(&job["id"]))).await.problem(409, "conflict");
    guarded.preset(Preset::Analyst).delete(&format!("/v1/datasets/{dataset}")).await.problem(403, "forbidden");
    let data = guarded.home.path().join("data");
    guarded.server.stop().await;

    let store = SqliteStore::open(&data).await.unwrap();
    let log = store.audit("default", AuditFilter::default(), None, 100).await.unwrap().items;
    let audit_entries: Vec<_> = log.iter().rev().filter(|entry| entry.key.is_some()).collect();
    let said: Vec<_> = audit_entries.iter().map(|entry| (entry.action.as_str(), entry.object.clone())).collect();
    let job = text(&job["id"]);
    let expected = [
        ("dataset.upload", &dataset),
        ("plan", &dataset),
        ("job.submit", &job),
        ("release.withdraw", &release),
        ("dataset.purge", &dataset),
    ];
    assert_eq!(said, expected.map(|(action, object)| (action, object.clone())));
    assert!(audit_entries.iter().all(|entry| entry.key == audit_entries[0].key && entry.detail.is_none()));
    let keys = |action: &str| log.iter().filter(|entry| entry.action == action && entry.key.is_none()).count();
    assert_eq!((keys("key.create"), keys("key.revoke")), (7, 1));
    let others = store.audit("other", AuditFilter::default(), None, 100).await.unwrap().items;
    assert_eq!(others.len(), 1, "the making of its key");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_of_data_need_the_inspect_scope() {
    let guarded = Guarded::start().await;
    let (pipeline, officer) = (guarded.preset(Preset::Pipeline), guarded.preset(Preset::Officer));
    // of its own tables a pipeline sees counts
    let dataset = guarded.preset(Preset::Admin).dataset(HOSPITAL).await;
    let mut document = json!({"method": hospital_method()});
    document["method"]["default_guarantee"]["l"] = 7.into();
    let with_counts = officer.job(&dataset, document.clone()).await.fault("/method/rules/0", "rule-ineligible");
    assert!(with_counts["largest_l"].is_u64(), "{with_counts}");
    let hidden = pipeline.job(&dataset, document).await.fault("/method/rules/0", "rule-ineligible");
    assert_eq!((&hidden["largest_l"], &hidden["requested"]), (&Value::Null, &with_counts["requested"]));
    assert_ne!(hidden["detail"], with_counts["detail"]);
    guarded.server.stop().await;
}

fn keys(data: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = run(guardian().arg("keys").args(arguments).arg("--data").arg(data));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_key_opens_a_service_that_others_can_reach() {
    let home = tempfile::tempdir().unwrap();
    let (data, file) = (home.path().join("data"), home.path().join("first.key"));
    let file_option = file.to_str().unwrap();
    let options =
        ["--listen", "0.0.0.0:0", "--store", "embedded", "--auth", "keys", "--bootstrap-key-file", file_option];
    let mut process = Process::serve_with(&data, "trace", &options);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let token = fs::read_to_string(&file).unwrap().trim().to_owned();

    let client = process.with_token(&token);
    let dataset = client.dataset(HOSPITAL).await;
    client.publish(&dataset, json!({"method": hospital_method()})).await;
    let named = client.request(Method::GET, "/v1/datasets").header(HOST, "guardian.example");
    assert_eq!(client.send(named).await.status, 200);
    process.get("/v1/datasets").await.problem(401, "unauthenticated");
    let wrong = format!("{}{}", &token[..token.len() - 1], if token.ends_with('0') { '1' } else { '0' });
    process.with_token(&wrong).get("/v1/datasets").await.problem(401, "unauthenticated");
    let basic = process.request(Method::GET, "/v1/datasets").header(AUTHORIZATION, format!("Basic {token}"));
    process.send(basic).await.problem(401, "unauthenticated");
    // a page of another site has no token; a program that sends one may say where it comes from
    let foreign = |client: &Client| client.request(Method::GET, "/v1/datasets").header(ORIGIN, "https://example.com");
    process.send(foreign(&process)).await.problem(403, "foreign-origin");
    let answer = client.send(foreign(&client)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), "");

    // the embedded store belongs to the service
    let (code, _, said) = keys(&data, &["list"]);
    assert_eq!(code, Some(4));
    assert!(said.contains("another process"), "{said}");
    assert!(process.terminate().success());
    let log = process.log();
    let secret = token.rsplit('_').next().unwrap();
    assert!(log.contains("/v1/datasets"), "it was listened to");
    assert!(!log.contains(secret) && !log.contains(&wrong), "a token in the log");

    // another start makes no other key
    let before = fs::read_to_string(&file).unwrap();
    let again = Process::serve_with(&data, "info", &options);
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    assert_eq!(again.with_token(&token).get("/v1/datasets").await.status, 200);
    drop(again);
    // that of another store leaves this one's where it can be found, and a file that holds something else alone
    let other = Process::serve_with(&home.path().join("new"), "info", &options);
    let mine = fs::read_to_string(&file).unwrap();
    assert_eq!(other.with_token(mine.trim()).get("/v1/datasets").await.status, 200);
    other.with_token(&token).get("/v1/datasets").await.problem(401, "unauthenticated");
    drop(other);
    let files = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    assert!(files.map(|path| fs::read_to_string(path).unwrap()).any(|text| text == before));
    fs::write(&file, "something else").unwrap();
    let output = run(guardian().args(["serve"]).args(options).arg("--data").arg(home.path().join("third")));
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(fs::read_to_string(&file).unwrap(), "something else");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_made_listed_and_revoked_by_command() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let (code, token, said) =
        keys(&data, &["create", "--tenant", "north", "--name", "load", "--preset", "pipeline", "--expires", "P30D"]);
    assert_eq!(code, Some(0), "{said}");
    let token = token.strip_suffix('\n').unwrap();
    assert!(token.starts_with("gk_") && !token.contains(char::is_whitespace) && !said.contains(token));
    let (code, ..) = keys(&data, &["create", "--name", "read", "--scopes", "releases:read jobs"]);
    assert_eq!(code, Some(0));
    for wrong in [
        &["create", "--name", "x"][..],
        &["create", "--name", "x", "--preset", "king"],
        &["create", "--name", "x", "--scopes", "everything"],
        &["create", "--name", "x", "--scopes", ""],
        &["create", "--name", "x", "--preset", "admin", "--expires", "P1Y"],
        &["create", "--name", "", "--preset", "admin"],
        &["create", "--name", "x", "--tenant", "a\tb", "--preset", "admin"],
        &["create", "--name", "x", "--tenant", "../a", "--preset", "admin"],
        &["create", "--name", "x", "--tenant", "", "--preset", "admin"],
        &["revoke", "x"],
        &["revoke", "018f0000-0000-7000-8000-000000000000"],
    ] {
        assert_eq!(keys(&data, wrong).0, Some(2), "{wrong:?}");
    }
    let (_, all, _) = keys(&data, &["list"]);
    assert_eq!(all.lines().count(), 2, "{all}");
    assert!(!all.contains(token.rsplit('_').next().unwrap()));
    let (_, listed, _) = keys(&data, &["list", "--tenant", "north"]);
    let fields: Vec<_> = listed.trim_end().split('\t').collect();
    assert_eq!(fields[1..5], ["valid", "north", "load", "datasets:write jobs releases:read"]);
    let ring = ApiKeyAdmin::open(&StoreOptions::default(), &data).await.unwrap();
    let (tenant, name) = ("past".to_owned(), "x".to_owned());
    let past = NewKey {
        tenant,
        name,
        scopes: Preset::Analyst.scopes(),
        lifetime: Some(Duration::ZERO),
        populations: Vec::new(),
    };
    ring.create(past).await.unwrap();
    ring.close().await;
    let (_, past, _) = keys(&data, &["list", "--tenant", "past"]);
    assert_eq!(past.trim_end().split('\t').nth(1), Some("expired"));

    let options = ["--listen", "127.0.0.1:0", "--auth", "keys"];
    let process = Process::serve_with(&data, "info", &options);
    assert_eq!(process.with_token(token).get("/v1/datasets").await.status, 200);
    drop(process);
    let (code, said, _) = keys(&data, &["revoke", fields[0]]);
    assert_eq!(code, Some(0));
    assert!(said.contains("\trevoked\t"), "{said}");
    let process = Process::serve_with(&data, "info", &options);
    process.with_token(token).get("/v1/datasets").await.problem(401, "unauthenticated");
}
