//! A population whose table is published night after night over HTTP, and who intersects all nights.

use std::collections::BTreeMap;
use std::fs;

use guardian::config::Config;
use guardian::identity::Preset;
use serde_json::{Value, json};

use super::transfer::{on, said};
use crate::security::identity::Guarded;
use crate::support::harness::{Client, Process, Server, kind, text};
use crate::support::nights::{Intersection, Night, Person, adult, csv, document};
use crate::support::stores::TestStore;

const STAFF: &str = "/v1/populations/staff";

/// The l of all nights.
const L: usize = 3;

pub(crate) async fn staff(server: &Client) {
    let terms = json!({"min_newcomers": 6});
    let population = json!({"person": [{"key_system": "staff", "columns": ["pid"]}], "republication": terms});
    server.put(STAFF, &population).await.ok(201);
}

/// The job of a night under terms; what these leave out is as the population declares.
pub(crate) fn job_under(l: u64, terms: Value) -> Value {
    let mut job = document(l, terms);
    // what is known of the data is searched for, as by default
    let method = job["method"].as_object_mut().unwrap();
    method.retain(|member, _| member != "dependencies" && member != "assume_unknown");
    job
}

fn night_job() -> Value {
    job_under(L as u64, json!({}))
}

pub(crate) fn of_persons(keys: impl IntoIterator<Item = usize>) -> Night {
    let persons = adult();
    keys.into_iter().map(|key| (key, persons[key].clone())).collect()
}

pub(crate) async fn upload(server: &Client, night: &Night) -> String {
    text(&server.upload("population=staff", csv(night)).await.ok(201)["id"])
}

pub(crate) async fn published(server: &Client, night: &Night) -> Value {
    let dataset = upload(server, night).await;
    let release = server.publish(&dataset, night_job()).await;
    assert_eq!(release["composition"], "enforced");
    release
}

/// For each person that a release shows, the sensitive values of the bucket.
pub(crate) async fn shown(server: &Client, release: &Value) -> BTreeMap<String, Vec<String>> {
    let (known, sensitive) = (server.part(release, "t1", "qi").await, server.part(release, "t1", "sa").await);
    let mut values: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for line in sensitive.lines().skip(1) {
        let (bucket, value) = line.split_once(',').unwrap();
        values.entry(bucket).or_default().push(value.to_owned());
    }
    let mut lines = known.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let no = lines.next().unwrap().iter().position(|name| *name == "no").unwrap();
    lines.map(|cells| (cells[no].to_owned(), values[cells[0]].clone())).collect()
}

async fn progress(server: &Client) -> Value {
    server.get(STAFF).await.ok(200)["progress"].clone()
}

fn number(release: &Value) -> u64 {
    release["method_details"]["night"].as_u64().unwrap()
}

/// Persons enter, leave, return, are corrected, and have other values for a night.
pub(crate) fn five_nights() -> Vec<Night> {
    let persons = adult();
    let mut nights = vec![of_persons(0..240), of_persons(20..280), of_persons((0..10).chain(30..280))];
    for key in 50..60 {
        nights[2].get_mut(&key).unwrap().age = "corrected".to_owned();
    }
    let mut fourth = of_persons((0..10).chain(30..320));
    for key in 100..105 {
        let others = persons.iter().map(|person| &person.value);
        let other = others.into_iter().find(|value| **value != persons[key].value).unwrap().clone();
        fourth.get_mut(&key).unwrap().value = other;
    }
    nights.push(fourth);
    nights.push(of_persons(60..320));
    nights
}

async fn nights_reveal_no_more_than_one(store: TestStore) {
    let server = store.serve(|_: &mut Config| ()).await;
    staff(&server).await;
    assert_eq!(progress(&server).await, Value::Null);
    let (mut attacker, mut releases) = (Intersection::default(), Vec::new());
    for (place, night) in five_nights().iter().enumerate() {
        let release = published(&server, night).await;
        assert_eq!(number(&release), place as u64 + 1);
        let shown = shown(&server, &release).await;
        let changed = |key: usize| !shown.contains_key(&format!("n{key}"));
        assert_eq!((100..105).all(changed), place == 3, "a row whose value is another waits until it is back");
        attacker.add(&shown);
        releases.push(release);
    }
    assert!(attacker.persons() > 300, "{}", attacker.persons());
    assert_eq!(attacker.above(L), 0);

    let last = &releases[4];
    let now = progress(&server).await;
    assert_eq!((&now["nights"], &now["release"], &now["pending"]), (&json!(5), &last["id"], &Value::Null));
    assert_eq!(server.get(STAFF).await.ok(200)["releases"].as_array().unwrap().len(), 5);
    // the same table gives back the last night, by whichever upload, and that of another night is a new one
    for _ in 0..2 {
        let dataset = upload(&server, &five_nights()[4]).await;
        let again = server.job(&dataset, night_job()).await.ok(200);
        assert_eq!((&again["release"], &again["reused"]), (&last["id"], &json!(true)));
    }
    let earlier = published(&server, &five_nights()[0]).await;
    assert_eq!(number(&earlier), 6);
    attacker.add(&shown(&server, &earlier).await);
    assert_eq!(attacker.above(L), 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_nights_reveal_no_more_than_one() {
    nights_reveal_no_more_than_one(TestStore::embedded()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_nights_reveal_no_more_than_one_on_postgres() {
    if let Some(store) = TestStore::shared().await {
        nights_reveal_no_more_than_one(store).await;
    }
}

async fn jobs_of_one_night_follow_each_other(store: TestStore) {
    let server = store.serve(|config: &mut Config| config.workers = 4).await;
    staff(&server).await;
    let mut attacker = Intersection::default();
    attacker.add(&shown(&server, &published(&server, &of_persons(0..240)).await).await);
    let mut datasets = Vec::new();
    for first in [10, 20, 30] {
        datasets.push(upload(&server, &of_persons(first..240 + 4 * first)).await);
    }
    let job = |dataset: &String| {
        let (client, dataset) = (Client::new(server.base.clone()), dataset.clone());
        tokio::spawn(async move { client.publish(&dataset, night_job()).await })
    };
    let mut releases = BTreeMap::new();
    for (job, dataset) in datasets.iter().map(job).collect::<Vec<_>>().into_iter().zip(&datasets) {
        let release = job.await.unwrap();
        attacker.add(&shown(&server, &release).await);
        releases.insert(number(&release), (release, dataset));
    }
    assert_eq!(releases.keys().collect::<Vec<_>>(), [&2, &3, &4], "each goes on from another");
    assert_eq!(attacker.above(L), 0);
    // the last of them, which saw the first night when it was submitted, is given back
    let (last, dataset) = &releases[&4];
    let again = server.job(dataset, night_job()).await.ok(200);
    assert_eq!((&again["release"], &again["reused"]), (&last["id"], &json!(true)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_one_night_go_on_from_each_other() {
    jobs_of_one_night_follow_each_other(TestStore::embedded()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_one_night_go_on_from_each_other_on_postgres() {
    if let Some(store) = TestStore::shared().await {
        jobs_of_one_night_follow_each_other(store).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_first_nights_at_once_are_a_series() {
    let server = Server::start_with(|config| config.workers = 4).await;
    staff(&server).await;
    let (one, other) = (upload(&server, &of_persons(0..240)).await, upload(&server, &of_persons(100..340)).await);
    let job = |dataset: String| {
        let client = Client::new(server.base.clone());
        tokio::spawn(async move { client.publish(&dataset, night_job()).await })
    };
    let (one, other) = (job(one), job(other));
    let releases = [one.await.unwrap(), other.await.unwrap()];
    let mut numbers = releases.iter().map(number).collect::<Vec<_>>();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
    let mut attacker = Intersection::default();
    for release in &releases {
        attacker.add(&shown(&server, release).await);
    }
    assert_eq!(attacker.above(L), 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_night_waits_for_the_decision_on_a_held_one() {
    let server = Server::start().await;
    staff(&server).await;
    let first = published(&server, &of_persons(0..240)).await;
    let held = |mut job: Value| {
        job["hold"] = true.into();
        job
    };
    let decide = async |release: &str, act: &str| {
        server.post(&format!("/v1/releases/{release}/{act}"), &json!({"reason": "why"})).await.ok(200)
    };
    let second = upload(&server, &of_persons(10..280)).await;
    let waiting = server.publish(&second, held(night_job())).await;
    let now = progress(&server).await;
    assert_eq!((&now["nights"], &now["release"], &now["pending"]), (&json!(1), &first["id"], &waiting["id"]));
    // an equal job gives it back; another one waits
    let again = server.job(&second, held(night_job())).await.ok(200);
    assert_eq!(again["release"], waiting["id"]);
    let third = upload(&server, &of_persons(20..320)).await;
    let mut job = night_job();
    job["dataset"] = third.as_str().into();
    let problem = server.post("/v1/jobs", &job).await.problem(409, "republish-pending");
    assert_eq!(problem["release"], waiting["id"]);
    let plan = server.post("/v1/plans", &job).await.ok(200);
    assert_eq!(kind(&plan["problems"][0]), "republish-pending", "{plan:#}");
    // rejected unread, it never was
    decide(&text(&waiting["id"]), "reject").await;
    assert_eq!(progress(&server).await["nights"], 1);
    let release = server.publish(&third, held(night_job())).await;
    assert_eq!(number(&release), 2);
    decide(&text(&release["id"]), "approve").await;
    let now = progress(&server).await;
    assert_eq!((&now["nights"], &now["release"], &now["pending"]), (&json!(2), &release["id"], &Value::Null));
    let last = published(&server, &of_persons(30..340)).await;
    assert_eq!(number(&last), 3);
    let mut attacker = Intersection::default();
    for release in [&first, &release, &last] {
        attacker.add(&shown(&server, release).await);
    }
    assert_eq!(attacker.above(L), 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_what_a_night_costs() {
    let server = Server::start().await;
    staff(&server).await;
    let first = upload(&server, &of_persons(0..240)).await;
    let plan = async |dataset: &str| {
        let mut job = night_job();
        job["dataset"] = dataset.into();
        server.post("/v1/plans", &job).await.ok(200)
    };
    let planned = plan(&first).await;
    assert_eq!((&planned["feasible"], &planned["night"]["night"]), (&json!(true), &json!(1)), "{planned:#}");
    assert_eq!(progress(&server).await, Value::Null, "a plan begins nothing");
    server.publish(&first, night_job()).await;
    let second = upload(&server, &of_persons(12..280)).await;
    let night = plan(&second).await["night"].clone();
    assert_eq!((&night["night"], &night["newcomers"], &night["departed"]), (&json!(2), &json!(40), &json!(12)));
    let release = server.publish(&second, night_job()).await;
    assert_eq!(night["counterfeits"], release["method_details"]["counterfeits"]);
    server.stop().await;
}

/// Who uploads a guess of a value learns from no plan whether it is right.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_confirms_no_guess_of_a_value() {
    let guarded = Guarded::start().await;
    let (pipeline, officer) = (guarded.preset(Preset::Pipeline), guarded.preset(Preset::Officer));
    staff(&officer).await;
    let all = of_persons(0..240);
    published(&pipeline, &all).await;
    let target = &all[&7];
    let guess = |value: &str| Night::from([(7, Person { value: value.to_owned(), ..target.clone() })]);
    let plan = async |by: &Client, dataset: &str| {
        let mut job = night_job();
        job["dataset"] = dataset.into();
        by.post("/v1/plans", &job).await.ok(200)
    };
    let wrong = all.values().map(|person| &person.value).find(|value| **value != target.value).unwrap();
    let mut seen = Vec::new();
    for value in [&target.value, wrong] {
        let dataset = upload(&pipeline, &guess(value)).await;
        let planned = plan(&pipeline, &dataset).await;
        assert_eq!(planned.get("night"), None, "{planned:#}");
        seen.push((planned["feasible"].clone(), planned["problems"].clone()));
        // who may inspect data sees the table of last night, too
        let inspected = plan(&officer, &dataset).await;
        assert_eq!(inspected["night"].is_object(), *value == target.value, "{inspected:#}");
    }
    assert_eq!(seen[0], seen[1]);
    guarded.server.stop().await;
}

/// Nothing but its nights may speak of the persons of a series.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_else_is_published_of_a_series() {
    let server = Server::start().await;
    staff(&server).await;
    let all = of_persons(0..240);
    let first = upload(&server, &all).await;
    let once = || {
        let mut job = night_job();
        job.as_object_mut().unwrap().remove("republish");
        job
    };
    let send = async |dataset: &str, mut job: Value| {
        job["dataset"] = dataset.into();
        server.post("/v1/jobs", &job).await
    };
    server.publish(&first, night_job()).await;
    let subset = upload(&server, &of_persons(0..100)).await;
    for dataset in [&first, &subset] {
        send(dataset, once()).await.problem(409, "overlapping-people");
    }
    // nor in another population that has the key system
    let shared = json!({"person": [{"key_system": "staff", "columns": ["pid"]}]});
    server.put("/v1/populations/others", &shared).await.ok(201);
    let elsewhere = text(&server.upload("population=others", csv(&of_persons(230..300))).await.ok(201)["id"]);
    send(&elsewhere, once()).await.problem(409, "overlapping-people");
    send(&elsewhere, night_job()).await.fault("/republish", "republish-unsupported");

    let second = upload(&server, &of_persons(10..280)).await;
    for (member, value) in [("changes", json!("refuse")), ("merge", json!("never")), ("grace", json!(9))] {
        let problem = send(&second, job_under(3, json!({member: value}))).await;
        problem.fault(&format!("/republish/{member}"), "republish-specification-changed");
    }
    let other = server.refused(&second, job_under(2, json!({}))).await;
    assert_eq!(kind(&other["errors"][0]), "republish-specification-changed", "{other:#}");
    let mut unpublished = night_job();
    unpublished["people"] = "unpublished".into();
    send(&second, unpublished).await.fault("/people", "republish-unsupported");
    let kept = server.upload("population=staff&keep=1", csv(&all)).await;
    let kept = text(&kept.ok(201)["id"]);
    send(&kept, night_job()).await.fault("/republish", "republish-unsupported");
    let keyless = text(&server.upload("population=staff&person=none", csv(&all)).await.ok(201)["id"]);
    send(&keyless, night_job()).await.fault("/republish", "republish-needs-record-key");
    // the terms stay
    let changed = json!({"person": [{"key_system": "staff", "columns": ["pid"]}], "republication": {"grace": 9}});
    server.put(STAFF, &changed).await.problem(409, "conflict");
    assert_eq!(server.get(STAFF).await.ok(200)["republication"]["grace"], 7);
    assert_eq!(progress(&server).await["nights"], 1);
    server.stop().await;
}

/// Who maps the key to another column makes newcomers of known persons, who would get a second signature.
#[tokio::test(flavor = "multi_thread")]
async fn other_columns_of_the_key_publish_no_known_person() {
    let server = Server::start().await;
    staff(&server).await;
    let nights = [of_persons(0..240), of_persons(10..250)];
    for night in &nights {
        published(&server, night).await;
    }
    let remapped = async |night| {
        let dataset = text(&server.upload("population=staff&person=no", csv(night)).await.ok(201)["id"]);
        let mut job = night_job();
        // else the last night would be given back
        job["republish"]["min_newcomers"] = 9.into();
        (dataset, job)
    };
    for night in &nights {
        let (dataset, job) = remapped(night).await;
        let problem = server.refused(&dataset, job).await;
        assert_eq!(kind(&problem["errors"][0]), "republish-specification-changed", "{problem:#}");
    }
    // rows that were never uploaded look like those of other nights
    let (dataset, mut job) = remapped(&of_persons(5..245)).await;
    job["dataset"] = dataset.into();
    server.post("/v1/jobs", &job).await.problem(409, "people-alike");
    // by two keys a person may be known and new at once
    let keys = json!([{"key_system": "staff", "columns": ["pid"]}, {"key_system": "card", "columns": ["no"]}]);
    let two = json!({"person": keys, "republication": {}});
    server.put("/v1/populations/two", &two).await.fault("/person", "republish-unsupported");
    assert_eq!(progress(&server).await["nights"], 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_published_once_begins_no_series() {
    let server = Server::start().await;
    staff(&server).await;
    let first = upload(&server, &of_persons(0..240)).await;
    let mut once = night_job();
    once.as_object_mut().unwrap().remove("republish");
    server.publish(&first, once).await;
    let mut job = night_job();
    job["dataset"] = first.as_str().into();
    server.post("/v1/jobs", &job).await.problem(409, "republish-not-started");
    // people of whom nothing is published begin one
    assert_eq!(number(&published(&server, &of_persons(300..500)).await), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_series_publishes_no_person_again() {
    let server = Server::start().await;
    staff(&server).await;
    let path = format!("{STAFF}/republication");
    server.delete(&path).await.problem(404, "not-found");
    published(&server, &of_persons(0..240)).await;
    let receipt = server.delete(&path).await.ok(200);
    assert_eq!((&receipt["population"], &receipt["key_destroyed"]), (&json!("staff"), &json!(true)));
    assert_eq!(server.delete(&path).await.ok(200), receipt);
    assert_eq!(server.stored("chain_keys").await + server.stored("chain_states").await, 0);
    assert_eq!(server.stored("chain_pieces").await, 0);
    let now = progress(&server).await;
    assert_eq!((&now["ended_at"], &now["nights"]), (&receipt["ended_at"], &Value::Null));
    for night in [of_persons(10..280), of_persons(400..600)] {
        let mut job = night_job();
        job["dataset"] = upload(&server, &night).await.into();
        server.post("/v1/jobs", &job).await.problem(409, "republish-state-lost");
    }
    server.delete("/v1/populations/unknown/republication").await.problem(404, "not-found");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_series_goes_on_in_another_store() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (home.path().join("one"), home.path().join("other"));
    let mut attacker = Intersection::default();
    let mut process = Process::serve(&one, "info");
    staff(&process).await;
    for night in [of_persons(0..240), of_persons(20..280)] {
        let release = published(&process, &night).await;
        attacker.add(&shown(&process, &release).await);
    }
    assert!(process.terminate().success());
    drop(process);
    let file = home.path().join("ledger.ndjson");
    fs::write(&file, said(&on(&one, &["ledger", "export"]))).unwrap();
    fs::create_dir(&other).unwrap();
    fs::copy(one.join("master.key"), other.join("master.key")).unwrap();
    assert!(said(&on(&other, &["ledger", "import", file.to_str().unwrap()])).starts_with("imported 2 releases"));

    let mut process = Process::serve(&other, "info");
    assert_eq!(progress(&process).await["nights"], 2);
    let release = published(&process, &of_persons((0..10).chain(40..320))).await;
    assert_eq!(number(&release), 3);
    attacker.add(&shown(&process, &release).await);
    assert!(attacker.persons() > 300);
    assert_eq!(attacker.above(L), 0);
    assert!(process.terminate().success());
}
