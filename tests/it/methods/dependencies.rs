//! Dependencies that the adversary knows: declared, found in the data, or assumed unknown; and combinations.

use serde_json::{Value, json};

use crate::support::harness::{Server, kind, versatile};

/// 240 people: zip determines county, and nothing else determines anything.
fn people() -> String {
    let row = |i: u32| {
        let zip = i % 12;
        format!(
            "{},z{zip:02},c{},{},{}\n",
            20 + i / 12,
            zip / 3,
            ["asian", "black", "white"][(i / 5 % 3) as usize],
            i * 7 % 11
        )
    };
    "age,zip,county,race,dx\n".to_owned() + &(0..240).map(row).collect::<String>()
}

fn method(rules: &[&str], more: Value) -> Value {
    let mut method = versatile(rules);
    for (name, value) in more.as_object().into_iter().flatten() {
        method[name] = value.clone();
    }
    json!({"attributes": {"age": {"publish": true}, "zip": {"publish": true}, "county": {"publish": true},
        "race": {"publish": true}, "dx": {"publish": true}}, "method": method})
}

fn rule<'a>(rules: &'a Value, origin: &str) -> &'a Value {
    rules.as_array().unwrap().iter().find(|rule| rule["origin"] == origin).unwrap_or_else(|| panic!("{rules:#}"))
}

/// No table holds both attributes, unless buckets part them.
fn apart(manifest: &Value, a: &str, b: &str) -> bool {
    let holds = |list: &Value, name: &str| list.as_array().unwrap().iter().any(|held| held == name);
    manifest["tables"].as_array().unwrap().iter().all(|table| {
        let parts = table["parts"].as_array().unwrap();
        parts.iter().all(|part| !(holds(&part["attributes"], a) && holds(&part["attributes"], b)))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependency_in_the_data_is_protected_from() {
    let server = Server::start().await;
    let dataset = server.dataset(people()).await;
    let document = method(&["age, race -> county"], json!({}));
    let mut planned = document.clone();
    planned["dataset"] = dataset.as_str().into();
    let plan = server.post("/v1/plans", &planned).await.ok(200);
    assert_eq!(plan["feasible"], true, "{plan:#}");
    let follows = rule(&plan["rules"], "from_dependency");
    assert_eq!((&follows["pointer"], &follows["sensitive"]), (&Value::Null, &json!(["zip"])));
    assert_eq!(follows["because"], json!({"determinant": ["zip"], "dependent": ["county"]}));
    assert!(!plan["warnings"].to_string().contains("dependency-necessary-only"));

    let done = server.job(&dataset, document).await.ok(200);
    let manifest = server.get(done["links"]["release"].as_str().unwrap()).await.ok(200);
    let found = &manifest["dependencies"]["discovered"];
    assert_eq!((found[0]["determinant"][0].as_str(), found.as_array().unwrap().len()), (Some("zip"), 1), "{found}");
    assert!(found[0]["used"].to_string().contains("derived_rule"), "{found}");
    assert_eq!(rule(&manifest["rules"], "from_dependency")["sensitive"], json!(["zip"]));
    for known in ["age", "race"] {
        assert!(apart(&manifest, known, "county") && apart(&manifest, known, "zip"), "{manifest:#}");
    }

    // the same, declared beforehand: no other dependency was found
    let declared = json!({"functional_dependencies": [{"determinant": ["zip"], "dependent": ["county"]}]});
    let document = method(&["age, race -> county"], declared.clone());
    let again = server.dataset(people()).await;
    let done = server.job(&again, document).await.ok(200);
    let manifest = server.get(done["links"]["release"].as_str().unwrap()).await.ok(200);
    let listed = json!([{"determinant": ["zip"], "dependent": ["county"], "used": ["derived_rule"]}]);
    assert_eq!(manifest["dependencies"]["declared"], listed);
    assert_eq!(manifest["dependencies"]["discovered"], json!([]));
    assert!(apart(&manifest, "age", "zip"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn assumed_unknown_dependency_publishes_its_reason() {
    let server = Server::start().await;
    let dataset = server.dataset(people()).await;
    let unknown = json!([{"determinant": ["zip"], "dependent": ["county"], "reason": "zip codes are scrambled"}]);
    let document = method(&["age, race -> county"], json!({"assume_unknown": unknown}));
    let done = server.job(&dataset, document).await.ok(200);
    let manifest = server.get(done["links"]["release"].as_str().unwrap()).await.ok(200);
    assert_eq!(manifest["dependencies"]["assumed_unknown"], unknown);
    assert_eq!(manifest["dependencies"]["discovered"], json!([]));
    assert_eq!(manifest["rules"].as_array().unwrap().len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn known_attributes_must_not_determine_sensitive_ones() {
    let server = Server::start().await;
    let dataset = server.dataset(people()).await;
    let problem = server.refused(&dataset, method(&["zip -> county"], json!({}))).await;
    assert_eq!(
        (kind(&problem["errors"][0]), &problem["errors"][0]["pointer"]),
        ("rule-impossible", &json!("/method/rules/0"))
    );
    assert_eq!(problem["errors"][0]["dependency"], json!({"determinant": ["zip"], "dependent": ["county"]}));
    // by way of a dropped attribute, as declared
    let mut through = method(
        &["age -> race"],
        json!({"functional_dependencies": [
            {"determinant": ["age"], "dependent": ["dx"]}, {"determinant": ["dx"], "dependent": ["race"]}]}),
    );
    through["attributes"]["dx"] = json!({"drop": true});
    let problem = server.job(&dataset, through).await.problem(422, "invalid-specification");
    assert_eq!(kind(&problem["errors"][0]), "rule-impossible", "{problem:#}");
    // what follows for distances and thresholds is no rule of its own: the zip code stands beside the county
    let mut close = method(&["age, race -> county"], json!({}));
    close["method"]["default_guarantee"] = json!({"type": "t_closeness", "t": "0.3"});
    let mut limited = method(&["age, race -> county"], json!({}));
    let thresholds = json!({"type": "thresholds", "explicit": {"c0": "1/2"}, "otherwise": "1/2"});
    limited["method"]["default_guarantee"] = thresholds;
    for mut document in [close, limited] {
        document["dataset"] = dataset.as_str().into();
        let plan = server.post("/v1/plans", &document).await.ok(200);
        assert_eq!(plan["feasible"], true, "{plan:#}");
    }
    server.stop().await;
}

/// What a release promised holds for later ones: also what only follows from its rules.
#[tokio::test(flavor = "multi_thread")]
async fn implied_rules_are_in_the_ledger() {
    let server = Server::start().await;
    let dataset = server.dataset(people()).await;
    let only = |names: &[&str], rules: &[&str]| {
        let attributes: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
        let mut document = json!({"attributes": attributes, "unlisted": "drop", "method": versatile(rules)});
        if rules.is_empty() {
            document["no_rules_reason"] = "a marginal".into();
        }
        document
    };
    server.job(&dataset, only(&["age", "zip", "county"], &["age -> county"])).await.ok(200);
    let problem = server.refused(&dataset, only(&["age", "zip"], &[])).await;
    assert_eq!(kind(&problem), "composition-violated", "{problem:#}");
    // the rule itself would break, and so would what follows from it
    let pointers: Vec<&Value> =
        problem["violations"].as_array().unwrap().iter().map(|violation| &violation["rule"]["pointer"]).collect();
    assert!(pointers.contains(&&Value::Null) && pointers.contains(&&json!("/method/rules/0")), "{problem:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn combination_is_protected_by_an_eligible_attribute() {
    let server = Server::start().await;
    // nine of ten are white, so that race alone can never be protected
    let row = |i: u32| format!("{},{},d{}\n", i % 37, if i.is_multiple_of(10) { "black" } else { "white" }, i / 3 % 5);
    let dataset = server.dataset("age,race,dx\n".to_owned() + &(0..200).map(row).collect::<String>()).await;
    let single = server.job(&dataset, json!({"method": versatile(&["age -> race, dx"])})).await;
    single.problem(422, "invalid-specification");
    let done = server.job(&dataset, json!({"method": versatile(&["age -> (race & dx)"])})).await.ok(200);
    let manifest = server.get(done["links"]["release"].as_str().unwrap()).await.ok(200);
    let rule = &manifest["rules"][0];
    assert_eq!((&rule["combination"], &rule["sensitive"]), (&json!(true), &json!(["race", "dx"])));
    assert!(apart(&manifest, "age", "dx"), "{manifest:#}");
    assert_eq!(done["specification"]["method"]["rules"][0]["sensitive_combination"], json!(["race", "dx"]));
    server.stop().await;
}
