//! Examples are run as they stand, against a service in a process of its own, and through a network that loses answers.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::ledger::republished::{five_nights, job_under, shown};
use crate::support::harness::{Client, Process, guardian, run, text};
use crate::support::nights::{Intersection, csv};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A service that asks for keys, with a file for the key of each preset.
fn served(home: &TempDir) -> (Process, impl Fn(&str) -> PathBuf + use<>) {
    let (data, folder) = (home.path().join("data"), home.path().to_owned());
    for preset in ["pipeline", "officer", "admin"] {
        let words = ["keys", "create", "--tenant", "default", "--name", preset, "--preset", preset, "--data"];
        let token = succeeded(&run(guardian().args(words).arg(&data)));
        fs::write(folder.join(preset), token).unwrap();
    }
    let process = Process::serve_with(&data, "info", &["--listen", "127.0.0.1:0", "--auth", "keys"]);
    (process, move |preset| folder.join(preset))
}

fn key_in(file: &Path) -> String {
    fs::read_to_string(file).unwrap().trim().to_owned()
}

/// The Python that has what examples need. Without a package index there is none; a gate does not let that pass.
pub(crate) fn python() -> Option<PathBuf> {
    let made = run(Command::new(root().join("scripts/venv.sh")).stdin(Stdio::null()));
    if made.status.success() {
        return Some(PathBuf::from(String::from_utf8(made.stdout).unwrap().trim()));
    }
    let why = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(std::env::var("CI").is_err(), "no Python with the packages of scripts/requirements.txt: {why}");
    println!("SKIPPED: no Python with the packages of scripts/requirements.txt: {why}");
    None
}

#[track_caller]
pub(crate) fn succeeded(output: &Output) -> String {
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{said}", output.status);
    out.into_owned()
}

/// Stands between a client and a service: of every two requests, the first does its work and its answer is lost.
struct Lossy {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Lossy {
    async fn before(service: &Client) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let state = (service.base.clone(), reqwest::Client::builder().no_proxy().build().unwrap(), Arc::clone(&asked));
        let routes = axum::Router::new().fallback(Self::pass).with_state(state);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { address, asked }
    }

    async fn pass(
        State((base, http, asked)): State<(String, reqwest::Client, Arc<AtomicUsize>)>,
        request: Request,
    ) -> Response {
        // a stream of events is not repeated: its client reads the job afterwards
        let lost = !request.uri().path().ends_with("/events") && asked.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 1 << 24).await.unwrap();
        let mut headers = head.headers;
        headers.remove("host");
        let answer = http.request(head.method, format!("{base}{}", head.uri)).headers(headers).body(body);
        let answer = answer.send().await.unwrap();
        let mut response = Response::builder().status(answer.status());
        if lost {
            // alternately what a busy service says, and what a gateway says
            return response.status(503).header("retry-after", "0").body(Body::from("lost")).unwrap();
        }
        for (name, value) in answer.headers().iter().filter(|(name, _)| *name != "transfer-encoding") {
            response = response.header(name, value);
        }
        response.body(Body::from(answer.bytes().await.unwrap())).unwrap()
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Every part of a downloaded release is what its manifest says, and there as Parquet too.
fn assert_downloaded(folder: &Path) {
    let manifest: Value = serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    let mut parts = 0;
    for part in manifest["tables"].as_array().unwrap().iter().flat_map(|table| table["parts"].as_array().unwrap()) {
        let file = part["file"].as_str().unwrap();
        let hash: String =
            Sha256::digest(fs::read(folder.join(file)).unwrap()).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(part["sha256"], hash, "{file}");
        assert!(fs::read(folder.join(file).with_extension("parquet")).unwrap().starts_with(b"PAR1"), "{file}");
        parts += 1;
    }
    assert_eq!(parts, 3);
}

/// However many answers were lost, one of each was made.
async fn assert_made_once(service: &Client) {
    for list in ["/v1/datasets", "/v1/jobs", "/v1/releases"] {
        assert_eq!(service.items(list).await.len(), 1, "{list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_goes_through_a_network_that_loses_answers() {
    let home = tempfile::tempdir().unwrap();
    let (process, file_of) = served(&home);
    let lossy = Lossy::before(&process).await;
    let session = |job: PathBuf| {
        let mut session = Command::new(root().join("examples/session.sh"));
        session.arg(root().join("examples/data/hospital.csv")).arg(job).arg(home.path().join("release"));
        session.env("GUARDIAN_URL", lossy.url()).env("GUARDIAN_KEY", key_in(&file_of("pipeline")));
        session.env("OFFICER_KEY", key_in(&file_of("officer"))).current_dir(home.path());
        tokio::task::spawn_blocking(move || run(&mut session))
    };
    let said = succeeded(&session(root().join("examples/hospital.json")).await.unwrap());
    for line in ["age, icd9 -> race: kept, l up to 2", "succeeded", "the release is published", "t2.rows.csv: 6 rows"] {
        assert!(said.contains(line), "{line} is not in\n{said}");
    }
    assert_downloaded(&home.path().join("release"));
    assert!(fs::read(home.path().join("release/release.zip")).unwrap().starts_with(b"PK"));
    let service = process.with_token(&key_in(&file_of("officer")));
    assert_made_once(&service).await;
    succeeded(&session(root().join("examples/hospital.json")).await.unwrap());
    assert_made_once(&service).await;

    let bad = home.path().join("bad.json");
    let method =
        json!({"type": "versatile", "rules": ["age -> nobody"], "default_guarantee": {"type": "l_diversity", "l": 2}});
    fs::write(&bad, json!({"method": method}).to_string()).unwrap();
    let refused = session(bad).await.unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && said.contains("/method/rules/0: the dataset has no attribute nobody"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pipeline_goes_through_a_network_that_loses_answers() {
    let Some(python) = python() else { return };
    let home = tempfile::tempdir().unwrap();
    let (process, file_of) = served(&home);
    let lossy = Lossy::before(&process).await;
    let pipeline = |job: PathBuf| {
        let mut pipeline = Command::new(&python);
        pipeline.arg(root().join("examples/pipeline.py")).args(["--url", &lossy.url(), "--table"]);
        pipeline.arg(root().join("examples/data/hospital.csv")).arg("--job").arg(job);
        pipeline
            .args(["--accept", "same_dataset_only", "--out"])
            .arg(home.path().join("out"))
            .env("GUARDIAN_KEY", key_in(&file_of("pipeline")));
        tokio::task::spawn_blocking(move || run(&mut pipeline))
    };
    let said = succeeded(&pipeline(root().join("examples/hospital.json")).await.unwrap());
    assert!(said.contains("t1: 6 rows, 4 columns") && said.contains("t2: 6 rows, 2 columns"), "{said}");
    assert_downloaded(&home.path().join("out"));
    assert_made_once(&process.with_token(&key_in(&file_of("pipeline")))).await;

    let bad = home.path().join("bad.json");
    let method =
        json!({"type": "versatile", "rules": ["age -> nobody"], "default_guarantee": {"type": "l_diversity", "l": 2}});
    fs::write(&bad, json!({"method": method}).to_string()).unwrap();
    let refused = pipeline(bad).await.unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("/method/rules/0: the dataset has no attribute nobody"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_are_read_by_pandas_and_pyarrow() {
    let Some(python) = python() else { return };
    let home = tempfile::tempdir().unwrap();
    let process = Process::serve(&home.path().join("data"), "info");
    let said = succeeded(&run(Command::new(python).arg(root().join("tests/python/parts.py")).arg(&process.base)));
    assert!(said.contains("as they were written"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generated_client_drives_the_service() {
    if python().is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let (process, file_of) = served(&home);
    // the second time, the store is not empty
    for _ in 0..2 {
        let mut client = Command::new(root().join("scripts/generated_client.sh"));
        let said = succeeded(&run(client.arg(&process.base).arg(file_of("admin"))));
        assert!(said.contains("the generated client works"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_publishes_frames() {
    if python().is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let (process, file_of) = served(&home);
    let mut client = Command::new(root().join("clients/python/test.sh"));
    let said = succeeded(&run(client.arg(&process.base).arg(file_of("pipeline")).arg(file_of("admin"))));
    assert!(said.contains("the Python client works"), "{said}");
}

/// What cron runs every night, and again when it did not end well.
#[tokio::test(flavor = "multi_thread")]
async fn a_night_is_published_once() {
    let home = tempfile::tempdir().unwrap();
    let (process, file_of) = served(&home);
    let lossy = Lossy::before(&process).await;
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("exports")).unwrap();
    let nights = ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05"];
    for (night, table) in nights.iter().zip(five_nights()) {
        fs::write(at("exports").join(format!("{night}.csv")), csv(&table)).unwrap();
    }
    let good = at("good.json");
    let mut job = job_under(3, json!({}));
    job.as_object_mut().unwrap().remove("republish");
    fs::write(&good, job.to_string()).unwrap();
    let environment = |job: &Path, url: &str| {
        let lines = [
            format!("GUARDIAN_URL={url}"),
            format!("KEY_FILE={}", file_of("pipeline").display()),
            format!("EXPORTS={}", at("exports").display()),
            "POPULATION=staff".to_owned(),
            format!("JOB={}", job.display()),
            format!("RELEASES={}", at("releases").display()),
        ];
        fs::write(at("nightly.env"), lines.join("\n")).unwrap();
    };
    let nightly = |before: &[&str], night: &str| {
        let script = root().join("examples/nightly.sh");
        let words: Vec<&str> =
            before.iter().copied().chain(["sh", script.to_str().unwrap(), "nightly.env", night]).collect();
        let mut nightly = Command::new(words[0]);
        nightly.args(&words[1..]).current_dir(home.path()).env("TRIES", "3");
        tokio::task::spawn_blocking(move || {
            let output = run(&mut nightly);
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        })
    };
    environment(&good, &lossy.url());
    // a typing error is found before anything is sent
    let (status, said) = nightly(&[], "2026-03-01").await.unwrap();
    assert!(status == Some(65) && said.contains("the population is unknown"), "{status:?} {said}");
    let officer = process.with_token(&key_in(&file_of("officer")));
    let key = json!([{"key_system": "staff", "columns": ["pid"]}]);
    let staff = json!({"description": "staff", "person": key, "republication": {"min_newcomers": 6}});
    officer.put("/v1/populations/staff", &staff).await.ok(201);
    assert_eq!(nightly(&[], "2026-03-01").await.unwrap(), (Some(0), String::new()));
    let archive = at("releases").join("2026-03-01.zip");
    assert!(fs::read(&archive).unwrap().starts_with(b"PK"));
    let service = process.with_token(&key_in(&file_of("pipeline")));
    assert_made_once(&service).await;

    // again: nothing is asked
    let asked = lossy.asked.load(Ordering::SeqCst);
    assert_eq!(nightly(&[], "2026-03-01").await.unwrap(), (Some(0), String::new()));
    assert_eq!(lossy.asked.load(Ordering::SeqCst), asked);
    // the archive was lost: nothing is made again
    fs::remove_file(&archive).unwrap();
    assert_eq!(nightly(&[], "2026-03-01").await.unwrap().0, Some(0));
    assert!(archive.exists());
    assert_made_once(&service).await;

    let lock = at("releases").join(".lock");
    let (status, said) = nightly(&["flock", lock.to_str().unwrap()], "2026-03-02").await.unwrap();
    assert!(status == Some(75) && said.contains("another run is under way"), "{status:?} {said}");
    let (status, said) = nightly(&[], "2026-03-06").await.unwrap();
    assert!(status == Some(66) && said.contains("2026-03-06.csv"), "{status:?} {said}");
    let bad = at("bad.json");
    let mut job = job_under(3, json!({}));
    job["method"]["sensitive"] = "nobody".into();
    fs::write(&bad, job.to_string()).unwrap();
    environment(&bad, &lossy.url());
    let (status, said) = nightly(&[], "2026-03-02").await.unwrap();
    assert!(status == Some(65) && said.contains("the dataset has no attribute nobody"), "{status:?} {said}");
    environment(&bad, "http://127.0.0.1:9");
    let (status, said) = nightly(&[], "2026-03-02").await.unwrap();
    assert!(status == Some(69) && said.contains("127.0.0.1"), "{status:?} {said}");
    let left: Vec<_> = fs::read_dir(at("releases")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "only the archive and the lock: {left:?}");

    // everybody is shown every night, and who intersects all nights learns no more than from one
    environment(&good, &lossy.url());
    for night in &nights[1..] {
        assert_eq!(nightly(&[], night).await.unwrap(), (Some(0), String::new()), "{night}");
        assert!(at("releases").join(format!("{night}.zip")).exists(), "{night}");
    }
    let (mut attacker, mut rows) = (Intersection::default(), Vec::new());
    for release in service.items("/v1/releases").await {
        let release = service.get(&format!("/v1/releases/{}", text(&release["id"]))).await.ok(200);
        assert_eq!(release["composition"], "enforced");
        let shown = shown(&service, &release).await;
        rows.push(shown.len());
        attacker.add(&shown);
    }
    rows.reverse();
    assert_eq!(rows.len(), nights.len());
    assert!(rows.iter().all(|rows| *rows > 200), "{rows:?}");
    assert!(attacker.persons() > 300);
    assert_eq!(attacker.above(3), 0);
}
