//! The attack by dependencies: on releases, which are made against it, and on tables of a publisher who did not look.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::external_tables::verify;
use crate::support::harness::{Server, text};

/// 240 people: twelve diagnoses in three chapters, each with twenty ages.
fn people() -> Vec<[String; 3]> {
    let row = |i: usize| [format!("{}", 20 + i / 12), format!("c{}", i % 12 / 4), format!("d{:02}", i % 12)];
    (0..240).map(row).collect()
}

fn csv(people: &[[String; 3]]) -> String {
    "age,chapter,dx\n".to_owned() + &people.iter().map(|row| row.join(",") + "\n").collect::<String>()
}

fn guarantee() -> Value {
    json!({"type": "l_diversity", "l": 2})
}

#[tokio::test(flavor = "multi_thread")]
async fn dependency_attack_finds_nothing_in_releases() {
    let mut server = Server::start().await;
    let known = ["age", "chapter"];
    for method in [
        json!({"type": "versatile", "rules": ["age, chapter -> dx"], "default_guarantee": guarantee()}),
        json!({"type": "versatile", "rules": ["age -> dx"], "default_guarantee": guarantee(), "algorithm": "gd"}),
        json!({"type": "bucketize", "sensitive": "dx", "quasi_identifiers": known, "thresholds": {"uniform": {"l": 2}}}),
        json!({"type": "anatomy", "sensitive": "dx", "quasi_identifiers": ["age"], "guarantee": guarantee()}),
    ] {
        let attributes: Value =
            ["age", "chapter", "dx"].map(|name| (name, json!({"publish": true}))).into_iter().collect();
        server = server.anew().await;
        let dataset = server.dataset(csv(&people())).await;
        let release = server.publish(&dataset, json!({"attributes": attributes, "method": method})).await;
        let path = format!("/v1/releases/{}/attacks", text(&release["id"]));
        let found = server.post(&path, &json!({"attack": "dependency"})).await.ok(200);
        assert_eq!((&found["uses"], &found["breach"]), (&json!("original"), &json!(false)), "{method}: {found:#}");
        assert_eq!(found["worst"], json!({"count": 1, "of": 2}), "{method}: {found:#}");
    }
    server.stop().await;
}

/// Buckets of two over the whole table, or inside chapters: the published parts and the original.
fn parts(people: &[[String; 3]], partner: usize) -> Vec<(&'static str, Vec<u8>)> {
    let mut qi = "bucket,age,chapter\n".to_owned();
    let mut sa = "bucket,dx\n".to_owned();
    let half = |at: usize| at / (2 * partner) * partner + at % partner;
    for (at, [age, chapter, dx]) in people.iter().enumerate() {
        writeln!(qi, "{},{age},{chapter}", half(at)).unwrap();
        writeln!(sa, "{},{dx}", half(at)).unwrap();
    }
    [("qi.csv", qi), ("sa.csv", sa), ("T.csv", csv(people))].map(|(name, text)| (name, text.into_bytes())).to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn dependency_attack_breaks_tables_made_without_strata() {
    let server = Server::start().await;
    let part = |name: &str| json!({"name": name, "file": format!("{name}.csv"), "bucketed": true});
    let mut request = json!({"tables": [{"name": "t", "parts": [part("qi"), part("sa")]}], "rules": ["age, chapter -> dx"],
        "default_guarantee": guarantee(), "original": {"file": "T.csv"}, "attacks": ["dependency"],
        "functional_dependencies": [{"determinant": ["dx"], "dependent": ["chapter"]}]});
    // two diagnoses of one chapter, then one of each of two chapters
    for (partner, breach, worst) in [(2, false, json!({"count": 1, "of": 2})), (4, true, json!({"count": 1, "of": 1}))]
    {
        let found = verify(&server, &request, &parts(&people(), partner)).await.ok(200);
        let attack = &found["attacks"][0];
        assert_eq!((&attack["attack"], &attack["uses"]), (&json!("dependency"), &json!("original")), "{attack:#}");
        assert_eq!((&attack["breach"], &attack["worst"]), (&json!(breach), &worst), "{partner}: {attack:#}");
        let findings = &attack["findings"];
        assert_eq!(findings["total"].as_u64().unwrap() > 100, breach, "{findings:#}");
        if breach {
            let finding = &findings["first"][0];
            assert_eq!((&finding["table"], &finding["posterior"]), (&json!("t"), &worst), "{finding:#}");
            assert!(finding["known"]["chapter"].is_string() && finding["sensitive"]["dx"].is_string(), "{finding:#}");
        }
    }
    let mut files = parts(&people(), 4);
    // who does not know the function, knows no more than the buckets
    request["functional_dependencies"] = json!([]);
    let found = verify(&server, &request, &files).await.ok(200);
    assert_eq!(found["attacks"][0]["breach"], false, "{found:#}");
    request["original"] = json!(null);
    files.pop();
    verify(&server, &request, &files).await.fault("/attacks", "bad-columns");
    let plain = json!({"tables": [{"name": "t", "parts": [{"file": "t.csv"}]}], "rules": ["age, chapter -> dx"],
        "default_guarantee": guarantee(), "original": {"file": "T.csv"}, "attacks": ["dependency"]});
    let files = ["t.csv", "T.csv"].map(|name| (name, csv(&people()).into_bytes()));
    verify(&server, &plain, &files).await.fault("/attacks", "guarantee-unsupported");
    server.stop().await;
}
