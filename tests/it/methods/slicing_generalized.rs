//! Sliced tables whose columns are generalized: over HTTP, by the command line and through the library, judged from what they
//! publish by this test's own definitions.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use guardian::engine::QuerySet;
use guardian::ledger::EarlierDisclosures;
use guardian::random::{RandomStreams, ReleaseKey};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::folder::CommandFixture;
use crate::support::harness::{Server, kind, part_path, text};
use crate::support::library::{Original, cells, release, table, verified};

const TABLE: &str = "age,sex,zip,disease\n22,M,47906,dyspepsia\n22,F,47906,flu\n33,F,47905,flu\n52,F,47905,bronchitis\n\
    54,M,47302,flu\n60,M,47302,dyspepsia\n60,M,47304,dyspepsia\n64,F,47304,gastritis\n";

fn job(columns: &[&[&str]], sensitive: &str, l: u64, k: u64) -> Value {
    json!({"unlisted": "drop",
        "internal": {"utility": [{"count_queries": {"number": 20, "dimensions": 2, "value_fraction": "0.5"}}]},
        "method": {"type": "slicing", "sensitive": sensitive, "columns": {"explicit": columns}, "column_k": k,
            "guarantee": {"type": "l_diversity", "l": l}}})
}

/// Whether a value lies in an interval as it is written; a missing one only where there is no first end.
fn within(value: &str, cell: &str) -> bool {
    let Some((from, to)) = cell.split_once("..") else { return value.is_empty() && cell.is_empty() };
    let below = |a: &str, b: &str| match (a.parse::<i64>(), b.parse::<i64>()) {
        (Ok(a), Ok(b)) => a <= b,
        _ => a <= b,
    };
    if value.is_empty() { from.is_empty() } else { (from.is_empty() || below(from, value)) && below(value, to) }
}

/// Holds the parts against the table: boxes have at least the minimal number of rows, every row of the table is in a box of each part, of each bucket and box
/// no sensitive value takes more than 1/l.
fn judge(csv: &[u8], manifest: &Value, file: impl Fn(&Value) -> Vec<u8>, sensitive: &str, l: usize, k: usize) -> usize {
    let (names, original) = cells(csv);
    let mut boxes_of_all = 0;
    for part in manifest["tables"][0]["parts"].as_array().unwrap() {
        let (header, rows) = cells(&file(part));
        let places: Vec<usize> =
            header[1..].iter().map(|name| names.iter().position(|known| known == name).unwrap()).collect();
        let protected = header.iter().position(|name| name == sensitive);
        let mut boxes: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
        let mut classes: BTreeMap<(&str, Vec<&str>), BTreeMap<&str, usize>> = BTreeMap::new();
        for row in &rows {
            let cells = row.iter().enumerate().skip(1).filter(|(at, _)| Some(*at) != protected);
            let of_box: Vec<&str> = cells.map(|(_, cell)| cell.as_str()).collect();
            *boxes.entry(of_box.clone()).or_default() += 1;
            if let Some(at) = protected {
                *classes.entry((&row[0], of_box)).or_default().entry(&row[at]).or_default() += 1;
            }
        }
        if header.len() > 1 + usize::from(protected.is_some()) {
            assert!(boxes.values().all(|rows| *rows >= k), "{boxes:?}");
            boxes_of_all += boxes.len();
        }
        for class in classes.values() {
            assert!(class.values().max().unwrap() * l <= class.values().sum::<usize>(), "{class:?}");
        }
        // boxes do not meet: each row is in one of them, and each of them has its rows
        let mut found: BTreeMap<&Vec<&str>, usize> = BTreeMap::new();
        for row in &original {
            let values: Vec<&str> =
                places.iter().filter(|at| names[**at] != sensitive).map(|at| row[*at].as_str()).collect();
            let mut in_boxes = boxes.keys().filter(|cells| values.iter().zip(*cells).all(|(v, c)| within(v, c)));
            *found.entry(in_boxes.next().expect("a box")).or_default() += 1;
            assert!(in_boxes.next().is_none(), "{values:?} is in two boxes");
        }
        assert!(found.iter().all(|(cells, rows)| boxes[*cells] == *rows), "boxes do not have their rows");
    }
    boxes_of_all
}

#[test]
fn a_real_table_is_sliced_in_boxes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/adult.csv.gz");
    let mut csv = Vec::new();
    GzDecoder::new(File::open(path).unwrap()).read_to_end(&mut csv).unwrap();
    let csv: Vec<u8> = csv.split_inclusive(|byte| *byte == b'\n').take(6_001).flatten().copied().collect();
    let input = Original::new(table(&csv[..]));
    let columns: &[&[&str]] =
        &[&["age", "education", "hours-per-week"], &["race", "workclass"], &["sex", "marital-status", "occupation"]];
    for (split, k, fewest) in [("relaxed", 20, 60), ("strict", 100, 15)] {
        let mut document = job(columns, "occupation", 3, k);
        document["method"]["split"] = split.into();
        let job = input.job(&document).unwrap();
        let (released, files) =
            release(&job, &EarlierDisclosures::default(), &RandomStreams::Keyed(ReleaseKey::from_bytes([k as u8; 32])))
                .unwrap();
        let manifest = serde_json::to_value(&released.manifest).unwrap();
        assert_eq!(
            (&manifest["verification"]["verified"], &manifest["method_details"]["column_k"]),
            (&json!(true), &json!(k))
        );
        assert_eq!(manifest["tables"][0]["protection"], "guarding");
        let file = |part: &Value| files.0[&text(&part["file"])].clone();
        let boxes = judge(&csv, &manifest, file, "occupation", 3, k as usize);
        assert!(boxes >= fewest, "{boxes} boxes");
        for with_rows in [false, true] {
            verified(&job, &released.manifest, &files, with_rows);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn boxes_of_columns_are_served_and_counted() {
    let server = Server::start().await;
    let dataset = server.dataset(TABLE).await;
    let release = server.publish(&dataset, job(&[&["age", "sex"], &["zip", "disease"]], "disease", 2, 2)).await;
    assert_eq!(release["method_details"]["column_k"], 2);
    let parts = &release["tables"][0]["parts"];
    assert_eq!(parts[0]["cells"], json!({"age": "interval", "sex": "interval"}));
    assert_eq!((&parts[1]["cells"], &parts[1]["types"]["zip"]), (&json!({"zip": "interval"}), &json!("integer")));
    let mut files = BTreeMap::new();
    for part in ["c1", "c2"] {
        files.insert(format!("t1.{part}.csv"), server.part(&release, "t1", part).await.into_bytes());
        for format in ["json", "ndjson", "parquet", "arrow"] {
            let path = part_path(&release, "t1", part);
            assert_eq!(server.get(&format!("{path}?format={format}")).await.status, 200, "{format}");
        }
    }
    judge(TABLE.as_bytes(), &release, |part| files[&text(&part["file"])].clone(), "disease", 2, 2);
    let id = text(&release["id"]);
    let linked = server.get(&format!("{}?view=linked&format=json", part_path(&release, "t1", "c1"))).await.ok(200);
    assert_eq!(linked["rows"].as_array().unwrap().len(), 8);
    assert!(linked["rows"][0][0]["from"].is_u64(), "{linked:#}");
    let queries = json!({"queries": [
        {"where": []},
        {"where": [{"attribute": "age", "from": 0, "to": 99}]},
        {"where": [{"attribute": "age", "from": 0, "to": 99}, {"attribute": "disease", "in": ["flu"]}]},
        {"where": [{"attribute": "disease", "in": ["flu"]}]},
        {"where": [{"attribute": "zip", "from": 47000, "to": 47400}, {"attribute": "disease", "in": ["bronchitis"]}]},
    ]});
    let answers = server.post(&format!("/v1/releases/{id}/queries"), &queries).await.ok(200);
    let estimates: Vec<f64> =
        answers["answers"].as_array().unwrap().iter().map(|a| a["estimate"].as_f64().unwrap()).collect();
    assert_eq!(estimates[..4], [8.0, 8.0, 3.0, 3.0]);
    assert!((0.0..=1.0).contains(&estimates[4]));
    let report = server.get(&format!("/v1/releases/{id}/internal-report")).await.ok(200);
    assert!(report["count_queries"].is_object(), "{report:#}");
    let audits = format!("/v1/releases/{id}/attacks");
    for attack in ["membership", "exact_posteriors"] {
        server.post(&audits, &json!({"attack": attack})).await.problem(422, "guarantee-unsupported");
    }
    let asked = json!({"release": id, "rules": [{"quasi_identifiers": ["age", "sex", "zip"], "sensitive": ["disease"],
        "guarantee": {"type": "l_diversity", "l": 2}}]});
    assert_eq!(server.post("/v1/verifications", &asked).await.ok(200)["verified"], true);
    // it is guarding: what is known may stand beside it, and not another table of what it protects
    let later = json!({"unlisted": "drop", "attributes": {"age": {"publish": true}, "zip": {"publish": true}},
        "no_rules_reason": "for a test", "method": {"type": "versatile", "rules": []}});
    assert_eq!(server.publish(&dataset, later).await["verification"]["verified"], true);
    let again = job(&[&["age", "sex"], &["zip", "disease"]], "disease", 2, 4);
    assert_eq!(kind(&server.refused(&dataset, again).await), "composition-violated");
    server.stop().await;
}

#[test]
fn boxes_are_verified_from_their_folder() {
    let folder = CommandFixture::new(TABLE, &job(&[&["age", "sex"], &["zip", "disease"]], "disease", 2, 2));
    let mut manifest = folder.published("out", &[]);
    assert_eq!(folder.is_verified("out"), [true, true]);
    manifest["method_details"]["column_k"] = json!(5);
    folder.forge("out", &manifest);
    assert_eq!(folder.is_verified("out"), [false, false]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn random_tables_in_boxes(
        rows in prop::collection::vec((prop::option::of(-3i64..9), 0usize..5, 0i64..4, 0usize..4), 4..40),
        k in 2u64..6, later in any::<bool>(), relaxed in any::<bool>(),
    ) {
        let mut csv = "age,job,zip,s\n".to_owned();
        for (age, job, zip, s) in &rows {
            csv += &format!("{},j{job},{zip},s{s}\n", age.map_or_else(String::new, |age| age.to_string()));
        }
        prop_assume!(k <= rows.len() as u64);
        let columns: &[&[&str]] = if later { &[&["age", "job"], &["zip", "s"]] } else { &[&["age"], &["job", "zip"], &["s"]] };
        let mut document = job(columns, "s", 2, k);
        document["method"]["split"] = if relaxed { "relaxed" } else { "strict" }.into();
        let input = Original::new(table(csv.as_bytes()));
        let job = input.job(&document).unwrap();
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([8; 32]));
        let Ok((released, files)) = release(&job, &EarlierDisclosures::default(), &streams) else { return Ok(()) };
        let manifest = serde_json::to_value(&released.manifest).unwrap();
        prop_assert!(released.manifest.verification.verified);
        judge(csv.as_bytes(), &manifest, |part| files.0[&text(&part["file"])].clone(), "s", 2, k as usize);
        let each = json!({"queries": [{"where": []}, {"where": [{"attribute": "age", "from": -3, "to": 8}]},
            {"where": [{"attribute": "age", "in": [null]}]}]});
        if rows.iter().all(|row| row.0.is_none()) {
            return Ok(());
        }
        let asked = QuerySet::new(&released.manifest, &each).unwrap();
        let counted = asked.answer(&files, &guardian::control::Control::default()).unwrap();
        prop_assert_eq!(counted[0].estimate, rows.len() as f64);
        prop_assert!((counted[1].estimate + counted[2].estimate - rows.len() as f64).abs() < 1e-6);
    }
}
