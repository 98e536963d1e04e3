//! A service over a faulty store, and a careful client that goes all the way: upload, plan, job, approval, reading, purge.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use guardian::api;
use guardian::api::{App, AuthMethods, ConcurrencyLimit, ConcurrencyLimits, Gateway, Readiness, RenderingCache};
use guardian::app::{AppService, ReleaseKeySource};
use guardian::clock::Clock;
use guardian::inputs::{Engines, KeptReadings, MemoryBudget};
use guardian::jobs::{Publisher, WorkerConfig, Workers, WorkersHandle};
use guardian::microdata::formats::IngestLimits;
use guardian::ports::{Notifier, SharedStore};
use guardian::vault::Vault;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::faulty::{Faults, Faulty, How};
use crate::ledger::republished::{job_under, of_persons};
use crate::methods::manifest_figures::sha256;
use crate::support::harness::{HOSPITAL, assert_problem, hospital_method, kind, text};
use crate::support::nights::csv;

/// A service in this process, without a listener.
pub(super) struct Bench {
    router: Router,
    workers: WorkersHandle,
    /// Without faults.
    store: SharedStore,
    pub(super) faults: Arc<Faults>,
}

impl Bench {
    pub(super) fn start(store: SharedStore, faults: Arc<Faults>) -> Self {
        let faulty: SharedStore = Arc::new(Faulty { store: Arc::clone(&store), faults: Arc::clone(&faults) });
        let (clock, signals, vault) =
            (Clock::system(), Arc::<Notifier>::default(), Arc::new(Vault::in_memory().unwrap()));
        let (budget, limits) = (MemoryBudget::new(None), IngestLimits::default());
        let runner = Arc::new(Publisher {
            vault: Arc::clone(&vault),
            clock: clock.clone(),
            budget: budget.clone(),
            limits: limits.clone(),
            readings: KeptReadings::default(),
            spool: std::env::temp_dir(),
            engines: Engines::default(),
        });
        // a job whose claim got lost is soon found again; on a busy machine that may happen to others too
        let config = WorkerConfig {
            lease: Duration::from_millis(600),
            tick: Duration::from_millis(20),
            poll: Duration::from_millis(20),
            max_attempts: 100,
            grace: Duration::ZERO,
            ..WorkerConfig::default()
        };
        let workers = Workers {
            store: Arc::clone(&faulty),
            clock: clock.clone(),
            runner,
            vault: Arc::clone(&vault),
            signals: Arc::clone(&signals),
            config,
        };
        let workers = workers.start();
        let readiness = Readiness { store: Arc::clone(&faulty), draining: CancellationToken::new() };
        let keys: ReleaseKeySource = Arc::new(Vault::fresh_secret);
        let service = AppService {
            store: faulty,
            vault,
            clock,
            signals,
            keys,
            max_queued_jobs: 100,
            budget,
            limits: limits.clone(),
            readings: KeptReadings::default(),
            spool: std::env::temp_dir(),
            engines: Engines::default(),
        };
        let router = api::router(App {
            service,
            limits,
            spool: std::env::temp_dir().into(),
            max_upload_bytes: 1 << 20,
            uploads: ConcurrencyLimit::new("uploads", 4),
            sources: None,
            links: None,
            plans: ConcurrencyLimit::new("plans", 4),
            bounds: ConcurrencyLimits {
                min_bytes: 1,
                requests: ConcurrencyLimit::new("requests", 64),
                waiting: ConcurrencyLimit::new("waiting callers", 64),
                downloads: ConcurrencyLimit::new("downloads", 64),
                max_document_bytes: 1 << 20,
                idle: Duration::from_secs(60),
                upload: Duration::from_secs(60),
            },
            renderings: RenderingCache::new(
                std::env::temp_dir().into(),
                1 << 20,
                ConcurrencyLimit::new("renderings", 4),
            ),
            accepts: AuthMethods::default(),
            readiness,
            gateway: Gateway::default(),
        });
        Self { router, workers, store, faults }
    }

    pub(super) async fn stop(self) {
        self.workers.shutdown().await;
    }

    /// One request; what is answered is proper, whatever it is. `None` when the answer broke off.
    async fn send(&self, method: &str, path: &str, key: Option<&str>, body: &Sent) -> Option<Answer> {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let body = match body {
            Sent::Nothing => Body::empty(),
            Sent::Csv(csv) => {
                request = request.header("content-type", "text/csv");
                Body::from(*csv)
            }
            Sent::Json(document) => {
                request = request.header("content-type", "application/json");
                Body::from(document.to_string())
            }
        };
        let response = self.router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let retry_after = response.headers().contains_key("retry-after");
        let body = to_bytes(response.into_body(), 1 << 24).await.ok()?.to_vec();
        let answer = Answer { status, body };
        if status >= 400 {
            let problem = answer.json();
            assert_problem(&problem);
            assert_eq!(retry_after, status == 503 || (status == 409 && retry_after), "{problem:#}");
            let how = self.faults.how();
            let own = status == 409 || status == 410;
            assert!(
                own || (self.faults.fired() && Some(status) == how.map(How::status)),
                "{method} {path}: {problem:#}"
            );
        }
        Some(answer)
    }

    /// Repeats a request until it is answered something else than that it may be tried again.
    async fn persist(&self, method: &str, path: &str, key: Option<&str>, body: Sent) -> Answer {
        for _ in 0..200 {
            match self.send(method, path, key, &body).await {
                Some(answer) if ![500, 503, 507].contains(&answer.status) && !answer.is_under_way() => return answer,
                _ => self.assert_nothing_half_made().await,
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{method} {path} is refused for ever");
    }

    /// Repeats a request until it is done.
    async fn insist(&self, method: &str, path: &str, key: Option<&str>, body: &Sent) -> Value {
        for _ in 0..500 {
            match self.send(method, path, key, body).await {
                Some(answer) if answer.status < 300 => return answer.json(),
                Some(answer) => assert!(answer.status == 503 || answer.is_under_way(), "{:#}", answer.json()),
                None => {}
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{method} {path} is refused for ever");
    }

    async fn get(&self, path: &str) -> Answer {
        self.persist("GET", path, None, Sent::Nothing).await
    }

    async fn items(&self, path: &str) -> Vec<Value> {
        self.get(path).await.json()["items"].as_array().unwrap().clone()
    }

    /// What is there is there as a whole: asked of the store without faults.
    async fn assert_nothing_half_made(&self) {
        let datasets = self.store.datasets("default", None, 10).await.unwrap().items;
        assert!(datasets.len() <= 1);
        for dataset in datasets.iter().filter(|dataset| dataset.purged_at.is_none()) {
            for column in 0..6 {
                assert!(self.store.get_column_chunk(dataset.id, 0, column).await.unwrap().is_some());
            }
        }
        for listed in self.store.releases("default", &Default::default(), None, 10).await.unwrap().items {
            let release = self.store.release("default", listed.id).await.unwrap().unwrap();
            for table in release.manifest["tables"].as_array().unwrap() {
                for part in table["parts"].as_array().unwrap() {
                    let file = text(&part["file"]);
                    let chunk = self.store.part_chunk("default", release.job, release.attempt, &file, 0).await.unwrap();
                    let csv = guardian::inputs::decompress(&chunk.unwrap().payload).unwrap();
                    assert_eq!(sha256(&csv), text(&part["sha256"]));
                }
            }
        }
    }
}

enum Sent {
    Nothing,
    Csv(&'static str),
    Json(Value),
}

struct Answer {
    status: u16,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Whether the first request with the same key still runs.
    fn is_under_way(&self) -> bool {
        self.status == 409 && self.json()["detail"].as_str().unwrap().contains("Idempotency-Key")
    }

    #[track_caller]
    fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }
}

/// Submits, and waits for the end; a job that the fault ended is submitted anew, as another one.
async fn published(bench: &Bench, document: &Value) -> Value {
    for key in ["job-1", "job-2"] {
        let job = bench.persist("POST", "/v1/jobs", Some(key), Sent::Json(document.clone())).await.ok(202);
        let path = text(&job["links"]["self"]);
        let again = bench.persist("POST", "/v1/jobs", Some(key), Sent::Json(document.clone())).await.ok(202);
        assert_eq!(again["id"], job["id"], "one key, one job");
        let ended = loop {
            let job = bench.get(&format!("{path}?wait=1")).await.ok(200);
            if job["finished_at"] != Value::Null {
                break job;
            }
        };
        if ended["status"] == "succeeded" {
            return ended;
        }
        // what the caller could not help, and what trying again does not mend
        assert_eq!(ended["status"], "failed");
        let how = bench.faults.how().unwrap();
        assert!(how != How::Unavailable && bench.faults.fired(), "{:#}", ended["problem"]);
        assert_problem(&ended["problem"]);
        let expected = if how == How::Full { "storage-full" } else { "internal" };
        assert_eq!(kind(&ended["problem"]), expected);
    }
    panic!("one fault ended two jobs");
}

/// The whole way of a table.
pub(super) async fn flow(bench: &Bench) {
    let dataset =
        bench.persist("POST", "/v1/datasets?name=hospital", Some("upload-1"), Sent::Csv(HOSPITAL)).await.ok(201);
    let again =
        bench.persist("POST", "/v1/datasets?name=hospital", Some("upload-1"), Sent::Csv(HOSPITAL)).await.ok(201);
    assert_eq!(again["id"], dataset["id"], "one key, one dataset");
    let document = json!({"dataset": dataset["id"], "method": hospital_method(), "hold": true});
    let plan = bench.persist("POST", "/v1/plans", None, Sent::Json(document.clone())).await.ok(200);
    assert_eq!(plan["feasible"], true);
    let job = published(bench, &document).await;

    let release = format!("/v1/releases/{}", text(&job["release"]));
    let held = read(bench, &release).await;
    assert_eq!(held, "held");
    let approved = bench.persist("POST", &format!("{release}/approve"), None, Sent::Json(json!({"reason": "x"}))).await;
    assert!(approved.status == 200 || (approved.status == 409 && bench.faults.fired()));
    assert_eq!(read(bench, &release).await, "published");
    assert_eq!(bench.get(&format!("{release}/archive")).await.status, 200);

    assert_eq!(bench.items("/v1/datasets").await.len(), 1);
    assert_eq!(bench.items("/v1/releases").await.len(), 1);
    let jobs = bench.items("/v1/jobs").await;
    assert_eq!(jobs.iter().filter(|job| job["status"] == "succeeded").count(), 1);
    assert!(jobs.iter().all(|job| job["finished_at"] != Value::Null));

    let path = format!("/v1/datasets/{}", text(&dataset["id"]));
    let purged = bench.persist("DELETE", &path, None, Sent::Nothing).await;
    assert!(purged.status == 200 || (purged.status == 410 && bench.faults.fired()));
    let gone = bench.get(&path).await;
    assert_eq!(gone.status, 410);
    assert_eq!(read(bench, &release).await, "published");
    nothing_is_left_over(bench, &jobs, &text(&dataset["id"])).await;
}

/// Two nights of a population.
pub(super) async fn nights(bench: &Bench) {
    let staff = json!({"person": [{"key_system": "staff", "columns": ["pid"]}], "republication": {"min_newcomers": 6}});
    bench.insist("PUT", "/v1/populations/staff", None, &Sent::Json(staff)).await;
    let mut releases = Vec::new();
    for (number, persons) in [(1, 0..90), (2, 6..120)] {
        let table = Sent::Csv(csv(&of_persons(persons)).leak());
        let (upload, job) = (format!("upload-{number}"), format!("job-{number}"));
        let dataset = bench.insist("POST", "/v1/datasets?population=staff", Some(&upload), &table).await;
        let mut document = job_under(3, json!({}));
        document["dataset"] = dataset["id"].clone();
        let mut job = bench.insist("POST", "/v1/jobs", Some(&job), &Sent::Json(document)).await;
        while job["finished_at"] == Value::Null {
            job = bench.insist("GET", &format!("{}?wait=1", text(&job["links"]["self"])), None, &Sent::Nothing).await;
        }
        assert_eq!(job["status"], "succeeded", "{job:#}");
        let release = format!("/v1/releases/{}", text(&job["release"]));
        releases.push(bench.insist("GET", &release, None, &Sent::Nothing).await);
    }
    let night = |release: &Value| release["method_details"]["night"].as_u64().unwrap();
    assert_eq!(releases.iter().map(night).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(bench.items("/v1/releases").await.len(), 2);
    let population = bench.insist("GET", "/v1/populations/staff", None, &Sent::Nothing).await;
    assert_eq!((&population["progress"]["nights"], &population["progress"]["pending"]), (&json!(2), &Value::Null));
    assert_eq!(population["progress"]["release"], releases[1]["id"]);
    // one state is left, of the last night
    bench.store.sweep(Clock::system().now(), Duration::ZERO).await.unwrap();
    let chain = bench.store.chain("default", "staff").await.unwrap().unwrap();
    let state = chain.current.unwrap();
    assert_eq!((state.version, state.release.to_string()), (2, text(&releases[1]["id"])));
    assert!(bench.store.chain_piece(chain.id, &state, 0).await.unwrap().is_some());
}

/// Reads a release in full; its status.
async fn read(bench: &Bench, release: &str) -> String {
    let manifest = bench.get(release).await.ok(200);
    for table in manifest["tables"].as_array().unwrap() {
        for part in table["parts"].as_array().unwrap() {
            let path = format!("{release}/tables/{}/parts/{}", text(&table["name"]), text(&part["name"]));
            assert_eq!(sha256(&bench.get(&path).await.body), text(&part["sha256"]));
            let page = bench.get(&format!("{path}?format=json")).await.ok(200);
            assert_eq!(page["rows"].as_array().unwrap().len() as u64, part["rows"].as_u64().unwrap());
        }
    }
    text(&manifest["status"])
}

/// After a sweep the parts of no attempt but the release's are there, and no rows of the purged dataset.
async fn nothing_is_left_over(bench: &Bench, jobs: &[Value], dataset: &str) {
    let store = &bench.store;
    store.sweep(Clock::system().now(), Duration::ZERO).await.unwrap();
    for column in 0..6 {
        assert_eq!(store.get_column_chunk(dataset.parse().unwrap(), 0, column).await.unwrap(), None);
    }
    let listed = &store.releases("default", &Default::default(), None, 10).await.unwrap().items[0];
    let release = store.release("default", listed.id).await.unwrap().unwrap();
    for job in jobs {
        let id = text(&job["id"]).parse().unwrap();
        for attempt in 1..=job["attempt"].as_u64().unwrap() as u32 {
            let chunk = store.part_chunk("default", id, attempt, "t2.rows.csv", 0).await.unwrap();
            assert_eq!(chunk.is_some(), (id, attempt) == (release.job, release.attempt));
        }
    }
    // every table of the release stands in the ledger once
    let ledger = store.disclosures("default", &release.series, &release.content_hash).await.unwrap();
    let tables = release.manifest["tables"].as_array().unwrap();
    assert_eq!(ledger.entries.len(), tables.len());
}
