//! Sequential jobs as stored policies: earlier releases by the name of the policy that made them.

use serde_json::{Value, json};

use super::releases::{TOWNS, anonymity, new, plain, sequential};
use crate::support::harness::{Server, kind, text};

/// The policy `names`: a release that is joined with the latest one of the policy `register`.
fn names() -> Value {
    let asked = json!([anonymity(&[new("job"), "register.disease".to_owned()], &[new("#key")], 2)]);
    let mut names = sequential(&["name", "job"], &[], None, asked);
    names["method"]["against"] = json!([{"policy": "register"}]);
    names["method"]["exclusions"] = json!([{"left": {"new.name": "Alice"}, "right": {"register.disease": "HIV"}}]);
    names
}

async fn put(server: &Server, name: &str, specification: &Value) {
    server.put(&format!("/v1/policies/{name}"), &json!({"specification": specification})).await.ok(201);
}

async fn uploaded(server: &Server, series: &str) -> String {
    server.dataset_of(series, TOWNS).await
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_stands_for_its_latest_release() {
    let server = Server::start().await;
    put(&server, "register", &plain(&["job", "disease"])).await;
    put(&server, "names", &names()).await;
    let dataset = uploaded(&server, "clinic").await;
    let sequel = json!({"policy": "names-v1"});
    let mut planned = sequel.clone();
    planned["dataset"] = dataset.as_str().into();
    for answer in [server.job(&dataset, sequel.clone()).await, server.post("/v1/plans", &planned).await] {
        let fault = answer.fault("/method/against/0", "unknown-release");
        assert_eq!(fault["policy"], "register", "{fault}");
        let detail = text(&fault["detail"]);
        assert!(["series clinic", "policy register", "first"].iter().all(|words| detail.contains(words)), "{detail}");
    }

    let register = server.job(&dataset, json!({"policy": "register-v1"})).await.ok(200)["release"].clone();
    let job = server.job(&dataset, sequel.clone()).await.ok(200);
    assert_eq!((&job["status"], &job["reused"]), (&json!("succeeded"), &json!(false)), "{job:#}");
    let method = &job["specification"]["method"];
    let disease = format!("{}.disease", text(&register));
    assert_eq!(method["against"], json!([register]), "{method:#}");
    assert_eq!(method["requirements"][0]["x"], json!(["new.job", disease]), "{method:#}");
    assert_eq!(method["exclusions"][0]["right"], json!({disease.as_str(): "HIV"}), "{method:#}");
    let release = server.get(&format!("/v1/releases/{}", text(&job["release"]))).await.ok(200);
    assert_eq!(release["method_details"]["against"], json!([register]), "{release:#}");

    // the same night again, and the job written out
    let again = server.job(&dataset, sequel.clone()).await.ok(200);
    assert_eq!((&again["release"], &again["reused"]), (&job["release"], &json!(true)), "{again:#}");
    let written = json!({"unlisted": "drop", "attributes": names()["attributes"], "method": method});
    let written = server.job(&dataset, written).await.ok(200);
    assert_eq!((&written["release"], &written["reused"]), (&job["release"], &json!(true)), "{written:#}");

    // of another series there is no release yet
    let other = uploaded(&server, "ward").await;
    server.job(&other, sequel).await.fault("/method/against/0", "unknown-release");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_names_of_policies_stand_for_releases() {
    let server = Server::start().await;
    put(&server, "register", &plain(&["job", "disease"])).await;
    let dataset = uploaded(&server, "clinic").await;
    for (named, expected) in [
        (json!({"policy": "absent"}), "unknown-policy"),
        (json!({"policy": "register-v1"}), "parameter-range"),
        (json!({"policy": "new"}), "parameter-range"),
        (json!({"policy": 1}), "parameter-range"),
        (json!({"name": "register"}), "parameter-range"),
        (json!({"policy": "register", "version": 1}), "parameter-range"),
    ] {
        let mut document = names();
        document["method"]["against"] = json!([named]);
        server.job(&dataset, document).await.fault("/method/against/0", expected);
    }
    // each release once, by whatever name
    server.job(&dataset, json!({"policy": "register-v1"})).await.ok(200);
    let mut twice = names();
    twice["method"]["against"] = json!([{"policy": "register"}, {"policy": "register"}]);
    server.job(&dataset, twice).await.fault("/method/against/1", "parameter-range");
    // a policy that names others is checked without them
    let mut broken = names();
    broken["method"]["requirements"][0]["x"] = json!(["new.job", "elsewhere.disease"]);
    let broken = server.put("/v1/policies/broken", &json!({"specification": broken})).await;
    let fault = broken.fault("/specification/method/requirements/0/x/1", "parameter-range");
    assert!(text(&fault["detail"]).contains("elsewhere is no release of /method/against"), "{fault}");
    assert_eq!(kind(&broken.json()), "invalid-specification");
    server.stop().await;
}
