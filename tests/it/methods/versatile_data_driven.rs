//! Versatile publishing by algorithms that look at the data: over HTTP on Adult, judged from outside, and verified again.

use std::fs;
use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::support::harness::{Server, guardian, kind, run, text};
use crate::support::independent_check::{Files, Original, Rule, audit};
use crate::support::library::some_rows;

const DATA: &str = "tests/data/adult-7.csv.gz";

/// Attributes in the order of the file: age, country, education, marital_status, occupation, income, sex.
const NAMES: [&str; 7] = ["age", "country", "education", "marital_status", "occupation", "income", "sex"];

pub(crate) fn adult() -> Vec<u8> {
    let file = File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(DATA)).unwrap();
    some_rows(GzDecoder::new(file), 4)
}

fn rules() -> Vec<Rule> {
    let rule = |known: &[usize], sensitive| Rule { known: known.to_vec(), sensitive, l: 2 };
    vec![rule(&[0, 6], 2), rule(&[1, 4, 5], 3)]
}

/// The rules by an algorithm, with options.
pub(crate) fn document(algorithm: &str, options: &Value) -> Value {
    let declared = |rule: &Rule| {
        let known: Vec<&str> = rule.known.iter().map(|&at| NAMES[at]).collect();
        json!({"quasi_identifiers": known, "sensitive": [NAMES[rule.sensitive]]})
    };
    let mut method = json!({"type": "versatile", "algorithm": algorithm,
        "rules": rules().iter().map(declared).collect::<Vec<_>>(), "default_guarantee": {"type": "l_diversity", "l": 2}});
    for (name, value) in options.as_object().into_iter().flatten() {
        method[name] = value.clone();
    }
    let published: serde_json::Map<_, _> =
        NAMES.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    json!({"attributes": published, "method": method})
}

/// Attributes of the tables, bucketized ones with what they hide.
pub(crate) fn tables(described: &Value) -> Vec<(Value, bool)> {
    let tables = described["tables"].as_array().unwrap().iter();
    tables.map(|table| (table["attributes"].clone(), table["protection"] == "guarding")).collect()
}

/// Judges a release of Adult from outside, and by the command line; the number of tables with buckets.
pub(crate) async fn judged(server: &Server, manifest: &Value) -> usize {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("manifest.json"), manifest.to_string()).unwrap();
    let mut files = Files::new();
    for table in manifest["tables"].as_array().unwrap() {
        for part in table["parts"].as_array().unwrap() {
            let csv = server.part(manifest, &text(&table["name"]), &text(&part["name"])).await;
            fs::write(folder.path().join(text(&part["file"])), &csv).unwrap();
            files.insert(text(&part["file"]), csv.into_bytes());
        }
    }
    let verified = run(guardian().arg("verify").arg(folder.path()));
    assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stdout));
    let original = Original::read(adult().as_slice());
    audit(&original, &files, &(0..NAMES.len()).collect::<Vec<_>>(), &rules()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_algorithm_publishes_adult() {
    let mut server = Server::start().await;
    let mut single = 0;
    for (algorithm, options, by_data) in [
        ("gd", json!({}), true),
        ("auto", json!({"gd": {"try_all": true, "fill": true}}), true),
        ("uad", json!({"uad": {"addback": true, "saturate": true}}), true),
        ("single_attribute", json!({}), false),
    ] {
        let what = format!("{algorithm} {options}");
        server = server.anew().await;
        let dataset = server.dataset(adult()).await;
        let document = document(algorithm, &options);
        let mut asked = document.clone();
        asked["dataset"] = dataset.as_str().into();
        let plan = server.post("/v1/plans", &asked).await.ok(200);
        assert_eq!(
            (&plan["feasible"], &plan["composition"]["verdict"]),
            (&json!(true), &json!("safe")),
            "{what}: {plan:#}"
        );
        assert!(
            plan["rules"].as_array().unwrap().iter().all(|rule| !rule["enforced_by"].is_null()),
            "{what}: {plan:#}"
        );

        let manifest = server.publish(&dataset, document).await;
        assert_eq!(manifest["verification"]["verified"], true, "{what}");
        assert_eq!(manifest["method"]["algorithm"], algorithm);
        let adversary = by_data.then_some("without minimality");
        assert_eq!(manifest["method"].get("adversary").and_then(Value::as_str), adversary, "{what}");
        // buckets are drawn anew in every release, and the choice seldom hangs on them: here it does not
        assert_eq!(tables(&plan), tables(&manifest), "{what}");
        let guarding = tables(&manifest).iter().filter(|(_, guarding)| *guarding).count();
        assert_eq!(guarding > 0, by_data, "{what}: {manifest:#}");
        single += usize::from(tables(&manifest).len() == NAMES.len());
        let won: Vec<&Value> =
            manifest["warnings"].as_array().unwrap().iter().filter(|w| w["type"] == "algorithm-chosen").collect();
        assert_eq!(won.len(), usize::from(algorithm == "auto"), "{manifest:#}");
        if let [won] = won[..] {
            let planned =
                plan["warnings"].as_array().unwrap().iter().find(|w| w["type"] == "algorithm-chosen").unwrap();
            let winner = text(&planned["detail"]);
            let winner = winner.split(" leaves").next().unwrap();
            assert!(text(&won["detail"]).contains(winner), "{won} {planned}");
            assert!(!text(&won["detail"]).contains('.'), "no figure of what was not chosen: {won}");
        }
        assert_eq!(judged(&server, &manifest).await, guarding, "{what}");
    }
    assert_eq!(single, 1, "only single_attribute parts all attributes");
    server.stop().await;
}

/// A job that is refused before its rows are looked at says nothing of tables, and its plan does not either.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_chosen_for_rules_that_cannot_be_kept() {
    let server = Server::start().await;
    let dataset = server.dataset(adult()).await;
    let mut asked = document("gd", &json!({}));
    asked["method"]["rules"] = json!(["age -> income", "age -> education"]);
    asked["dataset"] = dataset.as_str().into();
    let plan = server.post("/v1/plans", &asked).await.ok(200);
    assert_eq!((&plan["feasible"], &plan["tables"]), (&json!(false), &json!([])), "{plan:#}");
    assert_eq!(plan["composition"]["verdict"], "undecidable");
    assert!(plan["rules"].as_array().unwrap().iter().all(|rule| rule["enforced_by"].is_null()), "{plan:#}");
    assert!(plan["warnings"].to_string().contains("not-decided"), "{plan:#}");
    let problem = server.post("/v1/jobs", &asked).await.problem(422, "invalid-specification");
    assert_eq!(
        (kind(&problem["errors"][0]), &problem["errors"][0]["pointer"]),
        ("rule-ineligible", &json!("/method/rules/0"))
    );
    server.stop().await;
}

/// A second release of the same people must compose with the first.
#[tokio::test(flavor = "multi_thread")]
async fn gd_composes_with_earlier_releases_or_is_refused() {
    let server = Server::start().await;
    let dataset = server.dataset(adult()).await;
    let only = |names: &[&str], rules: &[&str]| {
        let attributes: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
        let mut method = document("gd", &json!({}))["method"].clone();
        method["rules"] = json!(rules);
        let mut document = json!({"attributes": attributes, "unlisted": "drop", "method": method});
        if rules.is_empty() {
            document["no_rules_reason"] = "marginals".into();
        }
        document
    };
    server.publish(&dataset, only(&["age", "sex", "education"], &["age, sex -> education"])).await;
    // the most useful table contains all attributes, which would reveal education by age
    let manifest = server.publish(&dataset, only(&["age", "income", "occupation"], &[])).await;
    assert_eq!(tables(&manifest).len(), 1, "age may stand beside what is not protected: {manifest:#}");
    let manifest = server.publish(&dataset, only(&["marital_status", "country"], &["country -> marital_status"])).await;
    assert_eq!(manifest["verification"]["verified"], true);
    let problem = server.refused(&dataset, only(&["income", "education", "occupation"], &[])).await;
    assert_eq!(kind(&problem), "composition-violated", "{problem:#}");
    server.stop().await;
}

/// The score against the original is for the one who chose the key of the release.
#[test]
fn the_divergence_decides_in_reproductions_only() {
    let folder = tempfile::tempdir().unwrap();
    let (specification, out) = (folder.path().join("specification.json"), folder.path().join("out"));
    fs::write(&specification, document("gd", &json!({"score": "kl"})).to_string()).unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join(DATA);
    let publish = |more: &[&str]| {
        let mut command = guardian();
        command.arg("publish").arg("--input").arg(&data).arg("--spec").arg(&specification).arg("--out").arg(&out);
        run(command.args(more))
    };
    let refused = publish(&[]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--reproduce"));
    let done = publish(&["--reproduce", &"5a".repeat(32)]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let manifest: Value = serde_json::from_slice(&fs::read(out.join("manifest.json")).unwrap()).unwrap();
    assert_eq!((&manifest["reproducible"], &manifest["method"]["algorithm"]), (&json!(true), &json!("gd")));
    let verified = run(guardian().arg("verify").arg(&out).arg("--original").arg(&data));
    assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stdout));
}
