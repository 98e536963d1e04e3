//! Releases of tables of another engine that this one does not make: few rows are read here, and published as those of uploads.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::engine_tables::{Lake, anatomy, assert_purge_ends_job, classes, two_rules, visits, with_dataset};
use crate::ledger::republished::{five_nights, job_under, shown, staff};
use crate::sequential::releases::{PEOPLE, anonymity, new, of, plain, sequential};
use crate::support::harness::{Server, kind, text};
use crate::support::nights::{Intersection, csv};
use crate::support::table_engine::EngineFault;

fn decompose() -> Value {
    json!({"unlisted": "drop", "method": {"type": "decompose", "quasi_identifiers": ["age"],
        "sensitive": ["ward", "disease"], "l": {"ward": 2, "disease": 2}}})
}

fn relaxed() -> Value {
    let mut relaxed = classes("interval");
    relaxed["method"]["split"] = json!("relaxed");
    relaxed
}

/// Visits with the chapter of each disease: a dependency that ties what is protected, which the engine finds once it has counted.
fn with_chapters(rows: u32) -> String {
    let mut csv = String::new();
    for line in visits(rows).lines() {
        let chapter = match line.rsplit(',').next() {
            Some("disease") => "chapter",
            Some("flu" | "measles" | "mumps") => "infections",
            _ => "others",
        };
        let _ = writeln!(csv, "{line},{chapter}");
    }
    csv
}

/// A release was made here, from rows of which nothing is left.
async fn assert_made_here(lake: &Lake, release: &Value) {
    assert_eq!((&release["made_by"], &release["verification"]["linkage"]), (&Value::Null, &json!("checked")));
    let report = format!("/v1/releases/{}/internal-report", text(&release["id"]));
    lake.server.get(&report).await.ok(200);
    assert_eq!((lake.engine.copies(), lake.server.stored("column_chunks").await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_engine_does_not_make_is_made_here() {
    let of_tables = [(visits(600), decompose()), (visits(600), relaxed()), (with_chapters(600), anatomy(4))];
    for (table, document) in of_tables {
        let (lake, other) = (Lake::start().await, Server::start().await);
        lake.write("table", &table);
        let id = lake.registered("", "table").await;
        let plan = lake.server.post("/v1/plans", &with_dataset(&id, document.clone())).await.ok(200);
        let warnings = plan["warnings"].as_array().unwrap();
        assert!(warnings.iter().any(|of| of["type"] == "rows-read-here"), "{plan:#}");
        assert_eq!((&plan["feasible"], lake.engine.copies()), (&json!(true), 0), "{plan:#}");
        let release = lake.server.publish(&id, document.clone()).await;
        assert_made_here(&lake, &release).await;
        let uploaded = other.dataset(table).await;
        let ordinary = other.publish(&uploaded, document).await;
        for member in ["method", "unit", "dependencies"] {
            assert_eq!(release[member], ordinary[member], "{member}");
        }
        // what is achieved hangs on the key
        let kept = |release: &Value| {
            let rules = release["rules"].as_array().unwrap().iter();
            rules.map(|rule| ["pointer", "guarantee", "enforced_by"].map(|of| rule[of].clone())).collect::<Vec<_>>()
        };
        assert_eq!(kept(&release), kept(&ordinary));
        lake.server.stop().await;
        other.stop().await;
    }
}

/// A sequential release joins the one that the engine made before it.
#[tokio::test(flavor = "multi_thread")]
async fn sequential_releases_join_those_of_an_engine() {
    let (lake, other) = (Lake::start().await, Server::start().await);
    lake.write("people", PEOPLE);
    let (id, uploaded) = (lake.registered("", "people").await, other.dataset(PEOPLE).await);
    let mut made = Vec::new();
    for (server, dataset) in [(&lake.server, &id), (&other, &uploaded)] {
        let first = server.publish(dataset, plain(&["job", "disease"])).await;
        let asked = |k| json!([anonymity(&[new("job"), of(&first, "disease")], &[new("#key")], k)]);
        let document = |k| sequential(&["name", "job", "class"], &[&first], Some("class"), asked(k));
        // no cut has groups of six among five
        let problem = server.refused(dataset, document(6)).await;
        assert_eq!(kind(&problem["errors"][0]), "infeasible-root", "{problem:#}");
        let plan = server.post("/v1/plans", &with_dataset(dataset, document(2))).await.ok(200);
        assert_eq!(plan["feasible"], json!(true), "{plan:#}");
        let second = server.publish(dataset, document(2)).await;
        assert_eq!(second["method_details"]["requirements"][0]["subsets"].as_array().unwrap().len(), 1);
        let part = server.part(&second, "t1", "rows").await;
        made.push((first["made_by"].is_object(), part, second["utility"].clone()));
        if dataset == &id {
            assert_made_here(&lake, &second).await;
        }
    }
    assert_eq!((made[0].0, made[1].0), (true, false));
    assert_eq!((&made[0].1, &made[0].2), (&made[1].1, &made[1].2));
    lake.server.stop().await;
    other.stop().await;
}

/// The attack: rules that a first release keeps are undone by a second one of the same rows.
#[tokio::test(flavor = "multi_thread")]
async fn second_releases_of_an_engine_are_judged_with_the_first() {
    let wards = || plain(&["ward"]);
    for (first, second) in [(anatomy(4), two_rules()), (two_rules(), wards()), (wards(), anatomy(4))] {
        let (lake, other) = (Lake::start().await, Server::start().await);
        let (id, uploaded) = (lake.registered("", "visits").await, other.dataset(visits(600)).await);
        let mut verdicts = Vec::new();
        for (server, dataset) in [(&lake.server, &id), (&other, &uploaded)] {
            server.publish(dataset, first.clone()).await;
            let plan = server.post("/v1/plans", &with_dataset(dataset, second.clone())).await.ok(200);
            let job = server.job(dataset, second.clone()).await.ok(200);
            let verdict = (job["status"].clone(), job["problem"]["type"].clone());
            assert_eq!(plan["feasible"] == true, verdict.0 == "succeeded", "{plan:#}");
            verdicts.push((plan["composition"]["verdict"].clone(), verdict));
        }
        assert_eq!(verdicts[0], verdicts[1]);
        lake.server.stop().await;
        other.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nights_of_an_engine_reveal_no_more_than_one() {
    let lake = Lake::start().await;
    staff(&lake.server).await;
    let mut attacker = Intersection::default();
    for (night, number) in five_nights().iter().zip(1..) {
        lake.write("tonight", &csv(night));
        let dataset = lake.registered("population=staff", "tonight").await;
        let release = lake.server.publish(&dataset, job_under(3, json!({}))).await;
        assert_eq!(
            (&release["method_details"]["night"], &release["composition"]),
            (&json!(number), &json!("enforced"))
        );
        assert_made_here(&lake, &release).await;
        attacker.add(&shown(&lake.server, &release).await);
    }
    assert!(attacker.persons() > 300, "{}", attacker.persons());
    assert_eq!(attacker.above(3), 0);
    lake.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_people_of_an_engine_are_published_alone() {
    let lake = Lake::start().await;
    lake.server.population("patients", &["id"]).await;
    let first = lake.registered("population=patients", "visits").await;
    lake.server.publish(&first, anatomy(4)).await;
    lake.write("tonight", &visits(900));
    let tonight = lake.registered("population=patients", "tonight").await;
    let mut newcomers = anatomy(4);
    newcomers["people"] = json!("unpublished");
    let release = lake.server.publish(&tonight, newcomers).await;
    assert_eq!(release["identity"]["people"], "unpublished");
    assert_eq!(lake.server.part(&release, "t1", "qi").await.lines().count(), 301);
    assert_made_here(&lake, &release).await;
    lake.server.stop().await;
}

/// The attack: what should be forgotten is published by a job that has read it already.
#[tokio::test(flavor = "multi_thread")]
async fn rows_read_here_of_a_purged_dataset_are_not_published() {
    assert_purge_ends_job(EngineFault::SlowCopy, decompose()).await;
}

/// A worker that was started without an engine says nothing about jobs of its tables.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_the_engine_refuses_no_job() {
    let lake = Lake::start().await;
    let id = lake.registered("", "visits").await;
    let without = lake.server.restarted().await;
    let job = without.post("/v1/jobs", &with_dataset(&id, anatomy(4))).await.ok(202);
    let path = format!("/v1/jobs/{}", text(&job["id"]));
    loop {
        let tried = without.get(&path).await.ok(200);
        assert!(tried["status"] == "queued" || tried["status"] == "running", "{tried:#}");
        if tried["attempt"].as_u64() > Some(2) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // a plan is made by this process or by none
    without.post("/v1/plans", &with_dataset(&id, anatomy(4))).await.problem(422, "source-refused");
    let with = without.restarted_with_engine(lake.engine).await;
    let ended = with.get(&format!("{path}?wait=60")).await.ok(200);
    assert_eq!(ended["status"], "succeeded", "{ended:#}");
    with.stop().await;
}
