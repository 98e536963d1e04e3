//! Decompositions from which values can be inferred: refused, or published with what they reveal.

use serde_json::{Value, json};

use super::decompose::{POSTER, poster};
use crate::support::folder::{CommandFixture, code, stderr};
use crate::support::harness::{Server, kind, text};

/// Without a word of the caller, nothing is published from which values of the other attribute can be inferred.
#[tokio::test(flavor = "multi_thread")]
async fn inferences_are_refused_unless_they_are_reported() {
    let server = Server::start().await;
    let dataset = server.dataset(POSTER).await;
    let asked = |breaches: Value| {
        let mut document = poster(json!({}));
        document["method"]["breaches"] = breaches;
        document
    };
    let said = "salary may be inferred in 2 of 2 buckets by an adversary who knows occ of a person";
    for breaches in [json!(null), json!("refuse")] {
        let mut plan = asked(breaches.clone());
        plan["dataset"] = dataset.as_str().into();
        let planned = server.post("/v1/plans", &plan).await.ok(200);
        let fault = &planned["problems"][0]["errors"][0];
        assert_eq!(
            (kind(fault), &fault["pointer"]),
            ("can-be-concluded", &json!("/method/sensitive/1")),
            "{planned:#}"
        );
        assert!(text(&fault["detail"]).starts_with(said), "{fault:#}");
        assert_eq!(planned["feasible"], false);
        let problem = server.refused(&dataset, asked(breaches)).await;
        assert_eq!(kind(&problem["errors"][0]), "can-be-concluded", "{problem:#}");
    }
    let folder = CommandFixture::new(POSTER, &asked(json!(null)));
    let refused = folder.publish("out", &[]);
    let problem = stderr(&refused);
    assert_eq!(code(&refused), 3, "{problem}");
    assert!(problem.contains("can-be-concluded") && problem.contains(said), "{problem}");

    let mut plan = asked(json!("report"));
    plan["dataset"] = dataset.as_str().into();
    let planned = server.post("/v1/plans", &plan).await.ok(200);
    assert_eq!(planned["feasible"], true, "{planned:#}");
    let release = server.publish(&dataset, asked(json!("report"))).await;
    for warned in [&planned, &release] {
        let mut warnings = warned["warnings"].as_array().unwrap().iter();
        let warning = warnings.find(|warning| warning["type"] == "can-be-concluded").unwrap();
        assert!(text(&warning["detail"]).starts_with(said), "{warning:#}");
    }
    let report = server.get(&format!("/v1/releases/{}/report", text(&release["id"]))).await.ok(200);
    assert!(text(&report["inferences"][0]).starts_with(said), "{report:#}");
}
