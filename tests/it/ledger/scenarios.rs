//! The histories with expected answers that the judge of people is tested with, played over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use guardian::config::Auth;
use guardian::identity::Preset;
use guardian::people::UnrelatedPolicy;
use guardian::ports::TenantChange;
use guardian::spec::path_segment;
use serde_json::{Value, json};

use super::data_subjects::plain;
use crate::support::harness::{Answer, Client, kind, text};
use crate::support::library::seeds;
use crate::support::stores::TestStore;

#[path = "../../../src/people/tests/tables.rs"]
mod tables;

use tables::TableSpec;

/// Histories that are not played, and why, with the number of their calls.
const NOT_PLAYED: [(&str, &str, usize); 2] = [
    ("spelling", "folds one text: no call of the service does that", 19),
    ("carried", "an export and import of the ledger are commands", 22),
];

/// What the service calls otherwise than the vectors do, of which calls.
const OTHER_NAMES: [(&str, &str, &str); 3] = [
    // a place in a document is a fault of the document, with its pointer
    ("state", "not-found", "invalid-specification"),
    ("state", "malformed-body", "invalid-specification"),
    ("job", "malformed-body", "invalid-specification"),
];

/// A scenario, the number of a call, why the service answers it otherwise, and how.
type OtherAnswer = (&'static str, usize, &'static str, fn() -> Value);

/// Calls that the service answers otherwise.
const OTHER_ANSWERS: [OtherAnswer; 3] = [
    (
        "four of 3,000 published people",
        5,
        "four rows cannot keep the rule: the document is judged before the ledger",
        faulty,
    ),
    ("report mode", 4, "the reason is missing: the document is judged before the scope that it needs", faulty),
    ("report mode", 9, "who is in two coverages, by a release without proof, is gone from both", || {
        json!({"status": "refused", "problem": "overlapping-people", "common": 10, "added": 0, "removed": 1785,
            "changed": []})
    }),
];

fn faulty() -> Value {
    json!({"status": "refused", "problem": "invalid-specification"})
}

/// Histories at once.
const AT_ONCE: usize = 4;

/// A scenario that is played in a tenant of its own.
struct Play {
    name: String,
    steps: Vec<Value>,
    answers: Vec<Value>,
    officer: Client,
    pipeline: Client,
    datasets: BTreeMap<String, Value>,
    tables: BTreeMap<String, TableSpec>,
    /// The releases in their order, with their dataset.
    releases: Vec<(String, String)>,
}

fn reason_of_not_playing(scenario: &Value) -> Option<&'static str> {
    let steps = scenario["steps"].as_array().unwrap();
    let does = |what: &str| steps.iter().any(|step| step["do"] == what);
    let place = match (does("fold"), does("carry")) {
        (true, _) => 0,
        (_, true) => 1,
        _ => return None,
    };
    Some(NOT_PLAYED[place].0)
}

fn quoted(cell: &str) -> String {
    format!("\"{}\"", cell.replace('"', "\"\""))
}

fn csv(spec: &TableSpec) -> String {
    let table = spec.table();
    let line = |cells: &Vec<String>| cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n";
    std::iter::once(&table.names).chain(&table.rows).map(line).collect()
}

fn list(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// What an answer is called: its problem, or `done`.
fn outcome(answer: &Answer) -> Value {
    if answer.status < 400 { json!({"status": "done"}) } else { refused(&answer.json()) }
}

fn refused(problem: &Value) -> Value {
    let mut found = json!({"status": "refused", "problem": kind(problem)});
    for member in ["common", "added", "removed", "changed"] {
        if kind(problem) == "overlapping-people" {
            found[member] = problem[member].clone();
        }
    }
    if kind(problem) == "composition-undecidable" {
        found["attributes"] = problem["attributes"].clone();
    }
    let coverages = problem["coverages"].as_array().filter(|_| kind(problem) != "overlapping-people");
    if let Some(coverages) = coverages {
        found["coverages"] = coverages.len().into();
    }
    found
}

/// The expected answer as the service can give it.
fn expected(step: &Value, answer: &Value) -> Value {
    let mut expected = answer.clone();
    let named = OTHER_NAMES.iter().find(|(of, name, _)| step["do"] == *of && answer["problem"] == *name);
    if let Some((.., name)) = named {
        expected["problem"] = (*name).into();
    }
    // of a republished population, all nights keep the guarantee together
    if answer["composition"] == "republication" {
        expected["composition"] = "enforced".into();
    }
    if let Some(coverages) = answer["coverages"].as_array() {
        expected["coverages"] = coverages.len().into();
    }
    if let Some(basis) = answer["basis"].as_array() {
        let statements = basis.iter().filter(|of| of.as_str().unwrap().starts_with("statement:")).count();
        expected["basis"] = statements.into();
    }
    expected
}

impl Play {
    /// The differences to the expected answers.
    async fn play(mut self) -> Vec<String> {
        let mut differences = Vec::new();
        for number in 0..self.steps.len() {
            let step = self.steps[number].clone();
            let other = OTHER_ANSWERS.iter().find(|(name, at, ..)| (*name, *at) == (&self.name, number));
            let expected = other.map_or_else(|| expected(&step, &self.answers[number]), |(.., answer)| answer());
            let found = self.call(&step, &expected).await;
            if found != expected {
                differences.push(format!("{} step {number} {}: {found}, not {expected}", self.name, step["do"]));
            }
        }
        differences
    }

    async fn call(&mut self, step: &Value, expected: &Value) -> Value {
        let caller = if step["by"] == "officer" { &self.officer } else { &self.pipeline };
        match step["do"].as_str().unwrap() {
            "population" => {
                let key = |of: &Value| {
                    let fold = of["fold"].as_str().unwrap_or("standard");
                    json!({"key_system": of["name"], "columns": of["columns"], "fold": fold})
                };
                let person: Vec<Value> = step["systems"].as_array().unwrap().iter().map(key).collect();
                let path = format!("/v1/populations/{}", text(&step["name"]));
                let mut population = json!({"person": person});
                if step["republication"] == true {
                    // no newcomer waits
                    population["republication"] = json!({"min_newcomers": 2});
                }
                outcome(&caller.put(&path, &population).await)
            }
            "state" => self.state(caller, step).await,
            "upload" => self.upload(step).await,
            "job" => self.job(step, expected).await,
            "end" => self.end(step).await,
            "purge" => outcome(&self.pipeline.delete(&self.path_of(step)).await),
            // before the service was started
            "setting" => json!({"status": "done"}),
            other => panic!("{other}"),
        }
    }

    fn dataset(&self, name: &str) -> String {
        text(&self.datasets[name]["id"])
    }

    fn path_of(&self, step: &Value) -> String {
        format!("/v1/datasets/{}", self.dataset(step["dataset"].as_str().unwrap()))
    }

    async fn state(&self, caller: &Client, step: &Value) -> Value {
        let of = list(&step["of"]);
        let (own, other) = (of[0].split_once(':').unwrap(), of[1].split_once(':').unwrap_or(("", "all")));
        let place = match own {
            ("population", name) => name.to_owned(),
            (_, dataset) => text(&self.datasets[dataset]["population"]),
        };
        let mut said = json!({"reason": step["reason"]});
        match (step["kind"].as_str().unwrap(), other) {
            ("disjoint", ("", all)) => said["disjoint_from"] = all.into(),
            ("disjoint", (_, name)) => said["disjoint_from"] = json!([name]),
            ("others", (_, name)) => {
                said["others"] = json!({"dataset": self.dataset(own.1), "than": self.dataset(name)});
            }
            ("attribute", (_, name)) => said["new"] = json!([name]),
            (kind, _) => panic!("{kind}"),
        }
        outcome(&caller.post(&format!("/v1/populations/{place}/statements"), &said).await)
    }

    async fn upload(&mut self, step: &Value) -> Value {
        let spec: TableSpec = serde_json::from_value(step["table"].clone()).unwrap();
        let mut query = vec![("name", text(&step["as"]))];
        query.extend(step["population"].as_str().map(|name| ("population", name.to_owned())));
        if let Some(systems) = step["person"].as_object() {
            let system = |(name, columns): (&String, &Value)| format!("{name}:{}", list(columns).join("+"));
            let named = systems.iter().map(system).collect::<Vec<_>>().join(",");
            query.push(("person", if named.is_empty() { "none".to_owned() } else { named }));
        }
        let record_key = list(&step["record_key"]).join(",");
        query.extend((!record_key.is_empty()).then_some(("record_key", record_key)));
        query.extend(step["most"].as_u64().map(|most| ("max_rows_per_person", most.to_string())));
        let pair = |(name, value): &(&str, String)| format!("{name}={}", path_segment(value));
        let query = query.iter().map(pair).collect::<Vec<_>>().join("&");
        let answer = self.pipeline.upload(&query, csv(&spec)).await;
        if answer.status == 201 {
            self.datasets.insert(text(&step["as"]), answer.json());
            self.tables.insert(text(&step["as"]), spec);
        }
        outcome(&answer)
    }

    fn document(&self, step: &Value) -> Value {
        let columns = list(&step["columns"]);
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let mut document = plain(&names);
        if let Some(sensitive) = step["bucketize"].as_str() {
            let guarantee = json!({"type": "l_diversity", "l": step["l"].as_u64().unwrap_or(2)});
            document["method"] = json!({"type": "anatomy", "sensitive": sensitive, "guarantee": guarantee});
            document.as_object_mut().unwrap().remove("no_rules_reason");
            document["attributes"].as_object_mut().unwrap().remove(sensitive);
        }
        document["dataset"] = self.datasets[step["dataset"].as_str().unwrap()]["id"].clone();
        if step["republish"] == true {
            document["republish"] = json!({});
        }
        if step["people"].is_string() {
            document["people"] = step["people"].clone();
        }
        if step["mode"] == "report" {
            document["composition"] = json!({"mode": "report"});
            if step["reason"].is_string() {
                document["composition"]["reason"] = step["reason"].clone();
            }
        }
        if step["hold"] == true {
            document["hold"] = true.into();
        }
        document
    }

    async fn job(&mut self, step: &Value, expected: &Value) -> Value {
        let caller = if step["by"] == "officer" { &self.officer } else { &self.pipeline };
        let answer = caller.post("/v1/jobs?wait=60", &self.document(step)).await;
        if answer.status >= 400 {
            return refused(&answer.json());
        }
        let job = answer.json();
        if job["status"] != "succeeded" {
            return refused(&job["problem"]);
        }
        let id = text(&job["release"]);
        let manifest = self.officer.get(&format!("/v1/releases/{id}")).await.ok(200);
        let mut found = json!({"status": manifest["status"], "composition": manifest["composition"]});
        let dataset = text(&step["dataset"]);
        if self.releases.iter().any(|(release, _)| *release == id) {
            found["status"] = "reused".into();
        } else {
            found["basis"] = manifest["identity"]["statements"].as_array().unwrap().len().into();
            // rows where each person has one
            let rows = &manifest["tables"][0]["parts"][0]["rows"];
            let spec = &self.tables[&dataset];
            let is_counted = spec.visits.is_none() && !spec.twice;
            found["people"] = if is_counted { rows.clone() } else { expected["people"].clone() };
        }
        self.releases.push((id, dataset));
        found
    }

    async fn end(&self, step: &Value) -> Value {
        let of_dataset = |of: &&(String, String)| step["dataset"] == of.1.as_str();
        for (release, _) in self.releases.iter().filter(of_dataset) {
            let path = format!("/v1/releases/{release}");
            if step["read"] == true {
                let manifest = self.officer.get(&path).await.ok(200);
                let table = &manifest["tables"][0];
                let part = format!("{path}/tables/{}/parts/{}", text(&table["name"]), text(&table["parts"][0]["name"]));
                assert_eq!(self.officer.get(&part).await.status, 200);
            }
            let how = step["how"].as_str().unwrap();
            let answer = self.officer.post(&format!("{path}/{how}"), &json!({"reason": "as the history says"})).await;
            if answer.status >= 400 {
                return outcome(&answer);
            }
        }
        json!({"status": "done"})
    }
}

/// Plays the history at `first`, counted from 0, and those after it in steps of `every`.
async fn plays(store: TestStore, first: usize, every: usize) {
    let vectors: Value = serde_json::from_str(include_str!("../../vectors/identity/scenarios.json")).unwrap();
    let mut not_played: BTreeMap<&str, usize> = BTreeMap::new();
    let mut played = Vec::new();
    for scenario in vectors["scenarios"].as_array().unwrap() {
        match reason_of_not_playing(scenario) {
            Some(reason) => *not_played.entry(reason).or_default() += scenario["steps"].as_array().unwrap().len(),
            None => played.push(scenario),
        }
    }
    assert_eq!(not_played, NOT_PLAYED.iter().map(|(name, _, calls)| (*name, *calls)).collect());
    let played: Vec<&Value> = played.into_iter().skip(first).step_by(every).collect();
    let tenants: Vec<String> = (0..played.len()).map(|number| format!("s{number}")).collect();
    let wanted: Vec<(&str, Preset)> =
        tenants.iter().flat_map(|tenant| [Preset::Admin, Preset::Pipeline].map(|of| (tenant.as_str(), of))).collect();
    let tokens = store.tokens(&wanted).await;
    for (tenant, scenario) in tenants.iter().zip(&played) {
        if scenario["steps"].as_array().unwrap().iter().any(|step| step["do"] == "setting") {
            let change = TenantChange { unrelated: Some(UnrelatedPolicy::Mark), ..TenantChange::default() };
            store.set_tenant(tenant, change).await;
        }
    }
    let server = store.serve(|config| (config.auth, config.workers) = (Auth::Keys, 2)).await;
    let (places, mut plays) = (Arc::new(tokio::sync::Semaphore::new(AT_ONCE)), tokio::task::JoinSet::new());
    for (scenario, tokens) in played.iter().zip(tokens.chunks(2)) {
        let play = Play {
            name: text(&scenario["name"]),
            steps: scenario["steps"].as_array().unwrap().clone(),
            answers: scenario["answers"].as_array().unwrap().clone(),
            officer: server.with_token(&tokens[0]),
            pipeline: server.with_token(&tokens[1]),
            datasets: BTreeMap::new(),
            tables: BTreeMap::new(),
            releases: Vec::new(),
        };
        let places = places.clone();
        plays.spawn(async move {
            let _place = places.acquire_owned().await.unwrap();
            play.play().await
        });
    }
    let differences = plays.join_all().await.concat();
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scenarios_are_answered_as_expected() {
    let (first, every) = if seeds() > 1 { (0, 1) } else { (0, 2) };
    plays(TestStore::embedded(), first, every).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scenarios_are_answered_as_expected_on_postgres() {
    if let Some(store) = TestStore::shared().await {
        // the judge is the same, and its store is tested alone: some that are not played on SQLite
        let (first, every) = if seeds() > 1 { (0, 1) } else { (1, 4) };
        plays(store, first, every).await;
    }
}
