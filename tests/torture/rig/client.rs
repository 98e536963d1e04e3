//! A careful client: every request that makes something has a key, and is repeated until it is answered.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::Dice;
use super::known::{Known, Sent};
use super::processes::Fleet;

pub(super) const DATASETS: &str = "/v1/datasets?population=people";
pub(super) const JOBS: &str = "/v1/jobs";

/// So long a client repeats a request before it goes on with something else.
const PATIENCE: Duration = Duration::from_secs(4);

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What was answered in full.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    fn problem(&self) -> String {
        text(&self.json()["type"]).rsplit('/').next().unwrap_or_default().to_owned()
    }
}

/// A client with choices of its own.
pub(super) struct Client {
    fleet: Arc<Fleet>,
    known: Arc<Known>,
    http: reqwest::Client,
    dice: Dice,
    number: u64,
    keys: u64,
}

impl Client {
    pub(super) fn new(fleet: Arc<Fleet>, known: Arc<Known>, dice: Dice, number: u64) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(40)).build().unwrap();
        Self { fleet, known, http, dice, number, keys: 0 }
    }

    /// Sends once to the present server; `None` when no answer came, or one that asks to try again.
    async fn once(&mut self, method: &Method, path: &str, key: Option<&str>, body: Option<&str>) -> Option<Answer> {
        let address = self.dice.pick(&self.fleet.addresses())?;
        let mut request = self.http.request(method.clone(), format!("{address}{path}"));
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = body {
            let json = body.starts_with('{');
            request = request.header("content-type", if json { "application/json" } else { "text/csv" });
            request = request.body(body.to_owned());
        }
        self.known.count("requests sent");
        let response = request.send().await.ok()?;
        let (status, again) = (response.status().as_u16(), response.headers().contains_key("retry-after"));
        let body = response.bytes().await.ok()?.to_vec();
        let answer = Answer { status, body };
        if again && [409, 429, 503].contains(&status) {
            self.known.count(&format!("answered {} {}", status, answer.problem()));
            return None;
        }
        if status >= 500 {
            self.known.violated(format!("{method} {path}: {status} {}", String::from_utf8_lossy(&answer.body)));
        }
        Some(answer)
    }

    /// Repeats a request until it is answered, or `patience` ends.
    pub(super) async fn persist(
        &mut self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Option<&str>,
        patience: Duration,
    ) -> Option<Answer> {
        let until = Instant::now() + patience;
        let mut pause = 20;
        loop {
            if let Some(answer) = self.once(&method, path, key, body).await {
                return Some(answer);
            }
            if Instant::now() >= until {
                self.known.count("requests given up for a while");
                return None;
            }
            self.known.count("requests repeated");
            tokio::time::sleep(self.dice.millis(pause / 2, pause)).await;
            pause = (pause * 2).min(500);
        }
    }

    pub(super) async fn get(&mut self, path: &str, patience: Duration) -> Option<Answer> {
        self.persist(Method::GET, path, None, None, patience).await
    }

    /// Makes something under a key; what is learned is noted.
    pub(super) async fn make(&mut self, sent: &Sent, patience: Duration) -> Option<Answer> {
        self.known.sending(sent);
        let answer = self.persist(Method::POST, sent.path, Some(&sent.key), Some(&sent.body), patience).await?;
        match answer.status {
            200..=202 => {
                let made = answer.json();
                self.known.answered(&sent.key, &text(&made["id"]));
                if sent.path == JOBS {
                    self.known.seen(&made);
                }
            }
            404 | 410 | 422 => self.known.refused(&sent.key),
            // an equal job had a release that was rejected after it was read
            409 if answer.problem() == "conflict" => self.known.refused(&sent.key),
            status => self.known.violated(format!("{}: {status} {}", sent.path, answer.problem())),
        }
        Some(answer)
    }

    fn key(&mut self) -> String {
        self.keys += 1;
        format!("c{}-{}", self.number, self.keys)
    }

    /// Declares the population of all people, who have keys.
    pub(super) async fn declare_people(&mut self) {
        let people = json!({"description": "all", "person": [{"key_system": "id", "columns": ["id"]}]}).to_string();
        let answer = self.persist(Method::PUT, "/v1/populations/people", None, Some(&people), PATIENCE).await;
        assert!(answer.is_some_and(|answer| [200, 201].contains(&answer.status)));
    }

    /// Works until it must stop, or has submitted `jobs` jobs.
    pub(super) async fn work(mut self, jobs: usize, stop: Arc<AtomicBool>) {
        let mut submitted = 0;
        while !stop.load(Ordering::SeqCst) {
            match self.dice.below(20) {
                0..=2 => self.upload().await,
                3..=12 if submitted < jobs => {
                    self.submit().await;
                    submitted += 1;
                }
                13 => self.repeat().await,
                14 => self.misuse_a_key().await,
                15 => self.cancel().await,
                16 => self.decide().await,
                17 => self.purge().await,
                _ => self.look().await,
            }
        }
    }

    async fn upload(&mut self) {
        // a large one now and then, whose jobs take long enough to be killed in the middle
        let rows = if self.dice.below(8) == 0 { 12_000 } else { 12 + self.dice.below(60) };
        let key = self.key();
        let mut body = String::from("id,age,ward,zip,disease\n");
        for row in 0..rows {
            let (age, ward, zip, disease) =
                (self.dice.below(40), self.dice.below(4), self.dice.below(9), self.dice.below(7));
            body.push_str(&format!("{key}-{row},{age},w{ward},{zip},d{disease}\n"));
        }
        if self.dice.below(8) == 0 {
            body.push_str("a row with too few fields\n");
        }
        let sent = Sent { key, path: DATASETS, body, id: None, refused: false };
        if let Some(answer) = self.make(&sent, PATIENCE).await {
            self.known.count(&format!("uploads answered {}", answer.status));
        }
    }

    async fn submit(&mut self) {
        let Some(dataset) = self.dice.pick(&self.known.ids(DATASETS)) else { return self.upload().await };
        let rules: [&[&str]; 6] = [
            &["age, ward -> disease"],
            &["age, ward -> disease", "age, disease -> zip"],
            &["zip -> disease"],
            &["ward -> disease", "zip -> age"],
            // refused at once: no such column
            &["ward -> diagnosis"],
            &["-> disease"],
        ];
        let rules = rules[self.dice.below(rules.len())];
        let l = 2 + self.dice.below(3);
        let mut document = match self.dice.below(8) {
            0 => json!({"unlisted": "drop", "method": {"type": "anatomy", "quasi_identifiers": ["age", "zip"],
                "sensitive": "disease", "guarantee": {"type": "l_diversity", "l": l}}}),
            // breaks what was promised before, where something was
            1 => json!({"unlisted": "drop", "no_rules_reason": "x", "method": {"type": "versatile", "rules": []},
                "attributes": {"age": {"publish": true}, "ward": {"publish": true}, "disease": {"publish": true}}}),
            _ => json!({"unlisted": "drop", "method": {"type": "versatile", "rules": rules,
                "default_guarantee": {"type": "l_diversity", "l": l}}}),
        };
        document["dataset"] = dataset.into();
        document["priority"] = (self.dice.below(5) as i64 - 2).into();
        document["hold"] = (self.dice.below(6) == 0).into();
        if self.dice.below(15) == 0 {
            document["deadline"] = "PT1S".into();
        }
        let sent = Sent { key: self.key(), path: JOBS, body: document.to_string(), id: None, refused: false };
        if let Some(answer) = self.make(&sent, PATIENCE).await {
            self.known.count(&format!("submissions answered {}", answer.status));
        }
        if self.dice.below(3) == 0 {
            // an equal job, under another key
            let alike = Sent { key: self.key(), ..sent };
            self.make(&alike, PATIENCE).await;
        }
    }

    async fn repeat(&mut self) {
        if let Some(sent) = self.dice.pick(&self.known.all_sent()).filter(|sent| !sent.refused) {
            self.known.count("requests sent again though answered");
            self.make(&sent, PATIENCE).await;
        }
    }

    async fn misuse_a_key(&mut self) {
        let sent = self.known.all_sent();
        let Some(sent) = self.dice.pick(&sent).filter(|sent| sent.id.is_some() && sent.path == JOBS) else { return };
        let body = json!({"other": true}).to_string();
        let answer = self.persist(Method::POST, sent.path, Some(&sent.key), Some(&body), PATIENCE).await;
        if let Some(answer) = answer {
            self.known.count("keys misused");
            if answer.problem() != "idempotency-conflict" {
                self.known.violated(format!("a key with other content: {} {}", answer.status, answer.problem()));
            }
        }
    }

    async fn cancel(&mut self) {
        let Some(job) = self.dice.pick(&self.known.ids(JOBS)) else { return };
        let answer = self.persist(Method::DELETE, &format!("{JOBS}/{job}"), None, None, PATIENCE).await;
        if let Some(answer) = answer {
            self.known.count(&format!("cancellations answered {}", answer.status));
        }
    }

    async fn releases(&mut self) -> Vec<Value> {
        let answer = self.get("/v1/releases?limit=1000", PATIENCE).await;
        answer.map(|answer| answer.json()["items"].as_array().cloned().unwrap_or_default()).unwrap_or_default()
    }

    /// Approves, rejects or withdraws.
    async fn decide(&mut self) {
        let releases = self.releases().await;
        let Some(release) = self.dice.pick(&releases) else { return };
        let act = match text(&release["status"]).as_str() {
            "held" => ["approve", "reject"][self.dice.below(2)],
            "published" if self.dice.below(3) == 0 => "withdraw",
            _ => return,
        };
        let path = format!("/v1/releases/{}/{act}", text(&release["id"]));
        let answer = self.persist(Method::POST, &path, None, Some("{\"reason\": \"x\"}"), PATIENCE).await;
        if let Some(answer) = answer {
            self.known.count(&format!("{act} answered {}", answer.status));
        }
    }

    async fn purge(&mut self) {
        if self.dice.below(4) > 0 {
            return;
        }
        let Some(dataset) = self.dice.pick(&self.known.ids(DATASETS)) else { return };
        let answer = self.persist(Method::DELETE, &format!("/v1/datasets/{dataset}"), None, None, PATIENCE).await;
        if let Some(answer) = answer {
            self.known.count(&format!("purges answered {}", answer.status));
        }
    }

    /// Reads a job, or a release in full.
    async fn look(&mut self) {
        if self.dice.below(2) == 0 {
            let Some(job) = self.dice.pick(&self.known.ids(JOBS)) else { return };
            let Some(answer) = self.get(&format!("{JOBS}/{job}?wait=1"), PATIENCE).await else { return };
            if answer.status == 200 {
                self.known.seen(&answer.json());
            } else {
                self.known.violated(format!("job {job} was accepted and is answered {}", answer.status));
            }
            return;
        }
        let releases = self.releases().await;
        if let Some(release) = self.dice.pick(&releases) {
            self.read_release(&text(&release["id"]), PATIENCE).await;
        }
    }

    /// Reads a release in full, and holds its parts against its manifest; `None` when it is not served.
    pub(super) async fn read_release(&mut self, id: &str, patience: Duration) -> Option<Value> {
        let manifest = self.get(&format!("/v1/releases/{id}"), patience).await?;
        if manifest.status != 200 {
            return None;
        }
        let manifest = manifest.json();
        let mut files = HashSet::new();
        for table in manifest["tables"].as_array().into_iter().flatten() {
            for part in table["parts"].as_array().into_iter().flatten() {
                let (name, file) = (text(&part["name"]), text(&part["file"]));
                let path = format!("/v1/releases/{id}/tables/{}/parts/{name}", text(&table["name"]));
                let read = self.get(&path, patience).await?;
                if read.status == 410 {
                    return None;
                }
                if super::judge::sha256(&read.body) != text(&part["sha256"]) {
                    self.known.violated(format!("part {file} of release {id} is not what its manifest says"));
                }
                files.insert(file);
            }
        }
        if files.is_empty() {
            self.known.violated(format!("release {id} has no parts"));
        }
        self.known.count("releases read in full");
        Some(manifest)
    }
}
