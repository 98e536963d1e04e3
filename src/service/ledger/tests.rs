//! Releases of one store restrict releases of another after an import.

use std::io::Seek;
use std::net::SocketAddr;

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use clap::Parser;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;
use crate::config::Config;
use crate::ports::CHAIN_PIECE_BYTES;
use crate::publication::ReleaseStatus;
use crate::service::Service;
use crate::store::conformance::{chains, people};
use crate::store::postgres::tests::{TestDatabase, database};
use crate::vault::MasterKey;

const HOSPITAL: &str = include_str!("../../../examples/data/hospital.csv");

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    config: Config,
}

/// The ledger of a store as a file.
async fn exported(from: &Config, tenant: Option<&str>) -> String {
    let mut file = Vec::new();
    export(&from.store, &from.data, tenant.map(str::to_owned), &mut file).await.unwrap();
    String::from_utf8(file).unwrap()
}

/// A file with this in it.
fn kept(text: &str) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    file
}

/// A store of its own, with the master key of the first.
fn config(data: &Path, store: &str, key: &Path) -> Config {
    let line = ["guardian", "--store", store, "--grace-seconds", "1"];
    let paths = ["--data".into(), data.as_os_str().to_owned(), "--master-key".into(), key.as_os_str().to_owned()];
    let config = Line::try_parse_from(line.map(Into::into).into_iter().chain(paths)).unwrap().config;
    Config { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..config }
}

/// Calls a service: its status and its document.
async fn call(service: &Service, method: &str, path: &str, kind: &str, body: String) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
    let request = request.header(header::CONTENT_TYPE, kind).body(Body::from(body)).unwrap();
    let response = service.router().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap())
}

/// The hospital's dataset.
async fn upload(service: &Service) -> Value {
    let (status, dataset) = call(service, "POST", "/v1/datasets?name=h", "text/csv", HOSPITAL.into()).await;
    assert_eq!(status, 201, "{dataset}");
    dataset["id"].clone()
}

async fn submit(service: &Service, dataset: &Value, mut document: Value) -> (u16, Value) {
    document["dataset"] = dataset.clone();
    call(service, "POST", "/v1/jobs?wait=60", "application/json", document.to_string()).await
}

/// A job that has ended.
async fn job(service: &Service, dataset: &Value, document: Value) -> Value {
    let (status, job) = submit(service, dataset, document).await;
    assert_eq!(status, 200, "{job}");
    job
}

fn guarded() -> Value {
    json!({"method": {"type": "versatile", "algorithm": "uad",
        "rules": ["age, icd9 -> race", "gender, icd9 -> zipcode", "hospital, race -> zipcode"],
        "default_guarantee": {"type": "l_diversity", "l": 2}}})
}

fn plain(attributes: &[&str]) -> Value {
    let publish: serde_json::Map<_, _> =
        attributes.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    json!({"unlisted": "drop", "attributes": publish, "no_rules_reason": "asked for", "method": {"type": "versatile", "rules": []}})
}

/// Publishes in a store, carries its ledger to another, and asks there for what must not be.
async fn carried(from: &Config, to: &Config) {
    let service = Service::start(from).await.unwrap();
    let home = service.store_id();
    let dataset = upload(&service).await;
    let made = job(&service, &dataset, guarded()).await;
    let open = job(&service, &dataset, plain(&["gender", "hospital"])).await;
    assert_eq!((&made["status"], &open["status"]), (&json!("succeeded"), &json!("succeeded")));
    let (made, open) = (made["release"].clone(), open["release"].clone());
    let (status, _) = call(
        &service,
        "POST",
        &format!("/v1/releases/{}/withdraw", open.as_str().unwrap()),
        "application/json",
        json!({"reason": "over"}).to_string(),
    )
    .await;
    assert_eq!(status, 200);
    service.shutdown().await;

    let file = exported(from, None).await;
    assert!(file.contains(&home.to_string()));
    let import = async |to: &Config, text: &str| import(&to.store, &to.data, kept(text)).await;
    // cut, or of another key: refused before there is a store
    let ends = file.match_indices('\n').map(|(at, _)| at);
    for end in ends.flat_map(|end| [end / 2, end, end + 1]).filter(|end| *end < file.len()) {
        assert!(matches!(import(to, &file[..end]).await, Err(LedgerError::File(_))), "cut at {end}");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let other_key = elsewhere.path().join("master.key");
    let unknown = config(&elsewhere.path().join("data"), "embedded", &other_key);
    assert!(matches!(import(&unknown, &file).await, Err(LedgerError::NoKey(_))));
    assert!(!other_key.exists());
    MasterKey::open(&other_key).unwrap();
    let refused = import(&unknown, &file).await;
    assert!(matches!(refused, Err(LedgerError::OtherKey { store }) if store == home));
    assert!(!unknown.data.exists(), "nothing was made");

    let done = import(to, &file).await.unwrap();
    assert_eq!((done.releases, done.advanced), (2, 0));
    assert!(done.disclosures >= 3 && done.rules == 3, "{done:?}");
    assert_eq!(import(to, &file).await.unwrap(), ImportSummary::default());
    let again = exported(to, None).await;
    let entries = |file: &str| {
        let mut lines: Vec<String> = file.lines().skip(1).map(str::to_owned).collect();
        lines.pop();
        lines
    };
    assert_eq!(entries(&again), entries(&file), "it can be carried on");
    assert_eq!(entries(&exported(to, Some("none")).await), [] as [String; 0]);

    let service = Service::start(to).await.unwrap();
    assert_ne!(service.store_id(), home);
    let dataset = upload(&service).await;
    let kind = |job: &Value| job["problem"]["type"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    // raw race with raw age reaches the attribute that the first release protects
    let violating = job(&service, &dataset, plain(&["age", "race"])).await;
    assert_eq!((&violating["status"], kind(&violating).as_str()), (&json!("refused"), "composition-violated"));
    assert_eq!(violating["problem"]["release"], made);
    // the releases of equal jobs are not here to be given
    for (document, release) in [(guarded(), &made), (plain(&["gender", "hospital"]), &open)] {
        let (status, equal) = submit(&service, &dataset, document).await;
        assert_eq!((status, &equal["release"]), (410, release), "{equal}");
        assert!(equal["type"].as_str().unwrap().ends_with("/gone"));
        let path = format!("/v1/releases/{}", release.as_str().unwrap());
        assert_eq!(call(&service, "GET", &path, "application/json", String::new()).await.0, 410);
        let path = format!("{path}/withdraw");
        let reason = json!({"reason": "over"}).to_string();
        assert_eq!(call(&service, "POST", &path, "application/json", reason).await.0, 410);
    }
    assert_eq!(call(&service, "GET", "/v1/releases", "application/json", String::new()).await.1["items"], json!([]));
    // tables that compose with them are publishable here too
    let compatible = job(&service, &dataset, plain(&["gender"])).await;
    assert_eq!(compatible["status"], "succeeded", "{compatible}");
    service.shutdown().await;
}

async fn between(from: &str, to: &str) {
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("master.key");
    carried(&config(&home.path().join("a"), from, &key), &config(&home.path().join("b"), to, &key)).await;
}

/// In the middle of a series: the other store goes on from the state that the file carries.
async fn chain_between(from: &str, to: &str) {
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("master.key");
    let (from, to) = (config(&home.path().join("a"), from, &key), config(&home.path().join("b"), to, &key));
    let state = vec![7; CHAIN_PIECE_BYTES + 1];
    let store = open_store(&from.store, &from.data).await.unwrap();
    let opened = vault::open(store.shared().as_ref(), &from.store.master_key(&from.data).unwrap()).await.unwrap();
    people::define(&*store.shared(), "clinic", &["k"]).await;
    let chain = chains::load(&*store.shared(), &opened, false).await.unwrap();
    chains::next(&*store.shared(), 1, &chain, &state, ReleaseStatus::Published).await;
    store.close().await;
    drop(store);

    let file = exported(&from, None).await;
    let short: String =
        file.lines().filter(|line| !line.contains("\"piece\":1")).map(|line| format!("{line}\n")).collect();
    assert!(matches!(import(&to.store, &to.data, kept(&short)).await, Err(LedgerError::File(_))), "half a state");
    assert_eq!(import(&to.store, &to.data, kept(&file)).await.unwrap().chains, 1);
    let store = open_store(&to.store, &to.data).await.unwrap();
    let opened = vault::open(store.shared().as_ref(), &to.store.master_key(&to.data).unwrap()).await.unwrap();
    let chain = chains::load(&*store.shared(), &opened, true).await.unwrap();
    assert_eq!(chain.version(), 1);
    assert!(chain.state() == Some(&state[..]));
    chains::next(&*store.shared(), 2, &chain, b"later", ReleaseStatus::Published).await;
    let chain = chains::load(&*store.shared(), &opened, true).await.unwrap();
    assert_eq!((chain.version(), chain.state()), (2, Some(&b"later"[..])));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_goes_on_in_another_store() {
    chain_between("embedded", "embedded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_goes_on_in_a_database() {
    let database: TestDatabase = database!();
    chain_between("embedded", &database.url()).await;
}

/// People by number, of which two files may have some in common.
fn people(numbers: std::ops::Range<u32>) -> String {
    let row = |n: u32| format!("p{n},a{},d{}\n", n * 7 % 11, n % 5);
    std::iter::once("id,age,dx\n".to_owned()).chain(numbers.map(row)).collect()
}

/// Two processes on one database: of two jobs at once whose people overlap one sees the other, and where they do not none waits.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_race_on_a_series_of_a_database() {
    let database: TestDatabase = database!();
    let home = tempfile::tempdir().unwrap();
    let config = config(home.path(), &database.url(), &home.path().join("master.key"));
    let (a, b) = (Service::start(&config).await.unwrap(), Service::start(&config).await.unwrap());
    let job = json!({"unlisted": "drop", "method": {"type": "versatile", "rules": ["age -> dx"],
        "default_guarantee": {"type": "l_diversity", "l": 2}}});
    let population = json!({"description": "of a test", "person": [{"key_system": "id", "columns": ["id"]}]});
    let (status, defined) = call(&a, "PUT", "/v1/populations/people", "application/json", population.to_string()).await;
    assert_eq!(status, 201, "{defined}");
    let uploaded = async |service: &Service, csv: String| {
        let (status, dataset) = call(service, "POST", "/v1/datasets?population=people", "text/csv", csv).await;
        assert_eq!(status, 201, "{dataset}");
        dataset["id"].clone()
    };
    let end = |(status, answer): (u16, Value)| match status {
        200 => answer["status"].as_str().unwrap().to_owned(),
        _ => answer["type"].as_str().unwrap().rsplit('/').next().unwrap().to_owned(),
    };
    for round in 0..6 {
        let (first, distance) = (round * 1000, if round % 2 == 0 { 1 } else { 200 });
        let one = uploaded(&a, people(first..first + 200)).await;
        let other = uploaded(&b, people(first + distance..first + distance + 200)).await;
        let (one, other) = tokio::join!(submit(&a, &one, job.clone()), submit(&b, &other, job.clone()));
        let mut ends = [end(one), end(other)];
        ends.sort_unstable();
        if distance == 1 {
            assert!(ends[1] == "succeeded" && ["refused", "overlapping-people"].contains(&&*ends[0]), "{ends:?}");
        } else {
            assert_eq!(ends, ["succeeded", "succeeded"]);
        }
    }
    a.shutdown().await;
    b.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_goes_from_the_embedded_store_to_a_database() {
    let database: TestDatabase = database!();
    between("embedded", &database.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_goes_from_a_database_to_the_embedded_store() {
    let database: TestDatabase = database!();
    between(&database.url(), "embedded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_goes_from_one_folder_to_another() {
    between("embedded", "embedded").await;
}
