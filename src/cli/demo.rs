//! `guardian demo`: runs a service and publishes two tables through the routes of its clients.

use std::io::Write;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, header};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use serde_json::Value;
use tower::ServiceExt;

use super::exit::CommandOutcome;
use super::serve;
use super::standard_output::ended;
use crate::config::{Auth, Config};
use crate::telemetry;

/// Options of the demonstration.
#[derive(Args)]
#[command(mut_arg("data", |data| {
    data.hide_default_value(true).help("The folder of the embedded store and of the master key; by default a temporary one")
}))]
pub struct DemoArguments {
    #[command(flatten)]
    config: Config,
    /// Ends after the demonstration instead of serving
    #[arg(long)]
    exit: bool,
    /// Whether the data folder was named on the command line or in a file
    #[arg(skip)]
    names_folder: bool,
}

impl DemoArguments {
    /// The arguments, with whether a folder was named.
    pub(super) fn noting(self, matches: &ArgMatches) -> Self {
        let names_folder = matches.value_source("data") == Some(ValueSource::CommandLine);
        Self { names_folder, ..self }
    }
}

/// An example table with its specification.
struct DemoTable {
    name: &'static str,
    /// The document of its population.
    population: &'static str,
    table: &'static [u8],
    encoding: &'static str,
    specification: &'static str,
}

const EXAMPLES: [DemoTable; 2] = [
    DemoTable {
        name: "hospital",
        population: r#"{"description": "invented patients"}"#,
        table: include_bytes!("../../examples/data/hospital.csv"),
        encoding: "identity",
        specification: include_str!("../../examples/hospital.json"),
    },
    DemoTable {
        name: "adult",
        population: r#"{"description": "a census extract of 1994", "disjoint_from": ["demo-hospital"],
            "reason": "invented patients; census extract of 1994"}"#,
        table: include_bytes!("../../examples/data/adult.csv.gz"),
        encoding: "gzip",
        specification: include_str!("../../examples/adult.json"),
    },
];

pub(super) fn run(arguments: &DemoArguments) -> Result<CommandOutcome, CommandOutcome> {
    // the examples ignore a database of the environment
    let mut config = arguments.config.clone();
    config.store.database_url = None;
    // a folder of the environment is that of a service
    let temporary = match arguments.names_folder {
        true => None,
        false => Some(tempfile::tempdir().map_err(|error| CommandOutcome::io(&std::env::temp_dir(), &error))?),
    };
    if let Some(folder) = &temporary {
        config.data = folder.path().join("data");
    }
    if config.auth != Auth::None {
        return Err(CommandOutcome::Usage("the demo needs no authentication: run it with --auth none".to_owned()));
    }
    config.path_prefix.clear();
    let config = &config;
    telemetry::start_quiet(config.log_format);
    serve::runtime()?.block_on(async {
        let stop_signal = serve::stop_signal()?;
        let service = serve::start(config).await?;
        let client = Client { router: service.router(), base: format!("http://{}", service.address()) };
        let shown = tokio::select! {
            shown = demonstrate(&client, arguments.exit) => shown,
            () = stop_signal => Ok(()),
        };
        // also after a failure: a job may still run
        service.shutdown().await;
        shown.map(|()| CommandOutcome::Done)
    })
}

/// Publishes each example, then serves until it is stopped; without end unless `exits`.
async fn demonstrate(client: &Client, exits: bool) -> Result<(), CommandOutcome> {
    let mut releases = Vec::new();
    for example in &EXAMPLES {
        releases.push(show(client, example).await?);
    }
    say(&next_steps(&client.base, &releases))?;
    if !exits {
        say("serving until Ctrl-C; the store of the demo is temporary unless --data names a folder")?;
        std::future::pending::<()>().await;
    }
    Ok(())
}

/// What to do next, with the addresses of the reports.
fn next_steps(base: &str, releases: &[String]) -> String {
    let reports: String = releases.iter().map(|path| format!("\n  {base}{path}/report?format=html")).collect();
    format!(
        "\nreports:{reports}\n\nnext:\n  1. open a report above, or Swagger UI: {base}/docs\n  \
         2. write a first specification for a table of yours: guardian init TABLE.csv\n  \
         3. publish it: guardian plan TABLE.csv TABLE.spec.json, then guardian publish TABLE.csv TABLE.spec.json --out release\n"
    )
}

/// Publishes a table and describes its release; the path of the release.
async fn show(client: &Client, example: &DemoTable) -> Result<String, CommandOutcome> {
    let define = Request::builder()
        .method(Method::PUT)
        .uri(format!("/v1/populations/demo-{}", example.name))
        .header(header::CONTENT_TYPE, "application/json");
    client.json(define, Body::from(example.population)).await?;
    let upload = Request::builder()
        .method(Method::POST)
        .uri(format!("/v1/datasets?name={0}&population=demo-{0}", example.name))
        .header(header::CONTENT_TYPE, "text/csv")
        .header(header::CONTENT_ENCODING, example.encoding);
    let dataset = client.json(upload, Body::from(example.table)).await?;
    say(&format!("\n{}: {} rows, {} columns", example.name, dataset["rows"], count(&dataset["columns"])))?;

    let mut document: Value = serde_json::from_str(example.specification).map_err(unexpected)?;
    document["dataset"] = dataset["id"].clone();
    let submit =
        Request::builder().method(Method::POST).uri("/v1/jobs").header(header::CONTENT_TYPE, "application/json");
    let job = client.json(submit, Body::from(document.to_string())).await?;
    let job = client.end_of(job).await?;
    if job["status"] != "succeeded" {
        return Err(CommandOutcome::Internal(format!("the job ended as {}: {}", job["status"], job["problem"])));
    }

    let path = job["links"]["release"].as_str().unwrap_or_default().to_owned();
    let manifest = client.json(Request::builder().uri(&path), Body::empty()).await?;
    let report = client.json(Request::builder().uri(format!("{path}/report")), Body::empty()).await?;
    for line in
        report["rules"].as_array().into_iter().flatten().chain(report["tables"].as_array().into_iter().flatten())
    {
        say(&format!("  - {}", line.as_str().unwrap_or_default()))?;
    }
    say(&format!("  - {}", report["verification"].as_str().unwrap_or_default()))?;
    say(&format!("  - composition: {}: its people have no keys", text(&manifest["composition"])))?;
    say(&format!("  manifest: {}{path}", client.base))?;
    for table in manifest["tables"].as_array().into_iter().flatten() {
        for part in table["parts"].as_array().into_iter().flatten() {
            let part = format!("{path}/tables/{}/parts/{}", text(&table["name"]), text(&part["name"]));
            let csv = client.bytes(Request::builder().uri(&part), Body::empty()).await?;
            say(&format!("  {}{part}", client.base))?;
            for line in String::from_utf8_lossy(&csv).lines().take(4) {
                say(&format!("      {line}"))?;
            }
        }
    }
    Ok(path)
}

/// A client that calls the routes without a connection.
struct Client {
    router: Router,
    base: String,
}

impl Client {
    async fn bytes(&self, request: axum::http::request::Builder, body: Body) -> Result<Vec<u8>, CommandOutcome> {
        let request = request.header(header::HOST, "localhost").body(body).map_err(unexpected)?;
        let response = self.router.clone().oneshot(request).await.map_err(unexpected)?;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.map_err(unexpected)?;
        if status.is_success() {
            Ok(bytes.to_vec())
        } else {
            Err(CommandOutcome::Internal(format!("answered {status}: {}", String::from_utf8_lossy(&bytes))))
        }
    }

    /// The job after its end, however long it takes.
    async fn end_of(&self, mut job: Value) -> Result<Value, CommandOutcome> {
        while matches!(text(&job["status"]), "queued" | "running") {
            let path = format!("/v1/jobs/{}?wait=60", text(&job["id"]));
            job = self.json(Request::builder().uri(path), Body::empty()).await?;
        }
        Ok(job)
    }

    async fn json(&self, request: axum::http::request::Builder, body: Body) -> Result<Value, CommandOutcome> {
        serde_json::from_slice(&self.bytes(request, body).await?).map_err(unexpected)
    }
}

fn unexpected(error: impl std::fmt::Display) -> CommandOutcome {
    CommandOutcome::Internal(error.to_string())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn count(value: &Value) -> usize {
    value.as_array().map_or(0, Vec::len)
}

fn say(line: &str) -> Result<(), CommandOutcome> {
    ended(writeln!(std::io::stdout().lock(), "{line}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Json;
    use axum::routing::get;
    use serde_json::json;

    use super::*;

    /// On a slow machine a job takes longer than one answer waits.
    #[tokio::test]
    async fn jobs_are_followed_to_their_end() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let answer = move || {
            let at = counted.fetch_add(1, Ordering::Relaxed);
            async move { Json(json!({"id": "a", "status": (["queued", "running", "running", "succeeded"][at])})) }
        };
        let client = Client { router: Router::new().route("/v1/jobs/a", get(answer)), base: String::new() };
        let job = client.end_of(json!({"id": "a", "status": "queued"})).await;
        assert_eq!(job.ok().map(|job| job["status"].clone()), Some(json!("succeeded")));
        assert_eq!(asked.load(Ordering::Relaxed), 4);
    }
}
