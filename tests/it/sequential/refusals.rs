//! What sequential releases are refused for, and where each fault points.

use serde_json::{Value, json};

use super::releases::{PEOPLE, TOWNS, anonymity, linkability, new, of, plain, sequential};
use crate::support::harness::{Server, kind, patched};

#[tokio::test(flavor = "multi_thread")]
async fn infeasible_specification_is_refused_with_reason() {
    let server = Server::start().await;
    let dataset = server.dataset(PEOPLE).await;
    let earlier = server.publish(&dataset, plain(&["job", "disease"])).await;
    let joined = |k: u64| anonymity(&[new("job"), of(&earlier, "disease")], &[new("#key")], k);
    let mut document = sequential(&["name", "job"], &[&earlier], None, json!([joined(2)]));
    document["dataset"] = dataset.clone().into();
    let with = |pointer: &str, value: Value| {
        let mut changed = document.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        changed
    };

    // not even the roots hold, which proves that nothing does
    let fault = server.refused(&dataset, with("/method/requirements", json!([joined(9)]))).await["errors"][0].clone();
    assert_eq!((kind(&fault), &fault["pointer"]), ("infeasible-root", &json!("/method/requirements/0")));
    assert!(fault["proof"].is_boolean(), "{fault}");
    let single = anonymity(&[new("job")], &[new("#key")], 9);
    let fault = server.refused(&dataset, with("/method/requirements", json!([single]))).await["errors"][0].clone();
    assert_eq!((kind(&fault), &fault["proof"]), ("infeasible-root", &json!(true)));
    assert_eq!(fault["largest_k"], 5, "{fault}");
    assert!(fault["detail"].as_str().unwrap().contains("ask for k of at most 5"), "{fault}");
    let share = linkability(&[new("name")], &[of(&earlier, "disease")], "0.5", Value::Null);
    let fault = server.refused(&dataset, with("/method/requirements", json!([share]))).await["errors"][0].clone();
    assert_eq!((kind(&fault), &fault["smallest_h"]), ("infeasible-root", &json!("5/7")), "{fault}");
    assert!(fault["detail"].as_str().unwrap().contains("ask for h of at least 5/7"), "{fault}");

    // what is published cannot be repaired
    let prior = anonymity(&[of(&earlier, "job")], &[of(&earlier, "#key")], 2);
    let problem = server.refused(&dataset, with("/method/requirements", json!([joined(2), prior]))).await;
    assert_eq!((kind(&problem), &problem["status"]), ("prior-release-violates", &json!(409)));
    assert_eq!(problem["pointer"], "/method/requirements/1");

    // exclusions that contradict a person
    let disease = of(&earlier, "disease");
    let exclusion = |name: &str, ill: &str| json!([{"left": {"new.name": name}, "right": {disease.as_str(): ill}}]);
    let mut excluded = document.clone();
    excluded["method"]["exclusions"] = exclusion("Alice", "Cancer");
    let fault = server.refused(&dataset, excluded.clone()).await["errors"][0].clone();
    assert_eq!((kind(&fault), &fault["pointer"]), ("exclusion-contradicted", &json!("/method/exclusions/0")));
    assert!(!fault["detail"].as_str().unwrap().contains("Alice"));
    excluded["dataset"] = dataset.as_str().into();
    let mended = patched(&excluded, &fault["remedies"][0]["patch"]);
    let plan = server.post("/v1/plans", &mended).await.ok(200);
    assert!(!plan["problems"].to_string().contains("exclusion-contradicted"), "{plan:#}");
    excluded["method"]["exclusions"] = exclusion("Nobody", "Cancer");
    let fault = server.refused(&dataset, excluded.clone()).await["errors"][0].clone();
    assert_eq!((kind(&fault), &fault["pointer"]), ("parameter-range", &json!("/method/exclusions/0/left/new.name")));
    // without Alices who have HIV, the clerk is alone in the office
    excluded["method"]["exclusions"] = exclusion("Alice", "HIV");
    let release = server.publish(&dataset, excluded).await;
    assert_eq!(release["method_details"]["cuts"], json!({"job": ["ANY_Job"]}));

    // releases that are not there, or are no tables of tuples
    let missing = json!(["018f0000-0000-7000-8000-000000000001"]);
    let mut unknown = sequential(&["job"], &[], None, json!([anonymity(&[new("job")], &[new("#key")], 2)]));
    unknown["method"]["against"] = missing;
    server.job(&dataset, unknown.clone()).await.fault("/method/against/0", "unknown-release");
    server.population("towns", &[]).await;
    let others = server.dataset_of("towns", TOWNS).await;
    let elsewhere = server.publish(&others, plain(&["town"])).await;
    unknown["method"]["against"] = json!([elsewhere["id"]]);
    server.job(&dataset, unknown.clone()).await.fault("/method/against/0", "unknown-release");
    unknown["dataset"] = dataset.clone().into();
    server.post("/v1/plans", &unknown).await.fault("/method/against/0", "unknown-release");
    let anatomy = json!({"unlisted": "drop", "method": {"type": "anatomy", "quasi_identifiers": ["class"],
        "sensitive": "disease", "guarantee": {"type": "l_diversity", "l": 2}}});
    let bucketized = server.publish(&others, anatomy).await;
    let later = sequential(&["name"], &[&bucketized], None, json!([anonymity(&[new("name")], &[new("#key")], 2)]));
    let mut later = later;
    later["attributes"] = json!({"name": {"taxonomy": {"ANY": ["Alice", "Bob", "Cathy"]}}});
    let fault = server.refused(&others, later).await["errors"][0].clone();
    assert_eq!((kind(&fault), &fault["pointer"]), ("bad-columns", &json!("/method/against/0")));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_of_too_much_is_refused() {
    let server = Server::start().await;
    let rows: String = (0..7200).map(|row| format!("{row},{},{}\n", 10_000 - row, row % 5)).collect();
    let dataset = server.dataset(format!("a,b,g\n{rows}")).await;
    let mut one = plain(&["b"]);
    one["attributes"]["b"]["identifier"] = false.into();
    let earlier = server.publish(&dataset, one).await;
    let asked = json!([linkability(&[new("g")], &[new("a"), of(&earlier, "b")], "0.5", Value::Null)]);
    let mut document = sequential(&["g"], &[&earlier], None, asked);
    document["attributes"] = json!({"a": {"publish": true, "identifier": false}});
    let fault = server.refused(&dataset, document).await["errors"][0].clone();
    assert_eq!((kind(&fault), &fault["pointer"]), ("join-too-dense", &json!("/method/requirements/0")));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_is_pointed_at() {
    let server = Server::start().await;
    let dataset = server.dataset(PEOPLE).await;
    let valid = sequential(&["name", "job"], &[], None, json!([anonymity(&[new("job")], &[new("#key")], 2)]));
    let at = |pointer: &str, value: Value| {
        let (mut changed, path) = (valid.clone(), pointer.rsplit_once('/').unwrap());
        changed.pointer_mut(path.0).unwrap()[path.1] = value;
        changed
    };
    let in_first = |name: &str, value: Value| at(&format!("/method/requirements/0/{name}"), value);
    let measure = |value: Value| in_first("measure", value);
    let first = "/method/requirements/0";
    let id = "018f0000-0000-7000-8000-000000000001";
    let mut excluded = valid.clone();
    excluded["attributes"]["job"]["excludable"] = json!(["Clerk"]);
    let mut entropy = valid.clone();
    entropy["utility"] = json!(["entropy"]);
    for (document, pointer, name) in [
        (at("/method/requirements", json!([])), "/method/requirements".to_owned(), "vacuous-guarantee"),
        (at("/method/requirements", json!("all")), "/method/requirements".into(), "parameter-range"),
        (at("/method/publish", json!(["nobody"])), "/method/publish/0".into(), "unknown-attribute"),
        (at("/method/against", json!(["t1"])), "/method/against/0".into(), "parameter-range"),
        (at("/method/against", json!([id, id])), "/method/against/1".into(), "parameter-range"),
        (at("/method/class", json!("disease")), "/method/class".into(), "bad-columns"),
        (at("/method/gain", json!("information")), "/method/class".into(), "parameter-range"),
        (at("/method/gain", json!("much")), "/method/gain".into(), "parameter-range"),
        (at("/method/score", json!("much")), "/method/score".into(), "parameter-range"),
        (at("/method/subsets", json!("some")), "/method/subsets".into(), "parameter-range"),
        (at("/method/rules", json!([])), "/method/rules".into(), "unknown-field"),
        (in_first("x", json!([])), format!("{first}/x"), "parameter-range"),
        (in_first("x", json!(["job"])), format!("{first}/x/0"), "parameter-range"),
        (in_first("x", json!(["new.nobody"])), format!("{first}/x/0"), "unknown-attribute"),
        (in_first("x", json!(["new.disease"])), format!("{first}/x/0"), "unknown-attribute"),
        (in_first("x", json!(["new.#key"])), format!("{first}/x/0"), "unknown-attribute"),
        (in_first("x", json!([format!("{id}.job")])), format!("{first}/x/0"), "parameter-range"),
        (in_first("x", json!(["new.job", "new.job"])), format!("{first}/x/1"), "parameter-range"),
        (in_first("y", json!(["new.job"])), first.to_owned(), "rule-malformed"),
        (in_first("y", Value::Null), format!("{first}/y"), "parameter-range"),
        (measure(Value::Null), format!("{first}/measure"), "parameter-range"),
        (measure(json!({"type": "xy_nothing"})), format!("{first}/measure/type"), "parameter-range"),
        (measure(json!({"type": "xy_anonymity"})), format!("{first}/measure/k"), "parameter-range"),
        (measure(json!({"type": "xy_anonymity", "k": 1})), format!("{first}/measure/k"), "vacuous-guarantee"),
        (measure(json!({"type": "xy_anonymity", "k": 0})), format!("{first}/measure/k"), "parameter-range"),
        (measure(json!({"type": "xy_linkability", "h": 1})), format!("{first}/measure/h"), "vacuous-guarantee"),
        (measure(json!({"type": "xy_linkability", "h": "0"})), format!("{first}/measure/h"), "parameter-range"),
        (
            measure(json!({"type": "xy_linkability", "h": "0.5", "sensitive_values": ["x"]})),
            format!("{first}/measure/sensitive_values"),
            "parameter-range",
        ),
        (
            at("/method/exclusions", json!([{"left": {"new.job": "x"}}])),
            "/method/exclusions/0/right".into(),
            "parameter-range",
        ),
        (
            at("/method/exclusions", json!([{"left": {"new.job": "x"}, "right": {"new.name": "x"}}])),
            "/method/exclusions/0".into(),
            "parameter-range",
        ),
        (excluded, "/attributes/job/excludable".into(), "guarantee-unsupported"),
        (entropy, "/utility".into(), "guarantee-unsupported"),
    ] {
        let refused = server.job(&dataset, document.clone()).await;
        refused.fault(&pointer, name);
        // of a requirement that could not be read a plan does not say that it is missing
        if pointer.starts_with(first) {
            let mut planned = document;
            planned["dataset"] = dataset.clone().into();
            let planned = server.post("/v1/plans", &planned).await;
            planned.fault(&pointer, name);
            assert_eq!(planned.json()["errors"], refused.json()["errors"], "{}", planned.text());
        }
    }
    let job = server.job(&dataset, valid).await.ok(200);
    assert_eq!(job["status"], "succeeded", "{job:#}");
    let normal = &job["specification"]["method"];
    assert_eq!(
        (&normal["gain"], &normal["score"], &normal["subsets"]),
        (&json!("distortion"), &json!("plus_one"), &json!("default"))
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attribute_that_counts_as_another_of_the_join_is_refused() {
    let server = Server::start().await;
    let dataset = server.dataset_of("s", TOWNS).await;
    let dataset = dataset.as_str();
    let earlier = server.publish(dataset, plain(&["job", "disease"])).await;
    let mut document = sequential(&["town"], &[&earlier], None, json!([anonymity(&[new("town")], &[new("#key")], 2)]));
    document["attributes"] = json!({"town": {"taxonomy": {"ANY": ["A", "B"]}}});
    document["dataset"] = dataset.into();
    let plan = server.post("/v1/plans", &document).await.ok(200);
    assert_eq!(plan["feasible"], true, "{plan:#}");
    let declared = json!({"reason": "computed by the warehouse", "functions": {"town": ["job"]}});
    server.post("/v1/series/s/disclosures", &declared).await.ok(201);
    server.post("/v1/plans", &document).await.fault("/method/against/0", "bad-columns");
    let fault = server.refused(dataset, document).await["errors"][0].clone();
    assert_eq!((kind(&fault), &fault["pointer"]), ("bad-columns", &json!("/method/against/0")));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_releases_that_are_alike_both_have_to_be_joined() {
    let server = Server::start().await;
    let dataset = server.dataset(TOWNS).await;
    let asked = |k: u64| json!([anonymity(&[new("job")], &[new("#key")], k)]);
    let first = server.publish(&dataset, sequential(&["name", "job"], &[], None, asked(3))).await;
    let second = server.publish(&dataset, sequential(&["name", "job"], &[&first], None, asked(2))).await;
    let later = |against: &[&Value]| sequential(&["job", "class"], against, None, asked(2));
    let problem = server.refused(&dataset, later(&[&first])).await;
    assert_eq!(kind(&problem), "composition-violated");
    server.publish(&dataset, later(&[&first, &second])).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mistake_in_a_reference_has_its_own_words() {
    let server = Server::start().await;
    let dataset = server.dataset(PEOPLE).await;
    let id = "018f0000-0000-7000-8000-000000000001";
    let elsewhere = format!("{id}.job");
    for (side, reference, words) in [
        ("x", "job", "job names no release: write new.job for the new release"),
        ("x", elsewhere.as_str(), "is no release of /method/against: name it there, or write new.job"),
        ("x", "new.#key", "#key stands for the rows of a release, which y counts"),
        ("y", "#key", "#key names no release: write new.#key"),
        ("y", "disease", "disease names no release: write new.disease"),
    ] {
        let mut asked = anonymity(&[new("job")], &[new("#key")], 2);
        asked[side] = json!([reference]);
        let document = sequential(&["name", "job"], &[], None, json!([asked]));
        let problem = server.job(&dataset, document).await.problem(422, "invalid-specification");
        let fault = &problem["errors"][0];
        assert_eq!(fault["pointer"], format!("/method/requirements/0/{side}/0"), "{problem:#}");
        assert!(fault["detail"].as_str().unwrap().contains(words), "{problem:#}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_release_is_named() {
    let server = Server::start().await;
    let dataset = server.dataset(TOWNS).await;
    let first = server.publish(&dataset, plain(&["job", "disease"])).await;
    let asked = json!([anonymity(&[new("job")], &[new("#key")], 2)]);
    let id = first["id"].as_str().unwrap();
    let problem = server.refused(&dataset, sequential(&["name", "job"], &[], None, asked.clone())).await;
    let words = format!(
        "table t1 would be exclusive and shares job with table t1 of release {id}: leave job out of the new release, \
         or make it by sequential with {id} in /method/against"
    );
    assert_eq!((kind(&problem), &problem["detail"]), ("composition-violated", &json!(words)), "{problem:#}");
    // another release shares an attribute with one that is named, though none with the new one
    let second = server.publish(&dataset, plain(&["disease", "town"])).await;
    let problem = server.refused(&dataset, sequential(&["name", "job"], &[&first], None, asked.clone())).await;
    let detail = problem["detail"].as_str().unwrap();
    let other = second["id"].as_str().unwrap();
    let words = format!("release {other} shares disease with a release in /method/against");
    assert!(detail.contains(&words) && detail.contains(&format!("name {other} in /method/against, too")), "{detail}");
    // a plain table beside an exclusive one
    let third = server.publish(&dataset, sequential(&["name", "job"], &[&first, &second], None, asked)).await;
    let problem = server.refused(&dataset, plain(&["name", "class"])).await;
    let detail = problem["detail"].as_str().unwrap();
    let words =
        format!("table t1 of release {} is exclusive and shares name with table t1", third["id"].as_str().unwrap());
    assert!(detail.starts_with(&words) && detail.contains("leave name out of the new release"), "{detail}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exact_and_suppressed_attributes_are_said() {
    let server = Server::start().await;
    let dataset = server.dataset(PEOPLE).await;
    let asked = json!([anonymity(&[new("name")], &[new("#key")], 2)]);
    let document = sequential(&["name", "class"], &[], None, asked);
    let mut planned = document.clone();
    planned["dataset"] = dataset.as_str().into();
    let plan = server.post("/v1/plans", &planned).await.ok(200);
    let release = server.publish(&dataset, document).await;
    for said in [&plan["warnings"], &release["warnings"]] {
        let of = |kind: &str| {
            let mut notices = said.as_array().unwrap().iter().filter(|notice| notice["type"] == kind);
            notices.next().map(|notice| notice["detail"].as_str().unwrap().to_owned()).unwrap_or_default()
        };
        assert!(of("attributes-exact").starts_with("class: published exactly"), "{said:#}");
        assert!(of("attributes-suppressed").starts_with("name: the same label in every row"), "{said:#}");
    }
    server.stop().await;
}
