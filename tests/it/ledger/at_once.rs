//! Uploads and jobs at once, and what must not change their answers.

use std::collections::BTreeSet;

use guardian::config::Config;
use serde_json::{Value, json};

use super::data_subjects::{HEADER, patients};
use crate::support::harness::{Client, Server, kind, text, versatile};
use crate::support::stores::TestStore;

const UPLOADS: u32 = 16;
const JOBS: u32 = 8;
/// More than a mark may have coverages and still be attributed to one of them.
const COPIES: u32 = 16;

fn newcomers() -> Value {
    json!({"people": "unpublished", "unlisted": "drop", "method": versatile(&["age -> dx"])})
}

async fn clinic(server: &Client) {
    let population = json!({"person": [{"key_system": "patient", "columns": ["id"]}]});
    server.put("/v1/populations/clinic", &population).await.ok(201);
}

/// Each upload has half of the persons of the one before it.
async fn publishes_no_person_twice(store: TestStore) {
    let server = store.serve(|config: &mut Config| config.workers = JOBS).await;
    clinic(&server).await;
    let upload = |number: u32| {
        let rows = patients(100 * number..100 * number + 200, HEADER);
        let client = Client::new(server.base.clone());
        // no answer of 503: the client takes none for an answer
        tokio::spawn(async move { text(&client.upload("population=clinic", rows).await.ok(201)["id"]) })
    };
    let uploads: Vec<_> = (0..UPLOADS).map(upload).collect();
    let mut datasets = Vec::new();
    for upload in uploads {
        datasets.push(upload.await.unwrap());
    }
    let mut rows = 0;
    for some in datasets.chunks(JOBS as usize) {
        let job = |dataset: &String| {
            let (client, dataset) = (Client::new(server.base.clone()), dataset.clone());
            tokio::spawn(async move { client.job(&dataset, newcomers()).await.ok(200) })
        };
        for job in some.iter().map(job).collect::<Vec<_>>() {
            let job = job.await.unwrap();
            if job["status"] != "succeeded" {
                // its neighbours took its persons, or one of them the very same ones just before it
                let refused = kind(&job["problem"]);
                assert!(["nobody-new", "composition-violated"].contains(&refused), "{job:#}");
                continue;
            }
            let release = server.get(&format!("/v1/releases/{}", text(&job["release"]))).await.ok(200);
            assert_eq!(release["composition"], "enforced");
            rows += release["tables"][0]["parts"][0]["rows"].as_u64().unwrap();
        }
    }
    // of 16 halves and a last one
    assert_eq!(rows, 100 * u64::from(UPLOADS) + 100, "each person is published once");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_and_jobs_at_once_publish_no_person_twice() {
    publishes_no_person_twice(TestStore::embedded()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_at_once_publish_no_person_twice_on_postgres() {
    if let Some(store) = TestStore::shared().await {
        publishes_no_person_twice(store).await;
    }
}

/// Copies of one table, each with keys of its own, as if it were of another hospital. None is published when they are submitted.
async fn publishes_a_single_copy(store: TestStore) {
    let server = store.serve(|config: &mut Config| config.workers = COPIES).await;
    clinic(&server).await;
    let mut copies = Vec::new();
    for key in ('a'..).take(COPIES as usize) {
        let rows = patients(0..300, HEADER).replace("\np", &format!("\n{key}"));
        copies.push(text(&server.upload("population=clinic", rows).await.ok(201)["id"]));
    }
    let job = |copy: &String| {
        let (client, copy) = (Client::new(server.base.clone()), copy.clone());
        tokio::spawn(async move {
            let answer = client.job(&copy, json!({"unlisted": "drop", "method": versatile(&["age -> dx"])})).await;
            if answer.status == 200 { answer.ok(200) } else { json!({"problem": answer.problem(409, "people-alike")}) }
        })
    };
    let mut published = 0;
    for job in copies.iter().map(job).collect::<Vec<_>>() {
        let job = job.await.unwrap();
        if job["status"] == "succeeded" {
            published += 1;
        } else {
            assert_eq!(kind(&job["problem"]), "people-alike", "{job:#}");
        }
    }
    assert_eq!(published, 1, "a single one of the copies is published");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_at_once_do_not_hide_each_other() {
    publishes_a_single_copy(TestStore::embedded()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_at_once_do_not_hide_each_other_on_postgres() {
    if let Some(store) = TestStore::shared().await {
        publishes_a_single_copy(store).await;
    }
}

fn ndjson(csv: &str) -> String {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let object = |cells: Vec<&str>| {
        let cell =
            |(name, text): (&&str, &str)| ((*name).to_owned(), text.parse().map_or(json!(text), |n: i64| json!(n)));
        Value::Object(names.iter().zip(cells).map(cell).collect()).to_string() + "\n"
    };
    lines.map(object).collect()
}

/// The same table otherwise: rows and columns in other orders, names, formats.
fn forms(csv: &str) -> Vec<(&'static str, &'static str, String)> {
    let (header, rows) = csv.split_once('\n').unwrap();
    let backwards: String = rows.lines().rev().map(|row| format!("{row}\n")).collect();
    let turned = |line: &str| line.split(',').rev().collect::<Vec<_>>().join(",") + "\n";
    vec![
        ("the table", "text/csv", csv.to_owned()),
        ("rows", "text/csv", format!("{header}\n{backwards}")),
        ("columns", "text/csv", csv.lines().map(turned).collect()),
        ("names", "text/csv", format!("id,years,station,gender,code\n{rows}")),
        ("format", "application/x-ndjson", ndjson(csv)),
    ]
}

/// Neither form nor uploads that are not published change what is answered.
#[tokio::test(flavor = "multi_thread")]
async fn form_and_unpublished_uploads_change_no_answer() {
    let server = Server::start().await;
    clinic(&server).await;
    let upload = async |form: &str, rows: String| {
        server.upload_with("population=clinic", rows, &[("content-type", form)]).await.ok(201)
    };
    let first = upload("text/csv", patients(0..400, HEADER)).await;
    let release = server.publish(&text(&first["id"]), newcomers()).await;
    assert_eq!(release["composition"], "enforced");
    let mut answers: BTreeSet<String> = BTreeSet::new();
    for round in 0..2 {
        for (what, form, rows) in forms(&patients(100..500, HEADER)) {
            let dataset = upload(form, rows).await;
            let before = &dataset["published_before"];
            let rule = if what == "names" { "years -> code" } else { "age -> dx" };
            let job = json!({"dataset": dataset["id"], "unlisted": "drop", "method": versatile(&[rule])});
            let mut problem = server.post("/v1/jobs", &job).await.problem(409, "overlapping-people");
            for member in ["instance", "remedies"] {
                problem.as_object_mut().unwrap().remove(member);
            }
            answers.insert(format!("{before} {problem}"));
            assert_eq!(answers.len(), 1, "round {round}, {what}: {answers:#?}");
        }
        for (what, form, rows) in forms(&patients(0..400, HEADER)) {
            let dataset = upload(form, rows).await;
            assert_eq!(dataset["published_before"]["same_table"], true, "{what}");
            assert_eq!(dataset["published_before"]["persons"], json!({"count": 400, "of": 400}), "{what}");
        }
        // these may be anybody, and nothing is published of them
        for number in 0..20 {
            server.upload("name=t", patients(50 * number..50 * number + 60, HEADER)).await.ok(201);
        }
    }
    server.stop().await;
}
