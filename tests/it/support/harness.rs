//! A service in this process, or the real binary, and a client that judges every problem it is answered.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;

use guardian::app::ReleaseKeySource;
use guardian::config::{
    Auth, Config, JobLimits, JwtOptions, LogFormat, ObservabilityOptions, PartOptions, QueueOptions, RequestLimits,
    StoreOptions, TableEngineOptions,
};
use guardian::engine::RemoteEngine;
use guardian::inputs::NamedEngines;
use guardian::service::Service;
use guardian::vault::Vault;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Row};
use tempfile::TempDir;

use super::openapi_judge::Asked;

/// Stands in data; no problem and no log may hold it.
pub(crate) const MARKER: &str = "SECRETVALUE";

pub(crate) const HOSPITAL: &str = include_str!("../../../examples/data/hospital.csv");

/// The rules of the hospital example.
pub(crate) fn hospital_method() -> Value {
    json!({"type": "versatile", "algorithm": "uad",
        "rules": ["age, icd9 -> race", "gender, icd9 -> zipcode", "hospital, race -> zipcode"],
        "default_guarantee": {"type": "l_diversity", "l": 2}})
}

/// A method with two-diversity for all of `rules`.
pub(crate) fn versatile(rules: &[&str]) -> Value {
    json!({"type": "versatile", "rules": rules, "default_guarantee": {"type": "l_diversity", "l": 2}})
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) async fn of(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let answer = Self { status, headers, body: response.bytes().await.unwrap().to_vec() };
        if status >= 400 {
            answer.must_be_a_problem();
        }
        answer
    }

    fn must_be_a_problem(&self) {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        assert!(self.status < 500, "{}", self.text());
        let document = self.json();
        assert_problem(&document);
        assert_eq!(document["status"], self.status);
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The document of an expected success.
    #[track_caller]
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }

    /// The document of an expected problem.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, name: &str) -> Value {
        let document = self.json();
        assert_eq!((self.status, kind(&document)), (status, name), "{document:#}");
        document
    }

    /// The one fault of an `invalid-specification`.
    #[track_caller]
    pub(crate) fn fault(&self, pointer: &str, name: &str) -> Value {
        let document = self.problem(422, "invalid-specification");
        let errors = document["errors"].as_array().unwrap();
        let found = errors.iter().find(|fault| fault["pointer"] == pointer && kind(fault) == name);
        found.unwrap_or_else(|| panic!("no {name} at {pointer}: {document:#}")).clone()
    }
}

/// A document with the patch of a remedy.
pub(crate) fn patched(document: &Value, patch: &Value) -> Value {
    let mut document = document.clone();
    let patch: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap();
    json_patch::patch(&mut document, &patch).unwrap_or_else(|error| panic!("{error}: {patch} on {document}"));
    document
}

/// What every problem must be, wherever it stands: as an answer, in a job, on standard error.
#[track_caller]
pub(crate) fn assert_problem(document: &Value) {
    let known = |name: &str| guardian::problem::Kind::ALL.iter().any(|kind| kind.name() == name);
    assert!(known(kind(document)), "{document:#}");
    for member in ["title", "detail", "instance"] {
        assert!(document[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {document:#}");
    }
    assert!(document["instance"].as_str().unwrap().starts_with("urn:uuid:"), "{document:#}");
    assert!(document["status"].is_u64());
    for fault in document["errors"].as_array().into_iter().flatten() {
        assert!(known(kind(fault)) && fault["pointer"].is_string() && fault["detail"].is_string(), "{document:#}");
    }
    assert!(!document.to_string().contains(MARKER), "a value of the data in a problem: {document:#}");
}

/// The last segment of a problem type.
pub(crate) fn kind(document: &Value) -> &str {
    document["type"].as_str().and_then(|uri| uri.strip_prefix("https://guardian.invalid/problems/")).unwrap_or_default()
}

/// Calls a service.
pub(crate) struct Client {
    pub(crate) base: String,
    http: reqwest::Client,
    token: Option<String>,
}

impl Client {
    pub(crate) fn new(base: String) -> Self {
        Self { base, http: reqwest::Client::builder().no_proxy().build().unwrap(), token: None }
    }

    /// A client of the same service with a key.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..Self::new(self.base.clone()) }
    }

    /// `127.0.0.1:port`
    pub(crate) fn authority(&self) -> &str {
        self.base.strip_prefix("http://").unwrap()
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(crate) async fn send(&self, request: RequestBuilder) -> Answer {
        let (http, request) = request.build_split();
        let request = request.unwrap();
        let asked = Asked::of(&request, &self.base);
        let answer = Answer::of(http.execute(request).await.unwrap()).await;
        asked.judge(&answer);
        answer
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn post(&self, path: &str, document: &Value) -> Answer {
        self.send(self.request(Method::POST, path).json(document)).await
    }

    pub(crate) async fn put(&self, path: &str, document: &Value) -> Answer {
        self.send(self.request(Method::PUT, path).json(document)).await
    }

    /// Uploads; `query` without the question mark.
    pub(crate) async fn upload(&self, query: &str, csv: impl Into<Vec<u8>>) -> Answer {
        self.upload_with(query, csv, &[]).await
    }

    pub(crate) async fn upload_with(&self, query: &str, body: impl Into<Vec<u8>>, headers: &[(&str, &str)]) -> Answer {
        let mut request = self.request(Method::POST, &format!("/v1/datasets?{query}")).body(body.into());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            request = request.header(CONTENT_TYPE, "text/csv");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request).await
    }

    /// Declares a population that has no person in common with what there is; `keys` are columns that identify its
    /// persons, each by a key system of its own.
    pub(crate) async fn population(&self, name: &str, keys: &[&str]) {
        let system = |key: &&str| json!({"key_system": format!("{name}/{key}"), "columns": [key]});
        let person: Vec<Value> = keys.iter().map(system).collect();
        let population = json!({"description": "of a test", "person": person, "disjoint_from": "all",
            "reason": "other people"});
        self.put(&format!("/v1/populations/{name}"), &population).await.ok(201);
    }

    /// The id of a table that is uploaded.
    pub(crate) async fn dataset(&self, csv: impl Into<Vec<u8>>) -> String {
        text(&self.upload("name=t", csv).await.ok(201)["id"])
    }

    /// The id of a table whose people are in no other one: a column `id` identifies them. Needs who may declare populations.
    pub(crate) async fn newcomers(&self, csv: &str) -> String {
        if self.get("/v1/populations/newcomers").await.status == 404 {
            self.population("newcomers", &["id"]).await;
        }
        let key = uuid::Uuid::now_v7();
        let mut lines = csv.lines();
        let header = format!("id,{}\n", lines.next().unwrap());
        let rows = lines.enumerate().map(|(row, line)| format!("{key}-{row},{line}\n"));
        let keyed: String = std::iter::once(header).chain(rows).collect();
        text(&self.upload("population=newcomers", keyed).await.ok(201)["id"])
    }

    /// The id of a table of a population without keys, which is declared if it is not there.
    pub(crate) async fn dataset_of(&self, population: &str, csv: impl Into<Vec<u8>>) -> String {
        self.population_if_missing(population).await;
        text(&self.upload(&format!("population={population}"), csv).await.ok(201)["id"])
    }

    /// Declares a population without keys if it is not there.
    pub(crate) async fn population_if_missing(&self, name: &str) {
        if self.get(&format!("/v1/populations/{name}")).await.status == 404 {
            self.population(name, &[]).await;
        }
    }

    /// A job document over a dataset; waits for its end.
    pub(crate) async fn job(&self, dataset: &str, mut document: Value) -> Answer {
        document["dataset"] = dataset.into();
        self.post("/v1/jobs?wait=60", &document).await
    }

    /// Publishes and gives the manifest.
    pub(crate) async fn publish(&self, dataset: &str, document: Value) -> Value {
        let job = self.job(dataset, document).await.ok(200);
        assert_eq!(job["status"], "succeeded", "{job:#}");
        self.get(&format!("/v1/releases/{}", text(&job["release"]))).await.ok(200)
    }

    /// The problem of a job that must be refused.
    pub(crate) async fn refused(&self, dataset: &str, document: Value) -> Value {
        let job = self.job(dataset, document).await.ok(200);
        assert_eq!(job["status"], "refused", "{job:#}");
        assert_eq!(job["release"], Value::Null);
        assert_problem(&job["problem"]);
        job["problem"].clone()
    }

    /// A part as CSV.
    pub(crate) async fn part(&self, release: &Value, table: &str, part: &str) -> String {
        let answer = self.get(&part_path(release, table, part)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text()
    }

    /// The items of a list that fits one page.
    pub(crate) async fn items(&self, path: &str) -> Vec<Value> {
        self.get(path).await.ok(200)["items"].as_array().unwrap().clone()
    }
}

pub(crate) fn part_path(release: &Value, table: &str, part: &str) -> String {
    format!("/v1/releases/{}/tables/{table}/parts/{part}", text(&release["id"]))
}

/// A fault without its remedies: those of a job that was refused replace whole members, those of a plan single ones.
pub(crate) fn without_remedies(fault: &Value) -> Value {
    let mut fault = fault.clone();
    fault.as_object_mut().expect("a fault is an object").remove("remedies");
    fault
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// A service in this process.
pub(crate) struct Server {
    client: Client,
    service: Service,
    home: TempDir,
}

impl Deref for Server {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_as(|_| {}, std::sync::Arc::new(Vault::fresh_secret)).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        Self::start_as(change, std::sync::Arc::new(Vault::fresh_secret)).await
    }

    pub(crate) async fn start_as(change: impl FnOnce(&mut Config), keys: ReleaseKeySource) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), change, keys).await
    }

    /// With an engine `lake`, whose tables in `open` callers may name.
    pub(crate) async fn start_with_engine(engine: Arc<dyn RemoteEngine>, change: impl FnOnce(&mut Config)) -> Self {
        Self::start_with_engine_in(tempfile::tempdir().unwrap(), engine, change).await
    }

    async fn start_with_engine_in(
        home: TempDir,
        engine: Arc<dyn RemoteEngine>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let change = |config: &mut Config| {
            config.engines.tables = Some("lake=open.*".to_owned());
            change(config);
        };
        let engines = NamedEngines::from([("lake".to_owned(), engine)]);
        Self::start_whole(home, change, Arc::new(Vault::fresh_secret), engines).await
    }

    async fn start_in(home: TempDir, change: impl FnOnce(&mut Config), keys: ReleaseKeySource) -> Self {
        Self::start_whole(home, change, keys, NamedEngines::new()).await
    }

    async fn start_whole(
        home: TempDir,
        change: impl FnOnce(&mut Config),
        keys: ReleaseKeySource,
        engines: NamedEngines,
    ) -> Self {
        let mut config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            auth: Auth::None,
            jwt: JwtOptions::default(),
            bootstrap_key_file: None,
            data: home.path().join("data"),
            store: StoreOptions::default(),
            parts: PartOptions::default(),
            part_link_seconds: None,
            workers: 1,
            queue: QueueOptions::default(),
            max_upload_bytes: 1 << 30,
            sources: None,
            engines: TableEngineOptions::default(),
            max_columns: 1024,
            max_queued_jobs: 1000,
            max_uploads: 16,
            max_plans: 4,
            request_limits: RequestLimits::default(),
            job_limits: JobLimits { memory_budget: Some(0), ..JobLimits::default() },
            retain_days: None,
            grace_seconds: 5,
            drain_seconds: 0,
            path_prefix: String::new(),
            trust_forwarded: false,
            watch: ObservabilityOptions::default(),
            log_format: LogFormat::Text,
        };
        change(&mut config);
        let service = Service::start_with_engines(&config, keys, engines).await.unwrap();
        Self { client: Client::new(format!("http://{}", service.address())), service, home }
    }

    /// Another service, of which nothing is published yet, in place of this one.
    pub(crate) async fn anew(self) -> Self {
        self.stop().await;
        Self::start().await
    }

    /// Another process on the same store: it keeps nothing that this one has read.
    pub(crate) async fn restarted(self) -> Self {
        self.service.shutdown().await;
        Self::start_in(self.home, |_| {}, std::sync::Arc::new(Vault::fresh_secret)).await
    }

    /// Another process on the same store, with the engine of [`Server::start_with_engine`].
    pub(crate) async fn restarted_with_engine(self, engine: Arc<dyn RemoteEngine>) -> Self {
        self.service.shutdown().await;
        Self::start_with_engine_in(self.home, engine, |_| {}).await
    }

    /// How many rows a table of the store has.
    pub(crate) async fn stored(&self, table: &str) -> i64 {
        stored(&self.home.path().join("data"), table).await
    }

    /// Nothing may be left of what was refused.
    pub(crate) async fn assert_nothing_stored(&self) {
        for table in ["datasets", "column_chunks", "jobs", "job_keys", "part_chunks", "releases", "disclosures"] {
            assert_eq!(self.stored(table).await, 0, "{table}");
        }
    }

    /// The routes, also after the service has stopped.
    pub(crate) fn router(&self) -> axum::Router {
        self.service.router()
    }

    /// The folder of the store.
    pub(crate) fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    pub(crate) async fn stop(self) {
        self.service.shutdown().await;
    }

    /// Stops, so that everything under way has ended, and counts.
    pub(crate) async fn stop_and_expect(self, table: &str, rows: i64) {
        self.service.shutdown().await;
        assert_eq!(stored(&self.home.path().join("data"), table).await, rows, "{table}");
    }
}

/// How many rows a table of the store in a folder has.
pub(crate) async fn stored(data: &Path, table: &str) -> i64 {
    let options = SqliteConnectOptions::new().filename(data.join("guardian.db")).read_only(true);
    let mut connection = options.connect().await.unwrap();
    let query = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
    let count = sqlx::query(query).fetch_one(&mut connection).await.unwrap().get(0);
    connection.close().await.unwrap();
    count
}

/// What configures a process from outside of its command line.
const CONFIGURATION_VARIABLES: [&str; 8] = [
    "GUARDIAN_CONFIG",
    "RUST_LOG",
    "DATABASE_URL",
    "GUARDIAN_STORE",
    "GUARDIAN_EXPECT_STORE",
    "GUARDIAN_AUTH",
    "GUARDIAN_MASTER_KEY",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

/// The command without the configuration of the process that runs the tests.
pub(crate) fn unconfigured(command: &mut Command) -> &mut Command {
    for variable in CONFIGURATION_VARIABLES {
        command.env_remove(variable);
    }
    command
}

/// The real binary.
pub(crate) fn guardian() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_guardian"));
    unconfigured(&mut command).stdin(Stdio::null());
    command
}

pub(crate) fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

/// A served folder in a process of its own. Killed when dropped.
pub(crate) struct Process {
    client: Client,
    child: Child,
    /// Open as long as the process may write to it.
    stdout: BufReader<ChildStdout>,
    log: PathBuf,
}

impl Deref for Process {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Process {
    /// Serves `data`; the log goes into `log` beside it.
    pub(crate) fn serve(data: &Path, level: &str) -> Self {
        Self::serve_with(data, level, &["--listen", "127.0.0.1:0"])
    }

    /// The same with options.
    pub(crate) fn serve_with(data: &Path, level: &str, options: &[&str]) -> Self {
        Self::serve_by(data, guardian().args(["serve"]).args(options).env("RUST_LOG", level))
    }

    /// The same by a command without the folder.
    pub(crate) fn serve_by(data: &Path, command: &mut Command) -> Self {
        let log = data.with_extension("log");
        command.arg("--data").arg(data);
        command.stdout(Stdio::piped()).stderr(File::options().create(true).append(true).open(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let base = line.split_whitespace().find(|word| word.starts_with("http://"));
        let base = base.unwrap_or_else(|| panic!("not started: {}", std::fs::read_to_string(&log).unwrap())).to_owned();
        Self { client: Client::new(base), child, stdout, log }
    }

    /// The next line of its greeting.
    pub(crate) fn greeting(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM; how it ended.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        self.send_stop_signal();
        self.child.wait().unwrap()
    }

    /// SIGTERM.
    pub(crate) fn send_stop_signal(&mut self) {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // it may have ended already
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
