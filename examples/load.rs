//! Many clients at once: each uploads a table of its own, submits a job, polls it to its end and reads the first part, and asks
//! again after the time that a refusal names. Says how long calls took, what was answered, and whether anything was lost.
//!
//! `load URL CLIENTS [ROWS] [PID]`: ROWS (1,000) a table; with PID the peak of resident memory of the server is read from
//! `/proc`. Ends with 1 when a client did not come to its end, or anything but 2xx, 429 and 503 was answered.

#![expect(clippy::print_stdout, reason = "it is a program")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

/// A client gives up after so many answers that say to come back later.
const PATIENCE: u32 = 200;

#[derive(Default)]
struct Seen {
    /// Per kind of call: how long each took.
    calls: BTreeMap<&'static str, Vec<Duration>>,
    /// Per kind of call and status: how often.
    answers: BTreeMap<(&'static str, u16), u64>,
    lost: Vec<String>,
}

#[derive(Clone)]
struct Caller {
    client: Client,
    url: String,
    seen: Arc<Mutex<Seen>>,
}

impl Caller {
    /// Repeats a call while the answer asks for a retry.
    async fn call(&self, what: &'static str, make: impl Fn() -> RequestBuilder) -> Result<Response, String> {
        for _ in 0..PATIENCE {
            let begun = Instant::now();
            let answer = make().send().await.map_err(|error| format!("{what}: {error:?}"))?;
            let status = answer.status();
            {
                let mut seen = self.seen.lock().expect("nothing panics with the lock");
                seen.calls.entry(what).or_default().push(begun.elapsed());
                *seen.answers.entry((what, status.as_u16())).or_default() += 1;
            }
            if status.is_success() {
                return Ok(answer);
            }
            if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
                return Err(format!("{what}: {status} {}", answer.text().await.unwrap_or_default()));
            }
            let later = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
            tokio::time::sleep(Duration::from_secs(
                later.ok_or_else(|| format!("{what}: {status} without Retry-After"))?,
            ))
            .await;
        }
        Err(format!("{what}: turned away {PATIENCE} times"))
    }

    async fn whole(&self, number: usize, rows: usize) -> Result<(), String> {
        let Self { client, url, .. } = self;
        let json = async |answer: Response| answer.json::<Value>().await.map_err(|error| error.to_string());
        let text =
            |value: &Value, name: &str| value[name].as_str().map(str::to_owned).ok_or(format!("no {name} in {value}"));

        let table = table(number, rows);
        let upload = || {
            let request = client.post(format!("{url}/v1/datasets?name=load-{number}"));
            request.header("content-type", "text/csv").body(table.clone())
        };
        let dataset = json(self.call("upload", upload).await?).await?;
        if dataset["rows"] != rows {
            return Err(format!("client {number} sent {rows} rows: {dataset}"));
        }
        let job = json!({
            "dataset": text(&dataset, "id")?,
            "method": {
                "type": "versatile",
                "rules": ["age, area -> illness", "job -> income"],
                "default_guarantee": {"type": "l_diversity", "l": 3},
            },
        });
        let submitted = json(self.call("submit", || client.post(format!("{url}/v1/jobs")).json(&job)).await?).await?;
        let id = text(&submitted, "id")?;
        let mut last = submitted;
        while matches!(last["status"].as_str(), Some("queued" | "running")) {
            last = json(self.call("poll", || client.get(format!("{url}/v1/jobs/{id}?wait=10"))).await?).await?;
        }
        if last["status"] != "succeeded" {
            return Err(format!("client {number}: {last}"));
        }
        let release = text(&last, "release")?;
        let manifest =
            json(self.call("manifest", || client.get(format!("{url}/v1/releases/{release}"))).await?).await?;
        let (table, part) = (text(&manifest["tables"][0], "name")?, text(&manifest["tables"][0]["parts"][0], "name")?);
        let path = format!("{url}/v1/releases/{release}/tables/{table}/parts/{part}");
        let body = self.call("part", || client.get(&path)).await?.text().await.map_err(|error| error.to_string())?;
        match body.lines().count() {
            lines if lines == rows + 1 => Ok(()),
            lines => Err(format!("client {number}: a part of {lines} lines")),
        }
    }
}

/// A table that no other client has.
fn table(number: usize, rows: usize) -> String {
    let mut csv = String::from("age,area,job,illness,income\n");
    let mut state = number as u64 + 1;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..rows {
        let (age, area, job) = (17 + draw(74), draw(100), draw(14));
        let _ = writeln!(csv, "{age},a{area},j{job},i{},{}", draw(30), draw(20) * 1000);
    }
    csv
}

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: usize| args.get(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let (Some(url), clients, rows) = (args.first(), number(1, 1000), number(2, 1000)) else {
        eprintln!("load URL CLIENTS [ROWS] [PID]");
        return ExitCode::from(2);
    };
    let caller = Caller { client: Client::new(), url: url.clone(), seen: Arc::default() };
    let begun = Instant::now();
    let all: Vec<_> = (0..clients)
        .map(|number| {
            let caller = caller.clone();
            tokio::spawn(async move {
                if let Err(lost) = caller.whole(number, rows).await {
                    caller.seen.lock().expect("nothing panics with the lock").lost.push(lost);
                }
            })
        })
        .collect();
    for one in all {
        if one.await.is_err() {
            caller.seen.lock().expect("nothing panics with the lock").lost.push("a client panicked".to_owned());
        }
    }
    let took = begun.elapsed();
    let mut seen = caller.seen.lock().expect("nothing panics with the lock");
    println!(
        "{clients} clients of {rows} rows each in {:.1} s, {:.0} releases a second",
        took.as_secs_f64(),
        clients as f64 / took.as_secs_f64()
    );
    for (what, times) in &mut seen.calls {
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0;
        println!(
            "{what:<9}{:>7} calls   p50 {:>8.1} ms   p99 {:>8.1} ms   longest {:>8.1} ms",
            times.len(),
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
    for ((what, status), often) in &seen.answers {
        println!("{what:<9}{status}{often:>8}");
    }
    if let Some(pid) = args.get(3) {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map_or("unknown", str::trim);
        println!("peak     {peak}");
    }
    for lost in seen.lost.iter().take(10) {
        println!("lost     {lost}");
    }
    println!("lost     {}", seen.lost.len());
    ExitCode::from(u8::from(!seen.lost.is_empty()))
}
