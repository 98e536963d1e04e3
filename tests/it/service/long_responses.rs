//! Answers that go on for long end with the key or the token that asked for them, and keys are kept in a shared store.

use std::fs;
use std::path::Path;

use chrono::Utc;
use guardian::config::{Auth, StoreOptions};
use guardian::identity::Preset;
use guardian::service::keys::{ApiKeyAdmin, NewKey};
use reqwest::Method;
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor};

use crate::support::harness::{Client, HOSPITAL, Process, Server, guardian, hospital_method, run, text};
use crate::support::issuer::{Signer, claims, jwks, jwt_options};
use crate::support::stores::Database;

/// A service without workers, so that its jobs wait, and a key of its.
async fn waiting(home: &Path) -> (Server, Signer, String) {
    let (data, file, signer) = (home.join("data"), home.join("jwks.json"), Signer::p256("k"));
    fs::write(&file, jwks(&[signer.jwk()])).unwrap();
    let ring = ApiKeyAdmin::open(&StoreOptions::default(), &data).await.unwrap();
    let (tenant, name) = ("north".to_owned(), "x".to_owned());
    let wanted = NewKey { tenant, name, scopes: Preset::Admin.scopes(), lifetime: None, populations: Vec::new() };
    let token = ring.create(wanted).await.unwrap().1.reveal().to_string();
    ring.close().await;
    let jwt = jwt_options(&file);
    let server = Server::start_with(move |config| {
        (config.data, config.auth, config.jwt, config.workers) = (data, Auth::KeysAndJwt, jwt, 0);
    })
    .await;
    (server, signer, token)
}

async fn queued(client: &Client) -> String {
    let dataset = client.dataset(HOSPITAL).await;
    let document = json!({"dataset": dataset, "method": hospital_method()});
    text(&client.post("/v1/jobs", &document).await.ok(202)["id"])
}

/// Watches and waits for a job that never ends, and sees that both end after `cut`.
async fn ends_after(client: &Client, job: &str, cut: impl AsyncFnOnce()) {
    let path = format!("/v1/jobs/{job}");
    let mut stream = client.request(Method::GET, &format!("{path}/events")).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let first = stream.chunk().await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&first).contains("event: status"));
    let poll = format!("{path}?wait=60");
    let long = client.get(&poll);
    let rest = async {
        cut().await;
        let mut rest = Vec::new();
        while let Some(piece) = stream.chunk().await.unwrap() {
            rest.extend_from_slice(&piece);
        }
        rest
    };
    let (long, rest) = tokio::join!(long, rest);
    long.problem(401, "unauthenticated");
    assert!(!String::from_utf8_lossy(&rest).contains("event:"), "no event comes");
    client.get(&path).await.problem(401, "unauthenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_and_waits_end_with_a_revoked_key() {
    let home = tempfile::tempdir().unwrap();
    let (server, _, token) = waiting(home.path()).await;
    let client = server.with_token(&token);
    let job = queued(&client).await;
    let database = home.path().join("data").join("guardian.db");
    ends_after(&client, &job, async || {
        // the command of the embedded store needs the service to be stopped; another process on a shared one does this
        let mut connection = SqliteConnectOptions::new().filename(database).connect().await.unwrap();
        let revoke = "UPDATE api_keys SET revoked_at = created_at";
        assert_eq!(connection.execute(revoke).await.unwrap().rows_affected(), 1);
        connection.close().await.unwrap();
    })
    .await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_and_waits_end_with_a_token() {
    let home = tempfile::tempdir().unwrap();
    let (server, signer, token) = waiting(home.path()).await;
    let job = queued(&server.with_token(&token)).await;
    // within the leeway, for a few more seconds
    let short = signer.token(&claims(json!({"tenant": "north", "exp": Utc::now().timestamp() - 56})));
    ends_after(&server.with_token(&short), &job, async || {}).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_shared_store_are_made_and_revoked_while_it_serves() {
    let Some(database) = Database::create().await else { return };
    let (home, url) = (tempfile::tempdir().unwrap(), database.url());
    let (data, file) = (home.path().join("data"), home.path().join("first.key"));
    let options =
        ["--listen", "127.0.0.1:0", "--auth", "keys", "--store", &url, "--bootstrap-key-file", file.to_str().unwrap()];
    let process = Process::serve_with(&data, "info", &options);
    let command = |arguments: &[&str]| {
        let output = run(guardian().arg("keys").args(arguments).args(["--store", &url, "--data"]).arg(&data));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        String::from_utf8(output.stdout).unwrap()
    };
    let token = command(&["create", "--tenant", "north", "--name", "x", "--preset", "pipeline"]).trim().to_owned();
    let client = process.with_token(&token);
    assert_eq!(client.get("/v1/datasets").await.status, 200);
    let listed = command(&["list"]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(!listed.contains(token.rsplit('_').next().unwrap()));
    let listed = command(&["list", "--tenant", "north"]);
    let fields: Vec<_> = listed.trim_end().split('\t').collect();
    assert_eq!(fields[1..4], ["valid", "north", "x"]);
    assert!(command(&["revoke", fields[0]]).contains("\trevoked\t"));
    // at once, without a restart
    client.get("/v1/datasets").await.problem(401, "unauthenticated");
    let first = fs::read_to_string(&file).unwrap().trim().to_owned();
    assert_eq!(process.with_token(&first).get("/v1/datasets").await.status, 200);
    drop(process);
}
