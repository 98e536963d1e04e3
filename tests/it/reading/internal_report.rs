//! The internal report: its figures by hand, where it stands and where it does not, and when it is gone.

use std::collections::HashMap;
use std::fs;

use serde_json::{Value, json};

use crate::support::folder::{CommandFixture, read_json};
use crate::support::harness::{Client, HOSPITAL, Server, hospital_method, text};

fn internal() -> Value {
    json!({"utility": ["kl", {"count_queries": {"number": 50, "dimensions": 2, "value_fraction": "0.4"}}]})
}

async fn report(server: &Client, release: &Value) -> Value {
    server.get(&format!("/v1/releases/{}/internal-report", text(&release["id"]))).await.ok(200)
}

/// Rows of a CSV without quotes, below its header.
fn rows(csv: &str) -> Vec<Vec<&str>> {
    csv.lines().skip(1).map(|line| line.split(',').collect()).collect()
}

/// The divergence of the adult table from one table in two parts: for each row, how many rows of its bucket could have its sensitive
/// value, over all buckets with its known values.
fn divergence(original: &[Vec<&str>], known: &[usize], sensitive: usize, qi: &str, sa: &str) -> f64 {
    let n = original.len() as f64;
    let mut sizes: HashMap<&str, f64> = HashMap::new();
    let mut of_bucket: HashMap<&str, HashMap<&str, f64>> = HashMap::new();
    for row in rows(sa) {
        *sizes.entry(row[0]).or_default() += 1.0;
        *of_bucket.entry(row[0]).or_default().entry(row[1]).or_default() += 1.0;
    }
    let mut estimate: HashMap<(Vec<&str>, &str), f64> = HashMap::new();
    for row in rows(qi) {
        for (value, count) in &of_bucket[row[0]] {
            *estimate.entry((row[1..].to_vec(), *value)).or_default() += count / sizes[row[0]] / n;
        }
    }
    let mut actual: HashMap<(Vec<&str>, &str), f64> = HashMap::new();
    for row in original {
        *actual.entry((known.iter().map(|&at| row[at]).collect(), row[sensitive])).or_default() += 1.0 / n;
    }
    actual.iter().map(|(tuple, share)| share * (share / estimate[tuple]).ln()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_divergence_of_a_real_table_is_that_of_the_definition() {
    let server = Server::start().await;
    let packed = &include_bytes!("../../data/adult-7.csv.gz")[..];
    let dataset = text(&server.upload_with("", packed, &[("content-encoding", "gzip")]).await.ok(201)["id"]);
    let method = json!({"type": "anatomy", "quasi_identifiers": ["age", "country", "sex"], "sensitive": "education",
        "guarantee": {"type": "l_diversity", "l": 2}});
    let document = json!({"unlisted": "drop", "internal": internal(), "method": method});
    let release = server.publish(&dataset, document).await;
    let report = report(&server, &release).await;
    let mut original = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed), &mut original).unwrap();
    let (qi, sa) = (server.part(&release, "t1", "qi").await, server.part(&release, "t1", "sa").await);
    // age, country, education, marital_status, occupation, income, sex
    let expected = divergence(&rows(&original), &[0, 1, 6], 2, &qi, &sa);
    let found = report["kl"]["nats"].as_f64().unwrap();
    assert!((found - expected).abs() < 1e-9 && found > 0.001, "{found}, expected {expected}");
    assert!((report["kl"]["bits"].as_f64().unwrap() * std::f64::consts::LN_2 - found).abs() < 1e-9);
    assert_eq!(report["kl"]["kl_method"], "closed_form");
    assert_eq!((&report["rows"], &report["suppressed_rows"]), (&json!(45_222), &json!(0)));
    let queries = &report["count_queries"];
    assert_eq!(queries["queries"], 50);
    let figure = |name: &str| queries[name].as_f64().unwrap();
    assert!(figure("median") <= figure("percentile_95") && figure("percentile_95") <= figure("largest"), "{queries}");
    assert!(figure("mean") > 0.0 && figure("mean") < 1.0, "{queries}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn internal_report_ends_with_original_or_release() {
    let server = Server::start().await;
    let documents = [
        json!({"unlisted": "drop", "internal": internal(), "method": hospital_method()}),
        json!({"unlisted": "drop", "hold": true, "internal": internal(), "method": hospital_method()}),
        json!({"unlisted": "drop", "method": hospital_method()}),
    ];
    let mut releases = Vec::new();
    for document in documents {
        let dataset = server.newcomers(HOSPITAL).await;
        releases.push((server.publish(&dataset, document).await, dataset));
    }
    assert_eq!(server.stored("internal_reports").await, 3);
    for (release, _) in &releases {
        let id = text(&release["id"]);
        let report = report(&server, release).await;
        let asked = release["id"] != releases[2].0["id"];
        assert_eq!(
            (report["rows"].as_u64(), report["kl"].is_object(), report["count_queries"].is_object()),
            (Some(6), asked, asked)
        );
        // neither names nor figures of it are given to readers
        let mut said =
            release.to_string() + &server.get(&format!("/v1/releases/{id}/report")).await.ok(200).to_string();
        let archive = server.get(&format!("/v1/releases/{id}/archive")).await;
        let mut zip = zip::ZipArchive::new(std::io::Cursor::new(archive.body)).unwrap();
        for at in 0..zip.len() {
            let mut file = zip.by_index(at).unwrap();
            said.push_str(&file.name().unwrap());
            std::io::Read::read_to_string(&mut file, &mut said).unwrap();
        }
        for word in ["kl_method", "suppressed_rows", "redrawn", "count_queries"] {
            assert!(!said.contains(word), "{word} stands in what readers get");
        }
        if let Some(nats) = report["kl"]["nats"].as_f64() {
            assert!(!said.contains(&nats.to_string()), "{nats}");
        }
    }
    // neither does the store hold it in the clear
    let files = fs::read_dir(server.data()).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap_or_default());
    assert!(files.into_iter().all(|bytes| !bytes.windows(9).any(|window| window == b"kl_method")));
    let logged = server.items("/v1/audit-log?action=release.read_internal").await;
    assert_eq!(logged.len(), 3, "{logged:?}");

    let path = |at: usize| format!("/v1/releases/{}/internal-report", text(&releases[at].0["id"]));
    server.delete(&format!("/v1/datasets/{}", releases[0].1)).await.ok(200);
    server.get(&path(0)).await.problem(410, "gone");
    assert_eq!(server.get(&format!("/v1/releases/{}", text(&releases[0].0["id"]))).await.status, 200);
    assert_eq!(server.stored("internal_reports").await, 2);
    for (at, act) in [(1, "reject"), (2, "withdraw")] {
        let path = format!("/v1/releases/{}/{act}", text(&releases[at].0["id"]));
        server.post(&path, &json!({"reason": "x"})).await.ok(200);
    }
    server.get(&path(1)).await.problem(410, "gone");
    server.get(&path(2)).await.problem(410, "gone");
    server.stop_and_expect("internal_reports", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn measurement_does_not_change_the_release() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let first = server.publish(&dataset, json!({"method": hospital_method()})).await;
    let again = server.job(&dataset, json!({"internal": internal(), "method": hospital_method()})).await.ok(200);
    assert_eq!((&again["release"], &again["reused"]), (&first["id"], &json!(true)));
    let most = json!({"utility": [{"count_queries": {"dimensions": 7, "selectivity": "0.05"}}]});
    let refused = server.job(&dataset, json!({"internal": most, "method": hospital_method()})).await;
    refused.fault("/internal/utility", "parameter-range");
    server.stop().await;
}

#[test]
fn command_writes_internal_report_on_request_only() {
    let folder = CommandFixture::new(HOSPITAL, &json!({"internal": internal(), "method": hospital_method()}));
    folder.published("one", &[]);
    let file = folder.path("report.json");
    folder.published("two", &["--internal-report", file.to_str().unwrap()]);
    let report = read_json(&file);
    assert_eq!((&report["rows"], &report["kl"]["kl_method"]), (&json!(6), &json!("closed_form")));
    for out in ["one", "two"] {
        for entry in fs::read_dir(folder.path(out)).unwrap() {
            let path = entry.unwrap().path();
            let said = fs::read_to_string(&path).unwrap();
            // the specification says what was asked for
            assert!(!said.contains("kl_method") && !said.contains("redrawn"), "{}", path.display());
        }
    }
}
