//! Policies: specifications under a name, in versions that do not change.

use guardian::identity::Preset;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::security::identity::Guarded;
use crate::support::harness::{Answer, Client, HOSPITAL, Server, hospital_method, kind, text, versatile};

fn hospital() -> Value {
    json!({"method": hospital_method()})
}

async fn put(client: &Client, name: &str, specification: &Value) -> Answer {
    client.put(&format!("/v1/policies/{name}"), &json!({"specification": specification})).await
}

async fn raw(client: &Client, method: Method, path: &str, body: &str) -> Answer {
    let request = client.request(method, path).header(CONTENT_TYPE, "application/json").body(body.to_owned());
    client.send(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_stays_as_it_was_written() {
    let server = Server::start().await;
    let answer = put(&server, "hospital", &hospital()).await;
    let first = answer.ok(201);
    assert_eq!((&first["name"], &first["version"]), (&json!("hospital"), &json!(1)));
    assert_eq!((&first["policy"], &first["specification"]), (&json!("hospital-v1"), &hospital()));
    assert!(first["created_at"].is_string());
    assert_eq!(server.get(answer.header("location")).await.ok(200), first);
    assert_eq!(put(&server, "hospital", &hospital()).await.ok(200), first, "an equal one makes no version");
    let other = json!({"unlisted": "drop", "method": hospital_method()});
    let second = put(&server, "hospital", &other).await.ok(201);
    assert_eq!(second["version"], 2);
    assert_eq!(server.get("/v1/policies/hospital").await.ok(200), second);
    assert_eq!(server.get("/v1/policies/hospital?version=1").await.ok(200), first);
    put(&server, "a.b_c-v1x", &hospital()).await.ok(201);
    let pins = async |path: &str| {
        let items = server.items(path).await;
        assert!(items.iter().all(|item| item.get("specification").is_none()));
        items.iter().map(|item| text(&item["policy"])).collect::<Vec<_>>()
    };
    assert_eq!(pins("/v1/policies").await, ["a.b_c-v1x-v1", "hospital-v2"]);
    assert_eq!(pins("/v1/policies/hospital/versions").await, ["hospital-v2", "hospital-v1"]);
    let page = server.get("/v1/policies?limit=1").await.ok(200);
    let next = format!("/v1/policies?limit=1&cursor={}", text(&page["next"]));
    assert_eq!(server.get(&next).await.ok(200)["next"], Value::Null);
    assert_eq!(pins(&next).await, ["hospital-v2"]);
    for missing in ["none", "none/versions", "hospital?version=3", "hospital?version=0", "hospital-v1", "x%00", "%ff"] {
        server.get(&format!("/v1/policies/{missing}")).await.problem(404, "not-found");
    }
    server.get("/v1/policies/hospital?version=one").await.problem(400, "malformed-request");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_on_a_policy_is_the_job_written_out() {
    let server = Server::start().await;
    let specification = json!({"unlisted": "drop", "priority": 5, "method": hospital_method()});
    put(&server, "hospital", &specification).await.ok(201);
    let dataset = server.dataset(HOSPITAL).await;
    // a null is no member, and replaces nothing
    let by_policy = json!({"policy": "hospital-v1", "priority": 7, "unlisted": null});
    let job = server.job(&dataset, by_policy).await.ok(200);
    assert_eq!((&job["status"], &job["reused"], &job["priority"]), (&json!("succeeded"), &json!(false), &json!(7)));
    let mut written = specification.clone();
    written["priority"] = 7.into();
    let same = server.job(&dataset, written).await.ok(200);
    assert_eq!((&same["release"], &same["reused"]), (&job["release"], &json!(true)));
    assert_eq!(same["specification"], job["specification"], "the job records what was written out");
    assert_eq!(job["specification"].get("policy"), None);

    // a later version changes nothing for those who named the first
    put(&server, "hospital", &json!({"unlisted": "drop", "method": versatile(&["age -> race"])})).await.ok(201);
    let again = server.job(&dataset, json!({"policy": "hospital-v1"})).await.ok(200);
    assert_eq!((&again["release"], &again["priority"]), (&job["release"], &json!(5)));
    // what stands beside it replaces whole members
    let plan = json!({"dataset": dataset, "policy": "hospital-v2", "method": hospital_method()});
    let plan = server.post("/v1/plans", &plan).await.ok(200);
    let warned = plan["warnings"].as_array().unwrap().iter().any(|warning| warning["type"] == "release-reused");
    assert!(warned, "{plan:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_named_with_its_version() {
    let server = Server::start().await;
    put(&server, "hospital", &hospital()).await.ok(201);
    let dataset = server.dataset(HOSPITAL).await;
    for (policy, name) in [
        (json!("hospital"), "parameter-range"),
        (json!("hospital-v"), "parameter-range"),
        (json!("hospital-v01"), "parameter-range"),
        (json!("hospital-v0"), "parameter-range"),
        (json!("hospital-v-1"), "parameter-range"),
        (json!("hospital-v99999999999"), "parameter-range"),
        (json!("Hospital-v1"), "parameter-range"),
        (json!("hospital-v1-v1"), "parameter-range"),
        (json!("-v1"), "parameter-range"),
        (json!(1), "parameter-range"),
        (json!({"name": "hospital", "version": 1}), "parameter-range"),
        (json!("hospital-v2"), "unknown-policy"),
        (json!("none-v1"), "unknown-policy"),
    ] {
        for path in ["/v1/jobs", "/v1/plans"] {
            let document = json!({"dataset": dataset, "policy": policy});
            let answer = server.post(path, &document).await;
            answer.fault("/policy", name);
            assert_eq!(answer.json()["errors"].as_array().unwrap().len(), 1);
        }
    }
    // faults point into the document written out
    let faulty = json!({"policy": "hospital-v1", "surprise": 1});
    server.job(&dataset, faulty).await.fault("/surprise", "unknown-field");
    let small = server.dataset("age,icd9\n1,a\n2,b\n").await;
    server.job(&small, json!({"policy": "hospital-v1"})).await.fault("/method/rules/0", "unknown-attribute");
    server.post("/v1/jobs", &json!({"policy": "hospital-v1"})).await.fault("/dataset", "parameter-range");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_policy_is_not_stored() {
    let server = Server::start().await;
    let fault = |specification: Value, pointer: &'static str, name: &'static str| (specification, pointer, name);
    let rules = |rules: &[&str]| json!({"method": versatile(rules)});
    for (specification, pointer, name) in [
        fault(json!({}), "/specification/method", "parameter-range"),
        fault(json!([]), "/specification", "parameter-range"),
        fault(Value::Null, "/specification", "parameter-range"),
        fault(rules(&["age ->"]), "/specification/method/rules/0", "rule-malformed"),
        fault(rules(&["age -> age"]), "/specification/method/rules/0", "rule-malformed"),
        fault(rules(&[]), "/specification/method/rules", "vacuous-guarantee"),
        fault(
            json!({"dataset": "018f0000-0000-7000-8000-000000000000", "method": hospital_method()}),
            "/specification/dataset",
            "guarantee-unsupported",
        ),
        fault(
            json!({"policy": "hospital-v1", "method": hospital_method()}),
            "/specification/policy",
            "guarantee-unsupported",
        ),
        fault(json!({"priority": 101, "method": hospital_method()}), "/specification/priority", "parameter-range"),
        fault(
            json!({"attributes": {"weight": {"rename": "w"}}, "method": hospital_method()}),
            "/specification/attributes",
            "unclassified-attributes",
        ),
        fault(
            json!({"attributes": {"age": {"rename": "race"}}, "method": hospital_method()}),
            "/specification/attributes/age/rename",
            "reserved-name",
        ),
    ] {
        put(&server, "broken", &specification).await.fault(pointer, name);
    }
    let several = json!({"surprise": 1, "priority": "high", "method": versatile(&["age -> race", "age"])});
    let body = json!({"specification": several, "name": "broken"});
    let problem = server.put("/v1/policies/broken", &body).await.problem(422, "invalid-specification");
    let found: Vec<_> =
        problem["errors"].as_array().unwrap().iter().map(|fault| (text(&fault["pointer"]), kind(fault))).collect();
    let at = |pointer: &str, kind| (pointer.to_owned(), kind);
    assert_eq!(
        found,
        [
            at("/name", "unknown-field"),
            at("/specification/method/rules/1", "rule-malformed"),
            at("/specification/priority", "parameter-range"),
            at("/specification/surprise", "unknown-field"),
        ]
    );
    let long = "x".repeat(101);
    for name in ["Hospital", "hospital-v3", "hospital-v03", "-x", ".x", "é", "a%20b", "a%00", "a%2Fb", &long] {
        put(&server, name, &hospital()).await.problem(400, "malformed-request");
    }
    let wide = json!({"unlisted": "drop", "method": versatile(&vec!["age, icd9, hospital -> race"; 40_000])});
    put(&server, "wide", &wide).await.fault("/specification/method/rules", "parameter-range");
    let reasons: Vec<String> = (0..9_000).map(|rule| format!("{} -> s", "q".repeat(rule % 7 + 120))).collect();
    let reasons: Vec<&str> = reasons.iter().map(String::as_str).collect();
    put(&server, "large", &rules(&reasons)).await.problem(413, "too-large");
    assert!(server.items("/v1/policies").await.is_empty());
    assert_eq!((server.stored("policies").await, server.stored("audit_log").await), (0, 0));
    put(&server, &"x".repeat(100), &hospital()).await.ok(201);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_occurs_twice_is_refused() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let method = hospital_method().to_string();
    let twice = format!("{{\"dataset\":\"{dataset}\",\"hold\":true,\"method\":{method},\"hold\":false}}");
    let deep = format!(
        "{{\"dataset\":\"{dataset}\",\"method\":{method},\"attributes\":{{\"age\":{{}},\"age\":{{\"drop\":true}}}}}}"
    );
    for (body, named) in [(&twice, "\"hold\""), (&deep, "\"age\"")] {
        for path in ["/v1/jobs", "/v1/plans"] {
            let problem = raw(&server, Method::POST, path, body).await.problem(400, "malformed-body");
            assert!(text(&problem["detail"]).contains(named), "{problem}");
        }
        let policy = format!("{{\"specification\":{body}}}");
        raw(&server, Method::PUT, "/v1/policies/p", &policy).await.problem(400, "malformed-body");
    }
    assert!(server.items("/v1/jobs").await.is_empty());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_of_other_tenants_do_not_exist() {
    let guarded = Guarded::start().await;
    let (here, there) = (guarded.preset(Preset::Admin), guarded.server.with_token(&guarded.unknown_value));
    put(&here, "hospital", &hospital()).await.ok(201);
    assert!(there.items("/v1/policies").await.is_empty());
    there.get("/v1/policies/hospital/versions").await.problem(404, "not-found");
    let dataset = there.dataset(HOSPITAL).await;
    there.job(&dataset, json!({"policy": "hospital-v1"})).await.fault("/policy", "unknown-policy");
    let own = put(&there, "hospital", &json!({"unlisted": "drop", "method": hospital_method()})).await.ok(201);
    assert_eq!(own["version"], 1);
    assert_eq!(here.get("/v1/policies/hospital").await.ok(200)["specification"], hospital());
    // a key that may submit need not be able to write policies
    put(&guarded.preset(Preset::Pipeline), "hospital", &hospital()).await.problem(403, "forbidden");
    let pipeline = guarded.preset(Preset::Pipeline);
    let dataset = pipeline.dataset(HOSPITAL).await;
    assert_eq!(pipeline.job(&dataset, json!({"policy": "hospital-v1"})).await.ok(200)["status"], "succeeded");
    guarded.server.stop().await;
}
