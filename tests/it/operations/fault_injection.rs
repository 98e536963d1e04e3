//! One fault at each call of the store: a call that is refused, and one that is done but whose answer is lost. Whatever call it
//! is, the caller is answered a proper problem or nothing of the fault, nothing half-made is visible, and a careful client that
//! repeats its requests has exactly one dataset, one job and one release in the end.

pub(crate) mod faulty;
pub(crate) mod visit;

use std::path::Path;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::http::Request;
use faulty::{Faults, How, Mode};
use guardian::ports::SharedStore;
use guardian::store::OpenStore;
use serde_json::json;
use tokio::task::JoinSet;
use tower::ServiceExt;
use visit::Bench;

use crate::support::harness::{HOSPITAL, Server, hospital_method, text};
use crate::support::stores::Database;

/// How many of the calls of one method of idle workers are tried.
const FIRST: usize = 1;

/// How many flows run at the same time: they mostly wait.
const AT_ONCE: usize = 4;

/// Which call is to fail, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Injection {
    method: &'static str,
    /// Counted from 1.
    call: usize,
    mode: Mode,
    how: How,
}

/// Every kind of fault.
const FAULTS: [(Mode, How); 4] = [
    (Mode::Refused, How::Unavailable),
    (Mode::AnswerLost, How::Unavailable),
    (Mode::Refused, How::Full),
    (Mode::Refused, How::Corrupt),
];

/// Which of the two faults that a service often meets is tried on SQLite at the first call of a method; Postgres has the other one.
/// The name decides, as idle workers do without a method now and then.
fn often(method: &str) -> usize {
    method.len() % 2
}

/// The injections into a flow without any: of every method each kind of fault at each call, or a sample: [`often`] at the first
/// call, and of every third method another kind there and [`often`] at the last.
fn injections(calls: &[(&'static str, usize)], every_call: bool) -> Vec<Injection> {
    let mut injections = Vec::new();
    for (place, &(method, count)) in calls.iter().enumerate() {
        let (often, other) = (often(method), 2 + place % 2);
        // those of idle workers go on for ever
        let count = if faulty::BACKGROUND.contains(&method) { count.min(FIRST) } else { count };
        for call in 1..=count {
            let is_sampled = |kind: usize| match call {
                1 => kind == often || (place % 3 == 0 && kind == other),
                _ => place % 3 == 1 && call == count && kind == often,
            };
            for (kind, (mode, how)) in FAULTS.into_iter().enumerate() {
                if every_call || is_sampled(kind) {
                    injections.push(Injection { method, call, mode, how });
                }
            }
        }
    }
    injections
}

/// Goes through all injections, some at a time, each on a store of its own.
async fn survives_all<F: Future<Output = (SharedStore, Option<Cleanup>)> + Send + 'static>(
    injections: Vec<Injection>,
    store: impl Fn() -> F,
) {
    let began = Instant::now();
    let (total, mut happened, mut wrong) = (injections.len(), 0, Vec::new());
    let mut waiting = injections.into_iter();
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() < AT_ONCE
            && let Some(injection) = waiting.next()
        {
            let store = store();
            let survived = tokio::spawn(async move {
                let (store, _cleanup) = store.await;
                let faults = Faults::at(injection.method, injection.call, injection.mode, injection.how);
                let bench = Bench::start(store, faults);
                tokio::time::timeout(Duration::from_secs(120), visit::flow(&bench)).await.expect("an end");
                let fired = bench.faults.fired();
                bench.stop().await;
                fired
            });
            under_way.spawn(async move { (injection, survived.await) });
        }
        let Some(ended) = under_way.join_next().await else { break };
        match ended.unwrap() {
            (_, Ok(true)) => happened += 1,
            // workers are free to do without a call
            (injection, Ok(false)) if faulty::BACKGROUND.contains(&injection.method) => {}
            (injection, Ok(false)) => wrong.push(format!("{injection:?} never happened")),
            (injection, Err(panicked)) => wrong.push(format!("{injection:?}: {panicked}")),
        }
    }
    println!("{total} injections, {happened} of them happened, in {:?}", began.elapsed());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(happened > total / 2);
}

/// What a flow without faults calls.
async fn calls_of_a_flow(store: SharedStore) -> Vec<(&'static str, usize)> {
    let bench = Bench::start(store, Faults::none());
    visit::flow(&bench).await;
    let calls = bench.faults.calls();
    bench.stop().await;
    for method in [
        "put_column_chunks",
        "put_evidence",
        "insert_dataset",
        "claim_idempotency_key",
        "enqueue",
        "put_part_chunk",
        "announce_coverage",
        "draw_ticket",
        "commit",
        "transition",
    ] {
        assert!(calls.iter().any(|(called, _)| *called == method), "{method} is not in the flow");
    }
    calls
}

/// What goes with a store.
enum Cleanup {
    Folder { _home: tempfile::TempDir },
    Database { _database: Box<Database> },
}

async fn embedded() -> (SharedStore, Option<Cleanup>) {
    let home = tempfile::tempdir().unwrap();
    let store = OpenStore::open(None, home.path()).await.unwrap().shared();
    (store, Some(Cleanup::Folder { _home: home }))
}

async fn on_postgres(database: Database) -> (SharedStore, Option<Cleanup>) {
    let store = OpenStore::open(Some(&database.url()), Path::new("")).await.unwrap().shared();
    (store, Some(Cleanup::Database { _database: Box::new(database) }))
}

/// A withdrawal truncates running downloads, so that no client takes a piece for the whole.
#[tokio::test(flavor = "multi_thread")]
async fn withdrawal_truncates_running_downloads() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let release = server.publish(&dataset, json!({"method": hospital_method()})).await;
    let path = format!("/v1/releases/{}", text(&release["id"]));
    let mut under_way = Vec::new();
    for rest in ["archive", "tables/t1/parts/qi", "tables/t1/parts/qi?format=ndjson", "tables/t1/parts/sa?view=counts"]
    {
        let request = Request::get(format!("{path}/{rest}")).header("host", "localhost").body(Body::empty()).unwrap();
        let response = server.router().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        under_way.push((rest, response.into_body()));
    }
    server.post(&format!("{path}/withdraw"), &json!({"reason": "x"})).await.ok(200);
    for (rest, body) in under_way {
        assert!(to_bytes(body, 1 << 20).await.is_err(), "{rest} seems complete");
    }
}

fn every_call() -> bool {
    std::env::var("GUARDIAN_TEST_SEEDS").is_ok()
}

/// Also where a worker is lost at the commit, before or after it is done.
#[tokio::test(flavor = "multi_thread")]
async fn nights_go_on_after_a_fault_at_any_step_of_the_chain() {
    let faults_each = if every_call() { 4 } else { 2 };
    let methods = ["chain", "begin_chain", "put_chain_piece", "chain_piece", "draw_ticket", "commit"];
    for (place, method) in methods.into_iter().enumerate() {
        let faults = [(Mode::Refused, 1), (Mode::AnswerLost, 2), (Mode::Refused, 2), (Mode::AnswerLost, 1)];
        // all, or each mode once and each call once
        for (mode, call) in faults.into_iter().skip(if every_call() { 0 } else { place % 2 * 2 }).take(faults_each) {
            let (store, _cleanup) = embedded().await;
            let bench = Bench::start(store, Faults::at(method, call, mode, How::Unavailable));
            tokio::time::timeout(Duration::from_secs(120), visit::nights(&bench)).await.expect("an end");
            // one begins a chain, and one reads its state
            let is_once = ["begin_chain", "chain_piece"].contains(&method) && call == 2;
            assert!(bench.faults.fired() || is_once, "{method} {call}");
            bench.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_fault_at_any_call_is_survived() {
    let (store, _home) = embedded().await;
    let calls = calls_of_a_flow(store).await;
    survives_all(injections(&calls, every_call()), embedded).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_fault_at_any_call_is_survived_on_postgres() {
    let Some(first) = Database::create().await else { return };
    let (store, cleanup) = on_postgres(first).await;
    let calls = calls_of_a_flow(store).await;
    drop(cleanup);
    // the calls themselves are the same as on SQLite: here one fault of each is enough, that which is not tried there
    let is_left = |of: &Injection| of.call == 1 && (of.mode, of.how) == FAULTS[1 - often(of.method)];
    let left = injections(&calls, true).into_iter().filter(|injection| every_call() || is_left(injection));
    let another = || async { on_postgres(Database::create().await.expect("the server is there")).await };
    survives_all(left.collect(), another).await;
}
